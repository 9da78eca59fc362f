"""One lane of floats computes what the names of functions and reductions say."""

import math
from fractions import Fraction

import numpy as np
import pytest

from isoform.dialects.errors import UserError
from isoform.dialects.scalars import FUNCTIONS
from isoform.passes.equivalence.float_lane import HUGE, DrawnFloats

LANE = DrawnFloats((0,), seed=4)
X = np.array([[[0.5, -2.0], [3.0, 1.0], [-1.0, 0.25]]])  # lane, operand, place
A, B, C = X[:, 0], X[:, 1], X[:, 2]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("max", [3.0, 1.0]),
        ("min", [-1.0, -2.0]),
        ("prod", [-1.5, -0.5]),
        ("or", [3.0, 1.0]),
        ("raw", [2.5, -0.75]),
    ],
)
def test_a_reduction_is_that_of_its_name(kind: str, expected: list[float]) -> None:
    np.testing.assert_array_equal(LANE.combine(kind, X), [expected])


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        ("recip", (A,), 1 / A),
        ("mul", (A, B, C), A * B * C),
        ("exp", (A,), np.exp(A)),
        ("raw.exp", (A,), np.exp(A)),
        ("max", (A, B, C), np.max(X, axis=1)),
        ("min", (A, B), np.minimum(A, B)),
        ("lt", (A, B), A < B),
        ("cast.i8", (A * 3.3,), np.trunc(A * 3.3)),
        ("cast.ui8", (B * 3.3,), np.trunc(B * 3.3)),
        ("cast.f16", (A * 3.3,), A * 3.3),
        ("idiv", (np.array([[7.0, -7.0]]), np.array([[2.0, 2.0]])), [[3, -3]]),
        ("div", (np.array([[7.0, -7.0]]), np.array([[2.0, 2.0]])), [[3.5, -3.5]]),
        ("irem", (np.array([[7.0, -7.0]]), np.array([[4.0, 4.0]])), [[3, -3]]),
        ("badd", (A, B), A + B),
    ],
)
def test_a_function_is_that_of_its_name(function: str, args: tuple, expected: object) -> None:
    np.testing.assert_array_equal(LANE.apply(function, args), expected)


def test_numbers_are_rationals_in_float64_and_infinities_are_huge() -> None:
    assert LANE.literal(Fraction(1, 3)).tolist() == [1 / 3]
    assert LANE.literal(Fraction(-(10**400))).tolist() == [-HUGE]
    assert LANE.scale(A, Fraction(1)) is A
    np.testing.assert_array_equal(LANE.scale(A, Fraction(3, 2)), A * 1.5)
    assert LANE.symbol("inf").tolist() == [HUGE] and LANE.symbol("-inf").tolist() == [-HUGE]
    assert math.isnan(LANE.symbol("nan")[0])
    assert LANE.reduce(X) is X
    np.testing.assert_array_equal(LANE.matmul(X, X.swapaxes(1, 2)), X @ X.swapaxes(1, 2))


def test_draws_are_one_for_each_name_and_seed() -> None:
    drawn = LANE.draw("x", (3, 4))
    assert drawn.shape == (1, 3, 4)
    np.testing.assert_array_equal(drawn, DrawnFloats((0,), seed=4).draw("x", (3, 4)))
    assert (drawn != LANE.draw("y", (3, 4))).all()
    assert (drawn != DrawnFloats((0,), seed=5).draw("x", (3, 4))).all()


@pytest.mark.parametrize("function", ["no", "raw.no", "ino"])
def test_an_unknown_name_is_an_error(function: str) -> None:
    assert function not in FUNCTIONS
    with pytest.raises(UserError, match=f"no function '{function}'"):
        LANE.apply(function, (A,))
    with pytest.raises(UserError, match="no reduction 'no'"):
        LANE.combine("no", X)
