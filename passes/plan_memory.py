"""plan-memory: give every intermediate buffer an offset in one arena."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ..dialects.control import ControlOp
from ..dialects.control_memory import Scratch
from ..dialects.floats import BITS, Floats
from ..dialects.kernel import CallOp, JoinOp, KernelOp, ViewOp, physical
from ..dialects.program import ARENA, main_of
from ..dialects.types import byte_width, tensor_type
from ..lowering.algebra_to_kernel.constant import constant_values

ALIGNMENT = 64
Owner: TypeAlias = "SSAValue | ControlOp"


@dataclass(frozen=True)
class Lifetime:
    """A buffer of `size` bytes, needed from op number `first` to op number `last`.

    It is a value's, or the memory of a loop's or branch's bodies.
    """

    value: Owner
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class PlanMemory(ModulePass):
    """Give every intermediate buffer an offset in one arena; live buffers never overlap.

    The largest buffers are placed first, each in the lowest gap that is free for its whole
    lifetime. Views share their source's buffer. The bodies of a loop or a branch are placed first:
    their memory is a buffer, too. Weights-only values are computed at compile time
    and have no place here. The program's outputs stay live to the end.

    Before:

        %1 = kernel.loops (%0 = %x) { ... } : tensor<4xf32>

    After:

        %1 = kernel.loops (%0 = %x) offset 0 : i64 { ... } : tensor<4xf32>
    """

    name = "plan-memory"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        offsets, total = place(lifetimes(op))
        offsets |= {v: offsets[w] for v, w in buffers(op).items() if w in offsets}
        for kernel in main_of(op).body.block.ops:
            if isinstance(kernel, KernelOp | JoinOp) and kernel.result in offsets:
                kernel.properties["offset"] = IntegerAttr(offsets[kernel.result], i64)
            elif isinstance(kernel, CallOp | ControlOp) and all(
                r in offsets for r in kernel.outputs
            ):
                kept = [IntegerAttr(offsets[r], i64) for r in kernel.outputs]
                kernel.properties["offsets"] = ArrayAttr(kept)
            if isinstance(kernel, ControlOp) and kernel in offsets:
                kernel.scratch = IntegerAttr(offsets[kernel], i64)
        op.attributes[ARENA] = IntegerAttr(total, i64)


def buffer_bytes(value: SSAValue) -> int:
    """Bytes of a value's buffer, halo included, rounded up to the alignment."""
    type_ = tensor_type(value)
    size = physical(type_)[2] * byte_width(type_.element_type)
    return -(-size // ALIGNMENT) * ALIGNMENT


def lifetimes(module: ModuleOp) -> list[Lifetime]:
    """Every buffer that the arena must hold, in order of definition."""
    constants = constant_values(module)
    ops = list(main_of(module).body.block.ops)
    root = buffers(module)
    found: list[Lifetime] = []
    first: dict[SSAValue, int] = {}
    last: dict[SSAValue, int] = {}
    for k, op in enumerate(ops):
        for value in op.operands:
            last[root.get(value, value)] = k
        if isinstance(op, ControlOp) and not all(r in constants for r in op.outputs):
            found.append(Lifetime(op, Scratch.of(op).size, k, k))
        if isinstance(op, KernelOp | CallOp | ControlOp):
            for value in op.results:
                if value not in constants:
                    first.setdefault(root.get(value, value), k)
    for v, k in first.items():
        found.append(Lifetime(v, buffer_bytes(v), k, max(k, last.get(v, k))))
    return found


def buffers(module: ModuleOp) -> dict[SSAValue, SSAValue]:
    """For each value inside another value's buffer, the owner: for views, and parts of a join."""
    ops = list(main_of(module).body.block.ops)
    whole: dict[SSAValue, SSAValue] = {}
    for op in reversed(ops):  # an outer join comes before the joins that are its parts
        if isinstance(op, JoinOp):
            whole |= {part: whole.get(op.result, op.result) for part in op.parts}
    for op in ops:
        if isinstance(op, ViewOp):
            whole[op.result] = whole.get(op.source, op.source)
    return whole


def place(buffers: list[Lifetime]) -> tuple[dict[Owner, int], int]:
    """Offsets and arena size: first fit, by decreasing size."""
    placed: list[tuple[Lifetime, int]] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.first)):
        offset = 0
        clashing = [
            (start, other)
            for other, start in placed
            if other.first <= buffer.last and buffer.first <= other.last
        ]
        for start, other in sorted(clashing, key=lambda entry: entry[0]):
            if offset + buffer.size <= start:
                break
            offset = max(offset, start + other.size)
        placed.append((buffer, offset))
    total = max((start + buffer.size for buffer, start in placed), default=0)
    return {buffer.value: start for buffer, start in placed}, total


def largest_live_set(buffers: list[Lifetime]) -> int:
    """Bytes that are live at once: no plan can need less."""
    steps = {b.first for b in buffers}
    return max((sum(b.size for b in buffers if b.first <= k <= b.last) for k in steps), default=0)
