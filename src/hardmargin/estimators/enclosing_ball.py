"""The minimum enclosing ball as an outlier detector."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from hardmargin.estimators._base.estimator import COUNT, KernelEstimator
from hardmargin.estimators._base.one_model import in_one_step, on_one_model
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators.core_vector import warn_if_unfinished
from hardmargin.kernels import (
    GAMMA_RULES,
    FloatArray,
    Kernel,
    KernelFunction,
    Precision,
    Rows,
    is_sparse,
    make_kernel,
)
from hardmargin.kernels.precision import precision
from hardmargin.prediction.machines import finite_scores
from hardmargin.resources import (
    CORE_ROW_BYTES,
    CORE_SHARE,
    enough_memory,
    planned_bytes,
    queries_at_once,
    single_threaded_blas,
)
from hardmargin.selection.enclosing_ball import MAX_ROWS, drawn, fence, near_gamma, quantile, soft_C
from hardmargin.solvers.core_sets import enclosing_ball
from hardmargin.solvers.core_sets.enclosing_ball import BallOptions, BallSolution, HalfDistances
from hardmargin.solvers.problem import Problem
from hardmargin.warn import warn_caller


class MinimumEnclosingBall(OutlierMixin, KernelEstimator):
    """Smallest ball around the training rows, in the kernel's space: an outlier detector.

    Minimises ``R^2 + C sum(w * slack^2)`` with every row within a squared distance of
    ``R^2 + slack`` from the centre. ``MinimumEnclosingBall()`` is a soft ball: its centre is a
    mean of many rows, which a few outliers do not move. ``C=None`` is the hard ball, which has no
    slacks and encloses every row.

    Rows that random samples find outside the ball join a core set. Training ends when a pass over
    all rows proves that the ball is small enough [1]_. Hundreds of thousands of rows take a second
    or two: hard balls have small core sets, and the default ball is found on at most 3,000 rows.
    With a constant k(x, x) the ball is a one-class SVM with another kind of slack.

    Parameters
    ----------
    gamma : float or {"near", "scale", "spread", "pairwise"}, default="near"
        Width of the kernel. ``"near"`` is 1 / squared distance within which a tenth of all pairs of
        different rows lie (among at most 1,000 rows, drawn at random): about the width of a single
        cluster, if there are several. A few outliers do not change it.
        ``"scale"`` is scikit-learn's 1 / (n_features * X.var()), ``"spread"`` 1 / mean squared
        distance to the mean, ``"pairwise"`` 1 / mean squared distance between rows. For the
        Laplacian kernel all but ``"scale"`` use L1 distances instead of squared ones.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel; it should be positive semi-definite. ``"linear"`` gives the ball around the rows
        themselves; dense rows are copied and centred for it.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    C : float, "auto" or None, default="auto"
        Weight of the squared slacks. The slacks, by which rows exceed ``R^2``, add up to
        ``1 / (2 * C)``. ``"auto"`` makes the mean slack a tenth of the variance in the kernel's
        space, so that most rows are a little outside, and finds the ball on at most 3,000 rows,
        drawn at random. A number should be smaller for more rows: for normally distributed rows,
        10 / n_samples leaves about half of them outside an RBF ball, 100 / n_samples about one in
        eight. None encloses every row, outliers too.
    tol : float, default=0.01
        Training ends when the radius is known to within this share of it; with slacks, when the
        objective is known to within about twice this share.
    contamination : "auto" or float, default="auto"
        A number in (0, 0.5] makes that share of the training rows outliers: those furthest from the
        centre. With ``C="auto"``, ``"auto"`` is a fence as in a box plot: outliers are beyond the
        median of the training rows by more than four times the distance from the median to the
        upper quartile. It is measured by the log of the similarity to the centre if kernel values
        are in (0, 1], and by the squared distance otherwise. For normally distributed rows, this
        marks between one in a hundred (thirty features) and one in fourteen (two features) as
        outliers. With C a number or None, ``"auto"`` makes all rows outside the ball outliers. Use
        a share only with a soft ball: rows on the surface of a hard one are, up to rounding, all
        equally far from its centre.
    stopping : {"certified", "radius"}, default="certified"
        ``"certified"`` ends training by a pass over all rows. ``"radius"`` is the rule of the
        papers: training ends when a single sample of 59 rows is within `tol` of the ball. It misses
        rare rows outside. `radius_` is then enlarged to enclose them, and the bounds show how much
        too large it may be.
    max_stages : int or None, default=None
        Limit on how often the core set grows.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values. ``"auto"`` is float64 up to 5,000 rows and float32 above.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
        It limits the size of the core set.
    n_jobs : int or None, default=None
        Number of threads, over kernel values. The ball does not depend on it.
    max_time : float or None, default=None
        Seconds after which ``fit`` returns the ball so far, with a warning.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Seed for the samples of rows; None is a fixed seed.

    Attributes
    ----------
    radius_ : float
        R. With ``C=None``, the distance of the furthest training row from the centre.
    lower_bound_, objective_ : float
        The optimum of ``R^2 + C sum(w * slack^2)`` (with ``C=None``, of ``R^2``) lies between these
        two; with ``C="auto"``, the optimum for the rows drawn.
    certificate_ : float
        Relative gap between them.
    offset_ : float
        ``decision_function`` is ``score_samples - offset_``: rows further than ``-offset_`` from
        the centre are outliers. With ``contamination="auto"`` and C a number or None it is
        ``-radius_``, lowered by the rounding error, so that a hard ball leaves no training row out.
    support_ : (n_support,) array
        Rows whose weighted mean is the centre.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows; empty for a precomputed kernel.
    dual_coef_ : (1, n_support) array
        Their weights in that mean, which add up to one.
    center_ : (n_features,) array
        The centre, for the linear kernel.
    core_size_ : int
        Number of rows in the core set.
    n_iter_ : int
        Number of times that the core set grew.
    n_kernel_evaluations_ : int
        Number of kernel values evaluated.
    stop_reason_ : str
        ``"certified"``, ``"radius"``, ``"core_full"`` (`memory_limit` allows no larger core set),
        ``"rounding"`` (`tol` is finer than the precision of kernel values), ``"indefinite"`` (the
        kernel is not positive semi-definite), ``"stalled"`` (the kernel matrix is too close to
        singular for this C), ``"max_stages"`` or ``"max_time"``.
    gamma_ : float
        The kernel's gamma as a number.
    C_ : float or None
        C as a number; None for the hard ball.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    See Also
    --------
    CoreVectorSVC : A classifier trained by the same algorithm.

    Notes
    -----
    Features of unequal units should be scaled first, as for any kernel:
    ``make_pipeline(StandardScaler(), MinimumEnclosingBall())``.

    A training row contributes to the centre, and so is a little closer to it than it would be as a
    new row. With only about a hundred rows this hides outliers: ``contamination="auto"`` may then
    find none among the training rows, where a share would. New rows are not affected.

    Distances of new rows depend on their k(x, x), which a precomputed kernel does not contain. It
    must therefore be the same for all training rows, and is assumed to be the same for new rows.
    ``fit_predict`` works with any matrix.

    References
    ----------
    .. [1] I. W. Tsang, J. T. Kwok and P.-M. Cheung, "Core Vector Machines: Fast SVM Training on
       Very Large Data Sets", JMLR 6, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from hardmargin import MinimumEnclosingBall
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(190, 5)), rng.uniform(-8, 8, size=(10, 5))])
    >>> labels = MinimumEnclosingBall(contamination=0.05, random_state=0).fit_predict(X)
    >>> np.flatnonzero(labels == -1)
    array([190, 191, 192, 193, 194, 195, 196, 197, 198, 199])

    The smallest ball around all rows:

    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.2, 0.1]])
    >>> ball = MinimumEnclosingBall(kernel="linear", C=None, tol=1e-6).fit(X)
    >>> round(ball.radius_, 3), np.abs(ball.center_).round(3)
    (1.0, array([0., 0.]))
    >>> ball.predict([[0.5, 0.5], [2.0, 0.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelEstimator._parameter_constraints,
        "gamma": [Interval(Real, 0, None, closed="neither"), Choice({"near", *GAMMA_RULES})],
        "C": [Interval(Real, 0, None, closed="neither"), Choice({"auto"}), None],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "contamination": [Choice({"auto"}), Interval(Real, 0, 0.5, closed="right")],
        "stopping": [Choice({"certified", "radius"})],
        "max_stages": [COUNT, None],
    }

    #: ``k(x, x)`` of new rows with a precomputed kernel; None if training rows differ in it.
    _diagonal_: float | None = None

    def __init__(
        self,
        gamma: float | str = "near",
        *,
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        C: float | str | None = "auto",
        tol: float = 0.01,
        contamination: float | str = "auto",
        stopping: str = "certified",
        max_stages: int | None = None,
        dtype: str = "auto",
        memory_limit: str | float | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.tol = tol
        self.contamination = contamination
        self.stopping = stopping
        self.max_stages = max_stages
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the ball around rows X.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Training rows; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : None
            Ignored.
        sample_weight : (n_samples,) array, optional
            Row weights: a weight of two counts the row twice, a weight of zero leaves it out. A
            hard ball does not depend on positive weights, but the rules for gamma and a share for
            `contamination` use them.

        Returns
        -------
        self
        """
        with self._fitting() as monitor:
            X, weights = self._check_unlabelled(X, sample_weight)
            random = self._new_generator()
            gamma = self._gamma(X, weights, random)
            self._kernel_: Kernel = make_kernel(
                self.kernel,
                X,
                gamma=gamma,
                degree=self.degree,
                coef0=self.coef0,
                sample_weight=weights,
            )
            self.gamma_ = self._kernel_.gamma
            self._dtype_: Precision = precision(X, self.dtype, self._kernel_)

            rows, some, of_some = np.arange(X.shape[0]), X, weights
            if self.C == "auto":
                rows = drawn(np.ones(len(rows)) if weights is None else weights, MAX_ROWS, random)
            if len(rows) < X.shape[0]:
                some = X[np.ix_(rows, rows)] if self.kernel == "precomputed" else X[rows]
                of_some = None if weights is None else weights[rows]
            codes = np.zeros(len(rows), dtype=np.int32)
            if of_some is not None:
                codes[of_some == 0] = -1
            columns = self._half_distances(some, codes)
            self.C_ = soft_C(columns, of_some) if isinstance(self.C, str) else self.C
            [solution] = enclosing_ball.solve(
                Problem(columns, codes, [([], [0])], of_some),
                BallOptions(
                    C=np.inf if self.C_ is None else self.C_,
                    tol=self.tol,
                    by_radius=self.stopping == "radius",
                    max_stages=self.max_stages,
                    memory_bytes=int(
                        CORE_SHARE * planned_bytes(self.memory_limit, CORE_ROW_BYTES * len(codes))
                    ),
                    seed=random.randint(2**31 - 1),
                ),
                monitor,
            )
            enough = ""
            if solution.stop_reason == "core_full":
                most = int(columns.bytes_of_core_set(len(codes)) / CORE_SHARE)
                enough = enough_memory(most, CORE_ROW_BYTES * len(codes))
            self._warn(solution, enough)
            self._store(solution, some, codes)
            self.support_ = rows[solution.rows].astype(np.int32)
            if self.kernel == "linear":
                self._shift_ = np.asarray(self.dual_coef_ @ columns.X[solution.rows]).ravel()
            self.offset_ = self._offset(X, weights)
        return self

    @on_one_model
    def score_samples(self, X: Any) -> FloatArray:
        """Minus the distance of rows from the centre, in the kernel's space.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows; for ``kernel="precomputed"`` their kernel values against all training rows.

        Returns
        -------
        (n_samples,) array
        """
        queries = self._check_queries(X)
        if self.kernel != "precomputed":
            return self._scores(queries)
        if self._diagonal_ is None:
            raise ValueError(
                "kernel='precomputed' scores new rows only if k(x, x) is the same for all "
                "training rows, as X does not contain that of new rows; divide the matrix by "
                "sqrt(k(x, x) k(z, z)), pass a callable kernel, or use fit_predict."
            )
        return self._scores(queries, np.full(len(queries), self._diagonal_))

    @on_one_model
    def decision_function(self, X: Any) -> FloatArray:
        """``score_samples - offset_``: negative for outliers.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows, as for ``score_samples``.

        Returns
        -------
        (n_samples,) array
        """
        scores: FloatArray = self.score_samples(X) - self.offset_
        return scores

    @on_one_model
    def predict(self, X: Any) -> NDArray[np.int64]:
        """Predict 1 for inliers, -1 for outliers.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows, as for ``score_samples``.

        Returns
        -------
        (n_samples,) array
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    @in_one_step
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[np.int64]:
        """Find the ball around rows X, and which of them are outliers.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``.

        Returns
        -------
        (n_samples,) array
            1 for inliers, -1 for outliers.
        """
        self.fit(X, y, sample_weight)
        scores = self._training_scores(self._check_queries(X))
        return np.where(scores - self.offset_ >= 0, 1, -1)

    @property
    @on_one_model
    def center_(self) -> FloatArray:
        """The centre; for ``kernel="linear"`` only."""
        check_is_fitted(self)
        if self.kernel != "linear":
            raise AttributeError(f"center_ exists for kernel='linear' only, not {self.kernel!r}.")
        center: FloatArray = self._origin_ + self._shift_
        return center

    def _gamma(
        self, X: Rows, weights: FloatArray | None, random: np.random.RandomState
    ) -> float | str:
        if self.gamma != "near" or callable(self.kernel):
            return self.gamma
        if self.kernel in ("linear", "precomputed"):
            return 1.0
        return near_gamma(X, weights, random, kernel=self.kernel, n_jobs=self.n_jobs)

    def _half_distances(self, X: Rows, codes: NDArray[np.int32]) -> HalfDistances:
        """Distances between rows; with the linear kernel, dense rows are centred first."""
        if self.kernel == "linear":
            self._origin_: FloatArray = np.zeros(X.shape[1])
        if self._is_flat(X):
            # A shift of the rows only shifts the ball, but near the origin there is less rounding.
            with np.errstate(over="ignore", invalid="ignore"):
                self._origin_ = np.mean(X, axis=0, dtype=np.float64)
                X = X - self._origin_
        return HalfDistances(
            self._kernel_, X, codes >= 0, dtype=self._dtype_, memory_bytes=0, n_jobs=self.n_jobs
        )

    def _warn(self, solution: BallSolution, enough: str) -> None:
        """Warn about a ball that is not what was asked for."""
        warn_if_unfinished({solution.stop_reason}, self.tol, "use another kernel", enough)
        gap = solution.certificate
        if solution.stop_reason == "radius" and gap > (1.0 + self.tol) ** 2 - 1.0:
            warn_caller(
                f"stopping='radius' missed rows: the optimum may be up to {gap:.0%} below "
                "objective_; use stopping='certified'."
            )
        if solution.squared_radius < 0 and solution.furthest > solution.rounding:
            warn_caller(
                f"C={self.C_} is so small that slacks exceed the squared distances from the "
                "centre, and radius_ is 0; raise C.",
                UserWarning,
            )

    def _store(self, solution: BallSolution, X: Rows, codes: NDArray[np.int32]) -> None:
        """Keep the ball around the rows of X whose code is 0."""
        self.radius_ = float(np.sqrt(max(solution.squared_radius, 0.0)))
        self.lower_bound_ = solution.lower_bound
        self.objective_ = solution.objective
        self.certificate_ = solution.certificate
        self.dual_coef_ = solution.coefficients.reshape(1, -1)
        self.core_size_ = solution.core_size
        self.n_iter_ = solution.n_stages
        self.n_kernel_evaluations_ = solution.n_kernel_evaluations
        self.stop_reason_ = solution.stop_reason
        self._squared_norm_ = solution.squared_norm
        self._rounding_ = solution.rounding
        # No row is further from the centre than one whose kernel values are all zero.
        self._largest_square_ = np.inf
        if self._kernel_.has_unit_diagonal:
            self._largest_square_ = 1.0 + self._squared_norm_
        if self.kernel != "precomputed":
            self.support_vectors_: Rows = X[solution.rows]
            return
        self.support_vectors_ = np.empty((0, 0))
        diagonal = self._kernel_.diagonal(X)[codes == 0]
        is_constant = np.ptp(diagonal) <= 1e-9 * np.abs(diagonal).max()
        self._diagonal_ = float(diagonal.mean()) if is_constant else None
        if self._diagonal_ is not None and (X >= 0).all():
            self._largest_square_ = self._diagonal_ + self._squared_norm_

    def _offset(self, X: Rows, weights: FloatArray | None) -> float:
        """Return the score below which rows are outliers."""
        is_auto = self.contamination == "auto"
        if is_auto and self.C != "auto":
            return -float(np.sqrt(self.radius_**2 + self._rounding_))
        scores = self._training_scores(X)
        weights = np.ones(len(scores)) if weights is None else weights
        there = weights > 0
        if is_auto:
            square = fence(scores[there] ** 2, weights[there], self._largest_square_)
            return -float(np.sqrt(square + self._rounding_))
        wanted = float(self.contamination)
        offset = quantile(scores[there], weights[there], wanted)
        share = float(weights[scores < offset].sum() / weights.sum())
        if share < wanted / 2 and wanted * weights.sum() >= 2:
            warn_caller(
                f"contamination={self.contamination}, but only {share:.1%} of the training rows "
                "are further from the centre than the others: they tie on the ball's surface. "
                "Lower gamma.",
                UserWarning,
            )
        return offset

    def _is_flat(self, X: Rows) -> bool:
        """Whether the ball is around dense rows in their own space."""
        return self.kernel == "linear" and not is_sparse(X)

    def _training_scores(self, X: Rows) -> FloatArray:
        """Minus the distances of the training rows, whose k(x, x) are known."""
        return self._scores(X, self._kernel_.diagonal(X) if self.kernel == "precomputed" else None)

    def _scores(self, Q: Rows, diagonal: FloatArray | None = None) -> FloatArray:
        """Minus the distances; `diagonal` is k(x, x), if the kernel cannot evaluate it."""
        scores = np.empty(Q.shape[0])
        per_row = 64
        if self._is_flat(Q):
            per_row += 16 * Q.shape[1]
        elif self._kernel_.name in ("precomputed", "callable"):
            per_row += 8 * len(self.support_)
        step = queries_at_once(Q.shape[0], per_row, self.memory_limit)
        with np.errstate(over="ignore", invalid="ignore"), single_threaded_blas():
            for begin in range(0, Q.shape[0], step):
                part = slice(begin, begin + step)
                own = None if diagonal is None else diagonal[part]
                squares = self._squared_distances(Q[part], own)
                scores[part] = -np.sqrt(np.maximum(squares, 0.0))
        return finite_scores(scores, self.kernel)

    def _squared_distances(self, Q: Rows, diagonal: FloatArray | None) -> FloatArray:
        """Squared distances of rows from the centre."""
        if self._is_flat(Q):
            from_center = Q - self._origin_ - self._shift_
            flat: FloatArray = np.einsum("ij,ij->i", from_center, from_center)
            return flat
        queries, support = Q, self.support_vectors_
        if self.kernel == "precomputed":
            queries, support = Q[:, self.support_], None
        sums = self._kernel_.expand(
            queries, support, self.dual_coef_, dtype=self._dtype_, n_jobs=self.n_jobs
        )[:, 0]
        own = self._kernel_.diagonal(Q) if diagonal is None else diagonal
        squares: FloatArray = own + self._squared_norm_ - 2 * sums
        return squares
