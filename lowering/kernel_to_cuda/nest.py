"""A kernel about to be printed: its loop nest, and names for everything in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.index import Index
from ...dialects.kernel import KernelOp, physical
from ...dialects.program import where
from ...dialects.types import Tensor, element_of, tensor_type
from ..algebra_to_kernel.shared_loops import shared_loops
from ..kernel_to_cpu.nests.merging import merge_loops
from ..kernel_to_cpu.nests.nest import NestPlan, plan_nest
from .element_types import memory_type, stored
from .print_index import INT_LIMIT, Iterators, decode
from .print_reads import Environment, address, operand_types, without_halo
from .print_scalars import Text
from .program_data import CudaParameter
from .reductions import WARP
from .writer import CudaWriter, Names


@dataclass
class Nest:
    """A kernel about to be printed: its plan, names, types and parameters."""

    op: KernelOp
    plan: NestPlan
    over: Iterators  # iterators
    result_type: Tensor
    parameters: tuple[CudaParameter, ...]
    writer: CudaWriter
    env: Environment  # values that bodies read

    @property
    def target(self) -> Index:
        """The address of the result's element in its buffer."""
        return address(self.plan.root.here, self.result_type)

    def store(self, value: Text) -> None:
        """Write the kernel's result at the current point."""
        element = self.result_type.element_type
        offset = self.over.text(self.target)
        name = self.parameters[-1].name
        self.writer.line(f"{name}[{offset}] = {stored(value.text, element)};")

    def ordered(self, iterators: Sequence[int]) -> list[int]:
        """Iterators from the outermost in the result's memory to the innermost."""
        return sorted(iterators, key=lambda k: -self.target.coefficient(k))


def plan(op: KernelOp) -> Nest:
    """Number and name the iterators, and merge loops that are contiguous in memory."""
    types, result = operand_types(op), without_halo(op.type)
    parameters = parameters_of(op)
    scopes = op.scopes
    first = plan_nest(scopes, shared_loops(scopes))
    names = Names([p.name for p in parameters])
    named = iterator_names(op, first.shared, names)
    merged = merge_loops(first, result, types)
    over = Iterators(_merged_names(first, merged, named, names), merged.extents)
    pointers = {a: p.name for a, p in zip(op.body.block.args, parameters, strict=False)}
    writer = CudaWriter(names, _index_type(merged, over, result, types))
    env = Environment(over, pointers, types)  # pyright: ignore[reportArgumentType]
    return Nest(op, merged, over, result, parameters, writer, env)


def parameters_of(op: KernelOp) -> tuple[CudaParameter, ...]:
    """Operands `x` (or `x0`, `x1`, ...), then the result `y`."""
    count = len(op.inputs)
    names = ["x"] if count == 1 else [f"x{k}" for k in range(count)]
    return tuple(
        parameter(name, value, written=name == "y")
        for name, value in zip([*names, "y"], [*op.inputs, op.result], strict=True)
    )


def parameter(name: str, value: SSAValue, written: bool) -> CudaParameter:
    """The parameter that points to a value's buffer."""
    type_ = tensor_type(value)
    count = physical(type_)[2]
    return CudaParameter(name, memory_type(element_of(value)), count, written)


def iterator_names(op: KernelOp, shared: int, names: Names) -> list[str]:
    """A name for each iterator of `plan_nest`, after the scopes' own: shared ones, then the others
    of each scope."""
    last = op.scopes[-1]
    moving = [k for k, n in enumerate(last.traversal) if n != 1]
    wanted = [last.names[k] for k in moving[:shared]]
    for scope in op.scopes:
        moving = [k for k, n in enumerate(scope.traversal) if n != 1]
        sums = [k for k, n in enumerate(scope.extents) if n != 1 and k >= len(scope.traversal)]
        wanted += [scope.names[k] for k in (*moving[shared:], *sums)]
    return [names.fresh(name) for name in wanted]


def _merged_names(
    before: NestPlan, after: NestPlan, named: Sequence[str], names: Names
) -> tuple[str, ...]:
    """A merged iterator is named after all those it replaces."""
    found = [name if n != 1 else "0" for name, n in zip(named, after.extents, strict=True)]
    parts: dict[int, list[int]] = {}
    for was, now in zip(before.root.here, after.root.here, strict=True):
        for k in sorted(now.iterators):
            parts.setdefault(k, []).extend(sorted(was.iterators))
    for k, old in parts.items():
        if after.extents[k] != before.extents[k] and len(old) > 1:
            joined = [named[j] for j in dict.fromkeys(old)]
            short = all(len(name) == 1 for name in joined)
            found[k] = names.fresh(("" if short else "_").join(joined))
    return tuple(found)


def _index_type(
    plan_: NestPlan, over: Iterators, result: Tensor, types: dict[SSAValue, Tensor]
) -> str:
    """`int`, unless an address or the number of threads may exceed 32 bits."""
    offsets = [address(plan_.root.here, result)]
    for scope in plan_.scopes:
        for operand in scope.reads:
            if operand.source in types:
                offsets.append(address(operand.index, types[operand.source]))
            offsets += operand.index
    count = math.prod(plan_.extents[: plan_.shared])
    fits = all(over.fits_int(offset) for offset in offsets) and count < INT_LIMIT - 1024
    return "int" if fits else "long long"


def threads_of(op: KernelOp, default: int) -> int:
    """Threads of a block: the schedule's, else a default. Raises UserError for invalid numbers."""
    wanted = None if op.schedule is None else op.schedule.data.get("threads")
    if not isinstance(wanted, IntegerAttr):
        return default
    count = wanted.value.data
    if count % WARP or not WARP <= count <= 1024:
        hint = "a multiple of 32 up to 1024"
        raise UserError("a block cannot have so many threads", where=where(op), hint=hint)
    return count


def thread_number(writer: CudaWriter, name: str, threads: int, count: int) -> None:
    """Declare the number of the thread in the grid; threads past `count` return."""
    block = f"({writer.kind})blockIdx.x" if writer.kind != "int" else "blockIdx.x"
    writer.line(f"const {writer.kind} {name} = {block} * {threads} + threadIdx.x;")
    if count % threads:
        writer.line(f"if ({name} >= {count}) return;")


def point_number(writer: CudaWriter, over: Iterators, order: Sequence[int], threads: int) -> None:
    """Give the iterators their values at this thread's point."""
    count = math.prod(over.extents[k] for k in order)
    if len(order) == 1:
        thread_number(writer, over.names[order[0]], threads, count)
        return
    flat = writer.names.fresh("point")
    thread_number(writer, flat, threads, count)
    for text in decode(flat, [(over.names[k], over.extents[k]) for k in order], writer.kind):
        writer.line(text)
