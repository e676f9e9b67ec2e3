"""MarginDiscriminantAnalysis."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from oracles.core_vector import l2_svm, l2_svms
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import CoreVectorSVC, MarginDiscriminantAnalysis
from hardmargin.solvers.core_sets.l2_svm import CONSTRAINTS


def gram(X, gamma):
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_features_are_those_of_the_oracle(iris, constraint):
    X, y = iris
    mda = MarginDiscriminantAnalysis(3, constraint=constraint, tol=1e-7).fit(X, y)
    features = mda.transform(X)
    K = gram(X, mda.gamma_)
    for c in range(3):
        machines = l2_svms(K, np.where(y == c, 1.0, -1.0), 3, constraint)
        for q, machine in enumerate(machines):
            np.testing.assert_allclose(
                features[:, 3 * c + q], machine.scores / machine.norm, atol=5e-3
            )
    np.testing.assert_array_equal(mda.direction_classes_, np.repeat([0, 1, 2], 3))


def test_directions_are_orthonormal_within_a_class(iris):
    X, y = iris
    mda = MarginDiscriminantAnalysis(3).fit(X, y)
    K = gram(mda.support_vectors_, mda.gamma_)
    for c in range(3):
        W = mda.directions_[mda.direction_classes_ == c]
        np.testing.assert_allclose(W @ K @ W.T, np.eye(3), atol=1e-8)


@pytest.mark.parametrize("solver", ["core", "newton", "lagrangian"])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_scope_all_is_the_oracles_with_the_machines_of_all_classes(iris, constraint, solver):
    X, y = iris
    tol = 1e-7 if solver == "core" else 1e-9
    mda = MarginDiscriminantAnalysis(
        2, scope="all", constraint=constraint, solver=solver, tol=tol
    ).fit(X, y)
    features, K = mda.transform(X), gram(X, mda.gamma_)
    assert mda.direction_classes_.tolist() == [0, 0, 1, 1, 2, 2]
    constraints = np.zeros((len(y), 0))
    for q in range(2):
        for c in range(3):
            signs = np.where(y == c, 1.0, -1.0)
            machine = l2_svm(K, signs, constraints=constraints)
            found = features[:, 2 * c + q]
            np.testing.assert_allclose(found, machine.scores / machine.norm, atol=5e-3)
            assert mda.objective_[2 * c + q] == pytest.approx(machine.objective, rel=1e-4)
            if constraint == "orthogonal":
                new = constraint_free(K, constraints, signs * machine.alpha)
            else:
                centre = machine.scores.mean() if constraint.endswith("centred") else 0.0
                new = machine.scores - centre
            constraints = np.column_stack([constraints, new])


def constraint_free(K, constraints, c):
    """Take the constraints' part out of an expansion."""
    KU = K @ constraints
    return c - constraints @ np.linalg.solve(constraints.T @ KU, KU.T @ c)


def test_directions_of_scope_all_are_orthonormal(iris):
    X, y = iris
    mda = MarginDiscriminantAnalysis(3, scope="all").fit(X, y)
    K = gram(mda.support_vectors_, mda.gamma_)
    W = mda.directions_
    np.testing.assert_allclose(W @ K @ W.T, np.eye(9), atol=1e-7)


def test_scope_does_not_matter_for_two_classes(iris):
    X, y = iris[0][:100], iris[1][:100]
    one, other = (MarginDiscriminantAnalysis(2, scope=s).fit(X, y) for s in ("class", "all"))
    np.testing.assert_array_equal(one.directions_, other.directions_)


@pytest.mark.parametrize(
    ("constraint", "centre"), [("uncorrelated", False), ("uncorrelated-centred", True)]
)
def test_features_are_uncorrelated_within_a_class(iris, constraint, centre):
    X, y = iris
    Z = MarginDiscriminantAnalysis(3, constraint=constraint).fit_transform(X, y)[:, :3]
    Z = Z - centre * Z.mean(axis=0)
    moments = Z.T @ Z
    scale = np.sqrt(np.outer(np.diag(moments), np.diag(moments)))
    np.testing.assert_allclose(moments / scale, np.eye(3), atol=1e-8)


