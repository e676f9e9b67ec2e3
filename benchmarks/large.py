"""Fit many rows with nothing to tune.

    python benchmarks/large.py --data-dir DIR [--n-jobs 1]

EnsembleSVC() and GreedySVC() on adult (32,561 rows) and on 400,000 rows of covtype: seconds, test
error, support rows, and the peak memory of each process. For GreedySVC also the time of one plain
fit at the gamma and visits that were chosen: choosing should cost a few of those.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import partial
from typing import Any

import forked
import numpy as np
from data import PROBLEMS
from threadpoolctl import threadpool_limits

from hardmargin import EnsembleSVC, GreedySVC

CUT_S = 1_800.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", required=True, help="folder of the data files")
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    for problem in ("a9a", "covtype-400k"):
        parts = PROBLEMS[problem].read(options.data_dir)
        print(f"{PROBLEMS[problem].text}", flush=True)
        for model in (GreedySVC, EnsembleSVC):
            row = forked.run(partial(measured, model, parts, options.n_jobs), CUT_S)
            print(f"  {model.__name__}(): {text(row)}", flush=True)


def measured(model: Any, parts: Any, n_jobs: int) -> dict[str, Any]:
    X, y, X_test, y_test = parts
    with threadpool_limits(n_jobs):
        clf = model(n_jobs=n_jobs, random_state=0)
        cpu, wall = time.process_time(), time.perf_counter()
        clf.fit(X, y)
        row = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        row["error"] = 100 * float(np.mean(clf.predict(X_test) != y_test))
        row["cv"] = 100 * clf.cv_error_
        row["support"] = len(clf.support_)
        row["chosen"] = chosen(clf)
        row["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        if isinstance(clf, GreedySVC):
            plain = GreedySVC(
                clf.gamma_,
                max_visits=clf.max_visits_,
                standardize=clf.standardized_,
                n_jobs=n_jobs,
            )
            start = time.process_time()
            plain.fit(X, y)
            row["plain"] = time.process_time() - start
    return row | {"status": "ok"}


def chosen(clf: Any) -> str:
    if isinstance(clf, GreedySVC):
        scale = "standardised" if clf.standardized_ else "features as they are"
        return f"gamma {clf.gamma_:.3g}, max_visits {clf.max_visits_}, {scale}"
    kernels = ", ".join(f"{k['kernel']} {k['gamma']:.3g}" for k in clf.kernel_weights_)
    return f"{kernels}, rank {clf.rank_}"


def text(row: dict[str, Any]) -> str:
    if row["status"] != "ok":
        return f"{row['status']} {row.get('note', '')}"
    plain = f"; one plain fit {row['plain']:.1f} CPU s" if "plain" in row else ""
    return (
        f"{row['cpu']:.1f} CPU s, {row['wall']:.1f} s, {row['memory']:.2f} GB, error "
        f"{row['error']:.2f} % (cross-validation {row['cv']:.2f}), {row['support']:,} support "
        f"rows, {row['chosen']}{plain}"
    )


if __name__ == "__main__":
    main()
