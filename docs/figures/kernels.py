"""What a kernel sees of two columns: standardised, as ranks, and scaled by relevance."""

import matplotlib.pyplot as plt
import numpy as np

from hardmargin import EnsembleSVC
from hardmargin.kernels.views import Ranks

BLUE, RED = "#2f6f9f", "#c8553d"
rng = np.random.default_rng(0)
income = np.exp(rng.normal(3, 1.1, 400))  # skewed, and it decides
noise = rng.normal(0, 40, 400)  # does not matter
X = np.column_stack([income, noise])
y = (np.log(income) + rng.normal(0, 0.3, 400) > 3).astype(int)

standardized = (X - X.mean(axis=0)) / X.std(axis=0)
ranks = Ranks.of(standardized).transform(standardized)
relevance = EnsembleSVC().fit(X, y).relevance_
figure, axes = plt.subplots(1, 3, figsize=(6.5, 2.5), layout="constrained")
for ax, rows, title in (
    (axes[0], standardized, "standardised"),
    (axes[1], ranks, "ranks"),
    (axes[2], ranks * relevance, "ranks, times relevance"),
):
    for label, colour in ((0, RED), (1, BLUE)):
        ax.scatter(*rows[y == label].T, s=5, color=colour, alpha=0.8, linewidths=0)
    ax.set_title(title, fontsize=8.5)
    ax.set(xlabel="skewed column", xlim=(-3.2, 6), ylim=(-4.2, 4.2), aspect="equal")
axes[0].set_ylabel("column of noise")
