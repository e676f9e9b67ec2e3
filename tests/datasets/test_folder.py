"""Reading data sets from a folder of small files in the formats of the real ones."""

from pathlib import Path

import numpy as np
import pytest
from problems.dataset_files import NOT_ARRAYS, write_libsvm, write_member, write_npz

from hardmargin.datasets import FOLDER_NAMES, load_covtype_binary, load_folder
from hardmargin.datasets import folder as folder_module
from hardmargin.datasets.folder import files_of, read_dat


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name, text in (("a9a", "+1 2:1 123:1\n-1 1:1\n-1 3:1\n"), ("a9a.t", "-1 5:1\n+1 \n")):
        write_libsvm(tmp_path / f"{name}.libsvm.xz", text)
    write_npz(tmp_path / "adult_web_subsets.npz", a1a=np.packbits([1, 0, 1]))
    X = rng.integers(0, 16, (6, 16)).astype(np.int8)
    y = np.arange(6, dtype=np.int8)
    split = {"Xtr": X[:4], "ytr": y[:4], "Xte": X[4:], "yte": y[4:]}
    write_npz(tmp_path / "letter.npz", **split, X=X[::-1], y=y[::-1])
    write_npz(tmp_path / "segment.npz", X=X, y=y)
    train = np.array([[0, 1], [2, 3]], np.int16)
    members = {"breast_cancer_X": X, "breast_cancer_y": y, "thyroid_X": X, "thyroid_y": y}
    members |= {"breast_cancer_train": train, "breast_cancer_test": train[::-1]}
    write_npz(tmp_path / "ida_benchmark.npz", **members)
    return tmp_path


def write_covtype(folder: Path, n_rows: int) -> None:
    rng = np.random.default_rng(1)
    write_npz(
        folder / "covtype.npz",
        X10=rng.integers(-100, 7000, (n_rows, 10)).astype(np.int16),
        wilderness=rng.integers(0, 4, n_rows).astype(np.uint8),
        soil=rng.integers(0, 40, n_rows).astype(np.uint8),
        y=rng.integers(1, 8, n_rows).astype(np.uint8),
    )


def test_libsvm_pair(folder):
    X_train, y_train, X_test, y_test = load_folder("a9a", folder).split()
    assert X_train.shape == (3, 123)
    assert X_test.shape == (2, 123)
    assert X_train[0].indices.tolist() == [1, 122]
    assert X_train.indices.dtype == np.int32
    assert y_train.tolist() == [1, -1, -1]
    assert y_test.tolist() == [-1, 1]


def test_subset_tests_on_the_other_rows(folder):
    _X_train, y_train, X_test, y_test = load_folder("a1a", folder).split()
    assert y_train.tolist() == [1, -1]
    assert y_test.tolist() == [-1]
    assert X_test.toarray()[0, 0] == 1


def test_published_split(folder):
    data = load_folder("letter", folder)
    assert data.X.shape == (6, 16)
    assert data.y.dtype == np.int64
    assert data.split()[3].tolist() == [4, 5]


def test_the_other_order_of_letter(folder):
    X_train, y_train, _X_test, y_test = load_folder("letter-uci", folder).split()
    assert X_train.shape == (4, 16)
    assert (y_train.tolist(), y_test.tolist()) == ([5, 4, 3, 2], [1, 0])


def test_ida_realizations(folder):
    data = load_folder("ida-breast-cancer", folder)
    assert len(data.splits) == 2
    assert data.split(1)[1].tolist() == [2, 3]
    assert load_folder("ida-thyroid", folder).splits == ()


def test_no_published_split(folder):
    with pytest.raises(ValueError, match="realization=0, but 'segment' has 0 published splits"):
        load_folder("segment", folder).split()


def test_covtype_binary(folder):
    write_covtype(folder, 50_010)
    X_train, y_train, X_test, _y_test = load_covtype_binary(folder, 10, scale=True)
    assert X_train.shape == (10, 54)
    assert X_test.shape == (50_000, 54)
    assert X_test.min() == 0
    assert X_test.max() == 1
    np.testing.assert_array_equal(X_test[:, 10:].sum(axis=1), 2)
    raw = load_folder("covtype", folder)
    order = np.random.default_rng(0).permutation(50_010)
    np.testing.assert_array_equal(y_train, np.where(raw.y[order[:10]] == 2, 1, -1))
    np.testing.assert_array_equal(load_covtype_binary(folder, 10)[0], raw.X[order[:10]])
    with pytest.raises(ValueError, match="n_train=11 must lie between 1 and 10"):
        load_covtype_binary(folder, 11)


def test_unknown_name_lists_the_known():
    with pytest.raises(ValueError, match="name='iris' .* use one of a1a, .*" + FOLDER_NAMES[-1]):
        load_folder("iris", ".")


def test_missing_folder_and_file(folder):
    with pytest.raises(FileNotFoundError, match=r"data_dir=.*nowhere"):
        load_folder("a9a", folder / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"has no file 'mnist\.npz'"):
        load_folder("mnist", folder)


