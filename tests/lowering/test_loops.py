"""Which leading loops scopes share: as many as all have, and as their reads of each other allow."""

import pytest
from xdsl.dialects.builtin import f32

from isoform.dialects.algebra import ScopeOp
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import Index
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import tensor
from isoform.lowering.algebra_to_kernel.shared_loops import shared_loops

X = GraphBuilder().input("x", (8, 8))


def scope(*extents: int, reads: Source | None = None, at: tuple = ()) -> ScopeOp:
    """A scope with these loops that reads x at [0, 0], and another value at some index."""
    build = ScopeBuilder()
    body = Source(X)[0, 0]
    if reads is not None:
        body = body + reads[at]
    made = build.scope(tensor(extents, f32), body, (), "sum")
    assert isinstance(made.value.owner, ScopeOp)
    return made.value.owner


@pytest.mark.parametrize(
    ("extents", "expected"),
    [
        ([(4, 6)], 2),
        ([(4, 6), (4, 6)], 2),
        ([(4, 6), (4, 5)], 1),
        ([(4, 6), (3, 6)], 0),
        ([(4, 6), (4, 6), (3, 6)], 0),
        ([(3, 6), (4, 6), (4, 6)], 0),
        ([(4, 6), (4,)], 1),
        ([(1, 4, 6), (4, 1, 6)], 2),
        ([(4, 6), ()], 0),
    ],
)
def test_the_loops_that_all_have(extents: list[tuple[int, ...]], expected: int) -> None:
    assert shared_loops([scope(*e) for e in extents]) == expected


ROW, COLUMN = Index.iterator(0), Index.iterator(1)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ((ROW, COLUMN), 2),
        ((ROW, COLUMN + 1), 1),
        ((ROW, Index(0)), 1),
        ((COLUMN, ROW), 0),
        ((ROW + 1, COLUMN), 0),
    ],
)
@pytest.mark.parametrize("renamed", [False, True])
def test_a_read_of_another_scope_at_other_positions_ends_what_is_shared(
    at: tuple, expected: int, renamed: bool
) -> None:
    first, other = scope(4, 4), GraphBuilder().input("r", (4, 4))
    value = other if renamed else first.result
    second = scope(4, 4, reads=Source(value), at=at)
    names = {other: first.result} if renamed else {}
    assert shared_loops([first, second], names) == expected
    if renamed:
        assert shared_loops([first, second]) == 2


def test_a_dim_of_one_is_no_loop() -> None:
    first = scope(1, 4)
    second = scope(4, reads=Source(first.result), at=(Index(0), ROW))
    assert shared_loops([first, second]) == 1
