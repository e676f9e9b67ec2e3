"""What counts as a memory limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmargin import resources as budget
from hardmargin.resources import memory_bytes


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("2GB", 2 * 10**9),
        ("2gb", 2 * 10**9),
        ("2 G", 2 * 10**9),
        ("500 MB", 500 * 10**6),
        ("1.5GB", 1_500_000_000),
        (".5 kb", 500),
        ("3TB", 3 * 10**12),
        ("64B", 64),
        ("50MiB", 50 * 2**20),
        ("2Gi", 2 * 2**30),
        (" 1024 ", 1024),
        (4096, 4096),
        (1e6, 10**6),
    ],
)
def test_limit_is_read(limit, expected):
    assert memory_bytes(limit) == expected


@given(st.integers(1, 10**15))
def test_whole_number_of_bytes_stays_as_it_is(n):
    assert memory_bytes(n) == n == memory_bytes(str(n))


@pytest.mark.parametrize(
    "limit", ["", "GB", "much", "-1GB", "2PB", "1e9", "2GB3", "0MB", 0, -5, float("nan"), 1e30]
)
def test_an_invalid_limit_is_refused_by_name(limit):
    with pytest.raises(ValueError, match=r"memory_limit must be .*'2GB'.* got "):
        memory_bytes(limit)


def test_none_stands_for_a_share_of_the_free_memory(monkeypatch):
    monkeypatch.setattr(budget, "free_memory", lambda: 10**9)
    assert memory_bytes(None) == budget.DEFAULT_SHARE * 10**9


def test_free_memory_is_found_without_proc(monkeypatch):
    def no_such_file(*args, **kwargs):
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", no_such_file)
    free = memory_bytes(None)
    monkeypatch.undo()
    assert free > 2**20
