"""Random algebra-level programs: scopes that no graph op makes.

Reads at quasi-affine indices (floors, remainders, negative steps, shifts), guards by ones,
nonzero values outside, all four reductions, bodies of several reads, chains of scopes.
"""

from __future__ import annotations

import random

import numpy as np
from xdsl.dialects.builtin import f32, f64, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.builder import GraphBuilder
from ...dialects.index import Index, normalise
from ...dialects.program import Program
from ...dialects.scalars import Cast, Const, Expr, Read, call
from ...dialects.types import element_of, is_bool, is_float, shape_of, tensor

_REDUCTIONS = ("sum", "sum", "sum", "max", "min", "prod")
_UNARY = ("neg", "abs", "tanh", "sin", "erf")
_BINARY = ("add", "sub", "mul", "max", "min")


def random_scope_program(seed: int, *, scopes: int = 5, most: int = 6) -> Program:
    """Draw a program of `scopes` scopes over inputs and weights, the same for the same seed.

    Extents are at most 6, except one dim of most values, which may have up to `most` positions:
    rows that fill vectors of a target.
    """
    g = _Scopes(seed, most)
    for k in range(g.rng.randint(1, 3)):
        shape, element = g.shape(), g.rng.choice((f32, f32, f32, f64, i64, i32))
        if g.rng.random() < 0.7:
            g.values.append(g.b.input(f"x{k}", shape, element))
        else:
            g.values.append(g.b.weight(f"w{k}", g.array(shape, element)))
    for _ in range(scopes):
        g.values.append(g.scope())
    unread = [v for v in g.values if not v.uses and v.owner is not g.b.block]
    for k, value in enumerate(unread[-4:] or g.values[-1:]):
        g.b.output(f"y{k}", value)
    return g.b.build(source=f"random_scope_program({seed})")


class _Scopes:
    """A growing program of scopes."""

    def __init__(self, seed: int, most: int):
        self.most = most
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.b = GraphBuilder()
        self.values: list[SSAValue] = []

    def shape(self) -> list[int]:
        rank = self.rng.choice((0, 1, 1, 2, 2, 3, 4))
        found = [1 if self.rng.random() < 0.2 else self.rng.randint(2, 6) for _ in range(rank)]
        if found and self.most > 6 and self.rng.random() < 0.7:
            found[self.rng.randrange(rank)] = self.rng.randint(7, self.most)
        return found

    def array(self, shape: list[int], element: Attribute) -> np.ndarray:
        if is_float(element):
            return self.data.normal(size=shape).astype(np.float32 if element == f32 else np.float64)
        return self.data.integers(-3, 4, shape).astype(np.int64 if element == i64 else np.int32)

    def scope(self) -> SSAValue:
        """A scope whose reads all have one element type, or are cast to it."""
        traversal = self.shape()
        sums = [self.rng.choice((1, 2, 3, 4)) for _ in range(self.rng.choice((0, 0, 1, 1, 2)))]
        while np.prod(traversal + sums, dtype=np.int64) > 4000 * self.most // 6:
            traversal[traversal.index(max(traversal))] = 2
        extents = (*traversal, *sums)
        element = element_of(self.rng.choice(self.values))
        if is_bool(element):
            element = f32
        expr = self.body(extents, element)
        reduction = self.rng.choice(_REDUCTIONS)
        if self.rng.random() < 0.08 and not sums:
            expr, element = call("lt", expr, 0.25 if is_float(element) else 1), i1
        return self.b.append(ScopeOp(tensor(traversal, element), expr, sums, reduction))

    def body(self, extents: tuple[int, ...], element: Attribute) -> Expr:
        """One to three reads combined, perhaps guarded, perhaps under a function."""
        expr = self.read(extents, element)
        for _ in range(self.rng.choice((0, 1, 1, 2))):
            function = self.rng.choice((*_BINARY, "mul"))
            expr = call(function, expr, self.read(extents, element))
        if is_float(element) and self.rng.random() < 0.3:
            expr = call(self.rng.choice(_UNARY), expr)
        if self.rng.random() < 0.25:
            number = 0.5 if is_float(element) else 2
            expr = call(self.rng.choice(_BINARY), expr, Const(number))
        return self.guarded(expr, extents, element) if self.rng.random() < 0.3 else expr

    def guarded(self, expr: Expr, extents: tuple[int, ...], element: Attribute) -> Expr:
        """expr * ones[...], or a select on booleans."""
        index = self.index(extents)
        size = self.rng.randint(1, 4)
        if self.rng.random() < 0.5:
            ones = self.b.append(OnesOp(tensor([size], element)))
            return expr * Read(ones, (index,))
        ones = self.b.append(OnesOp(tensor([size], i1)))
        other = Const(0.25 if is_float(element) else 7)
        return call("select", Read(ones, (index,)), expr, other)

    def read(self, extents: tuple[int, ...], element: Attribute) -> Expr:
        source = self.rng.choice(self.values)
        index = tuple(
            self.inside(extents, n) if self.rng.random() < 0.6 else self.index(extents)
            for n in shape_of(source)
        )
        held = element_of(source)
        outside = 0.0
        if not is_bool(held) and self.rng.random() < 0.2:
            outside = self.rng.choice((1.0, -2.0))
        read = Read(source, index, outside)
        return read if held == element else Cast(element, read)

    def inside(self, extents: tuple[int, ...], size: int) -> Index:
        """An index that often stays inside: an iterator of exactly this extent."""
        fitting = [k for k, n in enumerate(extents) if n == size]
        if not fitting:
            return self.index(extents)
        k = self.rng.choice(fitting)
        reverse = self.rng.random() < 0.15
        return size - 1 - Index.iterator(k) if reverse else Index.iterator(k)

    def index(self, extents: tuple[int, ...]) -> Index:
        """A quasi-affine expression of one or two iterators."""
        total = Index(self.rng.choice((0, 0, 0, 1, -1, 2)))
        for _ in range(self.rng.choice((0, 1, 1, 2)) if extents else 0):
            k = self.rng.randrange(len(extents))
            total += Index.iterator(k) * self.rng.choice((1, 1, 1, 2, -1, 3))
        if self.rng.random() < 0.25:
            total = total // self.rng.choice((2, 3, 4))
        elif self.rng.random() < 0.15:
            total = total % self.rng.choice((2, 3, 4))
        return normalise(total, extents)
