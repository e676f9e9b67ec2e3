"""Calls that are given up."""

import os
import time

import pytest
from reproduction_tasks import die, fail, sleep

from hardmargin.experiments.limits import within
from hardmargin.experiments.parts import CutError


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


def test_errors_come_through():
    with pytest.raises(ValueError, match="as it should"):
        within(60.0, fail)
