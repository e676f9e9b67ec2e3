"""
Fewer support rows, faster predictions
======================================

An :class:`~hardmargin.EnsembleSVC` predicts from all its training rows, with several kernels. That
is slow where many rows must be predicted, and large where a model must be stored.
:func:`~hardmargin.compress` makes a model that predicts nearly the same from fewer support rows. It
needs no labels and no training: it keeps the function, not the rows. This example shows what
remains of accuracy and log-loss as support rows become fewer, and how much faster predictions are.
"""

import pickle
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from hardmargin import EnsembleSVC, GreedySVC, compress

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"

X, y = make_classification(
    12_000,
    n_features=8,
    n_informative=6,
    n_redundant=0,
    n_clusters_per_class=3,
    flip_y=0.05,
    random_state=0,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=2_000, random_state=0)
clf = EnsembleSVC().fit(X_train, y_train)

# %%
# Support rows against accuracy, loss and time
# --------------------------------------------
#
# Smaller and smaller models, and a :class:`~hardmargin.GreedySVC` of the same rows, which chooses
# few support rows from the start. Times are CPU time per row, for all test rows at once.


def measure(name, model):
    times = []
    for _ in range(5):
        start = time.process_time()
        p = model.predict_proba(X_test)
        times.append(time.process_time() - start)
    return {
        "model": name,
        "support rows": len(model.support_),
        "error %": 100 * np.mean(p.argmax(axis=1) != y_test),
        "log-loss": log_loss(y_test, p),
        "microseconds": 1e6 * min(times) / len(X_test),
        "kB": len(pickle.dumps(model)) / 1000,
    }


with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # the smallest change many predictions: see below
    small = {n: compress(clf, n_support=n) for n in (400, 200, 100, 50)}
records = [measure("EnsembleSVC", clf)]
records += [measure("compressed", model) for model in small.values()]
records += [measure("GreedySVC", GreedySVC().fit(X_train, y_train))]
results = pd.DataFrame(records)
print(
    results.round({"error %": 2, "log-loss": 4, "microseconds": 2, "kB": 0}).to_string(index=False)
)

# %%
# Down to a tenth of the rows, little is lost. Time and size fall with the number of support rows.

figure, axes = plt.subplots(1, 2, figsize=(6.5, 3.2), layout="constrained", sharex=True)
ours, greedy = results[results["model"] != "GreedySVC"], results.iloc[-1]
for ax, column in zip(axes, ("log-loss", "microseconds"), strict=True):
    ax.plot(ours["support rows"], ours[column], "o-", color=BLUE, label="EnsembleSVC, compressed")
    ax.plot(greedy["support rows"], greedy[column], "s", color=GREY, label="GreedySVC")
    ax.set(xlabel="support rows", xscale="log", ylim=(0, None))
    ax.set_xticks(ours["support rows"], [str(n) for n in ours["support rows"]])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(ylabel="log-loss of test rows", ylim=(0, 1.15 * results["log-loss"].max()))
axes[1].set(ylabel="microseconds per row")
axes[0].legend(loc="lower left")
plt.show()

# %%
# What a compression costs
# ------------------------
#
# ``compression_`` says so without test rows: by how much the decision values changed, relative to
# their size, and how many predictions, both measured on the training rows. If more than one
# prediction in twenty changes, ``compress`` warns; these warnings were silenced above. Instead of a
# number of rows, a ``tolerance`` for the relative change can be given:

small[0.1] = compress(clf, tolerance=0.1)
for setting, model in small.items():
    found = model.compression_
    name = "n_support" if setting >= 1 else "tolerance"
    print(
        f"{name} = {setting:<4} {found.n_support:4} rows, relative change "
        f"{found.relative_change:.3f}, {100 * found.changed_predictions:.1f} % of the predictions "
        f"changed, expected speed-up {found.speedup:.0f}x"
    )

# %%
# What to take away: train the best model first, then compress it to what predictions may cost, and
# look at ``compression_`` before using it. If the model should be small from the start,
# ``GreedySVC`` may be enough.
