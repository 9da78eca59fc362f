"""Emit direct convolution, channels-last, as a register-blocked kernel.

Weights come packed in panels of output channels (`pack_weights`), in the order the inner loops read
them: kernel taps outside, input channels inside; where the last tap dimension has dilation 1 and
pixels are adjacent, both are one loop. The work items are panels times groups of rows times batch.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..emit.emitter import Emitter
from ..emit.module import KernelCode, Module, kernel
from ..emit.rows_read import RowsRead, Skipping
from ..emit.types import I64, PTR, Index, Value
from ..isa import Isa
from .blocks import Panel, block_loops, each_kind
from .conv_spec import (
    ConvSchedule,
    ConvSpec,
    candidates,
    default_schedule,
    groups_together,
    panels,
    plan_rows,
)
from .depthwise import emit_depthwise, is_depthwise
from .epilogue import Epilogue, OutIndex, finish
from .grouped import shared_groups, unrolled_taps
from .microkernel import (
    PrefetchShare,
    Reads,
    RegisterTile,
    accumulate,
    chains_for,
    depth_loop,
    starts_of,
)

__all__ = [
    "ConvSchedule",
    "ConvSpec",
    "candidates",
    "default_schedule",
    "emit_conv",
    "pack_weights",
]


def pack_weights(
    weights: NDArray[Any], spec: ConvSpec, schedule: ConvSchedule, isa: Isa
) -> NDArray[Any]:
    """Reorder weights into panels of output channels, padded with zeros to whole vectors.

    Shapes: (out_channels, in_channels / groups, *kernel) to one flat array, laid out as
    [group][panel][*kernel][in_channels / groups][lanes of the panel]; where groups share a panel
    there is no group dimension and each lane's channels are those of its own group.
    """
    spec = spec.chosen(isa)
    lanes = isa.lanes(spec.numbers.total)
    taps_last = np.moveaxis(weights, 1, -1)  # (f, *kernel, c)
    by_channel = np.moveaxis(taps_last, 0, -1).reshape(-1, spec.out_channels)
    kinds = panels(spec, schedule, isa)
    shared = groups_together(spec, isa) > 1
    run = spec.group_in if shared else spec.run[0]
    packed: list[NDArray[Any]] = []
    for group in range(1 if shared else spec.groups):
        start = group * spec.group_out
        for panel in kinds:
            for _ in range(panel.count):
                part = by_channel[:, start : start + panel.channels]
                gap = panel.vectors * lanes - panel.channels
                rows = np.pad(part, ((0, 0), (0, gap)))
                runs = rows.reshape(-1, run, rows.shape[1])
                packed.append(spec.numbers.panel(runs).ravel())
                start += panel.channels
    return np.concatenate(packed)


class _Conv:
    """The state that every part of the emission needs."""

    def __init__(
        self, spec: ConvSpec, schedule: ConvSchedule, isa: Isa, epilogue: Epilogue | None
    ) -> None:
        self.rank = len(spec.out_spatial)
        spec = spec.chosen(isa)
        self.spec = spec.to_3d()
        self.numbers = spec.numbers
        self.schedule = schedule
        self.isa = isa
        self.epilogue = epilogue
        self.lanes = isa.lanes(self.numbers.total)
        self.panels = panels(spec, schedule, isa)
        self.shared = groups_together(spec, isa) > 1
        self.plan = plan_rows(spec, schedule)
        self.module = Module()
        # Elements from one output pixel to the next, along (d, h, w), in the input and the output.
        steps = zip(self.spec.in_strides[1:], self.spec.strides, strict=True)
        self.in_steps = tuple(stride * step for stride, step in steps)
        self.out_steps = self.spec.out_strides[1:]

    @property
    def row_taps(self) -> int:
        """Count the taps of a row that the inner product unrolls; 1 where groups do not share."""
        if not self.shared or self.spec.strides[2] > 1:  # then few pixels meet several taps
            return 1
        return unrolled_taps(self.spec.kernel[2], self.spec.group_in)

    @property
    def weight_steps(self) -> int:
        """Count the vectors of weights that one vector of output channels takes."""
        return self.steps * self.numbers.words + int(self.numbers.start)

    @property
    def steps(self) -> int:
        """Count the steps of a sum."""
        depth = math.prod(self.spec.kernel) * self.spec.group_in
        run = self.spec.group_in if self.shared else self.spec.run[0]
        return depth // run * self.numbers.steps(run)

    @property
    def group_panels(self) -> int:
        """Count the panels of one group, or of all where groups share them."""
        return sum(panel.count for panel in self.panels)

    @property
    def panel_count(self) -> int:
        """Count all panels."""
        return self.group_panels * (1 if self.shared else self.spec.groups)

    @property
    def chunks(self) -> int:
        """Count the pieces of work of a row."""
        return -(-len(self.plan.sizes) // self.plan.chunk)

    @property
    def pixel_items(self) -> int:
        """Count the pieces of work of one image."""
        depth, height, _ = self.spec.out_spatial
        return depth * (height // self.plan.row_group) * self.chunks

    @property
    def fetches(self) -> bool:
        """Say whether weights are prefetched."""
        return not self.shared and self.schedule.prefetch > 0 and not self.spec.in_place

    def fetch(self, panel: Panel) -> PrefetchShare:
        """Say how the blocks that share a panel fetch the next one."""
        if self.schedule.row_groups_outside:
            return PrefetchShare(panel.vectors, self.lanes, self.plan.chunk)
        items = self.spec.batch * self.pixel_items
        return PrefetchShare(panel.vectors, self.lanes, items * self.plan.chunk)

    def tile(self, panel: Panel, rows: tuple[int, ...]) -> RegisterTile:
        """Describe the register block of a panel for pixels at these input offsets."""
        strides = zip(self.spec.in_strides[1:], self.spec.dilations, strict=True)
        taps = [
            (count, stride * dilation)
            for count, (stride, dilation) in zip(self.spec.kernel, strides, strict=True)
        ]
        depth = self.spec.group_in
        if self.row_taps > 1:  # the inner product of shared groups walks a row by itself
            depth *= taps.pop()[0]
        if not self.shared:
            depth, dims = self.spec.run  # adjacent in memory: one loop
            taps = taps[: len(taps) - dims]
        chains = 1 if self.shared else chains_for(len(rows) * panel.vectors, self.isa.registers)
        unroll = max(self.schedule.unroll, chains)
        in_place = self.spec.in_place
        width = self.spec.out_channels if in_place else panel.vectors * self.lanes
        return RegisterTile(
            rows,
            panel.vectors,
            self.lanes,
            self.numbers.steps(depth),
            width,
            self.numbers.group,
            taps=tuple(taps),
            unroll=unroll,
            chains=chains,
            valid=panel.channels if in_place else None,
            fetch=self.fetch(panel).lines if self.fetches else 0,
            tail=self.numbers.tail(depth),
            numbers=self.numbers,
        )


def emit_conv(
    spec: ConvSpec,
    schedule: ConvSchedule,
    isa: Isa,
    epilogue: Epilogue | None = None,
    rows: Sequence[RowsRead] = (),
) -> KernelCode:
    """Emit the kernel.

    Its arguments are input, weights, the epilogue's extras, how many images are read, output.
    """
    if is_depthwise(spec.chosen(isa)):
        return emit_depthwise(spec, schedule, isa, epilogue, rows)
    conv = _Conv(spec, schedule, isa, epilogue)
    arguments = 3 + (epilogue.extras if epilogue else 0) + len(rows)
    items = spec.batch * conv.panel_count * conv.pixel_items

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        skipping, pointers = Skipping.of(b, rows, pointers)
        with b.loop(low, high) as item:
            _item(b, conv, pointers, item, skipping)

    return kernel(conv.module, arguments, items, body)


@dataclass(frozen=True)
class _BlockArgs:
    """The state of one item: its pointers, and the coordinates of its first output.

    Units: `turn` counts the blocks before these that read the same panel, one after another.
    """

    source: Value
    weights: Value
    extras: list[Value]
    target: Value
    batch: Index
    channel: Index
    turn: Index


def _item(b: Emitter, conv: _Conv, pointers: list[Value], item: Index, skipping: Skipping) -> None:
    """Find an item's image, group and kind of panel, and emit the work for each kind."""
    spec = conv.spec
    turn: Index = 0
    if conv.schedule.row_groups_outside:
        rest, panel = b.split(item, conv.panel_count)
    else:
        panel, rest = b.split(item, spec.batch * conv.pixel_items)
        turn = b.mul(rest, conv.plan.chunk)
    batch, pixels = b.split(rest, conv.pixel_items)
    source, weights, *extras, target = pointers
    source = b.address(conv.numbers.data, source, b.mul(batch, spec.in_strides[0]))
    target = b.address(conv.numbers.result, target, b.mul(batch, spec.out_strides[0]))
    group, panel = b.split(panel, conv.group_panels)
    if not conv.shared:
        source = b.address(conv.numbers.data, source, b.mul(group, spec.group_in))
        vectors = sum(kind.count * kind.vectors for kind in conv.panels)
        size = spec.group_out if spec.in_place else vectors * conv.lanes * conv.weight_steps
        weights = b.address(conv.numbers.total, weights, b.mul(group, size))
    channel = b.mul(group, spec.group_out)
    args = _BlockArgs(source, weights, extras, target, batch, channel, turn)

    def work(kind: Panel) -> None:
        _pixels(b, conv, kind, _panel_args(b, conv, kind, args, panel), pixels)

    with skipping.image(b, batch):
        each_kind(b, conv.panels, panel, work)


