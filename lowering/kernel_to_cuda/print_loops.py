"""Print `kernel.loops`: fused scopes as one kernel, in one of three shapes.

*Points*: all scopes share all loops, each thread computes one result and keeps intermediates in
registers. *Rows by blocks*: a block has one point of the shared loops; its threads share the loops
within, intermediate rows are in shared memory, and reductions go through shuffles (softmax, layer
norm). *Rows by threads*: the same with one thread for each point, for rows too short to share.

The schedule may say `threads` (of a block) and `rows` (`"block"` or `"thread"`).
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import StringAttr

from ...dialects.kernel import KernelOp
from ...dialects.types import element_of
from ..kernel_to_cpu.nests.nest import ScopePlan
from .nest import Nest, plan, point_number, threads_of
from .print_reads import address, intermediate_type, scope_value
from .print_rows import print_rows
from .print_scalars import Text
from .program_data import CudaKernel
from .reductions import WARP, shuffles
from .writer import described, finish, origin

THREADS = 256
# A row is shared by a block from this many elements on.
SHARED_ROW = 32
# With at least this many results, one thread each keeps the machine busy.
MANY_RESULTS = 1 << 17


def print_loops(op: KernelOp, name: str, in_place: bool = False) -> CudaKernel:
    """The kernel of an op whose scopes are all loops (gemm and conv can be printed so, too).

    Args:
        in_place: whether the result overwrites an operand.

    Raises:
        UserError: rows that every block keeps do not fit shared memory.
    """
    nest = plan(op)
    mode = _mode(nest)
    if mode == "points":
        grid, threads = _points(nest)
    else:
        grid, threads = print_rows(nest, by_block=mode == "block")
    names = [p.name for p in nest.parameters]
    comment = [f"// {origin(op)}", *described(op, names[:-1], names[-1])]
    return finish(nest.writer, name, comment, nest.parameters, grid, threads, restrict=not in_place)


def _mode(nest: Nest) -> str:
    """The shape of the kernel: the schedule's, else chosen by the sizes of rows and sums."""
    plan_ = nest.plan
    extents, rows = plan_.extents, any(scope.own for scope in plan_.scopes)
    own = max(math.prod(extents[k] for k in s.own) for s in plan_.scopes)
    sums = max(math.prod(extents[k] for k in s.sums) for s in plan_.scopes)
    results = math.prod(extents[: plan_.shared])
    able = all(shuffles(element_of(s.op.result)) for s in plan_.scopes if s.sums)
    wanted = None if nest.op.schedule is None else nest.op.schedule.data.get("rows")
    if isinstance(wanted, StringAttr) and (wanted.data != "block" or able):
        return "block" if wanted.data == "block" else "thread" if rows else "points"
    if rows:
        return "block" if able and max(own, sums) >= SHARED_ROW else "thread"
    long = sums >= 2 * WARP and results < MANY_RESULTS and _along_memory(nest)
    return "block" if long and able else "points"


def _along_memory(nest: Nest) -> bool:
    """Whether neighbours in a summation are neighbours in memory, as threads need them."""
    for scope in nest.plan.scopes:
        for operand in scope.reads:
            if operand.source in nest.env.types:
                offset = address(operand.index, nest.env.types[operand.source])
                if any(offset.coefficient(k) == 1 for k in scope.sums):
                    return True
    return False


def _points(nest: Nest) -> tuple[int, int]:
    """One thread per result: (blocks, threads of each)."""
    writer, over = nest.writer, nest.over
    order = nest.ordered([k for k in range(nest.plan.shared) if over.extents[k] != 1])
    count = math.prod(over.extents[k] for k in order)
    threads = threads_of(nest.op, THREADS)
    point_number(writer, over, order, threads)
    for scope in nest.plan.scopes:
        nest.env.values[scope.op.result] = _named_if_reused(nest, scope)
    nest.store(nest.env.values[nest.plan.root.op.result])
    return max(1, -(-count // threads)), threads


def _named_if_reused(nest: Nest, scope: ScopePlan) -> Text:
    """The scope's value at the point, under a name if it is used more than once."""
    value = scope_value(nest.writer, nest.env, scope)
    if len(list(scope.op.result.uses)) <= 1 or value.text.isidentifier():
        return value
    name = nest.writer.names.fresh("value")
    ctype = intermediate_type(scope.op.result)[0]
    nest.writer.line(f"const {ctype} {name} = {value.text};")
    return Text(name)
