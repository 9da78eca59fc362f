"""Pools with positions, dilations, ceil_mode and automatic pads; regions of interest.

onnx.reference fails on automatic pads, forgets dilations and strides in them, counts positions of
column-major storage wrongly and has neither GlobalLpPool nor MaxRoiPool.

Source: ONNX operators AveragePool, LpPool, MaxPool, Global*Pool, MaxRoiPool, RoiAlign (10, 16).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall


@dataclass(frozen=True)
class _Windows:
    """Every window of an operand [N, C, spatial..], flattened: [N, C, out.., kernel size]."""

    values: Array
    inside: Array  # which elements are the operand's: [out.., kernel size]
    padded: Array  # which are the operand's or padding, not beyond it by ceil_mode
    positions: Array  # row-major positions within the spatial dims
    coordinates: list[Array]  # positions along each spatial dim


def _windows(call: NodeCall) -> _Windows:
    x = call[0]
    size = x.shape[2:]
    rank = len(size)
    kernel = list(call.get("kernel_shape"))
    strides = list(call.get("strides") or [1] * rank)
    dilations = list(call.get("dilations") or [1] * rank)
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    out, begins, ends = _extent(call, size, strides, extents)
    starts = [np.arange(o) * s - b for o, s, b in zip(out, strides, begins, strict=True)]
    lines = [
        start[:, None] + np.arange(k) * d
        for start, k, d in zip(starts, kernel, dilations, strict=True)
    ]
    grids = [_spread(line, k, rank) for k, line in enumerate(lines)]
    shape = (*out, *kernel)
    flat = (*out, math.prod(kernel))
    inside = np.ones(shape, bool)
    padded = np.ones(shape, bool)
    positions = np.zeros(shape, np.int64)
    clipped: list[Array] = []
    for grid, n, begin, end in zip(grids, size, begins, ends, strict=True):
        inside = inside & (grid >= 0) & (grid < n)
        padded = padded & (grid >= -begin) & (grid < n + end)
        clipped.append(np.broadcast_to(np.clip(grid, 0, max(n - 1, 0)), shape))
        positions = positions * n + clipped[-1]
    rows = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))  # -1 has no value without images
    values = rows[:, :, positions.reshape(-1)].reshape(*x.shape[:2], *flat)
    return _Windows(
        values,
        inside.reshape(flat),
        padded.reshape(flat),
        positions.reshape(flat),
        [c.reshape(flat) for c in clipped],
    )


def _spread(line: Array, k: int, rank: int) -> Array:
    """[out, kernel] of dim k as [1.., out, 1.., kernel, 1..]."""
    shape = [1] * (2 * rank)
    shape[k], shape[rank + k] = line.shape
    return line.reshape(shape)


def _extent(
    call: NodeCall, size: Sequence[int], strides: Sequence[int], extents: Sequence[int]
) -> tuple[list[int], list[int], list[int]]:
    """Output extents, pads at the beginning, pads at the end."""
    mode, rank = call.get("auto_pad", "NOTSET"), len(size)
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        out = [-(-n // s) for n, s in zip(size, strides, strict=True)]
        total = [
            max((o - 1) * s + e - n, 0)
            for o, s, e, n in zip(out, strides, extents, size, strict=True)
        ]
        less, more = [t // 2 for t in total], [t - t // 2 for t in total]
        return (out, less, more) if mode == "SAME_UPPER" else (out, more, less)
    pads = [0] * (2 * rank) if mode == "VALID" else list(call.get("pads") or [0] * (2 * rank))
    out = []
    for n, s, e, begin, end in zip(size, strides, extents, pads[:rank], pads[rank:], strict=True):
        room = n + begin + end - e
        count = (-(-room // s) if call.get("ceil_mode", 0) and mode != "VALID" else room // s) + 1
        if call.get("ceil_mode", 0) and (count - 1) * s >= n + begin:
            count -= 1  # a window that would start in the padding at the end
        out.append(count)
    return out, pads[:rank], pads[rank:]


def _max_pool(call: NodeCall) -> list[Array]:
    w, x = _windows(call), call[0]
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    masked = np.where(w.inside, w.values, np.asarray(lowest).astype(x.dtype))
    # The first element of the window inside the operand, if none exceeds the lowest value.
    order = np.where(w.inside, masked == masked.max(axis=-1, keepdims=True), False)
    chosen = order.argmax(axis=-1)
    spatial = x.shape[2:]
    positions = w.positions
    if call.get("storage_order", 0):
        positions = np.zeros_like(w.positions)
        for c, n in zip(reversed(w.coordinates), reversed(spatial), strict=True):
            positions = positions * n + c
    positions = np.broadcast_to(positions, w.values.shape)
    found = np.take_along_axis(positions, chosen[..., None], axis=-1)[..., 0]
    planes = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * len(spatial))
    y = masked.max(axis=-1)
    return [y, found + planes * math.prod(spatial)][: len(call.wanted)]


def _average_pool(call: NodeCall) -> list[Array]:
    w = _windows(call)
    wide = w.values.astype(np.result_type(w.values.dtype, np.float32))
    counted = w.padded if call.get("count_include_pad", 0) else w.inside
    total = np.where(w.inside, wide, 0).sum(axis=-1)
    return [(total / counted.sum(axis=-1)).astype(w.values.dtype)]


def _lp_pool(call: NodeCall) -> list[Array]:
    w, p = _windows(call), call.get("p", 2)
    wide = w.values.astype(np.result_type(w.values.dtype, np.float32))
    total = np.where(w.inside, np.abs(wide) ** p, 0).sum(axis=-1)
    return [(total ** (1.0 / p)).astype(w.values.dtype)]


def _global_lp_pool(call: NodeCall) -> list[Array]:
    x, p = call[0], call.get("p", 2)
    axes = tuple(range(2, x.ndim))
    wide = x.astype(np.result_type(x.dtype, np.float32))
    return [((np.abs(wide) ** p).sum(axis=axes, keepdims=True) ** (1.0 / p)).astype(x.dtype)]


def _global_max_pool(call: NodeCall) -> list[Array]:
    return [call[0].max(axis=tuple(range(2, call[0].ndim)), keepdims=True)]


# --- regions of interest ---


def _max_roi_pool(call: NodeCall) -> list[Array]:
    """Maxima of the pixels in each bin of each region; 0 where a bin has none."""
    x, rois, scale = call[0], call[1], call.get("spatial_scale", 1.0)
    height, width = call.get("pooled_shape")
    h, w = x.shape[2:]
    found = np.zeros((len(rois), x.shape[1], height, width), x.dtype)
    for k, roi in enumerate(rois):
        left, top, right, bottom = (math.floor(float(v) * scale + 0.5) for v in roi[1:])
        bins = max(bottom - top + 1, 1) / height, max(right - left + 1, 1) / width
        for i, j in itertools.product(range(height), range(width)):
            low, high = math.floor(i * bins[0]) + top, math.ceil((i + 1) * bins[0]) + top
            first, last = math.floor(j * bins[1]) + left, math.ceil((j + 1) * bins[1]) + left
            part = x[int(roi[0]), :, max(low, 0) : min(high, h), max(first, 0) : min(last, w)]
            if part.size:
                found[k, :, i, j] = part.max(axis=(1, 2))
    return [found]


def _roi_align(call: NodeCall) -> list[Array]:
    """Mean or maximum of bilinear samples in each bin of each region."""
    x, rois, batch = call[0], call[1], call[2]
    count = len(rois)
    height, width = call.get("output_height", 1), call.get("output_width", 1)
    found = np.zeros((count, x.shape[1], height, width), x.dtype)
    for k in range(count):
        left, top, roi_width, roi_height = _region(call, rois[k])
        bins = (roi_height / height, roi_width / width)
        ratio = call.get("sampling_ratio", 0)
        samples = [ratio if ratio > 0 else max(math.ceil(b), 1) for b in bins]
        for i, j in itertools.product(range(height), range(width)):
            ys = top + (i + (np.arange(samples[0]) + 0.5) / samples[0]) * bins[0]
            xs = left + (j + (np.arange(samples[1]) + 0.5) / samples[1]) * bins[1]
            terms = _bilinear(x[int(batch[k])], ys, xs)  # [C, samples, 4]
            if call.get("mode", "avg") == "avg":
                found[k, :, i, j] = terms.sum(axis=-1).mean(axis=-1)
            else:
                found[k, :, i, j] = terms.max(axis=(-2, -1))
    return [found]


def _region(call: NodeCall, roi: Array) -> tuple[float, float, float, float]:
    """Left, top, width, height in the operand's pixels."""
    scale = call.get("spatial_scale", 1.0)
    mode = "output_half_pixel"  # the only mode before opset 16
    if call.version >= 16:
        mode = call.get("coordinate_transformation_mode", "half_pixel")
    offset = 0.5 if mode == "half_pixel" else 0.0
    left, top, right, bottom = (float(v) * scale - offset for v in roi)
    width, height = right - left, bottom - top
    if mode != "half_pixel":
        width, height = max(width, 1.0), max(height, 1.0)
    return left, top, width, height


