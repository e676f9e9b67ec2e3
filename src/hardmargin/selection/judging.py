"""What rows held out say about machines: how sure they are, and how good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import FloatArray
from hardmargin.selection.calibration import (
    Calibration,
    HeldOut,
    calibrate,
    held_out_margins,
    log_losses,
    winning_codes,
)
from hardmargin.selection.frequencies import Frequencies
from hardmargin.selection.standard_error import standard_error
from hardmargin.selection.weights import row_weights
from hardmargin.solvers.problem import Problem


class Judged(NamedTuple):
    """Probabilities of classes, and how good they are on rows held out.

    Attributes
    ----------
    calibration : Calibration or Frequencies
        How margins turn into decisions and probabilities.
    rows : (n_held,) int array
        The rows held out.
    probabilities : (n_held, n_classes) array
        Their probabilities.
    log_loss, error : float
        Their log-loss and share of errors, weighted; NaN where no rows were held out.
    log_loss_std_error, error_std_error : float
        Standard errors of these; NaN where fewer than two rows were held out.
    """

    calibration: Calibration | Frequencies
    rows: NDArray[np.intp]
    probabilities: FloatArray
    log_loss: float
    error: float
    log_loss_std_error: float = float("nan")
    error_std_error: float = float("nan")

    def after_choice(self, optimism: float) -> Judged:
        """Raise the log-loss by what choices have gained on these rows, which is as uncertain."""
        return self._replace(
            log_loss=self.log_loss + optimism,
            log_loss_std_error=float(np.hypot(self.log_loss_std_error, optimism)),
        )


def judge(
    held_out: HeldOut,
    slopes: FloatArray,
    intercepts: FloatArray,
    margins_of: Callable[[NDArray[np.intp]], FloatArray],
    problem: Problem[Any],
    multi_class: str,
    class_weights: FloatArray | None,
    random: np.random.RandomState,
) -> Judged:
    """Fit probabilities to held-out scores; without any, take the frequencies of the classes.

    Parameters
    ----------
    held_out : HeldOut
        The scores, without the biases of the machines.
    slopes, intercepts : (n_machines,) arrays
        Of the machines' sigmoids, and of the machines.
    margins_of : callable
        Returns the margins of training rows in the final machines.
    problem : Problem
        Classes and weights of the training rows.
    multi_class : {"ovo", "ovr"}
        How machines divide the classes.
    class_weights : (n_classes,) array or None
        Weights of the classes.
    random : RandomState
        Draws a subsample where there are many rows.
    """
    codes, n_classes = problem.codes, problem.n_classes
    if len(held_out.rows) == 0:
        of_rows = row_weights(codes, problem.weights, class_weights)
        shares = Frequencies.of(codes, of_rows, n_classes, multi_class)
        return Judged(shares, held_out.rows, np.empty((0, n_classes)), np.nan, np.nan)
    margins, rows = held_out.scores[:, None] + intercepts[0], held_out.rows
    if n_classes > 2:
        margins, rows = held_out_margins(held_out, intercepts, margins_of, random)
    weights = None
    if problem.weights is not None or class_weights is not None:
        weights = row_weights(codes, problem.weights, class_weights)[rows]
    first = Calibration(slopes, n_classes, multi_class)
    own = codes[rows]
    calibration, probabilities, log_loss, error = calibrate(first, margins, own, weights)
    is_wrong = winning_codes(probabilities - 0.5) != own
    return Judged(
        calibration,
        rows,
        probabilities,
        log_loss,
        error,
        standard_error(log_losses(probabilities, own), rows, weights),
        standard_error(is_wrong, rows, weights),
    )
