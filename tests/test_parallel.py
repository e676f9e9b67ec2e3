"""Blocks of rows on threads, and the threads of BLAS."""

import subprocess
import sys
from threading import Thread

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from hardmargin.resources import each_block, multiply, single_threaded_blas


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def test_blas_has_one_thread_in_the_block_and_its_own_after_it():
    with threadpool_limits(3, user_api="blas"):
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {3}


def test_an_error_gives_the_threads_back():
    with threadpool_limits(3, user_api="blas"):
        with pytest.raises(KeyError), single_threaded_blas():
            raise KeyError
        assert blas_threads() == {3}


def test_a_block_that_ends_does_not_end_others():
    with threadpool_limits(3, user_api="blas"):
        first, second = single_threaded_blas(), single_threaded_blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == {3}


def test_a_limit_that_another_thread_holds_is_no_obstacle():
    seen = []

    def look():
        with single_threaded_blas():
            seen.append(blas_threads())

    with threadpool_limits(3, user_api="blas"):
        thread = Thread(target=look)
        thread.start()
        thread.join()
        assert seen == [{1}]
        assert blas_threads() == {3}


def test_a_block_may_end_in_another_thread():
    with threadpool_limits(3, user_api="blas"):
        block = single_threaded_blas()
        thread = Thread(target=block.__enter__)
        thread.start()
        thread.join()
        assert blas_threads() == {1}
        block.__exit__(None, None, None)
        assert blas_threads() == {3}


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3])
def test_every_row_is_in_one_block(n_jobs):
    counts = np.zeros(1_100, dtype=int)

    def count(rows):
        counts[rows] += 1

    each_block(count, len(counts), 100, n_jobs=n_jobs)
    assert (counts == 1).all()


def test_blocks_do_not_depend_on_the_threads():
    found = {}
    for n_jobs in (1, 2, 3):
        seen = found[n_jobs] = []
        each_block(seen.append, 1_234, 100, n_jobs=n_jobs)
    as_set = [{(s.start, s.stop) for s in seen} for seen in found.values()]
    assert as_set[0] == as_set[1] == as_set[2]


def test_errors_in_a_thread_are_raised():
    def fail(rows):
        raise KeyError(rows.start)

    with pytest.raises(KeyError):
        each_block(fail, 1_000, 100, n_jobs=2)


@pytest.mark.parametrize("shape", [(300,), (300, 40)])
def test_products_do_not_depend_on_the_threads(shape):
    random = np.random.default_rng(0)
    A, B = random.normal(size=(36_000, 300)), random.normal(size=shape)
    with single_threaded_blas():
        one, two, three = (multiply(A, B, n_jobs=n) for n in (1, 2, 3))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)
    np.testing.assert_allclose(one, A @ B, atol=1e-9)


def test_blocks_in_several_threads_of_the_caller():
    inside = []

    def run():
        for _ in range(200):
            with single_threaded_blas():
                inside.append(blas_threads() == {1})

    with threadpool_limits(3, user_api="blas"):
        threads = [Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(inside)
        assert blas_threads() == {3}


FORKS = """
import os, threading
from hardmargin.resources import single_threaded_blas

def go_on():
    while True:
        with single_threaded_blas():
            pass

threading.Thread(target=go_on, daemon=True).start()
for _ in range(30):
    child = os.fork()
    if child == 0:
        with single_threaded_blas():
            os._exit(0)
    os.waitpid(child, 0)
os._exit(0)
"""


@pytest.mark.skipif(sys.platform == "darwin", reason="fork is unsafe on macOS")
def test_a_fork_while_another_thread_begins_a_block_does_not_hang():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], timeout=60, check=True)
