"""Fits one after another, in threads and in processes: the same answers, and no more memory."""

import sys

import pytest
from problems.processes import output_of

BEGIN = """
import ctypes, gc, multiprocessing, os, re, warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from sklearn.base import clone
from problems.every_estimator import MODELS, answers, fit_and_answer, three_classes

warnings.simplefilter("ignore")
X, Y = three_classes()


def fit(name, n_jobs=None):
    return clone(MODELS[name]).set_params(n_jobs=n_jobs).fit(X, Y)


def same(some, others):
    return all(np.array_equal(a, b) for a, b in zip(some, others, strict=True))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory is read from /proc")
def test_a_thousand_fits_need_no_more_memory_than_some():
    program = """
from hardmargin.resources import give_back_memory

M_ARENA_MAX = -8
ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)  # one per thread would look like a leak

# A leak shows in small fits too, so those that take long have few folds and stages.
few = {"kernel": "rbf", "cv": 2}
LONG = {
    "EnsembleSVC": few,
    "EnsembleSVC, low rank": few,
    "GreedySVC": {**few, "max_visits": 1},
    "MultiplicativeSVC": {"max_stages": 20},
    "PathSVC": {"C_max": 0.1},
    "PathSVC, folds": {"C_max": 0.1, "cv": 2},
    "RigorousSVC": {"C_max": 0.1},
}
for name, parameters in LONG.items():
    MODELS[name].set_params(**parameters)
NAMES = list(MODELS)
assert len(NAMES) % 2 == 1  # all are fitted on one thread and on two
gc.freeze()  # what libraries have made is not looked through again and again


def memory():
    gc.collect()
    give_back_memory()  # what is free is no leak
    return int(re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def memory_after(n):
    for k in range(n):
        if k % 50 == 0:
            memory()  # garbage must not be spread over what stays
        fit_and_answer(NAMES[k % len(NAMES)], n_jobs=1 + k % 2, n=20)
    return memory()


print(*(memory_after(n) for n in (200, 500, 500)))
"""
    before, halfway, after = map(float, output_of(BEGIN + program).split())
    # MB; 4 kB per fit. Noise makes one half grow, a leak both.
    assert min(halfway - before, after - halfway) < 2.0


def test_eight_threads_find_what_one_finds():
    output_of(
        BEGIN
        + """
names = [name for name in MODELS for _ in range(4)]
alone = {name: fit_and_answer(name) for name in MODELS}
with ThreadPoolExecutor(8) as threads:
    for name, found in zip(names, threads.map(fit_and_answer, names)):
        assert same(alone[name], found), name
""",
    )


def test_eight_threads_ask_one_model():
    output_of(
        BEGIN
        + """
for name in MODELS:
    model = fit(name, n_jobs=2)
    alone = answers(model, X)
    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(lambda _: answers(model, X), range(16)):
            assert same(alone, found), name
""",
    )


def test_threads_fit_while_others_ask():
    output_of(
        BEGIN
        + """
names = list(MODELS) * 4
models = {name: fit(name) for name in MODELS}
alone = {name: answers(models[name], X) for name in MODELS}


def fit_or_ask(k):
    asked = models[names[-k]]  # not the one that is being fitted
    return fit_and_answer(names[k], n_jobs=1 + k % 2), answers(asked, X)


with ThreadPoolExecutor(8) as threads:
    for k, (found, told) in enumerate(threads.map(fit_or_ask, range(len(names)))):
        assert same(alone[names[k]], found), names[k]
        assert same(alone[names[-k]], told), names[-k]
""",
    )


START_METHODS = pytest.mark.parametrize(
    "method",
    [
        pytest.param(
            "fork", marks=pytest.mark.skipif(sys.platform == "darwin", reason="unsafe on macOS")
        ),
        "spawn",
    ],
)


@START_METHODS
def test_processes_fit_and_ask_models_after_fits_in_their_parent(method):
    output_of(
        BEGIN
        + f"""
models = {{name: fit(name, n_jobs=2) for name in MODELS}}
alone = {{name: answers(model, X) for name, model in models.items()}}
n = len(models)
with ProcessPoolExecutor(2, multiprocessing.get_context({method!r})) as processes:
    for name, found in zip(models, processes.map(fit_and_answer, models, [2] * n)):
        assert same(alone[name], found), name
    for name, found in zip(models, processes.map(answers, models.values(), [X] * n)):
        assert same(alone[name], found), name
""",
    )


@pytest.mark.skipif(sys.platform == "darwin", reason="fork is unsafe on macOS")
def test_a_fork_after_fits_in_threads_can_fit():
    output_of(
        BEGIN
        + """
alone = {name: fit_and_answer(name) for name in MODELS}
for name in MODELS:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(fit_and_answer, [name] * 4, [2] * 4))
    child = os.fork()
    if child == 0:
        os._exit(0 if same(alone[name], fit_and_answer(name, n_jobs=2)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, name
""",
    )
