"""Indices in C: the text has the index's value everywhere, and divides nothing below zero."""

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoform.dialects.index import Index, iterators
from isoform.lowering.kernel_to_cuda.print_index import Iterators, decode

NAMES = ("h", "w", "r")
H, W, R = iterators(3)


def value(text: str, point: tuple[int, ...]) -> int:
    """What C computes; it rounds a negative numerator the other way, so there may be none."""
    places = dict(zip(NAMES, point, strict=True))
    for numerator in re.findall(r"(\w+|\([^()]*\)) [/%] ", text):
        assert eval(numerator, {}, places) >= 0, text
    return eval(text.replace("/", "//"), {}, places)


@st.composite
def indices(draw: st.DrawFn) -> Index:
    """A sum of products, with a floor or remainder of another one in it."""
    numbers = st.integers(-3, 3)
    first, second = (
        H * draw(numbers) + W * draw(numbers) + R * draw(numbers) + draw(st.integers(-6, 6))
        for _ in range(2)
    )
    divisor = draw(st.integers(2, 5))
    return draw(st.sampled_from([first, first + second // divisor, first + second % divisor]))


@settings(max_examples=200, deadline=None)
@given(indices(), st.tuples(*[st.integers(1, 4)] * 3))
def test_a_text_has_the_value_of_its_index(index: Index, extents: tuple[int, ...]) -> None:
    text = Iterators(NAMES, extents).text(index)
    for point in itertools.product(*map(range, extents)):
        assert value(text, point) == index.evaluate(point), text


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (H * 2 + R - 1, "2 * h + r - 1"),
        (-H + 3, "-h + 3"),
        ((H + R) // 2, "(h + r) / 2"),
        ((H - R) // 2, "((h - r + 4) / 2 - 2)"),
        (W % 3, "w % 3"),
        ((H + W) % 2 + R * 5, "5 * r + (h + w) % 2"),
        (Index(0), "0"),
    ],
)
def test_texts_are_as_one_writes_them(index: Index, text: str) -> None:
    assert Iterators(NAMES, (4, 5, 4)).text(index) == text


def test_a_flat_number_is_split_with_the_last_iterator_fastest() -> None:
    assert decode("point", [("n", 1), ("h", 4), ("w", 5)], "int") == [
        "const int n = 0;",
        "const int w = point % 5;",
        "const int h = point / 5;",
    ]


def test_what_may_leave_32_bits_is_known() -> None:
    over = Iterators(NAMES, (70_000, 40_000, 3))
    assert over.fits_int(W * 40_000)
    assert not over.fits_int(H * 40_000 + W)
