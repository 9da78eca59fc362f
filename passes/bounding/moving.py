"""How padding passes ops that move data: rows keep together, or are gathered by computed places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sympy
from xdsl.ir import SSAValue

from ...dialects.extent_math import Expression
from ...dialects.types import element_of, shape_of
from .padding import Dim, PaddedOp, Padding


def concat(reading: PaddedOp) -> Sequence[SSAValue]:
    """Along a padded dim the rows of each part stand behind those that count before it."""
    axis, parts = (
        reading.op.value("axis"),
        [dims[reading.op.value("axis")] for dims in reading.dims],
    )
    if all(part.count is None for part in parts[:-1]):  # nothing comes behind padding
        found = reading.rebuilt()
        _keep_zeros(reading, found[0])
        return found
    if len(parts) == 2 and (parts[1] == Dim(1) or reading.operands[0] in reading.padding.wide):
        return [_appended(reading, axis)]
    padding, build, size = reading.padding, reading.build, reading.dim[axis].size
    joined = build.concat(*reading.operands, axis=axis)
    here = padding.positions(size)
    ends: list[Expression] = [sympy.Integer(0)]
    for part in parts:
        ends.append(ends[-1] + (part.size if part.count is None else part.count))
    base, places = 0, here
    for part, end in zip(parts, ends, strict=False):
        # Where a part begins in the result, its rows are `base - end` further on.
        if base:
            first = build.expand(padding.number(end), [size])
            moved = build.add(here, build.expand(padding.number(base - end), [size]))
            places = build.where(build.greater_equal(here, first), moved, places)
        base += part.size
    return [build.gather(joined, _within(padding, places, base), axis=axis)]


def _keep_zeros(reading: PaddedOp, found: SSAValue) -> None:
    """A dim's padding is zeros where it is so in each part."""
    zeros = reading.padding.zeros
    for k, dim in enumerate(reading.dim):
        parts = zip(reading.operands, reading.dims, strict=True)
        if dim.count is not None and all(
            (x, k) in zeros for x, dims in parts if dims[k].count is not None
        ):
            zeros.add((found, k))


def _appended(reading: PaddedOp, axis: int) -> SSAValue:
    """Rows behind those that count, as a choice at each place: none of those moves."""
    padding, build, (x, row) = reading.padding, reading.build, reading.operands
    shape, (before, behind) = (
        [dim.size for dim in reading.dim],
        [dims[axis] for dims in reading.dims],
    )
    cleared = (x, axis) in padding.zeros
    x = padding.wide.get(x, x)
    positions = padding.positions(shape[axis])
    there = build.expand(padding.count(before), [shape[axis]])
    if behind == Dim(1):
        here = build.equal(positions, there)
        row = build.expand(row, shape)
    else:
        inside = padding.inside(reading.dim[axis])
        here = build.and_(build.greater_equal(positions, there), inside)
        row = build.gather(
            row, _within(padding, build.sub(positions, there), behind.size), axis=axis
        )
    extent = shape_of(x)[axis]
    if extent < shape[axis]:
        rest = [shape[axis] - extent if k == axis else n for k, n in enumerate(shape)]
        zeros = build.expand(padding.scalar(0, element_of(x)), rest)
        x = build.concat(x, zeros, axis=axis)
    found = build.where(padding.along(here, shape, axis), row, x)
    if cleared:
        padding.zeros.add((found, axis))
    return found


def slice_(reading: PaddedOp) -> Sequence[SSAValue]:
    """Rows from a known start are cut; others are gathered at computed places."""
    op, build, padding = reading.op, reading.build, reading.padding
    (x,) = reading.operands
    starts, steps = op.value("starts"), op.ints("steps")
    shape = shape_of(x)
    cut = [list(starts), list(padding.extents(op.value("sizes"))), list(steps)]
    gathered: list[int] = []
    for k, dim in enumerate(reading.dims[0]):
        start, size, step = (numbers[k] for numbers in cut)
        last = start + (size - 1) * step if isinstance(start, int) else None
        if dim.count is None and last is not None and (size == 0 or 0 <= last < dim.size):
            continue
        if last is not None and step > 0 and (size == 0 or last < dim.size):
            continue
        gathered.append(k)
        cut[0][k], cut[1][k], cut[2][k] = 0, shape[k], 1
    kept = [k for k in range(len(shape)) if cut[0][k] == 0 and cut[2][k] == 1]
    whole = {k for k in kept if (x, k) in padding.zeros and reading.dims[0][k] == reading.dim[k]}
    found = build.slice(x, starts=cut[0], sizes=cut[1], steps=cut[2])
    for k in gathered:
        size = reading.dim[k].size
        first = starts[k] if isinstance(starts[k], int) else starts[k].expr
        by = build.mul(padding.positions(size), build.expand(padding.number(steps[k]), [size]))
        places = build.add(by, build.expand(padding.number(first), [size]))
        found = build.gather(found, _within(padding, places, shape[k]), axis=k)
    padding.zeros |= {(found, k) for k in whole - set(gathered)}
    return [found]


def _within(padding: Padding, places: SSAValue, size: int) -> SSAValue:
    """Places moved into [0, size): those of padding may be anywhere."""
    build, shape = padding.build, shape_of(places)
    low, high = (build.expand(padding.number(n), shape) for n in (0, max(size - 1, 0)))
    return build.min(build.max(places, low), high)


