"""Operator matching: read a library kernel's parameters off a scope, or say it is none.

A contraction is a sum of a product of two reads (and, for transposed convolution, a guard). Its
iterators fall into groups by where they occur: batch (both operands and the output), m, n (one
operand and the output), k (both operands, summed). Matches are made modulo layout: strides are
whatever the reads say, operands stay where they are. Source: EinNet section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.index import (
    FloorDiv,
    Index,
    flatten,
    is_chain,
    iterators,
    range_of,
    row_major_strides,
)
from ...dialects.scalars import Call, Expr, Read
from ...dialects.types import element_of, shape_of

# Kernels of convolutions have so many spatial dims at most.
MOST_SPATIAL = 3


@dataclass(frozen=True)
class Axis:
    """A loop of a kernel: its extent and element strides in the two operands and the output.

    `iterators` are the scope's iterators it stands for, outermost first.
    """

    extent: int
    a: int
    b: int
    out: int
    iterators: tuple[int, ...] = ()


@dataclass(frozen=True)
class GemmMatch:
    """out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n], all row-major buffers.

    `m`, `n`, `k` are merged into one axis each; `batch` may be several. What of m and n fits in no
    axis with the rest is batch too, and moves one operand only: the other's stride is 0 (heads
    beside each other that share their keys). `a_offset`/`b_offset` are element offsets of the first
    read. `a`, `b` are the scope's reads.
    """

    a: Read
    b: Read
    batch: tuple[Axis, ...]
    m: Axis
    n: Axis
    k: Axis
    a_offset: int
    b_offset: int

    @property
    def shares(self) -> bool:
        """Whether an operand stays where it is while the batch moves on."""
        return any(axis.a == 0 or axis.b == 0 for axis in self.batch)


def factors(expr: Expr) -> list[Read] | None:
    """The reads of a pure product, None for any other body."""
    match expr:
        case Read():
            return [expr]
        case Call("mul", (left, right)):
            a, b = factors(left), factors(right)
            return None if a is None or b is None else a + b
        case _:
            return None


Strides: TypeAlias = Callable[[SSAValue], tuple[Sequence[int], int]]
"""Element strides per dim of a value's buffer, and the offset of its first element."""


def row_major(value: SSAValue) -> tuple[Sequence[int], int]:
    """The strides of a buffer without a layout."""
    return row_major_strides(shape_of(value)), 0


def match_gemm(scope: ScopeOp, strides: Strides = row_major) -> GemmMatch | None:
    """Match a float32 product of two reads whose groups are strided ranges; None otherwise."""
    reads = factors(scope.expr())
    if reads is None or len(reads) != 2 or scope.reduction.data != "sum" or not scope.summation:
        return None
    if any(element_of(r.source) != f32 or not in_bounds(r, scope.extents) for r in reads):
        return None
    rank = len(scope.traversal)
    out = flatten(iterators(rank), strides(scope.result)[0])
    flats = [flatten(r.index, strides(r.source)[0]) + strides(r.source)[1] for r in reads]
    if any(flat.has_floor for flat in flats):
        return None
    used = [k for k, n in enumerate(scope.extents) if n != 1]
    first, second = flats
    if used and rank and not _touches(second, _innermost(used, rank, out)):
        reads, first, second = [reads[1], reads[0]], second, first
    axes = {
        k: Axis(
            scope.extents[k],
            first.coefficient(k),
            second.coefficient(k),
            out.coefficient(k),
            (k,),
        )
        for k in used
    }
    groups = _groups(axes, rank)
    if groups is None:
        return None
    batch, m, n, k = groups
    rows, more_rows = _peel(m, ("a", "out"))
    columns, more_columns = _peel(n, ("b", "out"), last=True)
    inner = _merge(k, ("a", "b"))
    if rows is None or columns is None or inner is None:
        return None
    if columns.extent > 1 and columns.out != 1:
        return None
    batch = (*batch, *more_rows, *more_columns)
    return GemmMatch(
        reads[0], reads[1], batch, rows, columns, inner, first.constant, second.constant
    )


def in_bounds(read: Read, extents: Sequence[int]) -> bool:
    """Whether the read never leaves its tensor."""
    for index, size in zip(read.index, shape_of(read.source), strict=True):
        low, high = range_of(index, tuple(extents))
        if low < 0 or high >= size:
            return False
    return True


def _innermost(used: Sequence[int], rank: int, out: Index) -> int:
    """The traversal whose neighbours are adjacent in the output."""
    traversals = [k for k in used if k < rank]
    return min(traversals, key=out.coefficient) if traversals else used[-1]


def _touches(flat: Index, iterator: int) -> bool:
    return flat.coefficient(iterator) != 0