def _bilinear(plane: Array, ys: Array, xs: Array) -> Array:
    """The four weighted corners at every (y, x): [C, samples, 4]; 0 beyond one pixel outside."""
    h, w = plane.shape[1:]
    y, x = (g.reshape(-1) for g in np.meshgrid(ys, xs, indexing="ij"))
    outside = (y < -1) | (y > h) | (x < -1) | (x > w)
    y, x = np.clip(y, 0, h - 1), np.clip(x, 0, w - 1)
    low_y, low_x = np.floor(y).astype(int), np.floor(x).astype(int)
    high_y, high_x = np.minimum(low_y + 1, h - 1), np.minimum(low_x + 1, w - 1)
    dy, dx = y - low_y, x - low_x
    corners = [
        plane[:, low_y, low_x] * (1 - dy) * (1 - dx),
        plane[:, low_y, high_x] * (1 - dy) * dx,
        plane[:, high_y, low_x] * dy * (1 - dx),
        plane[:, high_y, high_x] * dy * dx,
    ]
    return np.where(outside[None, :, None], 0, np.stack(corners, axis=-1))


KERNELS: dict[str, Kernel] = {
    "AveragePool": _average_pool,
    "GlobalLpPool": _global_lp_pool,
    "GlobalMaxPool": _global_max_pool,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxRoiPool": _max_roi_pool,
    "RoiAlign": _roi_align,
}
