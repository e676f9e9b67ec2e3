"""Ctrl-C during fit: control comes back within a second, and nothing stays behind.

A child process gets SIGINT in the middle of one long fit after another, and reports what happened.
"""

import functools
import json
import sys

import pytest
from problems.processes import run_program

CHILD = """
import ctypes, json, os, signal, sys, threading, time
import numpy as np
import scipy.sparse as sp
from hardmargin import (
    CoreVectorSVC, DiversifiedSVC, EnsembleSVC, GreedySVC, HardMarginSVC,
    MarginDiscriminantAnalysis, MinimumEnclosingBall, MultiplicativeSVC, PathSVC,
    RhoEnsembleSVC, RigorousSVC,
)

M_ARENA_MAX = -8
if sys.platform.startswith("linux"):
    ctypes.CDLL(None).mallopt(M_ARENA_MAX, int(sys.argv[1]))  # one per thread looks like a leak
signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
rows = rng.normal(size=(400_000, 20)).astype(np.float32)

def noise(n, n_classes=2):
    return rows[:n], rng.integers(n_classes, size=n)

def slow(X, Z):
    if len(X) != len(Z):
        time.sleep(0.005)
    return (X @ Z.T + 1.0) ** 2

def wide(n, d, density):
    X = sp.random_array((n, d), density=density, format="csr", random_state=rng)
    return X, rng.integers(2, size=n)

def greedy(gamma="scale", max_visits=1, **parameters):
    return GreedySVC(gamma, max_visits=max_visits, **parameters)

CASES = {
    "two classes": lambda: (greedy(), *noise(400_000)),
    "revisits": lambda: (greedy(max_visits=64, dtype="float64"), *noise(60_000)),
    "many classes": lambda: (greedy(n_jobs=2), *noise(200_000, 4)),
    "one against the rest": lambda: (greedy(n_jobs=2, multi_class="ovr"), *noise(100_000, 4)),
    "linear kernel": lambda: (greedy(kernel="linear", max_visits=64), *noise(400_000)),
    "wide sparse rows": lambda: (greedy(), *wide(20_000, 20_000, 0.002)),
    "heavy sparse rows": lambda: (greedy(), *wide(300, 40_000, 0.9)),
    "exact hard margin": lambda: (HardMarginSVC(), *noise(100_000)),
    "core sets": lambda: (CoreVectorSVC(100.0), *noise(40_000)),
    "core sets, many classes": lambda: (CoreVectorSVC(n_jobs=2), *noise(20_000, 4)),
    "core sets, not stored": lambda: (CoreVectorSVC(memory_limit="300MB"), *noise(40_000, 4)),
    "diversified": lambda: (DiversifiedSVC(n_jobs=2), *noise(20_000, 4)),
    "diversified, splits": lambda: (DiversifiedSVC(cv=5), *noise(20_000)),
    "discriminants by Newton": lambda: (
        MarginDiscriminantAnalysis(3, solver="newton", memory_limit="2GB"), *noise(5_000, 4)
    ),
    "enclosing ball": lambda: (MinimumEnclosingBall(5.0, C=None, tol=1e-6), *noise(40_000)),
    "soft ball": lambda: (MinimumEnclosingBall("pairwise", C=0.01, tol=1e-4), *noise(400_000)),
    "rho ensemble, streamed": lambda: (RhoEnsembleSVC(memory_limit="50MB"), *noise(100_000)),
    "rho ensemble, low rank": lambda: (RhoEnsembleSVC(10_000, rank=100), *noise(200_000)),
    "rho ensemble, many classes": lambda: (RhoEnsembleSVC(10_000, n_jobs=2), *noise(6_000, 4)),
    "tuned ensemble": lambda: (EnsembleSVC(), *noise(8_000)),
    "tuned ensemble, two threads": lambda: (EnsembleSVC(n_jobs=2), *noise(8_000)),
    "tuned ensemble, low rank": lambda: (EnsembleSVC(), *noise(400_000)),
    "tuned ensemble, many classes": lambda: (EnsembleSVC(n_jobs=2), *noise(8_000, 4)),
    "multiplicative": lambda: (MultiplicativeSVC(max_stages=10**6), *noise(5_000)),
    "path": lambda: (PathSVC(1.0, memory_limit="2GB"), *noise(1_500)),
    "path, two threads": lambda: (PathSVC(n_jobs=2, memory_limit="2GB"), *noise(1_500)),
    "path, many classes": lambda: (RigorousSVC(1e3, n_jobs=2), *noise(2_000, 3)),
    "callable": lambda: (greedy(kernel=slow), *noise(2_000)),
    "callable, two threads": lambda: (greedy(kernel=slow, n_jobs=2), *noise(2_000, 3)),
    "choosing": lambda: (GreedySVC(), *noise(20_000)),
    "choosing, two threads": lambda: (GreedySVC(n_jobs=2), *noise(15_000)),
    "choosing, many rows": lambda: (GreedySVC(), *noise(400_000)),
    "choosing, many classes": lambda: (GreedySVC(n_jobs=2), *noise(20_000, 4)),
    "growing ensemble": lambda: (EnsembleSVC(max_time=100), *noise(8_000)),
    "growing, greedy": lambda: (GreedySVC(max_time=100), *noise(20_000)),
}

def interrupted_fit(model, X, y, after):
    sent = []
    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    timer = threading.Timer(after, interrupt)
    try:
        timer.start()
        model.fit(X, y)
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    finally:
        timer.cancel()
    return None  # the fit was over first

def is_same(model, before):
    return vars(model).keys() == before.keys() and all(vars(model)[k] is before[k] for k in before)
"""

