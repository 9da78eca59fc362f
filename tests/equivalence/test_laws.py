"""What is assumed of scalar functions is true of the reference's functions."""

from fractions import Fraction

import numpy as np
import pytest

from isoform.dialects.scalar_laws import (
    COMMUTATIVE,
    NOTHING_AFTER,
    OF_A_SET,
    POINTS,
    simplify_call,
    value_at,
)
from isoform.dialects.scalars import FUNCTIONS
from isoform.passes.equivalence.identities import STATEMENTS, nearest_simple


def numpy_of(function: str):
    return (lambda x: 1 / x) if function == "recip" else FUNCTIONS[function].numpy


@pytest.mark.parametrize("function", POINTS)
def test_values_at_points_are_right(function: str) -> None:
    for point, value in POINTS[function].items():
        assert float(numpy_of(function)(np.float64(point))) == value


@pytest.mark.parametrize("function", sorted(COMMUTATIVE))
def test_commutative_functions_commute(function: str) -> None:
    a, b = np.random.default_rng(0).normal(size=(2, 100))
    np.testing.assert_array_equal(FUNCTIONS[function].numpy(a, b), FUNCTIONS[function].numpy(b, a))


@pytest.mark.parametrize("function", sorted(OF_A_SET))
def test_functions_of_a_set_forget_repetition_and_grouping(function: str) -> None:
    f = FUNCTIONS[function].numpy
    a, b, c = np.random.default_rng(0).normal(size=(3, 100))
    np.testing.assert_array_equal(f(a, a), a)
    np.testing.assert_array_equal(f(f(a, b), c), f(a, f(b, c)))
    np.testing.assert_array_equal(f(f(a, b), a), f(a, b))


@pytest.mark.parametrize("function", [*POINTS, "max", "min", "lt", "le", "eq", "ne"])
def test_values_at_rational_arguments_are_right(function: str) -> None:
    count = 1 if function == "recip" else FUNCTIONS[function].arity
    numbers = [Fraction(n, 4) for n in range(-9, 10)]
    found = 0
    for a in numbers:
        for b in numbers if count == 2 else [a]:
            args = [a, b][:count]
            value = value_at(function, args)
            if value is not None:
                found += 1
                expected = numpy_of(function)(*(np.float64(float(x)) for x in args))
                assert float(value) == pytest.approx(float(expected), abs=0)
    assert found


@pytest.mark.parametrize("function", NOTHING_AFTER)
def test_what_does_nothing_after_another_function_does_nothing(function: str) -> None:
    x = np.abs(np.random.default_rng(0).normal(size=100)) * 3
    for first in NOTHING_AFTER[function]:
        once = FUNCTIONS[first].numpy(x)
        np.testing.assert_array_equal(FUNCTIONS[function].numpy(once), once)


def test_nothing_is_less_than_itself() -> None:
    x = np.array([0.0, 1.0, np.inf, np.nan])
    assert not FUNCTIONS["lt"].numpy(x, x).any()
    assert simplify_call("lt", [("x", None), ("x", None)]) == 0
    assert not isinstance(simplify_call("le", [("x", None), ("x", None)]), Fraction)


def test_whole_division_is_the_reference_s() -> None:
    for a in range(-9, 10):
        for b in (n for n in range(-4, 5) if n != 0):
            for name, function in (("idiv", "div"), ("irem", "rem")):
                expected = FUNCTIONS[function].numpy(np.int64(a), np.int64(b))
                assert value_at(name, [Fraction(a), Fraction(b)]) == int(expected)


def test_every_identity_says_what_it_is() -> None:
    assert all("=" in text or "stands for" in text for text in STATEMENTS.values())


@pytest.mark.parametrize(
    ("literal", "rational", "radicand"),
    [
        (1 / 49, Fraction(1, 49), 1),
        (float(np.float32(1 / 49)), Fraction(1, 49), 1),
        (2.0**0.5, Fraction(1), 2),
        (0.5**0.5, Fraction(1, 2), 2),
        (float(np.float32(0.5**0.5)), Fraction(1, 2), 2),
        (12.0**-0.5, Fraction(1, 6), 3),
    ],
)
def test_rounded_literals_are_recognised(literal: float, rational, radicand: int) -> None:
    assert nearest_simple(Fraction(literal)) == (rational, radicand)
    assert nearest_simple(-Fraction(literal)) == (-rational, radicand)


@pytest.mark.parametrize("literal", [0.5, 3.0, 0.1 + 1e-12, 3.141592653589793, 1e-5 * 1.0001])
def test_other_literals_are_what_they_say(literal: float) -> None:
    assert nearest_simple(Fraction(literal)) is None


def test_few_numbers_drawn_at_random_are_taken_for_simple_ones() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.uniform(0.1, 10.0, 2000)
    wide = sum(nearest_simple(Fraction(float(v))) is not None for v in drawn)
    narrow = sum(nearest_simple(Fraction(float(np.float32(v)))) is not None for v in drawn)
    assert wide == 0
    assert narrow <= 40


def test_functions_of_two_that_commute_are_known_to() -> None:
    """All but sums and products, which are polynomials, and those of bits alone."""
    a, b = np.random.default_rng(0).integers(-6, 6, size=(2, 200)).astype(np.float64)
    found = set[str]()
    for name, function in FUNCTIONS.items():
        if function.arity == 2 and name not in ("and", "or", "xor", "shl", "shr"):
            with np.errstate(all="ignore"):
                one, other = function.numpy(a, b), function.numpy(b, a)
            if np.array_equal(one, other, equal_nan=True):
                found.add(name)
    assert found - {"add", "mul"} == COMMUTATIVE
