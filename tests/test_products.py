"""The cases that `make test` shows of a product of options."""

import itertools

import pytest
from problems.products import mark_full, shown_once

KERNELS, SIZES, IS_SPARSE = ("rbf", "linear", "poly"), (1, 5, 7, 9), (False, True)
CASES = [
    {"kernel": kernel, "size": size, "is_sparse": is_sparse}
    for kernel, size, is_sparse in itertools.product(KERNELS, SIZES, IS_SPARSE)
]


def shown(*names, cases=CASES, **options):
    return [cases[place] for place in sorted(shown_once(cases, *names, **options))]


@pytest.mark.parametrize("names", [["size"], ["kernel"], ["is_sparse"], ["kernel", "is_sparse"]])
def test_every_option_is_shown(names):
    for name in CASES[0]:
        assert {case[name] for case in shown(*names)} == {case[name] for case in CASES}


def test_named_options_are_shown_together_and_the_others_take_turns():
    found = shown("kernel", "size")
    assert [(case["kernel"], case["size"]) for case in found] == [
        *itertools.product(KERNELS, SIZES)
    ]
    assert [case["is_sparse"] for case in found] == 6 * [False, True]


def test_an_option_whose_turn_does_not_come_is_added():
    found = shown("is_sparse")
    assert len(found) < len(CASES) / 2
    assert {case["kernel"] for case in found} == set(KERNELS)


def test_a_function_may_say_what_a_case_shows():
    found = shown(key=lambda size, **_: size > 5)
    assert {case["size"] for case in found} == set(SIZES)
    assert len(found) < len(CASES) / 2


def test_options_need_not_be_hashable():
    cases = [{"model": {"C": C}, "rows": [n]} for C in (1, 2) for n in (3, 4)]
    assert shown("model", cases=cases) == [cases[0], cases[3]]


class Case:
    """As much of a collected test as is looked at."""

    def __init__(self, test, mark, **options):
        self.callspec, self.params, self.mark = self, options, mark
        self.id = "-".join(map(str, options.values()))
        self.nodeid, self.is_full = f"{test}[{self.id}]", False

    def get_closest_marker(self, name):
        return self.mark

    def add_marker(self, name):
        self.is_full = name == "full"


def test_each_marked_test_is_a_product_of_its_own():
    mark = pytest.mark.once_per("x").mark
    marks = {"unmarked": None, "one": mark, "other": mark}
    cases = [Case(test, marks[test], x=x, y=y) for test in marks for x in "ab" for y in (1, 2)]
    mark_full(cases)
    full = [case.nodeid for case in cases if case.is_full]
    assert full == ["one[a-2]", "one[b-1]", "other[a-2]", "other[b-1]"]
