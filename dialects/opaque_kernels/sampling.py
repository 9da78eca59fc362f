"""Samples at a grid of positions.

onnx.reference knows the modes by their names of opset 20 only.

Source: ONNX operator GridSample (16, 20).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ..types import Array
from .call import Kernel, NodeCall

_MODES = {"linear": "linear", "bilinear": "linear", "nearest": "nearest"} | {
    "cubic": "cubic", "bicubic": "cubic"
}  # fmt: skip
_CUBIC = -0.75


def _grid_sample(call: NodeCall) -> list[Array]:
    x, grid = call[0], call[1]
    mode = _MODES.get(call.get("mode", "linear"))
    rank = x.ndim - 2
    if mode is None or (mode == "cubic" and rank != 2):
        raise ValueError(f"mode '{call.get('mode')}' of {rank} dims is not known")
    align, padding = bool(call.get("align_corners", 0)), call.get("padding_mode", "zeros")
    size = x.shape[2:]
    # The grid's last dim counts from the innermost spatial dim outwards.
    points = np.moveaxis(grid[..., ::-1], -1, 0).astype(np.float64)
    at = [_pixels(p, n, align) for p, n in zip(points, size, strict=True)]
    if padding != "zeros" and mode != "cubic":
        at = [_moved_inside(p, n, align, padding) for p, n in zip(at, size, strict=True)]
    taps = [_taps(p, mode) for p in at]
    found = np.zeros((*x.shape[:2], *grid.shape[1:-1]), np.float64)
    for choice in itertools.product(*taps):
        weight = math.prod(w for _, w in choice)
        found += _read(x, [p for p, _ in choice], align, padding) * np.asarray(weight)[:, None]
    return [found.astype(x.dtype)]


def _pixels(point: Array, n: int, align: bool) -> Array:
    """[-1, 1] to pixels: centres of the outer ones, or their outer edges."""
    return (point + 1) / 2 * (n - 1) if align else ((point + 1) * n - 1) / 2


def _moved_inside(at: Array, n: int, align: bool, padding: str) -> Array:
    """Positions moved into the image: to its border, or reflected at it."""
    if padding == "border":
        return np.clip(at, 0, n - 1)
    low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
    span = high - low
    if span == 0:
        return np.zeros_like(at)
    folded = np.mod(at - low, 2 * span)
    return np.clip(low + np.minimum(folded, 2 * span - folded), 0, n - 1)


def _taps(at: Array, mode: str) -> list[tuple[Array, Array]]:
    """The pixels that a position reads, with their weights."""
    if mode == "nearest":
        return [(np.rint(at).astype(np.int64), np.ones_like(at))]
    first = np.floor(at).astype(np.int64)
    t = at - first
    if mode == "linear":
        return [(first, 1 - t), (first + 1, t)]
    return [(first + k, _cubic(t - k)) for k in (-1, 0, 1, 2)]


def _cubic(distance: Array) -> Array:
    d = np.abs(distance)
    near = ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1
    far = _CUBIC * (((d - 5) * d + 8) * d - 4)
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def _read(x: Array, positions: list[Array], align: bool, padding: str) -> Array:
    """x at whole pixels [N, out..] as [N, C, out..]; beyond the image by the padding mode."""
    outside = np.zeros(positions[0].shape, bool)
    found: list[Array] = []
    for p, n in zip(positions, x.shape[2:], strict=True):
        if padding == "zeros":
            outside = outside | (p < 0) | (p >= n)
        moved = np.clip(p, 0, n - 1) if padding == "zeros" else _moved_inside(p, n, align, padding)
        found.append(np.rint(moved).astype(np.int64))
    batch = np.arange(x.shape[0]).reshape(-1, *[1] * (positions[0].ndim - 1))
    values = np.moveaxis(x, 1, -1)[(batch, *found)]
    return np.moveaxis(np.where(outside[..., None], 0, values), -1, 1)


KERNELS: dict[str, Kernel] = {"GridSample": _grid_sample}
