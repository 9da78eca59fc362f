"""Let the mutant's own convolution compute the corrections.

A correction by boxes is the program on a part of its image: a convolution with the same weights. If
its strides and dilations are the mutant's, too, one convolution computes both. The input of each
box is put beside the mutant's image, with zeros between, along the dim that grows the image least:

    image of the mutant | zeros | input of box 1 | input of box 2

Its results follow the mutant's. This saves one kernel per box, and reads the weights once.
Source: PET, section 6 (correction kernels are fused with the operator that they correct).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.canonical_scope import collect, normal
from ...dialects.canonical_types import ONE, Extents, Read, Scope, Source, Term, scope
from ...dialects.index import Index, iterators, range_of
from ..derivation.body import SumOfProducts, body_of
from .correct import Correction, Cover, cut, read_in_box, restricted, right
from .operators import Conv
from .region import Box


@dataclass(frozen=True)
class _Window:
    """The part of an image that a box reads: `image[index]` over its own shape.

    Attributes:
        blank: for each dim how many positions at its start, and at its end, are outside the image:
        0.
    """

    box: Box
    source: Source
    index: tuple[Index, ...]
    shape: Extents
    blank: tuple[tuple[int, int], ...]


def fused(cover: Cover, product: object, image: Source, weights: Source) -> Correction | None:
    """The correction by one convolution; None if a box's convolution differs from the mutant's."""
    if not isinstance(product, Conv):
        return None
    cover = cut(cover)
    windows: list[_Window] = []
    for box in cover.wrong:
        body = body_of(restricted(cover.program, box))
        window = None if body is None else _window(box, body, product, image, weights)
        if window is None:
            return None
        windows.append(window)
    pads = product.pads(weights.shape[2:])
    dims = (0, *range(2, len(image.shape)))
    every = [_placed(product, image, weights, windows, dim) for dim in dims]
    shape, starts = min(every, key=lambda found: math.prod(found[0]))
    made = product.build(_in_one_tensor(image, windows, starts, shape), weights)
    terms = right(cover, made)
    for window, start in zip(windows, starts, strict=True):
        shift = [start[0], 0]
        steps = zip(start[2:], pads, strict=True)
        shift += [(at + pad) // product.stride for at, pad in steps]
        positions = zip(cover.at, window.box, shift, strict=True)
        at = [e - low + by for e, (low, _), by in positions]
        terms += read_in_box(made, at, cover, window.box)
    result = scope(cover.shape, made.element, collect(terms))
    return Correction(result, cover.parts, cover.inside, "fused")


def _window(
    box: Box, body: SumOfProducts, product: Conv, image: Source, weights: Source
) -> _Window | None:
    """The input of a box, if the rest is the product's convolution with the same weights."""
    kernels = [r for r in body.reads if r.source is weights]
    data = [r for r in body.reads if r.source is not weights]
    plain = body.coefficient == 1 and not body.guards
    if len(kernels) != 1 or len(data) != 1 or not plain or len(data[0].index) != body.rank:
        return None
    positions = _positions_of(kernels[0], body)
    count = data[0].source.shape[1]
    if positions is None:
        return None
    f, c, *taps = positions
    if data[0].index[1] != product.channel(weights.shape[0], count, f, c):
        return None
    if count != image.shape[1]:
        return None
    spans = [
        product.stride * (n - 1) + product.dilation * (t - 1) + 1
        for n, t in zip(body.shape[2:], weights.shape[2:], strict=True)
    ]
    shape = (body.shape[0], count, *spans)
    index: list[Index] = []
    for dim, e in enumerate(data[0].index):
        seen = Index.iterator(1) if dim == 1 else _through(e, body, product, taps)
        if seen is None:
            return None
        index.append(seen)
    blank = tuple(_blank(index, data[0].source.shape, shape, dim) for dim in range(len(shape)))
    return _Window(box, data[0].source, tuple(index), shape, blank)


def _blank(index: Sequence[Index], within: Extents, shape: Extents, dim: int) -> tuple[int, int]:
    """Positions at both ends of a dim at which every index is outside the source."""

    def empty(position: int) -> bool:
        at = iterators(len(shape))
        at[dim] = Index(position)
        ranges = [range_of(e.substitute(at), shape) for e in index]
        return any(high < 0 or low >= n for (low, high), n in zip(ranges, within, strict=True))

    if dim < 2:
        return 0, 0
    first = next((k for k in range(shape[dim]) if not empty(k)), 0)
    last = next((k for k in range(shape[dim]) if not empty(shape[dim] - 1 - k)), 0)
    return first, last


