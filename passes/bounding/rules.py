"""How padding passes each op of the graph dialect.

A rule builds what an op gives; the rows that count are as without padding, the others are anything.
It looks at two things: whether rows that count would read padding (then a number that changes
nothing stands there first), and where padding is known to be zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from ...dialects.errors import UndecidedExtent
from ...dialects.graph import GraphOp
from ...dialects.types import byte_width, element_of, is_float, shape_of
from .moving import concat, reshape, slice_, split
from .padding import PaddedOp, Padding, greatest, least

Rule: TypeAlias = "Callable[[PaddedOp], Sequence[SSAValue]]"


def bounded_op(op: GraphOp, operands: Sequence[SSAValue], padding: Padding) -> Sequence[SSAValue]:
    """The results of an op in the bounded program.

    Raises:
        NotBounded: no rule says how padding passes it.
    """
    reading = PaddedOp(op, operands, padding)
    if not reading.any_padded and op.name != "graph.iota":
        return reading.rebuilt()
    rule = RULES.get(op.name.removeprefix("graph."))
    if rule is None:
        raise reading.unfit("padding does not pass it")
    try:
        found = rule(reading)
    except UndecidedExtent as error:
        raise reading.unfit(error.message) from error
    for value, dims in zip(found, reading.results, strict=True):
        if shape_of(value) != tuple(dim.size for dim in dims):
            raise reading.unfit("at the bound it gives another shape")
    return found


# --- along the dims ---


def _points(reading: PaddedOp) -> Sequence[SSAValue]:
    """Each element by itself. Zeros stay where the function of zeros is zero."""
    name, padding = reading.op.name.removeprefix("graph."), reading.padding
    if name == "div" and not is_float(element_of(reading.operands[1])):
        reading.fill(1, reading.padded(1), 1)
    (found,) = reading.rebuilt()
    if name in _KEEP_ZERO:
        chosen = reading.operands[1:] if name == "where" else reading.operands
        for k in reading.padded(0):
            if all(padding.is_zeros(x, k) for x in chosen):
                padding.zeros.add((found, k))
    return [found]


def _transpose(reading: PaddedOp) -> Sequence[SSAValue]:
    (found,) = reading.rebuilt()
    zeros = reading.padding.zeros
    for k, own in enumerate(reading.op.ints("perm")):
        if (reading.operands[0], own) in zeros:
            zeros.add((found, k))
    return [found]


def _broadcast(reading: PaddedOp) -> Sequence[SSAValue]:
    (found,) = reading.rebuilt()
    zeros = reading.padding.zeros
    for own, k in enumerate(reading.op.ints("dims")):
        if (reading.operands[0], own) in zeros and reading.dims[0][own] == reading.dim[k]:
            zeros.add((found, k))
    return [found]


def _pad(reading: PaddedOp) -> Sequence[SSAValue]:
    """What is behind the rows that count is the fill, as far as the op pads and further."""
    if any(not isinstance(n, int) for n in reading.op.value("pads")):
        raise reading.unfit("its pads are symbols")
    reading.fill(0, reading.padded(0), reading.op.value("fill"))
    return reading.rebuilt()


# --- across the dims ---


def _across(reading: PaddedOp, axes: Sequence[int], number: Callable[[SSAValue], Any]) -> None:
    """Put a number in the padding of the axes that an op looks across."""
    dims = {k: dim for k, dim in reading.padded(0).items() if k in axes}
    reading.fill(0, dims, number(reading.operands[0]))


def _reduction(number: Callable[[SSAValue], Any]) -> Rule:
    def rule(reading: PaddedOp) -> Sequence[SSAValue]:
        _across(reading, reading.op.ints("axes"), number)
        return reading.rebuilt()

    return rule


def _mean(reading: PaddedOp) -> Sequence[SSAValue]:
    """The sum by the number of elements that count, in a type that holds the sum."""
    op, build, axes = reading.op, reading.build, reading.op.ints("axes")
    if not any(k in reading.padded(0) for k in axes):
        return reading.rebuilt()
    _across(reading, axes, lambda _: 0)
    (x,), element = reading.operands, element_of(reading.operands[0])
    wide = i64 if not is_float(element) else f32 if byte_width(element) < 4 else element
    x = x if element == wide else build.cast(x, to=wide)
    total = build.reduce_sum(x, axes=list(axes), keep_dims=op.value("keep_dims"))
    padding, dims = reading.padding, reading.dims[0]
    count = padding.number(math.prod(dims[k].count or dims[k].size for k in axes))
    count = count if wide == i64 else build.cast(count, to=wide)
    found = build.div(total, build.expand(count, shape_of(total)))
    return [found if element == wide else build.cast(found, to=element)]


def _along_axis(number: Callable[[SSAValue], Any]) -> Rule:
    def rule(reading: PaddedOp) -> Sequence[SSAValue]:
        axis = reading.op.value("axis")
        _across(reading, [axis], number)
        found = reading.rebuilt()
        if reading.op.name == "graph.softmax" and axis in reading.padded(0):
            reading.padding.zeros.add((found[0], axis))  # exp(-inf)
        return found

    return rule


def _layer_norm(reading: PaddedOp) -> Sequence[SSAValue]:
    if any(k >= reading.op.value("axis") for k in reading.padded(0)):
        raise reading.unfit("it normalises a padded dim")
    return reading.rebuilt()


def _planes(reading: PaddedOp) -> Sequence[SSAValue]:
    """Of images one by one, with no padding inside."""
    if any(k != 0 for k in reading.padded(0)):
        raise reading.unfit("images are padded")
    return reading.rebuilt()


def _matmul(reading: PaddedOp) -> Sequence[SSAValue]:
    """A dim that is summed over has zeros in the padding of both operands."""
    op = reading.op
    for k, turned in enumerate((op.value("transpose_a"), op.value("transpose_b"))):
        rank = len(reading.dims[k])
        summed = rank - (1 if (k == 0) != turned else 2)
        reading.fill(k, {j: d for j, d in reading.padded(k).items() if j == summed}, 0)
    return reading.rebuilt()


def _windows(number: Callable[[SSAValue], Any]) -> Rule:
    """Windows over images: one that reaches over the end reads what stands outside an image."""

    def rule(reading: PaddedOp) -> Sequence[SSAValue]:
        if any(reading.padded(k) for k in range(1, len(reading.operands))) or 1 in reading.padded(
            0
        ):
            raise reading.unfit("channels or kernels are padded")
        _across(reading, range(2, len(reading.dims[0])), number)
        return reading.rebuilt()

    return rule


def _avg_pool(reading: PaddedOp) -> Sequence[SSAValue]:
    """No window that counts reaches over the end, unless pads let it."""
    reaches = any(reading.op.ints("pads")) or reading.op.value("ceil_mode")
    if reaches and any(k > 1 for k in reading.padded(0)):
        raise reading.unfit("windows count the pixels inside an image of padded size")
    return reading.rebuilt()


# --- positions ---


def _gather(reading: PaddedOp) -> Sequence[SSAValue]:
    """Indices are checked against the rows that count, and negative ones counted from their end."""
    build, padding, axis = reading.build, reading.padding, reading.op.value("axis")
    reading.fill(1, reading.padded(1), 0)
    dim, index = reading.dims[0][axis], reading.operands[1]
    if dim.count is not None:
        shape, element = shape_of(index), element_of(index)
        count = build.expand(build.cast(padding.count(dim), to=element), shape)
        zero = build.expand(padding.scalar(0, element), shape)
        beyond = build.expand(padding.scalar(dim.size, element), shape)
        index = build.where(build.less(index, zero), build.add(index, count), index)
        outside = build.or_(build.less(index, zero), build.greater_equal(index, count))
        reading.operands[1] = build.where(outside, beyond, index)
    return reading.rebuilt()


def _iota(reading: PaddedOp) -> Sequence[SSAValue]:
    """Numbers from a start that may be an expression over symbols."""
    op, build, padding = reading.op, reading.build, reading.padding
    (start,), (step,) = op.value("start"), op.value("step")
    if not isinstance(step, int):
        raise reading.unfit("its step is a symbol")
    size = reading.dim[0].size
    if isinstance(start, int):
        return [build.iota(start=[start], size=[size], step=[step])]
    first = build.expand(padding.number(start.expr), [size])
    places = build.iota(start=[0], size=[size], step=[step])
    return [build.add(first, places)]


_POINTS = (
    "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan", "atanh", "cast", "ceil", "clip",
    "cos", "cosh", "div", "elu", "equal", "erf", "exp", "floor", "greater", "greater_equal",
    "hard_sigmoid", "is_nan", "leaky_relu", "less", "less_equal", "log", "max", "min", "mul", "neg",
    "not", "or", "pow", "reciprocal", "relu", "round", "sigmoid", "sign", "sin", "sinh", "softplus",
    "sqrt", "sub", "tan", "tanh", "where", "xor", "batch_norm",
)  # fmt: skip
_KEEP_ZERO = (
    "abs", "add", "asin", "asinh", "atan", "atanh", "cast", "ceil", "elu", "erf", "floor",
    "leaky_relu", "max", "min", "mul", "neg", "relu", "round", "sign", "sin", "sinh", "sqrt", "sub",
    "tan", "tanh", "where",
)  # fmt: skip

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(_POINTS, _points),
    "transpose": _transpose,
    "broadcast": _broadcast,
    "concat": concat,
    "slice": slice_,
    "split": split,
    "reshape": reshape,
    "pad": _pad,
    "reduce_sum": _reduction(lambda _: 0),
    "reduce_prod": _reduction(lambda _: 1),
    "reduce_max": _reduction(least),
    "reduce_min": _reduction(greatest),
    "reduce_mean": _mean,
    **dict.fromkeys(("softmax", "log_softmax", "arg_max"), _along_axis(least)),
    "layer_norm": _layer_norm,
    "instance_norm": _planes,
    "lrn": _planes,
    "matmul": _matmul,
    **dict.fromkeys(("conv", "conv_transpose"), _windows(lambda _: 0)),
    "max_pool": _windows(least),
    "avg_pool": _avg_pool,
    "gather": _gather,
    "iota": _iota,
}

__all__ = ["RULES", "bounded_op"]