def _panel_args(b: Emitter, conv: _Conv, kind: Panel, args: _BlockArgs, panel: Index) -> _BlockArgs:
    """Move to the weights and channels of one panel of a known kind."""
    number = b.sub(panel, kind.first)
    size = conv.lanes * conv.weight_steps
    offset = b.add(b.mul(number, kind.vectors * size), kind.vector * size)
    channel = b.add(b.mul(number, kind.channels), kind.channel)
    offset = channel if conv.spec.in_place else offset
    source = args.source
    if conv.shared:
        groups = b.mul(panel, conv.panels[0].groups)
        source = b.address(conv.numbers.data, source, b.mul(groups, conv.spec.group_in))
    channel = b.add(args.channel, channel)
    return _BlockArgs(
        source,
        b.address(conv.numbers.total, args.weights, offset),
        args.extras,
        b.address(conv.numbers.result, args.target, channel),
        args.batch,
        channel,
        args.turn,
    )


def _pixels(b: Emitter, conv: _Conv, kind: Panel, args: _BlockArgs, pixels: Index) -> None:
    """Emit the blocks of one row group, or of one piece of a row."""
    plan, width = conv.plan, conv.spec.out_spatial[2]
    rows, chunk = b.split(pixels, conv.chunks)
    depth, group = b.split(rows, conv.spec.out_spatial[1] // plan.row_group)
    height = b.mul(group, plan.row_group)
    if plan.row_group > 1:
        starts = itertools.accumulate(plan.sizes, initial=0)
        for number, (start, size) in enumerate(zip(starts, plan.sizes, strict=False)):
            top, left = divmod(start, width)
            pixels_of = (divmod(start + i, width) for i in range(size))
            deltas = tuple((h - top, w - left) for h, w in pixels_of)
            corner = (depth, b.add(height, top), left)
            _block(b, conv, kind, args, corner, deltas, b.add(args.turn, number))
        return

    def work(block: Index, size: int, left: Index) -> None:
        deltas = tuple((0, i) for i in range(size))
        number = b.add(args.turn, b.sub(block, b.mul(chunk, plan.chunk)))
        _block(b, conv, kind, args, (depth, height, left), deltas, number)

    block_loops(b, plan.sizes, (chunk, plan.chunk) if conv.chunks > 1 else None, work)


def _block(
    b: Emitter,
    conv: _Conv,
    kind: Panel,
    args: _BlockArgs,
    corner: tuple[Index, Index, Index],
    deltas: tuple[tuple[int, int], ...],
    number: Index,
) -> None:
    """Call the function that computes the pixels at `deltas` (h, w) from `corner` (d, h, w).

    Units: `number` is that of this block among the blocks of its panel.
    """
    name = conv.module.once(
        f"block {kind.vectors} {kind.channels} {kind.groups} {deltas}",
        lambda name: _block_function(conv, kind, deltas, name),
    )
    inputs = b.linear(*zip(corner, conv.in_steps, strict=True))
    outputs = b.linear(*zip(corner, conv.out_steps, strict=True))
    pointers = [b.address(conv.numbers.data, args.source, inputs), args.weights]
    target = b.address(conv.numbers.result, args.target, outputs)
    steps = conv.weight_steps
    panel = kind.vectors * conv.lanes * steps * conv.schedule.prefetch
    ahead = conv.fetch(kind).distance(b, panel, number, steps) if conv.fetches else 0
    numbers = [b.value(n, I64) for n in (args.batch, *corner, args.channel, ahead)]
    b.call(name, None, [*pointers, *args.extras, target, *numbers])


def _block_function(
    conv: _Conv, kind: Panel, deltas: tuple[tuple[int, int], ...], name: str
) -> None:
    params = [PTR] * (3 + (conv.epilogue.extras if conv.epilogue else 0)) + [I64] * 6
    with conv.module.function(name, params, attributes="noinline") as b:
        source, weights, *extras, target = b.parameters[:-6]
        batch, depth, height, left, channel, ahead = b.parameters[-6:]
        tile = conv.tile(kind, _offsets(deltas, conv.in_steps))
        inner = depth_loop
        if conv.shared:
            spec = conv.spec
            step = spec.in_strides[3] * spec.dilations[2]
            sizes = (kind.groups, spec.group_in, spec.group_out)
            inner = shared_groups(*sizes, conv.row_taps, step)
        start = starts_of(b, tile, weights, conv.steps)
        sums = accumulate(b, tile, Reads(source, weights, ahead), start, inner=inner)
        for row, offset in enumerate(_offsets(deltas, conv.out_steps)):
            down, right = deltas[row]
            spatial = (depth, b.add(height, down), b.add(left, right))[3 - conv.rank :]
            for v in range(kind.vectors):
                start = v * conv.lanes
                index = OutIndex((batch,), spatial, b.add(channel, start), conv.lanes)
                finish(
                    b,
                    conv.epilogue,
                    conv.numbers.finished(b, sums[row * kind.vectors + v]),
                    index,
                    kind.channels - start,
                    extras,
                    (target, offset + start),
                    stored=conv.numbers.result,
                    nontemporal=conv.schedule.nontemporal,
                )


def _offsets(deltas: Sequence[tuple[int, int]], steps: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(h * steps[1] + w * steps[2] for h, w in deltas)
