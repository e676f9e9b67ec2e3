"""What errors say about parameters that have a wrong value."""

import ast
import inspect
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError, StrOptions

import hardmargin
from hardmargin import EnsembleSVC
from hardmargin.estimators._base.options import Choice

X, Y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2


def estimators():
    public = (getattr(hardmargin, name) for name in hardmargin.__all__)
    return [c for c in public if inspect.isclass(c) and issubclass(c, BaseEstimator)]


def parameters():
    return [(c, name) for c in estimators() for name in c().get_params(deep=False)]


def with_options():
    return [
        (estimator, name)
        for estimator, name in parameters()
        if any(isinstance(c, StrOptions) for c in estimator._parameter_constraints[name])
    ]


def message(estimator, name):
    with pytest.raises(InvalidParameterError) as caught:
        estimator(**{name: object()}).fit(X, Y)
    return str(caught.value)


@pytest.mark.parametrize(("estimator", "name"), parameters())
def test_options_are_listed_once(estimator, name):
    assert message(estimator, name).count("a str among") <= 1


@pytest.mark.parametrize(("estimator", "name"), with_options())
def test_options_are_listed_in_order(estimator, name):
    listed = ast.literal_eval(
        re.search(r"a str among {(.*?)}", message(estimator, name))[1].join("[]")
    )
    [options] = [c for c in estimator._parameter_constraints[name] if isinstance(c, StrOptions)]
    assert listed == sorted(options.options)


@pytest.mark.parametrize("name", ["kernel", "gamma"])
def test_what_is_chosen_by_folds_is_among_the_options(name):
    assert "'cv'" in message(EnsembleSVC, name)


def test_a_choice_is_printed_in_order():
    assert str(Choice("cab")) == "a str among {'a', 'b', 'c'}"
