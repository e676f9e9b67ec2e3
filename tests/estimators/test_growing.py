"""Time limits of EnsembleSVC and GreedySVC: fewer rows, the best model, and all rows in the end.

A clock of the tests makes every fit take as long as they want.
"""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from problems.clock import Clock, set_clock
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.estimators._base import self_tuning
from hardmargin.selection import fitted_vote
from hardmargin.selection.plan import Budget, plan
from hardmargin.selection.rows import TrainingRows
from hardmargin.warn import warn_caller

BOTH = pytest.mark.parametrize("estimator", [EnsembleSVC, GreedySVC])
N_ROWS, N_TEST = 1_600, 1_000
MAX_TIME = 10.0


def problem(n, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=n)
    return X, np.digitize(score, [0.0, 1.0][: n_classes - 1])


X, Y = problem(N_ROWS)
X_TEST, Y_TEST = problem(N_TEST, seed=1)


@pytest.fixture
def fits(monkeypatch):
    """The rows of every fit; a fit takes a second at 400 rows, and grows with their square."""
    clock, sizes = Clock(), []
    set_clock(monkeypatch, clock)
    for estimator in (EnsembleSVC, GreedySVC):

        def fit_rows(self, *arguments, plain=estimator._fit_rows):
            sizes.append(plain(self, *arguments))
            clock.now += (sizes[-1] / 400) ** 2
            return sizes[-1]

        monkeypatch.setattr(estimator, "_fit_rows", fit_rows)
    return sizes


def fit_part(model, *arguments, **keywords):
    """Fit within a limit that is too short for all rows."""
    with pytest.warns(ConvergenceWarning, match=r"max_time=10 .* of 1,\d00\. Raise max_time"):
        return model.set_params(max_time=MAX_TIME).fit(*arguments, **keywords)


def one_kernel(estimator, **parameters):
    """What rows are used does not depend on how many kernels there are to choose from."""
    return estimator(**{"kernel": "rbf", **parameters})


def public(model):
    fitted = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}
    return fitted | ({"cv_table_": model.cv_table_} if isinstance(model, EnsembleSVC) else {})


def assert_same(one, other):
    assert public(one).keys() == public(other).keys()
    for name, value in public(one).items():
        ours, theirs = (v.toarray() if sp.issparse(v) else v for v in (value, public(other)[name]))
        np.testing.assert_equal(ours, theirs, err_msg=name)
    np.testing.assert_array_equal(one.predict_proba(X_TEST), other.predict_proba(X_TEST))


# --- which model ---------------------------------------------------------------------------------


@pytest.mark.once_per("n_classes")
@BOTH
@pytest.mark.parametrize("n_classes", [2, 3])
def test_enough_time_gives_the_model_without_a_limit(estimator, n_classes):
    X, y = problem(600, n_classes)
    limited, plain = estimator(max_time=1e6).fit(X, y), estimator().fit(X, y)
    assert_same(limited, plain)
    assert limited.n_samples_fit_ == 600
    assert (limited.max_time, limited.cv, limited.random_state) == (1e6, 5, None)


@BOTH
def test_rows_grow_as_long_as_there_is_time(estimator, fits):
    model = fit_part(one_kernel(estimator), X, Y)
    assert fits[0] < 260
    assert fits[0] < fits[-1] == model.n_samples_fit_ < N_ROWS


