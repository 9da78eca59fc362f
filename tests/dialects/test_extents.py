"""Extents: arithmetic against integers, guards, text."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

from isoform.dialects.errors import UndecidedExtent, UserError
from isoform.dialects.extent_math import FloorDivision, bounds_of, solved, symbol, value_at
from isoform.dialects.extent_text import extent_text, is_name, read_extent, read_guard
from isoform.dialects.extents import Extent, ShapeEnv, at_sizes, guard_text

Function = Callable[[Any, Any], Any]
ARITHMETIC: list[Function] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    max,
    min,
]
COMPARISONS: list[Function] = [
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


def texts(env: ShapeEnv) -> list[str]:
    return [guard_text(guard) for guard in env.guards]


def drawn_steps(draw: random.Random) -> list[tuple[Function, int, int | None, int]]:
    """Each a function, the place of its first operand, and that of its second or a number."""
    return [
        (
            draw.choice(ARITHMETIC),
            draw.randrange(2 + k),
            draw.choice([None, draw.randrange(2 + k)]),
            draw.randint(-3, 5),
        )
        for k in range(6)
    ]


def computed(steps: list[tuple[Function, int, int | None, int]], values: list[Any]) -> Any:
    """The last step's result, of extents or of numbers. Raises ZeroDivisionError."""
    found = list(values)
    for function, a, b, number in steps:
        found.append(function(found[a], number if b is None else found[b]))
    return found[-1]


@pytest.mark.parametrize("seed", range(60))
def test_extents_compute_and_compare_as_integers_do(seed: int) -> None:
    """At the example, and at every other size for which the guards hold."""
    draw = random.Random(seed)
    steps, sizes = drawn_steps(draw), {"m": draw.randint(1, 9), "n": draw.randint(1, 9)}
    env = ShapeEnv(dict(sizes))
    try:
        wanted = computed(steps, list(sizes.values()))
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            computed(steps, [env.dim(name) for name in sizes])
        return
    found = computed(steps, [env.dim(name) for name in sizes])
    assert at_sizes([found], sizes) == (wanted,)
    bounds = [(function, draw.randint(-5, 30)) for function in COMPARISONS]
    answers = [function(found, bound) for function, bound in bounds]
    for m in range(10):
        for n in range(10):
            other = {"m": m, "n": n}
            if env.broken(other) is None:
                value = computed(steps, [m, n])
                assert at_sizes([found], other) == (value,)
                assert [function(value, bound) for function, bound in bounds] == answers


@pytest.mark.parametrize("seed", range(40))
def test_floor_division_in_its_one_form_has_the_value_of_integers(seed: int) -> None:
    draw = random.Random(seed)
    a, b = symbol("a"), symbol("b")
    terms: list[Any] = [
        1,
        a,
        b,
        a * b,
        a * a,
        FloorDivision(a + draw.randint(0, 5), draw.randint(1, 5)),
    ]
    over = sympy.expand(sum(draw.randint(-5, 6) * draw.choice(terms) for _ in range(3)))
    by = sympy.sympify(draw.choice([1, 2, 3, 6, 12, a + 1, 2 * a + 2, 4 * b * a + 4 * a + b + 1]))
    quotient = sympy.expand(FloorDivision(over, by))
    assert read_extent(extent_text(quotient)) == quotient
    low, high = bounds_of(quotient, {a: (0, 9), b: (0, 9)})
    for _ in range(10):
        sizes = {"a": draw.randint(0, 9), "b": draw.randint(0, 9)}
        wanted = value_at(over, sizes) // value_at(by, sizes)
        assert value_at(quotient, sizes) == wanted
        assert low <= wanted <= high


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("n", "n"),
        ("1 + 2*n", "2 * n + 1"),
        ("n - 3 + n", "2 * n - 3"),
        ("(n + 1) floordiv 2", "(n + 1) floordiv 2"),
        ("n mod 4", "n - 4 * (n floordiv 4)"),
        ("(4*n + 8) floordiv 4", "n + 2"),
        ("((n floordiv 2) + 1) floordiv 3", "(n + 2) floordiv 6"),
        ("-(-n floordiv 2)", "(n + 1) floordiv 2"),
        ("n * m * n", "m * n * n"),
        ("7", "7"),
    ],
)
def test_the_text_of_an_extent_is_its_one_form(text: str, wanted: str) -> None:
    assert extent_text(read_extent(text)) == wanted
    assert extent_text(read_extent(wanted)) == wanted


@pytest.mark.parametrize("text", ["", "n +", "2n", "n floordiv 0", "n floordiv -2", "n; m", "(n"])
def test_what_is_no_extent_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match="is not an extent"):
        read_extent(text)


