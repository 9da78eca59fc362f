"""Print the value of one scope at a point: reads with their guards, the body, its summations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.index import Index, range_of, row_major_strides
from ...dialects.kernel import KernelOp, LayoutAttr, layout_of, physical, with_layout
from ...dialects.types import Tensor, element_of, is_bool, shape_of, tensor_type
from ..kernel_to_cpu.nests.nest import NestOperand, ScopePlan, guards_of
from .element_types import compute_type, literal, loaded
from .print_index import Iterators
from .print_scalars import AND, CHOICE, OR, Body, Text, accumulate, identity, print_body, rounded
from .writer import CudaWriter

# A window of this many taps or fewer is unrolled.
UNROLLED = 9


def without_halo(type_: Tensor) -> Tensor:
    """The same buffer with its zero halo as room: CUDA kernels neither write nor read the halo.

    A comparison decides whether a read is outside, which is cheaper on a GPU than zeroing.
    """
    layout = layout_of(type_)
    before = [a + b for (a, _), (b, _) in zip(layout.halo, layout.room, strict=True)]
    after = [a + b for (_, a), (_, b) in zip(layout.halo, layout.room, strict=True)]
    if not any((*before, *after)):
        return type_
    return with_layout(type_, LayoutAttr.of(layout.dims, before=before, after=after))


def operand_types(op: KernelOp) -> dict[SSAValue, Tensor]:
    """The physical type of the value behind each region argument."""
    pairs = zip(op.body.block.args, op.inputs, strict=True)
    return {arg: without_halo(tensor_type(value)) for arg, value in pairs}


def address(index: Sequence[Index], type_: Tensor) -> Index:
    """The address of an element in its buffer."""
    strides, offset, _ = physical(type_)
    return sum((e * s for e, s in zip(index, strides, strict=True)), Index(offset))


@dataclass(frozen=True)
class StagedRow:
    """An array of intermediate values, indexed by its scope's own iterators."""

    name: str
    scope: ScopePlan


@dataclass
class Environment:
    """The values that a body can read: operands, finished scalars, rows, recomputed scopes."""

    over: Iterators  # iterators of the kernel
    pointers: Mapping[SSAValue, str]  # names of the operands
    types: Mapping[SSAValue, Tensor]
    values: dict[SSAValue, Text] = field(default_factory=dict[SSAValue, Text])  # finished scalars
    rows: dict[SSAValue, StagedRow] = field(default_factory=dict[SSAValue, StagedRow])
    inlined: dict[SSAValue, ScopePlan] = field(default_factory=dict[SSAValue, ScopePlan])


Guards = Sequence[tuple[Index, int]]


def guard_text(guards: Guards, over: Iterators) -> str:
    """The conditions under which a read is inside, joined by `&&`; only those that can fail."""
    return " && ".join(
        dict.fromkeys(part for index, size in guards for part in _bounds(index, size, over))
    )


def _bounds(index: Index, size: int, over: Iterators) -> list[str]:
    low, high = range_of(index, over.extents)
    if size == 1 and (low < 0 or high > 0):
        return [f"{over.text(index)} == 0"]
    moving = over.text(index - index.constant)
    parts = [f"{moving} >= {-index.constant}"] if low < 0 else []
    return [*parts, *([f"{moving} < {size - index.constant}"] if high >= size else [])]


def read_text(writer: CudaWriter, env: Environment, operand: NestOperand) -> Text:
    """The value of a read, in the compute type."""
    source = operand.source
    if source in env.values:
        return env.values[source]
    if source in env.inlined:
        return _inline(writer, env, operand)
    if isinstance(source.owner, OnesOp):
        return _ones(env, operand)
    if source in env.rows:
        name, index, guards = _row_offset(env, operand)
        value, element = f"{name}[{env.over.text(index)}]", element_of(source)
    else:
        type_ = env.types[source]
        guards = _guards(operand, type_, env.over)
        offset = env.over.text(address(operand.index, type_))
        element = type_.element_type
        value = loaded(f"{env.pointers[source]}[{offset}]", element)
    return _guarded(writer, Text(value), guards, operand, element, env.over)


def _guards(operand: NestOperand, type_: Tensor, over: Iterators) -> Guards:
    shape = type_.get_shape()
    if operand.checked is not None:
        return [(operand.index[d], shape[d]) for d in operand.checked]
    return guards_of(operand.index, shape, over.extents, None, operand.outside)


def _guarded(
    writer: CudaWriter,
    value: Text,
    guards: Guards,
    operand: NestOperand,
    element: object,
    over: Iterators,
) -> Text:
    condition = guard_text(guards, over)
    if not condition:
        return value
    type_ = element_of(operand.source)
    outside = literal(operand.outside, type_)
    name = writer.names.fresh("inside" if is_bool(type_) else "at")
    writer.line(f"const {compute_type(type_)} {name} = {condition} ? {value.text} : {outside};")
    return Text(name)


