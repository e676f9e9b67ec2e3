"""The C-SVM along its whole regularisation path as a classifier."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from hardmargin.estimators._base.classifier import Training
from hardmargin.estimators._base.estimator import one_or_all
from hardmargin.estimators._base.options import Choice
from hardmargin.estimators._base.regularization_paths import (
    MachinePaths,
    RegularizationPathClassifier,
    follow_paths,
    warn_of_paths,
)
from hardmargin.kernels import KernelFunction
from hardmargin.selection.folds import Folds, make_folds, warn_of_shortage
from hardmargin.selection.regularization_path import (
    HeldOutChoice,
    by_rows_held_out,
    loo_curve,
    validation_split,
)
from hardmargin.solvers.regularization_path import RegularizationPathOptions
from hardmargin.warn import warn_caller


class PathSVC(RegularizationPathClassifier):
    """The soft-margin SVM for every C at once, and the C that is best.

    Minimises ``||w||^2 / 2 + C sum(slack)``, like scikit-learn's ``SVC``. Multipliers and intercept
    are piecewise linear in C, and the regularisation path [1]_ goes from one breakpoint to the
    next, exactly. One fit takes as long as many single SVMs; afterwards `at` returns the SVM of any
    C without training. The C used for predictions is chosen by held-out rows, with a regularisation
    path for each split, or by a bound on the leave-one-out error [2]_. These are the SVM(BEST) and
    SVM(LOO) of IJCAI-07.

    Parameters
    ----------
    selection : {"cv", "loo", "validation"} or float, default="cv"
        How C is chosen. ``"cv"`` minimises the cross-validation error, ``"validation"`` the error
        on a share of the rows that is held out. ``"loo"`` minimises a leave-one-out bound: the
        weighted share of rows with ``alpha_i k(x_i, x_i) >= y_i f(x_i)``, where copies of a row
        share alpha. (With a bias it is only an estimate, and may be too low for small C.) A number
        is C itself. If several C are best, the middle of their longest range on a logarithmic scale
        is chosen. Errors are weighted by sample and class weights. With many classes, each machine
        chooses its own C.
    cv : int, splitter or iterable of splits, default=5
        For ``selection="cv"``: the number of shuffled stratified folds (fewer where a class has
        fewer than two rows per fold), or any splitter of scikit-learn. Splitters that need groups
        use those passed to ``fit``.
    validation_fraction : float, default=0.2
        For ``selection="validation"``: the share of every class that is held out. The final SVM is
        trained on all rows.
    C_min : float or None, default=None
        The least C that can be chosen, unless the regularisation path ends before it; None is a
        tenth of the C at which the first row reaches the margin. (It always begins at C = 0.)
    C_max : float, default=1e4
        The C at which the regularisation path ends at the latest, unless `selection` is a larger C.
    gamma : float or {"scale", "spread", "pairwise"}, default="scale"
        Width of the kernel. ``"scale"`` is scikit-learn's 1 / (n_features * X.var()),
        ``"spread"`` 1 / mean squared distance to the mean, ``"pairwise"`` 1 / mean squared distance
        between rows.
    kernel : {"rbf", "laplacian", "matern32", "matern52", "linear", "cosine", "poly", \
"sigmoid", "precomputed"} or callable, default="rbf"
        The kernel; it should be positive semi-definite.
    degree : float, default=3
        Degree of the ``"poly"`` kernel.
    coef0 : float, default=0.0
        Constant in the ``"poly"`` and ``"sigmoid"`` kernels.
    fit_intercept : bool, default=True
        Whether the SVM has a bias. Without one, the leave-one-out bound is strict.
    max_stages : int or None, default=None
        Limit on the events of a regularisation path; None allows 10,000, or 100 per row if that is
        more.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights: the C of row i is
        ``C * weight_i``.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine per pair of classes, or one per class against the rest; the second also where
        `max_time` is below 1.2 ms per pair, with a warning.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of kernel values in predictions. ``"auto"`` is float64 up to 5,000 rows and
        float32 above. Regularisation paths always use float64.
    memory_limit : str, number or None, default=None
        Memory limit of a fit, such as ``"2GB"`` or a number of bytes; None is half the free memory.
        A regularisation path needs up to four matrices of the size of the kernel matrix.
    n_jobs : int or None, default=None
        Number of threads: over splits or machines in ``fit``, over rows in ``predict``. The model
        does not depend on it.
    max_time : float or None, default=None
        Seconds after which the regularisation paths end where they are, with a warning. Without
        time for the kernel matrix, that is C = 0, where the larger class is always predicted.
    verbose : int, default=0
        Print the progress of long fits.
    random_state : int, RandomState instance or None, default=None
        Seed for the folds, or for the held-out share of rows; None is a fixed seed.

    Attributes
    ----------
    C_ : float or array
        The C that was chosen, or the last C of the regularisation path if that is smaller (a larger
        C does not change a hard margin).
    path_ : RegularizationPath, or list of them for many classes
        All breakpoints, in ascending order of C from 0: ``C``, ``intercept``, ``elbow_size``,
        ``n_support``, ``error`` (of the training rows), ``loo_bound``, ``squared_norm``,
        ``slack_sum``. ``multipliers(k)`` returns those of breakpoint k, ``at(C)`` those of any C.
        Rows are numbered within the machine; `path_rows_` maps them to X.
    path_rows_ : array, or list of them for many classes
        The rows of X on a regularisation path: those of its machine's classes with positive weight.
    loo_path_ : array, or list of them for many classes
        The leave-one-out bound at the breakpoints.
    cv_results_ : dict, or list of them for many classes
        ``"C"``: where the held-out error changes; ``"error"``: its value from there to the next C.
        Only with ``selection="cv"`` or ``"validation"``.
    cv_error_ : float or array
        The held-out error of each machine; exists where `cv_results_` does. The least of the errors
        there is too low, as C was chosen by it: the rows of every split are judged at the C that
        the other splits choose; with a single split, a fifth of its rows at the choice of the rest.
    loo_bound_ : float or array
        The leave-one-out bound at `C_`, only with ``selection="loo"``. It is the least of all, and
        so it is no estimate of the error.
    certificate_ : float or array
        Largest violation of the optimality conditions, at breakpoints and between them.
    weight_norm_ : float or array
        ``||w||``.
    slack_sum_ : float or array
        Weighted sum of the slacks.
    n_iter_ : int, or array of them for many classes
        Number of events on the regularisation path.
    stop_reason_ : str or array
        Why the regularisation path ended: ``"hard_margin"`` (a larger C changes nothing),
        ``"C_max"``, ``"stalled"`` (rounding, or a kernel that is not positive semi-definite),
        ``"max_stages"`` or ``"max_time"``.
    classes_ : (n_classes,) array
        The labels.
    support_ : (n_support,) array
        Rows with a coefficient.
    support_vectors_ : (n_support, n_features) array or CSR matrix
        Those rows; empty for a precomputed kernel.
    n_support_ : (n_classes,) array
        Support rows of each class.
    dual_coef_ : (n_machines, n_support) array, or CSR array for many classes
        Multiplier times label.
    intercept_ : (n_machines,) array
        The bias.
    coef_ : (n_machines, n_features) array
        Weights of the features, for the linear kernel only.
    gamma_ : float
        The kernel's gamma as a number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array
        Names of the features, if X has them.

    See Also
    --------
    RigorousSVC : The C-SVM of a given ``||w||``, found on the same regularisation path.
    HardMarginSVC : The end of the regularisation path, if the kernel separates the classes.

    Notes
    -----
    A breakpoint costs ``O(n * elbow_size)``, and there are usually about as many breakpoints as
    rows. Training needs the kernel matrix; the fitted estimator keeps the training rows, for `at`.
    If no row is on the margin, the intercept is not unique and may differ from that of ``SVC``.

    References
    ----------
    .. [1] T. Hastie, S. Rosset, R. Tibshirani and J. Zhu, "The Entire Regularization Path for the
       Support Vector Machine", JMLR 5, 2004.
    .. [2] T. Evgeniou, M. Pontil and A. Elisseeff, "Leave One Out Error, Stability, and
       Generalization of Voting Combinations of Classifiers", Machine Learning 55, 2004. Their bound
       is for machines without bias; with a bias it is an estimate.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from hardmargin import PathSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = PathSVC("loo").fit(StandardScaler().fit_transform(X), y)
    >>> clf.stop_reason_, bool(clf.certificate_ < 1e-8)
    ('hard_margin', True)
    >>> clf.at(1.0).C_
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RegularizationPathClassifier._parameter_constraints,
        "selection": [
            Choice({"cv", "loo", "validation"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "cv": ["cv_object"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "C_min": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        selection: float | str = "cv",
        *,
        cv: Any = 5,
        validation_fraction: float = 0.2,
        C_min: float | None = None,
        C_max: float = 1e4,
        gamma: float | str = "scale",
        kernel: str | KernelFunction = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        max_stages: int | None = None,
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "ovo",
        dtype: str = "auto",
        memory_limit: str | float | None = None,
        n_jobs: int | None = None,
        max_time: float | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.selection = selection
        self.cv = cv
        self.validation_fraction = validation_fraction
        self.C_min = C_min
        self.C_max = C_max
        self.gamma = gamma
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.max_stages = max_stages
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.dtype = dtype
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Train on rows X with labels y.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Training rows; for ``kernel="precomputed"`` the (n_samples, n_samples) kernel matrix.
        y : (n_samples,) array
            Labels: strings, integers, booleans or categories.
        sample_weight : (n_samples,) array, optional
            Row weights: a weight of two counts the row twice, a weight of zero leaves it out.
        groups : (n_samples,) array, optional
            Group of each row, for a splitter given as `cv`; the notes of ``EnsembleSVC.fit`` say
            how to pass them through ``cross_val_score`` and searches.

        Returns
        -------
        self
        """
        with self._fitting() as monitor:
            if self.C_min is not None and self.C_min > self.C_max:
                raise ValueError(f"C_min={self.C_min} must not be above C_max={self.C_max}.")
            training = self._training(self._check_training(X, y, sample_weight))
            folds = self._folds(training, groups)
            given_C = None if isinstance(self.selection, str) else float(self.selection)
            options = RegularizationPathOptions(
                C_max=max(self.C_max, given_C or 0.0), max_stages=self.max_stages
            )
            n_machines = len(training.machines)
            machines = follow_paths(self, training, [options] * n_machines, monitor, folds)
            warn_of_paths(machines)
            paths = [machine.whole.path for machine in machines]
            if folds is not None:
                _warn_of_folds(folds, machines)
                chosen = self._by_rows_held_out(training, machines)
                curves = [{"C": c.curve.C, "error": c.curve.error} for c in chosen]
                self.cv_results_: Any = curves[0] if n_machines == 1 else curves
                self.cv_error_ = one_or_all([c.error for c in chosen])
                Cs = [c.C for c in chosen]
            elif given_C is not None:
                Cs = [given_C] * n_machines
            else:
                best = [loo_curve(path, self.C_min).best() for path in paths]
                self.loo_bound_ = one_or_all([bound for _, bound in best])
                Cs = [C for C, _ in best]
            self._keep_paths(training, [machine.whole for machine in machines])
            self._store_at(training, paths, Cs)
        return self

    def _folds(self, training: Training, groups: Any) -> Folds | None:
        """Split the rows as `selection` requires; None if it needs no splits."""
        random = self._new_generator()
        if self.selection == "validation":
            return validation_split(training.codes, self.validation_fraction, random)
        if self.selection != "cv":
            return None
        return make_folds(self.cv, training.X, training.codes, groups=groups, random_state=random)

    def _by_rows_held_out(
        self, training: Training, machines: list[MachinePaths]
    ) -> list[HeldOutChoice]:
        """Choose the C of every machine."""
        weights, chosen = training.row_weights(), []
        for m, machine in enumerate(machines):
            rows = training.rows_of(m)
            positive = training.labels_of(m)[rows] > 0
            path, parts = machine.whole.path, machine.parts
            chosen.append(by_rows_held_out(path, parts, positive, weights[rows], self.C_min))
        return chosen


def _warn_of_folds(folds: Folds, machines: list[MachinePaths]) -> None:
    """Warn if there were no held-out rows to choose by, or only a few."""
    n_blind = sum(not machine.parts for machine in machines)
    if n_blind:
        whose = "" if len(machines) == 1 else f" of {n_blind} of {len(machines)} machines"
        reason = folds.shortage or "no split has rows of two classes to train on and to score"
        warn_caller(
            f"C{whose} could not be chosen by held-out rows: {reason}. It is chosen by the least "
            "leave-one-out bound instead.",
            UserWarning,
        )
    elif folds.shortage:
        warn_of_shortage(folds)
