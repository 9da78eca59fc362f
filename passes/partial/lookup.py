"""The last reshape and transpose of a mutant, found by lookup instead of enumeration.

The residues of the intermediate identify its positions. Each position of the target is looked up by
its residues, which gives a map from target positions to positions of the intermediate. If that map
consists of digits of each target dim (as for every reshape, transpose and merge with gaps), it is
fitted. Positions where the fit is wrong, or that were not found, are the mask.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...dialects.index import Index
from ..equivalence.residues import Residues

Lanes: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Positions: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

# At most this many lines of a dim are combined.
_LINES = 64


def keys(values: Lanes, field: Residues) -> np.ndarray[Any, np.dtype[np.int64]]:
    """One integer for each position, from the residues of the first two primes; 0 for zero."""
    positive = [np.mod(values[k], p).astype(np.int64) for k, p in enumerate(field.primes[:2])]
    return positive[0] * (1 << 21) + positive[1]


class ResultKeys:
    """The keys of a result, also in sorted order, to be looked up in every product.

    Looking up sorted keys goes through memory in order: for millions of keys that takes a tenth of
    the time.
    """

    def __init__(self, found: Any) -> None:
        self.keys = found
        self.order = np.argsort(found.reshape(-1))
        self.ordered = found.reshape(-1)[self.order]


class Sieve:
    """Rejects intermediates that contain too little of a target, from a sample of their positions.

    The share `right` of the target's positions must occur in an intermediate: all but the remaining
    keys. That is a known share of the intermediate's positions. One with exactly that share is
    measured to have less by d, in a sample of n, with probability exp(-2 n d^2) (Hoeffding): 5e-4
    for n = 96 and d = 0.2. One that contains the whole target, and is at most twice its size, is
    missed with 0.7^96, 10^-15.
    """

    SLACK = 0.2

    def __init__(self, target: ResultKeys, right: float) -> None:
        distinct = target.ordered[_first_of_equals(target.ordered)]
        self.ordered = distinct[distinct != 0]
        self.wanted = len(self.ordered) - (1.0 - right) * target.keys.size

    def passes(self, sample: Any, size: int) -> bool:
        """Whether an intermediate of some size may contain enough, by a sample of its keys."""
        if not len(self.ordered):
            return False  # the target is zero everywhere: its windows lie outside of its operand
        at = np.searchsorted(self.ordered, sample)
        found = (self.ordered[np.minimum(at, len(self.ordered) - 1)] == sample).mean()
        return bool(found > max(0.0, self.wanted / size - self.SLACK))


def _first_of_equals(ordered: Any) -> Any:
    """Which of some sorted keys differ from the one before."""
    first = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def occurrences(target: ResultKeys, made: Any) -> Positions:
    """Where each target key occurs in the intermediate: [its rank, *target shape], NaN if nowhere.

    A key that occurs at several positions is ignored.
    """
    flat = made.reshape(-1)
    order = np.argsort(flat)
    ordered = flat[order]
    first = _first_of_equals(ordered)
    alone = first & np.append(first[1:], True) & (ordered != 0)
    order, ordered = order[alone], ordered[alone]
    if not len(ordered):
        return np.full((made.ndim, *target.keys.shape), np.nan)
    at = np.minimum(np.searchsorted(ordered, target.ordered), len(ordered) - 1)
    where = np.empty(target.keys.size, np.int64)
    where[target.order] = np.where(ordered[at] == target.ordered, order[at], -1)
    where = where.reshape(target.keys.shape)
    found = np.stack(np.unravel_index(np.maximum(where, 0), made.shape)).astype(np.float64)
    found[:, where < 0] = np.nan
    return found


def wrong_at(index: Sequence[Index], made: Any, target: Any) -> Any:
    """Where the intermediate's key at each target position's index differs from the target's."""
    at, inside = positions(index, target.shape, made.shape)
    return np.where(inside, made[tuple(at)], 0) != target


def positions(
    index: Sequence[Index], shape: Sequence[int], within: Sequence[int]
) -> tuple[list[Any], Any]:
    """The index at every position of a shape, brought into bounds, and where it was inside."""
    grids = list(np.indices(shape))
    at = [np.broadcast_to(np.asarray(e.evaluate(grids)), shape) for e in index]
    inside = np.ones(shape, bool)
    for position, size in zip(at, within, strict=True):
        inside &= (position >= 0) & (position < size)
    return [np.clip(p, 0, n - 1) for p, n in zip(at, within, strict=True)], inside


