"""The schedule spaces of convolutions: plain ones, those whose groups share vectors, depthwise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ....dialects.schedule import Entry
from ...schedule_space import Dimension, Point, ScheduleTable, parts_of, powers
from ..isa import Isa
from .blocks import balanced
from .conv_spec import (
    ConvSchedule,
    ConvSpec,
    candidates,
    groups_together,
    may_group,
    panels,
    plan_rows,
)
from .depthwise import DepthwisePlan, block_rows, is_depthwise
from .product_space import MOST_ROWS, MOST_VECTORS, registers_needed


@dataclass(frozen=True)
class ConvProblem:
    """A convolution to schedule, and the processor."""

    spec: ConvSpec
    isa: Isa

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of the result's images."""
        _, height, width = self.spec.to_3d().out_spatial
        return height, width

    def schedule(self, point: Point) -> ConvSchedule:
        """The generator's schedule for a whole point."""
        n = {name: value for name, value in point.items() if isinstance(value, int)}
        return ConvSchedule(
            rows=n["rows"],
            vectors=n.get("vectors", 1),
            unroll=n.get("unroll", 1),
            row_groups_outside=point.get("order") == "rows",
            prefetch=n.get("prefetch", 0),
            image_rows=n["image_rows"],
            chunk=n["chunk"],
            channels=n.get("channels", 0),
        )


def table_for(spec: ConvSpec, isa: Isa) -> ScheduleTable[ConvProblem]:
    """The table of a convolution's kind."""
    if is_depthwise(spec):
        return DEPTHWISE
    return SHARED if groups_together(spec, isa) > 1 else CONVOLUTION


# --- plain convolutions, and shared groups ---


def _complete(p: ConvProblem, given: Point) -> dict[str, Entry]:
    """The whole point: what is open follows from the register block and the image."""
    default = candidates(p.spec, p.isa)[0]
    rows = given.get("rows", default.rows)
    assert isinstance(rows, int)
    image_rows = given.get("image_rows", 0)
    assert isinstance(image_rows, int)
    plan = plan_rows(p.spec, ConvSchedule(rows, 1, image_rows=image_rows))
    found: dict[str, Entry] = {
        "rows": rows,
        "vectors": default.vectors,
        "order": "rows" if default.row_groups_outside else "panels",
        "image_rows": plan.row_group,
        "chunk": plan.chunk,
        "unroll": default.unroll,
        "prefetch": default.prefetch,
    }
    names = {d.name for d in table_for(p.spec, p.isa).dimensions}
    return {name: value for name, value in found.items() if name in names} | dict(given)


def _fits_registers(p: ConvProblem, point: Point) -> str | None:
    return registers_needed(int(point["rows"]), int(point["vectors"]), p.isa)


def _groups_rows(p: ConvProblem, point: Point) -> str | None:
    rows, group = int(point["rows"]), int(point["image_rows"])
    if may_group(p.spec, rows, group):
        return None
    height, width = p.size
    return (
        f"image_rows={group} does not divide {height} rows"
        if height % group
        else f"image_rows={group} of {width} pixels are more than 8 blocks of rows={rows}"
    )


def _cuts_rows(p: ConvProblem, point: Point) -> str | None:
    group, chunk = int(point["image_rows"]), int(point["chunk"])
    blocks = len(balanced(group * p.size[1], int(point["rows"])))
    if chunk == blocks or (group == 1 and chunk < blocks):
        return None
    least = blocks if group > 1 else 1
    return f"chunk={chunk}: image_rows={group} are {blocks} blocks, and an item has {least} or more"


