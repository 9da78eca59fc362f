"""How far constants may lie apart, and how a weight lies in what is made of it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from isoform.dialects.canonical_scope import Read, leaf
from isoform.dialects.index import Index, iterators
from isoform.passes.equivalence import constant_alignment, folded_constants, recognised_weights

ROW, COLUMN, THIRD = iterators(3)
W = leaf("W", (3, 4), f32)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ((ROW, COLUMN), [0, 1]),
        ((COLUMN + 1, ROW), None),
        ((ROW, ROW), None),
        ((ROW, Index(0)), None),
        ((ROW * 2, COLUMN), None),
        ((ROW + COLUMN, COLUMN), None),
        ((ROW, THIRD), None),
    ],
)
def test_a_weight_is_plain_where_each_dim_has_an_axis_of_its_own(
    index: tuple[Index, ...], expected: list[int] | None
) -> None:
    made: Any = SimpleNamespace(factors=[Read(W, index, 0.0)], axes=[0, 1], wide=(3, 4, 4))
    found = constant_alignment._plain(made)
    assert found == (None if expected is None else (W, expected))


def test_a_weight_is_plain_if_it_is_turned_or_has_dims_of_one_and_not_beside_another() -> None:
    turned: Any = SimpleNamespace(factors=[Read(W, (COLUMN, ROW), 0.0)], axes=[0, 1], wide=(4, 3))
    assert constant_alignment._plain(turned) == (W, [1, 0])
    thin = leaf("T", (1, 4), f32)
    made: Any = SimpleNamespace(
        factors=[Read(thin, (Index(0), COLUMN), 0.0)], axes=[1], wide=(3, 4)
    )
    assert constant_alignment._plain(made) == (thin, [None, 0])
    for factors in ([], [Read(W, (ROW, COLUMN), 0.0)] * 2, [Read(W, (ROW, COLUMN), float("inf"))]):
        made = SimpleNamespace(factors=factors, axes=[0, 1], wide=(3, 4))
        assert constant_alignment._plain(made) is None


def test_what_nothing_explains_is_left_in_the_second_program_else_in_the_first() -> None:
    def left(mine: dict[str, str], theirs: dict[str, str], *explained: str) -> Any:
        state: Any = SimpleNamespace(constants={}, doubtful={}, explained={*explained})
        return constant_alignment.ConstantAligner.left(state, mine, theirs)

    mine, theirs = {"w": "tw"}, {"v": "tv"}
    assert left(mine, theirs) == left({}, theirs) == {"v": None}
    assert left(mine, {}) == left(mine, theirs, "tv") == {"w": None}
    assert left(mine, theirs, "tw", "tv") == {}


@pytest.mark.parametrize(("apart", "known"), [(0.0, True), (8.0, True), (8.5, False)])
def test_a_weight_is_a_value_up_to_eight_units(apart: float, known: bool) -> None:
    array = np.ones((3, 4), np.float32)
    near = [(0, ((12, 1),), np.array([0.0, apart]))]
    values: Any = SimpleNamespace(_near=lambda *_: near, sources={0: W})
    found = recognised_weights.ConstantValues.find(values, array, W)
    assert found == ((W, apart) if known else None)


def test_units_past_the_largest_number_are_those_of_a_quarter() -> None:
    def apart(one: float, other: float) -> float:
        parts = [[np.array([one])], [np.array([other])]]
        group: Any = SimpleNamespace(parts=parts, tokens={"t"})
        return float(folded_constants.distances(group, np.dtype(np.float32))[0])

    assert apart(1.0, 1.0 + 2.0**-23) == 1.0
    assert apart(0.0, 0.0) == 0.0
    assert apart(2.0**128, 2.0**128 + 2.0**105) == 1.0


def test_one_number_and_numbers_that_are_none_are_not_recognised() -> None:
    def near(*numbers: float) -> list[Any]:
        array = np.array(numbers, np.float32)
        like = leaf("L", array.shape, f32)
        state: Any = SimpleNamespace(
            by_size={(array.size, f32): ["v"]},
            exact={"v": array.astype(np.float64)},
            _distances=lambda *_: "apart",
        )
        return list(recognised_weights.ConstantValues._near(state, array, like, 1e-3))

    assert near(1.0, 2.0) == [("v", ((2, 1),), "apart")]
    assert near(1.0) == near(1.0, np.inf) == near(np.nan, 1.0) == []
