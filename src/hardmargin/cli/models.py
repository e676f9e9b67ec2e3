"""From a table to a fitted pipeline: what the commands train."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import hardmargin
from hardmargin.cli.errors import InputError, did_you_mean
from hardmargin.cli.tables import Table
from hardmargin.comparison.pipelines import (
    chooses_on_folds,
    fit_in_groups,
    with_numbers,
    with_strings,
)
from hardmargin.comparison.summary import last_step

#: Classifiers that take categories and missing values as they come.
TABLE_ESTIMATORS = ("EnsembleSVC", "GreedySVC")

#: All classifiers that can be trained, by name.
CLASSIFIERS = tuple(
    name
    for name in hardmargin.__all__
    if name.endswith(("SVC", "Classifier")) and hasattr(getattr(hardmargin, name), "predict")
)


def make_estimator(
    name: str,
    settings: Sequence[str],
    *,
    max_time: float | None = None,
    n_jobs: int | None = None,
    seed: int | None = None,
    verbose: int = 0,
) -> Any:
    """Make a classifier, not yet fitted.

    Parameters
    ----------
    name : str
        Its class, in any case; ``"SVC"`` at the end may be left out.
    settings : sequence of str
        Parameters, as ``name=value``.
    max_time, n_jobs, seed, verbose
        Parameters that have options of their own, where the classifier has them.
    """
    by_name = {known.lower(): known for known in CLASSIFIERS}
    by_name |= {
        known.lower().removesuffix("svc").removesuffix("classifier"): known for known in CLASSIFIERS
    }
    found = by_name.get(name.lower())
    if found is None:
        hint = did_you_mean(name.lower(), by_name) or f"; there are {', '.join(CLASSIFIERS)}."
        raise InputError(f"--estimator: there is no classifier {name!r}{hint}")
    estimator = getattr(hardmargin, found)()
    known = estimator.get_params()
    given = {
        "max_time": max_time,
        "n_jobs": n_jobs,
        "random_state": seed,
        "verbose": verbose or None,
    }
    for option, value in given.items():
        if value is None:
            continue
        if option not in known:
            if option == "verbose":
                continue
            raise InputError(f"{found} has no parameter {option!r}.")
        estimator.set_params(**{option: value})
    for setting in settings:
        parameter, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting}: write it as name=value.")
        if parameter not in known:
            close = difflib.get_close_matches(parameter, known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(known)}."
            raise InputError(f"--set {setting}: {found} has no parameter {parameter!r}; {hint}")
        estimator.set_params(**{parameter: value_of(text)})
    try:
        estimator._validate_params()
    except ValueError as error:
        raise InputError(f"{_option_of(str(error), settings)}: {error}") from error
    return estimator


def _option_of(message: str, settings: Sequence[str]) -> str:
    """Name the option whose value an estimator has refused."""
    name = (re.search(r"'(\w+)' parameter", message) or ["", ""])[1]
    given = [setting for setting in settings if setting.startswith(f"{name}=")]
    return f"--set {given[-1]}" if given else f"--{name.replace('_', '-')}"


def value_of(text: str) -> Any:
    """Read a parameter: a number, None, True or False; anything else is text.

    Examples
    --------
    >>> value_of("0.5"), value_of("None"), value_of("rbf")
    (0.5, None, 'rbf')
    """
    words: Mapping[str, Any] = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def make_model(estimator: Any, table: Table) -> Any:
    """Put what turns a table into numbers before a classifier, in one pipeline."""
    takes_tables = type(estimator).__name__ in TABLE_ESTIMATORS
    pipeline = with_strings if takes_tables else with_numbers
    return pipeline(estimator, table.X)


def fit_model(model: Any, table: Table) -> Any:
    """Fit a pipeline; rows of a group are never in different folds."""
    if table.groups is not None and not chooses_on_folds(model):
        name = type(last_step(model)).__name__
        raise InputError(f"{name} holds out no rows, so --groups has no effect; drop it.")
    y = labels_of(table.y)
    try:
        if table.groups is None:
            return model.fit(table.X, y)
        return fit_in_groups(model, table.X, y, table.groups)
    except (ValueError, TypeError) as error:
        raise InputError(f"{table.path}: {error}") from error


def labels_of(y: Any) -> Any:
    """Make labels that files can hold: whole numbers, truth values or text."""
    import numpy as np

    labels = np.asarray(y)
    if labels.dtype.kind == "f" and np.equal(np.mod(labels, 1), 0).all():
        return labels.astype(np.int64)
    return labels.astype(str) if labels.dtype.kind == "O" else labels
