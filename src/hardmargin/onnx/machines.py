"""Classifiers that are one expansion: from filled rows to classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardmargin.estimators._base.fitted import calibration_of, division_of, machines_in
from hardmargin.kernels import NAMED_KERNELS, Kernel, KernelSum, Rows, is_sparse
from hardmargin.onnx.expansion import expanded, linear
from hardmargin.onnx.graph import Graph
from hardmargin.onnx.probabilities import Outcome, calibrated, frequent, uncalibrated
from hardmargin.onnx.scaling import scaled, seen
from hardmargin.prediction import Machines
from hardmargin.selection.calibration import Calibration
from hardmargin.selection.frequencies import Frequencies
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


def check_size(support: Rows, kernels: Sequence[Kernel], coefficients: Any) -> None:
    """Refuse an expansion that no file can hold; warn of sparse rows that become large."""
    n_views = len({kernel.view for kernel in kernels})
    n_coefficients = coefficients.nnz if is_sparse(coefficients) else coefficients.size
    n_bytes = 8 * (n_views * support.shape[0] * support.shape[1] + n_coefficients)
    check_bytes(n_bytes, support.shape, was_sparse=is_sparse(support))


def check_bytes(n_bytes: int, shape: tuple[int, int], *, was_sparse: bool = False) -> None:
    """Refuse, or warn of, a part of this many bytes; `shape` is that of the support rows."""
    advice = "hardmargin.compress makes a model of fewer support rows"
    if n_bytes > MAX_BYTES:
        raise ValueError(
            f"This model would take {n_bytes / 1e9:.1f} GB in ONNX, which holds at most 2 GB: it "
            f"has {shape[0]:,} support rows of {shape[1]:,} columns, which ONNX stores as dense "
            f"rows; {advice}."
        )
    if was_sparse and n_bytes > MANY_BYTES:
        warn_caller(
            f"The sparse support rows are dense in ONNX, where the model takes "
            f"{n_bytes / 1e6:,.0f} MB; {advice}.",
            UserWarning,
        )


def classified(graph: Graph, rows: str, model: Any) -> Outcome:
    """Classify filled rows by a model that is one expansion."""
    machines = machines_in(model)
    margins = _margins(graph, scaled(graph, rows, machines.scaling), machines)
    calibration, n_classes = calibration_of(model), len(model.classes_)
    if isinstance(calibration, Calibration):
        return calibrated(graph, margins, calibration)
    if isinstance(calibration, Frequencies):
        return frequent(graph, margins, calibration)
    return uncalibrated(graph, margins, n_classes, division_of(model))


def _margins(graph: Graph, rows: str, machines: Machines) -> str:
    """Margins of all machines, of shape (n, n_machines); linear kernels are sums over columns."""
    kernels, support = kernels_of(machines.kernel), machines.support_vectors
    parts = []
    for view, weights in machines.linear:
        check_bytes(8 * weights.size, support.shape)
        parts.append(linear(graph, seen(graph, rows, support.shape[1], view), weights))
    used = [k for k, kernel in enumerate(kernels) if kernel.name != "linear"]
    if used:
        n, chosen = len(machines.support), [kernels[k] for k in used]
        coefficients = machines.coefficients
        if len(used) < len(kernels):
            coefficients = coefficients[:, np.concatenate([k * n + np.arange(n) for k in used])]
        check_size(support, chosen, coefficients)
        blocks = _blocks(machines)
        parts.append(expanded(graph, rows, support, chosen, coefficients, blocks, machines.dtype))
    parts.append(graph.constant(np.asarray(machines.intercepts, dtype=np.float64)))
    return graph.add_all(parts)


def _blocks(machines: Machines) -> list[NDArray[np.intp]]:
    """Support rows of each class, which take part in the same machines."""
    if len(machines.n_support) == 2:
        return [np.arange(len(machines.support))]
    order = np.asarray(machines.by_class, dtype=np.intp)
    return np.split(order, np.cumsum(machines.n_support)[:-1])