def _items(p: ConvProblem, point: Point) -> int:
    schedule = p.schedule(point)
    plan, spec = plan_rows(p.spec, schedule), p.spec.to_3d()
    groups = 1 if groups_together(spec, p.isa) > 1 else spec.groups
    columns = groups * sum(panel.count for panel in panels(spec, schedule, p.isa))
    depth, height, _ = spec.out_spatial
    rows = depth * (height // plan.row_group) * -(-len(plan.sizes) // plan.chunk)
    return spec.batch * columns * rows


def _features(p: ConvProblem) -> Mapping[str, float]:
    spec = p.spec
    return {
        "batch": spec.batch,
        "pixels": math.prod(spec.out_spatial),
        "width": spec.out_spatial[-1],
        "taps": math.prod(spec.kernel),
        "stride": spec.strides[-1],
        "in": spec.group_in,
        "out": spec.group_out,
        "groups": spec.groups,
    }


def _shortlist(p: ConvProblem) -> list[Point]:
    names = {d.name for d in table_for(p.spec, p.isa).dimensions}
    found: list[Point] = []
    for c in candidates(p.spec, p.isa):
        given: dict[str, Entry] = {"rows": c.rows, "vectors": c.vectors}
        found.append({name: value for name, value in given.items() if name in names})
    return found


def _heights(p: ConvProblem) -> list[int]:
    height, width = p.size
    return [n for n in range(1, height + 1) if height % n == 0 and n * width <= 8 * MOST_ROWS] or [
        1
    ]


_ROWS: Dimension[ConvProblem] = Dimension(
    "rows",
    "output pixels of a register block",
    lambda p: range(1, MOST_ROWS + 1),
)
_ORDER: Dimension[ConvProblem] = Dimension(
    "order",
    "which items are neighbours: those of some pixels, or of a panel of channels",
    lambda p: ("rows", "panels"),
)
_IMAGE_ROWS: Dimension[ConvProblem] = Dimension(
    "image_rows", "rows of the result cut into blocks together", _heights
)
_CHUNK: Dimension[ConvProblem] = Dimension(
    "chunk",
    "register blocks of an item",
    lambda p: parts_of(max(_heights(p)) * p.size[1]),
    True,
)

CONVOLUTION: ScheduleTable[ConvProblem] = ScheduleTable(
    kind="convolution",
    dimensions=(
        _ROWS,
        Dimension(
            "vectors",
            "vectors of output channels of a register block",
            lambda p: range(
                1, min(MOST_VECTORS, -(-p.spec.group_out // p.isa.lanes(p.spec.numbers.total))) + 1
            ),
        ),
        _ORDER,
        _IMAGE_ROWS,
        _CHUNK,
        Dimension("unroll", "input channels in one iteration", lambda p: powers(8)),
        Dimension("prefetch", "panels of weights ahead that are fetched", lambda p: (0, 1, 2)),
    ),
    complete=_complete,
    rules=(_fits_registers, _groups_rows, _cuts_rows),
    items=_items,
    features=_features,
    shortlist=_shortlist,
)

SHARED: ScheduleTable[ConvProblem] = ScheduleTable(
    kind="grouped convolution",
    dimensions=(_ROWS, _ORDER, _IMAGE_ROWS, _CHUNK),
    complete=_complete,
    rules=(_groups_rows, _cuts_rows),
    items=_items,
    features=_features,
    shortlist=_shortlist,
)

# --- depthwise ---


def _complete_depthwise(p: ConvProblem, given: Point) -> dict[str, Entry]:
    default = candidates(p.spec, p.isa)[0]
    rows = given.get("rows", default.rows)
    assert isinstance(rows, int)
    first: dict[str, int] = {"rows": rows, "image_rows": block_rows(p.spec, rows)}
    known = {**first, **{n: v for n, v in given.items() if isinstance(v, int)}}
    open_ = {"channels": 0, "chunk": 0}
    plan = DepthwisePlan(p.spec, p.schedule({**open_, **known}), p.isa)
    return {**known, "channels": plan.vector_chunk, "chunk": plan.width_chunk, **given}


def _is_a_block(p: ConvProblem, point: Point) -> str | None:
    rows, tall = int(point["rows"]), int(point["image_rows"])
    if rows % tall == 0:
        return None
    return f"image_rows={tall} does not divide a block of rows={rows} pixels"


def _depthwise_items(p: ConvProblem, point: Point) -> int:
    return DepthwisePlan(p.spec, p.schedule(point), p.isa).items


def _vectors(p: ConvProblem) -> int:
    return -(-p.spec.in_channels // p.isa.lanes(p.spec.numbers.total))


DEPTHWISE: ScheduleTable[ConvProblem] = ScheduleTable(
    kind="depthwise convolution",
    dimensions=(
        Dimension(
            "rows",
            "output pixels of a block",
            lambda p: [
                n
                for n in (1, 2, 3, 4, 6, 8, 9, 10, 12, 14, 15, 16, 18, 20, 24)
                if n <= p.isa.registers - 4
            ],
        ),
        Dimension(
            "image_rows",
            "rows of the result in a block",
            lambda p: range(1, min(4, p.size[0]) + 1),
        ),
        Dimension(
            "channels", "vectors of channels of an item", lambda p: parts_of(_vectors(p)), True
        ),
        Dimension("chunk", "blocks along a row in an item", lambda p: parts_of(p.size[1]), True),
    ),
    complete=_complete_depthwise,
    rules=(_is_a_block,),
    items=_depthwise_items,
    features=_features,
    shortlist=_shortlist,
)
