"""Python without the GIL: it stays off, so that fits on threads run side by side."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL"
)

PROGRAM = """
import sys
from problems.every_estimator import MODELS, answers, three_classes

assert not sys._is_gil_enabled(), "imports"
X, y = three_classes()
for name, model in MODELS.items():
    answers(model.set_params(n_jobs=2).fit(X, y), X)
    assert not sys._is_gil_enabled(), name
"""


def test_neither_imports_nor_fits_turn_the_gil_on():
    # A module that needs the GIL turns it on with a RuntimeWarning, unless a variable keeps it off.
    env = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    paths = [str(Path(__file__).parent), *filter(None, [env.get("PYTHONPATH")])]
    ended = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", PROGRAM],
        env={**env, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
