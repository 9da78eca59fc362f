"""Which chains of conversions are the identity, and which round."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute, Block

import isoform
from isoform.dialects.algebra import ScopeOp
from isoform.dialects.canonical_body import from_op
from isoform.dialects.canonical_casts import converted
from isoform.dialects.canonical_scope import (
    Apply,
    Expr,
    Read,
    Scope,
    add,
    apply,
    factor,
    leaf,
    scope,
)
from isoform.dialects.index import iterators
from isoform.dialects.scalars import call
from isoform.dialects.scope_builder import Source as Operand
from isoform.dialects.types import from_numpy, holds, tensor, tensor_type
from isoform.passes.equivalence import compare

u8 = from_numpy("uint8")


def chain(types: Sequence[Attribute]) -> isoform.Program:
    """An input of the first type, converted to each of the others in turn."""
    build = isoform.GraphBuilder()
    value = build.input("x", (4, 6), types[0])
    for element in types[1:]:
        value = build.cast(value, to=element)
    if len(types) == 1:
        value = build.reshape(build.reshape(value, shape=[24]), shape=[4, 6])
    build.output("y", value)
    assert tensor_type(value).element_type == types[-1]
    return build.build()


@pytest.mark.parametrize(
    "types",
    [
        (f16, f32, f16), (bf16, f32, bf16), (f32, f64, f32), (bf16, f64, f32, bf16),
        (i8, f32, i8), (i8, f16, i8), (i8, bf16, i8), (i8, i32, i8), (i32, f64, i32),
    ],
)  # fmt: skip
def test_to_a_type_that_holds_all_and_back_is_the_identity(types: Sequence[Attribute]) -> None:
    assert compare(chain(types), chain(types[:1])).kind == "equal"


@pytest.mark.parametrize(
    "types",
    [
        (f16, bf16, f16), (bf16, f16, bf16), (f32, f16, f32), (f32, bf16, f32), (f64, f32, f64),
        (i32, f32, i32), (i32, f16, i32), (i64, f64, i64), (i32, i8, i32), (i32, f32, f64, i32),
        (f32, i32, f32),
    ],
)  # fmt: skip
def test_by_way_of_a_type_that_holds_fewer_is_not(types: Sequence[Attribute]) -> None:
    assert not compare(chain(types), chain(types[:1])).is_equal


def test_rounding_twice_is_not_rounding_once() -> None:
    assert not compare(chain((f32, bf16, f16, f32)), chain((f32, bf16, f32))).is_equal
    assert compare(chain((f32, f64, f16, f32)), chain((f32, f16, f32))).kind == "equal"


def test_a_type_holds_another() -> None:
    order = [(f64, f32), (f64, i32), (f32, f16), (f32, bf16), (f32, i8), (bf16, i8), (i32, u8)]
    assert all(holds(wide, narrow) and not holds(narrow, wide) for wide, narrow in order)
    apart = [(f16, bf16), (f32, i32), (f64, i64), (i8, u8)]
    assert not any(holds(a, b) or holds(b, a) for a, b in apart)


def half_product(*, wide: bool, element: Attribute) -> isoform.Program:
    """x times w, in half floats or on float32 and rounded."""
    build = isoform.GraphBuilder()
    x, w = build.input("x", (3, 4), element), build.input("w", (4, 5), element)
    if wide:
        product = build.matmul(build.cast(x, to=f32), build.cast(w, to=f32))
        build.output("y", build.cast(product, to=element))
    else:
        build.output("y", build.matmul(x, w))
    return build.build()


@pytest.mark.parametrize("element", [f16, bf16])
def test_half_arithmetic_in_float32_rounded_once_is_the_same(element: Attribute) -> None:
    narrow, wide = (half_product(wide=w, element=element) for w in (False, True))
    assert compare(narrow, wide).kind == "equal"


def test_a_float32_model_rounded_on_the_way_is_not() -> None:
    build = isoform.GraphBuilder()
    x, w = build.input("x", (3, 4)), build.input("w", (4, 5))
    build.output("y", build.matmul(x, w))
    whole = build.build()
    build = isoform.GraphBuilder()
    x, w = build.input("x", (3, 4)), build.input("w", (4, 5))
    y = build.matmul(build.cast(x, to=f16), build.cast(w, to=f16))
    build.output("y", build.cast(y, to=f32))
    assert compare(whole, build.build()).kind == "different"


@pytest.mark.parametrize("narrow, wide", [(f32, f64), (f16, f32)])
def test_to_a_type_that_holds_all_a_sum_is_not_rounded(narrow: Attribute, wide: Attribute) -> None:
    x, y = (factor(Read(leaf(n, (4,), narrow), tuple(iterators(1)), 0.0), (4,)) for n in "xy")
    assert converted(add(x, y), narrow, wide, (4,)).token == add(x, y).token
    if wide == f64:  # a sum of halves in float32 is the sum in halves, rounded once
        assert converted(add(x, y), wide, narrow, (4,)).token != add(x, y).token


def test_a_scope_of_halves_computed_in_float32_is_one_in_halves() -> None:
    i = tuple(iterators(1))
    x, y = (factor(Read(leaf(n, (4,), f16), i, 0.0), (4,)) for n in "xy")
    wide = factor(Read(scope((4,), f32, add(x, apply("exp", [y], (4,)))), i, 0.0), (4,))
    (read,) = converted(wide, f32, f16, (4,)).terms[0].factors
    assert isinstance(read, Read) and isinstance(read.source, Scope)
    assert read.source.element == f16 and read.source.expr.token == wide_expr(wide).token
    other = factor(Read(leaf("z", (4,), f32), i, 0.0), (4,))
    (kept,) = converted(other, f32, f16, (4,)).terms[0].factors
    assert isinstance(kept, Apply) and kept.function == "cast.f16"


def wide_expr(value: Expr) -> Expr:
    (read,) = value.terms[0].factors
    assert isinstance(read, Read) and isinstance(read.source, Scope)
    return read.source.expr


@pytest.mark.parametrize("function", ["add", "sub", "neg", "max", "min"])
def test_functions_of_truths_are_not_those_of_numbers(function: str) -> None:
    """Sums and differences of booleans are not polynomials; the greatest and least are known."""
    x, y = (leaf(n, (4,), i1) for n in "xy")
    values = Block(arg_types=[tensor((4,), i1)] * 2).args
    reads = [Operand(v)[iterators(1)] for v in values][: 1 if function == "neg" else 2]
    op = ScopeOp(tensor((4,), i1), call(function, *reads), (), "sum")
    made = from_op(op, dict(zip(values, (x, y), strict=True)).__getitem__)
    names = {f.function for t in made.expr.terms for f in t.factors if isinstance(f, Apply)}
    of_truths = {"add": "badd", "sub": "bsub", "neg": "bsub"}  # -x is 0 - x
    assert names == {of_truths.get(function, function)}
