"""Windows: the positions of maxima, sums of overlapping blocks, convolution at moved places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import i1, i64

from ...dialects.types import Array, integer_range, is_float
from .code import Code, Scalar
from .node import KeptNode, NoNest
from .sampling import between, computed, sampled, surrounding
from .scatters import linear, nested, strides_of


@dataclass(frozen=True)
class PoolWindow:
    """A window's attributes, a number for each spatial dim."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]

    @staticmethod
    def of(
        node: KeptNode, kernel: Sequence[int], size: Sequence[int], out: Sequence[int]
    ) -> PoolWindow:
        rank = len(kernel)
        strides = tuple(node.get("strides", [1] * rank))
        dilations = tuple(node.get("dilations", [1] * rank))
        mode = node.get("auto_pad", "NOTSET")
        begins = tuple(node.get("pads", [0] * (2 * rank)))[:rank]
        if mode == "VALID":
            begins = (0,) * rank
        elif mode != "NOTSET":
            spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
            pairs = zip(out, strides, spans, size, strict=True)
            total = [max((o - 1) * s + e - n, 0) for o, s, e, n in pairs]
            begins = tuple(t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in total)
        return PoolWindow(tuple(kernel), strides, dilations, begins)


def unflattened(flat: Scalar, shape: Sequence[int]) -> list[Scalar]:
    """The places of an element, by its row-major number."""
    found: list[Scalar] = []
    for n in reversed(shape):
        found.append(flat % n)
        flat = flat // n
    return found[::-1]


