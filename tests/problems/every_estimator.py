"""Every estimator, and rows to fit it to."""

import inspect

import numpy as np
from sklearn.base import clone

import hardmargin
from hardmargin import (
    CoreVectorSVC,
    DiversifiedSVC,
    EnsembleSVC,
    GreedySVC,
    HardMarginSVC,
    MarginDiscriminantAnalysis,
    MinimumEnclosingBall,
    MultiplicativeSVC,
    ParzenClassifier,
    PathSVC,
    RhoEnsembleSVC,
    RhoSVC,
    RigorousSVC,
)

#: The classes that users import.
PUBLIC = [
    public
    for public in (getattr(hardmargin, name) for name in hardmargin.__all__)
    if inspect.isclass(public)
]

#: Every estimator, with few stages: a path to the end takes seconds on rows of two scales.
MODELS = {
    "CoreVectorSVC": CoreVectorSVC(random_state=0),
    "DiversifiedSVC": DiversifiedSVC(2, random_state=0),
    "EnsembleSVC": EnsembleSVC(random_state=0),
    "EnsembleSVC, low rank": EnsembleSVC(rank=5, random_state=0),
    "GreedySVC": GreedySVC(random_state=0),
    "GreedySVC, published": GreedySVC("scale", kernel="rbf", max_visits=1, standardize=False),
    "HardMarginSVC": HardMarginSVC(max_stages=2_000),
    "MarginDiscriminantAnalysis": MarginDiscriminantAnalysis(2, random_state=0),
    "MinimumEnclosingBall": MinimumEnclosingBall(random_state=0),
    "MultiplicativeSVC": MultiplicativeSVC(max_stages=100),
    "ParzenClassifier": ParzenClassifier(),
    "PathSVC": PathSVC("loo", C_max=10.0, max_stages=500),
    "PathSVC, folds": PathSVC(C_max=1.0, max_stages=200, random_state=0),
    "RhoEnsembleSVC": RhoEnsembleSVC(max_stages=50),
    "RhoSVC": RhoSVC(max_stages=50),
    "RhoSVC, pairwise": RhoSVC(solver="smo", max_stages=500),
    "RigorousSVC": RigorousSVC(C_max=100.0, max_stages=500),
}


def three_classes(n=40, seed=0):
    """Draw rows of classes that overlap a little."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 4)) + 2 * (y[:, None] == np.arange(4)), y


def answers(model, X):
    """Return all that a fitted model says about rows."""
    methods = ("predict", "decision_function", "predict_proba", "transform", "score_samples")
    return [getattr(model, name)(X) for name in methods if hasattr(model, name)]


def fit_and_answer(name, n_jobs=None, n=40):
    """Return all that a new fit says about its rows; other processes can import this."""
    X, y = three_classes(n)
    return answers(clone(MODELS[name]).set_params(n_jobs=n_jobs).fit(X, y), X)
