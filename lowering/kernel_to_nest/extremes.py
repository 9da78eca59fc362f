"""Maxima and minima in the lanes of vectors, where an instruction that keeps NaN is three.

The plain maximum, which may lose a NaN, is taken beside a sum of all values. Where that sum is NaN
(or infinities cancelled in it) the maximum is taken again, exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1
from xdsl.ir import Operation, SSAValue

from ...dialects.index import Index
from ...dialects.nest import AccumulateOp, AllocOp, ForOp, LoadOp, StoreOp, WhenOp
from . import rewrites
from .point_sums import loop_path
from .reductions import take_lanes, vectorise_reduction


def vectorise_extreme(top: ForOp, loop: ForOp, lanes: int, chains: int) -> None:
    """Take a maximum or minimum over `loop`, in `top`, in lanes: plainly, and again if need be."""
    taken = loop.block.last_op
    assert isinstance(taken, AccumulateOp)
    kind, total = taken.reduction.data, taken.buffer
    places, at = list(taken.places), taken.indices[0]
    exact = top.clone()
    check = AllocOp(taken.value.type, 1)
    rewrites.insert_before(top, check)
    taken.properties["reduction"] = StringAttr(f"numeric_{kind}")
    rewrites.insert_after(taken, AccumulateOp("sum", taken.value, check.result))
    found = vectorise_reduction(loop, lanes, chains, top)
    made = _any_nan(found.totals[check.result], lanes)
    when = made[-1]
    assert isinstance(when, WhenOp)
    last = found.last
    for op in made:
        rewrites.insert_after(last, op)
        last = op
    when.then.block.add_op(exact)
    again = vectorise_reduction(loop_path(exact)[-1], lanes, 1, exact)  # rare: little code
    wide = again.totals[total]
    rewrites.insert_after(again.last, take_lanes(kind, wide, total, places, at, lanes))
    wide = found.totals[total]
    plain = take_lanes(f"numeric_{kind}", wide, total, places, at, lanes)
    when.otherwise.block.add_op(plain)


def _any_nan(sums: SSAValue, lanes: int) -> Sequence[Operation]:
    """Whether some lane of a vector is NaN, and a branch on it."""
    found = AllocOp(i1, 1)
    no = arith.ConstantOp(IntegerAttr(0, i1))
    lane = ForOp(lanes, "vector", lanes)
    read = LoadOp(sums, [lane.iterator], Index.iterator(0))
    nan = arith.CmpfOp(read.result, read.result, "une")
    lane.block.add_ops([read, nan, AccumulateOp("or", nan.result, found.result)])
    held = LoadOp(found.result, [], Index(0))
    start = StoreOp(no.result, found.result, [], Index(0))
    return [found, no, start, lane, held, WhenOp(held.result)]
