"""Classifiers that are one expansion: from filled rows to classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.kernels import NAMED_KERNELS, Kernel, KernelSum, Rows, is_sparse
from hardmargin.onnx.expansion import expanded, linear
from hardmargin.onnx.graph import Graph
from hardmargin.onnx.probabilities import Outcome, calibrated, uncalibrated
from hardmargin.onnx.scaling import scaled
from hardmargin.selection.calibration import Calibration
from hardmargin.warn import warn_caller

#: What a file of ONNX can hold, with some room for the graph itself.
MAX_BYTES = 2_000_000_000

#: There is a warning if dense support rows take more bytes than this, where they were sparse.
MANY_BYTES = 100_000_000


def kernels_of(kernel: Kernel | KernelSum) -> tuple[Kernel, ...]:
    """Return the kernels of a model; refuse those that have no graph."""
    kernels = kernel.kernels if isinstance(kernel, KernelSum) else (kernel,)
    for one in kernels:
        if one.name not in NAMED_KERNELS:
            reason = "it is Python code" if one.name == "callable" else "the model holds no rows"
            raise ValueError(
                f"A {one.name} kernel cannot be exported to ONNX, as {reason}; fit with one of "
                f"the kernels {', '.join(NAMED_KERNELS)}."
            )
    return kernels


def check_size(support: Rows, kernel: Kernel | KernelSum, coefficients: Any) -> None:
    """Refuse a model that no file can hold; warn of sparse rows that become large."""
    n_views = len({one.view for one in kernels_of(kernel)})
    n_coefficients = coefficients.nnz if is_sparse(coefficients) else coefficients.size
    check_bytes(8 * (n_views * support.shape[0] * support.shape[1] + n_coefficients), support)


def check_bytes(n_bytes: int, support: Rows) -> None:
    """Do so for a model whose dense support rows and coefficients take that many bytes."""
    advice = "hardmargin.compress makes a model of fewer support rows"
    if n_bytes > MAX_BYTES:
        raise ValueError(
            f"This model would take {n_bytes / 1e9:.1f} GB in ONNX, which holds at most 2 GB: it "
            f"has {support.shape[0]:,} support rows of {support.shape[1]:,} columns, which are "
            f"dense there; {advice}."
        )
    if is_sparse(support) and n_bytes > MANY_BYTES:
        warn_caller(
            f"The sparse support rows are dense in ONNX, where the model takes "
            f"{n_bytes / 1e6:,.0f} MB; {advice}.",
            UserWarning,
        )


def classified(graph: Graph, rows: str, model: Any) -> Outcome:
    """Classify filled rows by a model that is one expansion."""
    margins = _margins(graph, scaled(graph, rows, model._scaling_), model)
    calibration, n_classes = model._calibration_, len(model.classes_)
    if isinstance(calibration, Calibration):
        return calibrated(graph, margins, calibration)
    return uncalibrated(graph, margins, n_classes, model.multi_class)


def _margins(graph: Graph, rows: str, model: Any) -> str:
    """Margins of all machines, of shape (n, n_machines)."""
    kernels = kernels_of(model._kernel_)
    if model._kernel_.name == "linear":
        sums = linear(graph, rows, model.coef_)
    else:
        check_size(model.support_vectors_, model._kernel_, model.dual_coef_)
        sums = expanded(
            graph,
            rows,
            model.support_vectors_,
            kernels,
            model.dual_coef_,
            _blocks(model),
            model._dtype_,
        )
    return graph.node("Add", sums, graph.constant(np.asarray(model.intercept_, dtype=np.float64)))


def _blocks(model: Any) -> list[NDArray[np.intp]]:
    """Support rows of each class, which take part in the same machines."""
    if len(model.classes_) == 2:
        return [np.arange(len(model.support_))]
    order = np.asarray(model._by_class_, dtype=np.intp)
    return np.split(order, np.cumsum(model.n_support_)[:-1])
