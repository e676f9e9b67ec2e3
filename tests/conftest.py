"""Which cases run, how long hypothesis searches, and a quicker collection of the tests.

``HYPOTHESIS_PROFILE=long`` in the environment searches much longer.
"""

import gc
import os

import pytest
from hypothesis import settings
from problems.products import mark_full

settings.register_profile("long", max_examples=2_000)
if "HYPOTHESIS_PROFILE" in os.environ:
    settings.load_profile(os.environ["HYPOTHESIS_PROFILE"])


def pytest_report_header(config):
    if config.option.markexpr == "not full":
        return "options: each once; -m full runs the other combinations, -m '' all"
    return None


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items):
    mark_full(items)


def pytest_collection():
    gc.disable()  # thousands of tests are made, none of them garbage: looking takes seconds


def pytest_collection_finish():
    gc.freeze()
    gc.enable()
