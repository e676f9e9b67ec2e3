"""Objects from a skops file, read with nothing imported but what the objects are made of.

skops itself imports all of scikit-learn to know the names of its estimators, which takes longer
than everything else. Types are trusted here as there: those that models are made of, and
scikit-learn's public estimators. All names are checked before any object is built. What only a
user can vouch for, as it runs code, is left to skops.

A file is a tree of nodes: a type, the name of a loader, and what that needs.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from hardmargin.io.parts import Parts

#: The entry of a file that has the tree.
SCHEMA = "schema.json"

#: Files of a later version of the format are left to skops.
PROTOCOL = 2

#: Modules of scikit-learn with public estimators, besides those that it lists itself.
PUBLIC_MODULES = ("sklearn.feature_extraction.image", "sklearn.feature_extraction.text")

#: Types that a loader builds without further ado.
OF_LOADERS = {
    "BytearrayNode": ("builtins.bytearray",),
    "BytesNode": ("builtins.bytes",),
    "DefaultDictNode": ("collections.defaultdict",),
    "DictNode": ("builtins.dict", "collections.OrderedDict"),
    "DTypeNode": ("numpy.dtype",),
    "ListNode": ("builtins.list",),
    "MaskedArrayNode": ("numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"),
    "NdArrayNode": ("numpy.ndarray",),
    "RandomStateNode": ("numpy.random.mtrand.RandomState",),
    "SetNode": ("builtins.set",),
    "SparseMatrixNode": (),
    "TupleNode": ("builtins.tuple",),
    "TypeNode": tuple(
        f"builtins.{name}" for name in ("int", "float", "str", "bool", "list", "set", "tuple")
    ),
}

#: Loaders that name no type which is imported.
PLAIN_LOADERS = ("CachedNode", "JsonNode", "SliceNode")

#: Parts of scikit-learn's estimators, which have no public name.
LOSSES = {
    "sklearn._loss._loss": [
        "CyAbsoluteError",
        "CyExponentialLoss",
        "CyHalfBinomialLoss",
        "CyHalfGammaLoss",
        "CyHalfMultinomialLoss",
        "CyHalfPoissonLoss",
        "CyHalfSquaredError",
        "CyHalfTweedieLoss",
        "CyHalfTweedieLossIdentity",
        "CyHuberLoss",
        "CyPinballLoss",
    ],
    "sklearn.linear_model._sgd_fast": [
        "EpsilonInsensitive",
        "Hinge",
        "Huber",
        "Log",
        "ModifiedHuber",
        "SquaredEpsilonInsensitive",
        "SquaredHinge",
        "SquaredLoss",
    ],
}
INTERNAL = {
    "sklearn._loss.link": [
        "HalfLogitLink",
        "IdentityLink",
        "Interval",
        "LogitLink",
        "LogLink",
        "MultinomialLogit",
    ],
    "sklearn._loss.loss": [
        "AbsoluteError",
        "ExponentialLoss",
        "HalfBinomialLoss",
        "HalfGammaLoss",
        "HalfMultinomialLoss",
        "HalfPoissonLoss",
        "HalfSquaredError",
        "HuberLoss",
        "PinballLoss",
    ],
    "sklearn.ensemble._hist_gradient_boosting.binning": ["_BinMapper"],
}

Node = dict[str, Any]


class Objects:
    """What a file holds.

    Parameters
    ----------
    parts : Parts
        The file.
    known : collection of str
        Names of types that may be built.
    vouched : collection of str
        Names of those that may run code.
    """

    def __init__(self, parts: Parts, known: Collection[str], vouched: Collection[str]) -> None:
        self._parts = parts
        self._known, self._vouched = set(known), set(vouched)
        self._tree = parts.json(SCHEMA)
        self._built: dict[Any, Any] = {}
        self._files: dict[str, Any] = {}
        self._loaders: dict[str, Callable[[Node], Any]] = {
            "BytearrayNode": lambda node: self._parts.read(node["file"]),
            "BytesNode": lambda node: bytes(self._parts.read(node["file"])),
            "CachedNode": self._cached,
            "DefaultDictNode": self._default_dict,
            "DictNode": self._dict,
            "DTypeNode": lambda node: self._of(node["content"]).dtype,
            "FunctionNode": lambda node: _function(node) or _found(node),
            "JsonNode": lambda node: json.loads(node["content"]),
            "ListNode": lambda node: self._collection(node, list),
            "LossNode": self._loss,
            "MaskedArrayNode": self._masked,
            "NdArrayNode": self._array,
            "ObjectNode": self._object,
            "RandomStateNode": self._random_state,
            "SetNode": lambda node: self._collection(node, set),
            "SliceNode": lambda node: slice(*map(node["content"].get, ("start", "stop", "step"))),
            "SparseMatrixNode": self._sparse,
            "TupleNode": self._tuple,
            "TypeNode": _found,
        }

    def untrusted(self) -> list[str]:
        """Names of types that may not be built."""
        nodes = _nodes(self._tree)
        return sorted({_name(node) for node in nodes if not self._may_build(node)})

    def are_for_skops(self) -> bool:
        """Whether only skops can build them."""
        protocol = self._tree["protocol"]
        loaders = {node["__loader__"] for node in _nodes(self._tree)}
        return protocol > PROTOCOL or not loaders <= self._loaders.keys()

    def build(self) -> Any:
        """Build them all, and return the outermost."""
        return self._of(self._tree)

    def _may_build(self, node: Node) -> bool:
        loader, name = node["__loader__"], _name(node)
        is_known = loader in self._loaders and name in self._known
        return is_known or name in self._vouched or is_trusted(node)

    def _of(self, node: Node) -> Any:
        """Build what a node describes, once."""
        number = node.get("__id__")
        if number and number in self._built:
            return self._built[number]
        built = self._loaders[node["__loader__"]](node)
        if number:
            self._built[number] = built
        return built

    def _cached(self, node: Node) -> Any:
        raise ValueError(f"there is no object {node.get('__id__')!r}")

    def _all(self, nodes: list[Node]) -> list[Any]:
        return [self._of(node) for node in nodes]

    def _collection(self, node: Node, kind: type[Any]) -> Any:
        return _found(node, kind)(self._all(node["content"]))

    def _tuple(self, node: Node) -> Any:
        kind, content = _found(node, tuple), self._all(node["content"])
        return kind(*content) if hasattr(kind, "_fields") else tuple(content)

    def _dict(self, node: Node) -> Any:
        content = _found(node, dict)()
        kinds = self._of(node["key_types"])
        for kind, (key, value) in zip(kinds, node["content"].items(), strict=False):
            content[kind(key)] = self._of(value)
        return content

    def _default_dict(self, node: Node) -> Any:
        content = _found(node, dict)()
        content.update(self._of(node["content"]["main"]))
        content.default_factory = self._of(node["content"]["default_factory"])
        return content

    def _object(self, node: Node) -> Any:
        kind = _found(node)
        instance = kind.__new__(kind)
        state = None if node.get("content") is None else self._of(node["content"])
        _restore(instance, state)
        return instance

    def _loss(self, node: Node) -> Any:
        instance = _found(node)(*self._of(node["__reduce__"]["args"]))
        _restore(instance, self._of(node["content"]) or None)
        return instance

    def _array(self, node: Node) -> Any:
        if node["type"] == "json":
            return _of_objects(node["content"], self._of(node["shape"]), self._of)
        array = self._file(node["file"], self._parts.array)
        return array if _name(node) == "numpy.ndarray" else _found(node)(array)

    def _sparse(self, node: Node) -> Any:
        return self._file(node["file"], self._parts.sparse)

    def _file(self, name: str, read: Callable[[str], Any]) -> Any:
        """Read a part once: many nodes may name it."""
        if name not in self._files:
            self._files[name] = read(name)
        return self._files[name]

    def _masked(self, node: Node) -> Any:
        return np.ma.MaskedArray(
            self._of(node["content"]["data"]), self._of(node["content"]["mask"])
        )

    def _random_state(self, node: Node) -> Any:
        random_state = np.random.RandomState()
        random_state.set_state(self._of(node["content"]))
        return random_state


def is_trusted(node: Node) -> bool:
    """Whether anybody may have a node of a type built by a loader."""
    loader, name = node["__loader__"], _name(node)
    if loader in PLAIN_LOADERS or name in OF_LOADERS.get(loader, ()):
        return True
    match loader:
        case "FunctionNode":
            return _function(node) is not None
        case "LossNode":
            return node["__class__"] in LOSSES.get(node["__module__"], ())
        case "NdArrayNode" | "TypeNode":
            return _is_scalar(node)
        case "ObjectNode":
            return _is_estimator(node) or node["__class__"] in INTERNAL.get(node["__module__"], ())
    return False


def _nodes(tree: Any) -> Iterator[Node]:
    """Give all nodes of a tree; whatever its depth."""
    todo = [tree]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            if isinstance(value.get("__loader__"), str):
                yield value
            todo.extend(value.values())
        elif isinstance(value, list):
            todo.extend(value)


def _name(node: Node) -> str:
    name = f"{node['__module__']}.{node['__class__']}"
    return f"{name}.{node['content']['func']}" if node["__loader__"] == "MethodNode" else name


def _found(node: Node, kind: type[Any] | None = None) -> Any:
    """Import what a node names; it must be of a kind."""
    found = getattr(importlib.import_module(node["__module__"]), node["__class__"])
    if kind is not None and not (isinstance(found, type) and issubclass(found, kind)):
        raise ValueError(f"{_name(node)} is no {kind.__name__}")
    return found


def _restore(instance: Any, state: Any) -> None:
    if state is None:
        return
    if hasattr(instance, "__setstate__"):
        instance.__setstate__(state)
    else:
        instance.__dict__.update(state)


def _function(node: Node) -> Any:
    """Find a universal function of numpy or SciPy by its public name."""
    package = node["__module__"].partition(".")[0]
    if package not in ("numpy", "scipy"):
        return None
    public = importlib.import_module("numpy" if package == "numpy" else "scipy.special")
    found = getattr(public, node["__class__"], None)
    return found if isinstance(found, np.ufunc) else None


def _is_scalar(node: Node) -> bool:
    """Whether a node names a type of numpy's numbers."""
    found = getattr(np, node["__class__"], None) if node["__module__"] == "numpy" else None
    return isinstance(found, type) and issubclass(found, np.generic)


def _is_estimator(node: Node) -> bool:
    """Whether a node names an estimator of scikit-learn, which has a public name."""
    if node["__module__"].partition(".")[0] != "sklearn":
        return False
    import sklearn
    from sklearn.base import BaseEstimator

    parts = node["__module__"].split(".")
    n_public = next((k for k, part in enumerate(parts) if part.startswith("_")), len(parts))
    public = ".".join(parts[:n_public])
    if public not in (*PUBLIC_MODULES, *(f"sklearn.{name}" for name in sklearn.__all__)):
        return False
    try:
        found = getattr(importlib.import_module(public), node["__class__"], None)
    except ModuleNotFoundError:
        return False
    return (
        isinstance(found, type)
        and issubclass(found, BaseEstimator)
        and not inspect.isabstract(found)
        and found.__module__ == node["__module__"]
    )


def _of_objects(nodes: list[Any], shape: tuple[int, ...], build: Callable[[Node], Any]) -> Any:
    """Make an array of objects; rows are lists within lists."""
    for _ in shape[1:]:
        nodes = [item for row in nodes for item in row["content"]]
    array = np.empty(len(nodes), dtype=object)
    for place, node in enumerate(nodes):
        array[place] = build(node)
    return array.reshape(shape)
