"""Integers are compared in their own arithmetic: modulo 2^n, and as values where these count."""

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, f32, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, SSAValue

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.canonical_scope import (
    Read,
    add,
    apply,
    bind,
    constant,
    factor,
    leaf,
    multiply,
    numbers,
    reduce,
    scale,
    wrapped,
)
from isoform.dialects.index import iterators
from isoform.dialects.program import Program
from isoform.dialects.types import integer_range, to_numpy
from isoform.dialects.wrapping import bounds, reduced, stays_inside
from isoform.passes.equivalence import compare

UI8 = IntegerType(8, Signedness.UNSIGNED)
Body = Callable[..., SSAValue]
N = 4


def program(element: Attribute, body: Body, count: int = 2) -> Program:
    b = GraphBuilder()
    values = [b.input(name, (N,), element) for name in "xyz"[:count]]
    b.output("r", body(b, *values))
    return b.build()


def literal(b: GraphBuilder, value: int, element: Attribute) -> SSAValue:
    return b.expand(b.constant(np.asarray(value, to_numpy(element))), (N,))


def twice(b: GraphBuilder, x: SSAValue, times: int) -> SSAValue:
    for _ in range(times):
        x = b.add(x, x)
    return x


def whole(b: GraphBuilder, x: SSAValue, element: Attribute) -> SSAValue:
    return b.cast(b.mul(b.cast(x, to=f32), b.expand(b.constant(np.float32(3)), (N,))), to=element)


def cube(b: GraphBuilder, x: SSAValue) -> SSAValue:
    return b.mul(x, b.mul(x, x))


def wide(function: str) -> tuple[Body, Body]:
    """A function in int8, cast to int32, and the same in int32."""
    return (
        lambda b, x, y: b.cast(getattr(b, function)(x, y), to=i32),
        lambda b, x, y: getattr(b, function)(b.cast(x, to=i32), b.cast(y, to=i32)),
    )


