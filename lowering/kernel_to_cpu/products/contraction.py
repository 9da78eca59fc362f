"""`kernel.gemm` and `kernel.conv` as calls of the gemm and conv code of this package.

A matched kernel becomes a spec (sizes, strides), a schedule, packed weights and an epilogue.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.ir import SSAValue

from ....dialects.contraction_attr import ConvParameters
from ....dialects.errors import UserError
from ....dialects.kernel import ConvOp, GemmOp, KernelOp, physical
from ....dialects.program import where
from ....dialects.schedule import Schedule
from ....dialects.types import Array, Tensor, element_of, shape_of, tensor_type, to_numpy
from ...algebra_to_kernel.match import Axis, GemmMatch, Strides, gemm_of, row_major
from ...schedule_space import OTHERS, Space
from ..code_cache import cached_code
from ..emit.access import Point, Vector, to_memory
from ..emit.emitter import Emitter
from ..emit.rows_read import RowsRead
from ..emit.types import Index, Value
from ..isa import Isa
from ..kernel_call import Argument, KernelCall
from ..nests.merging import merge_range
from ..nests.nest import Buffers, NestPlan, plan_nest
from ..nests.nontemporal import nontemporal
from ..nests.scope_value import emit_scope
from . import conv, gemm
from .conv_space import ConvProblem, table_for
from .epilogue import Epilogue, OutIndex
from .numbers import Numbers, numbers_of
from .product_space import PRODUCT, ProductProblem

Coordinates = Callable[[Emitter, OutIndex], dict[int, Index]]


def _epilogue(
    op: KernelOp, coordinates: Coordinates, columns: Sequence[int]
) -> tuple[Epilogue | None, list[SSAValue]]:
    """Scopes after the first as an epilogue, and the operands it reads.

    Args:
        coordinates: values of the shared iterators at an output vector.
        columns: the numbers of the iterators of the channels (columns), none if their extent is 1.
            Several are one range in all that the epilogue reads.
    """
    scopes = op.scopes
    if len(scopes) == 1:
        return None, []
    plan = shared_plan(op)
    arguments = list(op.body.block.args)
    used = {r.source for scope in plan.scopes[1:] for r in scope.reads}
    extras = [arg for arg in arguments if arg in used]
    types: dict[SSAValue, Tensor] = {
        arg: tensor_type(op.inputs[k]) for k, arg in enumerate(arguments)
    }
    vector = columns[-1] if columns else -1
    if len(columns) > 1:
        plan = merge_range(plan, op.type, types, columns)
        if any(plan.extents[k] != 1 for k in columns[:-1]):
            raise UserError("the columns of an epilogue are no one range", where=where(op))

    def emit(
        emitter: Emitter,
        accumulator: Value,
        index: OutIndex,
        channel: Index,
        mask: Value | None,
        pointers: Sequence[Value],
    ) -> Value:
        values = coordinates(emitter, index)
        if vector >= 0:
            values[vector] = channel
        point = Point(plan.extents, values, Vector(vector, index.lanes, mask))
        buffers = Buffers(dict(zip(extras, pointers, strict=True)), types)  # pyright: ignore
        buffers.values[scopes[0].result] = accumulator
        for scope in plan.scopes[1:]:
            buffers.values[scope.op.result] = emit_scope(emitter, scope, buffers, point)
        return to_memory(emitter, buffers.values[scopes[-1].result], op.type.element_type)

    outer = [op.inputs[arguments.index(arg)] for arg in extras]
    return Epilogue(len(extras), emit), outer


def shared_plan(op: KernelOp) -> NestPlan:
    """The nest of all scopes over the first one's traversal."""
    loops = sum(1 for n in op.scopes[0].traversal if n != 1)
    return plan_nest(op.scopes, loops)


def loop_numbers(op: KernelOp) -> dict[int, int]:
    """The nest iterator of each traversal iterator of the first scope (none for extent 1)."""
    loops = [k for k, n in enumerate(op.scopes[0].traversal) if n != 1]
    return {k: number for number, k in enumerate(loops)}


# --- gemm ---------------------------------------------------------------------------------------


