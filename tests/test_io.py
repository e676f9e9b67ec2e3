"""Files of models: what is loaded, and what is refused."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
import skrub
from problems.cells import few_rows_are_many, many_rows
from problems.every_estimator import PUBLIC
from sklearn import model_selection
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import hardmargin
from hardmargin import EnsembleSVC, GreedySVC, ParzenClassifier
from hardmargin.io import (
    ABOUT,
    FORMAT,
    SPLITTERS,
    TRUSTED,
    ModelFileError,
    dump,
    load,
    notes_of,
    write_whole,
)

X, Y = load_iris(return_X_y=True)
KEPT = Path(__file__).with_name("models")


@pytest.fixture(scope="module")
def model():
    return GreedySVC().fit(X, Y)


def half_of(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)


def replace_entry(path, name, content):
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for entry, old in entries.items():
            archive.writestr(entry, content if entry == name else old)


def squared(A, B):
    return (1.0 + np.asarray(A) @ np.asarray(B).T) ** 2


def test_a_model_comes_back(model, tmp_path):
    loaded = load(dump(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_pipeline_comes_back(tmp_path):
    pipeline = make_pipeline(StandardScaler(), EnsembleSVC()).fit(X, Y)
    loaded = load(dump(pipeline, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_proba(X), pipeline.predict_proba(X))


def test_experts_come_back(monkeypatch, tmp_path):
    few_rows_are_many(monkeypatch)
    rows, codes = many_rows()
    experts = EnsembleSVC(n_trees=1).fit(rows, codes)
    loaded = load(dump(experts, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict_proba(rows), experts.predict_proba(rows))


@pytest.mark.parametrize("public", PUBLIC)
def test_files_of_every_public_estimator_are_trusted(public):
    assert f"{public.__module__}.{public.__name__}" in TRUSTED


def test_every_trusted_type_exists():
    for name in (name for name in TRUSTED if not name.startswith("skrub.")):
        module, _, attribute = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=[attribute]), attribute)


@pytest.mark.parametrize("kind", ["table", "text"])
def test_pipelines_of_the_documentation(kind, tmp_path):
    if kind == "table":
        rows = pd.DataFrame({"size": np.arange(60.0), "town": ["Graz", "Delft", "Turin"] * 20})
        model = make_pipeline(skrub.TableVectorizer(), GreedySVC())
    else:
        rows = ["the cat sat", "dogs bark", "stocks fell"] * 20
        model = make_pipeline(TfidfVectorizer(), GreedySVC())
    model.fit(rows, [0, 1, 1] * 20)
    loaded = load(dump(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_splitters_come_back(splitter, tmp_path):
    needed = {"LeavePGroupsOut": {"n_groups": 2}, "PredefinedSplit": {"test_fold": [0, 1, -1]}}
    cv = getattr(model_selection, splitter)(**needed.get(splitter, {}))
    loaded = load(dump(EnsembleSVC(cv=cv), tmp_path / "model.skops"))
    assert type(loaded.cv) is type(cv)
    assert repr(loaded.cv) == repr(cv)


@pytest.mark.parametrize(
    "wrapped",
    [
        CalibratedClassifierCV(ParzenClassifier(0.1), cv=2),
        CalibratedClassifierCV(ParzenClassifier(0.1), cv=2, method="isotonic", ensemble=False),
        model_selection.GridSearchCV(ParzenClassifier(), {"gamma": [0.1, 1.0]}, cv=2),
    ],
    ids=["sigmoid", "isotonic", "search"],
)
def test_calibrated_and_searched_models_come_back(wrapped, tmp_path):
    wrapped.fit(X, Y)
    loaded = load(dump(wrapped, tmp_path / "model.skops"))
    np.testing.assert_array_equal(loaded.predict(X), wrapped.predict(X))


def test_a_pickle_is_named(tmp_path):
    path = tmp_path / "model.pkl"
    path.write_bytes(pickle.dumps([1]))
    with pytest.raises(ModelFileError, match="looks like a pickle"):
        load(path)


def test_skops_reads_the_file(model, tmp_path):
    path = dump(model, tmp_path / "model.skops")
    loaded = skops.io.load(path, trusted=list(TRUSTED))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_no_time_goes_to_the_indents_of_a_vocabulary(model, tmp_path):
    with zipfile.ZipFile(dump(model, tmp_path / "model.skops")) as archive:
        assert b"\n" not in archive.read("schema.json")


def test_notes_are_kept_beside_the_model(model, tmp_path):
    path = dump(model, tmp_path / "model.skops", notes={"target": "species"})
    assert notes_of(path) == {"hardmargin": hardmargin.__version__, "target": "species"}


def test_an_old_file_is_replaced(model, tmp_path):
    path = tmp_path / "model.skops"
    path.write_text("something else")
    dump(model, path)
    assert isinstance(load(path), GreedySVC)


def test_others_may_read_the_file(model, tmp_path):
    path = dump(model, tmp_path / "model.skops")
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert path.stat().st_mode == ordinary.stat().st_mode


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000], ids=oct)
def test_files_have_the_permissions_that_the_process_gives(mask, monkeypatch, tmp_path):
    umask = os.umask
    before = umask(mask)
    try:
        with monkeypatch.context() as patch:
            # A change for a moment would hold for the files of other threads, too.
            patch.setattr(os, "umask", lambda mask: pytest.fail("the mask of the process changed"))
            write_whole(tmp_path / "a.csv", lambda path: path.write_bytes(b"x"))
    finally:
        umask(before)
    assert (tmp_path / "a.csv").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize(
    ("name", "error"), [("nowhere/m.skops", FileNotFoundError), ("", IsADirectoryError)]
)
def test_a_file_that_cannot_be_written_is_called_by_its_own_name(name, error, tmp_path):
    with pytest.raises(error) as raised:
        dump(GreedySVC(), tmp_path / name)
    assert raised.value.filename == str(tmp_path / name)


def test_an_unfinished_file_has_the_ending_of_the_file_and_is_gone_after_an_error(tmp_path):
    seen = []

    def write(path):
        seen.append(path.suffix)
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.csv", write)
    assert seen == [".csv"]
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_saved_leaves_nothing_behind(tmp_path):
    path = tmp_path / "model.skops"
    path.write_text("an older model")
    with pytest.raises(TypeError):
        dump(GreedySVC(), path, notes={"unknown": object()})
    assert path.read_text() == "an older model"
    assert os.listdir(tmp_path) == ["model.skops"]


@pytest.mark.parametrize("damage", [half_of, flip_a_bit])
def test_a_damaged_file_is_refused(model, tmp_path, damage):
    path = dump(model, tmp_path / "model.skops")
    damage(path)
    with pytest.raises(ModelFileError, match=r"model\.skops.*(cut short|damaged)"):
        load(path)


def test_a_file_of_another_package_is_refused(tmp_path):
    path = tmp_path / "forest.skops"
    skops.io.dump(RandomForestClassifier(n_estimators=2).fit(X, Y), path)
    with pytest.raises(ModelFileError, match=r"forest\.skops was not saved by hardmargin"):
        load(path)


@pytest.mark.parametrize("content", [b"", b"some text", bytes(1000)])
def test_any_other_file_is_refused(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"notes\.txt is not a model file"):
        load(path)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="is a folder"):
        load(tmp_path)


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "model.skops")


def test_unknown_types_are_refused_by_name(tmp_path):
    path = dump(GreedySVC(0.1, kernel=squared).fit(X, Y), tmp_path / "model.skops")
    with pytest.raises(ModelFileError, match="squared"):
        load(path)


def test_types_that_the_user_trusts_are_loaded(tmp_path):
    path = dump(GreedySVC(0.1, kernel=squared).fit(X, Y), tmp_path / "model.skops")
    name = f"{squared.__module__}.{squared.__qualname__}"
    assert load(path, trusted=[name]).kernel is squared


def test_code_in_a_file_is_not_run(model, tmp_path):
    path = dump(model, tmp_path / "model.skops")
    with zipfile.ZipFile(path) as archive:
        schema = archive.read("schema.json")
    evil = schema.replace(b'"GreedySVC"', b'"system"').replace(
        b'"hardmargin.estimators.greedy"', b'"os"'
    )
    assert evil != schema
    replace_entry(path, "schema.json", evil)
    with pytest.raises(ModelFileError, match=r"os\.system|posix\.system"):
        load(path)


@pytest.mark.parametrize("notes", ["x", 3, None, [1]])
def test_notes_that_are_none_are_refused(model, tmp_path, notes):
    path = dump(model, tmp_path / "model.skops")
    replace_entry(path, ABOUT, json.dumps({"format": 1, "notes": notes}).encode())
    with pytest.raises(ModelFileError, match=r"model\.skops is damaged: its notes"):
        notes_of(path)


def test_a_file_that_does_not_name_its_version_is_loaded(model, tmp_path):
    path = dump(model, tmp_path / "model.skops")
    replace_entry(path, ABOUT, b'{"format": 1}')
    assert notes_of(path) == {"hardmargin": "unknown"}
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))


def test_a_file_of_a_later_format_is_refused(model, tmp_path):
    path = dump(model, tmp_path / "model.skops")
    about = {"format": FORMAT + 1, "hardmargin": "9.0", "notes": {}}
    replace_entry(path, ABOUT, json.dumps(about).encode())
    with pytest.raises(ModelFileError, match=r"saved by hardmargin 9\.0.*later version"):
        load(path)


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.skops")), ids=lambda path: path.stem)
def test_files_of_earlier_versions_predict_as_they_did(path):
    expected = np.load(path.with_suffix(".npy"))
    np.testing.assert_allclose(load(path).predict_proba(X), expected, atol=1e-6)


def test_there_are_files_of_earlier_versions():
    assert list(KEPT.glob("*.skops"))