EQUAL: dict[str, tuple[Attribute, Body, Body]] = {
    "2^32 x = 0 in i32": (
        i32,
        lambda b, x, y: b.add(twice(b, x, 32), y),
        lambda b, x, y: y,
    ),
    "2^8 x = 0 in i8": (i8, lambda b, x, y: b.add(twice(b, x, 8), y), lambda b, x, y: y),
    "distribution": (
        i8,
        lambda b, x, y: b.mul(x, b.add(x, y)),
        lambda b, x, y: b.add(b.mul(y, x), b.mul(x, x)),
    ),
    "narrowing before or after a sum": (
        i32,
        lambda b, x, y: b.cast(b.add(x, y), to=i8),
        lambda b, x, y: b.add(b.cast(x, to=i8), b.cast(y, to=i8)),
    ),
    "a product in more bits, narrowed again": (
        i16,
        lambda b, x, y: b.cast(b.mul(b.cast(x, to=i64), b.cast(y, to=i64)), to=i16),
        lambda b, x, y: b.mul(x, y),
    ),
    "products that stay inside": (
        i8,
        lambda b, x, y: b.cast(b.mul(b.cast(x, to=i16), b.cast(y, to=i16)), to=i32),
        lambda b, x, y: b.mul(b.cast(x, to=i32), b.cast(y, to=i32)),
    ),
    "a comparison after a neutral change": (
        i8,
        lambda b, x, y: b.less(b.sub(b.add(x, y), y), y),
        lambda b, x, y: b.less(x, y),
    ),
}
NOT_EQUAL: dict[str, tuple[Attribute, Body, Body]] = {
    "a product widened": (i8, *wide("mul")),
    "a sum widened": (i8, *wide("add")),
    "a difference widened": (i16, *wide("sub")),
    "comparing differences": (
        i8,
        lambda b, x, y: b.less(b.sub(x, y), literal(b, 0, i8)),
        lambda b, x, y: b.less(x, y),
    ),
    "halving a sum": (
        i8,
        lambda b, x, y: b.cast(b.div(b.add(x, y), literal(b, 2, i8)), to=i16),
        lambda b, x, y: b.div(b.add(b.cast(x, to=i16), b.cast(y, to=i16)), literal(b, 2, i16)),
    ),
    "a maximum of sums": (
        i8,
        lambda b, x, y: b.max(b.add(x, y), b.add(x, x)),
        lambda b, x, y: b.add(x, b.max(x, y)),
    ),
    "an absolute value widened": (
        i8,
        lambda b, x, y: b.cast(b.abs(x), to=i16),
        lambda b, x, y: b.abs(b.cast(x, to=i16)),
    ),
    "to a float": (
        i16,
        lambda b, x, y: b.cast(b.mul(x, y), to=f32),
        lambda b, x, y: b.mul(b.cast(x, to=f32), b.cast(y, to=f32)),
    ),
    "a product of what was cast from floats": (
        i16,
        lambda b, x, y: b.cast(b.mul(whole(b, x, i16), whole(b, y, i16)), to=i32),
        lambda b, x, y: b.mul(b.cast(whole(b, x, i16), to=i32), b.cast(whole(b, y, i16), to=i32)),
    ),
    "a cube of what was wrapped": (
        i8,
        lambda b, x, y: b.cast(cube(b, b.cast(b.mul(x, y), to=i16)), to=i32),
        lambda b, x, y: cube(b, b.cast(b.cast(b.mul(x, y), to=i16), to=i32)),
    ),
    "by way of fewer bits": (
        i32,
        lambda b, x, y: b.cast(b.cast(x, to=i8), to=i32),
        lambda b, x, y: x,
    ),
    "2^8 x in i16": (i16, lambda b, x, y: b.add(twice(b, x, 8), y), lambda b, x, y: y),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_modulo_two_to_the_n(name: str) -> None:
    element, *bodies = EQUAL[name]
    assert compare(*(program(element, body) for body in bodies)).kind == "equal"


@pytest.mark.parametrize("name", NOT_EQUAL)
def test_what_overflow_tells_apart(name: str) -> None:
    element, *bodies = NOT_EQUAL[name]
    assert not compare(*(program(element, body) for body in bodies)).is_equal


@pytest.mark.parametrize("element", [i8, UI8, i16, i64])
def test_a_number_wrapped_is_what_the_type_holds(element: Attribute) -> None:
    dtype = to_numpy(element)
    for value in (-(2**40) - 3, -129, -128, -1, 0, 1, 127, 128, 255, 256, 2**15, 2**31 + 5):
        held = int(np.asarray(value, np.int64).astype(dtype))
        assert wrapped(constant(value), element, ()).constant == held
        x = factor(Read(leaf("x", (), element), ()), ())
        low, high = integer_range(element)
        assert (wrapped(x, element, ()).token == x.token) and low <= 0 < high


# --- random programs, against numpy's own integers ------------------------------------------------

Tree = tuple[object, ...]
ELEMENTS: dict[str, Attribute] = {"i8": i8, "i16": i16, "i32": i32}


def grown(rng: random.Random, depth: int, name: str) -> Tree:
    """A random expression of a type over two int8 inputs."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.2:
            return ("literal", name, rng.choice((1, 2, 3, 64, 127)))
        return ("cast", name, "i8", ("input", "i8", rng.randrange(2)))
    if rng.random() < 0.3:
        source = rng.choice(list(ELEMENTS))
        return ("cast", name, source, grown(rng, depth - 1, source))
    kind = rng.choice(("add", "sub", "mul", "add", "sub", "mul", "max", "min", "where"))
    parts = [grown(rng, depth - 1, name) for _ in range(4 if kind == "where" else 2)]
    return (kind, name, *parts)


def built(b: GraphBuilder, tree: Tree, inputs: list[SSAValue]) -> SSAValue:
    kind, name, *parts = tree
    element = ELEMENTS[str(name)]
    if kind == "input":
        return inputs[int(str(parts[0]))]
    if kind == "literal":
        return literal(b, int(str(parts[0])), element)
    if kind == "cast":
        value = built(b, parts[1], inputs)  # type: ignore[arg-type]
        return value if parts[0] == name else b.cast(value, to=element)
    values = [built(b, part, inputs) for part in parts]  # type: ignore[arg-type]
    if kind == "where":
        return b.where(b.less(values[0], values[1]), values[2], values[3])
    return getattr(b, str(kind))(*values)


def evaluated(tree: Tree, inputs: list[np.ndarray]) -> np.ndarray:
    """By numpy's arithmetic in the type itself."""
    kind, name, *parts = tree
    dtype = to_numpy(ELEMENTS[str(name)])
    if kind == "input":
        return inputs[int(str(parts[0]))]
    if kind == "literal":
        return np.full(inputs[0].shape, parts[0], dtype)
    if kind == "cast":
        return evaluated(parts[1], inputs).astype(dtype)  # type: ignore[arg-type]
    values = [evaluated(part, inputs) for part in parts]  # type: ignore[arg-type]
    if kind == "where":
        return np.where(values[0] < values[1], values[2], values[3])
    return {
        "add": np.add, "sub": np.subtract, "mul": np.multiply,
        "max": np.maximum, "min": np.minimum,
    }[str(kind)](*values)  # fmt: skip


def rewritten(rng: random.Random, tree: Tree) -> Tree:
    """The same over the integers, not always over those of n bits."""
    kind, name, *parts = tree
    parts = [rewritten(rng, p) if isinstance(p, tuple) else p for p in parts]
    if kind in ("add", "mul", "max", "min") and rng.random() < 0.5:
        parts.reverse()
    if kind == "cast" and rng.random() < 0.5:
        inner = parts[1]
        rings = ("add", "sub", "mul", "max", "min")
        if isinstance(inner, tuple) and inner[0] in rings:
            return (inner[0], name, *(("cast", name, parts[0], p) for p in inner[2:]))
    if kind in ("max", "min") and rng.random() < 0.3:
        a, b = parts
        shifted = (kind, name, ("sub", name, a, b), ("literal", name, 0))
        return ("add", name, shifted, b)
    return (kind, name, *parts)


def pair_of(seed: int) -> tuple[Tree, Tree]:
    rng = random.Random(seed)
    inner = rng.choice(("i8", "i16"))
    first: Tree = ("cast", "i32", inner, grown(rng, rng.choice((1, 2, 2, 3)), inner))
    second = first
    for _ in range(3):
        second = rewritten(rng, second)
    return first, second


@pytest.mark.parametrize("start", [0, pytest.param(100, marks=pytest.mark.slow)])
def test_equal_is_never_said_of_integers_that_differ(start: int) -> None:
    every = np.arange(-128, 128).astype(np.int8)
    inputs = [np.repeat(every, 256), np.tile(every, 256)]  # each pair of values there is
    said = {True: 0, False: 0}
    with np.errstate(over="ignore"):
        for seed in range(start, start + (40 if start == 0 else 400)):
            trees = pair_of(seed)
            same = bool((evaluated(trees[0], inputs) == evaluated(trees[1], inputs)).all())
            programs = [program(i8, lambda b, *v, t=t: built(b, t, list(v))) for t in trees]
            verdict = compare(*programs, budget=5.0)
            assert same or not verdict.is_equal, (seed, trees)
            assert not same or verdict.kind != "different", (seed, trees)
            said[same] += 1
    assert min(said.values()) > 5  # both kinds of pairs were drawn


def test_bounds_hold_the_extremes_of_products_sums_and_choices() -> None:
    """Worked by hand from the ranges of int8 and uint8."""
    signed, unsigned = (
        factor(Read(leaf(n, (N,), e), tuple(iterators(1)), 0.0), (N,))
        for n, e in (("s", i8), ("u", UI8))
    )
    both = multiply(signed, unsigned, (N,))
    for expr, expected in (
        (constant(7), (7, 7)),
        (scale(signed, -2), (-254, 256)),
        (both, (-128 * 255, 127 * 255)),
        (multiply(signed, signed, (N,)), (-127 * 128, 128 * 128)),
        (add(signed, scale(unsigned, -1), constant(1)), (-128 - 255 + 1, 127 + 1)),
        (bind(both, (), (N,)), (-4 * 128 * 255, 4 * 127 * 255)),
        (apply("max", [signed, unsigned], (N,)), (0, 255)),
        (apply("min", [signed, unsigned], (N,)), (-128, 127)),
        (reduce("max", (N,), scale(signed, 3), ()), (-384, 381)),
        (apply("lt", [signed, unsigned], (N,)), (0, 1)),
        (scale(signed, Fraction(1, 2)), None),
        (apply("exp", [signed], (N,)), None),
    ):
        assert bounds(expr, (N,)) == expected, expr.token
    truth = factor(Read(leaf("t", (N,), i1), tuple(iterators(1)), 0.0), (N,))
    assert bounds(truth, (N,)) == bounds(reduce("or", (N,), truth, ()), ()) == (0, 1)
    for data, expected in (([3, 5], (0, 5)), ([-2, 1], (-2, 1)), ([Fraction(1, 2), 1], None)):
        given = numbers([Fraction(v) for v in data], (2,), i8)
        read = factor(Read(given, tuple(iterators(1)), 0.0), (2,))
        assert bounds(read, (2,)) == expected
    assert stays_inside(scale(signed, -1), i16, (N,))
    assert not stays_inside(scale(signed, -1), i8, (N,))
    assert stays_inside(add(signed, constant(0)), i8, (N,))
    assert not stays_inside(add(unsigned, constant(1)), UI8, (N,))


def test_coefficients_are_reduced_where_all_are_whole() -> None:
    x, y = (factor(Read(leaf(n, (N,), i8), tuple(iterators(1)), 0.0), (N,)) for n in "xy")
    found = [t.coefficient for t in reduced(add(scale(x, 300), scale(y, 128)), 8).terms]
    assert sorted(found) == [-128, 44]
    assert reduced(add(scale(x, 256), y), 8).token == y.token
    halves = add(scale(x, 300), scale(y, Fraction(1, 2)))
    assert reduced(halves, 8) is halves
