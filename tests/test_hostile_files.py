"""Model files that would take far more memory than their size, and those that only seem to."""

import io
import json
import subprocess
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, StackingClassifier
from skops.io import _trusted_types as trusted_types

from hardmargin import EnsembleSVC, ParzenClassifier
from hardmargin.io import ModelFileError, dump, load, notes_of, objects, parts

X, Y = load_iris(return_X_y=True)
MB = 1 << 20

LOADED = """
import sys
from hardmargin.io import load
load(sys.argv[1])
print(sorted(name for name in sys.modules if name.startswith(("skops", "sklearn.ensemble"))))
"""


@pytest.fixture
def path(tmp_path):
    return dump(ParzenClassifier().fit(X, Y), tmp_path / "model.skops")


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    monkeypatch.setattr(parts, "LEAST_LIMIT", 2 * MB)


def entries_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path, entries, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def support_of(entries):
    """The name of the array of support rows."""
    schema = json.loads(entries["schema.json"])
    return schema["content"]["content"]["support_vectors_"]["file"]


def padded(entries):
    return {**entries, support_of(entries): npy(np.zeros((64 * MB // 8, 1)))}


def padded_and_unused(entries):
    return {**entries, "more.npy": npy(np.zeros(64 * MB // 8))}


def archive_in_an_archive(entries):
    schema, name = json.loads(entries["schema.json"]), "rows.npz"
    node = schema["content"]["content"]["support_vectors_"]
    node |= {"__loader__": "SparseMatrixNode", "type": "scipy", "file": name}
    node |= {"__module__": "scipy.sparse._csr", "__class__": "csr_array"}
    file = io.BytesIO()
    values, places = np.ones(MB), np.zeros(MB, dtype=np.int32)
    sp.save_npz(file, sp.csr_array((values, places, [0, MB]), shape=(1, 1)))
    return {**entries, "schema.json": json.dumps(schema), name: file.getvalue()}


def long_schema(entries):
    schema = json.loads(entries["schema.json"])
    schema["more"] = [[]] * MB
    return {**entries, "schema.json": json.dumps(schema)}


def wide_characters(entries):
    schema = json.loads(entries["schema.json"])
    schema["more"] = "\U0001f600" + " " * MB
    return {**entries, "schema.json": json.dumps(schema)}


def long_notes(entries):
    return {**entries, "hardmargin.json": json.dumps({"format": 1, "notes": {"a": [[]] * MB}})}


@pytest.mark.parametrize(
    "attack",
    [
        padded,
        padded_and_unused,
        archive_in_an_archive,
        long_schema,
        wide_characters,
        long_notes,
    ],
)
def test_files_that_become_large_are_refused_before_they_do(path, attack):
    rewrite(path, attack(entries_of(path)))
    load_nothing_large(path, r"has [\d,]+ bytes, and would take [\d,]+ or more in memory.*max_b")


def load_nothing_large(path, message):
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=message):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 16 * MB
    finally:
        tracemalloc.stop()


def test_a_part_that_is_longer_than_its_size_is_not_unpacked(path):
    entries = entries_of(path)
    name, zeros = support_of(entries), npy(np.zeros(64 * MB // 8))
    rewrite(path, {**entries, name: zeros})
    said = (1000).to_bytes(4, "little")
    data = path.read_bytes().replace(len(zeros).to_bytes(4, "little"), said)
    path.write_bytes(data)
    load_nothing_large(path, "is damaged")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_parts_whose_pieces_unpack_to_any_size_are_refused(path, method):
    rewrite(path, entries_of(path), method)
    with pytest.raises(ModelFileError, match="packed as no model is"):
        load(path)


@pytest.mark.parametrize(
    "descr", ["'<f8', 'shape': (10000000000,)", "'|V0', 'shape': (10000000000,)"]
)
def test_an_array_has_the_bytes_that_its_header_promises(path, descr):
    entries = entries_of(path)
    header = f"{{'descr': {descr}, 'fortran_order': False}}".encode()
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    rewrite(path, {**entries, support_of(entries): array})
    load_nothing_large(path, "has other bytes")


def test_an_array_that_many_objects_name_is_read_once(path):
    entries = entries_of(path)
    schema = json.loads(entries["schema.json"])
    content = schema["content"]["content"]
    node = {**content["support_vectors_"], "file": "rows.npy"}
    nodes = [{**node, "__id__": 10**6 + k} for k in range(100)]
    content["more"] = {**content["support_vectors_"], "__id__": 1, "__loader__": "ListNode"}
    content["more"] |= {"__module__": "builtins", "__class__": "list", "content": nodes}
    key_types = schema["content"]["key_types"]["content"]
    key_types.append(key_types[0])
    rewrite(path, {**entries, "schema.json": json.dumps(schema), "rows.npy": npy(np.ones(MB // 8))})
    assert len({id(array) for array in load(path).more}) == 1


def test_lists_that_share_lists_become_no_array_of_all_combinations(path):
    entries = entries_of(path)
    schema = json.loads(entries["schema.json"])
    content = schema["content"]["content"]
    number = {"__loader__": "JsonNode", "__module__": "b", "__class__": "str", "content": "9"}
    rows = number
    for level in range(9):
        rows = {"__loader__": "ListNode", "__module__": "builtins", "content": [rows]}
        rows |= {"__class__": "list", "__id__": level + 1}
        rows["content"] += [{"__id__": level, **rows["content"][0], "content": []}] * 9
    shape = {"__loader__": "TupleNode", "__module__": "builtins", "__class__": "tuple"}
    shape["content"] = [{**number, "content": "10"}] * 9
    content["support_vectors_"] |= {"type": "json", "content": rows["content"], "shape": shape}
    rewrite(path, {**entries, "schema.json": json.dumps(schema)})
    load_nothing_large(path, "is damaged")


def test_deep_json_is_refused(path):
    rewrite(path, {**entries_of(path), "schema.json": "[" * 20_000})
    with pytest.raises(ModelFileError, match="is damaged"):
        load(path)


def test_the_error_says_how_to_load_a_large_model(monkeypatch, tmp_path):
    rows = np.eye(100)[np.arange(20_000) % 2]
    path = dump(ParzenClassifier().fit(rows, rows[:, 1]), tmp_path / "model.skops")
    monkeypatch.setattr(parts, "FILE_SIZES", 10)
    with pytest.raises(ModelFileError, match=r"load it with max_bytes=\d+ or more") as error:
        load(path)
    most = int(str(error.value).rpartition("max_bytes=")[2].split()[0])
    assert load(path, max_bytes=2 * most).support_vectors_.shape == rows.shape


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "1GB"])
def test_max_bytes_is_a_number_of_bytes(path, wrong):
    with pytest.raises(ValueError, match="max_bytes must be a number of bytes or None, got"):
        load(path, max_bytes=wrong)


def test_models_that_compress_well_are_loaded(monkeypatch, tmp_path):
    monkeypatch.undo()  # with the limit that users have
    rows = np.eye(100)[np.arange(20_000) % 2]
    path = dump(ParzenClassifier().fit(rows, rows[:, 1]), tmp_path / "model.skops")
    assert path.stat().st_size < rows.nbytes / 70
    np.testing.assert_array_equal(load(path).predict(rows[:2]), [0, 1])


def test_notes_are_read_without_the_model(path):
    rewrite(path, padded(entries_of(path)))
    assert "hardmargin" in notes_of(path)


def test_loading_imports_what_the_model_needs_and_no_more(path):
    done = subprocess.run(
        [sys.executable, "-c", LOADED, str(path)], capture_output=True, text=True, check=False
    )
    assert done.stdout == "[]\n", done.stderr


def node_of(name, loader):
    module, _, own = name.rpartition(".")
    return {"__module__": module, "__class__": own, "__loader__": loader}


@pytest.mark.parametrize(
    ("loader", "names"),
    [
        ("FunctionNode", trusted_types.NUMPY_UFUNC_TYPE_NAMES),
        ("FunctionNode", trusted_types.SCIPY_UFUNC_TYPE_NAMES),
        ("NdArrayNode", trusted_types.NUMPY_DTYPE_TYPE_NAMES),
        ("ObjectNode", trusted_types.SKLEARN_ESTIMATOR_TYPE_NAMES),
        ("ObjectNode", trusted_types.SKLEARN_INTERNAL_TYPE_NAMES),
    ],
)
def test_the_types_that_skops_trusts_are_trusted(loader, names):
    assert names
    assert [name for name in names if not objects.is_trusted(node_of(name, loader))] == []


@pytest.mark.parametrize(
    ("loader", "name"),
    [
        ("ObjectNode", "sklearn.svm.tests.test_svm.SVC"),
        ("ObjectNode", "sklearn.base.BaseEstimator.__subclasses__"),
        ("ObjectNode", "sklearn.datasets._openml.fetch_openml"),
        ("ObjectNode", "sklearn.svm._classes.LinearClassifierMixin"),
        ("ObjectNode", "sklearn.tree._tree.Tree"),
        ("FunctionNode", "numpy.load"),
        ("FunctionNode", "scipy.special.test"),
        ("TypeNode", "builtins.eval"),
        ("TypeNode", "numpy.memmap"),
        ("NdArrayNode", "numpy.fromfile"),
        ("LossNode", "sklearn._loss._loss.os"),
        ("ConstructorFromReduceNode", "scipy.sparse._csr.csr_array"),
        ("PartialNode", "functools.partial"),
    ],
)
def test_others_are_not(loader, name):
    assert not objects.is_trusted(node_of(name, loader))


def test_no_other_module_is_imported_to_learn_whether_a_type_is_trusted():
    name = "sklearn.svm.tests.test_svm"
    objects.is_trusted(node_of(f"{name}.SVC", "ObjectNode"))
    assert name not in sys.modules


def test_what_only_skops_can_build_needs_the_user_s_word(monkeypatch, tmp_path):
    monkeypatch.undo()
    forest = RandomForestClassifier(2, max_depth=2, random_state=0)
    model = StackingClassifier([("vote", EnsembleSVC(n_stages=1)), ("forest", forest)], cv=2)
    path = dump(model.fit(X, Y), tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match=r"sklearn\.tree\._tree\.Tree"):
        load(path)
    loaded = load(path, trusted=["sklearn.tree._tree.Tree", "sklearn.utils._bunch.Bunch"])
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