def split(reading: PaddedOp) -> Sequence[SSAValue]:
    """Each part as a slice, where parts are padded; else as it is."""
    axis = reading.op.value("axis")
    if reading.dims[0][axis].count is None:
        found = reading.rebuilt()
        for k in reading.padded(0):
            if (reading.operands[0], k) in reading.padding.zeros:
                reading.padding.zeros |= {(value, k) for value in found}
        return found
    raise reading.unfit("it splits a padded dim")


# --- reshape ---


def reshape(reading: PaddedOp) -> Sequence[SSAValue]:
    """Padded dims that stay whole go on; torn apart or joined, their elements are gathered."""
    padding, build = reading.padding, reading.build
    groups = _groups(reading.dims[0], reading.dim)
    if groups is None:
        raise reading.unfit("its padded dims are torn apart")
    if all(_is_prefix(group) for group in groups):
        found = build.reshape(reading.operands[0], shape=[dim.size for dim in reading.dim])
        _zeros_of_groups(reading, groups, found)
        return [found]
    # One dim for each group; of those that are not prefixes, the elements are moved.
    x = build.reshape(reading.operands[0], shape=[_size(own) for own, _ in groups])
    for k, group in enumerate(groups):
        if not _is_prefix(group):
            x = build.gather(x, _places(padding, *group), axis=k)
        else:
            x = _resized(reading, x, k, _size(group[1]))
    return [build.reshape(x, shape=[dim.size for dim in reading.dim])]


def _resized(reading: PaddedOp, x: SSAValue, k: int, size: int) -> SSAValue:
    if shape_of(x)[k] != size:
        raise reading.unfit("its bounds differ")
    return x


Group = tuple[list[Dim], list[Dim]]


def _groups(own: Sequence[Dim], new: Sequence[Dim]) -> list[Group] | None:
    """The dims in groups of equal element counts, as fine as they can be."""
    mine, others = list(own), list(new)
    if sympy.Integer(0) in (_product(mine), _product(others)):
        return None
    found: list[Group] = []
    while mine or others:
        a, b = mine[:1], others[:1]
        del mine[:1], others[:1]
        while (left := _product(a)) != (right := _product(b)):
            take_mine = _goes_into(left, right)
            source = mine if take_mine else others
            if not source:
                source = others if take_mine else mine
            if not source:
                return None
            (a if source is mine else b).append(source.pop(0))
        while mine and mine[0] == Dim(1) and not others:
            a.append(mine.pop(0))
        while others and others[0] == Dim(1) and not mine:
            b.append(others.pop(0))
        found.append((a, b))
    return found


def _goes_into(part: Expression, whole: Expression) -> bool:
    """Whether a product of extents is a factor of another."""
    return sympy.fraction(sympy.cancel(whole / part))[1] == 1


def _product(dims: Sequence[Dim]) -> Expression:
    found: Any = sympy.Integer(1)
    for dim in dims:
        found *= dim.size if dim.count is None else dim.count
    return sympy.expand(found)


def _size(dims: Sequence[Dim]) -> int:
    return math.prod(dim.size for dim in dims)


def _is_prefix(group: Group) -> bool:
    """Whether the elements that count are the first ones on both sides, in order."""
    sides = [[dim for dim in side if dim != Dim(1)] for side in group]
    whole = all(dim.count is None for side in sides for dim in side[1:])
    return whole and _size(group[0]) == _size(group[1])


def _zeros_of_groups(reading: PaddedOp, groups: Sequence[Group], found: SSAValue) -> None:
    """Zeros in the padding of a group stay there."""
    zeros, first, second = reading.padding.zeros, 0, 0
    for own, new in groups:
        mine = [first + k for k, dim in enumerate(own) if dim.count is not None]
        others = [second + k for k, dim in enumerate(new) if dim.count is not None]
        if mine and all((reading.operands[0], k) in zeros for k in mine):
            zeros |= {(found, k) for k in others}
        first, second = first + len(own), second + len(new)


def _places(padding: Padding, own: Sequence[Dim], new: Sequence[Dim]) -> SSAValue:
    """For each element of a group's new dims at their bounds, where it stands among the old."""
    build, size = padding.build, _size(new)
    rest = padding.positions(size)
    # The element's place in each new dim at its bound, then among all that count.
    place = build.expand(padding.number(0), [size])
    after = size
    for dim in new:
        after //= dim.size
        inner = build.expand(padding.number(after), [size])
        index = build.div(rest, inner)
        rest = build.sub(rest, build.mul(index, inner))
        place = build.add(build.mul(place, build.expand(padding.count(dim), [size])), index)
    # And back: its place in each old dim, then among the bounds.
    stride, found = 1, build.expand(padding.number(0), [size])
    for dim in reversed(own):
        count = build.max(padding.count(dim), padding.number(1))
        count = build.expand(count, [size])
        outer = build.div(place, count)
        index = build.sub(place, build.mul(outer, count))
        step = build.expand(padding.number(stride), [size])
        found = build.add(found, build.mul(index, step))
        place, stride = outer, stride * dim.size
    return _within(padding, found, stride)


__all__ = ["concat", "reshape", "slice_", "split"]
