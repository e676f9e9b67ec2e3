"""The hard ball, which encloses outliers, and the default ball, which leaves them out."""

import matplotlib.pyplot as plt
import numpy as np

from hardmargin import MinimumEnclosingBall

BLUE, RED = "#2f6f9f", "#c8553d"
rng = np.random.default_rng(0)
clusters = [rng.normal((-2, 0), (0.5, 0.9), (200, 2)), rng.normal((2, 0.5), (0.9, 0.4), (200, 2))]
X = np.vstack([*clusters, rng.uniform((-5.5, -4), (5.5, 4), (15, 2))])
xs, ys = np.meshgrid(np.linspace(-6.5, 6.5, 150), np.linspace(-5, 5, 120))
grid = np.column_stack([xs.ravel(), ys.ravel()])

figure, axes = plt.subplots(1, 2, figsize=(6.5, 2.7), layout="constrained")
for ax, ball, title in (
    (axes[0], MinimumEnclosingBall(C=None, random_state=0), "C=None: every row is inside"),
    (axes[1], MinimumEnclosingBall(random_state=0), "default: soft, with a fence"),
):
    is_inlier = ball.fit_predict(X) == 1
    scores = ball.decision_function(grid).reshape(xs.shape)
    ax.contourf(xs, ys, scores, levels=[0, np.inf], colors=[BLUE], alpha=0.15)
    ax.contour(xs, ys, scores, levels=[0], colors="black", linewidths=1)
    ax.scatter(*X[is_inlier].T, s=6, color=BLUE, linewidths=0)
    ax.scatter(*X[~is_inlier].T, s=22, color=RED, marker="x", linewidths=1.2)
    ax.set_title(f"{title} ({len(ball.support_)} support rows)", fontsize=8.5)
    ax.set(xticks=[], yticks=[])
