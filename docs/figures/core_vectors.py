"""CoreVectorSVC: the rows that it needs, and its two bounds as the core set grows."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from hardmargin import CoreVectorSVC

BLUE, RED = "#2f6f9f", "#c8553d"
X, y = make_moons(20_000, noise=0.15, random_state=0)
svm = {"C": 10.0, "gamma": 2.0, "tol": 0.01, "random_state": 0}
clf = CoreVectorSVC(**svm).fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(6.5, 2.8), layout="constrained")
for label, colour in ((0, RED), (1, BLUE)):
    left.scatter(*X[y == label].T, s=1, color=colour, alpha=0.1, linewidths=0, rasterized=True)
    rows = clf.support_[y[clf.support_] == label]
    left.scatter(*X[rows].T, s=7, color=colour, edgecolor="black", linewidth=0.3)
xs, ys = np.meshgrid(np.linspace(-1.6, 2.6, 150), np.linspace(-1.1, 1.6, 150))
scores = clf.decision_function(np.column_stack([xs.ravel(), ys.ravel()])).reshape(xs.shape)
left.contour(xs, ys, scores, levels=[0], colors="black", linewidths=1)
left.set(xticks=[], yticks=[])
left.set_title(f"{len(clf.support_):,} of {len(X):,} rows have a coefficient", fontsize=8.5)

stages, sizes, lower, upper = range(1, clf.n_iter_ + 1), [], [], []
with warnings.catch_warnings():  # each of these fits is stopped early
    warnings.simplefilter("ignore", ConvergenceWarning)
    for stage in stages:
        early = CoreVectorSVC(max_stages=stage, **svm).fit(X, y)
        sizes.append(early.core_size_)
        lower.append(early.lower_bound_)
        upper.append(early.objective_)
right.fill_between(sizes, lower, upper, color=BLUE, alpha=0.15)
right.plot(sizes, upper, ".-", color=RED, label="objective_")
right.plot(sizes, lower, ".-", color=BLUE, label="lower_bound_")
right.set(xlabel="rows in the core set", ylabel="bounds on the optimum", yscale="log")
right.legend(frameon=False)
