"""Experts for many rows: one vote on a sample of all rows, and trees of cells.

A vote of kernels on up to 10,000 rows sees the global picture; trees of cells
(``hardmargin.cells``) learn from all rows, each cell from its own. Which is better depends on the
data. Their log-probabilities are added up with the weights that suit held-out rows best, so that an
expert that does not help has a weight of zero.

Cuts and relevance are found with the labels of some rows, and others judge the mixture: cuts that
know the labels of a row make the cells look better than they are for it.

The first vote also gives the relevance of the columns, which scales them in all cells. A few pilot
cells choose the kernels for all others, and show which kind of cuts suits the data and whether
another tree would help at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import entr, log_softmax

from hardmargin.cells import CellRows, CellRules, Cuts, Kind, Layer, LayerInTraining, find_cuts
from hardmargin.cells.cuts import KINDS
from hardmargin.cells.machines import Candidate, found_among, log_probabilities
from hardmargin.cells.seen import as_cells_see
from hardmargin.kernels import FloatArray, RowBlocks, Rows, is_sparse
from hardmargin.kernels.blocks import rows_per_block
from hardmargin.monitor import Monitor, Stopped
from hardmargin.resources import give_back_memory
from hardmargin.scaling import MixedScaling, Scaling
from hardmargin.selection.calibration import winning_codes
from hardmargin.selection.folds import Folds
from hardmargin.selection.mixture import LogProbabilities, mixed, mixture_weights
from hardmargin.selection.optimism import error_of_choices, honest_error
from hardmargin.selection.standard_error import standard_error
from hardmargin.selection.vote import SCALED_WIDTHS

#: Share of the time that the vote on a sample may take.
SHARE_OF_WHOLE = 0.3

#: Rows that find the weights of the experts.
WEIGHT_ROWS = 8_000

#: Cuts are found on `CUT_SHARE` of the rows, but on no fewer than `LEAST_CUT_ROWS` and no more than
#: `MOST_CUT_ROWS` (or `LEAST_CUT_SHARE` of the rows, if that is more).
CUT_SHARE = 0.2
LEAST_CUT_ROWS = 20_000
MOST_CUT_ROWS = 400_000
LEAST_CUT_SHARE = 0.02

#: Cuts take at most this share of the rows: the others judge.
MOST_CUT_SHARE = 0.5

#: If fewer rows than this are left to judge, those that have found cuts and relevance do, too.
LEAST_JUDGES = 500

#: Cells that try kernels and kinds of cuts.
PILOT_CELLS = 8

#: Cells have at most this many times the rows that they should have; of larger ones, a sample is
#: drawn.
LARGEST_CELL = 2

#: The kernels that together hold this share of the votes, first of the pilots and then of each
#: tree, are kept.
KEPT_VOTES = 0.8

#: Another tree must lower the loss by this share, and so must the first vote to be enlarged.
LEAST_GAIN = 0.005
LEAST_GAIN_OF_WHOLE = 0.005

#: Trees of ``n_trees="auto"``, at most.
MOST_TREES = 3

#: Columns are scaled by no less than this in cells: relevance may differ from place to place.
LEAST_SCALE = 0.05

#: Kernels that may vote in cells.
CANDIDATES: tuple[Candidate, ...] = tuple(
    (name, width) for name, widths in SCALED_WIDTHS.items() for width in widths
)

_TINY = 1e-9

Result = TypeVar("Result")

#: Fields of the table of experts.
TABLE = np.dtype(
    [
        ("kind", "U9"),
        ("rows", np.int64),
        ("cells", np.int64),
        ("weight", np.float64),
        ("log_loss", np.float64),
    ]
)


@dataclass(frozen=True)
class SampleVote:
    """The vote on a sample of all rows, and the probabilities of rows that it had held out.

    Attributes
    ----------
    model : Any
        Has ``predict_proba``, of rows as they came.
    classes : (n_known,) int array
        The classes it knows.
    rows : (n_rows,) int array
        The rows it was trained on.
    held_rows : (n_held,) int array
        Rows that were held out.
    held_probabilities : (n_held, n_known) array
        Their held-out probabilities.
    is_new : (n,) bool array or None
        Which rows have nothing in common with those it was trained on; None means all others.
    """

    model: Any
    classes: NDArray[np.intp]
    rows: NDArray[np.intp]
    held_rows: NDArray[np.intp]
    held_probabilities: FloatArray
    is_new: NDArray[np.bool_] | None = None

    def without_held_rows(self) -> SampleVote:
        """Leave out what only training needs."""
        nothing = self.held_rows[:0], self.held_probabilities[:0]
        return SampleVote(self.model, self.classes, self.rows, *nothing)

    def log_probabilities(self, raw: Rows, prior: FloatArray) -> NDArray[np.float32]:
        """Log-probabilities of rows."""
        return log_probabilities(self.classes, self.model.predict_proba(raw), prior)

    def is_fair(self, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether rows were held out, or are new to the model: it has not seen their classes."""
        is_new = True if self.is_new is None else self.is_new[rows]
        return np.isin(rows, self.held_rows) | (is_new & ~np.isin(rows, self.rows))

    def held_out_logs(
        self, raw: Rows | RowBlocks, rows: NDArray[np.intp], prior: FloatArray
    ) -> NDArray[np.float32]:
        """Log-probabilities of fair training rows."""
        logs = np.empty((len(rows), len(prior)), dtype=np.float32)
        is_held, at = found_among(rows, self.held_rows)
        logs[is_held] = log_probabilities(self.classes, self.held_probabilities[at], prior)
        others = np.flatnonzero(~is_held)
        step = rows_per_block(raw) if isinstance(raw, np.ndarray) else max(len(others), 1)
        for begin in range(0, len(others), step):
            part = others[begin : begin + step]
            logs[part] = self.log_probabilities(raw[rows[part]], prior)
        return logs