def _groups(axes: dict[int, Axis], rank: int) -> tuple[list[Axis], ...] | None:
    batch, m, n, k = list[Axis](), list[Axis](), list[Axis](), list[Axis]()
    for iterator, axis in axes.items():
        in_a, in_b = axis.a != 0, axis.b != 0
        if iterator >= rank:
            if not (in_a and in_b):
                return None
            k.append(axis)
        elif in_a and in_b:
            batch.append(axis)
        elif in_a:
            m.append(axis)
        elif in_b:
            n.append(axis)
        else:
            return None
    return (batch, m, n, k) if k else None


def _peel(
    axes: list[Axis], tensors: tuple[str, str], *, last: bool = False
) -> tuple[Axis | None, list[Axis]]:
    """The greatest run of axes that is one strided range in both tensors, and the axes left.

    `last` keeps the axis whose neighbours are adjacent in the result.
    """
    axes = sorted(axes, key=lambda axis: -getattr(axis, tensors[1]))
    runs = [(i, j) for i in range(len(axes)) for j in range(i + 1, len(axes) + 1)]
    best: tuple[Axis, tuple[int, int]] | None = None
    for i, j in runs:
        merged = _merge(axes[i:j], tensors) if j == len(axes) or not last else None
        if merged is not None and (best is None or merged.extent > best[0].extent):
            best = merged, (i, j)
    if best is None:
        return _merge(axes, tensors), []
    merged, (i, j) = best
    left = [*axes[:i], *axes[j:]]
    if any(min(getattr(axis, t) for t in tensors) <= 0 for axis in left):
        return None, []
    return merged, left


def _merge(axes: list[Axis], tensors: tuple[str, str]) -> Axis | None:
    """Merge a group into one axis where it is a strided range in both tensors."""
    if not axes:
        return Axis(1, 0, 0, 0)
    axes = sorted(axes, key=lambda axis: -getattr(axis, tensors[1]))
    extents = [axis.extent for axis in axes]
    for tensor in tensors:
        strides = [getattr(axis, tensor) for axis in axes]
        if min(strides) <= 0 or not is_chain(strides, extents):
            return None
    total = 1
    for n in extents:
        total *= n
    iterators = tuple(k for axis in axes for k in axis.iterators)
    return Axis(total, axes[-1].a, axes[-1].b, axes[-1].out, iterators)


# --- convolution --------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConvMatch:
    """A (transposed) convolution, its dims in any order.

    `data_order` and `out_order` are the dims of the data and of the result in the order images,
    channels, spatial dims. `weight_dims` gives for each weight dim what it is: "f", "c" or the
    number of a tap. Spatial parameters are per spatial dim; a transposed convolution takes tap r
    from (out + pad - dilation * r) / stride.
    """

    data: Read
    weights: Read
    data_order: tuple[int, ...]
    out_order: tuple[int, ...]
    images: int
    features: int
    sizes: tuple[int, ...]
    groups: int
    channels_per_group: int
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    weight_dims: tuple[str | int, ...]
    transposed: bool

    @property
    def channels(self) -> int:
        """Channels of the data, of all groups."""
        return self.groups * self.channels_per_group

    @property
    def channels_first(self) -> bool:
        """Whether data and result have their dims in the order images, channels, spatial dims."""
        plain = tuple(range(len(self.out_order)))
        return self.data_order == self.out_order == plain


def channels_last(order: Sequence[int]) -> tuple[int, ...]:
    """Dims in the order images, spatial dims, channels, of those in the order of a ConvMatch."""
    return (order[0], *order[2:], order[1])


def match_conv(scope: ScopeOp) -> ConvMatch | None:
    """Match a sum of data[n, channel(f, c), *place(p, r)] * w[f, c, *r], dims in any order."""
    reads = factors(scope.expr())
    rank = len(scope.traversal)
    if reads is None or scope.reduction.data != "sum" or rank < 3 or not 2 <= len(reads) <= 3:
        return None
    if any(element_of(r.source) != f32 or r.outside != 0.0 for r in reads):
        return None
    guards = [r for r in reads if isinstance(r.source.owner, OnesOp)]
    pair = [r for r in reads if r not in guards]
    if len(pair) != 2 or len(pair) + len(guards) != len(reads):
        return None
    for data, weights in (pair, pair[::-1]):
        for order in _orders(scope, data, weights):
            found = _conv(scope, data, weights, guards, order)
            if found is not None:
                return found
    return None


@dataclass(frozen=True)
class _Order:
    """The dims of data and result in the order images, channels, spatial dims."""

    data: tuple[int, ...]
    out: tuple[int, ...]

    @property
    def is_plain(self) -> bool:
        return self.data == self.out == tuple(range(len(self.out)))


