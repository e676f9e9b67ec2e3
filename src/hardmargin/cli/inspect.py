"""``hardmargin inspect``: what a model file contains."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from hardmargin.cli.errors import InputError
from hardmargin.cli.models import TRUSTED
from hardmargin.cli.outputs import show, table_lines

#: Columns whose relevance is shown.
MOST_COLUMNS = 12


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def inspect(model: Path, as_json: bool) -> None:
    """Show what a model is and how it was trained."""
    from hardmargin.io import notes_of

    loaded = load_model(model)
    notes = notes_of(model)
    facts = facts_of(loaded, notes)
    facts["file"] = (
        f"{model} ({model.stat().st_size / 1e6:.1f} MB, hardmargin {notes['hardmargin']})"
    )
    show(facts, as_json=as_json)


def load_model(path: Path) -> Any:
    """Load a model file, or say in one line why not."""
    from hardmargin.io import ModelFileError, load

    try:
        return load(path, trusted=TRUSTED)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except (ModelFileError, OSError) as error:
        raise InputError(str(error)) from error


def facts_of(model: Any, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Collect what can be said about a model, in the order in which one wants to know it."""
    final = model[-1] if hasattr(model, "steps") else model
    changed = _changed_parameters(final)
    facts: dict[str, Any] = {
        "model": type(final).__name__ + (f" ({', '.join(changed)})" if changed else ""),
        "trained on": _trained_on(final, notes),
        "classes": ", ".join(map(str, final.classes_[:20]))
        + (f" and {len(final.classes_) - 20} more" if len(final.classes_) > 20 else ""),
    }
    if np.isfinite(getattr(final, "cv_log_loss_", np.nan)):
        facts["held-out"] = (
            f"log-loss {final.cv_log_loss_:.4f}, error {100 * final.cv_error_:.2f} %"
        )
    if hasattr(final, "experts_") and len(final.experts_) > 1:
        facts["experts"] = table_lines(
            ["kind", "rows", "cells", "weight", "log-loss"],
            [
                [
                    str(e["kind"]),
                    int(e["rows"]),
                    int(e["cells"]),
                    f"{e['weight']:.2f}",
                    f"{e['log_loss']:.4f}",
                ]
                for e in final.experts_
            ],
        )
    elif hasattr(final, "kernel_weights_"):
        facts["kernels"] = _kernels(final.kernel_weights_)
    elif hasattr(final, "gamma_"):
        facts["kernel"] = f"{_kernel_name(final)}, gamma {final.gamma_:.4g}"
    if hasattr(final, "relevance_"):
        facts["relevance"] = _relevance(final)
    if hasattr(final, "support_"):
        facts["support"] = f"{len(final.support_):,} rows"
    if notes.get("predict_us_per_row"):
        facts["prediction"] = f"{notes['predict_us_per_row']:g} microseconds per row (when trained)"
    return facts


def _changed_parameters(estimator: Any) -> list[str]:
    defaults = type(estimator)().get_params()
    return [
        f"{name}={value!r}"
        for name, value in estimator.get_params().items()
        if name != "verbose" and repr(value) != repr(defaults[name])
    ]


def _trained_on(final: Any, notes: Mapping[str, Any]) -> str:
    columns = notes.get("columns")
    n_columns = len(columns) if isinstance(columns, Mapping) else columns or final.n_features_in_
    parts = [f"{notes['rows']:,} rows" if "rows" in notes else "", f"{n_columns} columns"]
    text = ", ".join(part for part in parts if part)
    n_used = getattr(final, "n_samples_fit_", None)
    if n_used is not None and n_used < notes.get("rows", 0):
        text += f" (of which max_time allowed {n_used:,} rows)"
    if notes.get("file"):
        text += f" of {notes['file']}"
    if notes.get("target"):
        text += f", target {notes['target']!r}"
    return text + (f", in {notes['seconds']:g} s" if "seconds" in notes else "")


def _kernels(weights: Any) -> list[str]:
    """Add up the shares of the machines; the largest first."""
    shares: dict[tuple[str, str, float], float] = {}
    for record in weights:
        key = str(record["view"]), str(record["kernel"]), float(record["gamma"])
        shares[key] = shares.get(key, 0.0) + float(record["share"])
    total = sum(shares.values()) or 1.0
    best = sorted(shares.items(), key=lambda item: -item[1])[:6]
    return table_lines(
        ["view", "kernel", "gamma", "share"],
        [
            [view, name, f"{gamma:.3g}", f"{share / total:.2f}"]
            for (view, name, gamma), share in best
        ],
    )


def _kernel_name(final: Any) -> str:
    return str(getattr(final, "kernel_", final.kernel))


def _relevance(final: Any) -> list[str]:
    names = getattr(final, "feature_names_in_", np.arange(len(final.relevance_)))
    order = np.argsort(-final.relevance_, kind="stable")
    lines = table_lines(
        ["column", "relevance"],
        [[str(names[j]), f"{final.relevance_[j]:.2f}"] for j in order[:MOST_COLUMNS]],
    )
    more = len(order) - MOST_COLUMNS
    return [*lines, f"and {more} more"] if more > 0 else lines
