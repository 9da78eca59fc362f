"""Products and convolutions, with any roles of their dims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from ...dialects.types import is_unsigned, shape_of
from .node import Converter, HloNode
from .shaping import padded, reversed_


def dot_general(n: HloNode) -> SSAValue:
    """Products summed over contracted dims, for each place of the batch dims."""
    numbers = n.attr("dot_dimension_numbers", default={})
    batch = _pair(n.attr("batching_dims"), numbers, "batching")
    summed = _pair(n.attr("contracting_dims"), numbers, "contracting")
    return _dot(n, batch, summed)


def dot(n: HloNode) -> SSAValue:
    """The last dim of the first by the first dim of the second."""
    return _dot(n, ([], []), ([len(shape_of(n[0])) - 1], [0]))


def _pair(found: Any, numbers: Any, kind: str) -> tuple[list[int], list[int]]:
    if found is not None:
        return list(found[0]), list(found[1])
    names = (f"{side}_{kind}_dimensions" for side in ("lhs", "rhs"))
    first, second = (list(numbers.get(name, [])) for name in names)
    return first, second


def _dot(
    n: HloNode, batch: tuple[list[int], list[int]], summed: tuple[list[int], list[int]]
) -> SSAValue:
    """Both operands as [batch, free, summed], in the result's type."""
    if is_unsigned(n.element) or str(n.element) == "i1":
        raise n.refusal("a product of numbers without a sign")
    parts: list[SSAValue] = []
    free: list[list[int]] = []
    for k in range(2):
        x, shape = n.cast(n[k], n.element), shape_of(n[k])
        rest = [d for d in range(len(shape)) if d not in batch[k] and d not in summed[k]]
        order = [*batch[k], *summed[k], *rest] if k else [*batch[k], *rest, *summed[k]]
        x = n.transpose(x, order)
        sizes = [math.prod(shape[d] for d in dims) for dims in (rest, summed[k])]
        lead = [shape[d] for d in batch[k]]
        parts.append(n.reshape(x, [*lead, *(sizes if not k else sizes[::-1])]))
        free.append([shape[d] for d in rest])
    return n.reshape(n.op("matmul", *parts), n.shape)


def convolution(n: HloNode) -> SSAValue:
    """A convolution with any order of dims, in the order of `graph.conv` and back."""
    image, kernel, result = _dim_numbers(n)
    spatial = len(image) - 2
    window = n.attr("window", default=n.hlo.attributes)
    ones = [1] * spatial
    strides = _window(window, ones, "stride", "window_strides")
    pads = _pads(window, spatial)
    spread = _window(window, ones, "lhs_dilate", "lhs_dilation")
    dilations = _window(window, ones, "rhs_dilate", "rhs_dilation")
    turned = _window(window, [0] * spatial, "reverse", "window_reversal")
    groups = n.number("feature_group_count", default=1)
    batches = n.number("batch_group_count", default=1)
    x = n.transpose(n.cast(n[0], n.element), _order(image, "b", "f"))
    w = n.transpose(n.cast(n[1], n.element), _order(kernel, "o", "i"))
    w = reversed_(n, w, [k + 2 for k in range(spatial) if turned[k]])
    if spatial == 0:
        x, w = (n.reshape(v, [*shape_of(v), 1]) for v in (x, w))
        strides, pads, spread, dilations = [1], [[0, 0]], [1], [1]
    if batches > 1:
        x = _batches_as_channels(n, x, batches)
    x, edges = _edges(n, x, pads, spread)
    found = n.op(
        "conv", x, w, strides=strides, pads=edges, dilations=dilations, groups=groups * batches
    )
    if spatial == 0:
        found = n.reshape(found, shape_of(found)[:2])
    back = _order(result, "b", "f")
    return n.transpose(found, [back.index(k) for k in range(len(back))])


def _edges(
    n: HloNode, x: SSAValue, pads: Sequence[Sequence[int]], spread: Sequence[int]
) -> tuple[SSAValue, list[int]]:
    """The image with zeros between its elements and cropped, and the pads that are left."""
    low, high = ([max(p[k], 0) for p in pads] for k in range(2))
    crop = [[0, 0, *(min(p[k], 0) for p in pads)] for k in range(2)]
    inner = [0, 0, *(s - 1 for s in spread)]
    return padded(n, x, crop[0], crop[1], inner, 0.0), [*low, *high]


def _batches_as_channels(n: HloNode, x: SSAValue, groups: int) -> SSAValue:
    """[g * b, c, ...] as [b, g * c, ...]."""
    count, channels, *size = shape_of(x)
    split = n.reshape(x, [groups, count // groups, channels, *size])
    order = [1, 0, *range(2, len(size) + 3)]
    return n.reshape(n.transpose(split, order), [count // groups, groups * channels, *size])


def _dim_numbers(n: HloNode) -> list[list[Any]]:
    found = n.attr("dim_numbers", "dimension_numbers")
    if not isinstance(found, list) or len(found) != 3:
        raise n.refusal("its dims have no roles")
    return found


def _order(roles: Sequence[Any], *first: str) -> list[int]:
    """The dims of a tensor in our order: the named ones, then the spatial ones."""
    spatial = sorted(k for k in roles if isinstance(k, int))
    return [list(roles).index(role) for role in (*first, *spatial)]


def _window(window: Any, default: list[int], *names: str) -> list[int]:
    found = next((window[name] for name in names if name in window), default)
    return [int(v) for v in found]


def _pads(window: Any, spatial: int) -> list[list[int]]:
    found = window.get("pad", window.get("padding"))
    if found is None:
        return [[0, 0]] * spatial
    return [[int(v) for v in pair] for pair in found]


TABLE: dict[str, Converter] = {
    "stablehlo.dot_general": dot_general,
    "stablehlo.dot": dot,
    "stablehlo.convolution": convolution,
}
