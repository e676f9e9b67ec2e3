"""The regularisation path of a C-SVM."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from hardmargin.displays._axes import axes_to_use, final_step, number_of_machine
from hardmargin.kernels import FloatArray


class RegularizationPathDisplay:
    """Errors against C, over all breakpoints of the regularisation path, with the chosen C.

    Parameters
    ----------
    C : (n_breakpoints,) array
        Where the solution bends, in ascending order.
    error : (n_breakpoints,) array
        Share of errors on the training rows.
    judged_C, judged : arrays
        Where the judgement changes, and its value: the held-out error, or the leave-one-out bound.
    judgement : str
        What that is.
    chosen : float
        The C that was chosen.

    Attributes
    ----------
    ax_, figure_
        Matplotlib's axes and figure.
    lines_ : list of Line2D
        The training error, the judgement, and the chosen C.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from hardmargin import PathSVC
    >>> from hardmargin.displays import RegularizationPathDisplay
    >>> clf = PathSVC("loo").fit(*load_breast_cancer(return_X_y=True))
    >>> RegularizationPathDisplay.from_estimator(clf).judgement
    'leave-one-out bound'
    """

    def __init__(
        self,
        C: FloatArray,
        error: FloatArray,
        judged_C: FloatArray,
        judged: FloatArray,
        judgement: str,
        chosen: float,
    ) -> None:
        self.C = C
        self.error = error
        self.judged_C = judged_C
        self.judged = judged
        self.judgement = judgement
        self.chosen = chosen

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, machine: int = 0, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the regularisation path of a fitted `PathSVC`.

        Parameters
        ----------
        estimator : PathSVC or Pipeline
            Fitted.
        machine : int, default=0
            Which machine, where there are several classes.
        ax : matplotlib axes, optional
            Where to draw.
        **kwargs
            Passed to ``ax.plot``.

        Returns
        -------
        RegularizationPathDisplay
        """
        model = final_step(estimator, "path_", "PathSVC")
        paths = model.path_ if isinstance(model.path_, list) else [model.path_]
        m = number_of_machine(machine, len(paths))
        path, chosen = paths[m], float(np.atleast_1d(model.C_)[m])
        if hasattr(model, "cv_results_"):
            found = model.cv_results_
            own = found[m] if isinstance(found, list) else found
            judged_C, judged, judgement = own["C"], own["error"], "error on held-out rows"
        else:
            judged_C, judged, judgement = path.C, path.loo_bound, "leave-one-out bound"
        return cls(path.C, path.error, judged_C, judged, judgement, chosen).plot(ax=ax, **kwargs)

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
        steps = {"drawstyle": "steps-post", **kwargs}
        is_shown, is_judged = np.asarray(self.C) > 0, np.asarray(self.judged_C) > 0
        self.lines_ = [
            *ax.plot(
                self.C[is_shown], self.error[is_shown], label="error on training rows", **steps
            ),
            *ax.plot(
                np.asarray(self.judged_C)[is_judged],
                np.asarray(self.judged)[is_judged],
                label=self.judgement,
                **steps,
            ),
            ax.axvline(self.chosen, color="0.4", linestyle="--", label=f"C = {self.chosen:.3g}"),
        ]
        ax.set(xlabel="C", ylabel="share of the rows", xscale="log")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
