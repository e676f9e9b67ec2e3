"""The example runs and shows what it claims."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "published" / "plot_2_adaboost.py"


@pytest.fixture
def no_windows():
    plt.switch_backend("agg")
    yield
    plt.close("all")


@pytest.mark.usefixtures("no_windows")
def test_it_shows_the_equality(capsys):
    names = runpy.run_path(str(EXAMPLE))
    np.testing.assert_allclose(
        names["relative"].distributions[:20], names["multipliers"][:20], rtol=0, atol=1e-10
    )
    assert names["difference"](names["constant"], 2) > 1e-6
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[0] == "1"
    assert lines[-1].startswith("Largest difference of the votes: ")
