"""Describe a convolution and its possible schedules; choose among them.

Buffers are channels-last. Strides count elements, one for the batch and one for each spatial
dimension; channels are adjacent. The input pointer is at the corner that the first output
pixel's first tap reads, so padding is the caller's halo of zeros and needs no code here.
"""

import math
from dataclasses import dataclass, replace

from ..isa import Isa
from .blocks import Panel, balanced, block_cycles, cut_panels, register_blocks
from .numbers import FLOATS, Numbers, in_floats


@dataclass(frozen=True)
class ConvSpec:
    """Describe a convolution of spatial rank 1, 2 or 3.

    Units: `in_strides` and `out_strides` are elements per (batch, *spatial). Weights `in_place` are
    not packed: they lie as [*kernel, channels of a group, features].

    Raises: ValueError for sizes that do not fit together, or are not positive.
    """

    batch: int
    out_spatial: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int
    in_channels: int
    out_channels: int
    in_strides: tuple[int, ...]
    out_strides: tuple[int, ...]
    numbers: Numbers = FLOATS
    in_place: bool = False

    def __post_init__(self) -> None:
        rank = len(self.out_spatial)
        lengths = {len(self.kernel), len(self.strides), len(self.dilations)}
        ends = {len(self.in_strides), len(self.out_strides)}
        if not 1 <= rank <= 3 or lengths != {rank} or ends != {rank + 1}:
            raise ValueError(f"a convolution of rank 1, 2 or 3 needs as many sizes: {self}")
        sizes = (self.batch, self.in_channels, self.out_channels, self.groups)
        if min(*sizes, *self.out_spatial, *self.kernel, *self.strides, *self.dilations) < 1:
            raise ValueError(f"an empty convolution needs no kernel: {self}")
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise ValueError(f"{self.groups} groups must divide both channel counts: {self}")

    @property
    def group_in(self) -> int:
        """Count the input channels of one group."""
        return self.in_channels // self.groups

    @property
    def group_out(self) -> int:
        """Count the output channels of one group."""
        return self.out_channels // self.groups

    @property
    def flops(self) -> int:
        """Count multiplications and additions."""
        pixels = self.batch * math.prod(self.out_spatial)
        return 2 * pixels * self.out_channels * self.group_in * math.prod(self.kernel)

    def to_3d(self) -> "ConvSpec":
        """Add leading spatial dimensions of size 1 up to rank 3."""
        gap = 3 - len(self.out_spatial)
        ones, zeros = (1,) * gap, (0,) * gap
        return ConvSpec(
            self.batch,
            ones + self.out_spatial,
            ones + self.kernel,
            ones + self.strides,
            ones + self.dilations,
            self.groups,
            self.in_channels,
            self.out_channels,
            (self.in_strides[0], *zeros, *self.in_strides[1:]),
            (self.out_strides[0], *zeros, *self.out_strides[1:]),
            self.numbers,
            self.in_place,
        )

    def chosen(self, isa: Isa) -> "ConvSpec":
        """The same, in floats where lanes belong to different groups: they broadcast nothing."""
        if groups_together(self, isa) == 1:
            return self
        products = self.group_in * math.prod(self.kernel)
        return replace(self, numbers=in_floats(self.numbers, products))

    @property
    def run(self) -> tuple[int, int]:
        """Neighbours in memory that one loop sums over, and how many of the last dims they span.

        Channels of a tap are neighbours; so are taps where pixels lie side by side.
        """
        depth, dims = self.group_in, 0
        steps = zip(self.kernel, self.in_strides[1:], self.dilations, strict=True)
        for count, stride, dilation in reversed(list(steps)):
            if stride * dilation != depth and count != 1:
                break
            depth, dims = depth * count, dims + 1
        return depth, dims


@dataclass(frozen=True)
class ConvSchedule:
    """Choose a register block and the order of work.

    `rows` output pixels times `vectors` vectors of output channels are accumulated at once.
    `row_groups_outside` walks all panels of output channels for a group of pixels before the next,
    which reads the input once and the weights often; else the reverse. `nontemporal` means that the
    output is large and its pixels aligned: it is written with non-temporal stores. `prefetch` is
    how many panels ahead weights are fetched; 0 is not at all.

    `image_rows` rows of the output are cut into blocks together, and an item does `chunk` blocks
    of a row that is cut alone; a model chooses where they are 0. A depthwise block has `image_rows`
    rows of the image, and an item `channels` vectors of channels by `chunk` blocks.
    """

    rows: int
    vectors: int
    unroll: int = 1
    row_groups_outside: bool = False
    nontemporal: bool = False
    prefetch: int = 1
    image_rows: int = 0
    chunk: int = 0
    channels: int = 0


