"""Resize and Upsample: per axis, positions (nearest) or weights of neighbours (linear, cubic)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dims import is_symbolic
from ...dialects.errors import UserError
from ...dialects.types import Array, element_of, is_float, shape_of, to_numpy
from .node import OnnxNode
from .reductions import along_axis
from .shaping import repeated, taken
from .values import NotNative

# Output extents up to this are computed; each needs a column of positions or weights.
MAX_SIZE = 1 << 16
# A product with a matrix does this many multiply-adds in the time of one in a window.
MATRIX_SPEED = 4
LEAST_TAPS = 4


def upsample(node: OnnxNode) -> list[SSAValue]:
    """Opset 7 to 9: positions are output / scale, rounded down."""
    scales = node.floats("scales") if node.version < 9 else list(node.constant(1, "scales").ravel())
    if scales is None or len(scales) != len(node.shape(0)):
        raise UserError("one scale per dim is needed", found=scales)
    mode = node.string("mode", "nearest")
    x = node[0]
    for k, scale in enumerate(float(s) for s in scales):
        n = shape_of(x)[k]
        if not 0 < scale * n <= MAX_SIZE:
            raise UserError(f"a scale is not positive, or a size above {MAX_SIZE}", found=scale)
        positions = np.arange(math.floor(n * scale)) / scale
        if scale == 1.0:
            continue
        if mode == "nearest":
            x = taken(node, x, k, np.minimum(np.floor(positions), n - 1))
        elif mode in ("linear", "bilinear"):
            x = _weighted(node, x, k, positions, "linear", {})
        else:
            raise UserError(f"mode '{mode}' is unknown")
    return [x]


def resize(node: OnnxNode) -> list[SSAValue]:
    """All of opset 10 to 19's modes with constant scales or sizes."""
    x, shape = node[0], node.shape(0)
    mode = node.string("mode", "nearest")
    axes = [node.axis(a, len(shape)) for a in node.ints("axes", range(len(shape)))]
    if mode not in ("nearest", "linear", "cubic"):
        raise UserError(f"mode '{mode}' is unknown")
    scales, sizes = _targets(node, axes)
    if node.version < 11:
        how = "asymmetric"
    else:
        how = node.string("coordinate_transformation_mode", "half_pixel")
    roi = _roi(node, len(axes)) if how == "tf_crop_and_resize" else None
    if any(not 0 <= out <= MAX_SIZE for out in sizes):
        raise UserError(f"a size is negative or above {MAX_SIZE}", found=sizes)
    for j, k in enumerate(axes):
        n, out = shape[k], sizes[j]
        if out == 0:
            x = taken(node, x, k, np.arange(0))
            continue
        if out == n and scales[j] == 1.0 and roi is None:
            continue
        if is_symbolic([n]) and mode == "nearest" and (times := _repeats(node, how, scales[j])):
            x = repeated(node, x, k, times)
            continue
        part = None if roi is None else (roi[j], roi[j + len(axes)])
        at = positions(how, n, out, scales[j], part)
        x = _along(node, x, k, at, mode, scales[j], how)
    return [x]


def _targets(node: OnnxNode, axes: list[int]) -> tuple[list[float], list[int]]:
    """Scale and output size of each axis."""
    if node.version < 11:
        scales = [float(s) for s in node.constant(1, "scales").ravel()]
        return scales, _scaled(node, axes, scales)
    if node.has(3) and math.prod(node.shape(3)) > 0:
        sizes = node.constant_ints(3, "sizes")
        if len(sizes) != len(axes):
            raise UserError("one size per axis is needed", expected=len(axes), found=sizes)
        return _kept_ratio(node, axes, sizes)
    scales = [float(s) for s in node.constant(2, "scales").ravel()]
    return scales, _scaled(node, axes, scales)


def _scaled(node: OnnxNode, axes: list[int], scales: list[float]) -> list[int]:
    """Sizes from scales, rounded down. Raises UserError if the scales are not valid."""
    if len(scales) != len(axes) or any(not 0 < s < math.inf for s in scales):
        raise UserError("one positive scale per axis is needed", expected=len(axes), found=scales)
    whole = [int(s) if s.is_integer() else s for s in scales]  # of a symbol, without its number
    return [math.floor(node.shape(0)[k] * s) for k, s in zip(axes, whole, strict=True)]