def _positions_of(read: Read, body: SumOfProducts) -> list[Index] | None:
    """The weights' indices, each 0 or a single iterator; None for any other."""
    index = list(read.index)
    plain = [e for e in index if e.terms]
    if any(e != Index.iterator(k) for e in plain for k in e.iterators):
        return None
    sums = [e for e in index[1:] if e.terms]
    inner = all(k >= body.rank for e in sums for k in e.iterators)
    first = index[0] == Index.iterator(1) or (not index[0].terms and body.shape[1] == 1)
    return index if inner and first and len(set(plain)) == len(plain) else None


def _through(e: Index, body: SumOfProducts, product: Conv, taps: Sequence[Index]) -> Index | None:
    """An image index over the window's dims, one of which is stride * x + dilation * tap."""
    moved = Index(0)
    for position, tap in enumerate(taps):
        dim = position + 2
        by_tap = e.coefficient(next(iter(tap.iterators))) if tap.terms else 0
        by_position = e.coefficient(dim)
        times = by_tap // product.dilation if tap.terms else by_position // product.stride
        if tap.terms and by_tap != times * product.dilation:
            return None
        if body.shape[dim] > 1 and by_position != times * product.stride:
            return None
        e = e - Index.iterator(dim) * by_position
        e = e - (tap * by_tap if tap.terms else 0)
        moved += Index.iterator(dim) * times
    # The rest may depend on the image number, and on nothing else.
    return e + moved if e.iterators <= {0} else None


def _placed(
    product: Conv, image: Source, weights: Source, windows: Sequence[_Window], along: int
) -> tuple[Extents, list[tuple[int, ...]]]:
    """Where the windows are, if they follow the image along a dim, and the resulting shape."""
    stride, shape = product.stride, list(image.shape)
    pads = [0, 0, *product.pads(weights.shape[2:])]
    starts: list[tuple[int, ...]] = []
    # The end of the last part, and where the next may begin, with the zeros that are read between.
    solid = free = shape[along]
    made = product.shape(image.shape, weights.shape)
    if along and made is not None:
        span = product.dilation * (weights.shape[along] - 1)
        # The last result of the image reads zeros beyond it.
        free = max(free, (made[along] - 1) * stride + span - pads[along] + 1)
    for window in windows:
        start = [-min(pad, blank[0]) for pad, blank in zip(pads, window.blank, strict=True)]
        start[along] = max(free - window.blank[along][0], solid)
        # Its first result is a whole number of steps further, including the padding.
        steps = [1, 1, *(stride for _ in pads[2:])]
        start = [at + (-at - pad) % step for at, pad, step in zip(start, pads, steps, strict=True)]
        starts.append(tuple(start))
        sides = zip(start, window.shape, window.blank, pads, strict=True)
        # The padding at the end replaces as many of its last zeros.
        ends = [at + n - min(blank[1], pad) for at, n, blank, pad in sides]
        shape = [max(pair) for pair in zip(shape, ends, strict=True)]
        free = start[along] + window.shape[along]
        solid = free - window.blank[along][1]
    return tuple(shape), starts


def _in_one_tensor(
    image: Source, windows: Sequence[_Window], starts: Sequence[Sequence[int]], shape: Extents
) -> Scope:
    """The image and the windows in one tensor, with zeros between."""
    here = iterators(len(shape))
    whole = body_of(image)
    if whole is not None and not whole.sums and len(whole.factors) == 1 and whole.coefficient == 1:
        (read,) = whole.reads
        parts = [(read.source, read.index, image.shape, [0] * len(shape))]
    else:
        parts = [(image, tuple(here), image.shape, [0] * len(shape))]
    pairs = zip(windows, starts, strict=True)
    parts += [(w.source, w.index, w.shape, list(start)) for w, start in pairs]
    terms: list[Term] = []
    for source, index, extents, start in parts:
        moved = [e - by for e, by in zip(here, start, strict=True)]
        at = [e.substitute(moved) for e in index]
        bounds = [(moved[k], n) for k, n in enumerate(extents) if (start[k], n) != (0, shape[k])]
        for dim, (e, n) in enumerate(bounds):
            least, most = range_of(at[dim], shape)
            beyond = max(source.shape[dim] - least, most + 1)
            at[dim] = at[dim] + (e // n) * beyond
        terms += normal((ONE, (), (Read(source, tuple(at)),)), shape)
    return scope(shape, image.element, collect(terms))
