"""The forms of nests, and the schedule space of each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, TypeVar

from ...dialects.kernel import KernelOp
from ...dialects.nest import NestOp
from ...dialects.types import byte_size
from ..kernel_to_cpu.isa import Isa
from ..kernel_to_cpu.nests.lanes import power_of_two
from ..kernel_to_cpu.nests.nest import NestPlan
from ..schedule_space import Dimension, Point, ScheduleTable, Space, powers
from .points import PointsSchedule, default_points, points
from .rolled_rows import Rolled
from .rows import RowsSchedule, default_rows, possible_turns, rows
from .rows_across import AcrossSchedule, common_window, possible_vectors, rows_across
from .transposed import TransposedSchedule, default_transposed, transposed_points

S = TypeVar("S")


@dataclass(frozen=True)
class Form(ABC):
    """A nest to schedule: its op, its loops, the processor, lanes of a whole vector."""

    op: KernelOp
    plan: NestPlan
    isa: Isa
    lanes: int

    @abstractmethod
    def default(self) -> Any:
        """The schedule of a model, a dataclass."""

    @abstractmethod
    def space(self) -> Space:
        """What may vary."""

    def default_point(self) -> Point:
        """The schedule of a model, as a point of the space."""
        return asdict(self.default())

    @abstractmethod
    def nest(self, point: Point) -> NestOp:
        """The nest of a whole point."""

    def features(self) -> Mapping[str, float]:
        """Numbers for a cost model."""
        sums = sum(math.prod(self.plan.extents[k] for k in s.sums) for s in self.plan.scopes)
        own = sum(math.prod(self.plan.extents[k] for k in s.own) for s in self.plan.scopes)
        shared = math.prod(self.plan.extents[: self.plan.shared])
        reads = sum(len(s.reads) for s in self.plan.scopes)
        size = byte_size(self.op.type)
        return {"shared": shared, "own": own, "sums": sums, "reads": reads, "bytes": size}


def _complete(form: Form, given: Point) -> Point:
    """The entries of a model's schedule, but for those that are given."""
    return {**form.default_point(), **given}


def _made(kind: type[S], point: Point) -> S:
    values: dict[str, Any] = dict(point)
    return kind(**values)


@dataclass(frozen=True)
class Points(Form):
    """Scopes that share all loops, one of which runs over lanes."""

    vector: int

    def default(self) -> PointsSchedule:
        return default_points(self.op, self.plan, self.vector, self.isa, self.lanes)

    @property
    def sums(self) -> bool:
        """Whether there are summations."""
        return any(scope.sums for scope in self.plan.scopes)

    def space(self) -> Space:
        return POINTS.space(self)

    def nest(self, point: Point) -> NestOp:
        chosen = _made(PointsSchedule, point)
        return points(self.op, self.plan, self.vector, self.isa, self.lanes, chosen)


@dataclass(frozen=True)
class Rows(Form):
    """Scopes that share outer loops, lanes along rows and sums."""

    def default(self) -> RowsSchedule:
        return default_rows(self.op, self.plan, self.lanes)

    def space(self) -> Space:
        return ROWS.space(self)

    def nest(self, point: Point) -> NestOp:
        return rows(self.op, self.plan, self.isa, _made(RowsSchedule, point))


@dataclass(frozen=True)
class Across(Form):
    """Scopes that share outer loops, lanes along neighbouring points."""

    vector: int

    @cached_property
    def window(self) -> Rolled | None:
        """The window that a row is made of, if each is one of the row before, moved."""
        return common_window(self.plan)

    def vectors(self) -> list[int]:
        """How many vectors of points can share a body."""
        return possible_vectors(self.plan, self.vector, self.lanes, self.window)

    def default(self) -> AcrossSchedule:
        width = power_of_two(self.plan.extents[self.vector], self.lanes)
        return AcrossSchedule(width, self.vectors()[-1])

    def space(self) -> Space:
        return ACROSS.space(self)

    def nest(self, point: Point) -> NestOp:
        chosen = _made(AcrossSchedule, point)
        return rows_across(self.op, self.plan, self.vector, chosen, self.window)


@dataclass(frozen=True)
class Transposed(Form):
    """Points read along one loop and stored along another."""

    vector: int
    across: int

    def default(self) -> TransposedSchedule:
        return default_transposed(self.op, self.plan, self.vector, self.lanes)

    def space(self) -> Space:
        return TRANSPOSED.space(self)

    def nest(self, point: Point) -> NestOp:
        chosen = _made(TransposedSchedule, point)
        places = self.vector, self.across, self.lanes
        return transposed_points(self.op, self.plan, *places, chosen)


def _widths(form: Points | Across) -> list[int]:
    return powers(power_of_two(form.plan.extents[form.vector], form.lanes))


def _blocks(form: Points) -> list[int]:
    default = form.default().block
    return powers(form.isa.registers // 2) if default > 1 else [1]


POINTS: ScheduleTable[Points] = ScheduleTable(
    kind="points",
    dimensions=(
        Dimension("lanes", "lanes of a vector", _widths),
        Dimension("items", "items that outer loops are cut into", lambda f: powers(512, 16)),
        Dimension("block", "vectors that share the loops over long sums", _blocks),
        Dimension(
            "stack",
            "neighbours with overlapping windows that are computed together",
            lambda f: powers(8) if f.default().stack > 1 else [1],
        ),
        Dimension(
            "unroll",
            "vectors of one iteration without sums; 0: as LLVM likes",
            lambda f: [0] if f.sums else [0, 1, 2, 4, 8],
        ),
        Dimension(
            "staged",
            "whether rows of totals stay on the stack until they are whole",
            lambda f: [0, 1] if f.default().staged else [0],
        ),
        Dimension("chains", "totals of a reduction", lambda f: powers(16) if f.sums else [8]),
    ),
    complete=_complete,
    features=Form.features,
)

ROWS: ScheduleTable[Rows] = ScheduleTable(
    kind="rows",
    dimensions=(
        Dimension("lanes", "lanes of a vector", lambda f: powers(f.lanes)),
        Dimension(
            "turns", "points that are interleaved", lambda f: possible_turns(f.plan, f.lanes)
        ),
        Dimension("unroll", "vectors of one iteration along a row", lambda f: powers(8)),
        Dimension("chains", "totals of a sum", lambda f: powers(16)),
    ),
    complete=_complete,
    features=Form.features,
)

ACROSS: ScheduleTable[Across] = ScheduleTable(
    kind="rows of neighbouring points",
    dimensions=(
        Dimension("lanes", "lanes of a vector", _widths),
        Dimension(
            "vectors",
            "vectors of points in one body",
            lambda f: f.vectors(),
        ),
    ),
    complete=_complete,
    features=Form.features,
)

TRANSPOSED: ScheduleTable[Transposed] = ScheduleTable(
    kind="transposed points",
    dimensions=(
        Dimension("strip", "vectors of a strip", lambda f: powers(32)),
        Dimension("chunk", "places across before the next strip", lambda f: powers(256, 16)),
        Dimension("ahead", "places ahead that are fetched; 0: none", lambda f: (0, 16, 32, 64)),
    ),
    complete=_complete,
    features=Form.features,
)
