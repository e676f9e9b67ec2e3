"""The widest margin between two hulls, and how multiplicative updates approach a margin."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import ConvexHull
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from hardmargin import HardMarginSVC, MultiplicativeSVC

BLUE, RED, GREY = "#2f6f9f", "#c8553d", "#8a929c"
figure, (left, right) = plt.subplots(1, 2, figsize=(6.5, 2.7), layout="constrained")

rng = np.random.default_rng(3)
X = np.vstack([rng.normal((-1.9, 0), 0.75, (25, 2)), rng.normal((1.9, 0.6), 0.75, (25, 2))])
y = np.repeat([0, 1], 25)
plane = HardMarginSVC(kernel="linear").fit(X, y)
for label, colour in ((0, RED), (1, BLUE)):
    rows = X[y == label]
    left.fill(*rows[ConvexHull(rows).vertices].T, color=colour, alpha=0.15)
    left.scatter(*rows.T, s=8, color=colour)
coefficients, of_rows = plane.dual_coef_[0], plane.support_vectors_
nearest = [
    coefficients[side] @ of_rows[side] / coefficients[side].sum()
    for side in (coefficients < 0, coefficients > 0)
]
left.plot(*np.transpose(nearest), color="black", marker="o", markersize=4, linewidth=1.2)
xs, ys = np.meshgrid(np.linspace(-4, 4.5, 50), np.linspace(-2.5, 3, 50))
scores = plane.decision_function(np.column_stack([xs.ravel(), ys.ravel()])).reshape(xs.shape)
left.contour(xs, ys, scores, levels=[-1, 0, 1], colors=GREY, linestyles=["--", "-", "--"])
left.set(xticks=[], yticks=[], aspect="equal")

X, y = load_digits(return_X_y=True)
X, y = X[(y == 3) | (y == 9)] / 16, y[(y == 3) | (y == 9)]
optimum = HardMarginSVC().fit(X, y).margin_
right.axhline(optimum, color="black", linewidth=0.8, linestyle="--")
right.text(1, optimum, "optimum", va="bottom")
with warnings.catch_warnings():  # one rate is too small, and another diverges
    warnings.simplefilter("ignore", ConvergenceWarning)
    for rate, colour, label in (
        (0.05, GREY, "rate 0.05"),
        (0.2, "black", "rate 0.2"),
        (0.5, RED, "rate 0.5: diverges"),
        ("auto", BLUE, "adapted rate"),
    ):
        margins = MultiplicativeSVC(learning_rate=rate, max_stages=1000).fit(X, y).margin_path_
        right.semilogx(np.arange(1, len(margins)), margins[1:], color=colour, label=label)
right.set(xlabel="epoch", ylabel="margin", xlim=(0.8, 20_000), ylim=(None, 0.118))
right.legend(frameon=False, loc="lower right", fontsize=8)
