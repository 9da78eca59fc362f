"""Lower bounds for the time of derived programs, by which a search stops early.

Rules move and regroup multiplications. They save those that are zero by their positions, and those
that are repeated: if the indices do not distinguish all iterators, there is no bound. A kernel may
compute windows of two taps and more with fewer multiplications (Winograd). So a program takes at
least its fewest operations at the machine's peak; bytes are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...dialects.canonical_types import Scope
from ...dialects.index import Index
from ...lowering.algebra_to_kernel.table import Match, matches
from .basis import rank
from .body import SumOfProducts, body_of, rows_of
from .price import Priced, ScopePrices
from .replace import Roots, scopes_of

# Winograd computes tiles of at most this many results, of windows from `TAPS` to `MAX_TAPS`
# (longer ones are sums of those), and of windows of two taps.
TILE = 4
TAPS, MAX_TAPS = 3, 7
TILE_OF_TWO = 3
# Positions of an index are counted up to this many.
MAX_POSITIONS = 1 << 20


def least_of_program(roots: Roots, priced: Priced, prices: ScopePrices) -> float:
    """The fewest operations of a program's library calls, and of its loops' multiply-adds."""
    calls = dict(priced.choices)
    total = sum(_fewest(match, prices) for match in calls.values())
    for scope in scopes_of(roots):
        body = body_of(scope)
        if scope in calls or body is None or prices.constant(scope) or body.guards:
            continue
        if body.sums and len(body.reads) > 1:
            total += 2.0 * math.prod(body.extents)
    return total


def _fewest(match: Match, prices: ScopePrices) -> float:
    """The fewest over all algorithms for a match, including those the target's model lacks."""
    if match.kernel.name != "conv":
        return min(algorithm.flops for algorithm in prices.algorithms(match))
    every = replace(prices.target, convolutions=("implicit-gemm", "winograd"))
    fewest = min(algorithm.flops for algorithm in ScopePrices(target=every).algorithms(match))
    taps = _taps(match)
    square = len(taps) == 2 and set(taps) in ({2}, {TAPS})
    if square or any(w.stride != 1 for w in match.windows):
        return fewest  # the model has tiles of two and three taps each way
    return min(fewest, 2.0 * math.prod(match.contraction.extents) * _left(taps))


def least_of_scope(root: Scope, *, one_product: bool = False) -> float:
    """The fewest operations of any program derived from a contraction; 0 if unknown.

    Args:
        one_product: for programs of a single product: Winograd's tiles, which are of `TAPS`, must
            then fit its windows without changes.
    """
    body = body_of(root)
    if body is None or body.guards or any(row.has_floor for row, _ in body.rows()):
        return 0.0
    if not _tells_apart(body):
        return 0.0
    empty = sum(1.0 - _share_inside(row, size, body.extents) for row, size in body.rows())
    operations = 2.0 * math.prod(body.extents) * max(0.0, 1.0 - empty)
    if one_product:
        return operations * (_left([TAPS, TAPS]) if has_fast_form(root) else 1.0)
    return operations * min((_left(_taps(match)) for match in matches(root)), default=1.0)


def has_fast_form(root: Scope) -> bool:
    """Whether Winograd's tiles of `TAPS` each way fit the windows without changes."""
    return any(len(t := _taps(match)) > 1 and set(t) == {TAPS} for match in matches(root))


def _left(taps: Sequence[int]) -> float:
    """The share of multiplications left by Winograd's largest tiles."""
    most = [min(count, MAX_TAPS) for count in taps if count > 1]
    tiles = [TILE_OF_TWO if count < TAPS else TILE for count in most]
    return math.prod((m + count - 1) / (m * count) for m, count in zip(tiles, most, strict=True))


def _tells_apart(body: SumOfProducts) -> bool:
    """Whether all products are of different pairs, and each operand's elements differ in a sum."""
    alive = [k for k, n in enumerate(body.extents) if n > 1]
    sums = [Index.iterator(k) if k >= body.rank else Index(0) for k in range(len(body.extents))]
    rows = [[row for row, _ in rows_of(read)] for read in body.reads]
    summed = [[row.substitute(sums) for row in its] for its in rows]
    count = sum(k >= body.rank for k in alive)
    whole = rank([row for its in rows for row in its]) == len(alive)
    return whole and all(rank(its) == count for its in summed)


def _taps(match: Match) -> list[int]:
    """How many taps its windows have after they move by single steps."""
    return [math.ceil(match.contraction.extents[w.inner] / w.stride) for w in match.windows]


def _share_inside(row: Index, size: int, extents: Sequence[int]) -> float:
    """The share of the iterators' values for which an index is inside its operand."""
    used = [(k, c) for k, c in row.terms if isinstance(k, int)]
    if math.prod(extents[k] for k, _ in used) > MAX_POSITIONS:
        return 0.0
    values = np.array([row.constant])
    for k, c in used:
        values = np.add.outer(values, c * np.arange(extents[k])).ravel()
    return float(np.mean((values >= 0) & (values < size)))
