"""Calls that are given up."""

import os
import time

import pytest
from joblib import Parallel, delayed
from problems.reproduction_tasks import die, fail, sleep, talk

from hardmargin.reproduction.limits import within
from hardmargin.reproduction.parts import CutError


def test_an_answer_in_time_is_from_another_process():
    assert within(60.0, sleep, 0.0) != os.getpid()
    assert within(None, sleep, 0.0) == os.getpid()


def test_what_takes_longer_is_cut():
    start = time.monotonic()
    with pytest.raises(CutError, match=r"longer than 0\.2 s"):
        within(0.2, sleep, 60.0)
    assert time.monotonic() - start < 20


def test_a_process_that_dies_is_a_cut():
    with pytest.raises(CutError, match="ended by the system"):
        within(60.0, die)


def test_what_is_printed_does_not_matter(capfd):
    assert within(60.0, talk) == "answer"
    assert capfd.readouterr().err == "aside\n"


def test_errors_come_through():
    with pytest.raises(ValueError, match="as it should"):
        within(60.0, fail)


def test_in_a_worker_of_joblib():
    pids = Parallel(2)(delayed(within)(60.0, sleep, 0.0) for _ in range(2))
    assert len({*pids, os.getpid()}) == 3