def inverse(
    index: Sequence[Index], shape: Sequence[int], within: Sequence[int]
) -> list[Index] | None:
    """For each position of the intermediate its target position; None if not made of digits.

    Positions without a target position have no meaning.
    """
    at, inside = positions(index, shape, within)
    back = np.full((len(shape), *within), np.nan)
    for dim, values in enumerate(np.indices(shape)):
        back[(dim, *(a[inside] for a in at))] = values[inside]
    found = fit(back)
    if found is None or not inside.all():
        return None
    again, _ = positions(found, within, shape)
    same = all((a[tuple(at)] == own).all() for a, own in zip(again, np.indices(shape), strict=True))
    return found if same else None


def fit(found: Positions) -> list[Index] | None:
    """Indices over the target's dims that give the positions; None if they are not digits."""
    fitted: list[Index] = []
    for column in found:
        index = _fit_one(column)
        if index is None:
            return None
        fitted.append(index)
    return fitted


def _fit_one(column: Positions) -> Index | None:
    total = Index(0)
    for dim in range(column.ndim):
        part = digits(_along(column, dim), Index.iterator(dim))
        if part is None:
            return None
        total = total + part
    known = np.argwhere(~np.isnan(column))
    if not len(known):
        return None
    # The constant: the value that most positions agree on.
    values = np.broadcast_to(np.asarray(total.evaluate(list(known.T))), len(known))
    offsets, counts = np.unique(column[tuple(known.T)] - values, return_counts=True)
    return total + int(offsets[int(counts.argmax())])


def _along(column: Positions, dim: int) -> list[float]:
    """The change of the value from position 0 to each position of one dim, with the others fixed.

    Lines along the dim are combined where they share a known position, the most complete first;
    positions that no line knows stay NaN.
    """
    lines = np.moveaxis(column, dim, -1).reshape(-1, column.shape[dim])
    lines = lines[np.argsort(np.isnan(lines).sum(axis=1), kind="stable")[:_LINES]]
    table = lines[0].copy()
    for line in lines[(~np.isnan(lines) & np.isnan(table)).any(axis=1)]:
        both = ~np.isnan(table) & ~np.isnan(line)
        if both.any():
            shift = table[both] - line[both]
            fill = np.isnan(table)
            table[fill] = line[fill] + shift[0]
    if math.isnan(table[0]) and len(table) > 2:  # only an offset is lost: the mask will tell
        table[0] = 2 * table[1] - table[2]
    return [float(v) for v in table - table[0]]


def digits(table: Sequence[float], at: Index) -> Index | None:
    """The index in `at` with these values at 0, 1, ..., as digits; unknown values are NaN.

    a * (x mod d) + the index of x // d, for the longest d at which the table is linear. If
    unknown values allow several d, the one with the shortest index.
    """
    if len(table) == 1:
        return Index(0)
    slope = table[1]
    if math.isnan(slope):
        return None
    wrong = next((k for k, v in enumerate(table) if not math.isnan(v) and v != slope * k), None)
    if wrong is None:
        return at * int(slope)
    linear = max(k for k in range(wrong) if not math.isnan(table[k]))
    found: list[Index] = []
    for period in range(max(linear + 1, 2), wrong + 1):
        upper = _upper(table, slope, period)
        index = None if upper is None else digits(upper, at // period)
        if index is not None:
            found.append((at % period) * int(slope) + index)
    return min(found, key=lambda index: len(index.terms), default=None)


def _upper(table: Sequence[float], slope: float, period: int) -> list[float] | None:
    """The remainder for each block of a period; None if a block's positions disagree."""
    left = np.array(table) - slope * (np.arange(len(table)) % period)
    blocks: list[float] = []
    for start in range(0, len(table), period):
        block = left[start : start + period]
        known = block[~np.isnan(block)]
        if len(known) and (known != known[0]).any():
            return None
        blocks.append(float(known[0]) if len(known) else math.nan)
    return blocks
