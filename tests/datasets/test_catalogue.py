"""The catalogue of data sets: its entries, and what `load` says of sets and sources it lacks."""

import re

import pytest
import sklearn.datasets

from hardmargin.datasets import FOLDER_NAMES, DataUnavailableError, generated, list_sets, loading
from hardmargin.datasets import load as load_set
from hardmargin.datasets.catalogue import CATALOGUE, CHECKSUMS
from hardmargin.datasets.lookup import find_set
from hardmargin.datasets.sources import Bundled, Folder, Generated, Remote

pytestmark = pytest.mark.usefixtures("alone")

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


def test_a_source_that_it_does_not_have():
    with pytest.raises(DataUnavailableError, match="'iris' cannot come from source='download'"):
        load_set("iris", source="download")
