"""Two trees of cells on the same rows, and the decision of the mixture that they belong to."""

import matplotlib.pyplot as plt
import numpy as np

from hardmargin import EnsembleSVC
from hardmargin.cells import find_cuts

BLUE, RED = "#2f6f9f", "#c8553d"
rng = np.random.default_rng(0)
X = rng.normal(size=(10_500, 2)) * (2.0, 1.2)
waves = np.sin(2.2 * X[:, 0]) * np.cos(2.2 * X[:, 1] + 0.6 * X[:, 0])
y = (waves + rng.normal(scale=0.35, size=len(X)) > 0).astype(np.int32)

xs, ys = np.meshgrid(np.linspace(-4.5, 4.5, 180), np.linspace(-3.0, 3.0, 150))
grid = np.column_stack([xs.ravel(), ys.ravel()]).astype(np.float32)
figure, axes = plt.subplots(1, 3, figsize=(6.5, 2.4), layout="constrained")
for ax, kind in zip(axes, ("column", "direction"), strict=False):
    cuts = find_cuts(
        X.astype(np.float32),
        y,
        np.ones(2),
        max_rows=1_000,
        kind=kind,
        is_first=True,
        random_state=np.random.RandomState(0),
    )
    cells = cuts.route(grid).reshape(xs.shape)
    for cell in range(cuts.n_cells):
        ax.contour(xs, ys, cells == cell, levels=[0.5], colors="black", linewidths=0.8)
    for label, colour in ((0, RED), (1, BLUE)):
        ax.scatter(*X[:1500][y[:1500] == label].T, s=2, color=colour, linewidths=0)
    ax.set_title(f"{kind}: {cuts.n_cells} cells", fontsize=8.5)

clf = EnsembleSVC(kernel="rbf", n_trees=1).fit(X, y)
likely = clf.predict_proba(grid)[:, 1].reshape(xs.shape)
image = axes[2].pcolormesh(xs, ys, likely, cmap="RdBu", vmin=0, vmax=1, rasterized=True)
axes[2].set_title("probability of blue", fontsize=8.5)
figure.colorbar(image, ax=axes[2], ticks=[0, 0.5, 1])
for ax in axes:
    ax.set(xticks=[], yticks=[], xlim=(-4.5, 4.5), ylim=(-3, 3))
