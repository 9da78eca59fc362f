"""Choose the form of a kernel op's nest and schedule it."""

from __future__ import annotations

from ...dialects.kernel import KernelOp
from ...dialects.nest import NestOp
from ...dialects.types import tensor_type
from ..algebra_to_kernel.shared_loops import shared_loops
from ..kernel_to_cpu.isa import Isa
from ..kernel_to_cpu.nests.lanes import across_iterator, vector_iterator, widest
from ..kernel_to_cpu.nests.merging import merge_loops
from ..kernel_to_cpu.nests.nest import plan_nest
from .points import points
from .rewrites import drop_single
from .rows import rows
from .rows_across import lanes_across, rows_across
from .transposed import transposed_points


def loops(op: KernelOp, isa: Isa) -> NestOp:
    """The scheduled nest of fused scopes, as points or as rows.

    Points share all loops, one of which runs over lanes. Rows share the outer loops.
    """
    nest = _scheduled(op, isa)
    drop_single(nest.body.block)
    return nest


def _scheduled(op: KernelOp, isa: Isa) -> NestOp:
    pairs = zip(op.body.block.args, op.inputs, strict=True)
    types = {arg: tensor_type(v) for arg, v in pairs}
    plan = plan_nest(op.scopes, shared_loops(op.scopes))
    plan = merge_loops(plan, op.type, types)  # pyright: ignore[reportArgumentType]
    lanes = isa.lanes(widest(op))
    vector = vector_iterator(plan, op)
    if vector is None or any(scope.own for scope in plan.scopes):
        across = lanes_across(plan, op, lanes)
        return (
            rows(op, plan, isa, lanes) if across is None else rows_across(op, plan, across, lanes)
        )
    across = across_iterator(op, plan, vector, lanes)
    if across is None:
        return points(op, plan, vector, isa, lanes)
    return transposed_points(op, plan, vector, across, lanes)