#: Trains the vote on some rows.
FitSample = Callable[[NDArray[np.intp], Monitor], SampleVote]


@dataclass(frozen=True)
class Experts:
    """A mixture of experts.

    Attributes
    ----------
    prior : (n_classes,) array
        Shares of the classes.
    support : rows
        Training rows, as cells see them: all, or those that cells need.
    layers : list of Layer
        The trees that take part.
    whole : SampleVote or None
        The vote on a sample of all rows, if it takes part.
    weights : (n_experts,) array
        Weights of the layers and, last, of `whole`.
    table : structured array
        One record per expert: kind, rows, cells, weight, and the log-loss of rows held out.
    relevance : (d,) array or None
        How much each column matters, where that is known.
    log_loss, error : float
        Of the mixture, on rows held out.
    rows : (n_support,) int array or None
        Which training rows `support` has; None for all.
    scaling : Scaling, MixedScaling or None
        How rows are scaled for cells.
    class_weights : (n_classes,) array or None
        Factors of the classes' odds.
    """

    prior: FloatArray
    support: Rows
    layers: list[Layer]
    whole: SampleVote | None
    weights: FloatArray
    table: NDArray[Any]
    relevance: FloatArray | None
    log_loss: float
    error: float
    rows: NDArray[np.int32] | None = None
    scaling: Scaling | MixedScaling | None = None
    class_weights: FloatArray | None = None

    def seen(self, rows: Rows) -> Rows:
        """Rows as they came, as each expert scales them."""
        return rows

    def margins(self, Q: Rows, n_jobs: int | None) -> FloatArray:
        """Log-probabilities of the mixture, for rows as they came."""
        scaled = Q if self.scaling is None else self.scaling.transform(Q)
        logs = self.log_probabilities(Q, as_cells_see(scaled), n_jobs)
        if self.class_weights is not None:
            logs = log_softmax(logs + np.log(self.class_weights), axis=1)
        return logs

    @property
    def query_bytes(self) -> int:
        """Memory that a prediction takes, per query."""
        return int(12 * self.support.shape[1] + 16 * len(self.weights) * len(self.prior))

    def support_rows(self) -> NDArray[np.int32]:
        """Training rows that predictions need."""
        own = [layer.members for layer in self.layers]
        if self.rows is not None:
            own = [self.rows[members] for members in own]
        if self.whole is not None:
            own.append(self.whole.rows[self.whole.model.support_].astype(np.int32))
        used = np.zeros(max(int(rows.max(initial=-1)) for rows in own) + 1, dtype=bool)
        for rows in own:
            used[rows] = True
        return np.flatnonzero(used).astype(np.int32)

    def log_probabilities(self, raw: Rows, scaled: Rows, n_jobs: int | None) -> FloatArray:
        """Log-probabilities of the mixture, for rows as they came and as cells see them."""
        if is_sparse(scaled) != is_sparse(self.support):
            scaled = scaled.toarray() if is_sparse(scaled) else sp.csr_array(scaled)
        logs = [layer.log_probabilities(scaled, self.support, n_jobs) for layer in self.layers]
        if self.whole is not None:
            logs.append(self.whole.log_probabilities(raw, self.prior))
        return mixed(logs, self.weights)


