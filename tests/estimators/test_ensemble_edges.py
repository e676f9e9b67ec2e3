"""EnsembleSVC on input at the edges: odd weights, kernels, splits, and fits one after another."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import PredefinedSplit, TimeSeriesSplit, train_test_split

from hardmargin import EnsembleSVC, resources
from hardmargin.kernels import Kernel, KernelSum, resolve_gamma
from hardmargin.solvers import staged_vote
from hardmargin.solvers.problem import Problem
from hardmargin.solvers.staged_vote import Candidates, KernelSource, StagedVoteOptions

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 4))
Y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=150) > 0).astype(int)


@pytest.mark.filterwarnings("ignore:.*look the same to the")
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_many_classes_in_one_place(multi_class):
    EnsembleSVC(multi_class=multi_class).fit(np.full((30, 2), 3.0), [0, 1, 2] * 10)


@pytest.mark.parametrize("weight", [1e-300, 1e-50, 1e50])
@pytest.mark.parametrize("which", ["all", "half", "class"])
def test_float32_weights(weight, which):
    w = {
        "all": np.full(150, weight),
        "half": np.where(np.arange(150) % 2, weight, 1),
        "class": np.where(Y, weight, 1),
    }[which]
    m = EnsembleSVC(dtype="float32", random_state=0).fit(X, Y, sample_weight=w)
    assert np.isfinite(m.decision_function(X)).all()


def test_weights_whose_squares_overflow_are_accepted():
    m = EnsembleSVC(random_state=0).fit(X, Y, sample_weight=np.full(150, 1e300))
    assert np.isfinite(m.predict_proba(X)).all()


def test_greedy_landmarks_need_a_number():
    with pytest.raises(ValueError, match="landmarks='greedy' needs an int"):
        EnsembleSVC(rank=0.05, landmarks="greedy").fit(X, Y)


def test_laplacian_of_middle_width():
    with pytest.warns(UserWarning, match="medium width"):
        m = EnsembleSVC(kernel="laplacian", standardize=False).fit(X[:5], [0, 0, 0, 1, 1])
    assert m.gamma_ == pytest.approx(resolve_gamma("pairwise", X[:5], kernel="laplacian"))


@pytest.mark.parametrize("scale", [1e-12, 1e-20])
def test_kernels_of_small_values(scale):
    m = EnsembleSVC(kernel="precomputed", random_state=0).fit(
        scale * np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(2)), Y
    )
    assert m.cv_error_ < 0.4


def test_large_precomputed_float32():
    K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(2))
    m = EnsembleSVC(kernel="precomputed", dtype="float32", random_state=0).fit(1e30 * K, Y)
    assert m.cv_error_ < 0.4


def test_splits_that_hold_nothing_out_warn():
    o = np.argsort(Y, kind="stable")
    with pytest.warns(UserWarning, match="holds out no rows of both classes"):
        EnsembleSVC(cv=TimeSeriesSplit(3)).fit(X[o], Y[o])


def test_predefined_split_with_weight_zero():
    w = (np.arange(150) % 5 > 0).astype(float)
    EnsembleSVC(cv=PredefinedSplit(np.arange(150) % 3)).fit(X, Y, sample_weight=w)


def test_empty_test_part_as_a_list():
    with pytest.warns(UserWarning, match="holds out no rows of both classes"):
        EnsembleSVC(cv=[(np.arange(150), [])]).fit(X, Y)


def test_low_memory_rank_warns():
    Z, z = np.tile(X, (10, 1)) + 0.1 * rng.normal(size=(1500, 4)), np.tile(Y, 10)
    with pytest.warns(UserWarning, match="rank|memory"):
        EnsembleSVC(memory_limit="100KB").fit(Z, z)


def test_a_sum_checks_its_coefficients():
    both = KernelSum((Kernel("rbf"), Kernel("laplacian")))
    with pytest.raises(ValueError, match="5 support rows and 2 kernels"):
        both.expand(np.ones((3, 2)), np.ones((5, 2)), np.ones((1, 5)))


@pytest.mark.parametrize("seed", range(10))
def test_the_race_keeps_the_best_kernel_of_an_interaction(seed):
    r = np.random.default_rng(seed)
    Z = r.normal(size=(230, 8))
    z = (Z[:, 0] * Z[:, 1] > 0).astype(np.int32)
    D = cdist(Z, Z, "sqeuclidean") / 8
    test = r.permutation(230) % 5 == np.arange(5)[:, None]
    kernels = [KernelSource("distances", 0, g) for g in (1 / 16, 1 / 4, 1, 4, 16)]
    problem = Problem(Candidates([D], kernels, ~test, test), z, [([0], [1])])
    [raced], [whole] = (
        staged_vote.solve(problem, StagedVoteOptions(race=race)) for race in (True, False)
    )
    best = int(np.argmin([p.certificate for p in whole]))
    assert raced[best].stop_reason != "outrun", (
        best,
        [round(p.certificate, 3) for p in raced],
        [round(p.certificate, 3) for p in whole],
    )


def test_distances_that_do_not_fit_say_so():
    with pytest.raises(ValueError, match=r"raise memory_limit \(it leaves .*\), or .* rank='auto'"):
        EnsembleSVC(rank=None, memory_limit="100KB").fit(X, Y)


def test_machines_that_fit_one_by_one_are_trained_so(monkeypatch):
    monkeypatch.setattr(resources, "BESIDE_BYTES", 0)
    y = np.arange(150) % 5
    # Relevance would carry the rounding of single machines to all of them.
    together, apart = (
        EnsembleSVC(memory_limit=limit, views="standardized", relevance=False).fit(X, y)
        for limit in ("1GB", "60KB")
    )
    np.testing.assert_allclose(together.decision_function(X), apart.decision_function(X))


def blobs(n_classes, n_per_class):
    return make_blobs(n_classes * n_per_class, centers=n_classes, n_features=5, random_state=0)


@pytest.mark.parametrize(
    ("n_classes", "n_per_class", "per_class", "in_all", "division"),
    [
        (10, 12, 12, 120, "ovr"),
        (9, 12, 12, 120, "ovo"),
        (10, 12, 11, 120, "ovo"),
        (10, 12, 12, 119, "ovo"),
    ],
)
def test_many_classes_of_few_rows_have_a_machine_each(
    n_classes, n_per_class, per_class, in_all, division, monkeypatch
):
    monkeypatch.setattr("hardmargin.selection.plan.FEW_PER_CLASS", per_class)
    monkeypatch.setattr("hardmargin.selection.plan.FEW_ROWS", in_all)
    X, y = blobs(n_classes, n_per_class)
    chosen, asked = EnsembleSVC().fit(X, y), EnsembleSVC(multi_class=division).fit(X, y)
    np.testing.assert_array_equal(chosen.intercept_, asked.intercept_)
    np.testing.assert_array_equal(chosen.predict_proba(X), asked.predict_proba(X))


def test_a_machine_per_class_is_better_for_many_classes_of_few_rows():
    X, y = make_classification(
        2_400, n_features=10, n_informative=8, n_classes=12, n_clusters_per_class=1, random_state=0
    )
    X, new, y, expected = train_test_split(X, y, train_size=240, random_state=0)
    losses = [
        log_loss(expected, EnsembleSVC(multi_class=division).fit(X, y).predict_proba(new))
        for division in ("auto", "ovo")
    ]
    assert losses[0] < 0.97 * losses[1]
