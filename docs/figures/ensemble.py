"""EnsembleSVC along its stages: three machines of one path, and how rows held out judge it."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hardmargin import EnsembleSVC

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"
X, y = make_moons(300, noise=0.4, random_state=0)
kernel = {"kernel": "rbf", "gamma": 2.0}
clf = EnsembleSVC(**kernel).fit(X, y)
stages, losses = clf.cv_table_["stage"], clf.cv_table_["log_loss"]
best = stages[losses.argmin()]

figure, axes = plt.subplot_mosaic(
    [["first", "best", "late"], ["path", "path", "path"]],
    figsize=(6.5, 3.9),
    height_ratios=[1.25, 1],
    layout="constrained",
)
xs, ys = np.meshgrid(np.linspace(-2.1, 3.1, 160), np.linspace(-1.8, 2.2, 120))
grid = np.column_stack([xs.ravel(), ys.ravel()])
for name, stage, title in (
    ("first", 1, "stage 1: Parzen window"),
    ("best", int(best), f"stage {best}: best"),
    ("late", 3000, "stage 3,000"),
):
    machine = EnsembleSVC(n_stages=stage, **kernel).fit(X, y)
    ax, scores = axes[name], machine.decision_function(grid).reshape(xs.shape)
    ax.contourf(xs, ys, scores, levels=[-np.inf, 0, np.inf], colors=[RED, BLUE], alpha=0.2)
    ax.contour(xs, ys, scores, levels=[0], colors="black", linewidths=0.9)
    for label, colour in ((0, RED), (1, BLUE)):
        ax.scatter(*X[y == label].T, s=5, color=colour, linewidths=0)
    ax.set_title(title, fontsize=8.5)
    ax.set(xticks=[], yticks=[])

ax = axes["path"]
ax.plot(stages, losses, color=GREY, marker=".", markersize=5)
weights = np.exp(-0.3 * len(y) * (losses - losses.min()))
votes = ax.twinx()
votes.bar(stages, weights / weights.sum(), width=0.8, color=BLUE, alpha=0.55)
ax.set(xlabel="stage", ylabel="held-out log-loss", xticks=range(0, stages.max() + 1, 5))
votes.set_ylabel("share of the vote", color=BLUE)
votes.set_ylim(0, None)
ax.set_zorder(votes.get_zorder() + 1)
ax.patch.set_visible(False)
