"""
What the vote of EnsembleSVC chooses
====================================

:class:`~hardmargin.EnsembleSVC` has nothing to tune, but it does not keep its choices secret. It
follows paths of several kernels, from a Parzen window at the first stage towards a hard margin at
the last, and judges every stage by the log-loss of held-out rows. No single winner is picked: all
good stages of all good kernels vote, weighted by these losses. This example shows how to read the
result from ``kernel_weights_``, ``cv_table_`` and
:class:`~hardmargin.displays.HeldOutPathDisplay`, on the data set of breast cancer that comes with
scikit-learn.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score

from hardmargin import EnsembleSVC
from hardmargin.displays import HeldOutPathDisplay

X, y = load_breast_cancer(return_X_y=True)
clf = EnsembleSVC().fit(X, y)

# %%
# Which kernels vote
# ------------------
#
# There are two views of the rows: ``standardized``, and ``rank``, the normal scores of the columns'
# ranks, which are not moved by outliers. Both are scaled by the relevance of the columns. Kernels
# are RBF or Laplacian, each with several values of gamma. Those that came close to the best have a
# share of the vote:

weights = pd.DataFrame(clf.kernel_weights_)
print(weights.drop(columns="machine").round(3).to_string(index=False))

# %%
# Which stages vote
# -----------------
#
# ``cv_table_`` has a record for every stage that was judged. Here is the best stage of each kernel.
# A kernel's share is the sum of its stages' shares, so that a long run of good stages can weigh
# more than a few that are slightly better. Kernels that fall behind early are stopped and have no
# share.

table = pd.DataFrame(clf.cv_table_)
best = table.loc[table.groupby(["view", "kernel", "gamma"])["log_loss"].idxmin()]
best = best.merge(weights[["view", "kernel", "gamma", "share"]], how="left").fillna({"share": 0.0})
print(f"{len(best)} kernels were tried, {len(table)} stages judged")
columns = ["view", "kernel", "gamma", "stage", "log_loss", "share"]
print(best.sort_values("log_loss")[columns].head(12).round(3).to_string(index=False))

# %%
# The display draws the same numbers for the kernels with the largest shares. Shaded stages vote.
# The loss falls fast and is then flat for many stages, which is why there is no need to find the
# one right stage. A path ends when its loss has not fallen for a while, long before the hard
# margin: stopping there is what regularises.

figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
HeldOutPathDisplay.from_estimator(clf, n_kernels=4, ax=ax)
ax.set_yticks([0.06, 0.1, 0.2, 0.4], ["0.06", "0.1", "0.2", "0.4"])
ax.minorticks_off()
plt.show()

# %%
# Is a vote of all better than a choice beforehand?
# -------------------------------------------------
#
# Every choice is also a parameter, so the vote can be restricted to some kernels or one view. A
# cross-validation around ``fit`` compares the results on rows that no ``fit`` has seen:

models = {
    "all kernels, both views": EnsembleSVC(),
    "RBF only": EnsembleSVC(kernel="rbf"),
    "Laplacian only": EnsembleSVC(kernel="laplacian"),
    "standardised view only": EnsembleSVC(views="standardized"),
    "rank view only": EnsembleSVC(views="rank"),
    "one RBF kernel, no relevance": EnsembleSVC(kernel="rbf", gamma="scale"),
}
for name, model in models.items():
    losses = -cross_val_score(model, X, y, scoring="neg_log_loss", cv=5)
    print(f"{name:30} log-loss {losses.mean():.4f}")

# %%
# The vote of all need not be the best of these, and here it is not. It is close to the best without
# knowing which one that is, and it is better than a single kernel. On other data another line wins.
#
# What to take away: after ``fit``, ``kernel_weights_`` says which kernels vote, ``cv_table_`` what
# every stage was worth, and ``cv_log_loss_`` what to expect on new rows. That number needs no
# second cross-validation. Compare it with the first line above: it may be a little low, because the
# same rows have weighted the kernels.

print(f"held-out log-loss of the fit above: {clf.cv_log_loss_:.4f}")
