"""Predictions on collections, chunk by chunk."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.sparse as sp
from dask.delayed import Delayed
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from hardmargin.cells import Layer
from hardmargin.cells.experts import SampleVote
from hardmargin.cells.seen import as_cells_see
from hardmargin.dask.cluster import Cluster, held, shipped
from hardmargin.dask.expressions import map_delayed
from hardmargin.dask.layer import LayerOnCluster
from hardmargin.dask.partitions import facts_of, in_order, partitions, refuse_other_columns
from hardmargin.estimators._base.fitted import filled_rows
from hardmargin.estimators.ensemble import EnsembleSVC
from hardmargin.kernels import FloatArray, Rows, is_sparse
from hardmargin.resources import single_threaded_blas
from hardmargin.scaling import MixedScaling, Scaling
from hardmargin.selection.calibration import winning_codes
from hardmargin.selection.mixture import LogProbabilities, mixed

#: What can be predicted.
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")


def predict(model: BaseEstimator, X: Any, *, method: str = "predict") -> Any:
    """Apply a fitted estimator to a collection, chunk by chunk.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of this package or of scikit-learn.
    X : dask array or data frame
        Rows.
    method : {"predict", "predict_proba", "predict_log_proba", "decision_function"}
        What to predict.

    Returns
    -------
    dask array; for a data frame, a series or a data frame with its index
        Nothing is computed yet.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from hardmargin import GreedySVC
    >>> from hardmargin.dask import predict
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GreedySVC().fit(X, y)
    >>> predict(model, da.from_array(X, chunks=(50, 4)))[:5].compute()
    array([0, 0, 0, 0, 0])
    """
    check_is_fitted(model)
    if hasattr(model, "to_local"):  # it is on the cluster already
        return getattr(model, method)(X)
    shared = shipped(model)
    return collected(model, X, method, lambda part: dask.delayed(_call)(shared, part, method))


def collected(model: Any, X: Any, method: str, of_part: Callable[[Delayed], Delayed]) -> Any:
    """Put predictions of all partitions together, as a collection like X."""
    width, dtype = _shape_of(model, method)
    if not isinstance(X, da.Array | dd.DataFrame) or X.ndim != 2:
        raise TypeError(
            "X must be a dask array of two dimensions or a dask data frame, got "
            f"{type(X).__name__}; rows in memory need no cluster."
        )
    empty = _in_order_of_fit(X._meta, model) if isinstance(X, dd.DataFrame) else None
    if hasattr(model, "n_features_in_"):  # before anything goes to the workers
        rows = np.empty((0, X.shape[1])) if empty is None else empty
        validate_data(model, rows, reset=False, skip_check_array=True)
    if isinstance(X, dd.DataFrame):
        columns = list(model.classes_) if width else None
        nothing = _with_index(np.empty((0, *width), dtype=dtype), X._meta, columns)

        def with_index(part: Delayed, number: int) -> Delayed:
            whole = dask.delayed(_as_declared)(part, empty, number)
            return dask.delayed(_with_index)(of_part(whole), whole, columns)

        return map_delayed(X, with_index, nothing)
    arrays = [
        da.from_delayed(of_part(part), (n, *width), dtype=dtype)
        for part, n in zip(partitions(X), X.chunks[0], strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


def _in_order_of_fit(empty: pd.DataFrame, model: Any) -> pd.DataFrame:
    """Put columns in the order of those that a model was fitted on, if they are the same."""
    known = list(getattr(model, "feature_names_in_", []))
    is_same = len(known) == empty.shape[1] and set(known) == set(empty.columns)
    return empty[known] if is_same else empty


def _as_declared(part: Any, empty: pd.DataFrame, number: int) -> Any:
    """Return a partition with its columns in order; refuse other columns, and other types."""
    part = in_order(part, list(empty.columns), f"Partition {number} of X")
    if len(part):
        refuse_other_columns(empty, [(number, facts_of(part))])
    return part


def _with_index(values: NDArray[Any], part: Any, columns: list[Any] | None) -> Any:
    """Give predictions the index of their rows."""
    if columns is None:
        return pd.Series(values, index=part.index)
    return pd.DataFrame(values, index=part.index, columns=columns)


def _call(shared: bytes, part: Any, method: str) -> NDArray[Any]:
    model = pickle.loads(shared)
    if part.shape[0] == 0:
        return _nothing(model, method)
    return np.asarray(getattr(model, method)(part))


def _nothing(model: BaseEstimator, method: str) -> NDArray[Any]:
    """Predictions of no rows."""
    width, dtype = _shape_of(model, method)
    return np.empty((0, *width), dtype=dtype)


def _shape_of(model: Any, method: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape of a prediction, without the rows, and its type."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    classes = getattr(model, "classes_", None)
    if method == "predict":
        return (), np.dtype(np.float64) if classes is None else np.asarray(classes).dtype
    n_classes = 1 if classes is None else len(classes)
    is_flat = method == "decision_function" and n_classes <= 2
    return () if is_flat else (n_classes,), np.dtype(np.float64)


class Voters(NamedTuple):
    """What predictions need besides the cells."""

    model: EnsembleSVC
    scaling: Scaling | MixedScaling | None
    prior: FloatArray
    weights: FloatArray
    whole: SampleVote | None
    class_weights: FloatArray | None


def voted(
    voters: Voters, layers: Sequence[LayerOnCluster], cluster: Cluster, X: Any, method: str
) -> Any:
    """Predict with cells that are on the cluster: queries are sent to them, piece by piece.

    Parameters
    ----------
    voters : Voters
        The other experts, and how all of them vote.
    layers : sequence of LayerOnCluster
        The trees.
    cluster : Cluster
        Where they are.
    X : dask array or data frame
        Queries.
    method : str
        What to predict.
    """
    cluster.check()
    shared = shipped(voters)
    plans = [
        (shipped((own.cuts, own.bundle_of)), [held(part, cluster) for part in own.parts])
        for own in layers
    ]

    def of_part(part: Delayed) -> Delayed:
        queries = dask.delayed(_queries)(part, shared)
        logs = []
        for plan, parts in plans:
            pieces = dask.delayed(_split_queries, nout=len(parts))(queries, plan)
            logs += [dask.delayed(_logs)(pieces[b], own) for b, own in enumerate(parts)]
        sizes = [len(parts) for _, parts in plans]
        # Not as lists, for which Dask would look at the graph: the cluster may be gone by then.
        return dask.delayed(_mixture)(queries, shared, method, sizes, *logs)

    return collected(voters.model, X, method, of_part)


class _Queries(NamedTuple):
    """Queries as they came, and as cells see them; None if there are none."""

    raw: Rows
    seen: Rows


class _Piece(NamedTuple):
    """Queries that belong to a bundle: which, their cells, and the rows."""

    at: NDArray[np.intp]
    cells: NDArray[np.int32]
    seen: Rows


def _queries(part: Any, voters: bytes) -> _Queries | None:
    """Validate, fill and scale queries."""
    if part.shape[0] == 0:
        return None
    model, scaling, *_ = pickle.loads(voters)
    raw = filled_rows(model, part)
    scaled = raw if scaling is None else scaling.transform(raw)
    return _Queries(raw, as_cells_see(scaled))


def _split_queries(queries: _Queries | None, plan: bytes) -> list[_Piece | None]:
    cuts, bundle_of = pickle.loads(plan)
    n_bundles = int(bundle_of.max()) + 1
    if queries is None:
        return [None] * n_bundles
    cells = cuts.route(queries.seen)
    bundles = bundle_of[cells]
    places = [np.flatnonzero(bundles == b) for b in range(n_bundles)]
    return [_Piece(at, cells[at], queries.seen[at]) if len(at) else None for at in places]


def _logs(
    piece: _Piece | None, part: tuple[Layer, Rows, NDArray[np.intp]]
) -> tuple[NDArray[np.intp], NDArray[np.float32]] | None:
    if piece is None:
        return None
    layer, support, numbers = part
    seen = piece.seen
    if is_sparse(seen) != is_sparse(support):
        seen = seen.toarray() if is_sparse(seen) else sp.csr_array(seen)
    cells = np.searchsorted(numbers, piece.cells).astype(np.int32)
    with single_threaded_blas():
        return piece.at, layer.log_probabilities_in(cells, seen, support)


def _mixture(
    queries: _Queries | None, shipped: bytes, method: str, sizes: Sequence[int], *logs: Any
) -> NDArray[Any]:
    """Mix the log-probabilities of all experts; `sizes` says how many `logs` each layer has."""
    voters: Voters = pickle.loads(shipped)
    if queries is None:
        return _nothing(voters.model, method)
    every, found = [], iter(logs)
    for size in sizes:
        own = np.empty((queries.raw.shape[0], len(voters.prior)), dtype=np.float32)
        for at, of_cells in filter(None, islice(found, size)):
            own[at] = of_cells
        every.append(own)
    if voters.whole is not None:
        every.append(voters.whole.log_probabilities(queries.raw, voters.prior))
    mixture = mixed(every, voters.weights)
    if voters.class_weights is not None:
        mixture = log_softmax(mixture + np.log(voters.class_weights), axis=1)
    if method == "predict_log_proba":
        return mixture
    if method == "predict_proba":
        return LogProbabilities().probabilities(mixture)
    scores = LogProbabilities().scores(mixture)
    if method == "predict":
        return np.asarray(voters.model.classes_[winning_codes(scores)])
    return scores[:, 1] if scores.shape[1] == 2 else scores
