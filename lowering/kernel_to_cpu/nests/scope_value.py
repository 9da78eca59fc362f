"""Emit the value of one scope at a point, from what it reads there."""

from __future__ import annotations

from ....dialects.types import tensor_type
from ..emit.access import Point, read, rounded
from ..emit.emitter import Emitter
from ..emit.scalar_code import emit_body
from ..emit.types import Value
from .nest import Buffers, NestOperand, ScopePlan, access


def emit_scope(b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point) -> Value:
    """The scope's body at a point, or in the lanes of its vector. The caller reduces."""
    reads = [_argument(b, operand, buffers, point) for operand in scope.reads]
    block = scope.op.body.block
    value = emit_body(b, block, reads, point.lanes, summed=scope.op.is_sum)
    return rounded(b, value, tensor_type(scope.op.result).element_type)


def _argument(b: Emitter, operand: NestOperand, buffers: Buffers, point: Point) -> Value:
    made = buffers.values.get(operand.source)
    if made is not None:
        return made if made.type.lanes == point.lanes else b.broadcast(made, point.lanes)
    return read(b, access(operand, buffers, point.extents), point)
