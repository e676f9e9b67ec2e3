"""``hardmargin inspect``: what a model file contains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from hardmargin.cli.errors import InputError
from hardmargin.cli.models import TRUSTED
from hardmargin.cli.outputs import show, show_json, table_lines
from hardmargin.comparison.summary import last_step, summary_of

#: Columns, kernels and classes that are shown.
MOST_COLUMNS, MOST_KERNELS, MOST_CLASSES = 12, 6, 20


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
def inspect(model: Path, as_json: bool) -> None:
    """Show what a model is and how it was trained."""
    notes = notes_of_model(model)
    about = about_model(load_model(model), notes)
    saved = {"path": str(model), "bytes": model.stat().st_size, "hardmargin": notes["hardmargin"]}
    if as_json:
        show_json({**about, "saved": saved})
        return
    size = f"{saved['bytes'] / 1e6:.1f} MB, hardmargin {saved['hardmargin']}"
    show({**described(about), "file": f"{model} ({size})"})


def load_model(path: Path) -> Any:
    """Load a model file, or say in one line why not."""
    from hardmargin.io import load

    with _refusing(path):
        return load(path, trusted=TRUSTED)


def notes_of_model(path: Path) -> dict[str, Any]:
    """Read what was kept with a model, or say in one line why not."""
    from hardmargin.io import notes_of

    with _refusing(path):
        return notes_of(path)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    from hardmargin.io import ModelFileError

    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except (ModelFileError, OSError) as error:
        raise InputError(str(error)) from error


def about_model(model: Any, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Collect what can be said about a model, in the order in which one wants to know it."""
    final = last_step(model)
    about: dict[str, Any] = {
        "model": type(final).__name__,
        "parameters": _changed_parameters(final),
        **{name: notes[name] for name in ("file", "rows", "target", "seconds") if name in notes},
        "columns": notes.get("columns", int(final.n_features_in_)),
        "classes": final.classes_.tolist(),
    }
    if hasattr(final, "n_samples_fit_"):
        about["rows_used"] = int(final.n_samples_fit_)
    if np.isfinite(getattr(final, "cv_log_loss_", np.nan)):
        about["held_out"] = {
            "log_loss": float(final.cv_log_loss_),
            "error": float(final.cv_error_),
        }
    about |= summary_of(model)
    if "kernels" not in about and hasattr(final, "gamma_"):
        name = str(getattr(final, "kernel_", final.kernel))
        about["kernel"] = {"kernel": name, "gamma": float(final.gamma_)}
    if hasattr(final, "support_"):
        about["n_support"] = len(final.support_)
    if "predict_us_per_row" in notes:
        about["predict_us_per_row"] = notes["predict_us_per_row"]
    return about


def described(about: Mapping[str, Any]) -> dict[str, Any]:
    """Put it into words, one line or a few lines per fact."""
    changed = ", ".join(f"{name}={value}" for name, value in about["parameters"].items())
    classes = about["classes"]
    facts: dict[str, Any] = {
        "model": about["model"] + (f" ({changed})" if changed else ""),
        "trained on": _trained_on(about),
        "classes": ", ".join(map(str, classes[:MOST_CLASSES]))
        + (f" and {len(classes) - MOST_CLASSES} more" if len(classes) > MOST_CLASSES else ""),
    }
    if "held_out" in about:
        held = about["held_out"]
        facts["held-out"] = f"log-loss {held['log_loss']:.4f}, error {100 * held['error']:.2f} %"
    if "experts" in about:
        facts["experts"] = table_lines(
            ["kind", "rows", "cells", "weight", "log-loss"],
            [
                [e["kind"], e["rows"], e["cells"], f"{e['weight']:.2f}", f"{e['log_loss']:.4f}"]
                for e in about["experts"]
            ],
        )
    if "kernels" in about:
        facts["kernels"] = table_lines(
            ["kernel", "view", "gamma", "share"],
            [
                [k["kernel"], k["view"], f"{k['gamma']:.3g}", f"{k['share']:.2f}"]
                for k in about["kernels"][:MOST_KERNELS]
            ],
        )
    if "kernel" in about:
        facts["kernel"] = f"{about['kernel']['kernel']}, gamma {about['kernel']['gamma']:.4g}"
    if "relevance" in about:
        facts["relevance"] = _relevance(about["relevance"])
    if "n_support" in about:
        facts["support"] = f"{about['n_support']:,} rows"
    if about.get("predict_us_per_row"):
        facts["prediction"] = f"{about['predict_us_per_row']:g} microseconds per row (when trained)"
    return facts


def _changed_parameters(estimator: Any) -> dict[str, str]:
    defaults = type(estimator)().get_params()
    return {
        name: repr(value)
        for name, value in estimator.get_params().items()
        if name != "verbose" and repr(value) != repr(defaults[name])
    }


def _trained_on(about: Mapping[str, Any]) -> str:
    columns = about["columns"]
    n_columns = len(columns) if isinstance(columns, Mapping) else columns
    text = f"{n_columns} columns"
    if "rows" in about:
        text = f"{about['rows']:,} rows, {text}"
        if about.get("rows_used", about["rows"]) < about["rows"]:
            text += f" (of which max_time allowed {about['rows_used']:,} rows)"
    if about.get("file"):
        text += f" of {about['file']}"
    if about.get("target"):
        text += f", target {about['target']!r}"
    return text + (f", in {about['seconds']:g} s" if "seconds" in about else "")


def _relevance(relevance: Mapping[str, float]) -> list[str]:
    shown = list(relevance.items())[:MOST_COLUMNS]
    lines = table_lines(["column", "relevance"], [[name, f"{v:.2f}"] for name, v in shown])
    more = len(relevance) - len(shown)
    return [*lines, f"and {more} more"] if more > 0 else lines
