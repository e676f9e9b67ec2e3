"""The memory of this process without that of files, as Linux counts it."""

import re
import warnings
from pathlib import Path
from threading import Event, Thread

import hardmargin
from hardmargin.resources import give_back_memory


def anonymous():
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(re.search(r"RssAnon:\s+(\d+)", status)[1])


def share_taken(name, X, y, memory_limit, sample_weight=None, **parameters):
    """Return the most memory that a fit adds to what was in use, as a share of its limit."""
    estimator = getattr(hardmargin, name)
    found, done = [0], Event()

    def watch():
        while not done.wait(0.002):
            found.append(anonymous())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator().fit(X[:200], y[:200])  # so that everything is imported
        give_back_memory()
        before, watcher = anonymous(), Thread(target=watch)
        watcher.start()
        try:
            weights = () if sample_weight is None else (sample_weight,)
            estimator(memory_limit=memory_limit, **parameters).fit(X, y, *weights)
        finally:
            done.set()
            watcher.join()
    return (max(found) - before) / memory_limit
