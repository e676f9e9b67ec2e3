"""Figures are drawn without a screen, and closed after each test."""

import matplotlib
import matplotlib.pyplot as plt
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")