def _orders(scope: ScopeOp, data: Read, weights: Read) -> Iterator[_Order]:
    """Channels first; then the one order that the reads admit, if it is another."""
    plain = tuple(range(len(scope.traversal)))
    if len(data.index) != len(plain) or len(plain) > 2 + MOST_SPATIAL:
        return
    yield _Order(plain, plain)
    f, c = _feature(scope, data, weights), _channel_dim(scope, data, weights)
    if f is None or c is None:
        return
    loops = [k for k in plain if k != f]
    moved = {d: _moving(data.index[d], loops) for d in plain if d != c}
    left = [k for k in loops if k not in moved.values()]  # of extent 1: they move nothing
    places = {d: left.pop(0) if k is None and left else k for d, k in moved.items()}
    images = next((d for d, k in places.items() if k == _plain_loop(data, d, scope.extents)), None)
    images = next((d for d in places if moved[d] is None), None) if images is None else images
    if images is None or sorted(k for k in places.values() if k is not None) != loops:
        return
    spatial = sorted((d for d in places if d != images), key=lambda d: places[d] or 0)
    order = _Order(
        (images, c, *spatial), (places[images] or 0, f, *(places[d] or 0 for d in spatial))
    )
    if not order.is_plain:
        yield order


def _used(read: Read) -> set[int]:
    return {k for index in read.index for k in index.iterators}


def _feature(scope: ScopeOp, data: Read, weights: Read) -> int | None:
    """The traversal of the features: the weights', else the last that moves nothing."""
    rank, extents = len(scope.traversal), scope.extents
    own = [k for k in _used(weights) if k < rank and extents[k] != 1]
    free = [k for k in range(rank) if extents[k] == 1 and k not in _used(data)]
    return own[0] if len(own) == 1 else next(iter(free[::-1]), None) if not own else None


def _channel_dim(scope: ScopeOp, data: Read, weights: Read) -> int | None:
    """The dim of the channels: the features' group moves it, or a sum alone; else one of extent 1.

    Of several sums alone it is the last: the others are taps of windows that stay in place.
    """
    rank, shape = len(scope.traversal), shape_of(data.source)
    kept = [e.iterators for e in data.index]
    grouped = [d for d in range(rank) if kept[d] & {k for k in _used(weights) if k < rank}]
    sums = [d for d in range(rank) if kept[d] and min(kept[d]) >= rank]
    single = [d for d in range(rank) if shape[d] == 1 and data.index[d] == Index(0)]
    return next(iter(grouped or sums[::-1] or single[::-1]), None)


def _moving(index: Index, loops: Sequence[int]) -> int | None:
    """The traversal that moves a place."""
    return next((k for k in loops if k in index.iterators), None)


def _plain_loop(data: Read, dim: int, extents: Sequence[int]) -> int | None:
    """The iterator that goes through a whole dim by itself."""
    size = shape_of(data.source)[dim]
    its = [k for k in data.index[dim].iterators if data.index[dim] == Index.iterator(k)]
    return its[0] if its and extents[its[0]] == size else -1


def _conv(
    scope: ScopeOp, data: Read, weights: Read, guards: list[Read], order: _Order
) -> ConvMatch | None:
    extents, shape = scope.extents, shape_of(data.source)
    rank = len(scope.traversal)
    n, f, *loops = order.out
    images, channels, *spatial = order.data
    if not _is_plain(data.index[images], n, extents):
        return None
    channel = _channel(data.index[channels], f, rank, extents)
    places = [_place(data.index[d], p, rank, extents) for d, p in zip(spatial, loops, strict=True)]
    if channel is None or any(place is None for place in places):
        return None
    c, group_size, per_group = channel
    found = [place for place in places if place is not None]
    taps = [tap for *_, tap, _ in found]
    if not _accounts_for_sums(scope, [c, *taps]) or (group_size and extents[f] % group_size):
        return None
    dims = _weight_dims(weights, f, c, taps, extents)
    if dims is None or shape[images] != extents[n]:
        return None
    kernel = tuple(extents[tap] if tap is not None else 1 for tap in taps)
    strides = tuple(stride for stride, *_ in found)
    usual = order.is_plain and len(weights.index) == rank
    if not usual and max((*kernel, *strides)) == 1:
        return None  # nothing slides: a matrix product
    if not _guards_fit(guards, found, loops, extents):
        return None
    groups = extents[f] // group_size if group_size else 1
    if shape[channels] != groups * per_group:
        return None
    return ConvMatch(
        data,
        weights,
        order.data,
        order.out,
        extents[n],
        extents[f],
        tuple(extents[p] for p in loops),
        groups,
        per_group,
        kernel,
        strides,
        tuple(dilation for _, dilation, *_ in found),
        tuple(pad for _, _, pad, _, _ in found),
        dims,
        transposed=any(floor for *_, floor in found),
    )


