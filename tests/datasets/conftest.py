"""Tests of data sets need neither a network nor the real files."""

import pytest


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """No folder, no network, and nothing kept from before."""

    def refuse(*arguments, **options):
        raise OSError("no network in tests")

    monkeypatch.delenv("HARDMARGIN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setattr("urllib.request.urlopen", refuse)