def test_the_first_machine_is_core_vector_svc(iris):
    X, y = iris[0], iris[1] == 2
    mda = MarginDiscriminantAnalysis(tol=1e-8).fit(X, y)
    svc = CoreVectorSVC(tol=1e-8).fit(X, y)
    assert mda.transform(X).shape == (150, 1)
    scores = (mda.transform(X)[:, 0] + mda.intercepts_[0]) * svc.weight_norm_
    np.testing.assert_allclose(scores, svc.decision_function(X), atol=1e-5)


def test_certificates(iris):
    mda = MarginDiscriminantAnalysis(2, tol=0.05).fit(*iris)
    assert (mda.stop_reason_ == "certified").all()
    assert (mda.lower_bound_ <= mda.objective_).all()
    assert (mda.objective_ <= mda.lower_bound_ / 0.95**2 * (1 + 1e-9)).all()
    for name in ("core_size_", "n_kernel_evaluations_", "intercepts_", "direction_classes_"):
        assert getattr(mda, name).shape == (6,), name


def test_full_rank_nystroem_is_the_kernel_itself(iris):
    X, y = iris[0][::3], iris[1][::3]
    core = MarginDiscriminantAnalysis(2, tol=1e-7).fit(X, y).transform(X)
    low = MarginDiscriminantAnalysis(2, tol=1e-7, solver="nystroem", rank=50).fit(X, y)
    np.testing.assert_allclose(low.transform(X), core, atol=5e-3)


def test_low_rank_has_few_support_rows(iris):
    X, y = iris
    low = MarginDiscriminantAnalysis(2, solver="nystroem", rank=30, random_state=0).fit(X, y)
    assert len(low.support_) == 30
    assert make_pipeline(low, LogisticRegression()).fit(X, y).score(X, y) > 0.95


def test_fewer_directions_where_nothing_is_left(iris):
    X, y = iris[0][:, :2], iris[1]
    mda = MarginDiscriminantAnalysis(5, kernel="linear").fit(X, y)
    of_class = np.unique(mda.direction_classes_, return_counts=True)[1]
    assert len(of_class) == 3
    assert of_class.max() <= 2  # as many as there are features


def test_output_can_be_a_frame(iris):
    mda = MarginDiscriminantAnalysis(2).set_output(transform="pandas")
    Z = mda.fit_transform(pd.DataFrame(iris[0], columns=list("abcd")), iris[1])
    assert list(Z.columns) == [f"margindiscriminantanalysis{i}" for i in range(6)]
    assert list(mda.get_feature_names_out()) == list(Z.columns)


def test_sparse_rows_and_threads_give_the_same_features(iris):
    X, y = iris
    one = MarginDiscriminantAnalysis(2, random_state=0).fit_transform(X, y)
    two = MarginDiscriminantAnalysis(2, random_state=0, n_jobs=2).fit_transform(X, y)
    sparse = MarginDiscriminantAnalysis(2, tol=1e-8).fit_transform(sp.csr_array(X), y)
    dense = MarginDiscriminantAnalysis(2, tol=1e-8).fit_transform(X, y)
    np.testing.assert_allclose(two, one, rtol=1e-9)
    np.testing.assert_allclose(sparse, dense, atol=1e-5)


def test_a_weight_of_two_is_the_row_twice(iris):
    X, y = iris
    w = np.arange(150) % 3
    weighted = MarginDiscriminantAnalysis(2, tol=1e-8, gamma=0.2).fit(X, y, sample_weight=w)
    repeated = MarginDiscriminantAnalysis(2, tol=1e-8, gamma=0.2).fit(
        np.repeat(X, w, axis=0), np.repeat(y, w)
    )
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-4)


def test_time_is_limited_with_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3_000, 5)), rng.integers(2, size=3_000)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        mda = MarginDiscriminantAnalysis(3, max_time=1e-9).fit(X, y)
    assert np.isfinite(mda.transform(X)).all()


def test_a_fit_that_fails_leaves_the_estimator_as_it_was(iris):
    X, y = iris
    mda = MarginDiscriminantAnalysis().fit(X, y)
    before = dict(vars(mda))
    with pytest.raises(ValueError, match="two classes"):
        mda.fit(X, np.zeros(150))
    assert vars(mda) == before


# --- dense solvers -------------------------------------------------------------------------------

