"""Text and wide rows that anyone can make: of docstrings of installed packages, and of topics.

The documents of a class are the docstrings of one package, read by `ast`: nothing is imported.
"""

from __future__ import annotations

import ast
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

Split = tuple[Any, Any, Any, Any]

# Packages that the benchmarks, the tests or pip bring along. The nine with the most docstrings are
# the classes, wherever this runs.
PACKAGES = (
    *("scipy", "sklearn", "pandas", "matplotlib", "numpy", "polars", "pip", "mypy", "fontTools"),
    *("setuptools", "narwhals", "pygments", "_pytest", "hypothesis", "joblib", "PIL"),
)
LEAST_WORDS = 10

# Folders of code that a package has copied from others.
COPIED = {"_vendor", "_vendored", "extern", "externals", "_external", "array_api_compat"}


def nine_packages(n_rows: int = 800, n_test: int = 250, seed: int = 0) -> Split:
    """Words and pairs of words of docstrings of nine packages."""
    return _tfidf(_largest(9), n_rows, n_test, seed, ngram_range=(1, 2), min_df=2)


def four_packages(n_rows: int = 980, n_test: int = 600, seed: int = 0) -> Split:
    """Words of docstrings of four packages."""
    return _tfidf(_largest(4), n_rows, n_test, seed)


def two_packages(n_rows: int = 1_500, n_test: int = 1_000, seed: int = 0) -> Split:
    """Words of docstrings of two packages."""
    return _tfidf(_largest(2), n_rows, n_test, seed)


def counted(n_rows: int = 980, n_test: int = 600, seed: int = 0) -> Split:
    """The four packages again, as counts of words."""
    return _tfidf(_largest(4), n_rows, n_test, seed, use_idf=False, norm=None)


def topics(
    n_rows: int,
    n_words: int,
    n_classes: int,
    *,
    n_test: int = 20_000,
    mean_length: float = 100.0,
    seed: int = 0,
) -> Split:
    """TF-IDF of generated documents: a class prefers some topics, and a topic some words.

    Words have the frequencies of Zipf's law; every topic makes a fiftieth of them more frequent. A
    document has three topics of its class, or of any class, and its words are drawn from them.
    """
    random, n, n_topics = np.random.default_rng(seed), n_rows + n_test, 5 * n_classes
    y = random.integers(0, n_classes, n)
    own = 5 * y[:, None] + random.integers(0, 5, (n, 3))
    of_document = np.where(random.random((n, 3)) < 0.75, own, random.integers(0, n_topics, (n, 3)))
    lengths = 1 + random.poisson(mean_length * random.lognormal(-0.5, 1.0, n))
    documents = np.repeat(np.arange(n), lengths)
    topic = of_document[documents, random.integers(0, 3, len(documents))]
    frequencies = 1 / (10 + np.arange(n_words))
    order, words = np.argsort(topic, kind="stable"), np.empty(len(documents), dtype=np.int32)
    for rows in np.split(order, np.cumsum(np.bincount(topic, minlength=n_topics))[:-1]):
        liked = np.where(random.random(n_words) < 0.02, 25.0, 1.0)
        sums = np.cumsum(frequencies * liked)
        words[rows] = np.searchsorted(sums, sums[-1] * random.random(len(rows)))
    counts = sp.csr_array(
        (np.ones(len(words)), (documents, words.clip(max=n_words - 1))), shape=(n, n_words)
    )
    weighing = TfidfTransformer(sublinear_tf=True).fit(counts[:n_rows])
    X, X_test = weighing.transform(counts[:n_rows]), weighing.transform(counts[n_rows:])
    return X, y[:n_rows], X_test, y[n_rows:]


def wide(n_rows: int = 2_000, n_columns: int = 5_000, n_test: int = 5_000, seed: int = 0) -> Split:
    """Dense rows: ten hidden causes of two classes in many noisy columns."""
    random, n = np.random.default_rng(seed), n_rows + n_test
    causes = random.normal(size=(n, 10))
    X = causes @ random.normal(size=(10, n_columns)) / np.sqrt(10) + 2 * random.normal(
        size=(n, n_columns)
    )
    y = causes @ random.normal(size=10) + random.normal(size=n) > 0
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


SETS: dict[str, Callable[[], Split]] = {
    "9 packages": nine_packages,
    "4 packages": four_packages,
    "4 packages, counts": counted,
    "2 packages": two_packages,
    "wide, dense": wide,
    "topics, 2 classes": partial(topics, 30_000, 50_000, 2),
    "topics, 20 classes": partial(topics, 100_000, 200_000, 20),
}


def _tfidf(packages: Sequence[str], n_rows: int, n_test: int, seed: int, **options: Any) -> Split:
    """Draw as many documents of every package, and weigh their words."""
    random = np.random.default_rng(seed)
    texts: tuple[list[str], list[str]] = [], []
    labels: tuple[list[str], list[str]] = [], []
    for package in packages:
        found = docstrings(package)
        order = random.permutation(len(found))
        for part, some in enumerate((order[:n_rows], order[n_rows : n_rows + n_test])):
            texts[part].extend(found[i] for i in some)
            labels[part].extend([package] * len(some))
    vectorizer = TfidfVectorizer(sublinear_tf=True, **options)
    X, X_test = vectorizer.fit_transform(texts[0]), vectorizer.transform(texts[1])
    return X, np.array(labels[0]), X_test, np.array(labels[1])


def _largest(n_packages: int) -> list[str]:
    return sorted(PACKAGES, key=lambda name: -len(docstrings(name)))[:n_packages]


@cache
def docstrings(package: str) -> list[str]:
    """Different docstrings of a package's modules, classes and functions, in the files' order."""
    found: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_paths()["purelib"], package).rglob("*.py")):
        if not COPIED.intersection(path.parts):
            found.update(dict.fromkeys(_of_file(path)))
    return list(found)


def _of_file(path: Path) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the escapes of others
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            if len(text.split()) >= LEAST_WORDS:
                yield text
