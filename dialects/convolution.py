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
MOST_SPATIAL = 3


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
    def is_plain(self) -> bool:
        return self.data == self.out == tuple(range(len(self.out)))


@dataclass(frozen=True)
class _SpatialRead:
    """The position that a spatial dim is read at, and its tap."""

    stride: int
    dilation: int
    pad: int
    tap: int | None
    transposed: bool


def convolution_of(found: Contraction[Any]) -> ConvolutionDims | None:
    """The contraction as a convolution of its first operand by the second, or None.

    Where nothing slides and channels come first, a matrix product is as good.
    """
    if not 3 <= found.rank <= 2 + MOST_SPATIAL or len(found.first.index) != found.rank:
        return None
    for order in _orders(found):
        made = _in_order(found, order)
        if made is not None:
            return made
    return None


def _orders(found: Contraction[Any]) -> Iterator[_Order]:
    """Try channels first, then the one other order that the reads admit."""
    plain, data = tuple(range(found.rank)), found.first
    yield _Order(plain, plain)
    f, c = _feature(found), _channel_dim(found)
    if f is None or c is None:
        return
    loops = [k for k in plain if k != f]
    moved = {d: _moving(data.index[d], loops) for d in plain if d != c}
    left = [k for k in loops if k not in moved.values()]  # of extent 1: in no index
    positions = {d: left.pop(0) if k is None and left else k for d, k in moved.items()}
    whole = (d for d, k in positions.items() if k is not None and _is_whole(found, d, k))
    images = next(whole, next((d for d in positions if moved[d] is None), None))
    if images is None or sorted(k for k in positions.values() if k is not None) != loops:
        return
    spatial = sorted((d for d in positions if d != images), key=lambda d: positions[d] or 0)
    out = (positions[images] or 0, f, *(positions[d] or 0 for d in spatial))
    order = _Order((images, c, *spatial), out)
    if not order.is_plain:
        yield order


def _feature(found: Contraction[Any]) -> int | None:
    """The traversal of the features: that of the filters, else the last one in no index."""
    rank, used = found.rank, found.second.iterators
    own = [k for k in range(rank) if k in used and found.extents[k] != 1]
    if own:
        return own[0] if len(own) == 1 else None
    free = [k for k in range(rank) if found.extents[k] == 1 and k not in found.first.iterators]
    return free[-1] if free else None


def _channel_dim(found: Contraction[Any]) -> int | None:
    """The channel dim: indexed by the features' group or by a plain sum, else of extent 1.

    Among several plain sums the last is chosen: the others are taps of windows that do not move.
    """
    rank, data = found.rank, found.first
    kept = [e.iterators for e in data.index]
    features = {k for k in found.second.iterators if k < rank}
    grouped = [d for d in range(rank) if kept[d] & features]
    sums = [d for d in range(rank) if kept[d] and min(kept[d]) >= rank]
    single = [d for d in range(rank) if data.shape[d] == 1 and data.index[d] == Index(0)]
    return next(iter(grouped or sums[::-1] or single[::-1]), None)


def _moving(index: Index, loops: Sequence[int]) -> int | None:
    """The iterator that a traversal is indexed by."""
    return next((k for k in loops if k in index.iterators), None)


def _is_whole(found: Contraction[Any], dim: int, loop: int) -> bool:
    """Whether a traversal alone indexes a whole dim of the data."""
    plain = found.first.index[dim] == Index.iterator(loop)
    return plain and found.first.shape[dim] == found.extents[loop]


