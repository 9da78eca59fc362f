"""Views and copies of elements: each is a chain of graph ops that only move data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.types import element_of, is_unsigned, shape_of
from .aten import UnsupportedAten
from .node import AtenNode, Converter, Number, axes, axis

# How torch writes the end of a slice that has none.
_ENDLESS = 2**31 - 1


def view(n: AtenNode, x: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """The same elements under the result's shape."""
    return n.reshape(x, n.shape)


def permute(n: AtenNode, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Result dim k is operand dim `dims[k]`."""
    return n.transpose(x, [axis(d, len(dims)) for d in dims])


def transpose(n: AtenNode, x: SSAValue, dim0: int, dim1: int) -> SSAValue:
    """Two dims swapped."""
    rank = len(shape_of(x))
    perm = list(range(rank))
    if rank:
        a, b = axis(dim0, rank), axis(dim1, rank)
        perm[a], perm[b] = b, a
    return n.transpose(x, perm)


def t(n: AtenNode, x: SSAValue) -> SSAValue:
    """A matrix transposed; vectors and scalars unchanged."""
    return n.transpose(x, [1, 0]) if len(shape_of(x)) == 2 else x


def expand(n: AtenNode, x: SSAValue, *_: Any, **__: Any) -> SSAValue:
    """Broadcast to the result's shape."""
    return n.expand(x, n.shape)


def slice_(
    n: AtenNode,
    x: SSAValue,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> SSAValue:
    """Elements start, start + step, ... before end."""
    k = axis(dim, len(shape_of(x)))
    size = shape_of(x)[k]
    first = 0 if start is None else _within(start, size)
    last = size if end is None else _within(end, size)
    count = (last - first + step - 1) // step if last > first else 0
    return n.slice(x, k, first, count, step)


def _within(position: Any, size: Any) -> Any:
    """A position of a slice, counted from the end where negative; both may be extents."""
    if isinstance(position, int) and position >= _ENDLESS:
        return size
    if position < 0:
        position = position + size
        return position if position >= 0 else 0
    return position if position <= size else size


def select(n: AtenNode, x: SSAValue, dim: int, index: int) -> SSAValue:
    """One position of a dim, which goes away."""
    k = axis(dim, len(shape_of(x)))
    at = index if index >= 0 else index + shape_of(x)[k]
    return n.reshape(n.slice(x, k, at, 1), n.shape)


def cat(n: AtenNode, xs: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    """Tensors one after another; empty vectors of torch's old kind are left out."""
    rank = len(n.shape)
    parts = [n.cast(x, n.element) for x in xs if rank == 1 or shape_of(x) != (0,)]
    if not parts:
        raise UnsupportedAten("nothing to join")
    return parts[0] if len(parts) == 1 else n.op("concat", *parts, axis=axis(dim, rank))


def stack(n: AtenNode, xs: Sequence[SSAValue], dim: int = 0) -> SSAValue:
    """Tensors side by side along a new dim."""
    k, rank = axis(dim, len(n.shape)), len(n.shape)
    shape = [1 if d == k else n.shape[d] for d in range(rank)]
    return cat(n, [n.reshape(x, shape) for x in xs], k)


def split(n: AtenNode, x: SSAValue, size: int, dim: int = 0) -> list[SSAValue]:
    """Parts of one size, the last one smaller."""
    k = axis(dim, len(shape_of(x)))
    extent = shape_of(x)[k]
    if size == 0 or extent == 0:
        return [x]
    return split_sizes(n, x, [min(size, extent - at) for at in range(0, extent, size)], dim)


def split_sizes(n: AtenNode, x: SSAValue, sizes: Sequence[int], dim: int = 0) -> list[SSAValue]:
    """Parts of these sizes."""
    return n.build.split(x, axis=axis(dim, len(shape_of(x))), sizes=sizes)


def unbind(n: AtenNode, x: SSAValue, dim: int = 0) -> list[SSAValue]:
    """All positions of a dim, which goes away."""
    k = axis(dim, len(shape_of(x)))
    shape = [d for j, d in enumerate(shape_of(x)) if j != k]
    parts = split_sizes(n, x, [1] * shape_of(x)[k], k)
    return [n.reshape(part, shape) for part in parts]


def pad(n: AtenNode, x: SSAValue, pads: Sequence[int], value: Number = 0) -> SSAValue:
    """Pads of the last dims, last dim first, as torch counts them."""
    rank, count = len(shape_of(x)), len(pads) // 2
    begins, ends = [0] * rank, [0] * rank
    for k in range(count):
        begins[rank - 1 - k], ends[rank - 1 - k] = pads[2 * k], pads[2 * k + 1]
    if is_unsigned(element_of(x)):
        raise UnsupportedAten("unsigned integers are not padded")
    return n.op("pad", x, pads=[*begins, *ends], fill=float(value))


def _mirrored(size: int, before: int, after: int) -> np.ndarray[Any, Any]:
    at = np.abs(np.arange(-before, size + after))
    return np.where(at >= size, 2 * (size - 1) - at, at)


def _repeated(size: int, before: int, after: int) -> np.ndarray[Any, Any]:
    return np.clip(np.arange(-before, size + after), 0, size - 1)


def _padded(positions: Any) -> Converter:
    def convert(n: AtenNode, x: SSAValue, pads: Sequence[int]) -> SSAValue:
        rank = len(shape_of(x))
        for k in range(len(pads) // 2):
            d, before, after = rank - 1 - k, pads[2 * k], pads[2 * k + 1]
            if before or after:
                x = _pieces(n, x, d, positions(shape_of(x)[d], before, after))
        return x

    return convert


def _pieces(n: AtenNode, x: SSAValue, d: int, at: np.ndarray[Any, Any]) -> SSAValue:
    """Elements at constant positions, as slices of evenly spaced runs joined."""
    cuts = [0, *(np.flatnonzero(np.diff(np.diff(at))) + 1).tolist(), len(at)]
    runs = [at[a:b] for a, b in itertools.pairwise(cuts) if b > a]
    parts = [n.take(x, d, run) for run in runs]
    return parts[0] if len(parts) == 1 else n.op("concat", *parts, axis=d)


def flip(n: AtenNode, x: SSAValue, dims: Sequence[int]) -> SSAValue:
    """Dims read backwards."""
    for d in axes(list(dims), len(shape_of(x))) if dims else []:
        size = shape_of(x)[d]
        x = n.slice(x, d, size - 1, size, -1) if size > 1 else x
    return x


def roll(n: AtenNode, x: SSAValue, shifts: Sequence[int], dims: Sequence[int] = ()) -> SSAValue:
    """Elements moved along dims, those that leave come in at the other end."""
    shape = shape_of(x)
    if not dims:
        return n.reshape(_rolled(n, n.reshape(x, [math.prod(shape)]), 0, shifts[0]), shape)
    for shift, d in zip(shifts, dims, strict=True):
        x = _rolled(n, x, axis(d, len(shape)), shift)
    return x


def _rolled(n: AtenNode, x: SSAValue, d: int, shift: int) -> SSAValue:
    size = shape_of(x)[d]
    back = shift % size if size else 0
    if back == 0:
        return x
    end, start = n.slice(x, d, size - back, back), n.slice(x, d, 0, size - back)
    return n.op("concat", end, start, axis=d)


def repeat(n: AtenNode, x: SSAValue, repeats: Sequence[int]) -> SSAValue:
    """Whole copies side by side along each dim."""
    lead = len(repeats) - len(shape_of(x))
    shape = [*[1] * lead, *shape_of(x)]
    doubled = [v for count, size in zip(repeats, shape, strict=True) for v in (count, size)]
    ones = [v for size in shape for v in (1, size)]
    return n.reshape(n.expand(n.reshape(x, ones), doubled), n.shape)


def pixel_shuffle(n: AtenNode, x: SSAValue, factor: int) -> SSAValue:
    """Channels to blocks of pixels."""
    *lead, c, h, w = shape_of(x)
    at, r = len(lead), factor
    y = n.reshape(x, [*lead, c // (r * r), r, r, h, w])
    perm = [*range(at), at, at + 3, at + 1, at + 4, at + 2]
    return n.reshape(n.transpose(y, perm), n.shape)


def pixel_unshuffle(n: AtenNode, x: SSAValue, factor: int) -> SSAValue:
    """Blocks of pixels to channels."""
    *lead, c, h, w = shape_of(x)
    at, r = len(lead), factor
    y = n.reshape(x, [*lead, c, h // r, r, w // r, r])
    perm = [*range(at), at, at + 2, at + 4, at + 1, at + 3]
    return n.reshape(n.transpose(y, perm), n.shape)


def unfold(n: AtenNode, x: SSAValue, dim: int, size: int, step: int) -> SSAValue:
    """Windows along a dim; their elements become the last dim."""
    k, rank = axis(dim, len(shape_of(x))), len(shape_of(x))
    count = n.shape[k]
    if count * size > 4096:
        raise UnsupportedAten("more than 4096 windows of a dim")
    parts = [n.slice(x, k, j, count, step) for j in range(size)]
    lifted = [n.reshape(p, [*shape_of(p), 1]) for p in parts]
    return lifted[0] if size == 1 else n.op("concat", *lifted, axis=rank)


def slice_scatter(
    n: AtenNode,
    x: SSAValue,
    source: SSAValue,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> SSAValue:
    """x with a slice replaced."""
    k = axis(dim, len(shape_of(x)))
    size = shape_of(x)[k]
    first, last, _ = slice(start, end, step).indices(size)
    count = len(range(first, last, step))
    if step != 1:
        raise UnsupportedAten("a slice with steps is replaced")
    if count == 0:
        return x
    source = n.expand(n.cast(source, n.element), shape_of(n.slice(x, k, first, count)))
    return _replaced(n, x, source, k, first, count)


def select_scatter(n: AtenNode, x: SSAValue, source: SSAValue, dim: int, index: int) -> SSAValue:
    """x with one position of a dim replaced."""
    k, shape = axis(dim, len(shape_of(x))), shape_of(x)
    part = n.reshape(n.cast(source, n.element), [1 if j == k else d for j, d in enumerate(shape)])
    return _replaced(n, x, part, k, index % shape[k], 1)


def _replaced(n: AtenNode, x: SSAValue, part: SSAValue, k: int, first: int, count: int) -> SSAValue:
    size = shape_of(x)[k]
    parts = [part]
    if first:
        parts.insert(0, n.slice(x, k, 0, first))
    if first + count < size:
        parts.append(n.slice(x, k, first + count, size - first - count))
    return parts[0] if len(parts) == 1 else n.op("concat", *parts, axis=k)


def copy(n: AtenNode, x: SSAValue, source: SSAValue, non_blocking: bool = False) -> SSAValue:
    """The source in x's shape and element type."""
    return n.expand(n.cast(source, n.element), n.shape)


def triangle(upper: bool) -> Converter:
    """The part of matrices on one side of a diagonal, zeros elsewhere."""

    def convert(n: AtenNode, x: SSAValue, diagonal: int = 0) -> SSAValue:
        rows, columns = n.shape[-2:]
        mask = n.lower(rows, columns, diagonal - 1 if upper else diagonal)
        kept = n.expand(n.op("not", mask) if upper else mask, n.shape)
        if str(n.element) == "i1":
            return n.op("and", kept, x)
        return n.op("where", kept, x, n.literal(0, x))

    return convert


_VIEWS = (
    "view.default", "_unsafe_view.default",
    "unsqueeze.default", "squeeze.default", "squeeze.dim", "squeeze.dims",

)  # fmt: skip

TABLE: dict[str, Converter] = {
    **dict.fromkeys(_VIEWS, view),
    "permute.default": permute,
    "transpose.int": transpose,
    "t.default": t,
    "expand.default": expand,
    "slice.Tensor": slice_,
    "select.int": select,
    "cat.default": cat,
    "stack.default": stack,
    "split.Tensor": split,
    "split_with_sizes.default": split_sizes,
    "unbind.int": unbind,
    "constant_pad_nd.default": pad,
    **dict.fromkeys([f"reflection_pad{k}d.default" for k in (1, 2, 3)], _padded(_mirrored)),
    **dict.fromkeys([f"replication_pad{k}d.default" for k in (1, 2, 3)], _padded(_repeated)),
    "flip.default": flip,
    "roll.default": roll,
    "repeat.default": repeat,
    "pixel_shuffle.default": pixel_shuffle,
    "pixel_unshuffle.default": pixel_unshuffle,
    "unfold.default": unfold,
    "slice_scatter.default": slice_scatter,
    "select_scatter.default": select_scatter,
    "copy.default": copy,
    "tril.default": triangle(upper=False),
    "triu.default": triangle(upper=True),
}
