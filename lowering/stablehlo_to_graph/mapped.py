"""Regions of scalars computed at each place of tensors: reductions of any region."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects.builtin import i1, i32
from xdsl.ir import SSAValue

from ...dialects.types import shape_of, tensor
from .elementwise import TABLE as ELEMENTWISE
from .node import Converter, HloNode
from .shaping import padded
from .text import HloBlock, HloOp

Combine = Callable[[Sequence[SSAValue]], list[SSAValue]]

# Each place of a window is an op of its own.
MOST_PLACES = 256


def mapped(n: HloNode, block: HloBlock, values: Sequence[SSAValue]) -> list[SSAValue]:
    """What a region of elementwise ops on scalars computes of each element of the values."""
    shape = shape_of(values[0])
    scope = n.scope.inner()
    known = {a.name for a in block.arguments}.union(*(op.results for op in block.ops))
    names = itertools.chain(*(op.operands for op in block.ops), block.results)
    for name in names:  # what the region reads from outside
        if name not in known:
            scope.values[name] = n.expand(n.scope.find(name), shape)
    ops = [_at(n, op, shape) for op in block.ops[:-1]]
    return scope.run(replace(block, ops=[*ops, block.ops[-1]]), values)


def _at(n: HloNode, op: HloOp, shape: Sequence[int]) -> HloOp:
    """An op of scalars as one of a shape."""
    types = [tensor(shape, t.element_type) for t in op.types]
    if op.name == "stablehlo.constant":
        value = np.broadcast_to(op.attributes["value"], shape)
        return replace(op, types=types, attributes={**op.attributes, "value": value})
    if op.name not in ELEMENTWISE:
        raise n.refusal(f"its region has {op.name}, which is no op of each element")
    return replace(op, types=types)


def folded(n: HloNode, combine: Combine, dims: Sequence[int]) -> list[SSAValue]:
    """A reduction by any region: neighbours are combined until one is left, then the start."""
    count = len(n.operands) // 2
    values, starts = list(n.operands[:count]), n.operands[count:]
    rest = [m for k, m in enumerate(shape_of(values[0])) if k not in dims]
    first = [n.expand(v, rest) for v in starts]
    if any(shape_of(values[0])[k] == 0 for k in dims):
        return first
    for axis in dims:
        while (size := shape_of(values[0])[axis]) > 1:
            halves = [[n.slice(v, axis, k, size // 2, 2) for v in values] for k in (0, 1)]
            found = combine([*halves[0], *halves[1]])
            if size % 2:
                ends = [n.slice(v, axis, size - 1, 1) for v in values]
                pairs = zip(found, ends, strict=True)
                found = [n.op("concat", a, b, axis=axis) for a, b in pairs]
            values = found
    return combine([*first, *(n.reshape(v, rest) for v in values)])


def select_and_scatter(n: HloNode) -> SSAValue:
    """Each window of the operand has one element selected, where the source's is combined into
    the result: the gradient of a pool."""
    x, source, start = n.operands
    shape, out, rank = shape_of(x), shape_of(source), len(shape_of(x))
    window = n.ints("window_dimensions", default=[1] * rank)
    strides = n.ints("window_strides", default=[1] * rank)
    pads = n.ints("padding", default=[0] * (2 * rank))
    low, high = pads[::2], pads[1::2]
    if min(pads, default=0) < 0 or math.prod(window) > MOST_PLACES:
        raise n.refusal(f"negative padding, or a window of more than {MOST_PLACES} elements")
    if 0 in (*shape, *out):
        return n.expand(start, shape)
    wide = padded(n, x, low, high, [0] * rank, 0.0)
    offsets = list(itertools.product(*(range(w) for w in window)))
    at, valid = _selected(n, wide, offsets, (strides, low, shape, out))
    whole = shape_of(wide)
    total = n.expand(start, whole)
    for k, offset in enumerate(offsets):
        here = n.op("equal", at, n.literal(k, at))
        if not valid.all():
            here = n.op("and", here, n.data(valid))
        ends = [m - o - (c - 1) * s - 1
                for m, o, c, s in zip(whole, offset, out, strides, strict=True)]  # fmt: skip
        gaps = [s - 1 for s in strides]
        mask = padded(n, n.op("cast", here, to=i32), offset, ends, gaps, 0.0)
        given = padded(n, source, offset, ends, gaps, 0.0)
        (added,) = mapped(n, n.block(1), [total, given])
        total = n.op("where", n.cast(mask, i1), added, total)
    for axis, size in enumerate(shape):
        total = n.slice(total, axis, low[axis], size)
    return total


def _selected(
    n: HloNode,
    wide: SSAValue,
    offsets: Sequence[tuple[int, ...]],
    where: tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]],
) -> tuple[SSAValue, np.ndarray]:
    """Which place of its window each one selects, and whether it has any; padding is none."""
    strides, low, shape, out = where
    best: SSAValue | None = None
    at = n.expand(n.scalar(0, i32), out)
    valid = np.zeros(out, bool)
    for k, offset in enumerate(offsets):
        inside = np.ones(out, bool)
        for axis, size in enumerate(shape):
            places = np.arange(out[axis]) * strides[axis] + offset[axis] - low[axis]
            good = (places >= 0) & (places < size)
            inside &= good.reshape([-1] + [1] * (len(out) - axis - 1))
        steps = {"starts": list(offset), "sizes": list(out), "steps": list(strides)}
        value = n.op("slice", wide, **steps)
        if best is None:
            best, valid = value, inside
            continue
        (kept,) = mapped(n, n.block(0), [best, value])
        take = n.op("not", kept)
        if not valid.all():
            take = n.op("or", take, n.data(~valid))
        if not inside.all():
            take = n.op("and", take, n.data(inside))
        best, at = n.op("where", take, value, best), n.op("where", take, n.literal(k, at), at)
        valid = valid | inside
    return at, valid


TABLE: dict[str, Converter] = {"stablehlo.select_and_scatter": select_and_scatter}
