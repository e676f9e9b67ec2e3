"""Threads that read an estimator see one model, though others fit it again."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from problems.every_estimator import MODELS
from sklearn.base import clone

from hardmargin import EnsembleSVC, MarginDiscriminantAnalysis, MinimumEnclosingBall

# Limits keep the fits short.
pytestmark = pytest.mark.filterwarnings("ignore:Training stopped at max_stages")

METHODS = (
    *("predict", "decision_function", "predict_proba", "predict_log_proba"),
    *("transform", "score_samples", "staged_predict", "get_feature_names_out"),
)

#: One of every base, and of every way to keep stages.
NAMES = (
    *("EnsembleSVC", "GreedySVC", "RhoSVC", "MultiplicativeSVC", "PathSVC", "CoreVectorSVC"),
    *("DiversifiedSVC", "MarginDiscriminantAnalysis", "MinimumEnclosingBall"),
)

#: How often the model changes under a reader.
N_FITS = 4


@pytest.fixture(autouse=True)
def _hasty_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def problem(n_columns, labels):
    """Rows whose number of columns and whose labels are those of one problem only."""
    rng = np.random.default_rng(n_columns)
    codes = np.arange(30) % len(labels)
    X = rng.normal(size=(30, n_columns)) + 2 * (codes[:, None] == np.arange(n_columns))
    return X, np.array(labels)[codes]


PROBLEMS = [problem(3, ["ash", "oak"]), problem(5, ["elm", "fir", "yew"])]


def ask(model, name, X):
    """Call a method; what it yields is collected."""
    if name == "get_feature_names_out":
        return getattr(model, name)()
    found = getattr(model, name)(X)
    return np.array(list(found)) if name.startswith("staged") else found


def known_answers(name):
    """Answers of both models, by method."""
    models = [clone(MODELS[name]).fit(X, y) for X, y in PROBLEMS]
    return {
        method: [ask(m, method, X) for m, (X, _) in zip(models, PROBLEMS, strict=True)]
        for method in METHODS
        if hasattr(models[0], method)
    }


def is_right(model, method, X, expected):
    """Whether an answer is that of one of two models, or its error about the number of features."""
    try:
        found = ask(model, method, X)
    except ValueError as error:
        return "features, but" in str(error)
    return any(np.array_equal(found, known) for known in expected)


@pytest.mark.parametrize("name", NAMES)
def test_every_answer_is_that_of_one_model(name):
    known, model = known_answers(name), clone(MODELS[name]).fit(*PROBLEMS[0])
    is_over, wrong, n_right = threading.Event(), [], []

    def read():
        while not is_over.is_set():
            for method, expected in known.items():
                for X, _ in PROBLEMS:
                    (n_right if is_right(model, method, X, expected) else wrong).append(method)

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for k in range(N_FITS):
                model.fit(*PROBLEMS[1 - k % 2])
        finally:
            is_over.set()
        for reader in readers:
            reader.result()
    assert not wrong
    assert n_right


@pytest.mark.parametrize("name", NAMES)
def test_two_fits_at_once_leave_one_of_their_models(name):
    known, model = known_answers(name), clone(MODELS[name])
    with ThreadPoolExecutor(2) as pool:
        for fit in [pool.submit(model.fit, *given) for given in PROBLEMS]:
            assert fit.result() is model
    last = model.n_features_in_ == 5
    alone = clone(MODELS[name]).fit(*PROBLEMS[last])
    assert vars(model).keys() == vars(alone).keys()
    for method, expected in known.items():
        np.testing.assert_array_equal(ask(model, method, PROBLEMS[last][0]), expected[last])


def test_columns_of_frames_are_those_of_their_model():
    (X, y), is_over = PROBLEMS[0], threading.Event()
    model = MarginDiscriminantAnalysis().set_output(transform="pandas").fit(X, y)

    def read():
        while not is_over.is_set():
            assert model.transform(X).shape[1] in (1, 2)  # other columns would be an error

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            for k in range(3 * N_FITS):
                model.set_params(n_directions=1 + k % 2).fit(X, y)
        finally:
            is_over.set()
        reader.result()


@pytest.mark.parametrize(
    ("model", "method"),
    [(MarginDiscriminantAnalysis(), "fit_transform"), (MinimumEnclosingBall(), "fit_predict")],
)
def test_what_fits_and_answers_uses_its_own_model(model, method):
    expected = [getattr(clone(model), method)(*given) for given in PROBLEMS]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(N_FITS):
            running = [pool.submit(getattr(model, method), *given) for given in PROBLEMS]
            for found, known in zip(running, expected, strict=True):
                np.testing.assert_array_equal(found.result(), known)


def test_stages_go_on_with_the_model_they_began_with():
    model = clone(MODELS["RhoSVC"]).fit(*PROBLEMS[0])
    X = PROBLEMS[0][0]
    expected = list(model.staged_decision_function(X))
    stages = model.staged_decision_function(X)
    found = [next(stages)]
    model.fit(*PROBLEMS[1])
    np.testing.assert_array_equal([*found, *stages], expected)


def test_parameters_set_during_a_fit_are_kept():
    model = clone(MODELS["ParzenClassifier"])

    def kernel(A, B):
        model.set_params(verbose=1)
        return A @ B.T

    model.set_params(kernel=kernel).fit(*PROBLEMS[0])
    assert model.verbose == 1
    assert model.classes_.tolist() == ["ash", "oak"]


class Counting(EnsembleSVC):
    """A subclass whose fit reads the model before, and has attributes of its own."""

    def fit(self, X, y):
        count = getattr(self, "n_fits_", 0)
        super().fit(X, y)
        self.n_fits_, self.rows = count + 1, len(X)
        assert self.predict(X).shape == (len(X),)
        return self


def test_subclasses_may_extend_fit():
    model = Counting()
    for X, y in PROBLEMS:
        assert model.fit(X, y) is model
    assert (model.n_fits_, model.rows, model.n_features_in_) == (2, 30, 5)


def test_a_subclass_whose_fit_fails_keeps_its_model():
    model = Counting().fit(*PROBLEMS[0])
    before = dict(vars(model))
    with pytest.raises(ValueError, match="one class"):
        model.fit(PROBLEMS[0][0], np.zeros(30))
    assert vars(model) == before
