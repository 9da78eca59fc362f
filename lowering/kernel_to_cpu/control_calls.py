"""Loops and branches as rows of the table: each runs the rows of its body, inside the native call.

A body is lowered as a program whose inputs and outputs lie outside: its arguments are inputs, what
it yields are outputs. Before each iteration the loop writes their addresses into the body's tables
of arguments. So a row of a scanned or stacked tensor is an address, and a carried value is read
from one of two buffers and written to the other. A branch is two loops of at most one iteration.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.control import ControlOp, IfOp, LoopOp
from ...dialects.control_memory import Scratch
from ...dialects.kernel import physical
from ...dialects.types import byte_width, element_count, shape_of, tensor_type
from .emit.module import KernelCode
from .kernel_call import Argument, CallBody, KernelCall
from .runtime.control_ir import NO_LIMIT, NOTHING, LoopPlan


@dataclass(frozen=True)
class Moving:
    """The address of an outside array in iteration i, as entries of the loop's argument table.

    It is that of `first` in iteration 0, unless that is `NOTHING`, then of `even` or `odd`, so
    chosen that the last iteration is an even one. `start` and i times `step` bytes are added.
    """

    first: int
    even: int
    odd: int
    start: int = 0
    step: int = 0

    @staticmethod
    def fixed(entry: int) -> Moving:
        return Moving(entry, entry, entry)


def control_calls(op: ControlOp, bodies: Sequence[CallBody], place: int) -> list[KernelCall]:
    """A call for each body of an op, whose own memory begins at `place` in the arena."""
    if isinstance(op, LoopOp):
        return [_loop(op, bodies[0], place)]
    return [_branch(op, body, k == 1) for k, body in enumerate(bodies)]


def _loop(op: LoopOp, body: CallBody, place: int) -> KernelCall:
    scratch = Scratch.of(op)
    values = [*op.operands, *op.outputs]
    cells = [place + offset for offset in (*scratch.second, scratch.step, scratch.going)]
    entry = {value: k for k, value in enumerate(values)}
    second = range(len(values), len(values) + len(op.carried))
    step, going = len(values) + len(op.carried), len(values) + len(op.carried) + 1

    results = op.outputs[: len(op.carried)]
    before = [
        Moving(entry[a], second[k], entry[b])
        for k, (a, b) in enumerate(zip(op.carried, results, strict=True))
    ]
    after = [Moving(NOTHING, entry[b], second[k]) for k, b in enumerate(results)]
    rows = [*op.scanned, *op.stacked]
    walked = [_row(op, k, value, entry[value]) for k, value in enumerate(rows)]
    inputs = [Moving.fixed(step), *before, *walked[: len(op.scanned)]]
    inputs += [Moving.fixed(entry[value]) for value in op.captured]
    outputs = [Moving.fixed(going)] if op.is_conditional else []
    plan = LoopPlan(
        limit=NO_LIMIT if op.trips is None else op.trips.value.data,
        count=NOTHING if op.count is None else entry[op.count],
        start=NOTHING if op.start is None else entry[op.start],
        going=going if op.is_conditional else NOTHING,
        step=step,
        rows=len(body.calls),
        patches=_patches(body, [*inputs, *outputs, *after, *walked[len(op.scanned) :]]),
        finals=[(*astuple(m), entry[r], bytes_of(r)) for m, r in zip(before, results, strict=True)],
    )
    places = [Argument(arena=cell) for cell in cells]
    return _call(plan, [*map(Argument, values), *places], body)


def _branch(op: IfOp, body: CallBody, negated: bool) -> KernelCall:
    values = [*op.operands, *op.outputs]
    reads = [Moving.fixed(1 + k) for k in range(len(op.captured))]
    writes = [Moving.fixed(1 + len(op.captured) + k) for k in range(len(op.outputs))]
    patches = _patches(body, [*reads, *writes])
    plan = LoopPlan(limit=1, start=0, negated=negated, rows=len(body.calls), patches=patches)
    return _call(plan, [Argument(value) for value in values], body)


def _call(plan: LoopPlan, entries: Sequence[Argument], body: CallBody) -> KernelCall:
    data = Argument(data=np.asarray(plan.words(), np.int64))
    arguments = (data, Argument(), Argument(), *entries)
    return KernelCall(KernelCode("loop", "", 1, len(arguments)), arguments, body)


def _row(op: LoopOp, number: int, value: SSAValue, entry: int) -> Moving:
    """The row of a scanned or stacked tensor."""
    size = bytes_of(value) // max(1, shape_of(value)[0])
    if not op.is_backward(number):
        return Moving(entry, entry, entry, 0, size)
    return Moving(entry, entry, entry, size * (shape_of(value)[0] - 1), -size)


def _patches(body: CallBody, arrays: Sequence[Moving]) -> list[tuple[int, ...]]:
    return [(place, shift, *astuple(arrays[k])) for place, k, shift in body.patches()]


def bytes_of(value: SSAValue) -> int:
    """Bytes of a value's elements, without layout."""
    type_ = tensor_type(value)
    return element_count(type_) * byte_width(type_.element_type)


# --- copies -------------------------------------------------------------------------------------


def copy_code(value: SSAValue) -> KernelCode:
    """The kernel that copies a value of any layout to a row-major buffer."""
    type_ = tensor_type(value)
    width = byte_width(type_.element_type)
    strides, offset, _ = physical(type_)
    shape = type_.get_shape()
    plain = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    work = (
        f"  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 {bytes_of(value)}, i1 false)\n"
        "  ret void\n"
        if list(strides) == plain
        else _strided(shape, plain, strides, width)
    )
    text = _COPY.format(offset=offset * width, work=work)
    symbol = f"k_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    return KernelCode(symbol, text.replace("@KERNEL(", f"@{symbol}("), 1, 2)


_COPY = """declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @KERNEL(ptr %table, i64 %low, i64 %high) {{
  %base = load ptr, ptr %table
  %from = getelementptr i8, ptr %base, i64 {offset}
  %second = getelementptr ptr, ptr %table, i64 1
  %to = load ptr, ptr %second
{work}}}
"""


def _strided(shape: Sequence[int], plain: Sequence[int], strides: Sequence[int], width: int) -> str:
    """One element after another."""
    lines: list[str] = []
    total = "0"
    for k, (extent, unit, stride) in enumerate(zip(shape, plain, strides, strict=True)):
        lines.append(f"  %q{k} = udiv i64 %i, {unit}")
        lines.append(f"  %r{k} = urem i64 %q{k}, {extent}")
        lines.append(f"  %s{k} = mul i64 %r{k}, {stride}")
        lines.append(f"  %t{k} = add i64 {total}, %s{k}")
        total = f"%t{k}"
    kind = f"i{8 * width}"
    return "\n".join(
        [
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %0 ], [ %next, %loop ]",
            *lines,
            f"  %a = getelementptr {kind}, ptr %from, i64 {total}",
            f"  %v = load {kind}, ptr %a, align {width}",
            f"  %b = getelementptr {kind}, ptr %to, i64 %i",
            f"  store {kind} %v, ptr %b, align 1",
            "  %next = add i64 %i, 1",
            f"  %more = icmp ult i64 %next, {math.prod(shape)}",
            "  br i1 %more, label %loop, label %out",
            "out:",
            "  ret void\n",
        ]
    )