@BOTH
def test_a_short_limit_beats_stages_that_were_cut_short(estimator, fits, monkeypatch):
    grown = fit_part(one_kernel(estimator), X, Y)
    monkeypatch.setattr("hardmargin.selection.growing.LARGEST_FIRST_SHARE", 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cut = one_kernel(estimator, max_time=1e-9).fit(X, Y)
    assert grown.score(X_TEST, Y_TEST) > cut.score(X_TEST, Y_TEST) + 0.05


@BOTH
def test_few_rows_are_fitted_at_once(estimator, fits):
    one_kernel(estimator, max_time=MAX_TIME).fit(X[:300], Y[:300])
    assert fits == [300]


def test_parts_take_as_many_shuffles_as_more_rows_do(fits, monkeypatch):
    shuffles, plain = [], fitted_vote.make_folds

    def make_folds(*arguments, n_shuffles, **keywords):
        shuffles.append(n_shuffles)
        return plain(*arguments, n_shuffles=n_shuffles, **keywords)

    monkeypatch.setattr(fitted_vote, "make_folds", make_folds)
    fit_part(one_kernel(EnsembleSVC), X, Y)
    assert fits[0] <= fitted_vote.MAX_SHUFFLED_ROWS  # alone, that many rows are shuffled more often
    assert set(shuffles) == {1}
    EnsembleSVC(max_time=1e6).fit(X[:300], Y[:300])
    assert shuffles[-1] == fitted_vote.N_SHUFFLES


@BOTH
def test_a_worse_model_of_more_rows_is_not_used(estimator, fits, monkeypatch):
    plain, rng = estimator._fit_rows, np.random.default_rng(0)

    def spoil(self, rows, *rest):
        if len(rows.codes) > 400:
            rows = rows._replace(codes=rng.permutation(rows.codes))
        return plain(self, rows, *rest)

    monkeypatch.setattr(estimator, "_fit_rows", spoil)
    model = fit_part(one_kernel(estimator), X, Y)
    assert len(fits) > 1
    assert model.n_samples_fit_ == fits[0]
    assert log_loss(Y_TEST, model.predict_proba(X_TEST)) < 0.69


@pytest.mark.once_per("is_better")
@BOTH
@pytest.mark.parametrize("is_better", [True, False])
def test_all_rows_out_of_time_are_judged_by_cross_validation(
    estimator, is_better, fits, monkeypatch
):
    plain, clock = estimator._fit_rows, Clock()
    set_clock(monkeypatch, clock)

    def fit_rows(self, rows, *rest):
        n_rows = plain(self, rows, *rest)
        self.cv_log_loss_ = 0.3
        if not rows.is_part:
            clock.now += 1e9
            self.cv_log_loss_ = 0.2 if is_better else float("nan")
        return n_rows

    monkeypatch.setattr(estimator, "_fit_rows", fit_rows)
    monkeypatch.setattr(self_tuning, "warn_caller", lambda message: None)
    model = one_kernel(estimator, max_time=1e6).fit(X, Y)
    assert (model.n_samples_fit_ == N_ROWS) == is_better
    assert (model.cv_log_loss_ == 0.2) == is_better


@BOTH
def test_only_the_model_that_is_used_warns(estimator, fits, monkeypatch):
    plain = estimator._fit_rows

    def fit_rows(self, rows, *rest):
        warn_caller(f"fit of {len(rows.codes)}", UserWarning)
        return plain(self, rows, *rest)

    monkeypatch.setattr(estimator, "_fit_rows", fit_rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one_kernel(estimator, max_time=MAX_TIME).fit(X, Y)
    first, second = (str(w.message) for w in caught)
    assert first == f"fit of {fits[-1]}"
    assert f"trained on {fits[-1]:,} of {N_ROWS:,}" in second
    assert caught[1].filename == __file__


@BOTH
def test_filters_of_warnings_stay_as_they_are(estimator, fits, monkeypatch):
    plain, seen = estimator._fit_rows, []

    def fit_rows(self, rows, *rest):
        seen.append(list(warnings.filters))
        return plain(self, rows, *rest)

    monkeypatch.setattr(estimator, "_fit_rows", fit_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = list(warnings.filters)
        one_kernel(estimator, max_time=MAX_TIME).fit(X, Y)
    assert len(fits) > 1
    assert seen == [before] * len(fits)


# --- what the attributes refer to ----------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("n_classes", [2, 3])
def test_support_rows_are_those_of_x(estimator, n_classes, fits):
    X, y = problem(N_ROWS, n_classes)
    model = fit_part(one_kernel(estimator, standardize=False), X, y)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.support_.max() > model.n_samples_fit_
    np.testing.assert_array_equal(np.bincount(y[model.support_]), model.n_support_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_stages_are_those_of_x(n_classes, fits):
    X, y = problem(N_ROWS, n_classes)
    model = fit_part(GreedySVC(standardize=False), X, y)
    paths = [model.stage_indices_] if n_classes == 2 else model.stage_indices_
    assert set(model.support_) <= set(np.concatenate(paths))
    *_, last = model.staged_decision_function(X_TEST[:50])
    np.testing.assert_allclose(last, model.decision_function(X_TEST[:50]), atol=1e-5)


@BOTH
def test_precomputed_kernels(estimator, fits):
    K, K_test = (np.exp(-0.5 * ((Z[:, None] - X) ** 2).sum(axis=2)) for Z in (X, X_TEST))
    model = fit_part(one_kernel(estimator, kernel="precomputed"), K, Y)
    expected = K_test[:, model.support_] @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(model.decision_function(K_test), expected, atol=1e-4)
    assert model.score(K_test, Y_TEST) > 0.8


@BOTH
def test_every_class_has_rows(estimator, fits):
    y = np.where(X[:, 3] > np.sort(X[:, 3])[-13], 7, Y)  # twelve rows
    model = fit_part(one_kernel(estimator), X, y)
    assert model.classes_.tolist() == [0, 1, 7]
    assert 0 < model.n_support_[2] == (y[model.support_] == 7).sum() <= 12
    assert model.predict_proba(X_TEST).shape == (N_TEST, 3)


# --- rows of every kind --------------------------------------------------------------------------


@BOTH
def test_sparse_rows(estimator, fits):
    model = fit_part(one_kernel(estimator, standardize=False), sp.csr_array(X), Y)
    assert sp.issparse(model.support_vectors_)
    np.testing.assert_array_equal(model.support_vectors_.toarray(), X[model.support_])
    assert model.score(sp.csr_array(X_TEST), Y_TEST) > 0.8


@BOTH
def test_tables(estimator, fits):
    def table(X):
        levels = np.where(X[:, 2] > 0, "high", "low").astype(object)
        levels[3] = "rare"
        frame = pd.DataFrame(X, columns=list("abcd")).assign(e=pd.Categorical(levels))
        frame.loc[::7, "a"] = np.nan
        return frame

    rows, queries = table(X), table(X_TEST)
    model = fit_part(one_kernel(estimator), rows, Y)
    assert model.feature_names_in_.tolist() == list("abcde")
    assert "e_rare" in model.get_feature_names_out()  # it was read as a whole
    assert model.score(queries, Y_TEST) > 0.75


@BOTH
def test_weights(estimator, fits):
    weights = np.where(np.arange(N_ROWS) % 8 == 0, 0.0, 1.0)
    wrong = np.where(weights == 0, 1 - Y, Y)
    model = fit_part(
        one_kernel(estimator, class_weight="balanced"), X, wrong, sample_weight=weights
    )
    assert (weights[model.support_] > 0).all()
    assert model.score(X_TEST, Y_TEST) > 0.8


# --- splits and seeds ----------------------------------------------------------------------------

GROUPS = np.minimum(np.arange(N_ROWS) // 3, 3)  # three small groups and a large one


@BOTH
@pytest.mark.parametrize("max_time", [MAX_TIME, 1e6])
def test_groups(estimator, max_time, fits):
    model = one_kernel(estimator, cv=GroupKFold(4), max_time=max_time)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y, groups=GROUPS)
    assert model.n_samples_fit_ == (N_ROWS if max_time > MAX_TIME else fits[-1])


@pytest.mark.once_per("splits")
@BOTH
@pytest.mark.parametrize(
    "splits",
    [
        lambda: iter(list(KFold(3, shuffle=True, random_state=0).split(X))),
        lambda: PredefinedSplit(np.arange(N_ROWS) % 3),
        lambda: KFold(3, shuffle=True, random_state=0),
    ],
)
def test_splits_are_those_of_all_rows(estimator, splits, fits):
    limited, plain = (one_kernel(estimator, cv=splits(), max_time=t).fit(X, Y) for t in (1e6, None))
    assert_same(limited, plain)
    assert fit_part(one_kernel(estimator, cv=splits()), X, Y).score(X_TEST, Y_TEST) > 0.8


def test_groups_without_a_splitter_are_an_error(fits):
    with pytest.raises(ValueError, match="groups were given, but cv=5 ignores them"):
        EnsembleSVC(max_time=MAX_TIME).fit(X, Y, groups=GROUPS)


@BOTH
def test_a_random_state_moves_on_as_without_a_limit(estimator, fits):
    limited, plain = np.random.RandomState(0), np.random.RandomState(0)
    assert_same(
        one_kernel(estimator, random_state=limited, max_time=1e6).fit(X, Y),
        one_kernel(estimator, random_state=plain).fit(X, Y),
    )
    assert limited.randint(10**9) == plain.randint(10**9)


@BOTH
def test_parts_are_the_same_every_time(estimator, fits):
    one, other = (fit_part(one_kernel(estimator), X, Y) for _ in range(2))
    assert_same(one, other)


def test_a_number_of_stages_keeps_the_limit_too(fits):
    model = EnsembleSVC(n_stages=5, max_time=MAX_TIME)
    with pytest.warns(UserWarning, match="too short for all rows"):
        model.fit(X, Y)
    assert model.n_samples_fit_ < N_ROWS
    assert model.n_stages_ == 5


# --- where rows do not grow ----------------------------------------------------------------------


@pytest.mark.parametrize("model", [GreedySVC(0.3), GreedySVC("scale", max_visits=1), GreedySVC()])
def test_given_settings_fit_all_rows(model, fits):
    limit = None if model.gamma == "cv" and isinstance(model, GreedySVC) else MAX_TIME
    copy.deepcopy(model).set_params(max_time=limit).fit(X, Y)
    assert fits == [N_ROWS]


@BOTH
def test_an_interrupt_leaves_the_estimator_as_it_was(estimator, fits, monkeypatch):
    model = one_kernel(estimator, max_time=1e6).fit(X[:300], Y[:300])
    before, plain = dict(vars(model)), estimator._fit_rows

    def interrupt(self, rows, *rest):
        if not rows.is_part:
            raise KeyboardInterrupt
        plain(self, rows, *rest)

    monkeypatch.setattr(estimator, "_fit_rows", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert len(fits) > 1
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[k] is before[k] for k in before)


@pytest.mark.parametrize(
    ("parameters", "largest", "cost"),
    [
        ({}, 100_000, 1.0),  # a mixture, as for all rows
        ({"max_cell_rows": None}, 10_000, 3.5 * 0.1),
        ({"max_cell_rows": None, "rank": 50}, 100_000, 3.5),
    ],
)
def test_parts_of_one_machine_have_stored_matrices(parameters, largest, cost):
    codes = np.arange(100_000, dtype=np.int32) % 2
    rows = TrainingRows(None, codes, np.arange(2), None)
    growth = plan(rows, EnsembleSVC(**parameters), Budget.of(None)).growth(rows)
    assert growth.largest_part == min(largest, 98_000)  # some are set aside
    assert growth.cost_of_all == pytest.approx(cost)


# --- many classes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("max_time", "multi_class", "expected"),
    [
        (None, "auto", "ovo"),
        (100.0, "auto", "ovo"),
        (1.0, "auto", "ovr"),
        (1.0, "ovo", "ovo"),
    ],
)
def test_one_machine_per_class_where_there_is_no_time_for_pairs(max_time, multi_class, expected):
    y = np.repeat(np.arange(40), 60)  # 780 pairs, of classes with more than a few rows
    rows = TrainingRows(np.zeros((len(y), 2)), y.astype(np.int32), np.arange(40), None)
    model = EnsembleSVC(max_time=max_time, multi_class=multi_class)
    assert plan(rows, model, Budget.of(None)).multi_class == expected
