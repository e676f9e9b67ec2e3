"""Displays: what they draw, where, and what they refuse."""

import functools
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hardmargin import EnsembleSVC, GreedySVC, MarginDiscriminantAnalysis, PathSVC
from hardmargin.displays import (
    DiscriminantDisplay,
    HeldOutPathDisplay,
    MarginDistributionDisplay,
    RegularizationPathDisplay,
    RelevanceDisplay,
)
from hardmargin.io import load
from hardmargin.selection import vote
from hardmargin.solvers import staged_vote

matplotlib.use("Agg")

CANCER, IS_BENIGN = load_breast_cancer(return_X_y=True, as_frame=True)
IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@functools.cache
def two_class_vote():
    return EnsembleSVC().fit(CANCER[:200], IS_BENIGN[:200])


@functools.cache
def iris_vote():
    return EnsembleSVC().fit(IRIS, SPECIES)


@functools.cache
def path(selection="cv", many=False):
    rows, labels = (IRIS, SPECIES) if many else (CANCER[:150], IS_BENIGN[:150])
    return make_pipeline(StandardScaler(), PathSVC(selection)).fit(rows, labels)


@functools.cache
def directions():
    return MarginDiscriminantAnalysis(1).fit(IRIS, SPECIES)


DRAWN = {
    "relevance": lambda **k: RelevanceDisplay.from_estimator(two_class_vote(), **k),
    "held-out path": lambda **k: HeldOutPathDisplay.from_estimator(two_class_vote(), **k),
    "margins": lambda **k: MarginDistributionDisplay.from_estimator(
        iris_vote(), IRIS, SPECIES, **k
    ),
    "regularisation path": lambda **k: RegularizationPathDisplay.from_estimator(path(), **k),
    "directions": lambda **k: DiscriminantDisplay.from_estimator(directions(), IRIS, SPECIES, **k),
}
ALL = pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)


@ALL
def test_axes_are_made_and_labelled(draw):
    display = draw()
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_xlabel()


@ALL
def test_given_axes_are_used(draw):
    _, axes = plt.subplots(1, 2)
    display = draw(ax=axes[1])
    assert display.ax_ is axes[1]
    assert not axes[0].has_data()


@ALL
def test_a_display_can_be_drawn_again(draw):
    display = draw()
    before = display.ax_
    assert display.plot() is display
    assert display.ax_ is not before


# --- numbers --------------------------------------------------------------------------------------


def test_the_most_relevant_columns_come_first():
    display = RelevanceDisplay.from_estimator(two_class_vote(), n_columns=7)
    expected = np.sort(two_class_vote().relevance_)[::-1][:7]
    np.testing.assert_array_equal(display.relevance, expected)
    assert "23 more columns" in display.ax_.get_xlabel()
    assert set(display.names) <= set(CANCER.columns)


def test_columns_without_names_have_numbers():
    display = RelevanceDisplay.from_estimator(iris_vote())
    assert sorted(display.names) == [f"column {j}" for j in range(4)]


def test_paths_are_those_of_the_largest_shares():
    display = HeldOutPathDisplay.from_estimator(two_class_vote(), n_kernels=2)
    table = two_class_vote().cv_table_
    for losses in display.losses:
        assert set(losses) <= set(table["log_loss"])
    shares = np.sort(two_class_vote().kernel_weights_["share"])[::-1][:2]
    assert [
        name.endswith(f"{100 * s:.0f} %") for name, s in zip(display.names, shares, strict=True)
    ]


def test_votes_of_a_kernel_add_up_and_prefer_low_losses():
    display = HeldOutPathDisplay.from_estimator(two_class_vote())
    for losses, votes in zip(display.losses, display.votes, strict=True):
        assert votes.sum() == pytest.approx(1)
        assert votes.argmax() == losses.argmin()


@pytest.mark.parametrize("weight", [None, 3.0])
def test_votes_are_those_of_the_rows_of_a_machine(weight, monkeypatch):
    found = []

    def solve(*args):
        found.append(staged_vote.solve(*args))
        return found[-1]

    monkeypatch.setattr(vote, "staged_vote", SimpleNamespace(solve=solve))
    X, y = make_blobs(200, centers=5, cluster_std=4.0, random_state=0)
    clf = EnsembleSVC(kernel="rbf", gamma=0.05, multi_class="ovo")
    clf.fit(X, y, None if weight is None else np.full(len(y), weight))
    for machine, [path] in enumerate(found[-1]):
        display = HeldOutPathDisplay.from_estimator(clf, machine=machine)
        [losses], [votes] = display.losses, display.votes
        np.testing.assert_array_equal(losses, path.history["loss"])
        assert votes.max() == pytest.approx(1 / path.mass, rel=1e-6)


