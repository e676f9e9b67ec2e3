"""Held-out loss along the stages of a vote."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hardmargin.displays._axes import axes_to_use, final_step, number_of_machine
from hardmargin.estimators._base.fitted import losses_of
from hardmargin.kernels import FloatArray
from hardmargin.solvers.staged_vote import SHARPNESS

#: Stages with a smaller share of a kernel's vote are not shaded.
LEAST_VOTE = 0.01


class HeldOutPathDisplay:
    """The held-out log-loss of every stage, kernel by kernel, with the stages that vote shaded.

    Parameters
    ----------
    stages : list of int arrays
        The stages of each kernel's path.
    losses : list of arrays
        Their log-loss on held-out rows.
    votes : list of arrays
        The share of each stage in the kernel's vote; NaN in models saved by version 0.2.0 or
        before, which do not have what it depends on.
    names : list of str
        The kernels, with their shares.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    lines_ : list of Line2D
        One per kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from hardmargin import EnsembleSVC
    >>> from hardmargin.displays import HeldOutPathDisplay
    >>> clf = EnsembleSVC().fit(*load_breast_cancer(return_X_y=True))
    >>> len(HeldOutPathDisplay.from_estimator(clf, n_kernels=3).losses)
    3
    """

    def __init__(
        self,
        stages: list[NDArray[Any]],
        losses: list[FloatArray],
        votes: list[FloatArray],
        names: list[str],
    ) -> None:
        self.stages = stages
        self.losses = losses
        self.votes = votes
        self.names = names

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, machine: int = 0, n_kernels: int = 5, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the paths of a fitted vote.

        Parameters
        ----------
        estimator : EnsembleSVC or Pipeline
            Fitted, with one vote (up to 10,000 rows).
        machine : int, default=0
            Which machine, where there are several classes.
        n_kernels : int, default=5
            The most kernels to show, by their share of the vote.
        ax : matplotlib axes, optional
            Where to draw.
        **kwargs
            Passed to ``ax.plot``.

        Returns
        -------
        HeldOutPathDisplay
        """
        model = final_step(estimator, "cv_table_", "EnsembleSVC on at most 10,000 rows")
        table, weights = model.cv_table_, model.kernel_weights_
        n_machines = int(table["machine"].max()) + 1 if len(table) else 1
        number_of_machine(machine, n_machines)
        own = weights[weights["machine"] == machine]
        own = own[np.argsort(-own["share"], kind="stable")][:n_kernels]
        sizes = losses_of(model).n_rows
        n_rows = np.nan if sizes is None else float(sizes[machine])
        stages, losses, votes, names = [], [], [], []
        for kernel in own:
            of_kernel = table[
                (table["machine"] == machine)
                & (table["view"] == kernel["view"])
                & (table["kernel"] == kernel["kernel"])
                & (table["gamma"] == kernel["gamma"])
            ]
            loss = of_kernel["log_loss"]
            vote = np.exp(-SHARPNESS * n_rows * (loss - loss.min()))
            stages.append(of_kernel["stage"])
            losses.append(loss)
            votes.append(vote / vote.sum())
            names.append(
                f"{kernel['kernel']}, {kernel['view']}, gamma {kernel['gamma']:.2g}: "
                f"{100 * kernel['share']:.0f} %"
            )
        return cls(stages, losses, votes, names).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where; new ones by default.
        **kwargs
            Passed to ``ax.plot``.

        Returns
        -------
        self
        """
        ax = axes_to_use(ax)
        self.lines_ = []
        for stage, loss, vote, name in zip(
            self.stages, self.losses, self.votes, self.names, strict=True
        ):
            (line,) = ax.plot(stage, loss, label=name, **kwargs)
            self.lines_.append(line)
            is_voting = vote >= LEAST_VOTE
            if is_voting.any():
                ax.fill_between(
                    stage,
                    loss,
                    np.max(loss[is_voting]),
                    where=is_voting,
                    color=line.get_color(),
                    alpha=0.25,
                    linewidth=0,
                )
        ax.set(xlabel="stage", ylabel="log-loss on held-out rows", yscale="log")
        ax.legend(title="kernel and its share of the vote")
        self.ax_, self.figure_ = ax, ax.figure
        return self