def _kept_ratio(node: OnnxNode, axes: list[int], sizes: list[int]) -> tuple[list[float], list[int]]:
    """`keep_aspect_ratio_policy`: one scale for all axes, within or around the given sizes."""
    shape, policy = node.shape(0), node.string("keep_aspect_ratio_policy", "stretch")
    if any(shape[k] == 0 for k in axes):
        raise NotNative
    scales = [size / shape[k] for k, size in zip(axes, sizes, strict=True)]
    if policy == "stretch":
        return scales, sizes
    if policy not in ("not_larger", "not_smaller"):
        raise UserError(f"keep_aspect_ratio_policy '{policy}' is unknown")
    scale = min(scales) if policy == "not_larger" else max(scales)
    rounded = [math.floor(scale * shape[k] + 0.5) for k in axes]
    return [scale] * len(axes), rounded


def _roi(node: OnnxNode, count: int) -> list[float]:
    roi = [float(v) for v in node.constant(1, "the region").ravel()]
    if len(roi) != 2 * count:
        raise UserError(
            "the region needs begin and end of each axis", expected=2 * count, found=roi
        )
    return roi


def positions(how: str, n: int, out: int, scale: float, part: tuple[float, float] | None) -> Array:
    """Position in the operand of each output element along one axis."""
    k = np.arange(out, dtype=np.float64)
    match how:
        case "half_pixel":
            return (k + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            length = _length(n, scale)
            adjust = out / length
            return n / 2 * (1 - adjust) + (k + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (k + 0.5) / scale - 0.5 if out > 1 else np.zeros(out)
        case "align_corners":
            length = _length(n, scale)
            return k * (n - 1) / (length - 1) if length != 1 else np.zeros(out)
        case "asymmetric":
            return k / scale
        case "tf_half_pixel_for_nn":
            return (k + 0.5) / scale
        case "tf_crop_and_resize":
            assert part is not None
            start, end = part
            length = _length(n, scale)
            if out > 1:
                return start * (n - 1) + k * (end - start) * (n - 1) / (length - 1)
            return np.full(out, 0.5 * (start + end) * (n - 1))
        case _:
            raise UserError(f"coordinate_transformation_mode '{how}' is unknown")


def _length(n: int, scale: float) -> float:
    """The extent that a scale asks for: a fraction, or whole where only rounding made it none.

    29 / 28 * 28 is above 29 in float64, and 13.5 then falls below the tie.
    """
    length = n * scale
    return float(round(length)) if math.isclose(length, round(length), rel_tol=1e-12) else length


def _repeats(node: OnnxNode, how: str, scale: float) -> int:
    """How often each element is repeated, whatever the extent; 0 where it is not just that.

    These coordinates depend on the scale alone, and one period of them on the next by 1.
    """
    if how not in ("asymmetric", "half_pixel") or not scale.is_integer():
        return 0
    times, periods = int(scale), 3
    at = positions(how, periods, periods * times, scale, None)
    found = _nearest(node, at, periods)
    return times if np.array_equal(found, np.arange(periods * times) // times) else 0


def _along(
    node: OnnxNode, x: SSAValue, axis: int, positions: Array, mode: str, scale: float, how: str
) -> SSAValue:
    if mode == "nearest":
        if how == "tf_crop_and_resize":
            raise NotNative
        return taken(node, x, axis, _nearest(node, positions, shape_of(x)[axis]))
    options = {
        "cubic": node.float("cubic_coeff_a", -0.75),
        "exclude": float(node.flag("exclude_outside")),
        "stretch": max(1.0, 1.0 / scale) if node.flag("antialias") else 1.0,
    }
    if how == "tf_crop_and_resize":
        options["outside"] = node.float("extrapolation_value", 0.0)
    return _weighted(node, x, axis, positions, mode, options)


def _nearest(node: OnnxNode, positions: Array, n: int) -> Array:
    match node.string("nearest_mode", "floor" if node.version < 11 else "round_prefer_floor"):
        case "round_prefer_floor":
            found = np.ceil(positions - 0.5)
        case "round_prefer_ceil":
            found = np.floor(positions + 0.5)
        case "floor":
            found = np.floor(positions)
        case "ceil":
            found = np.ceil(positions)
        case other:
            raise UserError(f"nearest_mode '{other}' is unknown")
    return np.clip(found, 0, n - 1)


def _weighted(
    node: OnnxNode, x: SSAValue, axis: int, positions: Array, mode: str, options: dict[str, float]
) -> SSAValue:
    """Weighted sums of neighbours along one axis."""
    if not is_float(element_of(x)):
        raise NotNative
    n = shape_of(x)[axis]
    matrix = interpolation(positions, int(n), mode, options)
    outside = np.flatnonzero((positions < 0) | (positions > n - 1))
    if options.get("outside") is not None and len(outside):
        matrix[:, outside] = 0.0
        y = _weighed(node, x, axis, positions, matrix)
        fill = np.zeros(len(positions))
        fill[outside] = options["outside"]
        rank = len(shape_of(y))
        column = fill.reshape([-1] + [1] * (rank - axis - 1)).astype(to_numpy(element_of(x)))
        return node.build.add(y, node.build.expand(node.data(column, f"fill{axis}"), shape_of(y)))
    return _weighed(node, x, axis, positions, matrix)


def _weighed(node: OnnxNode, x: SSAValue, axis: int, positions: Array, matrix: Array) -> SSAValue:
    """Sums over windows if that is less work than a product with the whole matrix."""
    found = window(positions, matrix)
    element = to_numpy(element_of(x))
    if found is None or (found.taps > LEAST_TAPS and found.taps * MATRIX_SPEED > len(matrix)):
        return along_axis(node, x, axis, matrix.astype(element))
    weights = node.data(found.weights(matrix).astype(element), f"axis{axis}")
    how = {"step": found.step, "shift": found.shift, "per": found.per}
    return node.build.resample(x, weights, axis=axis, **how)


@dataclass(frozen=True)
class ResizeWindow:
    """Result k reads `taps` elements from position (step * k + shift) floordiv per on."""

    taps: int
    step: int
    shift: int
    per: int

    def weights(self, matrix: Array) -> Array:
        """The entries of a matrix [n, out] that are inside the windows, as [taps, out]."""
        n, out = matrix.shape
        k = np.arange(out)
        rows = (self.step * k + self.shift) // self.per + np.arange(self.taps)[:, None]
        inside = (rows >= 0) & (rows < n)
        return np.where(inside, matrix[np.clip(rows, 0, n - 1), k], 0.0)


def window(positions: Array, matrix: Array) -> ResizeWindow | None:
    """The narrowest evenly spaced windows that contain all weights of a matrix.

    The integers `shift` that suit one result form an interval; their intersection suits all.
    None if no even spacing has one, or the positions are not evenly spaced.
    """
    n, out = matrix.shape
    used = matrix != 0.0
    if n == 0 or out < 2 or not used.any():
        return None
    k = np.flatnonzero(used.any(axis=0))
    first, last = used.argmax(axis=0)[k], n - 1 - used[::-1].argmax(axis=0)[k]
    spacing = Fraction((positions[-1] - positions[0]) / (out - 1)).limit_denominator(max(n, out))
    step, per = spacing.numerator, spacing.denominator
    if step < 1:
        return None
    widest = int((last - first).max()) + 1
    for taps in (widest, widest + 1):
        low = int((per * (last - taps + 1) - step * k).max())
        high = int((per * first + per - 1 - step * k).min())
        if low <= high:
            return ResizeWindow(taps, step, high, per)
    return None


def interpolation(positions: Array, n: int, mode: str, options: dict[str, float]) -> Array:
    """Matrix [n, out] whose column k weighs the elements around position `positions[k]`."""
    stretch = options.get("stretch", 1.0)
    reach = math.ceil((1 if mode == "linear" else 2) * stretch)
    matrix = np.zeros((n, len(positions)))
    for k, position in enumerate(positions):
        taps = np.arange(math.floor(position) - reach + 1, math.floor(position) + reach + 1)
        weights = _kernel((taps - position) / stretch, mode, options.get("cubic", -0.75))
        if options.get("exclude"):
            weights = np.where((taps < 0) | (taps >= n), 0.0, weights)
        if options.get("exclude") or stretch > 1.0:
            weights = weights / weights.sum()
        np.add.at(matrix[:, k], np.clip(taps, 0, n - 1), weights)
    return matrix


def _kernel(t: Array, mode: str, a: float) -> Array:
    """The hat function, or Keys' cubic."""
    t = np.abs(t)
    if mode == "linear":
        return np.maximum(0.0, 1.0 - t)
    inner = ((a + 2) * t - (a + 3)) * t * t + 1
    outer = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return np.where(t <= 1, inner, np.where(t < 2, outer, 0.0))
