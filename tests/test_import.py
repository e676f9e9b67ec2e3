"""What ``import hardmargin`` brings, and what it leaves alone."""

import functools
import importlib.metadata
import json
import subprocess
import sys

import pytest

import hardmargin

CHILD = """
import json, sys
import sklearn.svm
before = set(sys.modules)
import hardmargin
alone = sorted(set(sys.modules) - before)
from hardmargin import *
json.dump([alone, sorted(set(sys.modules) - before)], sys.stdout)
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


def test_dir_lists_the_public_names():
    assert dir(hardmargin) == sorted([*hardmargin.__all__, "__version__"])


def test_subpackages_need_no_import_of_their_own():
    code = "import hardmargin; hardmargin.io.load, hardmargin.displays.RelevanceDisplay"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_unknown_names_raise_an_error():
    with pytest.raises(AttributeError, match="'hardmargin' has no attribute 'SVC'"):
        _ = hardmargin.SVC


def test_import_loads_no_other_module():
    alone, _ = json.loads(child().stdout)
    assert alone == ["hardmargin"]


def test_every_public_name_is_documented():
    assert all(getattr(hardmargin, name).__doc__ for name in hardmargin.__all__)


def test_the_estimators_leave_heavy_libraries_alone():
    _, loaded = json.loads(child().stdout)
    assert not {"matplotlib", "pandas", "dask"} & set(loaded)


def test_import_prints_no_warning():
    assert child().stderr == ""


def test_the_version_is_that_of_the_installation():
    try:
        installed = importlib.metadata.version("hardmargin")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("hardmargin runs from its source tree")
    assert hardmargin.__version__ == installed