def test_models_of_earlier_versions_have_paths_without_votes():
    clf = load(Path(__file__).parents[1] / "models" / "ensemble-0.2.0.skops")
    display = HeldOutPathDisplay.from_estimator(clf)
    assert all(len(losses) for losses in display.losses)
    assert np.isnan(np.concatenate(display.votes)).all()
    assert not display.ax_.collections  # nothing is shaded


@pytest.mark.parametrize("machine", [0, 2])
def test_every_machine_has_a_path(machine):
    assert HeldOutPathDisplay.from_estimator(iris_vote(), machine=machine).losses


def test_margins_of_two_classes_are_signed_scores():
    scores = two_class_vote().decision_function(CANCER[:200])
    display = MarginDistributionDisplay.from_estimator(
        two_class_vote(), CANCER[:200], IS_BENIGN[:200]
    )
    np.testing.assert_allclose(display.margins, np.sort(scores * (2 * IS_BENIGN[:200] - 1)))


def test_margins_of_many_classes_are_negative_where_wrong():
    display = MarginDistributionDisplay.from_estimator(iris_vote(), IRIS, SPECIES)
    wrong = np.mean(iris_vote().predict(IRIS) != SPECIES)
    assert np.mean(display.margins < 0) == pytest.approx(wrong)


def test_margins_of_other_classifiers():
    logistic = LogisticRegression(max_iter=1000).fit(IRIS, SPECIES)
    assert len(MarginDistributionDisplay.from_estimator(logistic, IRIS, SPECIES).margins) == 150


@pytest.mark.parametrize(
    ("selection", "judgement"),
    [("cv", "error on held-out rows"), ("loo", "leave-one-out bound")],
)
def test_what_judges_is_named(selection, judgement):
    display = RegularizationPathDisplay.from_estimator(path(selection))
    assert display.judgement == judgement
    assert display.chosen == path(selection)[-1].C_


def test_the_path_of_another_machine():
    display = RegularizationPathDisplay.from_estimator(path(many=True), machine=2)
    assert display.chosen == path(many=True)[-1].C_[2]


def test_directions_are_those_of_transform():
    display = DiscriminantDisplay.from_estimator(directions(), IRIS, SPECIES, directions=(2, 0))
    np.testing.assert_array_equal(display.projections, directions().transform(IRIS)[:, [2, 0]])
    assert len(display.points_) == 3


def test_many_classes_have_different_colours():
    y = np.arange(30) % 15
    display = DiscriminantDisplay.from_predictions(y, np.random.default_rng(0).normal(size=(30, 2)))
    assert len({tuple(points.get_facecolor()[0]) for points in display.points_}) == 15


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: RelevanceDisplay.from_estimator(GreedySVC(0.1).fit(IRIS, SPECIES)),
            "no relevance_",
        ),
        (lambda: RelevanceDisplay.from_estimator(iris_vote(), n_columns=0), "at least 1"),
        (lambda: HeldOutPathDisplay.from_estimator(iris_vote(), machine=3), "0 to 2, got 3"),
        (lambda: RegularizationPathDisplay.from_estimator(iris_vote()), "no path_"),
        (
            lambda: DiscriminantDisplay.from_estimator(
                directions(), IRIS, SPECIES, directions=(0, 9)
            ),
            "0 to 2, got",
        ),
        (
            lambda: MarginDistributionDisplay.from_predictions([0, 1], [1.0, 2.0, 3.0]),
            "2 labels, but scores of 3 rows",
        ),
        (
            lambda: MarginDistributionDisplay.from_predictions([0, 1, 2], [1.0, 2.0, 3.0]),
            "two classes, not 3",
        ),
        (
            lambda: DiscriminantDisplay.from_predictions([0, 1], np.zeros((2, 3))),
            "not two numbers",
        ),
    ],
)
def test_wrong_requests(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_a_model_that_is_not_fitted():
    with pytest.raises(Exception, match="not fitted"):
        RelevanceDisplay.from_estimator(EnsembleSVC())
