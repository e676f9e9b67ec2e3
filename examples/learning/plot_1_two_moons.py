"""
Greedy stages on two moons
==========================

:class:`~hardmargin.GreedySVC` trains in stages. Each stage adds one row to the model: the row that
lowers the objective of the hard-margin SVM most. With ``max_visits=1`` no row is added twice, which
is the algorithm of TNN-08. There is no constant C: training ends when no step is left that helps,
and most rows are never chosen. One fit contains the models of all its stages, so that a single run
shows how many support rows a problem needs.
"""

from itertools import islice

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from sklearn.datasets import make_moons

from hardmargin import GreedySVC

X, y = make_moons(300, noise=0.2, random_state=0)
X_test, y_test = make_moons(5_000, noise=0.2, random_state=1)

model = GreedySVC(gamma=2.0, max_visits=1).fit(X, y)
print(f"{len(X)} rows, {model.n_iter_} stages, stop_reason_ is {model.stop_reason_!r}")

# %%
# Decision regions at four stages
# -------------------------------
#
# ``staged_decision_function`` yields the scores after stage 1, 2, 3 and so on. Large dots are the
# rows chosen so far, the black line is the decision boundary, and deeper colours are larger scores.
# With this kernel, a stage chooses the row that is furthest from its margin on the wrong side.
# Early models therefore swing from one class to the other. Later rows are close to where the
# classes meet, and their steps are smaller.

BLUE, RED = "#2f6f9f", "#c8553d"
REGIONS = LinearSegmentedColormap.from_list("regions", ["#eab9a8", "#fbf9f6", "#a9c8dd"])

x_side, y_side = np.linspace(-1.7, 2.7, 180), np.linspace(-1.3, 1.8, 140)
grid = np.stack(np.meshgrid(x_side, y_side), axis=-1).reshape(-1, 2)
colours = np.where(y == 1, BLUE, RED)

stages = (5, 10, 20, model.n_iter_)
figure, axes = plt.subplots(2, 2, figsize=(6.5, 5), layout="constrained")
for ax, stage in zip(axes.flat, stages, strict=True):
    scores = next(islice(model.staged_decision_function(grid), stage - 1, None))
    field = scores.reshape(len(y_side), len(x_side))
    rows = model.stage_indices_[:stage]
    ax.contourf(x_side, y_side, field, levels=np.linspace(-1, 1, 11), cmap=REGIONS, extend="both")
    ax.contour(x_side, y_side, field, levels=[0], colors="black", linewidths=1)
    ax.scatter(*X.T, s=5, c=colours, alpha=0.5, linewidths=0)
    ax.scatter(*X[rows].T, s=42, c=colours[rows], edgecolors="white", linewidths=0.8)
    ax.set(xticks=[], yticks=[])
    ax.set_title(f"stage {stage}" + (", the last" if stage == model.n_iter_ else ""), loc="left")
plt.show()

# %%
# Test error along the stages
# ---------------------------
#
# ``staged_predict`` yields the predictions after every stage, so that the error along the path
# costs one pass over the test rows.

errors = [np.mean(labels != y_test) for labels in model.staged_predict(X_test)]
for stage in stages:
    print(f"stage {stage:3}: test error {100 * errors[stage - 1]:.2f} %")

figure, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
ax.plot(np.arange(1, len(errors) + 1), 100 * np.array(errors), color=BLUE)
ax.plot(stages, [100 * errors[stage - 1] for stage in stages], "o", color=BLUE)
ax.set(
    xlabel="stage, which is the number of support rows", ylabel="test error in %", ylim=(0, None)
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The error swings at first, because every early row bends the boundary a lot. Then it settles, and
# it does not rise again at the end: the last stages could be left out at little cost, which is what
# ``max_stages`` is for, but they do no harm.
#
# Here gamma was given. ``GreedySVC()`` chooses the kernel, gamma and the number of visits by
# held-out rows, and standardises the features if that helps:

chosen = GreedySVC().fit(X, y)
print(f"{chosen.kernel_} kernel, gamma {chosen.gamma_:.2f}, visits per row: {chosen.max_visits_}")
error = 100 * np.mean(chosen.predict(X_test) != y_test)
print(f"{len(chosen.support_)} support rows, test error {error:.2f} %")

# %%
# What to take away: a greedy fit is a sequence of models of growing size, ``staged_predict`` shows
# what each of them is worth, and the support rows are few because training ends by itself.
