"""Docstrings: examples that run, and nothing left out."""

import doctest
import importlib
import inspect
import pkgutil
import re

import numpy as np
import pandas as pd
import pytest

import hardmargin

MODULES = [
    "hardmargin",
    *(
        m.name
        for m in pkgutil.walk_packages(hardmargin.__path__, "hardmargin.")
        if "._" not in m.name
    ),
]
ESTIMATORS = [
    value for value in (getattr(hardmargin, n) for n in hardmargin.__all__) if hasattr(value, "fit")
]


def documented(estimator, section):
    """Names that a numpydoc section explains; one line may explain several."""
    text = inspect.getdoc(estimator)
    body = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", text, re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^([\w, ]+?) :", body[1], re.MULTILINE)
    return {name for head in heads for name in head.split(", ")}


def fitted_attributes(estimator):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"])
    model = estimator().fit(X, X["a"] > 0)
    properties = [k for k, v in inspect.getmembers(estimator) if isinstance(v, property)]
    return {k for k in [*vars(model), *properties] if k.endswith("_") and not k.startswith("_")}


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_modules_say_what_they_are(name):
    assert importlib.import_module(name).__doc__


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_have_an_example(estimator):
    assert ">>>" in estimator.__doc__


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_documented(estimator):
    parameters = set(inspect.signature(estimator).parameters)
    assert documented(estimator, "Parameters") == parameters


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_fitted_attribute_is_documented(estimator):
    assert fitted_attributes(estimator) <= documented(estimator, "Attributes")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_public_methods_are_documented(estimator):
    methods = [
        getattr(estimator, name)
        for name in vars(estimator)
        if not name.startswith("_") and callable(getattr(estimator, name))
    ]
    assert all(inspect.getdoc(m) for m in methods)