def _in_order(found: Contraction[Any], order: _Order) -> ConvolutionDims | None:
    """The convolution with its dims in this order, or None."""
    data, extents = found.first, found.extents
    n, f, *loops = order.out
    images, channels, *spatial = order.data
    if not _is_plain(data.index[images], n, extents) or data.shape[images] != extents[n]:
        return None
    channel = _channel(data.index[channels], f, found)
    positions = [_position(data.index[d], p, found) for d, p in zip(spatial, loops, strict=True)]
    known = [position for position in positions if position is not None]
    if channel is None or len(known) != len(positions):
        return None
    c, group_size, per_group = channel
    taps = [position.tap for position in known]
    if not _accounts_for_sums(found, [c, *taps]) or (group_size and extents[f] % group_size):
        return None
    roles = _filter_roles(found, f, c, taps)
    groups = extents[f] // group_size if group_size else 1
    if roles is None or data.shape[channels] != groups * per_group:
        return None
    usual = order.is_plain and len(roles) == found.rank
    sliding = [extents[tap] for tap in taps if tap is not None] + [p.stride for p in known]
    if not usual and max(sliding, default=1) == 1:
        return None
    if not _guards_fit(found, known, loops):
        return None
    numbers = range(len(known))
    return ConvolutionDims(
        _roles(order.data, ("n", "c", *numbers)),
        roles,
        _roles(order.out, ("n", "f", *numbers)),
        tuple(position.stride for position in known),
        tuple(position.dilation for position in known),
        tuple(position.pad for position in known),
        groups,
        transposed=any(position.transposed for position in known),
    )


def _roles(order: Sequence[int], roles: Roles) -> Roles:
    """The role of each dim, where `order` gives the dim of each role."""
    return tuple(roles[order.index(dim)] for dim in range(len(order)))


def _accounts_for_sums(found: Contraction[Any], known: Sequence[int | None]) -> bool:
    """Whether every summation is the channels or one tap, each used once."""
    used = [k for k in known if k is not None]
    sums = {k for k, n in enumerate(found.extents) if k >= found.rank and n != 1}
    return len(set(used)) == len(used) and sums <= set(used)


def _is_plain(index: Index, iterator: int, extents: Extents) -> bool:
    """Whether the index is the iterator itself (or 0 where its extent is 1)."""
    return index == Index.iterator(iterator) or (index == Index(0) and extents[iterator] == 1)


def _channel(index: Index, f: int, found: Contraction[Any]) -> tuple[int | None, int, int] | None:
    """(channel iterator, features per group, channels per group) of `(f // size) * per + c`."""
    if index.constant != 0:
        return None
    c: int | None = None
    group: tuple[int, int] | None = None
    for atom, coefficient in index.terms:
        if isinstance(atom, int) and atom >= found.rank and coefficient == 1 and c is None:
            c = atom
        elif atom == f and group is None:
            group = (1, coefficient)
        elif isinstance(atom, FloorDiv) and atom.numerator == Index.iterator(f) and group is None:
            group = (atom.divisor, coefficient)
        else:
            return None
    per_group = 1 if c is None else found.extents[c]
    if group is None:
        return c, 0, per_group
    return (c, group[0], per_group) if group[1] == per_group else None


def _position(index: Index, p: int, found: Contraction[Any]) -> _SpatialRead | None:
    """The position of spatial dim `p` of the output along a dim of the data."""
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
        elif isinstance(atom, int) and atom >= found.rank and tap is None:
            tap, dilation = atom, coefficient
        else:
            return None
    if step is None and found.extents[p] == 1:
        step = 1
    if step is None or step < 1 or dilation == 0:
        return None
    if dilation < 0 or floor:  # out + pad - dilation * r, over stride: a transposed convolution
        if step != 1 or (tap is not None and dilation > 0):
            return None
        return _SpatialRead(stride, abs(dilation), index.constant, tap, transposed=True)
    return _SpatialRead(step, dilation, -index.constant, tap, transposed=False)


def _filter_roles(
    found: Contraction[Any], f: int, c: int | None, taps: Sequence[int | None]
) -> Roles | None:
    """The role of each filter dim; None unless each is f, c or one tap, none missing."""
    extents, filters = found.extents, found.second
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


def _guards_fit(found: Contraction[Any], at: Sequence[_SpatialRead], loops: Sequence[int]) -> bool:
    """Check that guards require exact division by the stride in each strided dim, and no more."""
    wanted: list[Index] = []
    for p, position in zip(loops, at, strict=True):
        if not position.transposed or position.stride == 1:
            continue
        reach = Index(position.pad)
        if found.extents[p] != 1 or position.tap is not None:
            reach += Index.iterator(p)
        if position.tap is not None:
            reach -= Index.iterator(position.tap) * position.dilation
        wanted.append(reach % position.stride)
    guards = (*found.first.guards, *found.second.guards)
    return len(guards) == len(wanted) and all(g.extent == 1 and g.index in wanted for g in guards)
