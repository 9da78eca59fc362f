"""Sizes shrink through scopes that read scopes, and never so far that a difference is lost."""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from math import factorial, prod

import pytest
from support.expressions import field_equal
from xdsl.dialects.builtin import f32

from isoform.dialects.canonical_scope import (
    Expr,
    Read,
    Scope,
    Source,
    add,
    apply,
    bind,
    constant,
    factor,
    leaf,
    multiply,
    scale,
    scope,
)
from isoform.dialects.index import Index
from isoform.passes.equivalence.evaluator import dependency_order
from isoform.passes.equivalence.prove import Prover
from isoform.passes.equivalence.residues import draw_primes
from isoform.passes.equivalence.shrink import Node, _Classes, shrink

N = 9
PRIMES = draw_primes(3, 0)


def read(source: Source, extents: Sequence[int], *at: int) -> Expr:
    index = tuple(Index.iterator(k) for k in at)
    return factor(Read(source, index, 0.0), tuple(extents))


def product(extents: Sequence[int], *parts: Expr) -> Expr:
    return reduce(lambda x, y: multiply(x, y, tuple(extents)), parts)


def vector(name: str) -> Source:
    return leaf(name, (N,), f32)


def dot(*vectors: Source) -> Scope:
    """The sum over positions of the product of vectors, each product a scope of its own."""
    joined = vectors[0]
    for v in vectors[1:]:
        joined = scope((N,), f32, product((N,), read(joined, (N,), 0), read(v, (N,), 0)))
    return scope((), f32, bind(read(joined, (N,), 0), (), (N,)))


def times(*scalars: Scope) -> Scope:
    return reduce(lambda x, y: scope((), f32, product((), read(x, ()), read(y, ()))), scalars)


def called_dot(*vectors: Source) -> Scope:
    """As dot, all products but one a call."""
    parts = [read(v, (N,), 0) for v in vectors]
    called = [apply("mul", parts[:-1], (N,))] if len(parts) > 2 else parts[:-1]
    return scope((), f32, bind(product((N,), *called, parts[-1]), (), (N,)))


def called_times(*scalars: Scope) -> Scope:
    return scope((), f32, apply("mul", [read(x, ()) for x in scalars], ()))


def total(*scalars: tuple[int, Scope]) -> Scope:
    return scope((), f32, add(*(scale(read(x, ()), by) for by, x in scalars)))


def partitions(items: Sequence[Source]) -> Iterator[list[list[Source]]]:
    """All ways to part items into groups."""
    if not items:
        yield []
        return
    for groups in partitions(items[1:]):
        yield [[items[0]], *groups]
        for k, group in enumerate(groups):
            yield [*groups[:k], [items[0], *group], *groups[k + 1 :]]


def all_distinct(
    summed: Callable[..., Scope] = dot, multiplied: Callable[..., Scope] = times
) -> tuple[Scope, Scope]:
    """Two sides whose difference is the sum of u_i v_j x_k y_l z_m, no two of i..m equal.

    That is 0 at sizes below 5. It is a sum over partitions, of products of dots.
    """
    terms = [
        (
            prod((-1) ** (len(group) - 1) * factorial(len(group) - 1) for group in groups),
            multiplied(*(summed(*group) for group in groups)),
        )
        for groups in partitions([vector(name) for name in "uvxyz"])
    ]
    return total(*(t for t in terms if t[0] > 0)), total(*((-n, t) for n, t in terms if n < 0))


def broadcast_sum() -> tuple[Scope, Scope]:
    """The sum over a scope that does not depend on its iterator, and twice the scalar."""
    scalar = leaf("s", (), f32)
    wide = scope((N,), f32, read(scalar, (N,)))
    left = scope((), f32, bind(read(wide, (N,), 0), (), (N,)))
    return left, scope((), f32, scale(read(scalar, ()), 2))


