"""``hardmargin inspect``: what a model file contains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import click
import numpy as np

from hardmargin.cli.errors import InputError
from hardmargin.cli.options import max_bytes_option
from hardmargin.cli.outputs import show, show_json, table_lines
from hardmargin.comparison.summary import last_step, summary_of, vectorizers_of

#: Columns, kernels and classes that are shown.
MOST_COLUMNS, MOST_KERNELS, MOST_CLASSES = 12, 6, 20

#: Kinds of columns, by skrub's names.
KINDS = {
    "numeric": "number",
    "datetime": "date",
    "low_cardinality": "text",
    "high_cardinality": "text",
}

#: The kind of a column of a model fitted in Python, where nothing says what it is.
UNKNOWN = "unknown"


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON.")
@max_bytes_option
def inspect(model: Path, as_json: bool, max_bytes: int | None) -> None:
    """Show what a model is and how it was trained."""
    notes, loaded = notes_of_model(model), load_model(model, max_bytes)
    with working(model):
        about = about_model(loaded, notes)
        facts = described(about)
    saved = {"path": str(model), "bytes": model.stat().st_size, "hardmargin": notes["hardmargin"]}
    if as_json:
        show_json({**about, "saved": saved})
        return
    size = f"{saved['bytes'] / 1e6:.1f} MB, hardmargin {saved['hardmargin']}"
    show({**facts, "file": f"{model} ({size})"})


def load_model(path: Path, max_bytes: int | None = None) -> Any:
    """Load a model file, or say in one line why not."""
    from hardmargin.io import load

    with _refusing(path):
        return load(path, max_bytes=max_bytes)


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


@contextmanager
def working(path: Path) -> Iterator[None]:
    """Say in one line that a model does not work, perhaps because it was tampered with."""
    try:
        yield
    except (click.ClickException, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path} was loaded but does not work ({reason}); was it changed?"
        ) from error


def inner_model(model: Any) -> Any:
    """Return the fitted model within another one, such as `FixedThresholdClassifier`; or None."""
    if hasattr(model, "transform"):
        return None  # what selects features has an estimator of other columns
    inner = getattr(model, "best_estimator_", getattr(model, "estimator_", None))
    return inner if hasattr(inner, "classes_") else None


def first_step(model: Any) -> Any:
    """Return what sees the columns of the table first; steps that pass them on do not count."""
    inner = inner_model(model)
    for _, step in getattr(model, "steps", ()):
        if not isinstance(step, str | None):
            inner = step
            break
    return model if inner is None else first_step(inner)


def columns_known(model: Any, notes: Mapping[str, Any]) -> dict[str, str] | None:
    """Say which columns a model takes, and of which kinds; None if they have no names.

    Models from the command line have notes about the columns; those fitted to a data frame know
    their names.
    """
    if isinstance(notes.get("columns"), Mapping):
        return dict(notes["columns"])
    first = first_step(model)
    names = getattr(first, "feature_names_in_", None)
    if names is None:
        return None
    kinds = dict.fromkeys(map(str, names), UNKNOWN)
    if vectorizers := vectorizers_of(first):
        found = {name: kind for v in vectorizers for name, kind in v.column_to_kind_.items()}
        return {name: KINDS.get(found.get(name, ""), UNKNOWN) for name in kinds}
    if hasattr(first, "_categories_"):  # a classifier of ours
        from hardmargin.estimators._base.fitted import categories_of

        kinds = dict.fromkeys(kinds, "number")
        categories = categories_of(first)
        columns = () if categories is None else categories.columns
        kinds |= {str(names[j]): "text" for j in columns}
    return kinds


def innermost(model: Any) -> Any:
    """Return the model within all others around it: a classifier or a pipeline."""
    inner = inner_model(last_step(model))
    return model if inner is None else innermost(inner)


def about_model(model: Any, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Collect what can be said about a model, the most important first."""
    outer, final = last_step(model), last_step(innermost(model))
    about: dict[str, Any] = {"model": type(outer).__name__, "parameters": _changed(outer)}
    if final is not outer:
        about["inside"] = {"model": type(final).__name__, "parameters": _changed(final)}
    if hasattr(outer, "best_threshold_"):
        about["threshold"] = float(outer.best_threshold_)
    about |= {name: notes[name] for name in ("file", "rows", "target", "seconds") if name in notes}
    n_columns = getattr(first_step(model), "n_features_in_", None)
    if n_columns is None:  # the first step takes no table
        n_columns = getattr(final, "n_features_in_", None)
    about["columns"] = columns_known(model, notes) or n_columns
    about["classes"] = np.asarray(getattr(outer, "classes_", [])).tolist()
    if hasattr(final, "n_samples_fit_"):
        about["rows_used"] = int(final.n_samples_fit_)
    if np.isfinite(getattr(final, "cv_log_loss_", np.nan)):
        about["held_out"] = {
            "log_loss": float(final.cv_log_loss_),
            "error": float(final.cv_error_),
            "weighted": getattr(final, "class_weight", None) is not None,
        }
    about |= summary_of(innermost(model))
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
    facts: dict[str, Any] = {"model": _named(about)}
    if "inside" in about:
        facts["inside"] = _named(about["inside"])
    if "threshold" in about:
        facts["threshold"] = f"{about['threshold']:.4g}"
    facts["trained on"] = _trained_on(about)
    if classes := about["classes"]:
        more = len(classes) - MOST_CLASSES
        facts["classes"] = ", ".join(map(str, classes[:MOST_CLASSES]))
        facts["classes"] += f" and {more} more" if more > 0 else ""
    if "held_out" in about:
        held = about["held_out"]
        facts["held-out"] = f"log-loss {held['log_loss']:.4f}, error {100 * held['error']:.2f} %"
        facts["held-out"] += " (weighted by class_weight)" if held["weighted"] else ""
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


def _changed(estimator: Any) -> dict[str, str]:
    """Parameters that differ from their defaults, or have none."""
    known = signature(type(estimator)).parameters
    return {
        name: " ".join(repr(value).split())
        for name, value in estimator.get_params(deep=False).items()
        if name != "verbose" and repr(value) != repr(known[name].default)
    }


def _named(about: Mapping[str, Any]) -> str:
    changed = ", ".join(f"{name}={value}" for name, value in about["parameters"].items())
    return f"{about['model']} ({changed})" if changed else str(about["model"])


def _trained_on(about: Mapping[str, Any]) -> str:
    columns = about["columns"]
    n_columns = len(columns) if isinstance(columns, Mapping) else columns
    rows = about.get("rows", about.get("rows_used"))
    sizes = ((rows, "rows"), (n_columns, "columns"))
    text = ", ".join(f"{n:,} {what}" for n, what in sizes if n is not None)
    if rows is not None and about.get("rows_used", rows) < rows:
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
