"""The README's picture: what greedy stages do, and what they cost.

    python tools/plot_readme.py [--out docs/images/readme.png]

Left: one fit on two spirals, at three of its stages. Right: processor seconds of ``fit`` on
growing parts of a generated data set, for GreedySVC and for scikit-learn's SVC with the same kernel
and C = 1. Takes about a minute, and needs the extra ``plot``.
"""

import argparse
import io
import time
from itertools import islice
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import make_classification
from sklearn.svm import SVC

from hardmargin import GreedySVC

INK, GREY, BLUE, RUST = "#22272e", "#8a929c", "#2f6f9f", "#c8553d"
REGIONS = LinearSegmentedColormap.from_list("regions", ["#eab9a8", "#fbf9f6", "#a9c8dd"])
STAGES = (15, 45)
SIZES = (500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000)
N_TEST = 5_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images/readme.png"))
    out = parser.parse_args().out
    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.edgecolor": GREY})
    figure, axes = plt.subplots(
        1, 4, figsize=(11, 2.95), width_ratios=(1, 1, 1, 1.35), layout="constrained"
    )
    draw_stages(axes[:3])
    draw_times(axes[3])
    out.parent.mkdir(parents=True, exist_ok=True)
    save_small(figure, out)
    print(f"{out}: {out.stat().st_size / 1000:.0f} kB")


def save_small(figure: Figure, out: Path) -> None:
    """Save with a palette of 128 colours, which takes a third of the space."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=160)
    Image.open(buffer).convert("RGB").quantize(128).save(out, optimize=True)


def draw_stages(axes: Any) -> None:
    X, y = spirals(400, seed=0)
    X_test, y_test = spirals(5_000, seed=1)
    model = GreedySVC(gamma=1.0, max_visits=1).fit(X, y)
    side = np.linspace(-4.6, 4.6, 220)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for axis, stage in zip(axes, (*STAGES, model.n_iter_), strict=True):
        field = nth(model.staged_decision_function(grid), stage).reshape(len(side), -1)
        error = 100 * np.mean(nth(model.staged_predict(X_test), stage) != y_test)
        draw_regions(axis, side, field)
        draw_rows(axis, X, y, model.stage_indices_[:stage])
        last = ", the last" if stage == model.n_iter_ else ""
        title(axis, f"stage {stage}{last}")
        axis.set_xlabel(f"test error {error:.1f} %", color=INK)


def spirals(n_rows: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n_rows)
    turn = 3 * np.pi * np.sqrt(rng.uniform(0.02, 1, n_rows))
    angle = turn + np.pi * y
    X = (turn / 2.4)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.3 * rng.normal(size=X.shape), y


def nth(stages: Any, stage: int) -> Any:
    return next(islice(stages, stage - 1, None))


def draw_regions(axis: Axes, side: Any, field: Any) -> None:
    axis.contourf(side, side, field, levels=np.linspace(-1.2, 1.2, 13), cmap=REGIONS, extend="both")
    axis.contour(side, side, field, levels=[0], colors=INK, linewidths=1.2)
    axis.set(xticks=[], yticks=[], aspect="equal", anchor="N")
    axis.spines[:].set_visible(False)


def draw_rows(axis: Axes, X: Any, y: Any, chosen: Any) -> None:
    """All rows faint; those chosen so far solid, the earlier the larger."""
    colours = np.where(y == 1, BLUE, RUST)
    axis.scatter(*X.T, s=5, c=colours, alpha=0.35, linewidths=0)
    sizes = np.linspace(46, 14, len(chosen))
    axis.scatter(*X[chosen].T, s=sizes, c=colours[chosen], edgecolors="white", linewidths=0.7)


def draw_times(axis: Axes) -> None:
    X, y = make_classification(
        max(SIZES) + N_TEST,
        n_features=10,
        n_informative=10,
        n_redundant=0,
        n_clusters_per_class=8,
        flip_y=0.02,
        random_state=0,
    )
    ours = [measure(GreedySVC("scale", max_visits=1), X, y, n) for n in SIZES]
    theirs = [measure(SVC(cache_size=2_000), X, y, n) for n in SIZES]
    draw_curve(axis, "SVC", theirs, GREY, label_at=(0.71, 0.97))
    draw_curve(axis, "GreedySVC", ours, BLUE, label_at=(1, 0.3))
    draw_ratio(axis, ours[-1][0], theirs[-1][0])
    title(axis, "processor seconds of fit, by rows")
    axis.set_xticks(SIZES[::2], [f"{n:,}" for n in SIZES[::2]])
    axis.set_yticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
    axis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#e4e6e9", linewidth=0.8)


def draw_curve(
    axis: Axes, name: str, results: Any, colour: str, label_at: tuple[float, float]
) -> None:
    seconds, errors = zip(*results, strict=True)
    axis.loglog(SIZES, seconds, "o-", color=colour, markersize=4, linewidth=1.8)
    label = f"{name}\n{seconds[-1]:.2g} s, error {errors[-1]:.1f} %"
    style = {"color": colour, "ha": "right", "va": "top", "weight": "bold"}
    axis.text(*label_at, label, transform=axis.transAxes, **style)


def draw_ratio(axis: Axes, ours: float, theirs: float) -> None:
    ends = (SIZES[-1], ours * 1.3), (SIZES[-1], theirs / 1.3)
    axis.annotate("", *ends, arrowprops={"arrowstyle": "<->", "color": INK, "linewidth": 0.8})
    middle = (ours * theirs) ** 0.5
    axis.text(SIZES[-1] * 0.9, middle, f"{theirs / ours:.0f}×", ha="right", weight="bold")


def title(axis: Axes, text: str) -> None:
    axis.set_title(text, loc="left", fontweight="bold", fontsize=10)


def measure(model: Any, X: Any, y: Any, n_rows: int) -> tuple[float, float]:
    """Least processor seconds of up to ten fits (fewer if they are slow), and the test error."""
    times: list[float] = []
    while len(times) < 10 and sum(times) < 2.0:
        start = time.process_time()
        model.fit(X[:n_rows], y[:n_rows])
        times.append(time.process_time() - start)
    return min(times), 100 - 100 * model.score(X[-N_TEST:], y[-N_TEST:])


if __name__ == "__main__":
    main()
