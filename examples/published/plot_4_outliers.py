"""
Outliers by an enclosing ball
=============================

:class:`~hardmargin.MinimumEnclosingBall` looks for a small ball around the rows, in the space of
the kernel. With an RBF kernel that is a region of any shape in the space of the rows, and what is
outside is an outlier. Width and slack are chosen by rules, so that there is nothing to tune, and
the centre is a mean of many rows, which a few outliers hardly move. Here it is compared with an
isolation forest and a one-class SVM, in two dimensions, where regions can be drawn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score
from sklearn.svm import OneClassSVM

from hardmargin import MinimumEnclosingBall

BLUE, RED = "#2f6f9f", "#c8553d"

# %%
# The rows
# --------
#
# A ring and a cluster, and one row in twenty drawn from everywhere. Some of these fall among the
# others by chance and cannot be found.

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 600)
ring = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(3, 0.25, (600, 1))
cluster = rng.normal([5.5, 4], 0.5, (350, 2))
noise = rng.uniform([-5, -5], [8, 7], (50, 2))
X = np.vstack([ring, cluster, noise])
is_noise = np.arange(len(X)) >= 950

# %%
# Detectors
# ---------
#
# All are told that 5 % of the rows are outliers, so that they differ mainly in which they choose.
# Average precision judges the order of the rows, whatever the threshold.

ball = MinimumEnclosingBall(contamination=0.05).fit(X)
detectors = {
    "enclosing ball": ball,
    "isolation forest": IsolationForest(contamination=0.05, random_state=0).fit(X),
    "one-class SVM": OneClassSVM(nu=0.05).fit(X),
    "one-class SVM, gamma of the ball": OneClassSVM(nu=0.05, gamma=ball.gamma_).fit(X),
}
for name, detector in detectors.items():
    is_found = detector.predict(X) == -1
    precision = average_precision_score(is_noise, -detector.score_samples(X))
    print(
        f"{name:33} {is_found.sum()} outliers, {np.sum(is_found & is_noise)} of them noise; "
        f"average precision {precision:.2f}"
    )

# %%
# The line is the threshold, and rows outside are red. The forest cuts along the axes, and counts
# most of the hole in the ring as inside. So does the one-class SVM, whose default gamma makes its
# kernel too wide for this ring. With the gamma that the ball has chosen it follows the ring, but it
# also wraps itself around single outliers, because with so small a ``nu`` its region rests on few
# rows. The centre of the soft ball is a mean of most rows. A large ``nu`` has the same effect; the
# threshold is then a separate choice:

many = OneClassSVM(nu=0.5, gamma=ball.gamma_).fit(X)
print(
    f"nu = 0.5: average precision {average_precision_score(is_noise, -many.score_samples(X)):.2f}"
)

x_side, y_side = np.linspace(-5.5, 8.5, 150), np.linspace(-5.5, 7.5, 150)
grid = np.stack(np.meshgrid(x_side, y_side), axis=-1).reshape(-1, 2)


def draw(ax, name, detector):
    field = detector.decision_function(grid).reshape(len(y_side), -1)
    is_found = detector.predict(X) == -1
    ax.contourf(x_side, y_side, field, levels=[0, np.inf], colors=["#dbe7f0"])
    ax.contour(x_side, y_side, field, levels=[0], colors="black", linewidths=0.8)
    ax.scatter(*X.T, s=5, c=np.where(is_found, RED, BLUE), linewidths=0)
    ax.set(xticks=[], yticks=[], aspect="equal")
    ax.set_title(name, fontsize="medium")


figure, axes = plt.subplots(2, 2, figsize=(6.5, 6), layout="constrained")
for ax, (name, detector) in zip(axes.flat, detectors.items(), strict=True):
    draw(ax, name, detector)
plt.show()

# %%
# Without a share of outliers
# ---------------------------
#
# By default no share is needed: the threshold is a fence, as in a box plot. In two dimensions it is
# a strict one, which some rows at the edges do not pass. ``C=None`` is the hard ball, the smallest
# that encloses every row, outliers too. Use it where rows are known to be clean, to tell whether
# new rows are outside what has been seen; here it is trained without the noise.

soft, hard = MinimumEnclosingBall().fit(X), MinimumEnclosingBall(C=None).fit(X[~is_noise])
for name, detector in [("soft, all rows", soft), ("hard, without the noise", hard)]:
    is_found = detector.predict(X) == -1
    print(
        f"{name:24} {is_found.sum()} outliers, {np.sum(is_found & is_noise)} of them noise; "
        f"{len(detector.support_)} support rows"
    )

figure, axes = plt.subplots(1, 2, figsize=(6.5, 3.2), layout="constrained")
draw(axes[0], "soft", soft)
draw(axes[1], "hard, trained without the noise", hard)
plt.show()

# %%
# What to take away: ``MinimumEnclosingBall()`` finds clusters and holes of any shape without a
# width to set. Give a share as ``contamination`` if you know it, scale the columns first, and use
# the hard ball only on clean rows.