def _ones(env: Environment, operand: NestOperand) -> Text:
    type_ = tensor_type(operand.source)
    guards = guards_of(operand.index, type_.get_shape(), env.over.extents, None, 1.0)
    condition = guard_text(guards, env.over)
    element = type_.element_type
    if not condition:
        return Text(literal(1, element))
    if is_bool(element):
        return Text(condition, AND if " && " in condition else OR)
    return Text(f"{condition} ? {literal(1, element)} : {literal(0, element)}", CHOICE)


def _row_offset(env: Environment, operand: NestOperand) -> tuple[str, Index, Guards]:
    """A read of a row: only its own loops address it."""
    row = env.rows[operand.source]
    shape = shape_of(operand.source)
    own = [d for d, e in enumerate(row.scope.here) if e.iterators & set(row.scope.own)]
    offset = Index(0)
    for d, stride in zip(own, row_major_strides([shape[d] for d in own]), strict=True):
        offset += operand.index[d] * stride
    index, sizes = [operand.index[d] for d in own], [shape[d] for d in own]
    return row.name, offset, guards_of(index, sizes, env.over.extents, None, operand.outside)


def _inline(writer: CudaWriter, env: Environment, operand: NestOperand) -> Text:
    """Compute an intermediate value again, where it is read."""
    made = env.inlined[operand.source]
    images = [Index.iterator(k) for k in range(len(env.over.extents))]
    for d, e in enumerate(made.here):
        for k in e.iterators & set(made.own):
            images[k] = operand.index[d]
    moved = tuple(
        replace(r, index=tuple(e.substitute(images) for e in r.index)) for r in made.reads
    )
    return finished(writer, made, body_value(writer, env, replace(made, reads=moved)))


def body_value(writer: CudaWriter, env: Environment, scope: ScopePlan) -> Text:
    """The scope's body at a point of all its iterators."""
    arguments = [read_text(writer, env, operand) for operand in scope.reads]
    body = Body()
    value = print_body(scope.op.body.block, arguments, body, writer.names.fresh)
    writer.add(body)
    return value


def scope_value(writer: CudaWriter, env: Environment, scope: ScopePlan) -> Text:
    """The scope's value at a point of its traversal: one thread does all summations."""
    if not scope.sums:
        return finished(writer, scope, body_value(writer, env, scope))
    total = start_total(writer, scope)
    sum_loops(writer, env, scope, total, list(scope.sums))
    return finished(writer, scope, Text(total))


def finished(writer: CudaWriter, scope: ScopePlan, value: Text) -> Text:
    """The scope's value as its readers see it; the kernel's result is rounded when stored."""
    if not any(isinstance(use.operation, ScopeOp) for use in scope.op.result.uses):
        return value
    body = Body()
    value = rounded(value, element_of(scope.op.result), body)
    writer.add(body)
    return value


def start_total(writer: CudaWriter, scope: ScopePlan) -> str:
    """Declare the accumulator of a reduction."""
    element = element_of(scope.op.result)
    words = {"sum": "sum", "prod": "product", "max": "largest", "min": "smallest"}
    total = writer.names.fresh(words[scope.reduction])
    writer.line(f"{compute_type(element)} {total} = {identity(scope.reduction, element)};")
    return total


def sum_loops(
    writer: CudaWriter, env: Environment, scope: ScopePlan, total: str, sums: Sequence[int]
) -> None:
    """Loops over the summations, innermost last, and the accumulation in them."""
    if not sums:
        take(writer, env, scope, total)
        return
    extents = env.over.extents
    count = 1
    for k in sums:
        count *= extents[k]
    with writer.loop(env.over.names[sums[0]], extents[sums[0]], unroll=count <= UNROLLED):
        sum_loops(writer, env, scope, total, sums[1:])


def take(writer: CudaWriter, env: Environment, scope: ScopePlan, total: str) -> None:
    """Accumulate the body's value at one point."""
    value = body_value(writer, env, scope)
    body = Body()
    line = accumulate(scope.reduction, total, value, element_of(scope.op.result), body)
    writer.add(body)
    writer.line(line)


def intermediate_type(value: SSAValue) -> tuple[str, int]:
    """The storage of intermediate values in a row: (C type, bytes); float for half floats."""
    element = element_of(value)
    ctype = compute_type(element)
    widths = {"bool": 1, "double": 8, "long long": 8, "unsigned long long": 8}
    narrow = {"signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2}
    return ctype, (widths | narrow).get(ctype, 4)
