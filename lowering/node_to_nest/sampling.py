"""Reads between places that are data: GridSample, RoiAlign, MaxRoiPool, DeformConv.

Each place is turned into taps (an element and its weight) once; the channels then read the same
taps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32, i1, i64
from xdsl.ir import Attribute

from ...dialects.types import is_half
from .code import Code, NestBuffer, Scalar
from .node import KeptNode, NoNest
from .scatters import linear, strides_of

_MODES = {
    "linear": "linear",
    "bilinear": "linear",
    "nearest": "nearest",
    "cubic": "cubic",
    "bicubic": "cubic",
}
_CUBIC = -0.75


def computed(element: Attribute) -> Attribute:
    """The type in which an element is computed with."""
    return f32 if is_half(element) else element


@dataclass(frozen=True)
class Tap:
    """An element: where it is along one dim or in all, its weight, whether it is inside."""

    place: Scalar
    weight: Scalar | None  # None is 1
    good: Scalar | None  # None is always


def grid_sample(node: KeptNode) -> None:
    """The weighted taps of each point of the grid, in all channels."""
    x, grid, y, code = node[0], node[1], node.result, node.code
    mode = _MODES.get(node.get("mode", "linear"))
    rank = len(x.shape) - 2
    if mode is None or (mode == "cubic" and rank != 2) or 0 in x.shape:
        raise NoNest
    number = computed(grid.element)
    pixels = Pixels(
        code, bool(node.get("align_corners", 0)), node.get("padding_mode", "zeros"), mode
    )
    points = math.prod(y.shape[2:])
    size, channels, area = x.shape[2:], x.shape[1], math.prod(x.shape[2:])
    with code.stage(y.shape[0] * points) as item:
        # The grid's last dim counts from the innermost spatial dim outwards.
        at = [grid[item * rank + (rank - 1 - k)].to(number) for k in range(rank)]
        taps = [pixels.taps(p, n) for p, n in zip(at, size, strict=True)]
        batch, point = item // points, item % points
        corners = _corners(code, taps, strides_of(size))
        with code.loop(channels) as channel:
            row = batch * channels + channel
            total: Scalar | None = None
            for corner in corners:
                value = x[row * area + corner.place].to(number)
                if corner.good is not None:
                    value = code.select(corner.good, value, 0.0)
                value = value if corner.weight is None else value * corner.weight
                total = value if total is None else total + value
            assert total is not None
            y[row * points + point] = total.to(y.element)


def _corners(code: Code, taps: Sequence[Sequence[Tap]], strides: Sequence[int]) -> list[Tap]:
    """The elements that a point reads; the first one stands for those outside."""
    found: list[Tap] = []
    for corner in itertools.product(*taps):
        weight: Scalar | None = None
        good: Scalar | None = None
        for tap in corner:
            if tap.weight is not None:
                weight = tap.weight if weight is None else weight * tap.weight
            if tap.good is not None:
                good = tap.good if good is None else good & tap.good
        place = linear(code, [t.place for t in corner], strides)
        if good is not None:
            place = code.select(good, place, 0)
        found.append(Tap(place, weight, good))
    return found


@dataclass(frozen=True)
class Pixels:
    """How GridSample turns a number in [-1, 1] into pixels."""

    code: Code
    align: bool
    padding: str
    mode: str

    def taps(self, point: Scalar, n: int) -> list[Tap]:
        """The pixels that a point reads along a dim of n."""
        at = self._pixel(point, n)
        if self.padding != "zeros" and self.mode != "cubic":
            at = self._moved(at, n)
        if self.mode == "nearest":
            return [self._tap(at.call("roundeven"), None, n)]
        first = at.call("floor")
        t = at - first
        if self.mode == "linear":
            return [self._tap(first, 1 - t, n), self._tap(first + 1, t, n)]
        return [self._tap(first + k, self._cubic(t, k), n) for k in (-1, 0, 1, 2)]

    def _pixel(self, point: Scalar, n: int) -> Scalar:
        """Centres of the outer pixels are -1 and 1, or their outer edges."""
        if self.align:
            return (point + 1) / 2 * (n - 1)
        return ((point + 1) * n - 1) / 2

    def _moved(self, at: Scalar, n: int) -> Scalar:
        """A position moved into the image: to its border, or reflected at it."""
        if self.padding == "border":
            return clipped(at, 0, n - 1)
        low, high = (0.0, n - 1.0) if self.align else (-0.5, n - 0.5)
        span = high - low
        if span == 0:
            return at.like(0.0)
        distance = (at - low).call("abs")
        folded = distance - (distance / (2 * span)).call("floor") * (2 * span)
        return clipped(folded.call("min", 2 * span - folded) + low, 0, n - 1)

    def _tap(self, pixel: Scalar, weight: Scalar | None, n: int) -> Tap:
        if self.padding == "zeros":
            good = (pixel >= 0) & (pixel < n)
            return Tap(pixel.to(i64), weight, good)
        return Tap(clipped(self._moved(pixel, n).call("roundeven"), 0, n - 1).to(i64), weight, None)

    def _cubic(self, t: Scalar, k: int) -> Scalar:
        d = (t - k).call("abs")
        if k in (0, 1):
            return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1
        return _CUBIC * (((d - 5) * d + 8) * d - 4)


def clipped(x: Scalar, low: float, high: float) -> Scalar:
    """Within bounds; a NaN becomes the lower one."""
    return x.code.select(x > low, x.code.select(x < high, x, high), low)


def bilinear(code: Code, at: Sequence[Scalar], size: Sequence[int]) -> list[list[Tap]]:
    """The two pixels around a place along each dim, moved inside; the far one may be the same."""
    found: list[list[Tap]] = []
    for p, n in zip(at, size, strict=True):
        p = clipped(p, 0, n - 1)
        low = p.call("floor")
        d, first = p - low, low.to(i64)
        second = (first + 1).call("min", n - 1)
        found.append([Tap(first, 1 - d, None), Tap(second, d, None)])
    return found


def sampled(
    code: Code, x: NestBuffer, plane: Scalar, at: Sequence[Scalar], size: Sequence[int]
) -> Scalar:
    """A plane between its pixels; 0 beyond it."""
    return between(code, x, plane, surrounding(code, at, size), at[0].element)


def surrounding(code: Code, at: Sequence[Scalar], size: Sequence[int]) -> list[Tap]:
    """The pixels around a place, each with its weight, and whether it is there."""
    taps: list[list[Tap]] = []
    for p, n in zip(at, size, strict=True):
        low = p.call("floor")
        t, first = p - low, low.to(i64)
        pair = ((first, 1 - t), (first + 1, t))
        taps.append([Tap(k, w, (k >= 0) & (k < n)) for k, w in pair])
    return _corners(code, taps, strides_of(size))


def between(
    code: Code, x: NestBuffer, plane: Scalar, corners: Sequence[Tap], number: Attribute
) -> Scalar:
    """The weighted sum of a plane's pixels."""
    total = code.number(0.0, number)
    for corner in corners:
        assert corner.weight is not None
        value = x[plane + corner.place].to(number)
        if corner.good is not None:
            value = code.select(corner.good, value, 0.0)
        total = total + value * corner.weight
    return total


