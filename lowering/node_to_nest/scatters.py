"""Writes at positions that are data: a copy of the operand, then the updates, in order.

In the domain `isoform` a scatter has one operand more, the number of rows of its indices that are
applied, and says of which dim they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack

from xdsl.dialects.builtin import i1

from .code import Code, NestBuffer, Number, Scalar
from .node import IndexAlarm, KeptNode, NoNest

_COMBINE = {"add": "add", "mul": "mul", "max": "max", "min": "min"}


def combined(how: str, old: Scalar, new: Scalar) -> Scalar:
    """What is stored where an update meets an element. Raises NoNest if that is no number."""
    if old.element == i1:
        names = {"add": "or", "max": "or", "mul": "and", "min": "and"}
        return old.call(names[how], new)
    return old.call(_COMBINE[how], new)


def inside(code: Code, index: Scalar, size: int) -> tuple[Scalar, Scalar]:
    """An index, counted from the end where negative, and whether it is in the dim."""
    index = index.place()
    position = code.select(index < 0, index + size, index)
    return position, (position >= 0) & (position < size)


def nested(code: Code, stack: ExitStack, extents: Sequence[Number]) -> list[Scalar]:
    """Loops inside each other, and their iterators."""
    return [stack.enter_context(code.loop(n)) for n in extents]


def linear(code: Code, places: Sequence[Scalar], strides: Sequence[int]) -> Scalar:
    """The sum of places times strides."""
    total = code.number(0)
    for place, stride in zip(places, strides, strict=True):
        total = total + place * stride
    return total


def strides_of(shape: Sequence[int]) -> list[int]:
    """How far neighbours along each dim lie apart, in row-major order."""
    return [math.prod(shape[k + 1 :]) for k in range(len(shape))]


def scatter_elements(node: KeptNode) -> None:
    """Each update goes to its own position, with the index along the axis."""
    x, indices, updates, y, code = node[0], node[1], node[2], node.result, node.code
    if not x.shape:
        raise NoNest
    axis, how = node.axis(len(x.shape), 0), node.get("reduction", "none")
    size, steps, own = x.shape[axis], strides_of(x.shape), strides_of(indices.shape)
    node.alarm = IndexAlarm(1, (size,))
    code.copy_all(x, y)
    # Rows before the axis are apart: they may be written at the same time.
    lead = indices.shape[0] if axis else 1
    with code.stage(lead if indices.size else 0) as item, ExitStack() as loops:
        extents = _applied(node, indices.shape)
        if axis:
            loops.enter_context(code.when(item < extents.pop(0)))
        places = nested(code, loops, extents)
        places = [item, *places] if axis else places
        at = linear(code, places, own)
        position, good = inside(code, indices[at], size)
        with code.when(good):
            target = linear(code, [*places[:axis], position, *places[axis + 1 :]], steps)
            value = updates[at]
            y[target] = value if how == "none" else combined(how, y[target], value)
        with code.otherwise():
            code.alarm[0] = 1


def _applied(node: KeptNode, shape: Sequence[int]) -> list[Number]:
    """How many rows of each dim of the indices are applied."""
    found: list[Number] = list(shape)
    if node.has(3):
        found[node.get("dim", 0)] = node[3][0]
    return found


def scatter_nd(node: KeptNode) -> None:
    """Each row of indices is where a slice of the updates goes."""
    x, indices, updates, y, code = node[0], node[1], node[2], node.result, node.code
    depth, how = indices.shape[-1], node.get("reduction", "none")
    sizes, steps = x.shape[:depth], strides_of(x.shape)[:depth]
    node.alarm = IndexAlarm(1, tuple(sizes))
    length = math.prod(x.shape[depth:])
    code.copy_all(x, y)
    shape = indices.shape[:-1]
    with code.stage(1 if math.prod(shape) * length else 0), ExitStack() as loops:
        places = nested(code, loops, _applied(node, shape))
        row = linear(code, places, strides_of(shape))
        start, good = code.number(0), code.number(True, i1)
        for k, (size, step) in enumerate(zip(sizes, steps, strict=True)):
            position, here = inside(code, indices[row * depth + k], size)
            start, good = start + position * step, good & here
        with code.when(good):
            _put(code, updates, row * length, y, start, length, how)
        with code.otherwise():
            code.alarm[0] = 1


def _put(
    code: Code,
    source: NestBuffer,
    first: Scalar,
    y: NestBuffer,
    start: Scalar,
    length: int,
    how: str,
) -> None:
    """Put a slice of updates into the result."""
    if how == "none" and length > 8:
        code.copy(source, first, y, start, length)
        return
    with code.loop(length) as k:
        value = source[first + k]
        y[start + k] = value if how == "none" else combined(how, y[start + k], value)


def tensor_scatter(node: KeptNode) -> None:
    """Rows of a cache are replaced from an index on, around its end where it is circular."""
    past, update, y, code = node[0], node[1], node.result, node.code
    axis = node.axis(len(past.shape), -2)
    length, room = update.shape[axis], past.shape[axis]
    inner = math.prod(past.shape[axis + 1 :])
    between = math.prod(past.shape[1:axis])
    circular = node.get("mode", "linear") == "circular"
    code.copy_all(past, y)
    with code.stage(past.shape[0] if update.size else 0) as batch, code.loop(between) as part:
        row = batch * between + part
        first = node[2][batch].place() if node.has(2) else code.number(0)
        with code.loop(length) as k:
            to = (first + k) % room if circular else first + k
            with code.when((to >= 0) & (to < room)):
                code.copy(update, (row * length + k) * inner, y, (row * room + to) * inner, inner)


def max_unpool(node: KeptNode) -> None:
    """Each element goes to its index in a tensor of zeros.

    Indices count in the shape that the window gives. A given shape, which is no smaller, is filled
    from the front of each dim.
    """
    x, indices, y, code = node[0], node[1], node.result, node.code
    inner = _unpooled(node, x.shape[2:]) if node.has(2) else y.shape[2:]
    if any(n > m for n, m in zip(inner, y.shape[2:], strict=True)):
        raise NoNest
    shape = (*x.shape[:2], *inner)
    code.fill(y, 0)
    with code.stage(1 if x.size else 0), code.loop(x.size) as k:
        to = indices[k].place()
        with code.when((to >= 0) & (to < math.prod(shape))):
            place, rest, step = code.number(0), to, 1
            for n, m in zip(shape[::-1], y.shape[::-1], strict=True):
                place, rest, step = place + rest % n * step, rest // n, step * m
            y[to if shape == y.shape else place] = x[k]


def _unpooled(node: KeptNode, shape: Sequence[int]) -> list[int]:
    """The spatial dims that the window gives."""
    kernel, rank = node.get("kernel_shape", [1] * len(shape)), len(shape)
    strides, pads = node.get("strides", [1] * rank), node.get("pads", [0] * (2 * rank))
    return [(shape[d] - 1) * strides[d] + kernel[d] - pads[d] - pads[rank + d] for d in range(rank)]


WRITERS = {
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
    "MaxUnpool": max_unpool,
}
