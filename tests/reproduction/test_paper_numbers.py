"""The papers' numbers that come with the package."""

from importlib.resources import files

import pytest

from hardmargin.reproduction.paper_numbers import read_numbers, read_rows
from hardmargin.reproduction.parts import Settings
from hardmargin.reproduction.registry import PARTS

FILES = [
    path.name.removesuffix(".csv")
    for path in (files("hardmargin.reproduction") / "numbers").iterdir()
]


@pytest.mark.parametrize("file", FILES)
def test_files_are_tables(file):
    rows = read_rows(file)
    assert rows
    # A line of too few or too many cells has a None among its values or keys.
    assert all(None not in row and None not in row.values() for row in rows)


def test_there_are_files_of_all_papers():
    assert {file.partition("_")[0] for file in FILES} == {"ijcai07", "mcs06", "tnn08", "esann99"}


def test_rows_of_several_columns():
    numbers = read_numbers("mcs06_table3", ("base", "n_base"), {"letters": "s"})
    assert numbers["orthogonal CVM, 5Nc", "s"] == 512
    assert read_numbers("mcs06_table3", "base", {"usps": "s"}) == {("orthogonal CVM", "s"): 10630}


@pytest.mark.parametrize(
    ("part", "row", "column", "number"),
    [
        ("ijcai07-table1", "web1", "test rows", 47272),
        ("ijcai07-table2", "astro", "rho-SVM", 22.1),
        ("ijcai07-table3", "adult", "seconds", 3555.1),
        ("ijcai07-table3", "titanic", "error at the paper's iterations", 22.5),
        ("mcs06-table1", "face", "columns", 361),
        ("mcs06-table2", "optdigits, no base, ANN", "Nc", 5.63),
        ("mcs06-table2", "letters, orthogonal SVM, CVM", "5Nc", 5.78),
        ("mcs06-table2", "face, orthogonal CVM, ANN", "3Nc", 1.61),
        ("mcs06-table2", "pendigits, bagged SVM, voting", "Nc", 4.18),
        ("mcs06-table2", "usps, bagged SVM, voting", "Nc", None),
        ("mcs06-table3", "letters, orthogonal SVM", "3Nc", 9646),
        ("tnn08-table1", "Web-1", "gamma of GS-SVMs", 0.1),
        ("tnn08-table2", "Web-7", "support vectors", 1724),
        ("tnn08-table2", "Web-7", "support vectors of SVC", 2017),
        ("tnn08-table3", "Adult-7, SVC with C=2^10", "seconds", 309),
        ("tnn08-table3", "Web-7, GS-SVMs", "kernel evaluations", 43),
        ("tnn08-table4", "40000", "error of SVC", 8.5),
        ("tnn08-table4", "100000", "kernel evaluations", 5.6),
        ("tnn08-table5", "GS-SVMs", "error", 2.6),
        ("tnn08-table5", "Core vector machines", "seconds", 24369),
        ("tnn08-table6", "Letter", "test rows", 5000),
        ("tnn08-table6", "Iris", "test rows", None),
        ("tnn08-table7", "Liver disorders", "SVMs", 28.71),
        ("tnn08-table7", "Page", "HM-SVMs", None),
        ("esann99-results", "mirror symmetry", "error", 4.55),
        ("esann99-results", "wisconsin", "separates from epoch", 1),
    ],
)
def test_numbers_of_parts(part, row, column, number):
    assert PARTS[part].numbers.get((row, column)) == number


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_parts_are_whole(part):
    everything = Settings(full=True)
    tasks = list(part.tasks(everything))
    assert len({task.key for task in tasks}) == len(tasks)
    places = {place[1:] for task in tasks for place in task.fills if place[0] == part.name}
    columns = {column.name for column in part.columns}
    assert {column for _, column in places} == columns
    # Each of the paper's numbers has a cell beside it.
    assert {(r, c) for r, c in part.numbers if c in columns} <= places
    assert part.reading.strip()
    assert part.kind == "table" or part.axes is not None
