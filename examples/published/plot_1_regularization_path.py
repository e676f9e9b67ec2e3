"""
The whole regularisation path of an SVM
=======================================

The usual soft-margin SVM has a constant C, and its solution is piecewise linear in C.
:class:`~hardmargin.PathSVC` follows these pieces from C = 0 to the hard margin (Hastie et al.,
2004). One fit therefore contains the exact SVM of every C: ``at(C)`` returns any of them without
training. A grid search looks at a few points of the same curve. This example draws the curve, and
compares the C that held-out rows choose with that of a grid search.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import SVC

from hardmargin import PathSVC
from hardmargin.displays import RegularizationPathDisplay

BLUE, RED = "#2f6f9f", "#c8553d"

X, y = make_classification(
    4_400,
    n_features=8,
    n_informative=6,
    n_redundant=0,
    n_clusters_per_class=3,
    flip_y=0.1,
    random_state=1,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)

# %%
# One fit, all C
# --------------
#
# With ``selection="cv"``, the default, each of five folds has a regularisation path of its own, and
# the held-out error is known for every C. If several C are equally good, the middle of their
# longest range is taken. ``certificate_`` is the largest violation of the optimality conditions
# anywhere on the regularisation path.

folds = StratifiedKFold(5, shuffle=True, random_state=0)
start = time.process_time()
clf = PathSVC(cv=folds).fit(X_train, y_train)
path_seconds = time.process_time() - start
print(f"{len(clf.path_)} breakpoints up to C = {clf.path_.C[-1]:.3g}, end: {clf.stop_reason_}")
print(f"chosen C = {clf.C_:.3g}, held-out error {100 * clf.cv_error_:.1f} %")
print(f"largest violation of the optimality conditions: {clf.certificate_:.0e}")

# %%
# The training error falls to zero as C grows, the held-out error does not. Dots are what a grid
# search sees, with the same folds.

Cs = np.logspace(-2, 2, 5)
start = time.process_time()
search = GridSearchCV(SVC(), {"C": Cs}, cv=folds).fit(X_train, y_train)
search_seconds = time.process_time() - start

figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
RegularizationPathDisplay.from_estimator(clf, ax=ax)
held_out = 1 - search.cv_results_["mean_test_score"]
ax.plot(Cs, held_out, "o", color="black", markersize=5, label="grid search, held-out error")
ax.legend()
plt.show()

# %%
# The C of the regularisation path and that of the grid
# -----------------------------------------------------

print(f"{'':12}{'C':>8}{'held-out error %':>18}{'test error %':>14}{'CPU seconds':>13}")
rows = [
    ("path", clf.C_, clf.cv_error_, clf.score(X_test, y_test), path_seconds),
    (
        "grid search",
        search.best_params_["C"],
        1 - search.best_score_,
        search.score(X_test, y_test),
        search_seconds,
    ),
]
for name, C, error, score, seconds in rows:
    print(f"{name:12}{C:8.3g}{100 * error:18.1f}{100 - 100 * score:14.1f}{seconds:13.2f}")

# %%
# The regularisation path takes longer than a search over a few C, and does not always give the
# better model: held-out rows choose between neighbouring C by a handful of errors. What it gives is
# the whole curve, and any other C by one call. These are the SVMs that scikit-learn trains from
# scratch:

for C in Cs:
    svc = SVC(C=C, tol=1e-8).fit(X_train, y_train)
    difference = clf.at(C).decision_function(X_test) - svc.decision_function(X_test)
    print(f"C = {C:6.2f}: largest difference of the decisions {np.abs(difference).max():.0e}")

# %%
# The multipliers along the regularisation path
# ---------------------------------------------
#
# Each line is the multiplier of one row, as a share of C, which is its upper bound. It begins at
# that bound and leaves it when the row reaches the margin; at zero, the row is no longer a support
# row. Between breakpoints multipliers are straight lines in C. The dashed line is the chosen C.

path = clf.path_
C = np.geomspace(path.C[path.C > 0][0], path.C[-1], 300)
alpha = np.array([path.at(value)[0] for value in C])
some = np.random.default_rng(0).choice(len(X_train), 25, replace=False)

figure, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
ax.plot(C, alpha[:, some] / C[:, None], color=BLUE, linewidth=1, alpha=0.6)
ax.axvline(clf.C_, color="0.4", linestyle="--")
ax.set(xscale="log", xlabel="C", ylabel="multiplier / C")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What to take away: for up to a few thousand rows, ``PathSVC`` shows how an SVM depends on its C,
# exactly, and chooses C without a grid. For predictions alone a grid is often good enough, and
# ``EnsembleSVC`` has no C at all.