# --- regions of interest ---


def roi_align(node: KeptNode) -> None:
    """The mean, or the maximum, of bilinear samples in each bin of each region."""
    x, rois, batches, y, code = node[0], node[1], node[2], node.result, node.code
    number, (count, channels, height, width) = computed(x.element), y.shape
    if 0 in x.shape:
        raise NoNest
    size, area = x.shape[2:], math.prod(x.shape[2:])
    average = node.get("mode", "avg") == "avg"
    with code.stage(count * height * width) as item:
        roi, bin_ = item // (height * width), item % (height * width)
        start, extent = _region(node, rois, roi, number)
        cells = [extent[0] / height, extent[1] / width]
        ratio = int(node.get("sampling_ratio", 0))
        samples = [
            code.number(ratio) if ratio > 0 else c.call("ceil").call("max", 1.0).to(i64)
            for c in cells
        ]
        places = bin_ // width, bin_ % width
        base = [s + p.to(number) * c for s, p, c in zip(start, places, cells, strict=True)]
        steps = [c / s.to(number) for c, s in zip(cells, samples, strict=True)]
        first = batches[roi].place() * channels
        share = 1 / (samples[0] * samples[1]).to(number)
        at_y = roi * channels * (height * width) + bin_
        with code.loop(channels) as channel:
            y[at_y + channel * (height * width)] = 0.0 if average else float("-inf")
        with code.loop(samples[0]) as i, code.loop(samples[1]) as j:
            at = [b + (k.to(number) + 0.5) * s for b, k, s in zip(base, (i, j), steps, strict=True)]
            outside = code.number(False, i1)
            for p, n in zip(at, size, strict=True):
                outside = outside | (p < -1) | (p > n)
            corners = _corners(code, bilinear(code, at, size), strides_of(size))
            with code.loop(channels) as channel:
                target = at_y + channel * (height * width)
                plane = (first + channel) * area
                terms: list[Scalar] = []
                for corner in corners:
                    assert corner.weight is not None
                    term = x[plane + corner.place].to(number) * corner.weight
                    terms.append(code.select(outside, term.like(0.0), term))
                old = y[target].to(number)
                if average:
                    total = (terms[0] + terms[1] + terms[2] + terms[3]) * share
                    y[target] = (old + total).to(y.element)
                else:
                    for term in terms:
                        old = old.call("max", term)
                    y[target] = old.to(y.element)