@dataclass(frozen=True)
class Mixture:
    """The experts that take part, while rows are where they were in training.

    Attributes
    ----------
    prior : (n_classes,) array
        Shares of the classes.
    seen : CellRows
        Training rows, as cells see them.
    layers : list of LayerInTraining
        The trees that take part.
    whole, weights, table, relevance, log_loss, error
        As in `Experts`.
    log_loss_std_error, error_std_error : float
        Standard errors of these two.
    scaling, class_weights
        As in `Experts`.
    """

    prior: FloatArray
    seen: CellRows
    layers: list[LayerInTraining]
    whole: SampleVote | None
    weights: FloatArray
    table: NDArray[Any]
    relevance: FloatArray | None
    log_loss: float
    error: float
    log_loss_std_error: float
    error_std_error: float
    scaling: Scaling | MixedScaling | None = None
    class_weights: FloatArray | None = None

    @property
    def n_cells(self) -> tuple[int, int]:
        """Cells that were learned, and all cells."""
        n_all = sum(layer.cuts.n_cells for layer in self.layers)
        return n_all - sum(len(layer.skipped) for layer in self.layers), n_all

    @property
    def n_known(self) -> int:
        """Training rows that some expert has seen."""
        is_known = np.zeros(len(self.seen.codes), dtype=bool)
        if self.whole is not None:
            is_known[self.whole.rows] = True
        for layer in self.layers:
            for c, own in enumerate(layer.rows_of_cells):
                is_known[own] |= c not in layer.skipped
        return int((is_known & (self.seen.codes >= 0)).sum())

    def finished(self) -> Experts:
        """Put the experts into flat arrays; this empties `layers`, so that memory is freed."""
        layers = []
        while self.layers:
            layers.append(self.layers.pop(0).finished())
        return Experts(
            self.prior,
            self.seen.X,
            layers,
            self.whole,
            self.weights,
            self.table,
            self.relevance,
            self.log_loss,
            self.error,
            scaling=self.scaling,
            class_weights=self.class_weights,
        )


@dataclass(frozen=True)
class ExpertRows:
    """Training rows of experts, wherever they live.

    Attributes
    ----------
    raw : rows or RowBlocks
        As they came.
    seen : CellRows
        As cells see them.
    units : (d,) array
        Columns of `seen` times this have their original units.
    begin_layer : callable
        Begins a layer with these cuts and rules.
    fit_whole : callable
        Trains the vote on a sample of the rows.
    """

    raw: Rows | RowBlocks
    seen: CellRows
    units: FloatArray
    begin_layer: Callable[[Cuts, CellRules], LayerInTraining]
    fit_whole: FitSample


