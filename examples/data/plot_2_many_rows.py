"""
Many rows in little time
========================

Kernel machines have a reputation for being slow with many rows. :class:`~hardmargin.EnsembleSVC`
divides more than 10,000 rows into cells with machines of their own, so that time grows in
proportion to the number of rows. ``max_time`` says how many seconds ``fit`` may take. It then fits
few rows first, then all rows with as many cells as there is time for, and keeps the best model.
This example shows what a few more seconds are worth, which experts vote, and how gradient boosting
compares.
"""

import os
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from hardmargin import EnsembleSVC

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"

# A quick build of the documentation sets this variable to a smaller number.
N_ROWS = int(os.environ.get("HARDMARGIN_EXAMPLE_ROWS", 400_000))
N_TEST = 20_000
N_JOBS = 2

# %%
# The rows
# --------
#
# Six columns, and two classes of twelve clusters each, which overlap.

X, y = make_classification(
    N_ROWS + N_TEST,
    n_features=6,
    n_informative=6,
    n_redundant=0,
    n_clusters_per_class=12,
    flip_y=0.02,
    random_state=0,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=N_TEST, random_state=0)
print(f"{len(X_train):,} rows to train on, {len(X_test):,} to test")

# %%
# What a few more seconds are worth
# ---------------------------------
#
# If the time is too short for all rows, ``fit`` says so in a warning, and how many rows it used.
# The table shows that number, ``n_samples_fit_``, instead of the warning. The seconds are
# wall-clock time, so that the table depends on the computer and on what else it is doing.

records = []


def measure(name, model, n_rows=N_ROWS):
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # not all rows were used
        model.fit(X_train[:n_rows], y_train[:n_rows])
    seconds = time.perf_counter() - start
    p = model.predict_proba(X_test)
    records.append(
        {
            "model": name,
            "seconds": seconds,
            "rows used": getattr(model, "n_samples_fit_", n_rows),
            "error %": 100 * np.mean(p.argmax(axis=1) != y_test),
            "log-loss": log_loss(y_test, p),
        }
    )
    return model


for limit in (2, 4, 8):
    measure(f"EnsembleSVC(max_time={limit})", EnsembleSVC(max_time=limit, n_jobs=N_JOBS))

# %%
# Without a limit
# ---------------
#
# Where the time is known to be enough, set no limit. This is a fit of a part of the rows; all rows
# take longer in proportion to their number. Gradient boosting uses all rows.

n_part = min(100_000, N_ROWS)
clf = measure("EnsembleSVC, no limit", EnsembleSVC(n_jobs=N_JOBS), n_part)
measure("gradient boosting", HistGradientBoostingClassifier(random_state=0))
measure(
    "gradient boosting, larger",
    HistGradientBoostingClassifier(max_iter=300, max_leaf_nodes=63, random_state=0),
)
results = pd.DataFrame(records)
print(results.round({"seconds": 1, "error %": 2, "log-loss": 4}).to_string(index=False))

# %%

figure, axes = plt.subplots(1, 2, figsize=(6.5, 3.2), layout="constrained")
limited, unlimited, boosting = results[:3], results[3:4], results[4:]
for ax, column in zip(axes, ("error %", "log-loss"), strict=True):
    for part, style, colour, name in [
        (limited, "o-", BLUE, "EnsembleSVC, max_time"),
        (unlimited, "D", BLUE, f"no limit, {n_part:,} rows"),
        (boosting, "s-", RED, "gradient boosting"),
    ]:
        ax.plot(part["seconds"], part[column], style, color=colour, label=name)
    ax.set(xlabel="seconds of fit", ylabel=f"test {column}")
    ax.set(xlim=(0, None), ylim=(0, 1.1 * results[column].max()))
    ax.spines[["top", "right"]].set_visible(False)
axes[1].legend(loc="lower right", fontsize="small")
plt.show()

# %%
# Gradient boosting always uses all rows, and its defaults are quick. Larger trees and more of them
# take longer and lower its error, and there are settings beyond those tried here. Clusters suit
# kernels: on other data the order may be different.
#
# What votes
# ----------
#
# With more than 10,000 rows the model is a mixture of experts: a vote on a sample of the rows,
# called ``whole``, and trees whose cells have machines of their own. Trees cut the rows at a
# ``column`` or across a ``direction``. Weights multiply the log-probabilities of the experts and
# need not sum to one. This is the model without a limit:

print(pd.DataFrame(clf.experts_).round(3).to_string(index=False))

# %%
# What to take away: ``EnsembleSVC()`` takes hundreds of thousands of rows, in time that grows in
# proportion to them. If a fit must end, set ``max_time``: there is a model after two seconds, and
# more time usually makes it better.