def lower_gemm(op: GemmOp, constants: dict[SSAValue, Array], isa: Isa) -> list[KernelCall]:
    """The calls that compute a matrix product with its epilogue."""
    found = gemm_in(op)
    spec = gemm_spec(op, found, isa)
    numbers = loop_numbers(op)
    columns = [numbers[k] for k in found.n.iterators]
    epilogue, extras = _epilogue(op, _gemm_coordinates(op, found), columns)
    a, b = (op.outer(read.source) for read in (found.a, found.b))
    matrix = constants.get(b)
    problem = ProductProblem(spec, isa, matrix is not None)
    point = PRODUCT.space(problem).point(Schedule.on(op, OTHERS), where(op))
    schedule = replace(problem.schedule(point), nontemporal=nontemporal(op.type, isa))
    key_parts = "gemm", spec, schedule  # with the op: equal code is generated once
    rows = RowsRead.of(op)
    code = cached_code(
        op, isa, key_parts, lambda: gemm.emit_gemm(spec, schedule, isa, epilogue, rows)
    )
    if matrix is None or schedule.right != "packed":
        right = Argument(b, offset=found.b_offset)
    else:
        right = Argument(data=gemm.pack_b(matrix_of(matrix, found), spec, schedule, isa))
    left = Argument(a, offset=found.a_offset)
    out = Argument(op.result, offset=physical(op.type)[1])
    others = [*extras, *(op.inputs[r.operand] for r in rows)]
    return [KernelCall(code, (left, right, *(Argument(v) for v in others), out))]


def gemm_in(op: GemmOp) -> GemmMatch:
    """The product's operands as strided ranges. Raises UserError if the layouts allow none."""
    assert op.contraction is not None
    found = gemm_of(op.scopes[0], op.contraction, strides_in(op))
    if found is None:
        raise UserError("the operands' layouts fit no gemm", where=where(op))
    return found


def strides_in(op: KernelOp) -> Strides:
    """Physical strides of the operands and result of a kernel's first scope."""
    arguments = list(op.body.block.args)
    first = op.scopes[0].result

    def strides(value: SSAValue) -> tuple[Sequence[int], int]:
        if value in arguments:
            return physical(tensor_type(op.inputs[arguments.index(value)]))[:2]  # pyright: ignore
        # The kernel's first scope has the layout of the result where it has its shape.
        same = value is first and shape_of(value) == op.type.get_shape()
        return (physical(op.type)[0], 0) if same else row_major(value)

    return strides


def conv_space(op: ConvOp, isa: Isa) -> Space:
    """What may vary in a convolution: in all parts of a transposed one alike."""
    found = op.parameters
    specs = [_conv_spec(op, found, part, isa) for part in _parts(found)]
    first, *others = (table_for(spec, isa).space(ConvProblem(spec, isa)) for spec in specs)
    return first if not others else first.together(others)


def gemm_space(op: GemmOp, constant_b: bool, isa: Isa) -> Space:
    """What may vary in a product."""
    return PRODUCT.space(ProductProblem(gemm_spec(op, gemm_in(op), isa), isa, constant_b))


def gemm_spec(op: GemmOp, found: GemmMatch, isa: Isa) -> gemm.GemmSpec:
    """Sizes, strides and numbers of a matched product."""
    batch = tuple(axis.extent for axis in found.batch)
    a = tuple(axis.a for axis in (*found.batch, found.m, found.k))
    b = tuple(axis.b for axis in (*found.batch, found.k, found.n))
    c = (*(axis.out for axis in (*found.batch, found.m)), 1)
    numbers = _numbers(op, found.a.source, found.b.source, isa)
    if numbers.group > 1 and found.k.a != 1:
        numbers = replace(numbers, step="multiply")
    return gemm.GemmSpec(batch, found.m.extent, found.n.extent, found.k.extent, a, b, c, numbers)


def _numbers(op: KernelOp, left: SSAValue, right: SSAValue, isa: Isa) -> Numbers:
    return numbers_of(element_of(left), element_of(right), op.type.element_type, isa)


def matrix_of(data: Array, found: GemmMatch) -> Array:
    """The constant right operand as [*batch, k, n], whatever the order of its buffer."""
    flat = np.ascontiguousarray(data).ravel()[found.b_offset :]
    axes: list[Axis] = [*found.batch, found.k, found.n]
    shape = [axis.extent if axis.b or axis in (found.k, found.n) else 1 for axis in axes]
    strides = [axis.b * flat.itemsize for axis in axes]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(flat, shape, strides))


