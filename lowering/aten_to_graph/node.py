"""What a converter is given beside an op's arguments: the builder, the result types, short hands.

A converter is called with the op's own arguments, tensors as SSA values: the defaults of the ATen
schema are the defaults of its parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.types import (
    Array,
    Tensor,
    element_of,
    from_numpy,
    is_bool,
    is_float,
    is_half,
    is_unsigned,
    shape_of,
    to_numpy,
)
from .aten import UnsupportedAten

Number: TypeAlias = "int | float | bool"
Operand: TypeAlias = "SSAValue | int | float | bool"
Results: TypeAlias = "SSAValue | Sequence[SSAValue | None]"
Converter: TypeAlias = "Callable[..., Results]"

# Constants with more elements than this are weights, not literals in the text.
MAX_LITERAL = 16
# Masks and positions made at compile time have at most this many elements.
MAX_CONSTANT = 1 << 22


class AtenNode:
    """One ATen call while it is converted."""

    def __init__(self, build: GraphBuilder, types: Sequence[Tensor | None]) -> None:
        self.build = build
        self.types = types

    @property
    def type(self) -> Tensor:
        """The type of the (first) result. Raises UnsupportedAten if it is no tensor."""
        found = self.types[0] if self.types else None
        if found is None:
            raise UnsupportedAten("the result is no tensor")
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.get_shape()

    @property
    def element(self) -> Attribute:
        return self.type.element_type

    def op(self, name: str, *operands: SSAValue, **properties: Any) -> SSAValue:
        """The graph op of this name."""
        return self.build.op(name, *operands, **properties)

    # --- values ---

    def scalar(self, value: Number, element: Attribute) -> SSAValue:
        """A number as a literal of rank 0."""
        return self.build.constant(np.asarray(value).astype(to_numpy(element)), element)

    def data(self, array: Array) -> SSAValue:
        """A constant: a literal, or a weight if large."""
        if array.size <= MAX_LITERAL:
            return self.build.constant(array)
        if array.size > MAX_CONSTANT:
            raise UnsupportedAten("a constant of the op is too large", found=list(array.shape))
        return self.build.weight(f"constant.{len(self.build.weights)}", array)

    def literal(self, value: Number, like: SSAValue) -> SSAValue:
        """A number of `like`'s element type, broadcast to its shape."""
        return self.expand(self.scalar(value, element_of(like)), shape_of(like))

    def cast(self, x: SSAValue, element: Attribute) -> SSAValue:
        """Convert; no op if nothing changes. Numbers become booleans by comparing with 0."""
        if element_of(x) == element:
            return x
        if is_unsigned(element) or is_unsigned(element_of(x)):
            raise UnsupportedAten("unsigned integers are not converted")
        if is_bool(element):
            return self.op("not", self.op("equal", x, self.literal(0, x)))
        return self.op("cast", x, to=element)

    def value(self, x: Operand, element: Attribute) -> SSAValue:
        """A tensor or number in an element type."""
        return self.cast(x, element) if isinstance(x, SSAValue) else self.scalar(x, element)

    def operands(self, *xs: Operand, element: Attribute | None = None) -> list[SSAValue]:
        """The operands in one element type (the result's), broadcast together."""
        element = self.element if element is None else element
        return self.together(*(self.value(x, element) for x in xs))

    def promoted(self, *xs: Operand) -> list[SSAValue]:
        """The operands in the element type that torch promotes them to, broadcast together."""
        return self.operands(*xs, element=promote(xs))

    # --- shapes ---

    def together(self, *values: SSAValue) -> list[SSAValue]:
        """The values broadcast to one shape."""
        return self.build.broadcast_together(*values)

    def expand(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Broadcast as numpy does; no op if nothing changes."""
        return self.build.expand(x, shape)

    def reshape(self, x: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Reshape; no op if nothing changes."""
        return x if shape_of(x) == tuple(shape) else self.op("reshape", x, shape=list(shape))

    def transpose(self, x: SSAValue, perm: Sequence[int]) -> SSAValue:
        """Transpose; no op if nothing changes."""
        return x if list(perm) == sorted(perm) else self.op("transpose", x, perm=list(perm))

    def slice(self, x: SSAValue, axis: int, start: int, size: int, step: int = 1) -> SSAValue:
        """Elements start, start + step, ... along one axis; no op for all of them."""
        shape = shape_of(x)
        if (start, size, step) == (0, shape[axis], 1):
            return x
        starts, steps = [0] * len(shape), [1] * len(shape)
        starts[axis], steps[axis] = start, step
        sizes = [size if k == axis else n for k, n in enumerate(shape)]
        return self.op("slice", x, starts=starts, sizes=sizes, steps=steps)

    def take(self, x: SSAValue, axis: int, positions: Array) -> SSAValue:
        """Elements at constant positions along an axis: a slice where they are evenly spaced."""
        steps = np.diff(positions)
        if not positions.size:
            return self.slice(x, axis, 0, 0)
        if positions.size == 1 or ((steps == steps[0]).all() and steps[0] != 0):
            step = int(steps[0]) if positions.size > 1 else 1
            return self.slice(x, axis, int(positions[0]), positions.size, step)
        return self.op("gather", x, self.data(positions.astype(np.int64)), axis=axis)


def axis(value: int, rank: int) -> int:
    """A non-negative axis; a scalar has axis 0."""
    return value % max(rank, 1)


def axes(value: int | Sequence[int] | None, rank: int) -> list[int]:
    """Sorted non-negative axes; None and an empty list stand for all."""
    if value is None or value == []:
        return list(range(rank))
    values = [value] if isinstance(value, int) else value
    return sorted({axis(v, rank) for v in values}) if rank else []


def wide(element: Attribute) -> Attribute:
    """The type that compositions compute in: float32 for half floats."""
    return f32 if is_half(element) else element


def composed(function: Callable[..., SSAValue]) -> Converter:
    """A converter of several steps on one float operand: half floats are rounded at the end."""

    def convert(n: AtenNode, x: SSAValue, *args: Any, **kwargs: Any) -> SSAValue:
        if not is_float(n.element):
            raise UnsupportedAten("operands must be floats")
        return n.cast(function(n, n.cast(x, wide(n.element)), *args, **kwargs), n.element)

    return convert


# --- type promotion -----------------------------------------------------------------------------

_FLOATS = ("float16", "bfloat16", "float32", "float64")


def promote(xs: Sequence[Operand]) -> Attribute:
    """The element type torch promotes to: tensors with dims decide, unless another is of a higher
    category (bool, integer, float)."""
    tensors = [x for x in xs if isinstance(x, SSAValue)]
    groups = (
        [element_of(x) for x in tensors if shape_of(x)],
        [element_of(x) for x in tensors if not shape_of(x)],
        [_number_element(x) for x in xs if not isinstance(x, SSAValue)],
    )
    result: Attribute | None = None
    for group in groups:
        found: Attribute | None = None
        for element in group:
            found = element if found is None else _common(found, element)
        if found is not None and (result is None or _category(found) > _category(result)):
            result = found
    assert result is not None
    return result


def _number_element(value: Number) -> Attribute:
    if isinstance(value, bool):
        return from_numpy("bool")
    return i64 if isinstance(value, int) else f32


def _category(element: Attribute) -> int:
    return 2 if is_float(element) else 0 if is_bool(element) else 1


def _common(a: Attribute, b: Attribute) -> Attribute:
    if a == b:
        return a
    if _category(a) != _category(b):
        return a if _category(a) > _category(b) else b
    x, y = to_numpy(a), to_numpy(b)
    if is_half(a) and is_half(b):
        return f32
    if x.itemsize != y.itemsize:
        return a if x.itemsize > y.itemsize else b
    return from_numpy(np.promote_types(x, y))


def count_of(shape: Sequence[int]) -> int:
    """The number of elements."""
    return math.prod(shape)
