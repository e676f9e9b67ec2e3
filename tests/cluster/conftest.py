"""A cluster for tests that do no harm to it."""

import pytest
from distributed import Client


@pytest.fixture(scope="module")
def client():
    with Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    ) as client:
        yield client
