"""Reads at data-dependent positions: all become graph.gather on a suitable view."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.index_range import check_range
from ...dialects.types import element_of, is_signed_int, shape_of
from .node import OnnxNode
from .shaping import MAX_CONSTANT, sliced, taken
from .values import NotConstant, NotNative


def gather(node: OnnxNode) -> list[SSAValue]:
    """A slice for constant positions if one fits, else graph.gather."""
    x, shape = node[0], node.shape(0)
    axis = node.axis(node.int("axis", 0), len(shape))
    positions = node.known(1)
    if positions is not None and positions.size == 1 and positions.dtype.kind == "i":
        position = int(positions.ravel()[0])
        check_range(positions, shape[axis], node.where)
        starts = [position % shape[axis] if k == axis else 0 for k in range(len(shape))]
        sizes = [1 if k == axis else n for k, n in enumerate(shape)]
        one = sliced(node, x, starts, sizes, [1] * len(shape))
        return [node.reshape(one, [*shape[:axis], *positions.shape, *shape[axis + 1 :]])]
    return [node.build.gather(x, _positions(node, 1), axis=axis)]


def _positions(node: OnnxNode, k: int) -> SSAValue:
    """Operand `k` as i32 or i64 positions."""
    value = node[k]
    if element_of(value) in (i32, i64):
        return value
    if not is_signed_int(element_of(value)):
        raise UserError("indices are integers", found=element_of(value))
    return node.cast(value, i64)


def _from_end(node: OnnxNode, indices: SSAValue, size: SSAValue) -> SSAValue:
    """Negative indices count from the end; `size` broadcasts to them."""
    build = node.build
    size = build.expand(size, shape_of(indices))
    negative = build.less(indices, node.literal(0, indices))
    return build.where(negative, build.add(indices, size), indices)


def _place_type(shape: Sequence[int]) -> type[np.signedinteger[Any]]:
    """The type of flat positions: they are stored, and half as long where 32 bits do."""
    return np.int32 if math.prod(shape) < 1 << 31 else np.int64


def _steps(
    node: OnnxNode, indices: SSAValue, size: int, stride: int, type_: type[np.signedinteger[Any]]
) -> SSAValue:
    """The distance of the elements at these indices from the first: index times stride.

    It is read from a table by graph.gather, which counts negative indices from the end and raises
    for one outside. Arithmetic would silently select an element of another row.
    """
    table = np.arange(size, dtype=type_) * type_(stride)
    name = f"steps{size}x{stride}{table.dtype}"
    return node.build.gather(node.data(table, name), indices, axis=0)


def gather_elements(node: OnnxNode) -> list[SSAValue]:
    """Gather from the flat operand at row-major positions computed from the indices."""
    x, indices, build = node[0], _positions(node, 1), node.build
    shape, out = shape_of(x), shape_of(indices)
    axis = node.axis(node.int("axis", 0), len(shape))
    if len(out) != len(shape):
        raise UserError("indices need the operand's rank", expected=len(shape), found=len(out))
    if any(n > size for k, (n, size) in enumerate(zip(out, shape, strict=True)) if k != axis):
        raise UserError("there are more indices than rows", expected=list(shape), found=list(out))
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    type_ = _place_type(shape)
    flat = _steps(node, indices, shape[axis], strides[axis], type_)
    for k, n in enumerate(out):
        if k == axis or n == 1 or strides[k] == 0:
            continue
        places = np.arange(n, dtype=type_) * type_(strides[k])
        steps = places.reshape([-1] + [1] * (len(out) - k - 1))
        flat = build.add(flat, build.expand(node.data(steps, f"steps{k}"), out))
    return [build.gather(node.reshape(x, [math.prod(shape)]), flat, axis=0)]


def gather_nd(node: OnnxNode) -> list[SSAValue]:
    """Gather rows of the operand, its indexed dims flattened to one."""
    x, indices, build = node[0], _positions(node, 1), node.build
    shape, positions, batch = shape_of(x), shape_of(indices), node.int("batch_dims", 0)
    depth = int(positions[-1]) if positions else 0
    if not positions or batch + depth > len(shape) or not 0 <= batch < len(positions):
        found = f"{list(shape)} at {list(positions)}"
        raise UserError("indices do not fit the operand", found=found)
    if shape[:batch] != positions[:batch]:
        raise UserError("the batch dims differ", expected=shape[:batch], found=positions[:batch])
    dims = shape[batch : batch + depth]
    if depth == 0:
        raise NotNative
    parts = build.split(indices, axis=len(positions) - 1, sizes=[1] * depth)
    flat: SSAValue | None = None
    type_ = _place_type(shape)
    for k, part in enumerate(parts):
        column = node.reshape(part, positions[:-1])
        step = _steps(node, column, dims[k], math.prod(dims[k + 1 :]), type_)
        flat = step if flat is None else build.add(flat, step)
    assert flat is not None
    rows = math.prod(shape[:batch]) * math.prod(dims)
    if batch:
        count = math.prod(shape[:batch])
        offsets = (np.arange(count, dtype=type_) * type_(math.prod(dims))).reshape(
            [*shape[:batch], *[1] * (len(positions) - 1 - batch)]
        )
        flat = build.add(flat, build.expand(node.data(offsets, "batch"), shape_of(flat)))
    rest = list(shape[batch + depth :])
    return [build.gather(node.reshape(x, [rows, *rest]), flat, axis=0)]


def reverse_sequence(node: OnnxNode) -> list[SSAValue]:
    """With constant lengths: a gather from the flat operand at constant positions."""
    lengths = node.known(1)
    if lengths is None:
        raise NotNative
    x, shape = node[0], node.shape(0)
    time, batch = node.int("time_axis", 0), node.int("batch_axis", 1)
    if {time, batch} != {0, 1} or len(shape) < 2 or lengths.shape != (shape[batch],):
        raise UserError("time and batch are the first two dims, one length per batch entry")
    t, row = np.arange(shape[time])[:, None], np.arange(shape[batch])[None, :]
    position = np.where(t < lengths[None, :], lengths[None, :] - 1 - t, t)
    flat = position * shape[batch] + row if time == 0 else (row * shape[time] + position).T
    merged = node.reshape(x, [shape[0] * shape[1], *shape[2:]])
    return [node.build.gather(merged, node.data(flat.astype(np.int64), "places"), axis=0)]


def compress(node: OnnxNode) -> list[SSAValue]:
    """Where the condition is constant: a gather at its true positions."""
    condition = node.constant(1, "the condition").ravel()
    positions = np.flatnonzero(condition)
    x = node[0]
    if "axis" not in node.attributes:
        return [taken(node, node.reshape(x, [math.prod(shape_of(x))]), 0, positions)]
    return [taken(node, x, node.axis(node.int("axis", 0), len(shape_of(x))), positions)]


def one_hot(node: OnnxNode) -> list[SSAValue]:
    """values[1] where the position along the new axis is the index, values[0] elsewhere."""
    indices, build = node[0], node.build
    depth = node.constant_int(1, "the depth")
    if not 1 <= depth <= MAX_CONSTANT:
        raise UserError(f"the depth is not in [1, {MAX_CONSTANT}]", found=depth)
    if not is_signed_int(element_of(indices)):
        indices = node.cast(indices, i64)
    shape = shape_of(indices)
    axis = node.axis(node.int("axis", -1), len(shape) + 1)
    indices = node.cast(_from_end(node, indices, node.scalar(depth, element_of(indices))), i64)
    full = [*shape[:axis], depth, *shape[axis:]]
    positions = np.arange(depth, dtype=np.int64).reshape([-1] + [1] * (len(shape) - axis))
    here = build.equal(
        build.expand(node.reshape(indices, [*shape[:axis], 1, *shape[axis:]]), full),
        build.expand(node.data(positions, "places"), full),
    )
    values = node[2]
    if shape_of(values) != (2,):
        raise UserError("values are [off, on]", found=list(shape_of(values)))
    off, on = (
        build.expand(node.reshape(sliced(node, values, [k], [1], [1]), []), full) for k in (0, 1)
    )
    return [build.where(here, on, off)]


def non_zero(node: OnnxNode) -> list[SSAValue]:
    """For data known at import only; otherwise the number of results depends on data."""
    raise NotConstant(node.value(0).name, "the operand", node.where)
