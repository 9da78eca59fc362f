"""A row that another one is made of, window after window: what windows share stays in registers.

Linear interpolation channels last, twice as wide: two places of the result lie between three of the
row before. Walked in steps of two places, each step makes one place of that row, and keeps two.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from ...dialects.index import Index
from ...dialects.nest import REGISTERS, AllocOp, ForOp, IdentityOp, LoadOp, StoreOp
from ...dialects.types import tensor_type
from ..kernel_to_cpu.nests.nest import NestPlan
from . import rewrites
from .build import Site
from .point_sums import UNROLLED
from .row_scopes import RowBuilder

# Places of the result in a step, and places of the row before that it may need.
MAX_STEP = 8
MAX_WIDTH = 6


@dataclass(frozen=True)
class Rolled:
    """Two scopes of a plan, of which the second reads the first in windows.

    Attributes:
        step: places of the result that are made at once.
        move: how far the window moves from step to step.
        first: where it begins at the first step.
        width: places in it.
    """

    plan: NestPlan
    step: int
    move: int
    first: int
    width: int

    @property
    def kept(self) -> int:
        """Places of a window that the next one has, too."""
        return max(0, self.width - self.move)

    def build(self, builder: RowBuilder, site: Site) -> None:
        """Put both scopes at a point. Loops that are to be written out name their size."""
        made, root = self.plan.scopes
        window = AllocOp(tensor_type(made.op.result).element_type, self.width, REGISTERS)
        site.add(window)
        builder.rows[made.op.result] = window.result, Index.iterator(made.own[0]) - self.first
        builder.inside.add(made.op.result)
        for k in range(self.kept):
            self._make(builder, site, window, k, None, 0, inside=self._is_inside(0, k))
        new = range(self.kept, self.width)
        steps = range(self.plan.extents[root.own[0]] // self.step)
        done = 0
        for inside, run in groupby(steps, lambda s: [self._is_inside(s, k) for k in new]):
            loop = rewrites.mark(ForOp(len(list(run))), "serial", unroll=1)
            site.add(loop)
            here = Site(loop.block, dict(site.places))
            for k in new:
                self._make(builder, here, window, k, loop, done, inside=inside[k - self.kept])
            self._result(builder, here, window, loop, done)
            self._move(here, window)
            done += loop.size

    def _is_inside(self, step: int, k: int) -> bool:
        """Whether place k of a step's window is in the row."""
        size = self.plan.extents[self.plan.scopes[0].own[0]]
        return 0 <= step * self.move + self.first + k < size

    def _make(
        self,
        builder: RowBuilder,
        site: Site,
        window: AllocOp,
        k: int,
        step: ForOp | None,
        done: int,
        *,
        inside: bool,
    ) -> None:
        """Put the first scope's value, or the zero outside, at a place of a step's window.

        A loop over steps begins with number `done`.
        """
        made = self.plan.scopes[0]
        if not inside:
            zero = IdentityOp("sum", tensor_type(made.op.result).element_type)
            site.add(zero)
            site.add(StoreOp(zero.result, window.result, [], Index(k)))
            return
        place, there = site.loop(made.own[0], 1)
        value = builder.value(there, made)
        there.add(StoreOp(value, window.result, [], Index(k)))
        moves = [] if step is None else [(step.iterator, self.move)]
        rewrites.substitute(place.iterator, moves, done * self.move + self.first + k)

    def _result(
        self, builder: RowBuilder, site: Site, window: AllocOp, step: ForOp, done: int
    ) -> None:
        """Make the places of a step. Only reads of the window do not move with the steps."""
        root = self.plan.root
        place, there = site.loop(root.own[0], self.step)
        builder.store(there, builder.value(there, root), builder.nontemporal)
        reads = [op for op in place.walk() if isinstance(op, LoadOp) and op.buffer is window.result]
        before = [(op, list(op.places), op.indices) for op in reads]
        moves = [(step.iterator, self.step), (place.iterator, 1)]
        rewrites.substitute(place.iterator, moves, done * self.step)
        for op, places, indices in before:
            op.replace_places(places, indices)
        _write_out(place)

    def _move(self, site: Site, window: AllocOp) -> None:
        """Keep what the next window has, too."""
        if not self.kept:
            return
        loop = ForOp(self.kept)
        at, here = [loop.iterator], Index.iterator(0)
        read = LoadOp(window.result, at, here + self.move)
        loop.block.add_ops([read, StoreOp(read.result, window.result, at, here)])
        site.add(loop)
        _write_out(loop)


def _write_out(loop: ForOp) -> None:
    if loop.size > 1:
        rewrites.mark(loop, "serial", unroll=loop.size)


def rolled(plan: NestPlan) -> Rolled | None:
    """How to keep windows of the one row before the result in registers; None if that does not do.

    They are read at places that move by the same number with every so many places of the result.
    """
    if len(plan.scopes) != 2 or any(len(scope.own) != 1 for scope in plan.scopes):
        return None
    made, root = plan.scopes
    (outer,) = root.own
    reads = [r for r in root.reads if r.source is made.op.result]
    taps = [plan.extents[k] for k in root.sums]
    if not reads or np.prod(taps) > UNROLLED or any(r.outside != 0.0 for r in reads):
        return None
    dim = next(d for d, e in enumerate(made.here) if made.own[0] in e.iterators)
    indices = [r.index[dim] for r in reads]
    if any(not e.iterators <= {outer, *root.sums} for e in indices):
        return None
    grid = np.indices([plan.extents[outer], *taps]).reshape(1 + len(taps), -1)
    values: list[np.ndarray | int] = [0] * len(plan.extents)
    for k, found in zip((outer, *root.sums), grid, strict=True):
        values[k] = found
    columns = [np.broadcast_to(e.evaluate(values), grid.shape[1]) for e in indices]
    places = np.stack([c.reshape(plan.extents[outer], -1) for c in columns], 1)
    places = places.reshape(plan.extents[outer], -1)
    for step in range(1, MAX_STEP + 1):
        if len(places) % step or len(places) == step:
            continue
        moves = places[step:] - places[:-step]
        window = places[:step]
        width = int(window.max() - window.min()) + 1
        if (moves == moves.flat[0]).all() and moves.flat[0] > 0 and width <= MAX_WIDTH:
            return Rolled(plan, step, int(moves.flat[0]), int(window.min()), width)
    return None
