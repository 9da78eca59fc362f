"""Describe a batched matrix product and its possible schedules; choose among them."""

import math
from dataclasses import dataclass, replace
from typing import Literal

from ..isa import Isa
from .blocks import balanced, block_cycles, cut_panels, register_blocks
from .numbers import FLOATS, Numbers

FEW_ROWS = 4  # of A: then every weight is used so rarely that memory is the limit
_L2_BYTES = 384 << 10  # limit for a block of A in the second-level cache
_NEAR_BYTES = 1 << 20  # of B: the second-level cache has it
_FAR = 256  # elements from one column of a transposed A to the next; in fewer, pages are shared
_LEAST_DEPTH = 64
_ITEMS = 16  # items wanted, so that a few threads share the work evenly
_ITEM_FLOPS = 200_000  # but no item smaller than this: about a microsecond

Right = Literal["packed", "direct", "copied"]
"""Where a kernel reads B: panels packed at compile time, B itself, or panels it copies first."""


@dataclass(frozen=True)
class GemmSpec:
    """Describe C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n].

    `batch` holds any number of dimensions. Units: strides are elements per (*batch, row, column) of
    each operand; any may be 0, but C's columns must be adjacent. The result is not empty; k may be
    0.

    Raises: ValueError for sizes or strides that break these rules.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    a_strides: tuple[int, ...]
    b_strides: tuple[int, ...]
    c_strides: tuple[int, ...]
    numbers: Numbers = FLOATS

    def __post_init__(self) -> None:
        lengths = {len(self.a_strides), len(self.b_strides), len(self.c_strides)}
        if lengths != {len(self.batch) + 2}:
            raise ValueError(f"each operand needs one stride per dimension: {self}")
        if min(self.m, self.n, *self.batch, 1) < 1 or self.k < 0:
            raise ValueError(f"an empty product needs no kernel: {self}")
        if self.c_strides[-1] != 1:
            raise ValueError(f"the columns of C must be adjacent: {self}")
        if self.numbers.group > 1 and self.a_strides[-1] != 1:
            raise ValueError(f"a step takes several elements of a row of A: {self}")

    @property
    def steps(self) -> int:
        """Count the steps of a sum."""
        return self.numbers.steps(self.k)

    @property
    def flops(self) -> int:
        """Count multiplications and additions."""
        return 2 * math.prod(self.batch) * self.m * self.n * self.k


@dataclass(frozen=True)
class GemmSchedule:
    """Choose a register block (`rows` times `vectors`), cache blocks and the size of an item.

    Units: `depth` is the part of k done before the next block; an item does `row_blocks`
    register blocks of rows times `panels` panels of columns. `copy_a` packs an item's rows of A
    first, where their strides would make them evict each other. `nontemporal` means that C is
    large and its rows aligned: it is written with non-temporal stores. `panels_outside` walks all
    items of some panels before the next panels. `prefetch` is how many panels ahead packed weights
    are fetched; 0 is not at all.
    """

    rows: int
    vectors: int
    right: Right  # how B is read: packed, copied, as it is
    depth: int
    row_blocks: int
    panels: int
    copy_a: bool = False
    unroll: int = 1  # steps of k per iteration
    nontemporal: bool = False
    panels_outside: bool = False
    prefetch: int = 1


def candidates(spec: GemmSpec, isa: Isa, *, constant_b: bool) -> list[GemmSchedule]:
    """List schedules worth measuring, best guess first; `constant_b` allows packed panels."""
    blocks = register_blocks(isa, spec.numbers.words)
    if spec.m <= FEW_ROWS:  # every weight is used m times only: wide panels, read straight through
        across = constant_b or spec.b_strides[-1] == 1
        blocks = [(spec.m, vectors) for vectors in ((4, 2, 6, 1) if across else (1, 2))]
    widest = -(-spec.n // isa.lanes(spec.numbers.total))
    blocks = [block for block in blocks if block[1] <= widest] or [(spec.m, 1)]
    if spec.m > FEW_ROWS:
        key = {block: (_waste(spec, isa, *block), i) for i, block in enumerate(blocks)}
        blocks.sort(key=key.__getitem__)
    schedules = [
        _schedule(spec, isa, rows, vectors, _right(spec, rows, constant_b))
        for rows, vectors in blocks
    ]
    if _conflicts(spec) and spec.m > FEW_ROWS:  # copying pays where a cache has few ways
        schedules.insert(1, replace(schedules[0], copy_a=True, panels=8))
    if _is_scattered(spec) and spec.m > FEW_ROWS:
        schedules = [_copying(s, spec, isa) for s in schedules]
    return schedules


def _copying(schedule: GemmSchedule, spec: GemmSpec, isa: Isa) -> GemmSchedule:
    """The schedule, with rows of A copied for several panels."""
    kinds = cut_panels(spec.n, schedule.vectors, isa.lanes(spec.numbers.total))
    panels = min(max(8, schedule.panels), sum(kind.count for kind in kinds))
    return replace(schedule, copy_a=True, panels=panels)


def schedule_for(
    spec: GemmSpec, isa: Isa, block: tuple[int, int], right: Right | None, *, constant_b: bool
) -> GemmSchedule:
    """Choose what a register block (rows, vectors) leaves open."""
    chosen = _right(spec, block[0], constant_b) if right is None else right
    return _schedule(spec, isa, *block, chosen)


def default_schedule(spec: GemmSpec, isa: Isa, *, constant_b: bool) -> GemmSchedule:
    """Choose a schedule without measuring."""
    return candidates(spec, isa, constant_b=constant_b)[0]


def _right(spec: GemmSpec, rows: int, constant_b: bool) -> Right:
    if constant_b:
        return "packed"
    adjacent = spec.b_strides[-1] == 1 and spec.numbers.right == spec.numbers.total
    few_readers = spec.m <= 2 * rows
    spread = spec.b_strides[-2] % 1024 != 0  # else rows of B share cache sets
    near = 4 * spec.k * spec.n <= _NEAR_BYTES  # else each row is waited for, unless a copy asks
    return "direct" if adjacent and (few_readers or (spread and near)) else "copied"


def _schedule(spec: GemmSpec, isa: Isa, rows: int, vectors: int, right: Right) -> GemmSchedule:
    blocks = len(balanced(spec.m, rows))
    columns = sum(p.count for p in cut_panels(spec.n, vectors, isa.lanes(spec.numbers.total)))
    reused = blocks > 1 or right == "copied"
    far = _conflicts(spec) or _is_scattered(spec)
    most = 512 if right == "copied" or far else 1024
    whole = not reused or spec.numbers.is_integer
    parts = 1 if whole else max(1, -(-spec.k // most))
    depth = max(1, -(-spec.numbers.rows(spec.k) // parts))
    wanted = max(1, min(_ITEMS, spec.flops // _ITEM_FLOPS) // math.prod(spec.batch))
    row_blocks = max(1, min(blocks, _L2_BYTES // (4 * depth * rows)))
    if -(-blocks // row_blocks) * columns < wanted:  # few panels: share out the rows too
        row_blocks = max(1, min(row_blocks, blocks * columns // wanted))
    chunks = -(-blocks // row_blocks)
    panels = max(1, columns * chunks // wanted)
    panels = min(panels, 1 if right == "copied" else max(1, 8 // vectors))
    # Of few rows every weight is used at once: they are read at the speed of memory anyway.
    prefetch = int(right == "packed" and spec.m > FEW_ROWS)
    shape = (min(rows, spec.m), vectors, right, depth, row_blocks, panels)
    return GemmSchedule(*shape, prefetch=prefetch)


def _conflicts(spec: GemmSpec) -> bool:
    """Say whether rows of A are multiples of a page apart, and so fall into few cache sets."""
    alike = spec.numbers.data == spec.numbers.total
    return alike and spec.a_strides[-1] == 1 and spec.a_strides[-2] % 1024 == 0 and spec.k >= 512


def _is_scattered(spec: GemmSpec) -> bool:
    """Say whether A is transposed, so that each step of k reads another page or two."""
    alike = spec.numbers.data == spec.numbers.total
    row, k = spec.a_strides[-2:]
    return alike and row == 1 and k >= _FAR and spec.k >= _LEAST_DEPTH


def _waste(spec: GemmSpec, isa: Isa, rows: int, vectors: int) -> float:
    """Model time relative to a machine that multiplies at every slot: 1 is ideal."""
    lanes = isa.lanes(spec.numbers.total)
    cycles = sum(
        panel.count * sum(block_cycles(size, panel.vectors, spec.steps) for size in sizes)
        for panel in cut_panels(spec.n, vectors, lanes)
        for sizes in [balanced(spec.m, rows)]
    )
    waste = cycles / (spec.m * spec.n * max(1, spec.steps) / lanes / 2)
    # More rows than a cache set has ways would evict each other.
    return round(waste * (1.2 if min(rows, spec.m) > 8 and _conflicts(spec) else 1), 2)