@pytest.mark.parametrize(
    ("name", "file"),
    [("letter", "letter.npz"), ("a9a", "a9a.libsvm.xz"), ("ida-thyroid", "ida_benchmark.npz")],
)
def test_truncated_file(folder, name, file):
    whole = (folder / file).read_bytes()
    (folder / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is damaged or cut short"):
        load_folder(name, folder)


def test_missing_member(folder):
    write_npz(folder / "letter.npz", X=np.zeros((2, 2)))
    message = r"letter\.npz' has another layout: expected .* Xtr, ytr, Xte, yte, found X; see help"
    with pytest.raises(ValueError, match=message):
        load_folder("letter", folder)


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("letter", "letter.npz", r"letter\.npz' is not an npz file$"),
        ("a9a", "a9a.libsvm.xz", r"a9a\.libsvm\.xz' is not an xz file$"),
    ],
)
def test_text_under_the_name_of_an_archive(folder, name, file, message):
    (folder / file).write_text("1 1:2\n")
    with pytest.raises(ValueError, match=message):
        load_folder(name, folder)


def test_features_and_labels_of_different_lengths(folder):
    write_npz(folder / "segment.npz", X=np.zeros((3, 2)), y=np.zeros(2))
    with pytest.raises(ValueError, match=r"segment\.npz' has features \(3, 2\) but labels \(2,\)"):
        load_folder("segment", folder)


@pytest.mark.parametrize("content", NOT_ARRAYS.values(), ids=NOT_ARRAYS)
def test_members_that_are_no_arrays(folder, content):
    write_member(folder / "segment.npz", "X.npy", content)
    with pytest.raises(ValueError, match=r"segment\.npz' (is damaged|has another layout)"):
        load_folder("segment", folder)


@pytest.mark.parametrize("labels", [["a", "b", "c"], [1.5, 1, 2], [np.nan, 1, 2], [np.inf, 1, 2]])
def test_labels_that_are_not_whole_numbers(folder, labels):
    write_npz(folder / "segment.npz", X=np.zeros((3, 2)), y=np.array(labels))
    with pytest.raises(ValueError, match=r"whole numbers|not an array of numbers"):
        load_folder("segment", folder)


def test_features_without_columns(folder):
    write_npz(folder / "segment.npz", X=np.zeros(3), y=np.zeros(3))
    with pytest.raises(ValueError, match=r"has features \(3,\) but labels \(3,\)"):
        load_folder("segment", folder)


@pytest.mark.parametrize(
    "damage",
    [
        {"wilderness": np.full(3, 4)},
        {"soil": np.full(3, 2**62)},
        {"soil": np.zeros((3, 1))},
        {"X10": np.zeros((2, 10))},
    ],
    ids=["areas", "soils", "shape", "rows"],
)
def test_covtype_with_values_that_do_not_exist(folder, damage):
    whole = {"X10": np.zeros((3, 10)), "wilderness": np.zeros(3), "soil": np.zeros(3)}
    write_npz(folder / "covtype.npz", **whole | {"y": np.ones(3)} | damage)
    with pytest.raises(ValueError, match=r"an area \(0 to 3\) and a soil \(0 to 39\)"):
        load_folder("covtype", folder)


def test_realizations_of_rows_that_do_not_exist(folder):
    X, y, rows = np.zeros((3, 2)), np.zeros(3), np.array([[0, 3]])
    members = {"heart_X": X, "heart_y": y, "heart_train": rows, "heart_test": rows}
    write_npz(folder / "ida_benchmark.npz", **members)
    with pytest.raises(ValueError, match="realizations of 'heart' have rows that do not exist"):
        load_folder("ida-heart", folder)


def test_columns_beyond_all_integers(folder):
    write_libsvm(folder / "a9a.libsvm.xz", f"1 {2**70}:1\n")
    with pytest.raises(ValueError, match="is damaged"):
        load_folder("a9a", folder)


def test_parts_of_another_file(folder):
    with pytest.raises(FileNotFoundError, match="has no rows of 'a5a', only of a1a"):
        load_folder("a5a", folder)
    write_npz(folder / "adult_web_subsets.npz", a1a=np.packbits([1] * 17))
    with pytest.raises(ValueError, match="'a1a' has 3 bytes, not one for every 8 of the 3 rows"):
        load_folder("a1a", folder)


def test_the_empty_name_of_a_folder():
    with pytest.raises(ValueError, match="data_dir='' is empty"):
        load_folder("a9a", "")


def test_text_with_the_class_last(tmp_path):
    (tmp_path / "t.dat").write_text("@relation t\n# a remark\n1, 2.5, R\n\n3,4,M\n")
    X, labels = read_dat("t", tmp_path)
    assert X.tolist() == [[1, 2.5], [3, 4]]
    assert labels.tolist() == ["R", "M"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,R\n1,?,M\n", r"t\.dat', line 2: '\?' is not a number"),
        ("1,2,R\n1,nan,M\n", r"line 2: 'nan' is not a number"),
        ("1,2,R\n\n1,M\n", r"t\.dat', line 3: 1 features and a class, not 2 as before"),
        ("R\n", r"line 1: 0 features and a class, not one or more"),
        ("\n", r"t\.dat' has no rows"),
    ],
)
def test_damaged_text(tmp_path, text, message):
    (tmp_path / "t.dat").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_dat("t", tmp_path)


def test_every_file_is_described():
    words = folder_module.__doc__
    for name in FOLDER_NAMES:
        assert all(f"``{file}``" in words for file in files_of(name))