ONE_FIT_EACH = """
for name, problem in CASES.items():
    model, X, y = problem()
    before = dict(vars(model))
    delay = interrupted_fit(model, X, y, 0.3)
    print(json.dumps({"name": name, "delay": delay, "same": is_same(model, before)}), flush=True)

model, X, y = CASES["two classes"]()
delay = interrupted_fit(model, X, y, 0.01)
print(json.dumps({"name": "start", "delay": delay}), flush=True)

for name in ("two classes", "many classes"):
    model, X, y = CASES[name]()
    before = dict(vars(model.fit(X[:60], y[:60])))
    interrupted_fit(model, X, y, 0.3)
    print(json.dumps({"name": name + " again", "same": is_same(model, before)}), flush=True)
    model.set_params(gamma=10.0).fit(X[:200], y[:200])
    print(json.dumps({"name": name + " after", "score": model.score(X[:200], y[:200])}), flush=True)
"""

MANY_FITS = """
def resident_bytes():
    with open("/proc/self/statm") as numbers:
        return int(numbers.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

for name in ("two classes", "many classes"):
    model, X, y = CASES[name]()
    sizes = []
    for _ in range(14):
        assert interrupted_fit(model, X, y, 0.12) is not None
        sizes.append(resident_bytes())
    growth = (sizes[-1] - max(sizes[:7])) / X.nbytes
    print(json.dumps({"name": name, "growth": growth}), flush=True)
"""

MATRICES = """
def anonymous_bytes():  # pages of libraries come and go
    with open("/proc/self/status") as lines:
        return 1024 * next(int(l.split()[1]) for l in lines if l.startswith("RssAnon"))

X, y = noise(2_000, 4)
for estimator in (MultiplicativeSVC, RigorousSVC):
    estimator(n_jobs=2).fit(X[:60], y[:60])
before = anonymous_bytes()
for model in (MultiplicativeSVC(max_stages=10**6, n_jobs=2), RigorousSVC(1e3, n_jobs=2)):
    sizes = []
    for _ in range(50):
        interrupted_fit(model, X, y, float(rng.uniform(0.01, 0.1)))
        sizes.append(anonymous_bytes())
    growth = float(np.median(sizes[-10:]) - before) / 1e6
    print(json.dumps({"name": type(model).__name__, "growth": growth}), flush=True)
"""


@functools.cache
def run(script, n_arenas="1"):
    """Results of the child by name, as far as it got."""
    done = run_program(CHILD + script, n_arenas, seconds=100)
    return {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}


CASES = [
    "two classes",
    "revisits",
    "many classes",
    "one against the rest",
    "linear kernel",
    "wide sparse rows",
    "heavy sparse rows",
    "exact hard margin",
    "core sets",
    "core sets, many classes",
    "core sets, not stored",
    "diversified",
    "diversified, splits",
    "discriminants by Newton",
    "enclosing ball",
    "soft ball",
    "rho ensemble, streamed",
    "rho ensemble, low rank",
    "rho ensemble, many classes",
    "tuned ensemble",
    "tuned ensemble, two threads",
    "tuned ensemble, low rank",
    "tuned ensemble, many classes",
    "multiplicative",
    "path",
    "path, two threads",
    "path, many classes",
    "callable",
    "callable, two threads",
    "choosing",
    "choosing, two threads",
    "choosing, many rows",
    "choosing, many classes",
    "growing ensemble",
    "growing, greedy",
]


@pytest.mark.parametrize("case", [*CASES, "start"])
def test_ctrl_c_raises_within_a_second(case):
    delay = run(ONE_FIT_EACH)[case]["delay"]
    assert delay is not None, "the fit was over before it could be interrupted"
    assert delay < 1.0


@pytest.mark.parametrize("case", [*CASES, "two classes again", "many classes again"])
def test_ctrl_c_leaves_the_estimator_as_it_was(case):
    assert run(ONE_FIT_EACH)[case]["same"]


@pytest.mark.parametrize("case", ["two classes", "many classes"])
def test_an_interrupted_estimator_can_be_fitted(case):
    assert run(ONE_FIT_EACH)[f"{case} after"]["score"] == 1.0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("case", ["two classes", "many classes"])
def test_interrupted_fits_do_not_leak(case):
    # Seven fits lie between the two measurements, and each packs all rows.
    assert run(MANY_FITS)[case]["growth"] < 2.0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("case", ["MultiplicativeSVC", "RigorousSVC"])
def test_kernel_matrices_of_interrupted_fits_go_back_to_the_system(case):
    # In MB, over fifty fits on two threads, whose matrices have 8 MB each; what threads free on the
    # heap would stay there.
    assert run(MATRICES, n_arenas="8")[case]["growth"] < 40.0
