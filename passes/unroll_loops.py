"""unroll-loops: write the iterations of a loop whose number is known one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.builder import GraphBuilder
from ..dialects.control import IfOp, LoopOp, YieldOp
from ..dialects.floats import BITS, Floats
from ..dialects.program import main_of
from ..dialects.types import shape_of

# The most ops that one loop becomes.
MOST = 4096


@dataclass(frozen=True)
class UnrollLoops(ModulePass):
    """Replace each loop of a known number of iterations by its iterations.

    A loop that data may end stays, as does one that would become more than `most` ops.

    Before:

        %y = control.loop carry(%x : tensor<4xf32>) attributes {trips = 2 : i64} -> tensor<4xf32> {
        ^bb0(%i: tensor<i64>, %h: tensor<4xf32>):
          %t = graph.tanh %h : tensor<4xf32>
          control.yield %t : tensor<4xf32>
        }

    After:

        %t = graph.tanh %x : tensor<4xf32>
        %y = graph.tanh %t : tensor<4xf32>
    """

    name = "unroll-loops"
    floats: ClassVar[Floats] = BITS
    most: int = MOST

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Unroll inner loops first."""
        unroll(main_of(op).body.block, self.most)


def unroll(block: Block, most: int = MOST) -> bool:
    """Unroll the loops of a block and of bodies in it; returns whether there was one."""
    found = False
    for op in list(block.ops):
        if not isinstance(op, LoopOp | IfOp):
            continue
        for body in op.bodies:
            found |= unroll(body.block, most)
        if isinstance(op, LoopOp) and _fits(op, most):
            _replace(op)
            found = True
    return found


def _fits(op: LoopOp, most: int) -> bool:
    decided = op.count is not None or op.start is not None or op.is_conditional
    if decided or op.trips is None:
        return False
    trips = op.trips.value.data
    size = len(list(op.body.block.walk())) + 2 * (len(op.scanned) + len(op.stacked)) + 1
    return trips * size <= most and (trips > 0 or not op.stacked)


def _replace(op: LoopOp) -> None:
    assert op.trips is not None
    carried: list[SSAValue] = list(op.carried)
    rows: list[list[SSAValue]] = [[] for _ in op.stacked]
    trips = op.trips.value.data
    build = GraphBuilder()
    for step in range(trips):
        number = build.constant(np.asarray(step, np.int64), i64)
        lines = [
            _row(build, v, trips - 1 - step if op.is_backward(k) else step)
            for k, v in enumerate(op.scanned)
        ]
        results = _iteration(op, build, [number, *carried, *lines, *op.captured])
        carried = results[: len(carried)]
        for column, row in zip(rows, results[len(carried) :], strict=True):
            column.append(row)
    first = len(op.scanned)
    stacked = [
        _stack(build, column[::-1] if op.is_backward(first + k) else column)
        for k, column in enumerate(rows)
    ]
    made = list(build.block.ops)
    for new in made:
        new.detach()
    Rewriter.insert_op(made, InsertPoint.before(op))
    for result, value in zip(op.outputs, [*carried, *stacked], strict=True):
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def _iteration(op: LoopOp, build: GraphBuilder, arguments: list[SSAValue]) -> list[SSAValue]:
    """The body's ops on these values of its arguments; what it yields."""
    block = op.body.block
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for inner in block.ops:
        if isinstance(inner, YieldOp):
            return [values.get(v, v) for v in inner.values]
        copy = inner.clone(values)
        build.block.add_op(copy)
        values.update(zip(inner.results, copy.results, strict=True))
    raise AssertionError("a body ends with control.yield")


def _row(build: GraphBuilder, x: SSAValue, place: int) -> SSAValue:
    shape = shape_of(x)
    zeros = [0] * (len(shape) - 1)
    part = build.slice(x, starts=[place, *zeros], sizes=[1, *shape[1:]], steps=[1] * len(shape))
    return build.reshape(part, shape=list(shape[1:]))


def _stack(build: GraphBuilder, rows: list[SSAValue]) -> SSAValue:
    parts = [build.reshape(v, shape=[1, *shape_of(v)]) for v in rows]
    return parts[0] if len(parts) == 1 else build.concat(*parts, axis=0)
