"""GreedySVC: the rows chosen at three stages, and the test error beside that of the hard margin."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from hardmargin import GreedySVC, HardMarginSVC

BLUE, RED = "#2f6f9f", "#c8553d"
X, y = make_moons(300, noise=0.35, random_state=1)
X_test, y_test = make_moons(4000, noise=0.35, random_state=2)
greedy = GreedySVC(gamma=8.0, max_visits=1).fit(X, y)
hard = HardMarginSVC(gamma=8.0, fit_intercept=False).fit(X, y)

figure, axes = plt.subplot_mosaic(
    [["first", "second", "last"], ["path", "path", "path"]],
    figsize=(6.5, 3.9),
    height_ratios=[1.25, 1],
    layout="constrained",
)
xs, ys = np.meshgrid(np.linspace(-1.9, 2.9, 160), np.linspace(-1.6, 2.0, 120))
grid = np.column_stack([xs.ravel(), ys.ravel()])
scores = list(greedy.staged_decision_function(grid))
for name, stage in (("first", 10), ("second", 50), ("last", greedy.n_iter_)):
    ax, values = axes[name], scores[stage - 1].reshape(xs.shape)
    ax.contourf(xs, ys, values, levels=[-np.inf, 0, np.inf], colors=[RED, BLUE], alpha=0.2)
    ax.contour(xs, ys, values, levels=[0], colors="black", linewidths=0.9)
    chosen, sizes = greedy.stage_indices_[:stage], 25 * greedy.stage_steps_[:stage]
    for label, colour in ((0, RED), (1, BLUE)):
        ax.scatter(*X[y == label].T, s=3, color=colour, alpha=0.5, linewidths=0)
        of_class = y[chosen] == label
        ax.scatter(
            *X[chosen[of_class]].T,
            s=sizes[of_class],
            color=colour,
            edgecolor="white",
            linewidth=0.5,
        )
    ax.set_title(f"stage {stage}", fontsize=8.5)
    ax.set(xticks=[], yticks=[])

ax = axes["path"]
errors = [100 * np.mean(labels != y_test) for labels in greedy.staged_predict(X_test)]
ax.plot(np.arange(1, len(errors) + 1), errors, color=BLUE)
ax.plot(len(errors), errors[-1], "o", color=BLUE)
hard_error = 100 * (1 - hard.score(X_test, y_test))
ax.axhline(hard_error, color=RED, linestyle="--")
end = len(errors)
ax.text(
    end, hard_error + 5, f"optimum of the same problem: {hard_error:.1f} %", color=RED, ha="right"
)
ax.text(end, errors[-1] - 9, f"greedy, stops by itself: {errors[-1]:.1f} %", color=BLUE, ha="right")
ax.set(xlabel="stage", ylabel="test error, %", ylim=(0, None))
