"""Choose the form of a kernel op's nest and schedule it."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, i64

from ...dialects.kernel import KernelOp, physical
from ...dialects.nest import NestOp
from ...dialects.program import where
from ...dialects.schedule import Schedule
from ...dialects.types import tensor_type
from ..algebra_to_kernel.shared_loops import shared_loops
from ..kernel_to_cpu.emit.rows_read import RowsRead
from ..kernel_to_cpu.isa import Isa
from ..kernel_to_cpu.nests.lanes import across_iterator, vector_iterator, widest
from ..kernel_to_cpu.nests.merging import merge_loops
from ..kernel_to_cpu.nests.nest import plan_nest
from ..schedule_space import OTHERS, Space
from .forms import Across, Form, Points, Rows, Transposed
from .rewrites import drop_single
from .rows_across import lanes_across


def loops(op: KernelOp, isa: Isa) -> NestOp:
    """The scheduled nest of fused scopes, as points or as rows.

    Points share all loops, one of which runs over lanes. Rows share the outer loops.

    Raises:
        UserError: the op's schedule is invalid.
    """
    form, given = form_of(op, isa), Schedule.on(op, OTHERS)
    # Most ops have no schedule, and making a space takes longer than asking for its default.
    point = form.space().point(given, where(op)) if given.entries else form.default_point()
    nest = form.nest(point)
    drop_single(nest.body.block)
    start = physical(op.type)[1]
    for name, rows in (("rows", RowsRead.of(op)), ("kept", RowsRead.kept(op))):
        if rows:
            numbers = [n for r in rows for n in (r.operand, r.step, r.period, start)]
            nest.properties[name] = DenseArrayBase.from_list(i64, numbers)
    return nest


def loops_space(op: KernelOp, isa: Isa) -> Space:
    """What may vary in a nest of fused scopes."""
    return form_of(op, isa).space()


def form_of(op: KernelOp, isa: Isa) -> Form:
    """The form of a kernel's nest."""
    pairs = zip(op.body.block.args, op.inputs, strict=True)
    types = {arg: tensor_type(v) for arg, v in pairs}
    plan = plan_nest(op.scopes, shared_loops(op.scopes))
    plan = merge_loops(plan, op.type, types)  # pyright: ignore[reportArgumentType]
    lanes = isa.lanes(widest(op))
    vector = vector_iterator(plan, op)
    if vector is None or any(scope.own for scope in plan.scopes):
        across = lanes_across(plan, op, lanes)
        if across is None:
            return Rows(op, plan, isa, lanes)
        return Across(op, plan, isa, lanes, across)
    across = across_iterator(op, plan, vector, lanes)
    if across is None:
        return Points(op, plan, isa, lanes, vector)
    return Transposed(op, plan, isa, lanes, vector, across)
