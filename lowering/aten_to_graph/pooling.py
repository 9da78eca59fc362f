"""Pools and interpolation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.types import Array, element_of, is_float, shape_of, to_numpy
from .aten import UnsupportedAten
from .node import AtenNode, Converter


def _filled(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def _pooled(
    n: AtenNode, op: str, x: SSAValue, rank: int, kernel: Sequence[int], stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], **more: bool,
) -> SSAValue:  # fmt: skip
    """A pool; images without a batch dim are given one."""
    shape = shape_of(x)
    if len(shape) == rank + 1:
        x = n.reshape(x, [1, *shape])
    window = _filled(kernel, rank)
    y = n.op(
        op,
        x,
        kernel=window,
        strides=_filled(stride, rank) if stride else window,
        pads=_filled(padding, rank) * 2,
        dilations=_filled(dilation, rank),
        **more,
    )
    return n.reshape(y, n.shape)


def max_pool(rank: int) -> Converter:
    """The greatest element of each window; its position, the second result, is not computed."""

    def convert(
        n: AtenNode, x: SSAValue, kernel: Sequence[int], stride: Sequence[int] = (),
        padding: Sequence[int] = (0,), dilation: Sequence[int] = (1,), ceil_mode: bool = False,
    ) -> list[SSAValue]:  # fmt: skip
        where = (kernel, stride, padding, dilation)
        return [_pooled(n, "max_pool", x, rank, *where, ceil_mode=ceil_mode)]

    return convert


def avg_pool(rank: int) -> Converter:
    """The mean of each window."""

    def convert(
        n: AtenNode, x: SSAValue, kernel: Sequence[int], stride: Sequence[int] = (),
        padding: Sequence[int] = (0,), ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> SSAValue:  # fmt: skip
        if divisor_override is not None:
            raise UnsupportedAten("a divisor of its own")
        how = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
        return _pooled(n, "avg_pool", x, rank, kernel, stride, padding, (1,), **how)

    return convert


def adaptive_avg_pool(rank: int) -> Converter:
    """Means of windows of almost one size, dim by dim."""

    def convert(n: AtenNode, x: SSAValue, size: Sequence[int]) -> SSAValue:
        first = len(shape_of(x)) - rank
        extents = shape_of(x)[first:]
        if all(out and extent % out == 0 for extent, out in zip(extents, size, strict=True)):
            kernel = [extent // out for extent, out in zip(extents, size, strict=True)]
            if list(size) == [1] * rank:
                found = list(range(first, first + rank))
                return n.op("reduce_mean", x, axes=found, keep_dims=True)
            return _pooled(n, "avg_pool", x, rank, kernel, kernel, (0,), (1,))
        for k, out in enumerate(size):
            x = _weighed(n, x, first + k, _means(extents[k], out))
        return x

    return convert


def _means(extent: int, out: int) -> Array:
    """Weights [extent, out] of the means that adaptive pooling takes along a dim."""
    matrix = np.zeros((extent, out))
    for k in range(out):
        start, end = k * extent // out, -(-(k + 1) * extent // out)
        matrix[start:end, k] = 1.0 / (end - start)
    return matrix


def _weighed(n: AtenNode, x: SSAValue, axis: int, matrix: Array) -> SSAValue:
    """Sums along a dim, weighed by the columns of a matrix."""
    if not is_float(element_of(x)):
        raise UnsupportedAten("operands must be floats")
    shape, rank = shape_of(x), len(shape_of(x))
    perm = [*(k for k in range(rank) if k != axis), axis]
    rows = n.transpose(x, perm)
    lead = shape_of(rows)[:-1]
    flat = n.reshape(rows, [math.prod(lead), shape[axis]])
    weights = n.data(matrix.astype(to_numpy(element_of(x))))
    y = n.reshape(n.op("matmul", flat, weights), [*lead, matrix.shape[1]])
    return n.transpose(y, [perm.index(k) for k in range(rank)])


def nearest(rank: int, exact: bool = False) -> Converter:
    """Each result is the element at its position, scaled and rounded down."""

    def convert(n: AtenNode, x: SSAValue, size: Sequence[int], *scales: float | None) -> SSAValue:
        for k in range(rank):
            extent, out = shape_of(x)[k + 2], n.shape[k + 2]
            given = scales[k] if k < len(scales) else None
            scale = np.float32(extent / out if not given else 1.0 / given)
            at = np.arange(out, dtype=np.float32) + (np.float32(0.5) if exact else np.float32(0))
            found = np.minimum(np.floor(at * scale).astype(np.int64), extent - 1)
            x = _repeat(n, x, k + 2, found)
        return x

    return convert


def _repeat(n: AtenNode, x: SSAValue, axis: int, at: Array) -> SSAValue:
    """Elements at positions: a broadcast where each is repeated equally often, else a gather."""
    shape = shape_of(x)
    times = len(at) // shape[axis] if shape[axis] else 0
    if times and np.array_equal(at, np.repeat(np.arange(shape[axis]), times)):
        lifted = n.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
        spread = n.expand(lifted, [*shape[: axis + 1], times, *shape[axis + 1 :]])
        return n.reshape(spread, [*shape[:axis], len(at), *shape[axis + 1 :]])
    return n.take(x, axis, at)


def linear(rank: int) -> Converter:
    """Weighed sums of the two neighbours along each dim."""

    def convert(
        n: AtenNode, x: SSAValue, size: Sequence[int], align_corners: bool, *scales: float | None
    ) -> SSAValue:
        for k in range(rank):
            extent, out = shape_of(x)[k + 2], n.shape[k + 2]
            if extent == out:
                continue
            given = scales[k] if k < len(scales) else None
            x = _weighed(n, x, k + 2, _neighbours(extent, out, align_corners, given))
        return x

    return convert


def _neighbours(extent: int, out: int, align: bool, given: float | None) -> Array:
    """Weights [extent, out] of linear interpolation along a dim."""
    k = np.arange(out, dtype=np.float64)
    if align:
        at = k * ((extent - 1) / (out - 1)) if out > 1 else np.zeros(out)
    else:
        at = np.maximum((k + 0.5) * (1.0 / given if given else extent / out) - 0.5, 0.0)
    low = np.minimum(np.floor(at).astype(np.int64), extent - 1)
    high, part = np.minimum(low + 1, extent - 1), at - low
    matrix = np.zeros((extent, out))
    columns = np.arange(out)
    np.add.at(matrix, (low, columns), 1.0 - part)
    np.add.at(matrix, (high, columns), part)
    return matrix


TABLE: dict[str, Converter] = {
    "max_pool2d_with_indices.default": max_pool(2),
    "max_pool3d_with_indices.default": max_pool(3),
    **{f"avg_pool{k}d.default": avg_pool(k) for k in (1, 2, 3)},
    "_adaptive_avg_pool2d.default": adaptive_avg_pool(2),
    "_adaptive_avg_pool3d.default": adaptive_avg_pool(3),
    **{f"upsample_nearest{k}d.default": nearest(k) for k in (1, 2, 3)},
    **{f"_upsample_nearest_exact{k}d.default": nearest(k, exact=True) for k in (1, 2, 3)},
    "upsample_linear1d.default": linear(1),
    "upsample_bilinear2d.default": linear(2),
}
