"""What is measured, and what it must reach."""

from __future__ import annotations

from dataclasses import dataclass

from rivals import OURS, RIVALS


@dataclass(frozen=True)
class Cell:
    """One thing to time; `model` names the rival whose fitted model a prediction uses."""

    job: str
    set: str
    task: str
    adapter: str
    model: str = ""
    dtype: str = ""

    @property
    def is_ours(self) -> bool:
        return self.adapter == OURS


@dataclass(frozen=True)
class Target:
    """A bound on our own `quantity`, or on a rival's divided by ours."""

    job: str
    rival: str
    quantity: str
    at_least: float = float("-inf")
    at_most: float = float("inf")
    over_sets: str = "each"


# Rivals that always predict with one thread; against them, so do we.
SINGLE_THREADED = ("sklearn_svc",)

PREDICT_SETS = ("covtype-40k", "a9a", "letter")

TARGETS = (
    Target("fit-covtype", "sklearn_svc", "cpu_s", at_least=250),
    Target("fit-covtype", "intelex_svc", "cpu_s", at_least=80),
    Target("fit-covtype", "intelex_svc", "wall_s", at_least=40),
    Target("fit-adult", "sklearn_svc", "cpu_s", at_least=150),
    Target("fit-adult", "intelex_svc", "cpu_s", at_least=15),
    Target("fit-letter", "sklearn_svc", "cpu_s", at_least=20),
    Target("fit-letter", "intelex_svc", "cpu_s", at_least=40),
    Target("predict", "sklearn_svc", "cpu_s", at_least=60, over_sets="mean"),
    Target("predict", "sklearn_svc", "cpu_s", at_least=3),
    Target("predict", "intelex_svc", "wall_s", at_least=4, over_sets="mean"),
    Target("predict", "intelex_svc", "wall_s", at_least=3),
    Target("covtype-400k", "", "error", at_most=0.028),
    Target("covtype-400k", "", "n_support", at_least=102_000, at_most=105_000),
    Target("covtype-400k", "", "cpu_s", at_most=20),
    Target("covtype-400k", "", "peak_rss_mb", at_most=4000),
    Target("small", "sklearn_svc", "wall_s", at_least=0.5),
    Target("import", "", "wall_s", at_most=0.1),
)


def _fit(job: str, name: str) -> list[Cell]:
    return [Cell(job, name, "fit", adapter) for adapter in (OURS, *RIVALS)]


def _predict() -> list[Cell]:
    """Every rival's model, predicted by the rival and by us in both precisions."""
    return [
        cell
        for name in PREDICT_SETS
        for rival in RIVALS
        for cell in (
            Cell("predict", name, "predict", rival, rival),
            Cell("predict", name, "expand", OURS, rival, "float32"),
            Cell("predict", name, "expand", OURS, rival, "float64"),
        )
    ]


JOBS = {
    "fit-covtype": _fit("fit-covtype", "covtype-40k"),
    "fit-adult": _fit("fit-adult", "a9a"),
    "fit-letter": _fit("fit-letter", "letter"),
    "predict": _predict(),
    "covtype-400k": [Cell("covtype-400k", "covtype-400k", "fit", OURS)],
    "small": [Cell("small", "breast-cancer", "small", a) for a in (OURS, *RIVALS)],
    "import": [Cell("import", "", "import", OURS)],
}
