"""Labels, scores and probabilities of classes, from the margins of machines."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.onnx.graph import Graph
from hardmargin.selection.calibration import _BELOW_HALF, _LEAST, STEEPER, Calibration
from hardmargin.selection.frequencies import Frequencies


class Outcome(NamedTuple):
    """What is known about rows.

    Attributes
    ----------
    codes : str
        Numbers of the classes predicted, of shape (n,).
    scores : str
        Scores of the classes, of shape (n, n_classes).
    probabilities : str or None
        Probabilities of the classes, if the model has them.
    """

    codes: str
    scores: str
    probabilities: str | None


def calibrated(graph: Graph, margins: str, calibration: Calibration) -> Outcome:
    """Decide by margins, and tell probabilities, as `Calibration` does."""
    slopes = graph.constant(np.asarray(calibration.slopes, dtype=np.float64))
    likely = machine_probabilities(graph, margins, slopes)
    if calibration.n_classes == 2:
        unlikely = one_minus(graph, likely)
        return _of_two(graph, margins)._replace(
            probabilities=graph.side_by_side([unlikely, likely])
        )
    if calibration.multi_class == "ovr":
        scores = likely
        logs, _ = logs_of_sides(graph, likely)
    else:
        pairs = np.array(list(combinations(range(calibration.n_classes), 2)))
        sides = [graph.constant(side) for side in _sides(pairs, calibration.n_classes)]
        steep = steep_probabilities(graph, margins, slopes)
        scores = sums_over_sides(graph, steep, one_minus(graph, steep), *sides)
        logs = sums_over_sides(graph, *logs_of_sides(graph, likely), *sides)
        logs = graph.node("Div", logs, graph.number(calibration.n_classes - 1))
    sharp = graph.node("Mul", logs, graph.number(calibration.tau))
    values = graph.node("Softmax", sharp, axis=1)
    ordered = in_order_of(graph, scores, values, graph.integers(calibration.n_classes))
    return Outcome(_best(graph, scores), scores, ordered)


def uncalibrated(graph: Graph, margins: str, n_classes: int, multi_class: str) -> Outcome:
    """Decide by margins alone, as `class_scores` does."""
    if n_classes == 2:
        return _of_two(graph, margins)
    scores = margins
    if multi_class == "ovo":
        pairs = np.array(list(combinations(range(n_classes), 2)))
        sides = [graph.constant(side) for side in _sides(pairs, n_classes)]
        wins = graph.node("GreaterOrEqual", margins, graph.number(0.0))
        wins = graph.cast(wins, "float64")
        votes = sums_over_sides(graph, wins, one_minus(graph, wins), *sides)
        sure = sums_over_sides(graph, margins, graph.node("Neg", margins), *sides)
        size = graph.node("Add", graph.node("Abs", sure), graph.number(1.0))
        part = graph.node("Div", sure, graph.node("Mul", size, graph.number(3.0)))
        scores = graph.node("Add", votes, part)
    return Outcome(_best(graph, scores), scores, None)


def frequent(graph: Graph, margins: str, frequencies: Frequencies) -> Outcome:
    """Decide by margins alone, and move frequencies by the decision, as `Frequencies` does."""
    n_classes = len(frequencies.shares)
    outcome = uncalibrated(graph, margins, n_classes, frequencies.multi_class)
    if n_classes == 2:
        sides = frequencies.probabilities(np.array([[1.0], [-1.0]]))
        wins = graph.node("GreaterOrEqual", margins, graph.number(0.0))
        either = [graph.constant(side[None, :]) for side in sides]
        return outcome._replace(probabilities=graph.node("Where", wins, *either))
    n_each = graph.integers(n_classes)
    _, ranks = graph.nodes("TopK", outcome.scores, n_each, axis=1, n_outputs=2)
    values = graph.node("Gather", graph.constant(frequencies.shares), ranks)
    step = 1
    while step < n_classes:  # the largest of all that rank behind
        behind = np.minimum(np.arange(n_classes) + step, n_classes - 1)
        values, step = graph.node("Max", values, graph.columns(values, behind)), 2 * step
    values = graph.node("Mul", values, graph.constant(frequencies.tilts[None, :]))
    total = graph.node("MatMul", values, graph.constant(np.ones((n_classes, 1))))
    ordered = graph.node("Div", values, total)
    found = graph.node("ScatterElements", outcome.scores, ranks, ordered, axis=1)
    return outcome._replace(probabilities=found)


def of_logs(graph: Graph, logs: str, n_classes: int) -> Outcome:
    """Decide by log-probabilities, as `LogProbabilities` does."""
    probabilities = graph.node("Exp", logs)
    if n_classes > 2:
        return Outcome(_best(graph, logs), logs, probabilities)
    odds = graph.node("Sub", graph.columns(logs, np.array([1])), graph.columns(logs, np.array([0])))
    return _of_two(graph, odds)._replace(probabilities=probabilities)


def machine_probabilities(graph: Graph, margins: str, slopes: str) -> str:
    """Probabilities of the machines' positive sides: at least a half exactly where predicted."""
    likely = graph.node("Sigmoid", graph.node("Mul", margins, slopes))
    below = graph.node("Min", likely, graph.number(_BELOW_HALF))
    is_below = graph.node("Less", margins, graph.number(0.0))
    return graph.node("Where", is_below, below, likely)


def steep_probabilities(graph: Graph, margins: str, slopes: str) -> str:
    """Probabilities by which pairs decide between many classes."""
    return machine_probabilities(graph, margins, graph.node("Mul", slopes, graph.number(STEEPER)))


def in_order_of(graph: Graph, scores: str, values: str, n_classes: str) -> str:
    """Give the largest value to the largest score, the second to the second, and so on."""
    _, ranks = graph.nodes("TopK", scores, n_classes, axis=1, n_outputs=2)
    ordered, _ = graph.nodes("TopK", values, n_classes, axis=1, n_outputs=2)
    return graph.node("ScatterElements", values, ranks, ordered, axis=1)


def _of_two(graph: Graph, margins: str) -> Outcome:
    """Decide between two classes: the second, if the margin is not negative."""
    wins = graph.node("GreaterOrEqual", margins, graph.number(0.0))
    codes = graph.node("Squeeze", graph.cast(wins, "int64"), graph.integers(1))
    return Outcome(codes, graph.side_by_side([graph.node("Neg", margins), margins]), None)


def _best(graph: Graph, scores: str) -> str:
    return graph.node("ArgMax", scores, axis=1, keepdims=0)


def _sides(pairs: NDArray[np.intp], n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Matrices that give the values of pairs to their positive and to their negative classes."""
    negative, positive = (
        (side[:, None] == np.arange(n_classes)).astype(np.float64) for side in pairs.T
    )
    return positive, negative


def sums_over_sides(
    graph: Graph, of_positive: str, of_negative: str, positive: str, negative: str
) -> str:
    """Add up the values that machines give to their classes."""
    return graph.node(
        "Add",
        graph.node("MatMul", of_positive, positive),
        graph.node("MatMul", of_negative, negative),
    )


def one_minus(graph: Graph, values: str) -> str:
    """Return what is left of one."""
    return graph.node("Sub", graph.number(1.0), values)


def logs_of_sides(graph: Graph, likely: str) -> tuple[str, str]:
    """Take the logs of the probabilities of both sides of machines."""
    least = graph.number(_LEAST)
    positive, negative = (
        graph.node("Log", graph.node("Max", side, least))
        for side in (likely, one_minus(graph, likely))
    )
    return positive, negative
