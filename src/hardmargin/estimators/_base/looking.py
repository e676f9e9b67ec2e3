"""Fits that look at a sample of sparse rows, or of rows of common norm, before they begin.

The sample says whether to standardise and, on text, whether linear kernels alone should vote
(``selection/first_look.py``).
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial
from typing import Any

from hardmargin.estimators._base.estimator import (
    TrainingRows,
    machines_of,
    moderate,
    random_numbers,
)
from hardmargin.estimators._base.growing import GrowingClassifier
from hardmargin.estimators._base.scaling import find_scaling
from hardmargin.kernels import Kernel, Rows, is_sparse, mapped
from hardmargin.monitor import Monitor
from hardmargin.selection.first_look import (
    SAMPLE_ROWS,
    Look,
    first_look,
    is_open,
    is_text,
    sample_rows,
)
from hardmargin.selection.kernel_vote import KernelVote
from hardmargin.solvers.problem import largest_machine
from hardmargin.warn import held_back

#: What is assumed of rows before the look.
UNSEEN = Look(standardized=True, is_linear=False)


class LookingClassifier(GrowingClassifier):
    """Base of classifiers that look at a sample first.

    They have the parameters ``standardize`` and ``cv``, and ``multi_class="auto"``, which stands
    for one machine per class on text.
    """

    #: How machines divide the classes by default.
    _division_: str = "ovo"

    standardize: bool | str
    cv: Any

    @property
    def _division(self) -> str:
        return self._division_ if self.multi_class == "auto" else self.multi_class

    @property
    def _vote(self) -> KernelVote:
        """How kernels vote."""
        raise NotImplementedError

    def _is_text(self, X: Rows) -> bool:
        """Whether linear kernels may vote alone, and divide the classes one by one."""
        return is_text(X) and self.kernel in ("cv", "linear")

    def _is_linear(self, rows: TrainingRows) -> bool:
        """Whether there is no choice but a linear kernel, on sparse rows."""
        if self.kernel == "linear":
            return is_sparse(rows.X)
        if not (self._is_text(rows.X) and self.gamma == "cv"):
            return False
        machines = machines_of(len(rows.classes), self._division)
        return not self._vote.memory_for(largest_machine(rows.codes, machines)).is_enough

    def _first_look(self, rows: TrainingRows, groups: Any, monitor: Monitor) -> Look:
        """Settle whether to standardise, and whether linear kernels vote alone."""
        X, codes, classes, weights, _ = rows
        self._division_ = "ovr" if self._is_text(X) else "ovo"
        is_named = isinstance(self.kernel, str) and self.kernel != "precomputed"
        is_scaled = self.standardize is not False and self.kernel != "precomputed"
        settled = Look(is_scaled, self._is_linear(rows))
        has_choice = is_named and isinstance(self.gamma, str)
        chooses_scaling = has_choice and self.standardize == "auto" and is_open(X)
        is_small = (codes >= 0).sum() <= SAMPLE_ROWS  # all kernels can be tried on all rows
        chooses_kernel = self._is_text(X) and not (settled.is_linear or is_small)
        if not (chooses_scaling or (chooses_kernel and self.gamma == "cv")):
            return settled
        w = None if weights is None else moderate(weights)
        random = random_numbers(copy.deepcopy(self.random_state))
        sample = sample_rows(X, codes, w, self.cv, groups, random)
        seen = {False: sample.X} if chooses_scaling or not is_scaled else {}
        if is_scaled:
            with held_back():  # the scaling of all rows warns
                names = self.get_feature_names_out()
                scaling = find_scaling(sample.X, sample.weights, names)
            seen[True] = mapped(sample.X, scaling.transform)
        vote = self._vote
        found = first_look(
            sample,
            seen,
            _only_linear if settled.is_linear else partial(vote.plain_kernels, with_linear=True),
            machines_of(len(classes), self._division),
            vote.options,
            monitor,
        )
        if found is None:
            return settled
        is_linear = settled.is_linear or (chooses_kernel and found.is_linear)
        return replace(found, is_linear=is_linear)


def _only_linear(_: Rows) -> list[Kernel]:
    return [Kernel("linear")]