DENSE = pytest.mark.parametrize("solver", ["newton", "lagrangian"])


@DENSE
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_dense_features_are_those_of_the_oracle(iris, solver, constraint):
    X, y = iris
    mda = MarginDiscriminantAnalysis(3, constraint=constraint, solver=solver, tol=1e-10).fit(X, y)
    features = mda.transform(X)
    K = gram(X, mda.gamma_)
    for c in range(3):
        machines = l2_svms(K, np.where(y == c, 1.0, -1.0), 3, constraint)
        for q, machine in enumerate(machines):
            np.testing.assert_allclose(
                features[:, 3 * c + q], machine.scores / machine.norm, atol=1e-4
            )
    assert (mda.stop_reason_ == "optimal").all()
    assert (mda.core_size_ == 150).all()
    assert mda.n_kernel_evaluations_.tolist() == [150**2] + 8 * [0]
    assert (mda.objective_ <= mda.lower_bound_ * (1 + 1e-9)).all()


@pytest.mark.parametrize("solver", ["core", "nystroem", "newton", "lagrangian"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_precomputed_kernel_gives_the_same_features(iris, solver, n_classes):
    X, y = iris[0], np.minimum(iris[1], n_classes - 1)
    K = gram(X, 0.3)
    w = np.arange(150) % 4
    parameters = {"solver": solver, "rank": 150, "random_state": 0, "tol": 1e-7}
    rows = MarginDiscriminantAnalysis(2, gamma=0.3, **parameters).fit(X, y, sample_weight=w)
    mda = MarginDiscriminantAnalysis(2, kernel="precomputed", **parameters)
    mda.fit(K, y, sample_weight=w)
    assert mda.support_vectors_.shape == (0, 0)
    assert (w[mda.support_] > 0).all()
    np.testing.assert_allclose(mda.transform(K[:20]), rows.transform(X[:20]), atol=1e-5)
    with pytest.raises(ValueError, match="features") as raised:
        mda.transform(K[:20, :30])
    assert "n_training_rows" in raised.value.__notes__[0]
    assert mda.__sklearn_tags__().input_tags.pairwise
    assert not mda.__sklearn_tags__().input_tags.sparse


@DENSE
def test_dense_solvers_take_weights(iris, solver):
    X, y = iris
    w = np.arange(150) % 3
    mda = MarginDiscriminantAnalysis(2, solver=solver, gamma=0.2, tol=1e-10)
    weighted = mda.fit(X, y, sample_weight=w).transform(X)
    repeated = mda.fit(np.repeat(X, w, axis=0), np.repeat(y, w)).transform(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-5)


@DENSE
@pytest.mark.parametrize("variant", ["float32", "sparse", "threads"])
def test_dense_solvers_on_other_input(iris, solver, variant):
    X, y = iris
    expected = MarginDiscriminantAnalysis(2, solver=solver).fit_transform(X, y)
    mda = MarginDiscriminantAnalysis(2, solver=solver)
    if variant == "float32":
        mda.set_params(dtype="float32")
    elif variant == "threads":
        mda.set_params(n_jobs=2)
    found = mda.fit_transform(sp.csr_array(X) if variant == "sparse" else X, y)
    np.testing.assert_allclose(found, expected, atol=2e-3)


@DENSE
def test_a_matrix_beyond_the_memory_is_an_error(iris, solver):
    with pytest.raises(ValueError, match=r"memory_limit.*solver='core'"):
        MarginDiscriminantAnalysis(solver=solver, memory_limit="100kB").fit(*iris)


@DENSE
def test_kernel_values_must_be_finite(iris, solver):
    K = gram(iris[0], 0.3)

    def kernel(X, Z):
        values = K[: len(X), : len(Z)].copy()
        values[0, -1] = np.nan if len(X) == len(K) else 1.0
        return values

    with pytest.raises(ValueError, match="finite"):
        MarginDiscriminantAnalysis(solver=solver, kernel=kernel).fit(*iris)


def test_the_fixed_point_says_where_it_does_not_end(iris, monkeypatch):
    monkeypatch.setattr("hardmargin.solvers.core_sets.lagrangian.MAX_STAGES", 3)
    with pytest.warns(ConvergenceWarning, match="solver='newton'"):
        MarginDiscriminantAnalysis(C=1000.0, solver="lagrangian").fit(*iris)


@DENSE
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_more_directions_than_there_are_stay_finite(iris, solver, kernel, monkeypatch):
    monkeypatch.setattr("hardmargin.solvers.core_sets.lagrangian.MAX_STAGES", 500)
    X, y = iris[0][:, :2], iris[1]
    mda = MarginDiscriminantAnalysis(5, kernel=kernel, solver=solver, C=1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        features = mda.fit_transform(X, y)
    assert np.isfinite(features).all()


@pytest.mark.parametrize("solver", ["core", "newton", "lagrangian"])
def test_time_is_limited_for_every_solver(iris, solver):
    with pytest.warns(ConvergenceWarning, match="max_time"):
        mda = MarginDiscriminantAnalysis(3, solver=solver, max_time=1e-9).fit(*iris)
    assert np.isfinite(mda.transform(iris[0])).all()


@pytest.mark.parametrize("solver", ["core", "newton", "lagrangian"])
def test_interruption_leaves_the_estimator_as_it_was(iris, solver, monkeypatch):
    mda = MarginDiscriminantAnalysis(solver=solver).fit(*iris)
    before = dict(vars(mda))

    def interrupt(monitor, stage, value):
        raise KeyboardInterrupt

    monkeypatch.setattr("hardmargin.monitor.Monitor.go_on", interrupt)
    with pytest.raises(KeyboardInterrupt):
        mda.fit(*iris)
    assert vars(mda) == before


@pytest.mark.parametrize(
    ("solver", "what"), [("core", "violation"), ("newton", "gap"), ("lagrangian", "gap")]
)
def test_verbose_shows_progress(iris, solver, what, capsys):
    MarginDiscriminantAnalysis(2, C=10, tol=1e-5, solver=solver, verbose=10**9).fit(*iris)
    printed = capsys.readouterr().out
    assert "[MarginDiscriminantAnalysis]" in printed
    assert "machine 2 of 3" in printed
    assert what in printed


@pytest.mark.parametrize("solver", ["core", "newton"])
def test_short_fits_are_silent(iris, solver, capsys):
    MarginDiscriminantAnalysis(solver=solver, verbose=1).fit(*iris)
    assert capsys.readouterr().out == ""


# --- input, as for the classifiers ---------------------------------------------------------------


def test_missing_values_and_text_name_a_remedy(iris):
    X, y = iris
    with pytest.raises(ValueError, match="NaN") as raised:
        MarginDiscriminantAnalysis().fit(np.where(X > 1, np.nan, X), y)
    assert "SimpleImputer" in raised.value.__notes__[-1]
    with pytest.raises(ValueError, match="could not convert") as raised:
        MarginDiscriminantAnalysis().fit(np.full(X.shape, "blue"), y)
    assert "skrub" in raised.value.__notes__[-1]


def test_features_too_large_for_float32(iris):
    X, y = iris
    with pytest.raises(ValueError, match="dtype='float32'"):
        MarginDiscriminantAnalysis(dtype="float32").fit(1e20 * X, y)


def test_a_precomputed_kernel_must_be_square(iris):
    with pytest.raises(ValueError, match="square matrix"):
        MarginDiscriminantAnalysis(kernel="precomputed").fit(*iris)


@pytest.mark.parametrize("solver", ["core", "newton", "lagrangian", "nystroem"])
@pytest.mark.parametrize("C", [0.1, 100.0])
def test_linear_directions_are_orthogonal_vectors(solver, C):
    """Expansions over many more rows than features cancel; the directions must not suffer."""
    X, y = make_classification(300, 8, n_informative=5, n_redundant=0, random_state=0)
    X = StandardScaler().fit_transform(X)
    mda = MarginDiscriminantAnalysis(4, C=C, kernel="linear", solver=solver, random_state=0)
    if solver == "lagrangian":
        mda.set_params(tol=1e-3)
    W = mda.fit(X, y).directions_ @ mda.support_vectors_
    np.testing.assert_allclose(W @ W.T, np.eye(4), atol=1e-9)
    newton = MarginDiscriminantAnalysis(4, C=C, kernel="linear", solver="newton").fit(X, y)
    assert (mda.objective_ >= 0.85 * newton.objective_).all()
