"""Reductions along axes, positions of extrema, running sums."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import f64, i32
from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.types import element_of, is_bool, is_float, is_signed_int, shape_of, to_numpy
from .elementwise import Converter
from .node import OnnxNode
from .values import NotNative

# The operand is an attribute before these opsets, an input from them on.
_AXES_AS_INPUT = {"ReduceSum": 13}
# Longer axes are scanned (lowering/node_to_nest/scans.py); shorter ones are seen by optimisations.
_PREFIX_LIMIT = 32


def axes_of(node: OnnxNode) -> list[int] | None:
    """Sorted axes to reduce; None if the op is the identity (no axes, noop_with_empty_axes)."""
    rank = len(node.shape(0))
    if node.version >= _AXES_AS_INPUT.get(node.op_type, 18):
        given = node.constant_ints(1, "axes") if node.has(1) else []
    else:
        given = node.ints("axes", [])
    if given:
        return node.axes(given, rank)
    return None if node.flag("noop_with_empty_axes") else list(range(rank))


def reduce(node: OnnxNode, op: str, x: SSAValue) -> SSAValue:
    """Apply a graph reduction with the node's axes."""
    axes = axes_of(node)
    if axes is None:
        return x
    return node.build.op(op, x, axes=axes, keep_dims=node.flag("keepdims", True))


def plain(op: str) -> Converter:
    """A reduction that is one graph op; booleans are reduced as integers."""

    def convert(node: OnnxNode) -> list[SSAValue]:
        x = node[0]
        if is_bool(element_of(x)):
            found = reduce(node, op, node.cast(x, i32))
            return [node.build.greater(found, node.literal(0, found))]
        return [reduce(node, op, x)]

    return convert


def l1(node: OnnxNode) -> list[SSAValue]:
    """Sum of magnitudes."""
    return [reduce(node, "reduce_sum", node.build.abs(node[0]))]


def in_floats(convert: Callable[[OnnxNode, SSAValue], SSAValue]) -> Converter:
    """A reduction in floats; integers are computed as f64, and the result is converted back."""

    def through(node: OnnxNode) -> list[SSAValue]:
        x, element = node[0], element_of(node[0])
        return [node.cast(convert(node, x if is_float(element) else node.cast(x, f64)), element)]

    return through


def l2(node: OnnxNode, x: SSAValue) -> SSAValue:
    """Square root of the sum of squares."""
    return node.build.sqrt(reduce(node, "reduce_sum", node.build.mul(x, x)))


def sum_square(node: OnnxNode) -> list[SSAValue]:
    """Sum of squares."""
    return [reduce(node, "reduce_sum", node.build.mul(node[0], node[0]))]


def log_sum(node: OnnxNode, x: SSAValue) -> SSAValue:
    """Logarithm of the sum."""
    return node.build.log(reduce(node, "reduce_sum", x))


def log_sum_exp(node: OnnxNode, x: SSAValue) -> SSAValue:
    """max + log(sum(exp(x - max))), which does not overflow; without max for an empty operand.

    Where the maximum is infinite nothing is subtracted: the difference would be NaN.
    """
    build, axes = node.build, axes_of(node)
    if axes is None or math.prod(shape_of(x)) == 0:
        return build.log(reduce(node, "reduce_sum", build.exp(x)))
    top = build.reduce_max(x, axes=axes)
    bare = build.equal(build.abs(top), node.literal(math.inf, top))
    top = build.where(bare, node.literal(0, top), top)
    shifted = build.sub(x, build.expand(top, shape_of(x)))
    total = build.reduce_sum(build.exp(shifted), axes=axes)
    result = build.add(top, build.log(total))
    if node.flag("keepdims", True):
        return result
    return node.reshape(result, [n for k, n in enumerate(shape_of(result)) if k not in axes])


