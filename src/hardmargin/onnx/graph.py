"""Graphs: nodes and constants of an ONNX model, written one by one.

Nodes are added by the name of their operator and by the names of their inputs; the name of the
output is returned, so that graphs read like expressions. A part that is repeated, over columns or
cells, is a `Body`: a graph of its own within a node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

#: Operators have the form used here since this version.
LEAST_OPSET = 15

#: Versions of operators of other domains; skl2onnx knows few of the later ones.
VERSIONS = {"ai.onnx.ml": 2}

#: Types of tensors, by what they hold.
TENSOR_TYPES = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "bool": TensorProto.BOOL,
}


class Graph(ABC):
    """What nodes and constants are added to."""

    @abstractmethod
    def nodes(
        self, kind: str, *inputs: str, n_outputs: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add a node of several outputs, and return their names."""

    @abstractmethod
    def constant(self, values: NDArray[Any]) -> str:
        """Add a constant."""

    def node(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node, and return the name of its output."""
        [output] = self.nodes(kind, *inputs, n_outputs=1, domain=domain, **attributes)
        return output

    def number(self, value: float) -> str:
        """Add a float64 number."""
        return self.constant(np.array(value, dtype=np.float64))

    def integers(self, *values: int) -> str:
        """Add a list of integers."""
        return self.constant(np.array(values, dtype=np.int64))

    def cast(self, tensor: str, dtype: str) -> str:
        """Change the type of a tensor."""
        return self.node("Cast", tensor, to=TENSOR_TYPES[dtype])

    def columns(self, matrix: str, which: NDArray[Any]) -> str:
        """Take columns of a matrix."""
        return self.node("Gather", matrix, self.constant(which.astype(np.int64)), axis=1)

    def n_rows(self, tensor: str) -> str:
        """Count the rows of a tensor: a list of one integer."""
        return self.node("Gather", self.node("Shape", tensor), self.integers(0))

    def zeros(self, *lengths: str) -> str:
        """Make a float64 array of zeros; each length is a list of one integer."""
        shape = self.node("Concat", *lengths, axis=0) if len(lengths) > 1 else lengths[0]
        zero = numpy_helper.from_array(np.zeros(1))
        return self.node("ConstantOfShape", shape, value=zero)

    def add_all(self, tensors: Sequence[str]) -> str:
        """Add tensors up."""
        total = tensors[0]
        for tensor in tensors[1:]:
            total = self.node("Add", total, tensor)
        return total

    def side_by_side(self, matrices: Sequence[str]) -> str:
        """Put matrices beside each other."""
        return matrices[0] if len(matrices) == 1 else self.node("Concat", *matrices, axis=1)


class MainGraph(Graph):
    """The graph that skl2onnx makes.

    Parameters
    ----------
    scope, container : Any
        What skl2onnx hands to converters.
    prefix : str
        The names of nodes begin with it.
    """

    def __init__(self, scope: Any, container: Any, prefix: str) -> None:
        self._scope, self._container, self._prefix = scope, container, prefix

    def nodes(
        self, kind: str, *inputs: str, n_outputs: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add a node of several outputs, and return their names."""
        outputs = [self._name(kind) for _ in range(n_outputs)]
        self._add(kind, list(inputs), outputs, domain, attributes)
        return outputs

    def constant(self, values: NDArray[Any]) -> str:
        """Add a constant."""
        name = self._name("constant")
        if values.dtype.kind in "OU":
            encoded = [str(value).encode() for value in values.ravel()]
            self._container.add_initializer(name, TensorProto.STRING, values.shape, encoded)
        else:
            tensor = numpy_helper.from_array(np.asarray(values, order="C"), name)
            self._container.add_initializer(name, tensor.data_type, values.shape, tensor)
        return name

    def result(self, tensor: str, output: str) -> None:
        """Give a tensor the name of an output."""
        self._add("Identity", [tensor], [output], "", {})

    def _name(self, kind: str) -> str:
        return str(self._scope.get_unique_variable_name(f"{self._prefix}_{kind}"))

    def _add(
        self, kind: str, inputs: list[str], outputs: list[str], domain: str, attributes: Any
    ) -> None:
        self._container.add_node(
            kind,
            inputs,
            outputs,
            op_domain=domain,
            op_version=VERSIONS.get(domain),
            name=self._scope.get_unique_operator_name(f"{self._prefix}_{kind}"),
            **attributes,
        )


class Body(Graph):
    """A graph within a node, with constants of its own.

    It may use the tensors of the graph around it by their names, but not its constants: skl2onnx
    gives those other names where two are equal.

    Parameters
    ----------
    prefix : str
        All names begin with it: they must differ from those of the graph around it.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._inputs: list[Any] = []

    def nodes(
        self, kind: str, *inputs: str, n_outputs: int, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Add a node of several outputs, and return their names."""
        stem = f"{self._prefix}_{kind}{len(self._nodes)}"
        outputs = [f"{stem}_{i}" for i in range(n_outputs)]
        node = helper.make_node(kind, inputs, outputs, name=stem, domain=domain, **attributes)
        self._nodes.append(node)
        return outputs

    def constant(self, values: NDArray[Any]) -> str:
        """Add a constant."""
        name = f"{self._prefix}_constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def input(self, dtype: str, n_dimensions: int) -> str:
        """Add an input."""
        name = f"{self._prefix}_input{len(self._inputs)}"
        shape = [None] * n_dimensions
        self._inputs.append(helper.make_tensor_value_info(name, TENSOR_TYPES[dtype], shape))
        return name

    def finished(self, *outputs: tuple[str, str, int]) -> GraphProto:
        """Return the graph; an output is a tensor, its type and its number of dimensions."""
        values = [
            helper.make_tensor_value_info(name, TENSOR_TYPES[dtype], [None] * n_dimensions)
            for name, dtype, n_dimensions in outputs
        ]
        return helper.make_graph(
            self._nodes, self._prefix, self._inputs, values, initializer=self._constants
        )
