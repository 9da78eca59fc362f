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

from ...dialects.dims import is_symbolic
from ...dialects.errors import UserError
from ...dialects.types import (
    Array,
    element_of,
    from_numpy,
    is_bool,
    is_float,
    is_half,
    is_unsigned,
    shape_of,
    to_numpy,
)
from ..graph_node import GraphNode, Number
from .aten import UnsupportedAten

Operand: TypeAlias = "SSAValue | int | float | bool"
Results: TypeAlias = "SSAValue | Sequence[SSAValue | None]"
Converter: TypeAlias = "Callable[..., Results]"


class AtenNode(GraphNode):
    """One ATen call while it is converted."""

    def refusal(self, message: str, **details: Any) -> UserError:
        """The error that leaves the call to torch."""
        return UnsupportedAten(message, **details)

    def cast(self, x: SSAValue, element: Attribute) -> SSAValue:
        """As the base's; unsigned integers stay in torch."""
        if element_of(x) != element and (is_unsigned(element) or is_unsigned(element_of(x))):
            raise UnsupportedAten("unsigned integers are not converted")
        return super().cast(x, element)

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

    def take(self, x: SSAValue, axis: int, positions: Array) -> SSAValue:
        """Elements at constant positions along an axis: a slice where they are evenly spaced."""
        steps = np.diff(positions)
        if not positions.size:
            return self.slice(x, axis, 0, 0)
        if positions.size == 1 or ((steps == steps[0]).all() and steps[0] != 0):
            step = int(steps[0]) if positions.size > 1 else 1
            return self.slice(x, axis, int(positions[0]), positions.size, step)
        return self.op("gather", x, self.data(positions.astype(np.int64)), axis=axis)

    def range(self, size: int, start: int = 0, step: int = 1) -> SSAValue:
        """start, start + step, ... as 64-bit integers; the numbers may be extents."""
        if is_symbolic((size, start, step)):
            return self.op("iota", start=[start], size=[size], step=[step])
        return self.data(start + step * np.arange(size, dtype=np.int64))

    def lower(self, rows: int, columns: int, diagonal: int = 0) -> SSAValue:
        """Whether an element of a matrix is on or below a diagonal."""
        if not is_symbolic((rows, columns, diagonal)):
            return self.data(np.tri(rows, columns, diagonal, dtype=bool))
        shape = [rows, columns]
        row = self.op("broadcast", self.range(rows, diagonal), shape=shape, dims=[0])
        return self.op("greater_equal", row, self.expand(self.range(columns), shape))


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
