"""Damaged text files of data sets: a ValueError says what is wrong."""

import pytest

from hardmargin.datasets.readers import read_libsvm, read_text
from hardmargin.datasets.sources import Layout


def test_text_whose_rows_all_have_missing_values():
    with pytest.raises(ValueError, match="every row has missing values"):
        read_text("1,?,a\n?,2,b\n", Layout())


def test_text_without_the_letters_of_bases():
    with pytest.raises(ValueError, match="every row has letters other than A, C, G and T"):
        read_text("N,ABC\nN,XYZ\n", Layout(label=0, letters=True))


def test_infinite_labels():
    with pytest.raises(ValueError, match="labels that are not whole numbers"):
        read_text("1,inf\n2,0\n", Layout())


def test_columns_beyond_all_integers(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text(f"1 {2**70}:1\n")
    with pytest.raises(ValueError, match=r"rows\.txt' is damaged"):
        read_libsvm(path, 3)
