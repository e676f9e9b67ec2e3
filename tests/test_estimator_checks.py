"""scikit-learn's own checks of every public estimator."""

import pytest
from problems.every_estimator import PUBLIC
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

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

# Estimators that stop at a tolerance have a small one: the checks compare digits of two fits.
# Beside the defaults, options share an estimator where that leaves the checks as they are.
ESTIMATORS = [
    GreedySVC(),
    GreedySVC(kernel="laplacian", multi_class="ovr", class_weight="balanced", cv=2),
    GreedySVC(kernel="precomputed", n_jobs=2),
    # As in the paper: nothing is chosen.
    GreedySVC("scale", max_visits=1),
    GreedySVC("scale", max_visits=4, multi_class="ovr", class_weight="balanced"),
    GreedySVC("scale", max_visits=1, kernel="laplacian", n_jobs=2),
    GreedySVC("scale", max_visits=1, kernel="precomputed"),
    GreedySVC("scale", max_visits=1, dtype="float32"),
    EnsembleSVC(),
    EnsembleSVC(rank=5),
    EnsembleSVC(kernel="precomputed"),
    EnsembleSVC(kernel="laplacian", multi_class="ovr", cv=3),
    EnsembleSVC(kernel="rbf", dtype="float32", cv=3),
    RhoEnsembleSVC(),
    # A path that has converged makes steps of any length: rounding decides.
    RhoEnsembleSVC(5, fit_intercept=True, standardize=True),
    RhoEnsembleSVC(10, rank=5),
    RhoEnsembleSVC(10, dtype="float32"),
    # Narrow kernels: with a wide one the checks' classes overlap, and a hard margin takes long.
    RhoSVC(gamma=10.0),
    RhoSVC(gamma=10.0, solver="smo", tol=1e-9),
    HardMarginSVC(gamma=10.0, tol=1e-9),
    HardMarginSVC(fit_intercept=False, kernel="laplacian", tol=1e-9),
    CoreVectorSVC(tol=1e-9),
    CoreVectorSVC(tol=1e-9, kernel="laplacian", multi_class="ovr", n_jobs=2),
    CoreVectorSVC(kernel="precomputed"),
    CoreVectorSVC(stopping="radius", dtype="float32"),
    MarginDiscriminantAnalysis(tol=1e-9),
    MarginDiscriminantAnalysis(2, constraint="uncorrelated-centred", tol=1e-9),
    MarginDiscriminantAnalysis(solver="nystroem", rank=20, n_jobs=2),
    MarginDiscriminantAnalysis(2, solver="newton"),
    MarginDiscriminantAnalysis(solver="newton", kernel="precomputed"),
    MarginDiscriminantAnalysis(solver="lagrangian", tol=1e-9),
    DiversifiedSVC(tol=1e-9, final_estimator=CoreVectorSVC(tol=1e-9)),
    DiversifiedSVC(2, tol=1e-9, final_estimator=CoreVectorSVC(tol=1e-9), cv=2, n_jobs=2),
    DiversifiedSVC(2, tol=1e-9, final_estimator=LogisticRegression()),
    DiversifiedSVC(1, final_estimator="vote", tol=1e-9),
    DiversifiedSVC(1, final_estimator="cvm", solver="newton", kernel="precomputed"),
    MinimumEnclosingBall(tol=1e-9),
    MinimumEnclosingBall(tol=1e-9, contamination=0.1),
    MinimumEnclosingBall(tol=1e-9, kernel="linear"),
    MinimumEnclosingBall("pairwise", tol=1e-9, C=None),
    MinimumEnclosingBall("pairwise", tol=1e-9, C=0.1),
    MinimumEnclosingBall("pairwise", tol=1e-9, C=1.0, contamination=0.1, n_jobs=2),
    MinimumEnclosingBall(tol=1e-9, C=1e-3, kernel="linear"),
    MinimumEnclosingBall("pairwise", C=None, contamination=0.1),
    MinimumEnclosingBall(
        "pairwise",
        C=None,
        kernel="laplacian",
        contamination=0.1,
        stopping="radius",
        dtype="float32",
    ),
    ParzenClassifier(),
    # Short paths, to save time.
    PathSVC(cv=2, C_max=0.1),
    PathSVC("loo", C_max=0.1, kernel="precomputed", multi_class="ovr", n_jobs=2),
    RigorousSVC(),
    PathSVC("loo", C_max=0.1, fit_intercept=False),
    MultiplicativeSVC(gamma=10.0, max_stages=20),
    MultiplicativeSVC(gamma=10.0, max_stages=20, multi_class="ovr", n_jobs=2),
    MultiplicativeSVC(max_stages=300, kernel="precomputed"),
]
TIES = "greedy ties go to the lowest row, which changes when the check shuffles the rows"
NO_KERNEL = "the check hands rows, not a kernel matrix, to a precomputed kernel"
LANDMARKS = "landmarks are drawn from all rows, where each copy counts as a row"
HARD_MARGIN = "a hard margin does not depend on how rows are weighted"
GREEDY_NORM = "planes of the greedy norm leave few slacks, and weights act on slacks only"
ROUNDING = "the check asks for more digits than float32 has"
SURFACE = "rows on the surface of a ball without slacks are equally far from its centre"
ENCLOSED = "a ball without slacks encloses every training row, so that there are no outliers"
RADIUS = "the published rule needs the same diagonal, and so the same weight, for all rows"
WEIGHT_CHECKS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
CLASS_WEIGHT_CHECK = "check_class_weight_classifiers"


def expected_failed_checks(estimator):
    """Checks that must fail, and why; it is an error if one passes."""
    match estimator:
        case GreedySVC(gamma="cv", kernel="precomputed") | EnsembleSVC(kernel="precomputed"):
            return {"check_decision_proba_consistency": NO_KERNEL}
        case GreedySVC(gamma="scale" | "cv"):
            return dict.fromkeys(WEIGHT_CHECKS, TIES)
        case (
            EnsembleSVC(rank=5)
            | RhoEnsembleSVC(rank=5)
            | MarginDiscriminantAnalysis(solver="nystroem")
        ):
            return dict.fromkeys(WEIGHT_CHECKS, LANDMARKS)
        case EnsembleSVC(dtype="float32") | RhoEnsembleSVC(dtype="float32"):
            return dict.fromkeys(WEIGHT_CHECKS, ROUNDING)
        case CoreVectorSVC(stopping="radius"):
            weighted = (*WEIGHT_CHECKS, CLASS_WEIGHT_CHECK, "check_sample_weights_not_overwritten")
            return dict.fromkeys(weighted, RADIUS)
        case MinimumEnclosingBall(C=None, contamination="auto"):
            return dict.fromkeys(("check_outliers_train", "check_outliers_fit_predict"), ENCLOSED)
        case MinimumEnclosingBall(C=None):
            return dict.fromkeys(WEIGHT_CHECKS, SURFACE)
        case RigorousSVC(norm_bound="greedy"):
            return {CLASS_WEIGHT_CHECK: GREEDY_NORM}
        case HardMarginSVC() | MultiplicativeSVC() | RhoSVC():
            return {CLASS_WEIGHT_CHECK: HARD_MARGIN}
    return {}


def class_and_check(estimator, check):
    """Every class passes every check in `make test`, where its estimators take turns."""
    return type(estimator), check


# Some checks have rows of both classes in one place; the warnings about that are no failure.
@pytest.mark.once_per(key=class_and_check)
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failed_checks)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("public", PUBLIC)
def test_every_public_estimator_is_checked(public):
    assert public in {type(estimator) for estimator in ESTIMATORS}
