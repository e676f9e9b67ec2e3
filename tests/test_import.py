"""What ``import hardmargin`` brings, and what it leaves alone."""

import functools
import importlib.metadata
import json
import subprocess
import sys
from types import ModuleType

import pytest

import hardmargin

CHILD = """
import json, sys
import sklearn.svm
before = set(sys.modules)
import hardmargin
json.dump(sorted(set(sys.modules) - before), sys.stdout)
"""


@functools.cache
def child():
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", CHILD],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_public_names_are_those_of_all():
    public = {
        name
        for name, value in vars(hardmargin).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public == set(hardmargin.__all__)


def test_every_public_name_is_documented():
    assert all(getattr(hardmargin, name).__doc__ for name in hardmargin.__all__)


def test_import_leaves_heavy_libraries_alone():
    assert not {"matplotlib", "pandas", "dask"} & set(json.loads(child().stdout))


def test_import_warns_of_nothing():
    assert child().stderr == ""


def test_the_version_is_that_of_the_installation():
    try:
        installed = importlib.metadata.version("hardmargin")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("hardmargin runs from its source tree")
    assert hardmargin.__version__ == installed
