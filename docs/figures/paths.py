"""PathSVC: the norm of the plane for every C, and the errors that choose one."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hardmargin import PathSVC, RigorousSVC

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"
X, y = make_moons(200, noise=0.3, random_state=0)
clf = PathSVC(gamma=1.0).fit(X, y)
rigorous = RigorousSVC(gamma=1.0).fit(X, y)
path = clf.path_

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(6.5, 2.6), layout="constrained")
is_shown = (path.C > 0) & (path.C < 3)
multipliers = np.array([path.multipliers(k) for k in np.flatnonzero(is_shown)])
for row in range(0, 200, 6):
    left.plot(path.C[is_shown], multipliers[:, row], color=BLUE, linewidth=0.7, alpha=0.8)
left.set(xlabel="C", ylabel="multipliers of some rows")

positive = path.C > 0
middle.loglog(path.C[positive], np.sqrt(path.squared_norm[positive]), color=BLUE)
middle.plot(rigorous.C_, rigorous.weight_norm_, "o", color=RED)
middle.annotate(
    "norm of\nGreedySVC",
    (rigorous.C_, rigorous.weight_norm_),
    (8, -22),
    textcoords="offset points",
    color=RED,
    fontsize=8,
)
middle.set(xlabel="C", ylabel=r"$\|w\|$")

right.step(clf.cv_results_["C"], 100 * clf.cv_results_["error"], color=BLUE, where="post")
right.step(path.C[positive], 100 * clf.loo_path_[positive], color=GREY, where="post")
right.axvline(clf.C_, color="black", linewidth=0.8, linestyle="--")
right.set(xlabel="C", ylabel="error, %", xscale="log")
place = {"transform": right.transAxes, "ha": "right", "fontsize": 8}
right.text(0.97, 0.32, "held out", color=BLUE, **place)
right.text(0.97, 0.47, "leave-one-out\nbound", color="#5a626c", **place)
