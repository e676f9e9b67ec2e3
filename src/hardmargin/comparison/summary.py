"""What a fitted classifier of ours says about itself, in plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def last_step(model: Any) -> Any:
    """Return the classifier at the end of a pipeline, or the model itself."""
    return model[-1] if hasattr(model, "steps") else model


def vectorizers_of(step: Any) -> list[Any]:
    """Return the fitted TableVectorizers that a step is or has."""
    if hasattr(step, "column_to_kind_"):
        return [step]
    parts = [part[1] for part in getattr(step, "transformers_", ())]
    return [part for part in parts if hasattr(part, "column_to_kind_")]


def summary_of(model: Any) -> dict[str, Any]:
    """Collect relevance, and what voted: experts, or kernels with their shares of all votes.

    Parameters
    ----------
    model : classifier or Pipeline
        Fitted.

    Returns
    -------
    dict
        ``relevance`` by column, ``kernels`` and ``experts`` as lists of records, the largest
        shares first; each only if there is one.
    """
    final = last_step(model)
    found: dict[str, Any] = {}
    if hasattr(final, "relevance_"):
        found["relevance"] = _relevance(model, final)
    if hasattr(final, "kernel_weights_"):
        found["kernels"] = _shares(final.kernel_weights_)
    elif hasattr(final, "experts_"):
        found["experts"] = _records(final.experts_)
    return found


def _relevance(model: Any, final: Any) -> dict[str, float]:
    """Relevance by column of the table, the largest first.

    Where a first step made several columns from one, such as a date, it is the largest of their
    relevances.
    """
    names = getattr(final, "feature_names_in_", np.arange(len(final.relevance_)))
    first = model[0] if hasattr(model, "steps") else None
    origin = _origins(first)
    found: dict[str, float] = {}
    for name, value in zip(names, final.relevance_, strict=True):
        column = str(origin.get(name, name))
        found[column] = max(found.get(column, 0.0), float(value))
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _origins(first: Any) -> dict[str, str]:
    """Map columns of the classifier to those of the table, where their names differ."""
    if not vectorizers_of(first):
        return {}
    found: dict[str, str] = {}
    is_named = getattr(first, "verbose_feature_names_out", False)
    parts = [("", first, [])] if vectorizers_of(first) == [first] else first.transformers_
    for name, fitted, columns in parts:
        start = f"{name}__" if is_named else ""
        passed = {column: column for column in columns if isinstance(column, str)}
        made = getattr(fitted, "output_to_input_", passed)
        found |= {f"{start}{output}": column for output, column in made.items()}
    return found


def _shares(weights: Any) -> list[dict[str, Any]]:
    """Add up the shares of the machines."""
    totals: dict[tuple[str, str, float], float] = {}
    for record in weights:
        key = str(record["kernel"]), str(record["view"]), float(record["gamma"])
        totals[key] = totals.get(key, 0.0) + float(record["share"])
    whole = sum(totals.values()) or 1.0
    return [
        {"kernel": kernel, "view": view, "gamma": gamma, "share": share / whole}
        for (kernel, view, gamma), share in sorted(totals.items(), key=lambda item: -item[1])
    ]


def _records(table: Any) -> list[dict[str, Any]]:
    """Turn a structured array into records of Python's own types."""
    return [{name: record[name].item() for name in table.dtype.names} for record in table]