def _gemm_coordinates(op: GemmOp, found: GemmMatch) -> Coordinates:
    numbers = loop_numbers(op)
    extents = op.scopes[0].extents

    def coordinates(emitter: Emitter, index: OutIndex) -> dict[int, Index]:
        values: dict[int, Index] = {}
        for axis, value in zip(found.batch, index.batch, strict=True):
            values[numbers[axis.iterators[0]]] = value
        rest: Index = index.spatial[0]
        for k in reversed(found.m.iterators[1:]):
            rest, values[numbers[k]] = emitter.split(rest, extents[k])
        if found.m.iterators:
            values[numbers[found.m.iterators[0]]] = rest
        return values

    return coordinates


# --- convolution --------------------------------------------------------------------------------


# The taps of a dim without any: one of weight 0, which reads zeros.
NOTHING = (-1,)


@dataclass(frozen=True)
class _Part:
    """A convolution that is not transposed: a plain one, or a residue class of a transposed one.

    Per spatial dim: output positions `first + step * q`; the taps it uses, in the order of
    increasing input position; the input position `start + stride * q + dilation * t` of tap t.
    """

    first: tuple[int, ...]
    step: tuple[int, ...]
    taps: tuple[tuple[int, ...], ...]
    start: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]


def lower_conv(op: ConvOp, constants: dict[SSAValue, Array], isa: Isa) -> list[KernelCall]:
    """The calls that compute a convolution with its epilogue: one for each part."""
    found = op.parameters
    given = constants.get(op.outer(found.weights))
    weights = None if given is None else _weights(given, found)
    return [_part_call(op, found, part, weights, isa) for part in _parts(found)]


def _parts(found: ConvParameters) -> list[_Part]:
    spatial = range(len(found.kernel))
    if not found.transposed:
        ones = tuple(1 for _ in spatial)
        taps = tuple(tuple(range(n)) for n in found.kernel)
        start = tuple(-pad for pad in found.pads)
        return [_Part(tuple(0 for _ in spatial), ones, taps, start, found.strides, found.dilations)]
    classes = [_residues(found, k) for k in spatial]
    return [_Part(*zip(*choice, strict=True)) for choice in itertools.product(*classes)]  # pyright: ignore


