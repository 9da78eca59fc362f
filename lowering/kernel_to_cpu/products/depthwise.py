"""Emit depthwise convolution: one input channel makes one output channel.

Lanes are channels, so nothing is broadcast or shuffled. A block of neighbouring output pixels, of
two rows if possible, is computed with all taps unrolled, and loads each input once. Inside a block
the loop runs over channels, in the order of memory. Weights are packed as `pack_weights` does for
any convolution whose groups share vectors.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..emit.emitter import Emitter
from ..emit.module import KernelCode, Module, kernel
from ..emit.rows_read import RowsRead, Skipping
from ..emit.types import I64, PTR, Index, Value, constant
from ..isa import Isa
from .blocks import balanced, block_loops
from .conv_spec import ConvSchedule, ConvSpec
from .epilogue import Epilogue, OutIndex, finish

_MOST_TAPS = 64  # unrolling more would make too much code
_ITEMS = 16  # items wanted, so that a few threads share the work evenly


def is_depthwise(spec: ConvSpec) -> bool:
    """Say whether this emitter handles `spec`."""
    single = spec.group_in == spec.group_out == 1
    return single and spec.groups > 1 and math.prod(spec.kernel) <= _MOST_TAPS


class DepthwisePlan:
    """How a schedule cuts the work: the state that every part of the emission needs."""

    def __init__(
        self, spec: ConvSpec, schedule: ConvSchedule, isa: Isa, epilogue: Epilogue | None = None
    ) -> None:
        self.rank = len(spec.out_spatial)
        spec = spec.chosen(isa)
        self.spec = spec = spec.to_3d()
        self.numbers = spec.numbers
        self.epilogue = epilogue
        self.lanes = isa.lanes(self.numbers.total)
        self.module = Module()
        depth, height, width = spec.out_spatial
        rows = min(height, schedule.image_rows) or block_rows(spec, schedule.rows)
        self.heights = balanced(height, rows)
        self.widths = balanced(width, max(1, schedule.rows // rows))
        self.vectors = -(-spec.in_channels // self.lanes)
        self.bands = spec.batch * depth * len(self.heights)
        self.vector_chunk = schedule.channels or _count_per_item(self.vectors, self.bands)
        self.vector_chunks = -(-self.vectors // self.vector_chunk)
        items = self.bands * self.vector_chunks
        self.width_chunk = schedule.chunk or _count_per_item(len(self.widths), items)
        self.width_chunks = -(-len(self.widths) // self.width_chunk)

    @property
    def items(self) -> int:
        """Count the pieces of work."""
        return self.bands * self.vector_chunks * self.width_chunks

    def tap_offset(self, tap: Sequence[int], pixel: Sequence[int]) -> int:
        """Count elements from a block's first input to what `tap` reads for `pixel` (d, h, w)."""
        spec = self.spec
        terms = zip(tap, spec.dilations, pixel, spec.strides, spec.in_strides[1:], strict=True)
        return sum((t * d + p * s) * stride for t, d, p, s, stride in terms)


def block_rows(spec: ConvSpec, pixels: int) -> int:
    """Choose how many rows of the image a block of so many pixels has."""
    return 2 if spec.to_3d().out_spatial[1] > 1 and pixels >= 6 else 1


