"""Constants, and ops that move data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from ...dialects.types import Array, element_of, is_float, shape_of
from .node import Converter, HloNode


def constant(n: HloNode) -> SSAValue:
    """A literal: one number broadcast, or a weight if large."""
    array: Array = n.attr("value")
    first = array.ravel()[:1]
    if array.size > 1 and array.strides == (0,) * array.ndim:
        return n.expand(n.build.constant(first.reshape([]), n.element), n.shape)
    if array.size <= 16:
        return n.build.constant(np.array(array), n.element)
    return n.build.weight(f"constant.{len(n.build.weights)}", np.array(array))


def iota(n: HloNode) -> SSAValue:
    """Positions along a dim."""
    axis = n.number("dim", "iota_dimension")
    return n.along(n.iota(n.shape[axis], n.element), n.shape, axis)


def broadcast_in_dim(n: HloNode) -> SSAValue:
    """Operand dim k becomes result dim `dims[k]`, which may be in any order."""
    dims, x = n.ints("dims", "broadcast_dimensions"), n[0]
    if len(dims) != len(shape_of(x)):
        raise n.refusal("there is one result dim for each operand dim")
    order = sorted(range(len(dims)), key=lambda k: dims[k])
    return n.broadcast(n.transpose(x, order), n.shape, [dims[k] for k in order])


def reshape(n: HloNode) -> SSAValue:
    """The same elements under another shape."""
    return n.reshape(n[0], n.shape)


def transpose(n: HloNode) -> SSAValue:
    """Result dim k is operand dim `dims[k]`."""
    perm = n.ints("dims", "permutation")
    if sorted(perm) != list(range(len(shape_of(n[0])))):
        raise n.refusal("each operand dim is named once", found=perm)
    return n.transpose(n[0], perm)


def slice_(n: HloNode) -> SSAValue:
    """Elements from starts on, in strides."""
    starts = n.ints("start_indices")
    steps = n.ints("strides", default=[1] * len(starts))
    return _sliced(n, n[0], starts, n.shape, steps)


def _sliced(
    n: HloNode, x: SSAValue, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]
) -> SSAValue:
    if shape_of(x) == tuple(sizes) and not any(starts):
        return x
    return n.op("slice", x, starts=list(starts), sizes=list(sizes), steps=list(steps))


def reverse(n: HloNode) -> SSAValue:
    """The elements of dims from the last to the first."""
    return reversed_(n, n[0], n.ints("dims", "dimensions"))


def reversed_(n: HloNode, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    """As `reverse`, of a value."""
    shape = shape_of(x)
    turned = [k for k in dims if shape[k] > 1]
    if not turned:
        return x
    starts = [shape[k] - 1 if k in turned else 0 for k in range(len(shape))]
    steps = [-1 if k in turned else 1 for k in range(len(shape))]
    return n.op("slice", x, starts=starts, sizes=list(shape), steps=steps)


def concatenate(n: HloNode) -> SSAValue:
    """Operands one after another along a dim."""
    axis = n.number("dim", "dimension")
    return n[0] if len(n.operands) == 1 else n.op("concat", *n.operands, axis=axis)


def pad(n: HloNode) -> SSAValue:
    """Edges, which crop where negative, and values between elements."""
    low, high = n.ints("low", "edge_padding_low"), n.ints("high", "edge_padding_high")
    inner = n.ints("interior", "interior_padding", default=[0] * len(low))
    number = n.number_of(n[1])
    simple = is_float(n.element) or (number is not None and abs(number) < 1 << 53)
    if number is not None and simple and str(n.element) != "i1":
        return padded(n, n[0], low, high, inner, float(number))
    marks = n.op("cast", n.expand(n.scalar(1, i64), shape_of(n[0])), to=i64)
    inside = n.op(
        "equal", padded(n, marks, low, high, inner, 0.0), n.expand(n.scalar(1, i64), n.shape)
    )
    if element_of(n[0]) == i1:
        data = n.cast(padded(n, n.op("cast", n[0], to=i64), low, high, inner, 0.0), i1)
    else:
        data = padded(n, n[0], low, high, inner, 0.0)
    return n.op("where", inside, data, n.expand(n[1], n.shape))


def padded(
    n: HloNode,
    x: SSAValue,
    low: Sequence[int],
    high: Sequence[int],
    inner: Sequence[int],
    fill: float,
) -> SSAValue:
    """As `pad`, with a number."""
    for axis, between in enumerate(inner):
        size = shape_of(x)[axis]
        if between and size > 1:
            x = _spread(n, x, axis, between, fill)
    if not any(low) and not any(high):
        return x
    return n.op("pad", x, pads=[*low, *high], fill=fill)


def _spread(n: HloNode, x: SSAValue, axis: int, between: int, fill: float) -> SSAValue:
    """Put so many values between the elements of a dim."""
    shape = shape_of(x)
    split = [*shape[: axis + 1], 1, *shape[axis + 1 :]]
    pads = [0] * (2 * len(split))
    pads[len(split) + axis + 1] = between
    wide = n.op("pad", n.reshape(x, split), pads=pads, fill=fill)
    merged = [*shape[:axis], shape[axis] * (between + 1), *shape[axis + 1 :]]
    return n.slice(n.reshape(wide, merged), axis, 0, merged[axis] - between)


def identity(n: HloNode) -> Sequence[SSAValue]:
    """The operands themselves."""
    return n.operands


def dimension_size(n: HloNode) -> SSAValue:
    """A size, which is fixed."""
    return n.scalar(shape_of(n[0])[n.number("dim", "dimension")], n.element)


TABLE: dict[str, Converter] = {
    "stablehlo.constant": constant,
    "stablehlo.iota": iota,
    "stablehlo.broadcast_in_dim": broadcast_in_dim,
    "stablehlo.reshape": reshape,
    "stablehlo.transpose": transpose,
    "stablehlo.slice": slice_,
    "stablehlo.reverse": reverse,
    "stablehlo.concatenate": concatenate,
    "stablehlo.pad": pad,
    "stablehlo.optimization_barrier": identity,
    "stablehlo.get_dimension_size": dimension_size,
}
