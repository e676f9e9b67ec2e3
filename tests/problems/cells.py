"""What the tests of cells and of experts share."""

import functools

import numpy as np

from hardmargin import EnsembleSVC
from hardmargin.cells import CellRows, CellRules, Cuts
from hardmargin.solvers.staged_vote import StagedVoteOptions


def one_cell(n_features):
    """A tree without cuts."""
    return Cuts(
        np.empty(0, np.int32),
        np.empty((0, n_features), np.float32),
        np.empty(0, np.float32),
        np.empty((0, 2), np.int32),
    )


def halves(n_features, at=0.0):
    """A tree that cuts the first column once."""
    return Cuts(
        np.zeros(1, np.int32),
        np.empty((0, n_features), np.float32),
        np.array([at], np.float32),
        np.array([[-1, -2]], np.int32),
    )


def cell_rules(n_classes, n_features, **changes):
    given = {
        "prior": np.full(n_classes, 1 / n_classes),
        "relevance": np.ones(n_features),
        "is_two_valued": np.zeros(n_features, dtype=bool),
        "multi_class": "ovo",
        "n_folds": 5,
        "folds": None,
        "options": StagedVoteOptions(compact=True),
        "seed": 0,
        "max_rows": 10_000,
    }
    return CellRules(**{**given, **changes})


def cell_rows(X, codes, weights=None):
    return CellRows(
        X.astype(np.float32),
        np.asarray(codes, dtype=np.int32),
        np.ones(X.shape[0]) if weights is None else np.asarray(weights, dtype=float),
    )


@functools.cache
def many_rows(n=700, n_classes=2, seed=0):
    """Rows that experts are tested on; 700 are many after `few_rows_are_many`."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=n)
    return X, np.searchsorted([0.0] if n_classes == 2 else [-0.4, 0.4], score)


def few_rows_are_many(monkeypatch, most=300):
    """Make EnsembleSVC train experts on more than 300 rows."""
    for name, value in (
        ("selection.plan.MAX_STORED_ROWS", most),
        ("selection.plan.FIRST_SAMPLE_ROWS", most // 2),
        ("cells.training.FIRST_SAMPLE_ROWS", most // 2),
        ("cells.experts.LEAST_CUT_ROWS", 400),
        ("cells.experts.LEAST_JUDGES", 100),
        ("cells.experts.PILOT_CELLS", 3),
    ):
        monkeypatch.setattr(f"hardmargin.{name}", value)


def experts(**parameters):
    return EnsembleSVC(**{"max_cell_rows": 150, "n_trees": 1, "random_state": 0, **parameters})


def log_loss(model, X, codes):
    own = model.predict_proba(X)[np.arange(len(codes)), codes]
    return float(-np.log(own).mean())