def _residues(
    found: ConvParameters, k: int
) -> list[tuple[int, int, tuple[int, ...], int, int, int]]:
    """Residue classes of the output positions in one dim of a transposed convolution: the fields
    of `_Part` for that dim.

    Position stride * q + j takes tap r from q + (j + pad - dilation * r) / stride where
    stride divides it: taps in decreasing r read increasing positions, so the class is a
    convolution by itself.
    """
    stride, dilation, pad = found.strides[k], found.dilations[k], found.pads[k]
    classes: list[tuple[int, int, tuple[int, ...], int, int, int]] = []
    for j in range(min(stride, found.sizes[k])):
        taps = [r for r in range(found.kernel[k]) if (j + pad - dilation * r) % stride == 0][::-1]
        if not taps:  # no tap reads here: one of weight 0 keeps the epilogue running
            classes.append((j, stride, NOTHING, 0, 0, 1))
            continue
        positions = [(j + pad - dilation * r) // stride for r in taps]
        spacing = positions[1] - positions[0] if len(positions) > 1 else 1
        classes.append((j, stride, tuple(taps), positions[0], 1, spacing))
    return classes


def _weights(data: Array, found: ConvParameters) -> Array:
    """The constant weights as [f, c, *kernel], whatever the order of their dims.

    "_" in `filter_dims` are dims of extent 1.
    """
    spatial = len(found.kernel)
    position: dict[str | int, int] = {d: k for k, d in enumerate(found.filter_dims) if d != "_"}
    order = [position[d] for d in ("f", "c", *range(spatial)) if d in position]
    rest = [k for k in range(data.ndim) if k not in order]
    shape = (found.features, found.channels_per_group, *found.kernel)
    return np.ascontiguousarray(data.transpose(*order, *rest).reshape(shape))


def _part_call(
    op: ConvOp, found: ConvParameters, part: _Part, weights: Array | None, isa: Isa
) -> KernelCall:
    """The call of one part; weights that are no constants (None) lie features last."""
    data = op.outer(found.data)
    spec = replace(_conv_spec(op, found, part, isa), in_place=weights is None)
    numbers = loop_numbers(op)
    columns = [numbers[k] for k in found.out_order[1:2] if k in numbers]
    epilogue, extras = _epilogue(op, _conv_coordinates(op, found, part), columns)
    problem = ConvProblem(spec, isa)
    point = table_for(spec, isa).space(problem).point(Schedule.on(op, OTHERS), where(op))
    schedule = problem.schedule(point)
    if spec.groups == 1:  # else a group may start within a cache line; such stores need whole lines
        schedule = replace(schedule, nontemporal=nontemporal(op.type, isa))
    key_parts = "conv", part, spec, schedule
    rows = [r for r in RowsRead.of(op) if r.dim == found.out_order[0]]  # whole images
    code = cached_code(
        op, isa, key_parts, lambda: conv.emit_conv(spec, schedule, isa, epilogue, rows)
    )
    if weights is None:
        stored = op.outer(found.weights)
        filters = Argument(stored, offset=physical(tensor_type(stored))[1])
    else:
        chosen = _select_taps(weights, part)
        filters = Argument(data=conv.pack_weights(chosen, spec, schedule, isa))
    out_strides, out_offset, _ = _in_order(op.result, found.out_order)
    in_strides, in_offset, size = _in_order(data, found.data_order)
    start = in_offset + sum(p * s for p, s in zip(part.start, in_strides[2:], strict=True))
    first = out_offset + sum(p * s for p, s in zip(part.first, out_strides[2:], strict=True))
    left = Argument(data, offset=start)
    if NOTHING in part.taps:  # 0 times an infinite value would be NaN
        left = Argument(data=np.zeros(size, to_numpy(element_of(data))), offset=start)
    arguments = (
        left,
        filters,
        *(Argument(v) for v in extras),
        *(Argument(op.inputs[r.operand]) for r in rows),
        Argument(op.result, offset=first),
    )
    return KernelCall(code, arguments)


def _in_order(value: SSAValue, order: Sequence[int]) -> tuple[tuple[int, ...], int, int]:
    """The result of `physical` for a value, with strides in this order of dims."""
    strides, offset, size = physical(tensor_type(value))
    return tuple(strides[dim] for dim in order), offset, size


def _conv_spec(op: ConvOp, found: ConvParameters, part: _Part, isa: Isa) -> conv.ConvSpec:
    in_strides, _, _ = _in_order(op.outer(found.data), found.data_order)
    out_strides, _, _ = _in_order(op.result, found.out_order)
    size = found.sizes
    out = tuple(-(-(size[k] - part.first[k]) // part.step[k]) for k in range(len(size)))
    # A dim without taps reads one position only: its element stride is 0.
    moves = [1 if s else 0 for s in part.stride]
    return conv.ConvSpec(
        batch=found.images,
        out_spatial=out,
        kernel=tuple(len(taps) for taps in part.taps),
        strides=tuple(max(1, s) for s in part.stride),
        dilations=part.dilation,
        groups=found.groups,
        in_channels=found.channels,
        out_channels=found.features,
        in_strides=(in_strides[0], *(s * m for s, m in zip(in_strides[2:], moves, strict=True))),
        out_strides=(
            out_strides[0],
            *(s * step for s, step in zip(out_strides[2:], part.step, strict=True)),
        ),
        numbers=_numbers(op, found.data, found.weights, isa),
    ).chosen(isa)


def _select_taps(weights: Array, part: _Part) -> Array:
    """The part's taps, in its order; tap -1 is a weight of 0."""
    for k, taps in enumerate(part.taps):
        if taps == NOTHING:
            weights = np.zeros_like(np.take(weights, [0], axis=k + 2))
        else:
            weights = np.take(weights, taps, axis=k + 2)
    return np.ascontiguousarray(weights)


def _conv_coordinates(op: ConvOp, found: ConvParameters, part: _Part) -> Coordinates:
    numbers = loop_numbers(op)
    images, _, *spatial = found.out_order

    def coordinates(emitter: Emitter, index: OutIndex) -> dict[int, Index]:
        values: dict[int, Index] = {}
        if images in numbers:
            values[numbers[images]] = index.batch[0]
        for dim, position, step, first in zip(
            spatial, index.spatial, part.step, part.first, strict=True
        ):
            if dim in numbers:
                values[numbers[dim]] = emitter.add(emitter.mul(position, step), first)
        return values

    return coordinates