def _accounts_for_sums(scope: ScopeOp, found: Sequence[int | None]) -> bool:
    """Whether every summation is the channels or one tap, none of them twice."""
    used = [k for k in found if k is not None]
    sums = {k for k, n in enumerate(scope.extents) if k >= len(scope.traversal) and n != 1}
    return len(set(used)) == len(used) and sums <= set(used)


def _is_plain(index: Index, iterator: int, extents: Sequence[int]) -> bool:
    """Whether the index is the iterator itself (or 0 where its extent is 1)."""
    if index == Index.iterator(iterator):
        return True
    return index == Index(0) and extents[iterator] == 1


def _channel(
    index: Index, f: int, rank: int, extents: Sequence[int]
) -> tuple[int | None, int, int] | None:
    """(channel iterator, features per group, channels per group) of `(f // size) * per + c`."""
    if index.constant != 0:
        return None
    c: int | None = None
    group: tuple[int, int] | None = None
    for atom, coefficient in index.terms:
        if isinstance(atom, int) and atom >= rank and coefficient == 1 and c is None:
            c = atom
        elif atom == f and group is None:
            group = (1, coefficient)
        elif isinstance(atom, FloorDiv) and atom.numerator == Index.iterator(f) and group is None:
            group = (atom.divisor, coefficient)
        else:
            return None
    per_group = 1 if c is None else extents[c]
    if group is None:
        return c, 0, per_group
    return (c, group[0], per_group) if group[1] == per_group else None


def _place(
    index: Index, p: int, rank: int, extents: Sequence[int]
) -> tuple[int, int, int, int | None, bool] | None:
    """(stride, dilation, pad, tap iterator, transposed) of a spatial index."""
    stride = 1
    floor = False
    if len(index.terms) == 1 and isinstance(index.terms[0][0], FloorDiv):
        atom, coefficient = index.terms[0]
        if coefficient != 1 or index.constant != 0:
            return None
        assert isinstance(atom, FloorDiv)
        floor, stride, index = True, atom.divisor, atom.numerator
    tap: int | None = None
    dilation, p_coefficient = 1, None
    for atom, coefficient in index.terms:
        if atom == p:
            p_coefficient = coefficient
        elif isinstance(atom, int) and atom >= rank and tap is None:
            tap, dilation = atom, coefficient
        else:
            return None
    if p_coefficient is None and extents[p] == 1:
        p_coefficient = 1
    if p_coefficient is None or p_coefficient < 1 or dilation == 0:
        return None
    if dilation < 0 or floor:  # out + pad - dilation * r, over stride: a transposed convolution
        if p_coefficient != 1 or (tap is not None and dilation > 0):
            return None
        return stride, abs(dilation), index.constant, tap, True
    return p_coefficient, dilation, -index.constant, tap, False


def _weight_dims(
    weights: Read, f: int, c: int | None, taps: Sequence[int | None], extents: Sequence[int]
) -> tuple[str | int, ...] | None:
    """What each weight dim is; None unless every one is f, c or one tap, none missing."""
    roles: list[tuple[int, str | int]] = [(f, "f")]
    roles += [(c, "c")] if c is not None else []
    roles += [(tap, k) for k, tap in enumerate(taps) if tap is not None]
    dims: list[str | int] = []
    for index, size in zip(weights.index, shape_of(weights.source), strict=True):
        role = next(
            (r for k, r in roles if index == Index.iterator(k) and size == extents[k]), None
        )
        if role is None and (size != 1 or range_of(index, tuple(extents)) != (0, 0)):
            return None
        dims.append("one" if role is None else role)
    kept = [d for d in dims if d != "one"]
    needed = {role for k, role in roles if extents[k] != 1}
    return tuple(dims) if needed <= set(kept) and len(set(kept)) == len(kept) else None


def _guards_fit(
    guards: list[Read],
    places: Sequence[tuple[int, int, int, int | None, bool]],
    loops: Sequence[int],
    extents: Sequence[int],
) -> bool:
    """The guard must say exactly "the division by the stride is whole" in each strided dim."""
    wanted: list[Index] = []
    for p, (stride, dilation, pad, tap, floor) in zip(loops, places, strict=True):
        if not floor or stride == 1:
            continue
        reach = Index(pad)
        if extents[p] != 1 or tap is not None:
            reach += Index.iterator(p)
        if tap is not None:
            reach -= Index.iterator(tap) * dilation
        wanted.append(reach % stride)
    found = [index for guard in guards for index in guard.index]
    sizes = [n for guard in guards for n in shape_of(guard.source)]
    return (
        len(found) == len(wanted)
        and all(n == 1 for n in sizes)
        and all(index in wanted for index in found)
    )
