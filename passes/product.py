"""A contraction as a batch of matrix products, and what that asks of a GPU.

    out[batch, m, n] = sum over k of a[batch, m, k] * b[batch, k, n]

A GPU computes it in tiles of the output. Tiles occupy units, so a product with few tiles leaves
units idle; and a tile's operands come from the last cache, each element as often as there are
tiles that need it. Where rows of `b` overlap from one batch entry to the next (a band), a tile
needs the distinct rows only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..dialects.algebra import OnesOp, ScopeOp
from ..dialects.index import Index
from ..dialects.scalars import Read, factors

TILE = 64
"""Side of a tile where there are few: what fills the units."""
LARGE_TILE = 128
"""Side of a tile where there are many: what reuses the cache."""


@dataclass(frozen=True)
class Product:
    """A batch of m x n results, each a sum of k products; `dilation` > 0 where it is a band.

    In a band `m` counts its rows and a tile of `b` has rows `dilation` apart that overlap.
    """

    batch: int
    m: int
    n: int
    k: int
    dilation: int = 0

    @property
    def tiles(self) -> int:
        """Tiles of the output."""
        return self.batch * math.ceil(self.m / TILE) * math.ceil(self.n / TILE)

    def traffic(self, width: int) -> float:
        """Bytes that the tiles read from the last cache, at `width` bytes an element."""
        side_m, side_n = min(self.m, LARGE_TILE), min(self.n, LARGE_TILE)
        tiles = self.batch * math.ceil(self.m / side_m) * math.ceil(self.n / side_n)
        columns = side_m + self.dilation * side_n if self.dilation else side_n
        return float(width) * tiles * self.k * (side_m + columns)


def product_of(scope: ScopeOp) -> Product | None:
    """A product of two reads by the groups of its iterators; None for any other body."""
    reads = [r for r in factors(scope.expr()) or () if not isinstance(r.source.owner, OnesOp)]
    if len(reads) != 2:
        return None
    first, second = (_iterators(read) for read in reads)
    extents, rank = scope.extents, len(scope.traversal)

    def size(positions: set[int]) -> int:
        return math.prod(extents[i] for i in positions)

    outer, inner = set(range(rank)), set(range(rank, len(extents)))
    shared = first & second & outer
    m, n, k = (first - second) & outer, (second - first) & outer, inner
    for read, own, rows in ((reads[1], n, m), (reads[0], m, n)):
        if not rows and (band := _band(read, shared, own)) is not None:
            row, dilation = band
            return Product(size(shared - {row}), extents[row], size(own), size(k), dilation)
    return Product(size(shared), size(m), size(n), size(k))


def _iterators(read: Read) -> set[int]:
    return {i for index in read.index for i in index.iterators}


def _band(read: Read, shared: set[int], own: set[int]) -> tuple[int, int] | None:
    """The iterator of the rows, and the distance of a row's neighbours, of overlapping rows."""
    for index in read.index:
        found = _overlap(index, shared, own)
        if found is not None:
            return found
    return None


def _overlap(index: Index, shared: set[int], own: set[int]) -> tuple[int, int] | None:
    rows, columns = index.iterators & shared, index.iterators & own
    if index.has_floor or len(rows) < 1 or len(columns) != 1:
        return None
    step = abs(index.coefficient(next(iter(columns))))
    row = min(rows, key=lambda i: (abs(index.coefficient(i)), i))
    if len(rows) > 1:  # a row by its digits: the digit that moves as the columns do
        row = min(rows, key=lambda i: (abs(abs(index.coefficient(i)) - step), i))
    return row, max(1, step // abs(index.coefficient(row)))
