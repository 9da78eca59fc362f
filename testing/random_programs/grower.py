"""The base of the families of random ops: a growing program, and the values to choose from."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, f32, i1, i8, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.graph import ConstantOp, WeightOp
from ...dialects.types import (
    Array,
    Tensor,
    element_of,
    from_numpy,
    is_bool,
    is_float,
    is_signed_int,
    is_unsigned,
    shape_of,
    to_numpy,
)

MOST_ELEMENTS = 600
MAX_RANK = 5
SIGNED: tuple[Attribute, ...] = (i64, i32, i8)
UNSIGNED: tuple[Attribute, ...] = (
    IntegerType(8, Signedness.UNSIGNED),
    IntegerType(32, Signedness.UNSIGNED),
)

Test = Callable[[SSAValue], bool]


def fits(shape: Sequence[int]) -> bool:
    """Whether a tensor of this shape is small enough for a random program."""
    return len(shape) <= MAX_RANK and int(np.prod(shape, dtype=np.int64)) <= MOST_ELEMENTS


def is_arithmetic(value: SSAValue) -> bool:
    """Whether arithmetic ops take the value: floats and signed integers."""
    return is_float(element_of(value)) or is_signed_int(element_of(value))


def of_float(value: SSAValue) -> bool:
    """Whether a value holds floats."""
    return is_float(element_of(value))


def same_type_as(other: SSAValue) -> Test:
    """A test for values of exactly the type of `other`."""
    return lambda value: value.type == other.type


class Grower:
    """A program under construction: the builder, a random generator, the values so far."""

    def __init__(
        self,
        seed: int,
        floats: Sequence[Attribute],
        others: Sequence[Attribute],
        empty: float,
        longest: int = 0,
    ):
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.b = GraphBuilder()
        self.floats = tuple(floats)
        self.others = tuple(others)
        self.empty = empty
        self.longest = longest
        self.values: list[SSAValue] = []
        self.made = 0

    # --- chance ---

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def extent(self, most: int = 7) -> int:
        """A ragged extent: often 1, rarely 0; a long one if rows may be long."""
        if self.chance(self.empty):
            return 0
        if self.longest and self.chance(0.15):
            return self.rng.randint(8, self.longest)
        return 1 if self.chance(0.2) else self.rng.randint(2, most)

    def shape(self, rank: int | None = None, least: int = 0) -> list[int]:
        """A small shape of `rank` (or a random rank, at least `least`)."""
        if rank is None:
            rank = max(least, self.rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5)))
        dims = [self.extent() for _ in range(rank)]
        while not fits(dims):
            k = max(range(rank), key=lambda d: dims[d])
            dims[k] = max(1, dims[k] // 2)
        return dims

    def float_type(self) -> Attribute:
        return self.rng.choice(self.floats)

    def element(self) -> Attribute:
        """Mostly a float type, sometimes an integer or bool."""
        if not self.others or self.chance(0.8):
            return self.float_type()
        return self.rng.choice(self.others)

    # --- values ---

    def array(self, shape: Sequence[int], element: Attribute) -> Array:
        """Data of a weight or constant: normal floats, small integers."""
        dtype = to_numpy(element)
        if is_float(element):
            return np.asarray(self.data.normal(0.0, 0.7, tuple(shape))).astype(dtype)
        if is_bool(element):
            return np.asarray(self.data.integers(0, 2, tuple(shape)) > 0)
        low = 0 if is_unsigned(element) else -4
        return np.asarray(self.data.integers(low, 5, tuple(shape))).astype(dtype)

    def input(self, shape: Sequence[int], element: Attribute, prefix: str = "x") -> SSAValue:
        self.made += 1
        return self.keep(self.b.input(f"{prefix}{self.made}", list(shape), element))

    def weight(self, shape: Sequence[int], element: Attribute) -> SSAValue:
        self.made += 1
        return self.keep(self.b.weight(f"w{self.made}", self.array(shape, element)))

    def literal(self, array: Array) -> SSAValue:
        return self.keep(self.b.constant(array, from_numpy(array.dtype)))

    def keep(self, value: SSAValue) -> SSAValue:
        """Make a value available to later ops."""
        if value not in self.values:
            self.values.append(value)
        return value

    def fresh(self, shape: Sequence[int], element: Attribute) -> SSAValue:
        """A new input, weight or constant."""
        kind = self.rng.random()
        if kind < 0.6:
            return self.input(shape, element)
        if kind < 0.85 or int(np.prod(shape)) > 12:
            return self.weight(shape, element)
        return self.literal(self.array(shape, element))

    def pick(self, test: Test) -> SSAValue | None:
        """An earlier value that passes the test, recent ones more often."""
        found = [v for v in self.values if test(v)]
        if not found:
            return None
        position = max(self.rng.randrange(len(found)), self.rng.randrange(len(found)))
        return found[position]

    def any(self, test: Test = lambda value: True, rank: int | None = None) -> SSAValue:
        """A value that passes the test: an earlier one if there is one, else a fresh float."""
        known = None if self.chance(0.1) else self.pick(lambda v: test(v) and _has(v, rank))
        if known is not None:
            return known
        for element in (self.element(), self.float_type(), *self.others):
            fresh = self.fresh(self.shape(rank), element)
            if test(fresh):
                return fresh
        return self.fresh(self.shape(rank), self.float_type())

    def float(self, rank: int | None = None, least: int = 0) -> SSAValue:
        """A float value of the rank, or of at least rank `least`."""
        rank = (
            self.rng.choice([r for r in (1, 2, 3, 4) if r >= least])
            if least and rank is None
            else rank
        )
        known = self.pick(lambda v: of_float(v) and _has(v, rank) and len(shape_of(v)) >= least)
        if known is not None and self.chance(0.85):
            return known
        return self.fresh(self.shape(rank, least), self.float_type())

    def partner(self, value: SSAValue) -> SSAValue:
        """A second operand of the same type: the value itself, another, or a broadcast."""
        known = self.pick(same_type_as(value))
        if known is not None and self.chance(0.6):
            return known
        shape, element = shape_of(value), element_of(value)
        if not shape or self.chance(0.4):
            return self.fresh(shape, element)
        kept = sorted(self.rng.sample(range(len(shape)), self.rng.randint(0, len(shape))))
        small = [1 if self.chance(0.2) else shape[d] for d in kept]
        source = self.fresh(small, element)
        return self.keep(self.b.broadcast(source, shape=list(shape), dims=kept))

    def constant_like(self, value: SSAValue, number: float) -> SSAValue:
        """The number, broadcast to the value's type."""
        scalar = self.b.constant(
            np.asarray(number).astype(to_numpy(element_of(value))), element_of(value)
        )
        return self.b.broadcast(scalar, shape=list(shape_of(value)), dims=[])

    # --- values in the domain of a function ---

    def bounded(self, x: SSAValue) -> SSAValue:
        """A value in (-1, 1) computed from x."""
        return self.b.tanh(x)

    def positive(self, x: SSAValue, least: float = 0.5) -> SSAValue:
        """|x| + least."""
        return self.b.add(self.b.abs(x), self.constant_like(x, least))


def _has(value: SSAValue, rank: int | None) -> bool:
    return rank is None or len(shape_of(value)) == rank


def is_data(value: SSAValue) -> bool:
    """Whether a value is an input, weight or constant."""
    return not hasattr(value.owner, "operands") or isinstance(value.owner, WeightOp | ConstantOp)


__all__ = [
    "SIGNED",
    "UNSIGNED",
    "Grower",
    "Tensor",
    "f32",
    "fits",
    "i1",
    "is_arithmetic",
    "is_data",
    "of_float",
    "same_type_as",
]
