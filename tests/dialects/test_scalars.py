"""Scalar expressions as values: equality, sharing, depth, conversion to other processes."""

import math
import pickle

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i1, i32
from xdsl.ir import Block

from isoform.dialects.algebra import ScopeOp
from isoform.dialects.arithmetic import Arithmetic, ScalarEvaluator
from isoform.dialects.errors import UserError
from isoform.dialects.index import iterators
from isoform.dialects.scalars import (
    FUNCTIONS,
    Cast,
    Const,
    Expr,
    Read,
    call,
    element_types,
    map_reads,
    postorder,
    reads_of,
    size,
)
from isoform.dialects.scope_builder import Source
from isoform.dialects.types import tensor

DEPTH = 5000


def a_read(name: str) -> Read:
    return Read(name, (iterators(1)[0],))


def chain(read: Expr, depth: int) -> Expr:
    for k in range(depth):
        read = read * 0.5 + float(k)
    return read


def doubled(read: Expr, levels: int) -> Expr:
    """A tree of 2^levels leaves that is one read."""
    for _ in range(levels):
        read = read + read
    return read


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (Const(0.0), Const(-0.0), False),
        (Const(1), Const(1.0), False),
        (Const(1), Const(True), False),
        (Const(math.nan), Const(math.nan), True),
        (a_read("x") + 1.0, a_read("x") + 1.0, True),
        (a_read("x") + 1.0, a_read("y") + 1.0, False),
        (a_read("x") + 1.0, 1.0 + a_read("x"), False),
        (Cast(f32, a_read("x")), Cast(f32, a_read("x")), True),
        (Cast(f32, a_read("x")), Cast(i32, a_read("x")), False),
        (Cast(f32, a_read("x")), a_read("x"), False),
        (call("exp", a_read("x")), call("log", a_read("x")), False),
        (chain(a_read("x"), DEPTH), chain(a_read("x"), DEPTH), True),
        (chain(a_read("x"), DEPTH), chain(a_read("y"), DEPTH), False),
        (doubled(a_read("x"), 100), doubled(a_read("x"), 100), True),
    ],
    ids=range(14),
)
def test_equality(a: Expr, b: Expr, equal: bool) -> None:
    assert (a == b) is equal
    assert (b == a) is equal
    assert not equal or hash(a) == hash(b)


def test_deep_and_shared_expressions_are_walked_once() -> None:
    deep, shared = chain(a_read("x"), DEPTH), doubled(a_read("x"), 60)
    assert size(deep) == 4 * DEPTH + 1 and size(shared) == 2**61 - 1
    assert len(postorder(shared)) == 61
    assert reads_of(deep) == reads_of(shared) == [a_read("x")]
    assert map_reads(shared, lambda read: a_read("y")) == doubled(a_read("y"), 60)
    types = element_types(shared, lambda read: f32)
    evaluate = ScalarEvaluator(shared, types, f32, Arithmetic.EXACT)
    assert evaluate(lambda read: np.asarray(1.0)) == 2.0**60


def test_deep_bodies_become_regions_and_come_back() -> None:
    x = Source(Block(arg_types=[tensor([3])]).args[0])
    expr = chain(x.here(), DEPTH)
    op = ScopeOp(tensor([3]), expr)
    op.verify()
    assert op.expr() == expr


def test_element_types() -> None:
    x, i = a_read("f"), a_read("i")
    types = {"f": f32, "i": i32}
    expr = call("select", call("lt", i, 3), x * 2.0, Cast(f32, i))
    found = element_types(expr, lambda read: types[read.source])
    assert found[expr] == f32
    assert found[call("lt", i, 3)] == i1
    assert found[Const(3)] is None
    with pytest.raises(UserError, match="operands of 'add' have different element types: f32 and"):
        element_types(x + i, lambda read: types[read.source])


def test_reads_are_in_order_of_first_occurrence() -> None:
    x, y, z = map(a_read, "xyz")
    assert reads_of((y + x) * (z + y)) == [y, x, z]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_check_their_arity(name: str) -> None:
    with pytest.raises(UserError, match="has another number of arguments"):
        call(name, *[a_read("x")] * (FUNCTIONS[name].arity + 1))


def test_unknown_functions_are_refused() -> None:
    with pytest.raises(UserError, match="unknown scalar function 'cbrt'"):
        call("cbrt", a_read("x"))


def test_expressions_survive_pickling() -> None:
    expr = Cast(i32, chain(a_read("x"), 20))
    again = pickle.loads(pickle.dumps(expr))
    assert again == expr and hash(again) == hash(expr)


@pytest.mark.parametrize("function", ["div", "rem"])
def test_whole_numbers_are_divided_as_c_does_and_by_zero_without_a_warning(function: str) -> None:
    a, b = (v.reshape(-1) for v in np.mgrid[-5:6, -3:4])
    expected = [
        0 if y == 0 else int(x / y) if function == "div" else int(math.fmod(x, y))
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    with np.errstate(all="raise"):
        found = FUNCTIONS[function].numpy(a, b)
    np.testing.assert_array_equal(found, expected)