def groups_together(spec: ConvSpec, isa: Isa) -> int:
    """Count the groups that share one vector; 1 if each group should have its own."""
    lanes = isa.lanes(spec.numbers.total)
    return max(1, min(spec.groups, lanes // max(spec.group_out, spec.group_in)))


def panels(spec: ConvSpec, schedule: ConvSchedule, isa: Isa) -> list[Panel]:
    """Split the output channels (of one group, where groups do not share) into panels."""
    lanes, together = isa.lanes(spec.numbers.total), groups_together(spec, isa)
    if together > 1:
        full, rest = divmod(spec.groups, together)
        found = [Panel(full, 1, together * spec.group_out, together)]
        return found + ([found[0].then(1, rest * spec.group_out, rest)] if rest else [])
    return cut_panels(spec.group_out, schedule.vectors, lanes)


def candidates(spec: ConvSpec, isa: Isa) -> list[ConvSchedule]:
    """List schedules worth measuring, best guess first."""
    outside = _rows_outside(spec)
    if spec.group_in == spec.group_out == 1 < spec.groups:
        return [ConvSchedule(rows, 1, 1, outside) for rows in (8, 6, 12, 4)]
    if groups_together(spec, isa) > 1:
        sizes = (12, 8, 6, 4) if isa.registers == 32 else (6, 4, 3)
        return [ConvSchedule(rows, 1, 1, outside) for rows in sizes]
    widest = -(-spec.group_out // isa.lanes(spec.numbers.total))
    blocks = [block for block in register_blocks(isa, spec.numbers.words) if block[1] <= widest]
    ranked = sorted(blocks, key=lambda block: (_waste(spec, isa, *block), blocks.index(block)))
    return [ConvSchedule(rows, vectors, 1, outside) for rows, vectors in ranked]


def default_schedule(spec: ConvSpec, isa: Isa) -> ConvSchedule:
    """Choose a schedule without measuring."""
    return candidates(spec, isa)[0]


def _rows_outside(spec: ConvSpec) -> bool:
    """Say whether the input should be read only once: weights are small, the image is not."""
    weights = spec.out_channels * spec.group_in * math.prod(spec.kernel)
    pixels = math.prod(spec.out_spatial) * math.prod(spec.strides)
    return weights * 4 <= 384 << 10 and pixels * spec.in_channels > 2 * weights


def _waste(spec: ConvSpec, isa: Isa, rows: int, vectors: int) -> float:
    """Model time relative to a machine that multiplies at every slot: 1 is ideal."""
    schedule = ConvSchedule(rows, vectors)
    run, _ = spec.run
    depth = spec.group_in * math.prod(spec.kernel) // run * spec.numbers.steps(run)
    blocks = plan_rows(spec, schedule).sizes
    cycles = sum(
        panel.count * sum(block_cycles(size, panel.vectors, depth) for size in blocks)
        for panel in panels(spec, schedule, isa)
    )
    useful = sum(blocks) * spec.group_out * depth / isa.lanes(spec.numbers.total) / 2
    return round(cycles / useful, 2)


@dataclass(frozen=True)
class PixelBlocking:
    """Say how output pixels become blocks.

    Either one row is cut into runs of equal blocks (`row_group` 1), of which an item does
    `chunk`; or the pixels of `row_group` rows are one list, cut into blocks that may cross rows.
    `sizes` lists the blocks of one row, or of one row group.
    """

    row_group: int
    sizes: tuple[int, ...]
    chunk: int


def plan_rows(spec: ConvSpec, schedule: ConvSchedule) -> PixelBlocking:
    """Choose how many rows to group, so that blocks are full and few kinds of them are needed."""
    height, width = spec.to_3d().out_spatial[1:]
    if schedule.image_rows > 1:
        sizes = balanced(schedule.image_rows * width, schedule.rows)
        return PixelBlocking(schedule.image_rows, sizes, len(sizes))
    if schedule.image_rows == 1:
        return _of_one_row(spec, balanced(width, schedule.rows), schedule.chunk)
    best = PixelBlocking(1, balanced(width, schedule.rows), 1)
    best_cost = _row_cost(best, width, kinds=len(set(best.sizes)))
    for group in range(2, height + 1):
        if not may_group(spec, schedule.rows, group):
            continue
        sizes = balanced(group * width, schedule.rows)
        plan = PixelBlocking(group, sizes, len(sizes))
        cost = _row_cost(plan, group * width, kinds=_kinds(plan, width))
        if cost < 0.99 * best_cost:
            best, best_cost = plan, cost
    return best if best.row_group > 1 else _of_one_row(spec, best.sizes, schedule.chunk)


def may_group(spec: ConvSpec, rows: int, group: int) -> bool:
    """Say whether so many rows of the image can be cut together: each of their blocks is code."""
    height, width = spec.to_3d().out_spatial[1:]
    return group == 1 or (height % group == 0 and group * width <= 8 * rows)


def _of_one_row(spec: ConvSpec, sizes: tuple[int, ...], chunk: int) -> PixelBlocking:
    rows = spec.batch * math.prod(spec.to_3d().out_spatial[:2])
    blocks = len(sizes)
    # An item is a whole row unless rows are few and long: then it is a piece of one.
    model = blocks if rows >= 8 else max(4, -(-blocks * rows // 16))
    return PixelBlocking(1, sizes, min(chunk or model, blocks))


def _row_cost(plan: PixelBlocking, pixels: int, kinds: int) -> float:
    """Weigh the time of a pixel (a block has a fixed cost) against the code to compile."""
    return sum(max(size, 4) + 0.3 for size in plan.sizes) / pixels * (1 + 0.01 * kinds)


def _kinds(plan: PixelBlocking, width: int) -> int:
    kinds: set[tuple[int, int]] = set()
    start = 0
    for size in plan.sizes:
        kinds.add((size, start % width if start % width + size > width else 0))
        start += size
    return len(kinds)
