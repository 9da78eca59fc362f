"""Emit the value of one scope at a point, from what it reads there."""

from __future__ import annotations

from collections.abc import Sequence

from ....dialects.types import tensor_type
from ..emit.access import Point, compute_type, read, rounded
from ..emit.emitter import Emitter
from ..emit.scalar_code import combine, emit_body, identity
from ..emit.types import Value
from .nest import Buffers, NestOperand, ScopePlan, access


def emit_scope(b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point) -> Value:
    """The scope's value at a point, or in the lanes of its vector: plain loops over `sums`."""
    element = tensor_type(scope.op.result).element_type
    if not scope.sums:
        return rounded(b, _body(b, scope, buffers, point), element)
    start = identity(scope.reduction, compute_type(element).vector(point.lanes))
    return rounded(b, _total(b, scope, buffers, point, scope.sums, start), element)


def _total(
    b: Emitter,
    scope: ScopePlan,
    buffers: Buffers,
    point: Point,
    sums: Sequence[int],
    total: Value,
) -> Value:
    if not sums:
        return combine(b, scope.reduction, total, _body(b, scope, buffers, point))
    with b.fold(0, point.extents[sums[0]], [total]) as loop:
        inner = point.at({sums[0]: loop.index})
        loop.next([_total(b, scope, buffers, inner, sums[1:], loop.values[0])])
    return loop.results[0]


def _body(b: Emitter, scope: ScopePlan, buffers: Buffers, point: Point) -> Value:
    reads = [_argument(b, operand, buffers, point) for operand in scope.reads]
    return emit_body(b, scope.op.body.block, reads, point.lanes, summed=scope.op.is_sum)


def _argument(b: Emitter, operand: NestOperand, buffers: Buffers, point: Point) -> Value:
    made = buffers.values.get(operand.source)
    if made is not None:
        return made if made.type.lanes == point.lanes else b.broadcast(made, point.lanes)
    return read(b, access(operand, buffers, point.extents), point)