@dataclass(frozen=True)
class ExpertOptions:
    """How experts are trained.

    Attributes
    ----------
    max_cell_rows : int
        Approximate number of rows of a cell.
    n_trees : int or None
        Number of trees; None adds them while that helps.
    kernels : sequence of str
        Names of kernels that may vote in cells.
    first_rows, most_rows : int
        Rows of the vote on a sample: at first, and where it matters.
    most_cut_rows : int
        Rows that cuts are found on, at most.
    class_weights : (n_classes,) array or None
        Factors of the classes' odds, for the judgement of the mixture.
    seed : int
        Draws samples.
    n_threads : int
        With two or more, the cuts of a tree are found while cells of the last one are learned.
    """

    max_cell_rows: int
    n_trees: int | None
    kernels: Sequence[str]
    first_rows: int
    most_rows: int
    most_cut_rows: int
    class_weights: FloatArray | None
    seed: int
    n_threads: int


def fit_experts(
    rows: ExpertRows,
    make_rules: Callable[[SampleVote], CellRules],
    folds: Folds | None,
    options: ExpertOptions,
    monitor: Monitor,
) -> Mixture | None:
    """Train the experts, and find their weights; None if no rows can be held out.

    Parameters
    ----------
    rows : ExpertRows
        Training rows.
    make_rules : callable
        How cells are learned, once the vote on a sample is known.
    folds : Folds or None
        Splits of the rows, if they are given.
    options : ExpertOptions
        How to train.
    monitor : Monitor
        The clock.
    """
    seen, fit_whole = rows.seen, rows.fit_whole
    order = np.random.RandomState(options.seed).permutation(np.flatnonzero(seen.codes >= 0))
    taught, is_new = _apart(order, seen.codes, folds)
    first = _sample(taught, seen.codes, options.first_rows)
    cutters = _cutters(order, folds, options.most_cut_rows)
    is_shown = np.zeros(len(seen.codes), dtype=bool)
    is_shown[cutters] = is_shown[first] = True
    forest = _Forest(rows, cutters, options, monitor)
    whole, trees = forest.cut_beside(
        KINDS, lambda part: fit_whole(first, part.part(share=SHARE_OF_WHOLE))
    )
    if len(whole.held_rows) == 0:
        return None
    whole, rules = replace(whole, is_new=is_new), make_rules(whole)
    judge = _Judge(rows.raw, seen, whole, rules.prior, is_shown)
    forest.grow(trees, rules, judge)
    judges, logs = judge.logs(judge.some(order), forest.layers)
    has_more = options.first_rows < min(options.most_rows, len(taught))
    if has_more and monitor.seconds_left > 0 and judge.needs_whole(judges, logs, forest.layers):
        most = _sample(taught, seen.codes, options.most_rows)
        larger = replace(judge, whole=replace(fit_whole(most, monitor), is_new=is_new))
        at, logs_with_larger = larger.logs(larger.some(order), forest.layers)
        # A vote that was cut short may be worse than the one on fewer rows.
        is_finished = monitor.seconds_left > 0
        of_larger = larger.loss(at, logs_with_larger, forest.layers)
        if is_finished or of_larger < judge.loss(judges, logs, forest.layers):
            whole, judges, logs = larger.whole, at, logs_with_larger
    codes, weights = seen.codes[judges], seen.weights[judges]
    costs = _costs(forest.layers, judges, len(logs))
    found, _ = mixture_weights(logs, codes, weights, costs)
    takes_part = found > 0
    takes_part[-1] |= not takes_part.any()  # on labels of noise
    kinds = [*forest.kinds, "whole"]
    sizes = [*((len(order), layer.cuts.n_cells) for layer in forest.layers), (len(whole.rows), 1)]
    losses = [_loss(own, codes, weights) + cost for own, cost in zip(logs, costs, strict=True)]
    mixture = mixed(logs, found)
    if options.class_weights is not None:
        mixture = log_softmax(mixture + np.log(options.class_weights), axis=1)
        weights = weights * options.class_weights[codes]
    is_wrong = winning_codes(LogProbabilities().scores(mixture)) != codes
    of_rows = -mixture[np.arange(len(codes)), codes]
    log_loss = float(np.average(of_rows, weights=weights))
    cost = float(found @ costs)
    shares = np.bincount(codes, weights) / weights.sum()
    gain = float(entr(shares).sum()) - log_loss
    error = honest_error(
        float(np.average(is_wrong, weights=weights)),
        error_of_choices(gain, cost),
        1.0 - float(shares.max()),
    )
    return Mixture(
        rules.prior,
        seen,
        [layer for layer, part in zip(forest.layers, takes_part, strict=False) if part],
        whole.without_held_rows() if takes_part[-1] else None,
        found[takes_part],
        np.array(
            [
                (kind, *size, weight, of_expert)
                for kind, size, weight, of_expert in zip(kinds, sizes, found, losses, strict=True)
            ],
            dtype=TABLE,
        ),
        getattr(whole.model, "encoded_relevance_", None),
        log_loss + cost,
        error,
        float(np.hypot(standard_error(of_rows, judges, weights), cost)),
        standard_error(is_wrong, judges, weights),
    )


