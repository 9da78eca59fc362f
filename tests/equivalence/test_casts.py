"""Which chains of conversions are the identity, and which round."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i8, i32, i64
from xdsl.ir import Attribute

import isoform
from isoform.dialects.canonical_casts import converted
from isoform.dialects.canonical_scope import Read, add, factor, leaf
from isoform.dialects.index import iterators
from isoform.dialects.types import from_numpy, holds, tensor_type
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
