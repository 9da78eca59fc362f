"""The schedule space of matrix products."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from ....dialects.schedule import Entry
from ...schedule_space import Dimension, Point, ScheduleTable, parts_of, powers
from ..isa import Isa
from .blocks import balanced, cut_panels
from .gemm_spec import FEW_ROWS, GemmSchedule, GemmSpec, Right, candidates, schedule_for

# The tallest and widest register blocks that any processor has registers for.
MOST_ROWS = 14
MOST_VECTORS = 6
# What the buffers of an item may take of a thread's stack.
MOST_STACK = 1 << 20
_SIDES = ("as-is", "copied")


@dataclass(frozen=True)
class ProductProblem:
    """A product to schedule: its sizes, the processor, whether B is known at compile time."""

    spec: GemmSpec
    isa: Isa
    constant_b: bool

    @property
    def widest(self) -> int:
        """Vectors that the columns fill."""
        return -(-self.spec.n // self.isa.lanes(self.spec.numbers.total))

    def schedule(self, point: Point) -> GemmSchedule:
        """The generator's schedule for a whole point."""
        right = cast(Right, str(point["right"]))
        n = {name: value for name, value in point.items() if isinstance(value, int)}
        return GemmSchedule(
            rows=n["rows"],
            vectors=n["vectors"],
            right=right,
            depth=n["depth"],
            row_blocks=n["row_blocks"],
            panels=n["panels"],
            copy_a=point["left"] == "copied",
            unroll=n["unroll"],
            panels_outside=point["order"] == "panels",
            prefetch=n["prefetch"],
        )

    def entries(self, schedule: GemmSchedule) -> dict[str, Entry]:
        """The whole point of a generator's schedule."""
        return {
            "rows": schedule.rows,
            "vectors": schedule.vectors,
            "right": schedule.right,
            "left": _SIDES[schedule.copy_a],
            "depth": schedule.depth,
            "row_blocks": schedule.row_blocks,
            "panels": schedule.panels,
            "order": "panels" if schedule.panels_outside else "rows",
            "unroll": schedule.unroll,
            "prefetch": schedule.prefetch,
        }


def _rights(p: ProductProblem) -> list[Entry]:
    """Bytes are multiplied from panels of words; only what is not widened is read directly."""
    if p.spec.numbers.is_integer:
        return ["packed" if p.constant_b else "copied"]
    same = p.spec.numbers.right == p.spec.numbers.total
    adjacent = ["direct"] if p.spec.b_strides[-1] == 1 and same else []
    return [*(["packed"] if p.constant_b else []), *adjacent, "copied"]


def _lefts(p: ProductProblem) -> tuple[str, ...]:
    same = p.spec.numbers.data == p.spec.numbers.total
    return _SIDES if 1 in p.spec.a_strides[-2:] and same else _SIDES[:1]


def _complete(p: ProductProblem, given: Point) -> dict[str, Entry]:
    """The whole point: what is open follows from the register block."""
    default = candidates(p.spec, p.isa, constant_b=p.constant_b)[0]
    block = given.get("rows", default.rows), given.get("vectors", default.vectors)
    right = given.get("right")
    if block == (default.rows, default.vectors) and right in (None, default.right):
        return {**p.entries(default), **given}
    chosen: Any = schedule_for(
        p.spec, p.isa, cast(Any, block), cast(Any, right), constant_b=p.constant_b
    )
    return {**p.entries(chosen), **given}


def _fits_registers(p: ProductProblem, point: Point) -> str | None:
    if p.spec.m <= FEW_ROWS:  # read at the speed of memory: what does not fit costs nothing
        return None
    return registers_needed(int(point["rows"]), int(point["vectors"]), p.isa)


def registers_needed(rows: int, vectors: int, isa: Isa) -> str | None:
    """Why a register block is refused: its sums, weights and one input need registers."""
    needed = rows * vectors + vectors + 1
    if needed <= isa.registers:
        return None
    return f"rows={rows} vectors={vectors} needs {needed} registers, and there are {isa.registers}"


def _fits_stack(p: ProductProblem, point: Point) -> str | None:
    s, lanes = p.schedule(point), p.isa.lanes(p.spec.numbers.total)
    rows = balanced(p.spec.m, s.rows)[0]
    copied = (rows * s.row_blocks + 32) * (s.depth + 32) if s.copy_a else 0
    panel = s.depth * s.vectors * lanes if s.right == "copied" else 0
    deep = s.depth < p.spec.numbers.rows(p.spec.k)
    sums = s.panels * s.row_blocks * rows * s.vectors * lanes if deep else 0
    size = 4 * (copied + panel + sums)
    if size <= MOST_STACK:
        return None
    return f"an item's copies and partial sums take {size} bytes, at most {MOST_STACK} are allowed"


def _prefetches_packed(p: ProductProblem, point: Point) -> str | None:
    if point["prefetch"] == 0 or point["right"] == "packed":
        return None
    return f"prefetch={point['prefetch']} needs right=packed: other panels do not lie in order"


def _items(p: ProductProblem, point: Point) -> int:
    s = p.schedule(point)
    columns = sum(
        kind.count for kind in cut_panels(p.spec.n, s.vectors, p.isa.lanes(p.spec.numbers.total))
    )
    blocks = len(balanced(p.spec.m, s.rows))
    return math.prod(p.spec.batch) * -(-columns // s.panels) * -(-blocks // s.row_blocks)


def _features(p: ProductProblem) -> Mapping[str, float]:
    spec = p.spec
    return {"batch": math.prod(spec.batch), "m": spec.m, "n": spec.n, "k": spec.k}


def _shortlist(p: ProductProblem) -> list[Point]:
    return [p.entries(s) for s in candidates(p.spec, p.isa, constant_b=p.constant_b)]


def _depths(p: ProductProblem) -> list[Entry]:
    """Bytes are multiplied in one block: their panels are small."""
    rows = max(1, p.spec.numbers.rows(p.spec.k))
    return [*parts_of(rows)] if not p.spec.numbers.is_integer else [rows]


def _row_blocks(p: ProductProblem) -> list[Entry]:
    return [*parts_of(p.spec.m)]


PRODUCT: ScheduleTable[ProductProblem] = ScheduleTable(
    kind="product",
    dimensions=(
        Dimension(
            "rows",
            "rows of a register block",
            lambda p: range(1, min(MOST_ROWS, p.spec.m) + 1),
        ),
        Dimension(
            "vectors",
            "vectors of columns of a register block",
            lambda p: range(1, min(MOST_VECTORS, p.widest) + 1),
        ),
        Dimension("right", "how B is read: packed, as it is, a panel copied first", _rights),
        Dimension("left", "how A is read: as it is, an item's rows copied first", _lefts),
        Dimension("depth", "steps of k before the next block", _depths, True),
        Dimension("row_blocks", "register blocks of rows in an item", _row_blocks, True),
        Dimension("panels", "panels of columns in an item", lambda p: parts_of(p.widest), True),
        Dimension(
            "order",
            "which items are neighbours: those of some rows, or panels",
            lambda p: ("rows", "panels"),
        ),
        Dimension("unroll", "steps of k in one iteration", lambda p: powers(8)),
        Dimension("prefetch", "panels ahead that are fetched", lambda p: (0, 1, 2)),
    ),
    complete=_complete,
    rules=(_fits_registers, _prefetches_packed, _fits_stack),
    items=_items,
    features=_features,
    shortlist=_shortlist,
)
