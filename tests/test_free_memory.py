"""Free memory, of the machine and within a container's limit, and arrays that give theirs back."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from hardmargin.resources import free_memory, new_array

GB = 10**9


@pytest.fixture
def system(tmp_path):
    """Write files of a machine with 8 GB free, and return where they are."""

    def write(files):
        for name, text in files.items():
            file = tmp_path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path

    write({"proc/meminfo": f"MemTotal: 16000000 kB\nMemAvailable: {8 * GB // 1024} kB\n"})
    return write


def version_2(group, limit, used, cache=0):
    folder = f"sys/fs/cgroup/{group}"
    return {
        f"{folder}/memory.max": f"{limit}\n",
        f"{folder}/memory.current": f"{used}\n",
        f"{folder}/memory.stat": f"anon 1\ninactive_file {cache}\n",
    }


def version_1(group, limit, used, cache=0):
    folder = f"sys/fs/cgroup/memory/{group}"
    return {
        f"{folder}/memory.limit_in_bytes": f"{limit}\n",
        f"{folder}/memory.usage_in_bytes": f"{used}\n",
        f"{folder}/memory.stat": f"cache 1\ntotal_inactive_file {cache}\n",
    }


def test_without_a_limit_it_is_that_of_the_machine(system):
    assert free_memory(system({})) == pytest.approx(8 * GB, abs=1024)


@pytest.mark.parametrize(
    ("listed", "files"),
    [
        ("0::/job\n", version_2("job", 2 * GB, GB // 2)),
        ("4:memory:/job\n3:cpu:/\n", version_1("job", 2 * GB, GB // 2)),
        ("3:cpu,memory:/job\n", version_1("job", 2 * GB, GB // 2)),
    ],
    ids=["version 2", "version 1", "several controllers"],
)
def test_the_limit_of_a_group_counts(system, listed, files):
    assert free_memory(system({"proc/self/cgroup": listed, **files})) == 1.5 * GB


@pytest.mark.parametrize("version", [version_1, version_2])
def test_file_pages_that_can_be_dropped_are_free(system, version):
    listed = "0::/\n4:memory:/\n"
    root = system({"proc/self/cgroup": listed, **version("", 2 * GB, 2 * GB, cache=GB // 4)})
    assert free_memory(root) == GB // 4


def test_the_tightest_of_nested_groups_counts(system):
    files = version_2("outer", 3 * GB, GB) | version_2("outer/inner", "max", GB // 2)
    assert free_memory(system({"proc/self/cgroup": "0::/outer/inner\n", **files})) == 2 * GB


def test_a_path_of_the_host_leaves_the_group_that_is_mounted(system):
    root = system({"proc/self/cgroup": "4:memory:/docker/abc\n", **version_1("", 2 * GB, GB)})
    assert free_memory(root) == GB


def test_a_limit_above_the_free_memory_changes_nothing(system):
    root = system({"proc/self/cgroup": "0::/\n", **version_2("", 64 * GB, GB)})
    assert free_memory(root) == pytest.approx(8 * GB, abs=1024)


def test_no_memory_left_is_zero(system):
    root = system({"proc/self/cgroup": "0::/\n", **version_2("", GB, 2 * GB)})
    assert free_memory(root) == 0


# --- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 1_000, 1_400, 2_000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arrays_keep_what_is_written(n, dtype):
    values = np.random.default_rng(0).normal(size=(n, n)).astype(dtype)
    array = new_array((n, n), dtype)
    array[:] = values
    assert array.dtype == dtype
    np.testing.assert_array_equal(array, values)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads what Linux says")
@pytest.mark.parametrize("n_bytes", [2**22, 33_000_000])
def test_the_memory_of_large_arrays_is_given_back(n_bytes):
    def used():
        return int(re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024

    before = used()
    array = new_array((n_bytes,), np.uint8)
    array.fill(1)
    assert used() - before < 1.08 * n_bytes
    del array
    assert used() - before < n_bytes / 10