@pytest.mark.parametrize(
    ("text", "wanted", "opposite"),
    [
        ("n <= 512", "n <= 512", "n >= 513"),
        ("512 > n", "n <= 511", "n >= 512"),
        ("2 * n == 2 * m", "m == n", "m != n"),
        ("3 * n >= 7", "n >= 3", "n <= 2"),
        ("n mod 4 == 0", "n == 4 * (n floordiv 4)", "n != 4 * (n floordiv 4)"),
    ],
)
def test_the_text_of_a_guard_is_its_one_form(text: str, wanted: str, opposite: str) -> None:
    guard = read_guard(text)
    assert guard_text(guard) == wanted
    assert guard_text(guard.negated()) == opposite
    assert read_guard(wanted) == guard


def test_what_is_no_guard_is_one_line() -> None:
    with pytest.raises(UserError, match="'n' is no guard"):
        read_guard("n")


def test_names_are_one_token() -> None:
    assert is_name("batch_size1")
    assert not any(map(is_name, ("2n", "a-b", "a b", "floordiv", "mod", "")))


def test_what_follows_is_no_guard() -> None:
    env = ShapeEnv({"n": 4, "m": 3})
    n, m = env.dim("n"), env.dim("m")
    assert n >= 0
    assert n + 1 > 0
    assert not n < 0
    assert n + m == m + n
    assert (n * m * 8) // (m * 8) == n
    assert n != 1 << 60
    assert all("m" in text for text in texts(env))  # the division's divisor alone


def test_answers_are_guards_and_decide_what_follows_from_them() -> None:
    env = ShapeEnv({"n": 16})
    n = env.dim("n")
    assert n <= 512
    assert n <= 600
    assert n != 1
    assert n > 4
    assert texts(env) == ["n <= 512", "n != 1", "n >= 5"]


def test_a_bound_decides_no_more_than_it_says() -> None:
    """At the bound itself the next question is another guard."""
    env = ShapeEnv({"n": 7})
    n = env.dim("n")
    for answer in (n >= 5, n <= 9, 2 * n >= 11, n > 6, 3 * n < 26, n != 8):
        assert answer
    assert texts(env) == ["n >= 5", "n <= 9", "n >= 6", "n >= 7", "n <= 8", "n != 8"]


def test_a_number_is_a_guard_and_stands_for_the_symbol_afterwards() -> None:
    env = ShapeEnv({"n": 3, "m": 5})
    n, m = env.dim("n"), env.dim("m")
    assert list(range(n)) == [0, 1, 2]
    assert n * m == 3 * m
    assert texts(env) == ["n == 3"]


def test_a_float_computes_with_the_number() -> None:
    """int(1.5) would give another size without a word."""
    for compute in (lambda n: n * 1.5, lambda n: 1.5 * n, lambda n: n / 4, lambda n: n + 0.5):
        env = ShapeEnv({"n": 6})
        assert compute(env.dim("n")) == compute(6)
        assert texts(env) == ["n == 6"]
    env = ShapeEnv({"n": 6})
    assert env.dim("n") == 6.0
    assert env.dim("n") != 6.5
    assert texts(env) == ["n == 6"]


def test_integers_of_numpy_are_integers() -> None:
    env = ShapeEnv({"n": 6})
    n = env.dim("n")
    assert str(np.int64(3) * n + n * np.int32(2)) == "5 * n"
    assert np.int64(6) == n
    assert texts(env) == ["n == 6"]


def test_guards_say_who_asked() -> None:
    env = ShapeEnv({"n": 3})
    with env.at("/b.0/Reshape"):
        assert env.dim("n") != 0
    with env.at("/b.1/Reshape"):
        assert env.dim("n") != 0
    assert list(env.guards.values()) == ["/b.0/Reshape"]


def test_frozen_guards_decide_or_name_what_is_missing() -> None:
    env = ShapeEnv(guards={read_guard("n <= 8"): ""}, frozen=True)
    n = env.dim("n")
    assert n <= 10
    with pytest.raises(UndecidedExtent, match=r'whether n == 1 .*\(add "n == 1" or its opposite'):
        bool(n == 1)
    with pytest.raises(UndecidedExtent, match="the extent n must be a number here"):
        range(n)


def test_an_extent_has_no_hash() -> None:
    """A set or a dict would compare without a guard."""
    with pytest.raises(TypeError, match="unhashable"):
        hash(ShapeEnv({"n": 1}).dim("n"))
    assert not isinstance(ShapeEnv().dim("n"), int)
    assert isinstance(ShapeEnv().dim("n"), Extent)


def test_what_a_symbol_does_not_change_is_solved() -> None:
    """0 times a symbol is 0, and says nothing of the symbol; verify met it in a T5's guards."""
    product = symbol("a") * symbol("b")
    sizes = {"a": 0}
    assert solved(product, 0, sizes) and sizes == {"a": 0}
    assert not solved(product, 1, sizes)
    assert solved(product, 6, sizes := {"a": 2}) and sizes == {"a": 2, "b": 3}
