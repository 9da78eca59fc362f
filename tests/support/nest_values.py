"""Run a nest in Python, place by place: what its printers and rewrites are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from isoform.dialects import nest
from isoform.dialects.index import Index
from isoform.dialects.scalars import FUNCTIONS, function_of

IDENTITIES = {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf, "or": False}
COMBINE: dict[str, Any] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "numeric_max": np.fmax,
    "numeric_min": np.fmin,
    "or": np.logical_or,
}


def run_nest(kernel: nest.NestOp, operands: Sequence[np.ndarray], result: np.ndarray) -> None:
    """Run a kernel on flat buffers of float64; what a local buffer holds at first is NaN."""
    run = _Run()
    run.buffers |= dict(zip(kernel.body.block.args, [*operands, result], strict=True))
    with np.errstate(all="ignore"):
        run.block(kernel.body.block)


class _Run:
    def __init__(self) -> None:
        self.buffers: dict[SSAValue, np.ndarray] = {}
        self.values: dict[SSAValue, Any] = {}
        self.at: dict[SSAValue, int] = {}

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.op(op)

    def op(self, op: Operation) -> None:
        match op:
            case nest.ForOp():
                self.loop(op)
            case nest.LoadOp():
                inside = self.holds(op)
                value = self.buffers[op.buffer][self.place(op)] if inside else op.outside.value.data
                self.values[op.result] = value
            case nest.InsideOp():
                self.values[op.result] = float(self.holds(op))
            case nest.StoreOp():
                self.buffers[op.buffer][self.place(op)] = self.values[op.value]
            case nest.AccumulateOp():
                buffer, place = self.buffers[op.buffer], self.place(op)
                combine = COMBINE[op.reduction.data]
                buffer[place] = combine(buffer[place], self.values[op.value])
            case nest.AllocOp():
                assert isinstance(op.result.type, MemRefType)
                self.buffers[op.result] = np.full(op.result.type.get_shape(), np.nan)
            case nest.IfOp():
                self.block((op.then if self.holds(op) else op.otherwise).block)
            case nest.WhenOp():
                self.block((op.then if self.values[op.condition] else op.otherwise).block)
            case nest.IdentityOp():
                kind = op.reduction.data.removeprefix("numeric_")
                self.values[op.result] = IDENTITIES[kind]
            case nest.TransposeOp():
                shape = op.rows.value.data, op.columns.value.data
                buffer = self.buffers[op.buffer]
                buffer[...] = buffer.reshape(shape).T.ravel()
            case nest.PrefetchOp():
                pass
            case arith.ConstantOp():
                self.values[op.result] = op.value.value.data  # pyright: ignore
            case arith.CmpfOp():
                x, y = (self.values[v] for v in op.operands)
                self.values[op.result] = x != y if op.predicate.value.data == 13 else x < y
            case _:
                name, args = function_of(op), [self.values[v] for v in op.operands]
                # Every other op is a cast: whole numbers and floats are floats here.
                self.values[op.results[0]] = FUNCTIONS[name].numpy(*args) if name else args[0]

    def loop(self, op: nest.ForOp) -> None:
        lowers, uppers = op.bounds
        low = max([0, *(self.value(e, op) for e in lowers)])
        high = min([op.size, *(self.value(e, op) for e in uppers)])
        for place in range(low, high):
            self.at[op.iterator] = place
            self.block(op.block)

    def value(self, index: Index, op: nest.PlacedOp) -> int:
        return int(index.evaluate([self.at[p] for p in op.places]))

    def holds(self, op: nest.AccessOp | nest.IfOp) -> bool:
        return all(0 <= self.value(e, op) < n for e, n in op.guards)

    def place(self, op: nest.AccessOp) -> int:
        place = self.value(op.indices[0], op)
        assert place >= 0, op
        return place
