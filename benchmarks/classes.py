"""Compare one machine per pair of many classes with one per class, in EnsembleSVC and GreedySVC.

    python benchmarks/classes.py --data-dir DIR [--sets letter,clf-40] [--rows 10,20,50]

Each line is one set, with that many rows per class on average to train: log-loss and error on up
to 5,000 other rows, processor seconds of `fit`, and coefficients of the model. `clf-K` is
make_classification with K classes, `overlap-K` the same with two clusters per class and fifteen
informative columns, `blobs-K` and `plane-K` isotropic clusters in ten and in two columns. The other
sets are read from the folder, and digits from scikit-learn. Run it with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits, make_blobs, make_classification
from sklearn.metrics import log_loss

from hardmargin import EnsembleSVC, GreedySVC
from hardmargin.datasets import load_folder

SETS = (
    "vowel,digits,pendigits,optdigits,clf-10,clf-15,overlap-20,letter,blobs-40,plane-40,clf-40,"
    "clf-100,blobs-200"
)
MODELS = {"ensemble": EnsembleSVC, "greedy": GreedySVC}
ROWS_PER_CLASS = 400
MOST_TEST_ROWS = 5_000


def load(name: str, data_dir: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows and labels 0..k-1."""
    kind, _, k = name.partition("-")
    n = ROWS_PER_CLASS * int(k or 0)
    shape: dict[str, Any] = {"n_features": 20, "n_classes": int(k or 0), "random_state": 0}
    if kind == "blobs":
        X, y = make_blobs(n, n_features=10, centers=int(k), cluster_std=4.0, random_state=0)
    elif kind == "plane":
        X, y = make_blobs(n, centers=int(k), random_state=0)
    elif kind == "clf":
        X, y = make_classification(
            n, n_informative=12, n_redundant=4, n_clusters_per_class=1, class_sep=2.0, **shape
        )
    elif kind == "overlap":
        X, y = make_classification(
            n, n_informative=15, n_redundant=0, n_clusters_per_class=2, class_sep=1.5, **shape
        )
    elif name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        data = load_folder(name, data_dir)
        X, y = data.X if isinstance(data.X, np.ndarray) else data.X.toarray(), data.y
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]


def measure(name: str, n_per_class: int, data_dir: str) -> None:
    """Print one line per model."""
    X, y = load(name, data_dir)
    order = np.random.RandomState(0).permutation(len(y))
    n = n_per_class * (y.max() + 1)
    train, test = order[:n], order[n : n + MOST_TEST_ROWS]
    is_known = np.bincount(y[train], minlength=y.max() + 1) >= 2
    train, test = train[is_known[y[train]]], test[is_known[y[test]]]
    for model, estimator in MODELS.items():
        cells = []
        for division in ("ovo", "ovr"):
            begin = time.process_time()
            clf = estimator(multi_class=division, random_state=0).fit(X[train], y[train])
            seconds = time.process_time() - begin
            loss = log_loss(y[test], clf.predict_proba(X[test]), labels=clf.classes_)
            error = float((clf.predict(X[test]) != y[test]).mean())
            coefficients = clf.dual_coef_
            is_sparse = hasattr(coefficients, "nnz")
            size = coefficients.nnz if is_sparse else np.count_nonzero(coefficients)
            cells += [f"{loss:.3f}", f"{100 * error:.1f}", f"{seconds:.1f}", f"{size / 1e3:,.0f}"]
        head = (name, len(clf.classes_), n_per_class, model)
        print("|", *(f"{cell} |" for cell in (*head, *cells)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default=".")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--rows", default="10,20,50")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = ("log-loss", "error %", "fit s", "10^3 coefficients")
    head = ("set", "classes", "rows per class", "model")
    titles = [*head, *(f"{division} {c}" for division in ("ovo", "ovr") for c in columns)]
    print("|", *(f"{title} |" for title in titles))
    print("|", *("--- |" for _ in titles))
    for name in arguments.sets.split(","):
        for n_per_class in map(int, arguments.rows.split(",")):
            measure(name, n_per_class, arguments.data_dir)


if __name__ == "__main__":
    main()