def arg_extremum(sign: int) -> Converter:
    """ArgMax (1) and ArgMin (-1): the first, or the last with select_last_index."""

    def convert(node: OnnxNode) -> list[SSAValue]:
        x, build = node[0], node.build
        if not is_float(element_of(x)) and not is_signed_int(element_of(x)):
            raise NotNative
        shape = shape_of(x)
        axis = node.axis(node.int("axis", 0), len(shape))
        if sign < 0:  # of integers not x: the least one has no negative
            whole = not is_float(element_of(x))
            x = build.sub(node.literal(-1, x), x) if whole else build.neg(x)
        last = node.flag("select_last_index")
        found = build.arg_max(reversed_along(node, x, axis) if last else x, axis=axis)
        if last:
            found = build.sub(node.literal(shape[axis] - 1, found), found)
        keep = node.flag("keepdims", True)
        return [found if keep else node.reshape(found, [*shape[:axis], *shape[axis + 1 :]])]

    return convert


def reversed_along(node: OnnxNode, x: SSAValue, axis: int) -> SSAValue:
    """x with the order along one axis reversed."""
    shape = shape_of(x)
    if shape[axis] == 0:
        return x
    starts = [n - 1 if k == axis else 0 for k, n in enumerate(shape)]
    steps = [-1 if k == axis else 1 for k in range(len(shape))]
    return node.build.slice(x, starts=starts, sizes=list(shape), steps=steps)


def cum_sum(node: OnnxNode) -> list[SSAValue]:
    """Sums of prefixes. Integers use a product with a triangular matrix of ones along the axis.

    For floats that would be wrong: zero times a later infinity is NaN.
    """
    x = node[0]
    if is_float(element_of(x)):
        return [_over_prefixes(node, node.build.reduce_sum, 0)]
    axis, n, kept = _triangle(node)
    if n > _PREFIX_LIMIT:
        raise NotNative
    return [along_axis(node, x, axis, kept.astype(to_numpy(element_of(x))))]


def cum_prod(node: OnnxNode) -> list[SSAValue]:
    """Products of prefixes: a reduction of the operand with ones beyond each prefix."""
    return [_over_prefixes(node, node.build.reduce_prod, 1)]


def _triangle(node: OnnxNode) -> tuple[int, int, np.ndarray]:
    """The axis, its extent n, and for n prefixes (columns) which of n elements (rows) they have."""
    shape = node.shape(0)
    if not shape:
        raise NotNative
    axis = node.axis(node.constant_int(1, "the axis"), len(shape))
    kept = np.triu(np.ones((shape[axis],) * 2, np.bool_), 1 if node.flag("exclusive") else 0)
    return axis, shape[axis], kept.T if node.flag("reverse") else kept


def _over_prefixes(node: OnnxNode, reduction: Callable[..., SSAValue], neutral: int) -> SSAValue:
    """Reduce each prefix along the axis: a new dim after it, `neutral` beyond the prefix."""
    x, build = node[0], node.build
    axis, n, mask = _triangle(node)
    if n > _PREFIX_LIMIT:
        raise NotNative
    shape = shape_of(x)
    full = [*shape[: axis + 1], n, *shape[axis + 1 :]]
    dims = [*range(axis + 1), *range(axis + 2, len(full))]
    spread = build.broadcast(x, shape=full, dims=dims)
    kept = node.data(mask.reshape([n, n] + [1] * (len(shape) - axis - 1)), "mask")
    rest = node.literal(neutral, spread)
    parts = build.where(build.expand(kept, full), spread, rest)
    return reduction(parts, axes=[axis], keep_dims=False)


def along_axis(node: OnnxNode, x: SSAValue, axis: int, matrix: np.ndarray) -> SSAValue:  # pyright: ignore
    """x with dim `axis` multiplied from the right by a constant matrix [n, m]."""
    shape = shape_of(x)
    if len(matrix) != shape[axis]:
        raise UserError("the matrix does not fit the axis", expected=shape[axis], found=len(matrix))
    order = [k for k in range(len(shape)) if k != axis] + [axis]
    moved = node.transpose(x, order)
    rows = math.prod(shape_of(moved)[:-1])
    flat = node.reshape(moved, [rows, shape[axis]])
    product = node.build.matmul(flat, node.data(matrix, f"axis{axis}"))
    back = node.reshape(product, [*shape_of(moved)[:-1], matrix.shape[1]])
    return node.transpose(back, [order.index(k) for k in range(len(shape))])
