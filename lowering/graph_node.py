"""What a converter of another dialect's op is given: the builder, the result types, short hands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from ..dialects.builder import GraphBuilder
from ..dialects.errors import UserError
from ..dialects.graph import OpaqueOp
from ..dialects.types import (
    Array,
    Tensor,
    dims_of,
    element_of,
    is_bool,
    is_half,
    is_unsigned,
    shape_of,
    tensor,
    to_numpy,
)

Number: TypeAlias = "int | float | bool"

# Constants with more elements than this are weights, not literals in the text.
MAX_LITERAL = 16
# Masks and positions made at compile time have at most this many elements.
MAX_CONSTANT = 1 << 22
# The ONNX version of nodes that `graph.opaque` keeps.
OPSET = 26


class GraphNode:
    """One op of another dialect while it is converted."""

    def __init__(self, build: GraphBuilder, types: Sequence[Tensor | None]) -> None:
        self.build = build
        self.types = types

    def refusal(self, message: str, **details: Any) -> UserError:
        """The error of an op that has no form in the graph dialect."""
        return UserError(message, **details)

    @property
    def type(self) -> Tensor:
        """The type of the (first) result. Raises UserError if it is no tensor."""
        found = self.types[0] if self.types else None
        if found is None:
            raise self.refusal("the result is no tensor")
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        return dims_of(self.type)

    @property
    def element(self) -> Attribute:
        return self.type.element_type

    def op(self, name: str, *operands: SSAValue, **properties: Any) -> SSAValue:
        """The graph op of this name."""
        return self.build.op(name, *operands, **properties)

    def onnx(
        self, op_type: str, operands: Sequence[SSAValue], types: Sequence[Tensor], **attributes: Any
    ) -> list[SSAValue]:
        """An ONNX node, which loop nests run."""
        inputs, outputs = ([f"{v}{k}" for k in range(n)] for v, n in
                           (("x", len(operands)), ("y", len(types))))  # fmt: skip
        node = onnx.helper.make_node(op_type, inputs, outputs, **attributes)
        op = OpaqueOp(op_type, operands, node.SerializeToString(), [f"={OPSET}"], types)
        self.build.append(op)
        return list(op.results)

    # --- values ---

    def scalar(self, value: Number, element: Attribute) -> SSAValue:
        """A number as a literal of rank 0."""
        return self.build.constant(np.asarray(value).astype(to_numpy(element)), element)

    def data(self, array: Array) -> SSAValue:
        """A constant: a literal, or a weight if large."""
        if array.size <= MAX_LITERAL:
            return self.build.constant(array)
        if array.size > MAX_CONSTANT:
            raise self.refusal("a constant of the op is too large", found=list(array.shape))
        return self.build.weight(f"constant.{len(self.build.weights)}", array)

    def literal(self, value: Number, like: SSAValue) -> SSAValue:
        """A number of `like`'s element type, broadcast to its shape."""
        return self.expand(self.scalar(value, element_of(like)), shape_of(like))

    def cast(self, x: SSAValue, element: Attribute) -> SSAValue:
        """Convert; no op if nothing changes. Numbers become booleans by comparing with 0."""
        if element_of(x) == element:
            return x
        if is_bool(element):
            return self.op("not", self.op("equal", x, self.literal(0, x)))
        return self.op("cast", x, to=element)

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

    # --- orders ---

    def ranked(
        self, x: SSAValue, axis: int, count: int, falling: bool
    ) -> tuple[SSAValue, SSAValue]:
        """So many elements in order, and their positions, stable; NaN is the greatest."""
        element, shape = element_of(x), list(shape_of(x))
        shape[axis] = count
        if 0 in shape:
            empty = self.expand(self.scalar(0, i64), shape)
            return self.expand(self.scalar(0, element), shape), empty
        wide: Attribute = f32 if is_half(element) else element
        if is_bool(element):
            wide = i32
        elif is_unsigned(element):
            wide = i64
        number = self.build.constant(np.array([count], np.int64))
        types = [tensor(shape, wide), tensor(shape, i64)]
        how = {"axis": axis, "largest": int(falling), "sorted": 1}
        found, places = self.onnx("TopK", [self.cast(x, wide), number], types, **how)
        return self.cast(found, element), places
