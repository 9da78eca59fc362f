"""Recognise convolutions among contractions, with dims in any order, and their parameters.

    out[n, f, *p] = sum over c, *r of data[n, group(f) + c, *position(p, r)] * filters[f, c, *r]

A position is stride * p + dilation * r - pad. A transposed convolution takes tap r from
(p + pad - dilation * r) / stride, where a guard requires that the division is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .contraction import Contraction, Extents, Operand
from .index import FloorDiv, Index, range_of

Role: TypeAlias = "str | int"
"""The role of a dim: "n" images, "c" channels, "f" features, "_" extent 1, or a spatial dim."""
Roles: TypeAlias = tuple[Role, ...]
# Convolution kernels have at most this many spatial dims.
MAX_SPATIAL = 3


@dataclass(frozen=True)
class ConvolutionDims:
    """The roles of the dims of operands and result, and parameters per spatial dim."""

    data: Roles  # role of each dim
    filters: Roles  # likewise
    result: Roles  # likewise
    strides: Extents
    dilations: Extents
    pads: Extents
    groups: int = 1
    transposed: bool = False


@dataclass(frozen=True)
class _Order:
    """The dims of data and result in the order images, channels, spatial dims."""

    data: tuple[int, ...]
    out: tuple[int, ...]

    @property
    def is_channels_first(self) -> bool:
        return self.data == self.out == tuple(range(len(self.out)))


@dataclass(frozen=True)
class _SpatialRead:
    """The position that a spatial dim is read at, and its tap."""

    stride: int
    dilation: int
    pad: int
    tap: int | None
    transposed: bool


def convolution_of(contraction: Contraction[Any]) -> ConvolutionDims | None:
    """Return the contraction as a convolution of its first operand by the second, or None.

    None for a 1x1 convolution of stride 1 in the order n, c, spatial dims: a matrix product serves.
    """
    if (
        not 3 <= contraction.rank <= 2 + MAX_SPATIAL
        or len(contraction.first.index) != contraction.rank
    ):
        return None
    for order in _orders(contraction):
        convolution = _in_order(contraction, order)
        if convolution is not None:
            return convolution
    return None


def _orders(contraction: Contraction[Any]) -> Iterator[_Order]:
    """Yield the order n, c, spatial dims; then the one other order that the reads admit, if any."""
    result_dims, data = tuple(range(contraction.rank)), contraction.first
    yield _Order(result_dims, result_dims)
    f, c = _feature(contraction), _channel_dim(contraction)
    if f is None or c is None:
        return
    iterators = [k for k in result_dims if k != f]
    iterator_of = {d: _iterator_in(data.index[d], iterators) for d in result_dims if d != c}
    unread = [k for k in iterators if k not in iterator_of.values()]  # of extent 1: in no index
    positions = {d: unread.pop(0) if k is None and unread else k for d, k in iterator_of.items()}
    whole_dims = (
        d for d, k in positions.items() if k is not None and _indexes_whole_dim(contraction, d, k)
    )
    images = next(whole_dims, next((d for d in positions if iterator_of[d] is None), None))
    if images is None or sorted(k for k in positions.values() if k is not None) != iterators:
        return
    spatial = sorted((d for d in positions if d != images), key=lambda d: positions[d] or 0)
    out = (positions[images] or 0, f, *(positions[d] or 0 for d in spatial))
    order = _Order((images, c, *spatial), out)
    if not order.is_channels_first:
        yield order


def _feature(contraction: Contraction[Any]) -> int | None:
    """Return the result iterator of the features.

    It is the one that indexes the filters. With one feature none does: then it is the last result
    iterator of extent 1 that indexes neither operand.
    """
    rank, in_filters = contraction.rank, contraction.second.iterators
    of_filters = [k for k in range(rank) if k in in_filters and contraction.extents[k] != 1]
    if of_filters:
        return of_filters[0] if len(of_filters) == 1 else None
    unread = [
        k
        for k in range(rank)
        if contraction.extents[k] == 1 and k not in contraction.first.iterators
    ]
    return unread[-1] if unread else None


def _channel_dim(contraction: Contraction[Any]) -> int | None:
    """Return the channel dim: indexed by the features' group or by sums alone, else of extent 1.

    If several dims are indexed by sums alone, the last is the channels. The others are spatial dims
    whose window has one position: the result's extent is 1 there.
    """
    rank, data = contraction.rank, contraction.first
    iterators_of = [e.iterators for e in data.index]
    features = {k for k in contraction.second.iterators if k < rank}
    grouped = [d for d in range(rank) if iterators_of[d] & features]
    sums = [d for d in range(rank) if iterators_of[d] and min(iterators_of[d]) >= rank]
    extent_one = [d for d in range(rank) if data.shape[d] == 1 and data.index[d] == Index(0)]
    return next(iter(grouped or sums[::-1] or extent_one[::-1]), None)


def _iterator_in(index: Index, iterators: Sequence[int]) -> int | None:
    """Return the first of these iterators that occurs in an index expression, or None."""
    return next((k for k in iterators if k in index.iterators), None)


def _indexes_whole_dim(contraction: Contraction[Any], dim: int, iterator: int) -> bool:
    """Whether an iterator alone indexes a dim of the data, from end to end."""
    is_iterator = contraction.first.index[dim] == Index.iterator(iterator)
    return is_iterator and contraction.first.shape[dim] == contraction.extents[iterator]


def _in_order(contraction: Contraction[Any], order: _Order) -> ConvolutionDims | None:
    """Return the convolution if its dims are in this order, else None."""
    data, extents = contraction.first, contraction.extents
    n, f, *positions_of = order.out
    images, channels, *spatial = order.data
    if not _is_iterator_or_zero(data.index[images], n, extents) or data.shape[images] != extents[n]:
        return None
    channel = _channel(data.index[channels], f, contraction)
    found_reads = [
        _position(data.index[d], p, contraction) for d, p in zip(spatial, positions_of, strict=True)
    ]
    reads = [position for position in found_reads if position is not None]
    if channel is None or len(reads) != len(found_reads):
        return None
    c, group_size, per_group = channel
    taps = [position.tap for position in reads]
    if not _accounts_for_sums(contraction, [c, *taps]) or (group_size and extents[f] % group_size):
        return None
    roles = _filter_roles(contraction, f, c, taps)
    groups = extents[f] // group_size if group_size else 1
    if roles is None or data.shape[channels] != groups * per_group:
        return None
    is_ncx = order.is_channels_first and len(roles) == contraction.rank
    window_sizes = [extents[tap] for tap in taps if tap is not None] + [p.stride for p in reads]
    if not is_ncx and max(window_sizes, default=1) == 1:
        return None
    if not _guards_fit(contraction, reads, positions_of):
        return None
    spatial_roles = range(len(reads))
    return ConvolutionDims(
        _roles(order.data, ("n", "c", *spatial_roles)),
        roles,
        _roles(order.out, ("n", "f", *spatial_roles)),
        tuple(position.stride for position in reads),
        tuple(position.dilation for position in reads),
        tuple(position.pad for position in reads),
        groups,
        transposed=any(position.transposed for position in reads),
    )


def _roles(order: Sequence[int], roles: Roles) -> Roles:
    """The role of each dim, where `order` gives the dim of each role."""
    return tuple(roles[order.index(dim)] for dim in range(len(order)))


def _accounts_for_sums(contraction: Contraction[Any], expected: Sequence[int | None]) -> bool:
    """Whether every summation is the channels or one tap, each used once."""
    used = [k for k in expected if k is not None]
    sums = {k for k, n in enumerate(contraction.extents) if k >= contraction.rank and n != 1}
    return len(set(used)) == len(used) and sums <= set(used)


def _is_iterator_or_zero(index: Index, iterator: int, extents: Extents) -> bool:
    """Whether the index is the iterator itself (or 0 where its extent is 1)."""
    return index == Index.iterator(iterator) or (index == Index(0) and extents[iterator] == 1)


def _channel(
    index: Index, f: int, contraction: Contraction[Any]
) -> tuple[int | None, int, int] | None:
    """(channel iterator, features per group, channels per group) of `(f // size) * per + c`."""
    if index.constant != 0:
        return None
    c: int | None = None
    group: tuple[int, int] | None = None
    for atom, coefficient in index.terms:
        if isinstance(atom, int) and atom >= contraction.rank and coefficient == 1 and c is None:
            c = atom
        elif atom == f and group is None:
            group = (1, coefficient)
        elif isinstance(atom, FloorDiv) and atom.numerator == Index.iterator(f) and group is None:
            group = (atom.divisor, coefficient)
        else:
            return None
    per_group = 1 if c is None else contraction.extents[c]
    if group is None:
        return c, 0, per_group
    return (c, group[0], per_group) if group[1] == per_group else None


def _position(index: Index, p: int, contraction: Contraction[Any]) -> _SpatialRead | None:
    """Return where result iterator `p` reads a spatial dim of the data, or None."""
    stride = 1
    floor = False
    if len(index.terms) == 1 and isinstance(index.terms[0][0], FloorDiv):
        atom, coefficient = index.terms[0]
        if coefficient != 1 or index.constant != 0:
            return None
        assert isinstance(atom, FloorDiv)
        floor, stride, index = True, atom.divisor, atom.numerator
    tap: int | None = None
    dilation, step = 1, None
    for atom, coefficient in index.terms:
        if atom == p:
            step = coefficient
        elif isinstance(atom, int) and atom >= contraction.rank and tap is None:
            tap, dilation = atom, coefficient
        else:
            return None
    if step is None and contraction.extents[p] == 1:
        step = 1
    if step is None or step < 1 or dilation == 0:
        return None
    if dilation < 0 or floor:  # out + pad - dilation * r, over stride: a transposed convolution
        if step != 1 or (tap is not None and dilation > 0):
            return None
        return _SpatialRead(stride, abs(dilation), index.constant, tap, transposed=True)
    return _SpatialRead(step, dilation, -index.constant, tap, transposed=False)


def _filter_roles(
    contraction: Contraction[Any], f: int, c: int | None, taps: Sequence[int | None]
) -> Roles | None:
    """The role of each filter dim; None unless each is f, c or one tap, none missing."""
    extents, filters = contraction.extents, contraction.second
    roles: list[tuple[int, Role]] = [(f, "f")]
    roles += [(c, "c")] if c is not None else []
    roles += [(tap, k) for k, tap in enumerate(taps) if tap is not None]
    dims = [_filter_role(e, size, roles, extents) for e, size in _dims(filters)]
    kept = [role for role in dims if role not in ("_", None)]
    needed = {role for k, role in roles if extents[k] != 1}
    if None in dims or not needed <= set(kept) or len(set(kept)) != len(kept):
        return None
    return tuple(role for role in dims if role is not None)


def _dims(operand: Operand[Any]) -> Iterator[tuple[Index, int]]:
    return zip(operand.index, operand.shape, strict=True)


def _filter_role(
    index: Index, size: int, roles: Sequence[tuple[int, Role]], extents: Extents
) -> Role | None:
    """The role of the iterator that alone indexes a dim of that size; None if there is none."""
    for k, role in roles:
        if index == Index.iterator(k) and size == extents[k]:
            return role
    return "_" if size == 1 and range_of(index, extents) == (0, 0) else None


def _guards_fit(
    contraction: Contraction[Any], reads: Sequence[_SpatialRead], iterators: Sequence[int]
) -> bool:
    """Check that guards require exact division by the stride in each strided dim, and no more."""
    expected: list[Index] = []
    for p, position in zip(iterators, reads, strict=True):
        if not position.transposed or position.stride == 1:
            continue
        reach = Index(position.pad)
        if contraction.extents[p] != 1 or position.tap is not None:
            reach += Index.iterator(p)
        if position.tap is not None:
            reach -= Index.iterator(position.tap) * position.dilation
        expected.append(reach % position.stride)
    guards = (*contraction.first.guards, *contraction.second.guards)
    return len(guards) == len(expected) and all(
        g.extent == 1 and g.index in expected for g in guards
    )