def bounds(code: Code, start: Scalar, step: int, count: int, size: int) -> tuple[Scalar, Scalar]:
    """The taps k of a window for which 0 <= start + k * step < size."""
    low = code.select(start < 0, (-start + (step - 1)) // step, start.like(0))
    high = (start.like(size) - start + (step - 1)).call("max", 0) // step
    return low, high.call("min", count)


def max_pool(node: KeptNode) -> None:
    """Maxima of windows, and where in the operand the first of each is."""
    x, y, indices, code = node[0], node.results[0], node.second(), node.code
    out = y.shape[2:] if y is not None else indices.shape[2:] if indices is not None else ()
    size = x.shape[2:]
    w = PoolWindow.of(node, node.get("kernel_shape", []), size, out)
    area, points = math.prod(size), math.prod(out)
    own = strides_of(size)
    if node.get("storage_order", 0):
        own = [math.prod(size[:k]) for k in range(len(size))]
    least = float("-inf") if is_float(x.element) else integer_range(x.element)[0]
    with code.stage(x.shape[0] * x.shape[1]) as plane, ExitStack() as loops:
        places = nested(code, loops, out)
        best, at = code.cell(least, x.element), code.cell(-1, i64)
        starts = [p * s - b for p, s, b in zip(places, w.strides, w.begins, strict=True)]
        limits = [
            bounds(code, *each) for each in zip(starts, w.dilations, w.kernel, size, strict=True)
        ]
        with ExitStack() as inner:
            taps = [inner.enter_context(code.loop(*limit)) for limit in limits]
            triples = zip(starts, taps, w.dilations, strict=True)
            here = [s + t * d for s, t, d in triples]
            value = x[plane * area + linear(code, here, strides_of(size))]
            # The first of the window counts, whatever it is.
            with code.when((value > best.value) | (at.value < 0) | value.is_nan()):
                best.value = value
                at.value = linear(code, here, own)
        target = plane * points + linear(code, places, strides_of(out))
        if y is not None:
            y[target] = best.value
        if indices is not None:
            indices[target] = plane * area + at.value.call("max", 0)


def col2im(node: KeptNode) -> None:
    """Each pixel is the sum of the blocks' elements that lie on it."""
    x, y, code = node[0], node.result, node.code
    block, size = node.known(2), y.shape[2:]
    if block is None:
        raise NoNest
    kernel = [int(n) for n in block]
    w = PoolWindow.of(node, kernel, (), ())
    pads = tuple(node.get("pads", [0] * (2 * len(size))))
    out = [
        (n + pads[k] + pads[k + len(size)] - w.dilations[k] * (kernel[k] - 1) - 1) // w.strides[k]
        + 1
        for k, n in enumerate(size)
    ]
    blocks, number = math.prod(out), computed(x.element)
    taps = math.prod(kernel)
    with code.stage(y.shape[0] * y.shape[1]) as plane, ExitStack() as loops:
        places = nested(code, loops, size)
        total = code.cell(0, number)
        with ExitStack() as inner:
            each = nested(code, inner, kernel)
            good, at = code.number(True, i1), list[Scalar]()
            for k, (place, tap) in enumerate(zip(places, each, strict=True)):
                moved = place + w.begins[k] - tap * w.dilations[k]
                number_ = moved.call("max", 0) // w.strides[k]
                whole = (number_ * w.strides[k]).equals(moved) & (number_ < out[k])
                good, at = good & whole, [*at, number_]
            with code.when(good):
                row = plane * taps + linear(code, each, strides_of(kernel))
                value = x[row * blocks + linear(code, at, strides_of(out))]
                total.value = total.value + value.to(number)
        place = plane * math.prod(size) + linear(code, places, strides_of(size))
        y[place] = total.value.to(y.element)


def deform_conv(node: KeptNode) -> None:
    """A convolution whose taps are moved by offsets, and weighted by a mask; bilinear reads.

    What a group's filters read at a point is put together once, for all of them.
    """
    x, w, offset, y, code = node[0], node[1], node[2], node.result, node.code
    bias, mask = (node[k] if node.has(k) else None for k in (3, 4))
    size, out, kernel = x.shape[2:], y.shape[2:], w.shape[2:]
    if len(size) != 2 or 0 in x.shape:
        raise NoNest
    groups, shifts = int(node.get("group", 1)), int(node.get("offset_group", 1))
    window = PoolWindow.of(node, kernel, size, out)
    number, points, taps = computed(x.element), math.prod(out), math.prod(kernel)
    filters, depth = w.shape[0] // groups, w.shape[1]
    area, channels = math.prod(size), x.shape[1]
    if _single_taps(node.known(1)) and bias is None:
        _deform_columns(node, window, shifts)
        return
    if depth * taps > 1 << 15:
        raise NoNest
    with code.stage(y.shape[0] * groups * points) as item:
        place, row = item % points, item // points
        group, batch = row % groups, row // groups
        read = code.array(number, depth * taps)
        at = unflattened(place, out)
        with code.loop(taps) as tap:
            each = unflattened(tap, kernel)
            base = [
                p * s + t * d - b
                for p, t, s, d, b in zip(
                    at, each, window.strides, window.dilations, window.begins, strict=True
                )
            ]
            with code.loop(depth) as c:
                channel = group * depth + c
                shift = channel // (channels // shifts)
                moved = (batch * shifts + shift) * taps + tap
                here = [
                    b.to(number) + offset[(moved * 2 + k) * points + place].to(number)
                    for k, b in enumerate(base)
                ]
                value = sampled(code, x, (batch * channels + channel) * area, here, size)
                if mask is not None:
                    value = value * mask[moved * points + place].to(number)
                read[c * taps + tap] = value
        with code.loop(filters) as f:
            filter_ = group * filters + f
            start = bias[filter_].to(number) if bias is not None else code.number(0.0, number)
            total = code.cell(start)
            with code.loop(depth * taps) as k:
                total.value = total.value + read[k] * w[filter_ * (depth * taps) + k].to(number)
            y[(batch * groups * filters + filter_) * points + place] = total.value.to(y.element)


def _single_taps(weights: Array | None) -> bool:
    """Whether filter c * taps + t gives what tap t reads of channel c."""
    if weights is None or weights.shape[1] != 1:
        return False
    taps = math.prod(weights.shape[2:])
    rows = weights.reshape(-1, taps)
    return len(rows) % taps == 0 and np.array_equal(
        rows, np.tile(np.eye(taps), (len(rows) // taps, 1))
    )


def _deform_columns(node: KeptNode, window: PoolWindow, shifts: int) -> None:
    """What each tap reads of each channel: all channels read at the places of one offset."""
    x, offset, y, code = node[0], node[2], node.result, node.code
    mask = node[4] if node.has(4) else None
    size, out, kernel = x.shape[2:], y.shape[2:], window.kernel
    number, points, taps = computed(x.element), math.prod(out), math.prod(kernel)
    area, channels = math.prod(size), x.shape[1]
    each = channels // shifts
    with code.stage(y.shape[0] * shifts * taps * points) as item:
        place, row = item % points, item // points
        tap, first = row % taps, row // taps  # of the images, and of the shifts in each
        at, moved = unflattened(place, out), row * points + place
        here = [
            (p * s + t * d - b).to(number) + offset[(row * 2 + k) * points + place].to(number)
            for k, (p, t, s, d, b) in enumerate(
                zip(
                    *(at, unflattened(tap, kernel), window.strides, window.dilations),
                    window.begins,
                    strict=True,
                )
            )
        ]
        corners = surrounding(code, here, size)
        whole = code.number(True, i1)
        for corner in corners:
            assert corner.good is not None
            whole = whole & corner.good
        weight = None if mask is None else mask[moved].to(number)
        # Most places are inside the image: their pixels are read without a question.
        for asked, those in ((whole, [replace(k, good=None) for k in corners]), (~whole, corners)):
            with code.when(asked), code.loop(each) as c:
                channel = first * each + c
                value = between(code, x, channel * area, those, number)
                value = value if weight is None else value * weight
                y[(channel * taps + tap) * points + place] = value.to(y.element)


WRITERS = {"MaxPool": max_pool, "Col2Im": col2im, "DeformConv": deform_conv}
