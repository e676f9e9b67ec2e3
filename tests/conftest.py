"""How long hypothesis searches, and a quicker collection of the tests.

``HYPOTHESIS_PROFILE=long`` in the environment searches much longer.
"""

import gc
import os

from hypothesis import settings

settings.register_profile("long", max_examples=2_000)
if "HYPOTHESIS_PROFILE" in os.environ:
    settings.load_profile(os.environ["HYPOTHESIS_PROFILE"])


def pytest_collection():
    gc.disable()  # thousands of tests are made, none of them garbage: looking takes seconds


def pytest_collection_finish():
    gc.freeze()
    gc.enable()
