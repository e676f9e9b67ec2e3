"""Figures redrawn, with matplotlib (the extra ``plot``)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hardmargin.reproduction.verdicts import Gathered

__all__ = ["draw_figure", "has_matplotlib"]

# Colours that the colour-blind can tell apart, with enough contrast on light and on dark.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
THEMES = {"": ("#ffffff", "#1d2430"), "-dark": ("#171b22", "#e3e7ee")}


def has_matplotlib() -> bool:
    """Whether figures can be drawn.

    Returns
    -------
    bool
    """
    return importlib.util.find_spec("matplotlib") is not None


def draw_figure(gathered: Gathered, folder: Path) -> list[str]:
    """Draw ``NAME.png``, and ``NAME-dark.png`` for dark pages.

    Parameters
    ----------
    gathered : Gathered
        A figure.
    folder : Path
        Where to write.

    Returns
    -------
    list of str
        Names of the files; empty if there is nothing to draw, or no matplotlib.
    """
    if not gathered.curves or gathered.part.axes is None or not has_matplotlib():
        return []
    names = []
    for suffix, (background, foreground) in THEMES.items():
        names.append(f"{gathered.part.name}{suffix}.png")
        _draw(gathered, folder / names[-1], background, foreground)
    return names


def _draw(gathered: Gathered, path: Path, background: str, foreground: str) -> None:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    panels = gathered.panels
    n_columns = min(3, len(panels))
    n_rows = -(-len(panels) // n_columns)
    edges = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: Any = {name: foreground for name in edges}
    style |= {"font.size": 9.5, "axes.facecolor": background}
    with mpl.rc_context(style):
        size = (4.2 * n_columns + 0.4, 3.2 * n_rows)
        figure = Figure(figsize=size, layout="constrained", facecolor=background)
        FigureCanvasAgg(figure)
        grid = figure.subplots(n_rows, n_columns, squeeze=False)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for axes, panel in zip(grid.flat, panels, strict=False):
            _draw_panel(axes, gathered, panel, foreground)
        figure.savefig(path, dpi=130)


def _draw_panel(axes: Any, gathered: Gathered, panel: str, foreground: str) -> None:
    look = gathered.part.axes
    assert look is not None
    names = list(dict.fromkeys(curve.name for curve in gathered.curves))
    for curve in (curve for curve in gathered.curves if curve.panel == panel):
        i = names.index(curve.name)
        marker = "o" if len(curve.x) < 12 else None
        style = {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}
        axes.plot(curve.x, curve.y, label=curve.name, marker=marker, markersize=4, **style)
        if curve.note and curve.x:
            axes.plot(curve.x[-1], curve.y[-1], "x", color=style["color"], markersize=8)
    places = sorted({x for c in gathered.curves if c.panel == panel for x in c.x})
    if look.log_x:
        axes.set_xscale("log")
    elif len(places) < 9:
        axes.set_xticks(places, [f"{x:g}" for x in places])
    if look.log_y and all(y > 0 for c in gathered.curves if c.panel == panel for y in c.y):
        axes.set_yscale("log")
    axes.set(title=panel, xlabel=look.x, ylabel=look.y_of.get(panel, look.y))
    axes.grid(alpha=0.25, color=foreground, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if len(names) > 1:
        axes.legend(frameon=False, fontsize=8)
