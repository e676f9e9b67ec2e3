"""EnsembleSVC on the workers of a Dask cluster."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import dask
import dask.dataframe as dd
import distributed
import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted, validate_data

from hardmargin.cells import CellRows, CellRules, Cuts, LayerInTraining
from hardmargin.cells.experts import Mixture
from hardmargin.dask.cluster import Cluster, DaskRows, identity, side_by_side, time_limit
from hardmargin.dask.layer import DaskLayer, LayerOnCluster
from hardmargin.dask.partitions import Labels, values_of
from hardmargin.dask.predictions import Voters, predict, voted
from hardmargin.estimators._base.categories import find_categories_in_parts
from hardmargin.estimators._base.labels import check_label_type, labelled
from hardmargin.estimators._base.one_model import fitted_attributes, on_one_model
from hardmargin.estimators._base.self_tuning import SelfTuningClassifier
from hardmargin.estimators.ensemble import EnsembleSVC
from hardmargin.kernels import Rows, is_sparse
from hardmargin.kernels.blocks import stacked
from hardmargin.monitor import Monitor
from hardmargin.resources import single_threaded_blas
from hardmargin.selection.fitted_vote import FittedVote, fit_vote
from hardmargin.selection.folds import Folds
from hardmargin.selection.plan import MAX_STORED_ROWS, Budget, Plan, plan
from hardmargin.selection.rows import TrainingRows
from hardmargin.warn import Warned, held_back, warn_caller

Result = TypeVar("Result")


class DaskEnsembleSVC(SelfTuningClassifier):
    """EnsembleSVC on the workers of a Dask cluster.

    On the same rows in the same order, the model is that of :class:`hardmargin.EnsembleSVC`, except
    for the rounding of sums. Where that would have no cells (up to 10,000 rows, text, or a given
    kernel), one worker trains it.

    Parameters
    ----------
    client : distributed.Client, optional
        The cluster; None is the current client.
    **parameters
        Those of :class:`hardmargin.EnsembleSVC`. `max_time` ends the training of cells; it does not
        reduce the rows. `memory_limit` is that of the client and of every task. `checkpoint` is a
        file on the client, from which the same fit resumes on any cluster.

    Attributes
    ----------
    classes_, experts_, relevance_, feature_importances_
        As in EnsembleSVC.
    cv_log_loss_, cv_error_, cv_log_loss_std_error_, cv_error_std_error_
        As in EnsembleSVC.
    n_features_in_, feature_names_in_, n_samples_fit_
        As in EnsembleSVC.

    See Also
    --------
    predict : Predictions of any fitted estimator on collections.

    Notes
    -----
    Workers keep the training rows and, for every tree, the rows as its cells see them, in float32.
    The client keeps 12 bytes per row, and 12 more for every tree. Partitions should have 10,000 to
    1,000,000 rows. With `checkpoint`, the client also keeps the machines of all cells during `fit`.

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from sklearn.datasets import make_moons
    >>> from hardmargin.dask import DaskEnsembleSVC
    >>> X, y = make_moons(12_000, noise=0.2, random_state=0)
    >>> dX, dy = da.from_array(X, chunks=(3_000, 2)), da.from_array(y, chunks=3_000)
    >>> with Client(processes=False, dashboard_address=":0") as client:  # doctest: +SKIP
    ...     clf = DaskEnsembleSVC(client=client).fit(dX, dy)
    ...     print(clf.predict(dX)[:5].compute())
    [1 0 0 0 0]
    """

    _relevance_needs = EnsembleSVC._relevance_needs

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **EnsembleSVC._parameter_constraints,
        "client": [distributed.Client, None],
    }

    #: The experts, whose cells are on the cluster; None for a single machine.
    _mixture_: _Fitted | None = None

    def __init__(self, *args: Any, client: Any = None, **parameters: Any) -> None:
        self.__dict__.update(EnsembleSVC(*args, **parameters).get_params(deep=False))
        self.client = client

    # scikit-learn, editors and notebooks read the parameters here.
    __init__.__signature__ = inspect.signature(EnsembleSVC.__init__).replace(  # type: ignore[attr-defined]
        parameters=[
            *inspect.signature(EnsembleSVC.__init__).parameters.values(),
            inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None),
        ]
    )

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params(deep=False))  # on the same cluster

    def __getstate__(self) -> Any:
        raise TypeError(
            "A DaskEnsembleSVC refers to its cluster and cannot be saved; save to_local(), which "
            "is an ordinary EnsembleSVC."
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train on a collection.

        Parameters
        ----------
        X : dask array or data frame
            Training rows. Chunks of arrays may be sparse matrices of SciPy.
        y : dask array or series
            Labels of the same rows, in the same order.
        sample_weight : dask array or series, or (n_samples,) array, optional
            Row weights.
        groups : dask array or series, or (n_samples,) array, optional
            Group of each row, for a splitter given as `cv`.

        Returns
        -------
        self

        Raises
        ------
        ConnectionError
            If the scheduler is lost. With `checkpoint`, the same call resumes on another cluster.
        """
        with self._fitting() as monitor:
            cluster = Cluster(self._client())
            table, labels, weights, groups = side_by_side(
                X, y, cluster, sample_weight=sample_weight, groups=groups
            )
            random = self._new_generator()
            rows = self._read_blocks(X, table, labels, weights, groups, random)
            with self._resumed(rows, groups, monitor):
                self.n_samples_fit_ = self._fit_on(cluster, rows, groups, random, monitor)
        return self

    def _fit_on(
        self,
        cluster: Cluster,
        rows: TrainingRows,
        groups: Any,
        random: np.random.RandomState,
        monitor: Monitor,
    ) -> int:
        """Train on rows that have been read; return how many of them the model has seen."""
        model, workplace = self._bare(), OnCluster(cluster)  # it has read the table
        first = plan(rows, model, Budget.of(self.memory_limit))
        mixture = model._fit_at(workplace, rows, groups, random, monitor, first)
        if mixture is not None:
            trees = [tree.on_cluster() for tree in mixture.layers if isinstance(tree, DaskLayer)]
            self._mixture_ = _Fitted(mixture, rows._replace(X=None), trees)
        self.__dict__.update(fitted_attributes(model))
        return rows.n_rows if mixture is None else mixture.n_known

    @on_one_model
    def predict(self, X: Any) -> Any:
        """Predict the class of every row of a collection, lazily."""
        return self._predicted(X, "predict")

    @on_one_model
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, lazily; columns in the order of ``classes_``."""
        return self._predicted(X, "predict_proba")

    @on_one_model
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, lazily."""
        return self._predicted(X, "predict_log_proba")

    @on_one_model
    def decision_function(self, X: Any) -> Any:
        """Scores of rows, lazily."""
        return self._predicted(X, "decision_function")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose class is predicted."""
        cluster, collections = Cluster(self._client()), [self.predict(X), y]
        found, truth = cluster.results(cluster.compute(collections))
        return float(accuracy_score(truth, found, sample_weight=_of_rows(sample_weight, "weights")))

    @on_one_model
    def to_local(self) -> EnsembleSVC:
        """Gather the model: an ordinary EnsembleSVC, which can be saved and exported.

        It has all training rows.
        """
        check_is_fitted(self)
        model = self._bare()
        if self._mixture_ is not None:
            mixture, rows = self._mixture_.mixture, self._mixture_.rows
            X = stacked(mixture.seen.X.each(identity))
            layers = list(mixture.layers)  # which storing empties
            gathered = replace(mixture, layers=layers, seen=mixture.seen._replace(X=X))
            model._store_experts(gathered, rows)
        return model

    def _client(self) -> distributed.Client:
        try:
            return distributed.get_client() if self.client is None else self.client
        except ValueError:
            raise ValueError(
                "There is no Dask client: make one, client = distributed.Client(address), or pass "
                "DaskEnsembleSVC(client=client)."
            ) from None

    def _bare(self) -> EnsembleSVC:
        """Return an ordinary estimator, with the attributes that do not refer to the cluster."""
        own = {name: getattr(self, name) for name in EnsembleSVC._get_param_names()}
        model = EnsembleSVC(**own)
        known = fitted_attributes(self)
        model.__dict__.update({k: v for k, v in known.items() if k != "_mixture_"})
        return model

    def _read_blocks(
        self,
        X: Any,
        table: DaskRows,
        labels: Sequence[Labels],
        sample_weight: Any,
        groups: Any,
        random: np.random.RandomState,
    ) -> TrainingRows:
        """Validate a table, turn its categories into numbers, and fill its missing numbers."""
        empty = X._meta if isinstance(X, dd.DataFrame) else np.empty((0, X.shape[1]))
        features = self.categorical_features
        self._categories_ = find_categories_in_parts(empty, features, table.each)
        validate_data(self, empty, skip_check_array=True)
        numbers = table.map(partial(_read, self._bare())).kept()
        numbers = _alike(numbers)
        classes = np.unique(np.concatenate([own.classes for own in labels]))
        check_label_type(classes)
        codes = np.concatenate([np.searchsorted(classes, own.classes)[own.codes] for own in labels])
        rows = labelled(numbers, classes, codes, sample_weight, type(self).__name__)
        rows = self._filled(rows, groups, random)
        filled = replace(rows.X.kept(), n_columns=len(self.get_feature_names_out()))
        return rows._replace(X=filled)

    @property
    @on_one_model
    def experts_(self) -> NDArray[Any]:
        """What votes: kind, rows, cells, weight, and the log-loss on rows held out."""
        check_is_fitted(self)
        return self._bare().experts_ if self._mixture_ is None else self._mixture_.mixture.table

    def _predicted(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        model = self._bare()
        if self._mixture_ is None:
            return predict(model, X, method=method)
        mixture = self._mixture_.mixture
        cluster: Cluster = mixture.seen.X.cluster
        voters = Voters(
            model,
            mixture.scaling,
            mixture.prior,
            mixture.weights,
            mixture.whole,
            mixture.class_weights,
        )
        return voted(voters, self._mixture_.layers, cluster, X, method)


class OnCluster(NamedTuple):
    """The workplace of rows on a cluster."""

    cluster: Cluster

    def begin_layer(self, seen: CellRows, cuts: Cuts, rules: CellRules) -> LayerInTraining:
        """Begin a tree whose cells are learned on the workers."""
        return DaskLayer(cuts, seen, rules)

    def fit_sample(
        self, rows: TrainingRows, own: Plan, folds: Folds | None, seed: int, monitor: Monitor
    ) -> FittedVote:
        """Train the vote on a sample, on one worker."""
        arguments = pickle.dumps((rows, own, folds, seed, monitor.seconds_left))

        def fit() -> Any:
            return self._result(self.cluster.submit(_fit_sample_of, arguments), monitor)

        fitted: FittedVote
        fitted, caught = monitor.once("vote on a sample", fit)
        _warn_again(caught)
        return fitted

    def fit_vote(
        self,
        rows: TrainingRows,
        own: Plan,
        folds: Folds | None,
        random: np.random.RandomState,
        monitor: Monitor,
    ) -> FittedVote:
        """Train one vote, on a worker that gets all rows."""
        blocks: DaskRows = rows.X
        n_rows = blocks.shape[0]
        if n_rows > MAX_STORED_ROWS:
            warn_caller(
                f"These rows and parameters allow no cells, so one worker holds all {n_rows:,} "
                "rows.",
                UserWarning,
            )
        arguments = (rows._replace(X=None), own, folds, random, monitor.seconds_left)

        def fit() -> Any:
            task = self.cluster.submit(_fit_vote_of, blocks.blocks, pickle.dumps(arguments))
            return self._result(task, monitor)

        fitted: FittedVote
        fitted, used, caught = monitor.once("vote", fit)
        random.set_state(used.get_state())  # the worker had a copy
        _warn_again(caught)
        return fitted

    def _result(self, task: Any, monitor: Monitor) -> Any:
        """Wait for a step of the fit; note whether it was cut short."""
        found, was_cut_short = self.cluster.results([task])[0]
        if was_cut_short:
            monitor.note_cut()
        return found


class _Fitted(NamedTuple):
    """Fitted experts: the mixture, classes and weights of the rows, and trees that predict."""

    mixture: Mixture
    rows: TrainingRows
    layers: list[LayerOnCluster]


class _Shape(NamedTuple):
    """What rows of numbers are like."""

    n_columns: int
    dtype: np.dtype[Any]
    holds_sparse: bool


def _alike(rows: DaskRows) -> DaskRows:
    """Give all blocks one type of numbers; refuse those that differ in anything else."""
    shapes: list[_Shape] = rows.each(_shape)
    dtype = np.result_type(*(own.dtype for own in shapes))
    first = shapes[0]
    for b, own in enumerate(shapes):
        if own.holds_sparse != first.holds_sparse:
            sparse, dense = (b, 0) if own.holds_sparse else (0, b)
            raise ValueError(
                f"X has sparse rows in partition {sparse}, but dense rows in partition {dense}; "
                "make all of them sparse, X.map_blocks(scipy.sparse.csr_array), or dense."
            )
        if own.n_columns != first.n_columns:
            raise ValueError(
                f"X has {first.n_columns} columns in partition 0, but {own.n_columns} in partition "
                f"{b}; all partitions must have the same columns."
            )
    if any(own.dtype != dtype for own in shapes):
        rows = rows.map(methodcaller("astype", dtype)).kept()
    return replace(rows, n_columns=first.n_columns, dtype=dtype, holds_sparse=first.holds_sparse)


def _shape(block: Rows) -> _Shape:
    return _Shape(block.shape[1], block.dtype, is_sparse(block))


def _read(model: EnsembleSVC, part: Any) -> Rows:
    """Validate a part of a table, and turn its categories into numbers."""
    try:
        rows = model._validated(part, reset=False)
    except (TypeError, ValueError) as error:
        if " in row " in str(error):
            error.args = (f"{error} Rows are counted within the partition.",)
        raise
    return rows if is_sparse(rows) else np.ascontiguousarray(rows)


def _recorded(function: Callable[[], Result]) -> tuple[Result, list[Warned]]:
    """Call a function; return its result, and what it warned of."""
    with held_back() as held, single_threaded_blas():
        return function(), held


def _warn_again(held: Sequence[Warned]) -> None:
    for message, category in held:
        warn_caller(message, category)


def _fit_sample_of(arguments: bytes) -> Any:
    rows, own, folds, seed, seconds = pickle.loads(arguments)
    random, monitor = np.random.RandomState(seed), Monitor(time_limit(seconds))
    found = _recorded(lambda: fit_vote(rows, _as_here(own), folds, random, monitor))
    return found, monitor.was_cut_short


def _fit_vote_of(blocks: Sequence[Rows], arguments: bytes) -> Any:
    rows, own, folds, random, seconds = pickle.loads(arguments)
    rows, monitor = rows._replace(X=stacked(blocks)), Monitor(time_limit(seconds))
    fitted, held = _recorded(lambda: fit_vote(rows, _as_here(own), folds, random, monitor))
    return (fitted, random, held), monitor.was_cut_short


def _as_here(own: Plan) -> Plan:
    """Return a plan with the memory of this worker, where no limit was given."""
    return own if own.budget.is_given else own.within(Budget.of(None))


def _of_rows(values: Any, name: str) -> NDArray[Any] | None:
    """Values with an entry per row, in memory."""
    if values is None:
        return None
    return values_of(values.compute() if dask.is_dask_collection(values) else values, name)