def _count_per_item(count: int, items: int) -> int:
    """Choose how much of `count` one item takes, given the number of items without cutting."""
    return max(1, min(count, count * items // _ITEMS))


def emit_depthwise(
    spec: ConvSpec,
    schedule: ConvSchedule,
    isa: Isa,
    epilogue: Epilogue | None = None,
    rows: Sequence[RowsRead] = (),
) -> KernelCode:
    """Emit the kernel.

    Its arguments are input, packed weights, the epilogue's extras, how many images are read,
    output. `schedule.rows` is how many pixels a block holds.
    """
    plan = DepthwisePlan(spec, schedule, isa, epilogue)
    arguments = 3 + (epilogue.extras if epilogue else 0) + len(rows)

    def body(b: Emitter, pointers: list[Value], low: Index, high: Index) -> None:
        skipping, pointers = Skipping.of(b, rows, pointers)
        with b.loop(low, high) as item:
            _item(b, plan, pointers, item, skipping)

    return kernel(plan.module, arguments, plan.items, body)


@dataclass(frozen=True)
class _BlockArgs:
    """The state of an item: everything but the column of its blocks."""

    pointers: list[Value]
    batch: Index
    depth: Index
    vectors: tuple[Index, Index]


def _item(
    b: Emitter, plan: DepthwisePlan, pointers: list[Value], item: Index, skipping: Skipping
) -> None:
    rest, columns = b.split(item, plan.width_chunks)
    rest, chunk = b.split(rest, plan.vector_chunks)
    rest, band = b.split(rest, len(plan.heights))
    batch, depth = b.split(rest, plan.spec.out_spatial[0])
    first = b.mul(chunk, plan.vector_chunk)
    last: Index = b.add(first, plan.vector_chunk)
    if plan.vectors % plan.vector_chunk:
        last = b.minimum(last, plan.vectors)
    args = _BlockArgs(pointers, batch, depth, (first, last))

    def rows(_: Index, tall: int, top: Index) -> None:
        def pixels(_: Index, wide: int, left: Index) -> None:
            _block(b, plan, args, (tall, wide), (top, left))

        pieces = (columns, plan.width_chunk) if plan.width_chunks > 1 else None
        block_loops(b, plan.widths, pieces, pixels)

    with skipping.image(b, batch):
        block_loops(b, plan.heights, (band, 1), rows)


def _block(
    b: Emitter,
    plan: DepthwisePlan,
    args: _BlockArgs,
    size: tuple[int, int],
    corner: tuple[Index, Index],
) -> None:
    """Call the function that computes a block of `size` (rows, columns) for some channels."""
    spec = plan.spec
    name = plan.module.once(f"block {size}", lambda name: _block_function(plan, size, name))
    spatial = (args.depth, *corner)
    steps = [s * step for s, step in zip(spec.in_strides[1:], spec.strides, strict=True)]
    source, weights, *extras, target = args.pointers
    inputs = b.linear((args.batch, spec.in_strides[0]), *zip(spatial, steps, strict=True))
    outputs = b.linear(*zip((args.batch, *spatial), spec.out_strides, strict=True))
    data = b.address(plan.numbers.data, source, inputs)
    pointers = [data, weights, *extras, b.address(plan.numbers.result, target, outputs)]
    numbers = [b.value(n, I64) for n in (args.batch, *spatial, *args.vectors)]
    b.call(name, None, [*pointers, *numbers])


def _block_function(plan: DepthwisePlan, size: tuple[int, int], name: str) -> None:
    params = [PTR] * (3 + (plan.epilogue.extras if plan.epilogue else 0)) + [I64] * 6
    whole, rest = divmod(plan.spec.in_channels, plan.lanes)
    with plan.module.function(name, params, attributes="noinline") as b:
        first, last = b.parameters[-2:]
        with b.loop(first, b.minimum(last, whole), unroll=1) as vector:
            _vector(b, plan, size, vector, plan.lanes)
        if rest:
            with b.when(b.compare("eq", last, plan.vectors)):
                _vector(b, plan, size, whole, rest)


def _vector(
    b: Emitter, plan: DepthwisePlan, size: tuple[int, int], vector: Index, valid: int
) -> None:
    """Emit one vector of channels, input row by input row."""
    source, weights, *extras, target = b.parameters[:-6]
    batch, depth, top, left = b.parameters[-6:-2]
    channel = b.mul(vector, plan.lanes)
    taps = 1 if plan.spec.in_place else math.prod(plan.spec.kernel)
    source = b.address(plan.numbers.data, source, channel)
    weights = b.address(plan.numbers.total, weights, b.mul(vector, plan.lanes * taps))
    sums = _sums(b, plan, size, source, weights, valid)
    for (down, right), value in sums.items():
        spatial = (depth, b.add(top, down), b.add(left, right))[3 - plan.rank :]
        index = OutIndex((batch,), spatial, channel, plan.lanes)
        steps = plan.spec.out_strides
        offset = b.add(channel, down * steps[2] + right * steps[3])
        made, place = plan.numbers.finished(b, value), (target, offset)
        stored = plan.numbers.result
        finish(b, plan.epilogue, made, index, valid, extras, place, stored=stored)


def _sums(
    b: Emitter,
    plan: DepthwisePlan,
    size: tuple[int, int],
    source: Value,
    weights: Value,
    valid: int,
) -> dict[tuple[int, int], Value]:
    """Sum over taps for each pixel (row, column) of a block; every input is loaded once."""
    numbers, vector = plan.numbers, plan.numbers.total.vector(plan.lanes)
    kernel_size = plan.spec.kernel
    pixels = [(down, right) for down in range(size[0]) for right in range(size[1])]
    uses: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for number in range(math.prod(kernel_size)):
        rest, s = divmod(number, kernel_size[2])
        tap = (*divmod(rest, kernel_size[1]), s)
        for pixel in pixels:
            offset = plan.tap_offset(tap, (0, *pixel))
            uses.setdefault(offset, []).append((number, pixel))
    sums = dict.fromkeys(pixels, constant(vector, 0))
    columns: dict[int, Value] = {}
    in_place = plan.spec.in_place
    step, real = (plan.spec.out_channels, valid) if in_place else (plan.lanes, plan.lanes)
    for offset, readers in sorted(uses.items()):
        x = numbers.widened(b, b.load(numbers.data.vector(plan.lanes), source, offset, mask=valid))
        for number, pixel in readers:
            if number not in columns:
                columns[number] = b.load(vector, weights, number * step, mask=real)
            sums[pixel] = numbers.multiplied(b, x, columns[number], sums[pixel])
    return sums
