"""Writes at positions that are data, and orders: nodes that loop nests run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects.dims import is_symbolic
from ...dialects.types import (
    element_of,
    is_bool,
    is_float,
    is_half,
    is_unsigned,
    shape_of,
    tensor,
    to_numpy,
)
from .aten import UnsupportedAten
from .indexing import positions
from .node import AtenNode, Converter, Number, axis

# How torch calls a combination, and ONNX.
_HOW = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}


def _stored(element: Attribute, how: str) -> Attribute:
    """The type that elements are combined in."""
    if is_bool(element):
        return i32
    if is_unsigned(element) and how != "none":
        raise UnsupportedAten("unsigned integers are not combined")
    return f32 if is_half(element) and how != "none" else element


def _elements(
    n: AtenNode, x: SSAValue, dim: int, index: SSAValue, source: SSAValue, how: str
) -> SSAValue:
    """Elements of the source, each put or combined at its own index along a dim."""
    element, shape = _stored(n.element, how), shape_of(index)
    if math.prod(shape) == 0 or math.prod(shape_of(x)) == 0:
        return x
    flat = not shape_of(x)
    for k, size in enumerate(shape):
        source = n.slice(source, k, 0, size)
    at = positions(n, index)
    parts = [n.cast(x, element), at, n.cast(source, element)]
    if flat or not shape:
        parts = [n.reshape(v, [1]) for v in parts]
    k = axis(dim, len(shape_of(x)))
    type_ = tensor(shape_of(parts[0]), element)
    (found,) = n.onnx("ScatterElements", parts, [type_], axis=k, reduction=how)
    return n.reshape(n.cast(found, n.element), n.shape)


def scatter(n: AtenNode, x: SSAValue, dim: int, index: SSAValue, source: Any) -> SSAValue:
    """Elements, or one number, put at their index along a dim."""
    if not isinstance(source, SSAValue):
        source = n.expand(n.scalar(source, n.element), shape_of(index))
    return _elements(n, x, dim, index, source, "none")


def scatter_add(n: AtenNode, x: SSAValue, dim: int, index: SSAValue, source: SSAValue) -> SSAValue:
    """Elements added at their index along a dim."""
    return _elements(n, x, dim, index, source, "add")


def scatter_reduce(
    n: AtenNode, x: SSAValue, dim: int, index: SSAValue, source: SSAValue, reduce: str, *,
    include_self: bool = True,
) -> SSAValue:  # fmt: skip
    """Elements combined at their index along a dim."""
    if reduce == "mean":
        raise UnsupportedAten("the mean of scattered elements")
    how = _HOW[reduce]
    if not include_self:  # where anything goes, x is replaced by what changes nothing
        x = scatter(n, x, dim, index, _identity(how, n.element))
    return _elements(n, x, dim, index, source, how)


def _identity(how: str, element: Attribute) -> Number:
    if how in ("add", "mul"):
        return int(how == "mul")
    if is_float(element):
        return -math.inf if how == "max" else math.inf
    if is_bool(element):
        return how == "min"
    info = np.iinfo(to_numpy(element))
    return int(info.min if how == "max" else info.max)


def _rows(
    n: AtenNode, x: SSAValue, indices: Sequence[SSAValue], updates: SSAValue, how: str
) -> SSAValue:
    """Slices of x put or combined at positions of its first dims."""
    element = _stored(n.element, how)
    parts = [n.reshape(p, [*shape_of(p), 1]) for p in indices]
    index = (
        parts[0] if len(parts) == 1 else n.op("concat", *parts, axis=len(shape_of(parts[0])) - 1)
    )
    given = [n.cast(x, element), index, n.cast(updates, element)]
    (found,) = n.onnx("ScatterND", given, [tensor(shape_of(x), element)], reduction=how)
    return n.cast(found, n.element)


def _along(
    n: AtenNode, x: SSAValue, dim: int, index: SSAValue, source: SSAValue, how: str
) -> SSAValue:
    if math.prod(shape_of(source)) == 0 or math.prod(shape_of(x)) == 0:
        return x
    if not shape_of(x):
        x, source = n.reshape(x, [1]), n.reshape(source, [1])
    k, rank = axis(dim, len(shape_of(x))), len(shape_of(x))
    front = [k, *(j for j in range(rank) if j != k)]
    back = [front.index(j) for j in range(rank)]
    at = n.reshape(positions(n, index), [math.prod(shape_of(index))])
    source = n.reshape(
        source, [shape_of(at)[0] if j == k else m for j, m in enumerate(shape_of(x))]
    )
    found = _rows(n, n.transpose(x, front), [at], n.transpose(source, front), how)
    return n.reshape(n.transpose(found, back), n.shape)


def index_add(
    n: AtenNode, x: SSAValue, dim: int, index: SSAValue, source: SSAValue, *, alpha: Number = 1
) -> SSAValue:
    """Slices added at positions of a dim."""
    if alpha != 1:
        source = n.op("mul", source, n.literal(alpha, source))
    return _along(n, x, dim, index, source, "add")


def index_copy(n: AtenNode, x: SSAValue, dim: int, index: SSAValue, source: SSAValue) -> SSAValue:
    """Slices put at positions of a dim."""
    return _along(n, x, dim, index, source, "none")


def index_put(
    n: AtenNode, x: SSAValue, indices: Sequence[SSAValue | None], values: SSAValue,
    accumulate: bool = False, unsafe: bool = False,
) -> SSAValue:  # fmt: skip
    """`x[indices] = values`: slices put, or added, at positions of several dims."""
    given = [k for k, value in enumerate(indices) if value is not None]
    found = [value for value in indices if value is not None]
    if any(is_bool(element_of(v)) for v in found):
        return _where(n, x, found, values, accumulate, given)
    parts = n.together(*(n.cast(positions(n, v), i64) for v in found))
    rank, batch = len(shape_of(x)), list(shape_of(parts[0]))
    rest = [k for k in range(rank) if k not in given]
    near = given == list(range(given[0], given[0] + len(given)))
    first = given[0] if near else 0  # where x[indices] has the dims of the positions
    sizes = [shape_of(x)[k] for k in rest]
    if 0 in (*batch, *shape_of(x)):
        return x
    updates = n.expand(values, [*sizes[:first], *batch, *sizes[first:]])
    middle = list(range(first, first + len(batch)))
    others = [k for k in range(len(batch) + len(rest)) if k not in middle]
    updates = n.transpose(updates, [*middle, *others])
    order = [*given, *rest]
    rows = _rows(n, n.transpose(x, order), parts, updates, "add" if accumulate else "none")
    return n.transpose(rows, [order.index(k) for k in range(rank)])


def _where(
    n: AtenNode, x: SSAValue, found: Sequence[SSAValue], values: SSAValue, accumulate: bool,
    given: Sequence[int],
) -> SSAValue:  # fmt: skip
    """`x[mask] = value`."""
    (mask, *more) = found
    shape = shape_of(x)
    if accumulate or more or given != [0] or math.prod(shape_of(values)) != 1:
        raise UnsupportedAten("positions depend on data")
    mask = n.reshape(mask, [*shape_of(mask), *[1] * (len(shape) - len(shape_of(mask)))])
    value = n.expand(n.reshape(n.cast(values, n.element), []), shape)
    return n.op("where", n.expand(mask, shape), value, x)


def masked_scatter(n: AtenNode, x: SSAValue, mask: SSAValue, source: SSAValue) -> SSAValue:
    """Where the mask is, the next elements of the source."""
    if 0 in n.shape or 0 in shape_of(source):
        raise UnsupportedAten("a scatter of nothing")
    flat = n.reshape(n.cast(n.expand(mask, n.shape), i64), [math.prod(n.shape)])
    type_ = tensor(shape_of(flat), i64)
    (count,) = n.onnx("CumSum", [flat, n.scalar(0, i64)], [type_])
    at = n.op("sub", count, n.literal(1, count))
    at = n.op("max", at, n.literal(0, at))
    rows = n.reshape(source, [math.prod(shape_of(source))])
    picked = n.reshape(n.op("gather", rows, at, axis=0), n.shape)
    x, mask = n.expand(x, n.shape), n.expand(mask, n.shape)
    return n.op("where", mask, n.cast(picked, n.element), x)


def histc(n: AtenNode, x: SSAValue, bins: int = 100, min: Number = 0, max: Number = 0) -> SSAValue:
    """How many elements lie in each of so many equal parts of [min, max]."""
    if min >= max:
        raise UnsupportedAten("the range of a histogram depends on data")
    if not is_float(n.element) or is_half(n.element) or is_symbolic(shape_of(x)):
        raise UnsupportedAten("a histogram of such numbers")
    x = n.reshape(x, [math.prod(shape_of(x))])
    zero, low = n.literal(0, x), n.literal(min, x)
    inside = n.op("and", n.op("greater_equal", x, low), n.op("less_equal", x, n.literal(max, x)))
    part = n.op("mul", n.op("sub", x, low), n.literal(bins, x))
    part = n.op("div", part, n.literal(max - min, x))
    part = n.op("where", inside, n.op("min", part, n.literal(bins - 1, x)), zero)
    one = n.cast(inside, n.element)
    start = n.expand(n.scalar(0, n.element), [bins])
    return _elements(n, start, 0, n.cast(part, i64), one, "add")


def sort(n: AtenNode, x: SSAValue, dim: int = -1, descending: bool = False) -> list[SSAValue]:
    """Elements of a dim in order, and their positions; equal ones keep their order."""
    if not shape_of(x):
        return [x, n.scalar(0, i64)]
    k = axis(dim, len(shape_of(x)))
    return list(n.ranked(x, k, shape_of(x)[k], descending))


def sort_stable(
    n: AtenNode, x: SSAValue, *, stable: bool | None = None, dim: int = -1,
    descending: bool = False,
) -> list[SSAValue]:  # fmt: skip
    """As `sort`."""
    return sort(n, x, dim, descending)


def topk(
    n: AtenNode, x: SSAValue, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> list[SSAValue]:
    """The greatest or least elements of a dim, and their positions."""
    if not shape_of(x):
        return [x, n.scalar(0, i64)] if k else [n.expand(v, [0]) for v in (x, n.scalar(0, i64))]
    return list(n.ranked(x, axis(dim, len(shape_of(x))), k, largest))


TABLE: dict[str, Converter] = {
    **dict.fromkeys(("scatter.src", "scatter.value"), scatter),
    "scatter_add.default": scatter_add,
    "scatter_reduce.two": scatter_reduce,
    "index_add.default": index_add,
    "index_copy.default": index_copy,
    "index_put.default": index_put,
    "masked_scatter.default": masked_scatter,
    "sort.default": sort,
    "sort.stable": sort_stable,
    "topk.default": topk,
    "histc.default": histc,
}
