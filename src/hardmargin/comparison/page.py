"""The report of a comparison: one HTML file that needs no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hardmargin
from hardmargin.comparison.charts import bars, intervals, reliability_diagram
from hardmargin.comparison.measure import Measured, error_of, log_loss_of, reliability
from hardmargin.pages import document, scrolling_table

#: Columns and classes that are shown.
MOST_COLUMNS, MOST_CLASSES = 20, 12


def html_report(
    title: str,
    facts: Mapping[str, str],
    measured: Sequence[Measured],
    codes: NDArray[np.intp],
    classes: Sequence[str],
) -> str:
    """Write the page.

    Parameters
    ----------
    title : str
        Of the page.
    facts : mapping
        What the data are, and how they were split.
    measured : sequence of Measured
        All classifiers.
    codes : (n,) int array
        Classes of all rows.
    classes : sequence of str
        Their names.
    """
    known = sorted((m for m in measured if m.is_measured), key=lambda m: log_loss_of(m, codes))
    sections = [
        ("numbers", "Error, probabilities, time and memory", _numbers(measured, known, codes)),
        ("errors", "Errors", _errors(known, codes)),
        ("calibration", "Are the probabilities honest?", _calibration(known, codes)),
        ("confusion", "Which classes are confused", _confusion(known, codes, classes)),
        ("relevance", "Which columns move the decision", _relevance(known)),
        ("votes", "What voted", _votes(known)),
    ]
    shown = [(name, head, body) for name, head, body in sections if body]
    contents = "".join(f'<li><a href="#{name}">{escape(head)}</a></li>' for name, head, _ in shown)
    body = "\n".join(
        f'<section id="{name}"><h3>{escape(head)}</h3>\n{text}</section>'
        for name, head, text in shown
    )
    charts = files("hardmargin.comparison") / "charts.css"
    return document(
        title,
        head=f'<p class="lead">{escape(_lead(known, codes))}</p>',
        contents=f"<h2>Contents</h2>\n<ul>{contents}</ul>\n",
        body=body,
        facts=[*facts.items(), ("made by", f"hardmargin {hardmargin.__version__}")],
        style=charts.read_text(encoding="utf-8"),
    )


def _lead(known: Sequence[Measured], codes: NDArray[np.intp]) -> str:
    if not known:
        return "No classifier could be measured."
    best = known[0]
    share, low, high = error_of(best, codes)
    text = (
        f"{best.name} has the lowest log-loss ({log_loss_of(best, codes):.4f}), with "
        f"{100 * share:.2f} % errors (95 % interval {100 * low:.2f} to {100 * high:.2f})."
    )
    fewest = min(known, key=lambda m: error_of(m, codes)[0])
    if fewest is not best:
        text += f" {fewest.name} has the fewest errors, {100 * error_of(fewest, codes)[0]:.2f} %."
    return text


def _numbers(
    measured: Sequence[Measured], known: Sequence[Measured], codes: NDArray[np.intp]
) -> str:
    heads = ("error %", "log-loss", "fit, s", "predict, ms per 1,000 rows", "memory, MB", "")
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    best_loss = min((log_loss_of(m, codes) for m in known), default=0.0)
    best_error = min((error_of(m, codes)[0] for m in known), default=0.0)
    lines = []
    for m in [*known, *(m for m in measured if not m.is_measured)]:
        name = f'<th scope="row">{escape(m.name)}</th>'
        if not m.is_measured:
            lines.append(f'<tr>{name}<td class="state" colspan="6">{escape(m.note)}</td></tr>')
            continue
        share, loss = error_of(m, codes)[0], log_loss_of(m, codes)
        cells = (
            _number(f"{100 * share:.2f}", share == best_error),
            _number(f"{loss:.4f}", loss == best_loss),
            _number(f"{m.fit_seconds:.2f}"),
            _number(f"{1_000 * m.predict_seconds:.1f}"),
            _number("not measured" if m.memory is None else f"{m.memory:.0f}"),
            f'<td class="state">{escape(m.note)}</td>',
        )
        lines.append(f"<tr>{name}{''.join(cells)}</tr>")
    return (
        scrolling_table("Numbers of all classifiers", f"<tr><td></td>{top}</tr>", lines)
        + "<p>Seconds are processor seconds of one thread, per training. Memory is above that of "
        "the data.</p>"
    )


def _number(text: str, is_best: bool = False) -> str:
    return f'<td class="best">{text}</td>' if is_best else f"<td>{text}</td>"


def _errors(known: Sequence[Measured], codes: NDArray[np.intp]) -> str:
    rows = []
    for m in sorted(known, key=lambda m: error_of(m, codes)[0]):
        share, low, high = error_of(m, codes)
        rows.append((m.name, 100 * share, 100 * low, 100 * high, m.is_ours))
    if not rows:
        return ""
    losses = [
        (m.name, log_loss_of(m, codes), f"{log_loss_of(m, codes):.4f}", m.is_ours) for m in known
    ]
    times = [
        (m.name, m.fit_seconds, f"{m.fit_seconds:.2f} s", m.is_ours)
        for m in sorted(known, key=lambda m: m.fit_seconds)
    ]
    return (
        "<p>Share of wrong predictions, with 95 % intervals.</p>"
        + intervals(rows, "%", "Errors with 95 % intervals")
        + "<p>Log-loss: lower is better.</p>"
        + bars(losses, "Log-loss")
        + "<p>Time to fit (bars grow with its logarithm).</p>"
        + bars(times, "Seconds to fit", log=True)
    )


def _calibration(known: Sequence[Measured], codes: NDArray[np.intp]) -> str:
    if not known:
        return ""
    ours = [m for m in known if m.is_ours][:1]
    others = [m for m in known if not m.is_ours][:3]
    chosen = [*ours, *others]
    curves = [(m.name, reliability(m, codes)) for m in chosen]
    what = "the second class" if known[0].probabilities.shape[1] == 2 else "the class predicted"
    return (
        f"<p>How often {what} came true (upwards) where its probability was as given (to the "
        "right). On the diagonal, probabilities are honest."
        + (" Ours and the rivals of lowest log-loss are shown." if len(chosen) < len(known) else "")
        + "</p>"
        + reliability_diagram(curves, "Calibration curves")
    )


def _confusion(known: Sequence[Measured], codes: NDArray[np.intp], classes: Sequence[str]) -> str:
    if not known:
        return ""
    best = next((m for m in known if m.is_ours), known[0])
    truth, n = codes[best.rows], len(classes)
    counts = np.zeros((n, n), dtype=int)
    np.add.at(counts, (truth, best.predicted), 1)
    shown = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_CLASSES])
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    top = "".join(f'<th scope="col">{escape(classes[c])}</th>' for c in shown)
    rows = []
    for r in shown:
        cells = "".join(
            f'<td style="background: color-mix(in srgb, var({"--good" if r == c else "--bad"}) '
            f'{65 * share[r, c]:.0f}%, transparent)">{counts[r, c]:,}</td>'
            for c in shown
        )
        rows.append(f'<tr><th scope="row">{escape(classes[r])}</th>{cells}</tr>')
    more = f" The {len(shown)} most frequent of {n} classes." if n > len(shown) else ""
    table = scrolling_table("Confusion matrix", f"<tr><td></td>{top}</tr>", rows)
    return (
        f"<p>{escape(best.name)}: true classes downwards, predicted ones to the right.{more}</p>"
        f'<div class="matrix">{table}</div>'
    )


def _relevance(known: Sequence[Measured]) -> str:
    found = next((m for m in known if "relevance" in m.facts), None)
    if found is None:
        return ""
    values: dict[str, float] = found.facts["relevance"]
    best = list(values.items())[:MOST_COLUMNS]
    more = f" The first {len(best)} of {len(values)}." if len(values) > len(best) else ""
    return (
        f"<p>How much each column moves the log-odds of {escape(found.name)}, relative to the most "
        f"relevant one.{more} This is not importance: a column that only identifies rows may move "
        "them too. Permutation importance, on rows set aside, measures what a column is worth.</p>"
        + bars([(name[:26], v, f"{v:.2f}", True) for name, v in best], "Relevance of the columns")
    )


def _votes(known: Sequence[Measured]) -> str:
    found: Any = next((m for m in known if m.facts.keys() & {"experts", "kernels"}), None)
    if found is None:
        return ""
    if "experts" in found.facts:
        heads: tuple[str, ...] = ("expert", "rows", "cells", "weight")
        rows = [
            (e["kind"], f"{e['rows']:,}", f"{e['cells']:,}", f"{e['weight']:.2f}")
            for e in found.facts["experts"]
        ]
    else:
        heads = ("kernel", "view", "gamma", "share")
        rows = [
            (k["kernel"], k["view"], f"{k['gamma']:.3g}", f"{k['share']:.2f}")
            for k in found.facts["kernels"][:MOST_COLUMNS]
        ]
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    lines = [
        f'<tr><th scope="row">{escape(str(row[0]))}</th>'
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    ]
    return f"<p>Inside {escape(found.name)}.</p>" + scrolling_table(
        "What voted", f"<tr>{top}</tr>", lines
    )