def _region(
    node: KeptNode, rois: NestBuffer, roi: Scalar, number: Attribute
) -> tuple[list[Scalar], list[Scalar]]:
    """(top, left) and (height, width) in the operand's pixels."""
    scale = float(node.get("spatial_scale", 1.0))
    mode = "output_half_pixel"  # the only mode before opset 16
    if node.version >= 16:
        mode = node.get("coordinate_transformation_mode", "half_pixel")
    offset = 0.5 if mode == "half_pixel" else 0.0
    left, top, right, bottom = (rois[roi * 4 + k].to(number) * scale - offset for k in range(4))
    extent = [bottom - top, right - left]
    if mode != "half_pixel":
        extent = [e.call("max", 1.0) for e in extent]
    return [top, left], extent


def max_roi_pool(node: KeptNode) -> None:
    """Maxima of the pixels in each bin of each region; 0 where a bin has none."""
    x, rois, y, code = node[0], node[1], node.result, node.code
    number, (count, channels, height, width) = computed(x.element), y.shape
    rows, columns = x.shape[2:]
    scale = float(node.get("spatial_scale", 1.0))
    with code.stage(count * height * width) as item:
        roi, bin_ = item // (height * width), item % (height * width)
        left, top, right, bottom = (
            (rois[roi * 5 + k].to(number) * scale + 0.5).call("floor") for k in range(1, 5)
        )
        first = rois[roi * 5].to(number).to(i64) * channels
        spans = []
        for low, high, place, parts, n in (
            (top, bottom, bin_ // width, height, rows),
            (left, right, bin_ % width, width, columns),
        ):
            step = (high - low + 1).call("max", 1.0) / parts
            begin = (place.to(number) * step).call("floor") + low
            end = ((place + 1).to(number) * step).call("ceil") + low
            spans.append((clipped(begin, 0, n).to(i64), clipped(end, 0, n).to(i64)))
        empty = (spans[0][0] >= spans[0][1]) | (spans[1][0] >= spans[1][1])
        with code.loop(channels) as channel:
            least = code.number(float("-inf"), number)
            best = code.cell(code.select(empty, least.like(0.0), least))
            with code.loop(*spans[0]) as i, code.loop(*spans[1]) as j:
                value = x[((first + channel) * rows + i) * columns + j].to(number)
                best.value = best.value.call("max", value)
            y[(roi * channels + channel) * (height * width) + bin_] = best.value.to(y.element)


WRITERS = {"GridSample": grid_sample, "RoiAlign": roi_align, "MaxRoiPool": max_roi_pool}
