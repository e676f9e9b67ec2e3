"""A cluster for tests that do no harm to it."""

import pytest
from distributed import Client


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with Client(processes=False, **options, silence_logs=50, set_as_default=False) as client:
        yield client