def half_covered() -> tuple[Scope, Scope]:
    """As above, where one of the scope's two terms reads a leaf at the iterator."""
    scalar, x = leaf("s", (), f32), vector("x")
    wide = scope((N,), f32, add(read(scalar, (N,)), read(x, (N,), 0)))
    left = scope((), f32, bind(read(wide, (N,), 0), (), (N,)))
    return left, total((2, scope((), f32, read(scalar, ()))), (1, dot(x)))


def arguments() -> tuple[Scope, Scope]:
    """Distinct positions, in arguments of a function."""
    calls = [scope((), f32, apply("exp", [read(side, ())], ())) for side in all_distinct()]
    return calls[0], calls[1]


def called() -> tuple[Scope, Scope]:
    """Distinct positions, where products are calls."""
    return all_distinct(called_dot, called_times)


DIFFERENT = (all_distinct, broadcast_sum, half_covered, arguments, called)


@pytest.mark.parametrize("pair", DIFFERENT)
def test_a_difference_survives_shrinking(pair: Callable[[], tuple[Scope, Scope]]) -> None:
    a, b = pair()
    first, second, small = shrink(a.expr, b.expr, a.shape)
    assert not field_equal(a, b, PRIMES, 0), "the pair is no trap"
    assert not field_equal(scope(small, f32, first), scope(small, f32, second), PRIMES, 0)
    assert Prover().prove(a, b).equal is not True


def layer(x: Source, w: Source, batch: int) -> Scope:
    """relu(x) w, the relu a scope of its own."""
    shape = (batch, N)
    relu = scope(shape, f32, apply("max", [constant(0), read(x, shape, 0, 1)], shape))
    wide = (batch, N, N)
    return scope(
        shape, f32, bind(product(wide, read(relu, wide, 0, 2), read(w, wide, 2, 1)), shape, (N,))
    )


def sizes(source: Scope) -> set[int]:
    """Extents of all dims of a scope and of what it reads."""
    return {n for node in dependency_order(source) for n in node.shape}


def test_layers_shrink_through_their_scopes() -> None:
    x, u, w = leaf("x", (16, N), f32), leaf("u", (N, N), f32), leaf("w", (N, N), f32)
    a = layer(x, u, 16)
    first, _, small = shrink(a.expr, a.expr, a.shape)
    assert max(sizes(scope(small, f32, first))) <= 4
    deep = layer(a, w, 16)
    _, _, all_of_it = shrink(deep.expr, deep.expr, deep.shape)
    assert all_of_it[0] < 16
    over, _, _ = shrink(deep.expr, deep.expr, deep.shape, cut=frozenset({a.token}))
    assert max(sizes(scope((2, 2), f32, over))) <= 4


def test_a_dim_that_is_indexed_otherwise_anywhere_keeps_its_size() -> None:
    """The scope between reverses the dim."""
    x, y = vector("x"), vector("y")
    reverse = factor(Read(x, (Index.iterator(0) * -1 + (N - 1),), 0.0), (N,))
    turned = scope((N,), f32, reverse)
    out = scope((N,), f32, product((N,), read(turned, (N,), 0), read(y, (N,), 0)))
    assert shrink(out.expr, out.expr, out.shape)[2] == (N,)


def test_thousands_of_scopes_one_after_the_other_are_walked() -> None:
    x = vector("x")
    last: Source = x
    for _ in range(3000):
        last = scope((N,), f32, add(read(last, (N,), 0), read(x, (N,), 0)))
    end = scope((), f32, bind(read(last, (N,), 0), (), (N,)))
    first, _, _ = shrink(end.expr, end.expr, ())
    assert {n for t in first.terms for n in t.sums} == {2}


def test_classes_are_joined_and_their_root_is_found_in_as_many_steps_as_joins() -> None:
    class Parents(dict[Node, Node]):
        left = 200

        def __getitem__(self, key: Node) -> Node:
            self.left -= 1
            assert self.left, "read without end"
            return super().__getitem__(key)

    classes = _Classes(parent=Parents())
    nodes = [("s", k) for k in range(8)]
    for k in range(4):
        classes.join(nodes[k], nodes[k + 1])
    assert len({classes.root(n) for n in nodes[:5]}) == 1
    assert len({classes.root(n) for n in nodes}) == 4