@dataclass(frozen=True)
class _Judge:
    """Judges mixtures by training rows that each expert had held out.

    Attributes
    ----------
    raw, rows : rows or RowBlocks, and CellRows
        Training rows as they came, and as cells see them.
    whole : SampleVote
        The vote on a sample of all rows.
    prior : (n_classes,) array
        Shares of the classes.
    is_shown : (n,) bool array
        Rows whose labels have found cuts or relevance.
    """

    raw: Rows | RowBlocks
    rows: CellRows
    whole: SampleVote
    prior: FloatArray
    is_shown: NDArray[np.bool_]

    def some(self, order: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the first `WEIGHT_ROWS` rows of an order that can judge."""
        return self._that_can_judge(order)[:WEIGHT_ROWS]

    def _that_can_judge(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Leave out rows that an expert has seen and, if enough are left, those of the cuts."""
        fair = rows[(self.rows.codes[rows] >= 0) & self.whole.is_fair(rows)]
        hidden = fair[~self.is_shown[fair]]
        return hidden if len(hidden) >= LEAST_JUDGES else fair

    def logs(
        self, at: NDArray[np.intp], layers: Sequence[LayerInTraining]
    ) -> tuple[NDArray[np.intp], list[NDArray[np.float32]]]:
        """Return the rows that can judge, and their log-probabilities by the layers and `whole`."""
        at = np.sort(self._that_can_judge(at))
        logs = [layer.held_logs(at) for layer in layers]
        return at, [*logs, self.whole.held_out_logs(self.raw, at, self.prior)]

    def loss(
        self,
        at: NDArray[np.intp],
        logs: Sequence[NDArray[np.float32]],
        layers: Sequence[LayerInTraining],
    ) -> float:
        """Log-loss of the best mixture of layers and, if there are more logs, of `whole`."""
        if not logs:
            return float("inf")
        codes, weights = self.rows.codes[at], self.rows.weights[at]
        return mixture_weights(logs, codes, weights, _costs(layers, at, len(logs)))[1]

    def needs_whole(
        self,
        at: NDArray[np.intp],
        logs: Sequence[NDArray[np.float32]],
        layers: Sequence[LayerInTraining],
    ) -> bool:
        """Whether the trees are worse without `whole`, whose logs are last."""
        without = self.loss(at, logs[:-1], layers)
        return without > (1 + LEAST_GAIN_OF_WHOLE) * self.loss(at, logs, layers)


def _costs(
    layers: Sequence[LayerInTraining], rows: NDArray[np.intp], n_experts: int
) -> list[float]:
    """By how much the losses of experts are too low on rows: the layers and, perhaps, the vote."""
    costs = [layer.optimism(rows) for layer in layers]
    return [*costs, *[0.0] * (n_experts - len(costs))]


class _Tree(NamedTuple):
    """A tree whose cuts are known: their kind, the cuts, and its pilot cells."""

    kind: Kind
    cuts: Cuts
    pilots: list[int]


class _Pilot(NamedTuple):
    """A tree whose pilot cells are learned, their fair rows, and how `whole` judges those."""

    layer: LayerInTraining
    rows: NDArray[np.intp]
    logs_of_whole: NDArray[np.float32]


class _Forest:
    """Grows trees, as long as they help.

    Attributes
    ----------
    layers : list of LayerInTraining
        The trees.
    kinds : list of str
        What their cuts look at.
    """

    def __init__(
        self,
        rows: ExpertRows,
        cutters: NDArray[np.intp],
        options: ExpertOptions,
        monitor: Monitor,
    ) -> None:
        self.layers, self.kinds = list[LayerInTraining](), list[Kind]()
        self._rows, self._options, self._monitor = rows, options, monitor
        self._cutters = cutters
        self._random = np.random.RandomState([options.seed, 1])
        self._candidates = [c for c in CANDIDATES if c[0] in options.kernels]
        self._has_chosen = False

    def cut_beside(
        self, kinds: Sequence[Kind], task: Callable[[Monitor], Result]
    ) -> tuple[Result, list[_Tree]]:
        """Cut trees, as far as there is time, in parallel to a task that needs none of them."""
        n_threads = self._options.n_threads if kinds else 1
        return self._monitor.both(task, partial(self._cut, kinds), n_threads)

    def grow(self, trees: list[_Tree], rules: CellRules, judge: _Judge) -> None:
        """Add the kind of tree whose pilot cells help most, until none does.

        The first trees are already cut; others are cut while cells of the previous tree are
        learned.
        """
        most = MOST_TREES if self._options.n_trees is None else self._options.n_trees
        begun: dict[Kind, _Pilot] = {}
        while trees:
            for tree in trees:
                begun[tree.kind] = self._begin(tree, rules, judge)
            gains = {kind: self._gain(pilot, judge) for kind, pilot in begun.items()}
            best = max(gains, key=lambda kind: gains[kind])
            if self._options.n_trees is None and gains[best] < LEAST_GAIN:
                return
            layer = begun.pop(best).layer
            self.layers.append(layer)
            self.kinds.append(best)
            shares, trees = self.cut_beside(
                [best] if len(self.layers) < most else [],
                partial(layer.learn, range(layer.cuts.n_cells), self._candidates),
            )
            self._keep_the_best(shares)

    def _cut(self, kinds: Sequence[Kind], monitor: Monitor) -> list[_Tree]:
        """Find the cuts of trees, and choose their pilot cells."""
        X, codes, _ = self._rows.seen
        n_rows = int((codes >= 0).sum())
        trees = []
        with suppress(Stopped):  # without time for more
            for kind in kinds:
                monitor.check()
                some = np.sort(self._cutters)
                cuts = find_cuts(
                    X[some],
                    codes[some],
                    self._rows.units,
                    max_rows=self._options.max_cell_rows * len(some) / n_rows,
                    kind=kind,
                    is_first=kind not in self.kinds,
                    random_state=self._random,
                    monitor=monitor,
                )
                pilots = self._random.permutation(cuts.n_cells)[:PILOT_CELLS].tolist()
                trees.append(_Tree(kind, cuts, pilots))
        return trees

    def _begin(self, tree: _Tree, rules: CellRules, judge: _Judge) -> _Pilot:
        """Learn the pilot cells of a tree."""
        give_back_memory()  # of the sample, and of what was trained before
        layer = self._rows.begin_layer(tree.cuts, rules)
        shares, (at, [logs_of_whole]) = self._monitor.both(
            partial(layer.learn, tree.pilots, self._candidates),
            lambda _: judge.logs(layer.rows_of(tree.pilots), []),
            self._options.n_threads,
        )
        if not self._has_chosen:
            self._keep_the_best(shares)
            self._has_chosen = shares is not None
        return _Pilot(layer, at, logs_of_whole)

    def _keep_the_best(self, shares: FloatArray | None) -> None:
        """Keep the kernels that hold most of the votes, for all cells to come."""
        if shares is None:
            return
        by_share = np.argsort(-shares, kind="stable")
        held = np.cumsum(shares[by_share]) / shares.sum()
        kept = np.sort(by_share[: int(np.searchsorted(held, KEPT_VOTES)) + 1])
        self._candidates = [self._candidates[k] for k in kept]

    def _gain(self, pilot: _Pilot, judge: _Judge) -> float:
        """Share by which a tree lowers the loss of the mixture, on the rows of its pilot cells."""
        at = pilot.rows
        if len(at) == 0:
            return 0.0
        others = [*(layer.held_logs(at) for layer in self.layers), pilot.logs_of_whole]
        without = judge.loss(at, others, self.layers)
        logs = [*others[:-1], pilot.layer.held_logs(at), others[-1]]
        together = judge.loss(at, logs, [*self.layers, pilot.layer])
        return (without - together) / max(without, _TINY)


def _n_cut_rows(n_rows: int) -> int:
    """How many rows find the cuts."""
    most = max(MOST_CUT_ROWS, int(LEAST_CUT_SHARE * n_rows))
    return max(LEAST_CUT_ROWS, min(int(CUT_SHARE * n_rows), most))


def _cutters(order: NDArray[np.intp], folds: Folds | None, most_rows: int) -> NDArray[np.intp]:
    """Rows that find the cuts: some must be left to judge, and given splits say which."""
    if folds is None:
        teaching = order[: int(MOST_CUT_SHARE * len(order))]
    else:
        teaching = order[folds.train[int(folds.train.sum(axis=1).argmax())][order]]
    return teaching[: min(_n_cut_rows(len(order)), most_rows)]


def _apart(
    order: NDArray[np.intp], codes: NDArray[np.int32], folds: Folds | None
) -> tuple[NDArray[np.intp], NDArray[np.bool_] | None]:
    """Rows that may teach the vote on a sample, and those that are then new to it.

    Given splits say which rows have nothing in common, as groups do: the vote learns from the
    training part of one split, and the other part is new to it. A single split is needed to hold
    rows out.
    """
    if folds is None:
        return order, None
    largest = int(folds.train.sum(axis=1).argmax())
    taught = order[folds.train[largest][order]]
    if folds.n_splits == 1 or len(np.unique(codes[taught])) < 2:
        return order, np.zeros(len(codes), dtype=bool)
    return taught, folds.test[largest]


def _sample(
    order: NDArray[np.intp], codes: NDArray[np.int32], n_rows: int, least: int = 10
) -> NDArray[np.intp]:
    """Take the first rows of a random order, and at least a few of every class."""
    chosen = np.zeros(len(order), dtype=bool)
    chosen[:n_rows] = True
    for rows in _of_classes(codes[order]):
        chosen[rows[:least]] = True
    return np.sort(order[chosen])


def _of_classes(codes: NDArray[np.int32]) -> Iterator[NDArray[np.intp]]:
    """Rows of every class."""
    by_class = np.argsort(codes, kind="stable")
    yield from np.split(by_class, np.cumsum(np.bincount(codes))[:-1])


def _loss(logs: NDArray[Any], codes: NDArray[np.int32], weights: FloatArray) -> float:
    """Log-loss of one expert."""
    return float(-np.average(logs[np.arange(len(codes)), codes], weights=weights))
