"""Memory of graphs while they run."""

import sys

import pytest
from problems.processes import output_of

PROGRAM = """
import sys, warnings
from threading import Event, Thread
import numpy as np
from onnxruntime import InferenceSession, SessionOptions
from hardmargin import ParzenClassifier
from hardmargin.onnx import to_onnx
from problems.anonymous_memory import anonymous

rng = np.random.default_rng(0)
X, Q = rng.normal(size=(3_000, 20)), rng.normal(size=(1_000, 20))
model = ParzenClassifier(kernel=sys.argv[1]).fit(X, np.arange(3_000) % 2)
options = SessionOptions()
options.intra_op_num_threads = 1
session = InferenceSession(to_onnx(model, 20).SerializeToString(), options)
session.run(None, {"X": Q[:1]})
found, done = [anonymous()], Event()

def watch():
    while not done.wait(0.001):
        found.append(anonymous())

watcher = Thread(target=watch)
watcher.start()
session.run(None, {"X": Q})
done.set()
watcher.join()
print((max(found) - found[0]) / (8 * len(Q) * len(X)))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_graph_takes_few_numbers_per_row_and_support_row(kernel):
    assert float(output_of(PROGRAM, kernel)) < 1.0
