"""Coordinates: the smallest basis of the lattice that indices span."""

import math
import random

import pytest
from xdsl.dialects.builtin import f32

from isoform.dialects.canonical_types import Read, leaf
from isoform.dialects.index import Index, iterators
from isoform.passes.derivation import basis, traversals
from isoform.passes.derivation.basis import rank, reduced, solve
from isoform.passes.derivation.body import SumOfProducts, body_of, build
from isoform.passes.derivation.step import ProposalOptions
from isoform.passes.derivation.traversals import every_reindex


def random_rows(rng: random.Random) -> list[Index]:
    """Independent rows of up to four iterators."""
    while True:
        count = rng.randint(1, 4)
        rows = [
            Index.make(0, {k: rng.randint(-5, 5) for k in range(count)})
            for _ in range(rng.randint(1, count))
        ]
        if all(row.terms for row in rows) and rank(rows) == len(rows):
            return rows


def spans_the_same(rows: list[Index]) -> bool:
    """Whether each of two bases consists of integer combinations of the other."""
    least = reduced(rows)
    there = all(solve(least, row) is not None for row in rows)
    return there and all(solve(rows, row) is not None for row in least)


def test_a_reduced_basis_spans_the_same_lattice() -> None:
    rng = random.Random(3)
    assert all(spans_the_same(random_rows(rng)) for _ in range(200))


def test_a_basis_that_forgets_a_factor_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: rows are divided by the gcd of their coefficients, as if they were spanned."""
    plain = basis.reduced
    monkeypatch.setitem(
        globals(), "reduced", lambda rows: tuple(basis.primitive(row) for row in plain(rows))
    )
    rng = random.Random(3)
    assert not all(spans_the_same(random_rows(rng)) for _ in range(50))


def test_single_iterators_are_taken_where_the_lattice_has_them() -> None:
    g, f, h = iterators(3)
    assert reduced([g * 64 + f, g]) == (g, f)
    assert reduced([f + h, f - h]) == (f + h, h * 2)
    assert reduced([g * 6 + f, g * 4 + f, f]) == (g * 2, f)


def grouped(features: int, dilation: int) -> SumOfProducts:
    """The products of one tap each of two groups of filters with an image."""
    g, f, h, r, c = iterators(5)
    image, kernel = leaf("x", (2 * 5, 9), f32), leaf("k", (2 * features, 5, 3), f32)
    made = build(
        (2, features, 9, 3),
        (5,),
        [
            Read(image, (g * 5 + c, h + r * dilation - dilation)),
            Read(kernel, (g * features + f, c, r)),
        ],
        f32,
    )
    body = body_of(made)
    assert body is not None
    return body


@pytest.mark.parametrize(("features", "dilation"), [(7, 2), (4, 1), (3, 3)])
def test_groups_keep_their_box(features: int, dilation: int) -> None:
    """Filters and groups stay two traversals, places and taps become one of places."""
    body = grouped(features, dilation)
    steps = list(every_reindex(body, ProposalOptions()))
    sizes = [math.prod(step.new.shape) for step in steps]
    assert min(sizes) == 2 * features * (9 + 2 * dilation) * 3


def test_without_the_reduced_basis_the_box_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traversals, "WIDE", 10**9)
    body = grouped(7, 2)
    sizes = [math.prod(step.new.shape) for step in every_reindex(body, ProposalOptions())]
    assert all(size >= 2 * 14 * 13 * 3 for size in sizes)
