"""Choose the form of a kernel op's nest and schedule it."""

from __future__ import annotations

from ...dialects.kernel import KernelOp, LoopsOp
from ...dialects.nest import NestOp
from ...dialects.types import tensor_type
from ..algebra_to_kernel.loops import shared_loops
from ..kernel_to_cpu.isa import Isa
from ..kernel_to_cpu.nests.inlined import inline_rows
from ..kernel_to_cpu.nests.lanes import across_iterator, vector_iterator, widest
from ..kernel_to_cpu.nests.merging import merge_loops
from ..kernel_to_cpu.nests.nest import NestPlan, plan_nest
from ..kernel_to_cpu.nests.rows_across import lanes_across
from ..kernel_to_cpu.nests.rows_held import can_be_held
from .build import Unsupported
from .points import points
from .rewrites import drop_single
from .rows import rows
from .transposed import transposed_points


def loops(op: LoopsOp, isa: Isa) -> NestOp:
    """The scheduled nest of fused scopes: as points or as rows, as loops.py of the CPU has them.

    Raises:
        Unsupported: no nest is built of such scopes yet.
    """
    nest = _scheduled(op, isa)
    drop_single(nest.body.block)
    return nest


def _scheduled(op: LoopsOp, isa: Isa) -> NestOp:
    pairs = zip(op.body.block.args, op.inputs, strict=True)
    types = {arg: tensor_type(v) for arg, v in pairs}
    plan = plan_nest(op.scopes, shared_loops(op.scopes))
    plan = merge_loops(plan, op.type, types)  # pyright: ignore[reportArgumentType]
    if 0 in plan.extents:
        raise Unsupported("empty tensors")
    lanes = isa.lanes(widest(op))
    vector = vector_iterator(plan, op)
    if vector is None or any(scope.own for scope in plan.scopes):
        if lanes_across(plan, op, lanes) is not None or can_be_held(plan, lanes):
            raise Unsupported("rows whose lanes are points, or that stay in registers")
        return rows(op, inline_rows(plan), isa, lanes)
    return point_nest(op, plan, vector, isa, lanes)


def point_nest(op: KernelOp, plan: NestPlan, vector: int, isa: Isa, lanes: int) -> NestOp:
    """The scheduled nest of scopes that share all loops, one of which runs over lanes."""
    across = across_iterator(op, plan, vector, lanes)
    if across is None:
        return points(op, plan, vector, isa, lanes)
    return transposed_points(op, plan, vector, across, lanes)
