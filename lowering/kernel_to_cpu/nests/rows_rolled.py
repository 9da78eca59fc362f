"""A row that another one is made of, window after window: what windows share stays in registers.

Linear interpolation channels last, twice as wide: two places of the result lie between three of the
row before. Walked in steps of two places, each step makes one place of that row, and keeps two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..emit.access import Access, Point, cleared, store
from ..emit.emitter import Emitter
from ..emit.types import I64, Index, Value, constant
from .nest import Buffers, NestOperand, NestPlan
from .reduction import UNROLLED, emit_scopes

# Places of the result in a step, and places of the row before that it may need.
MOST_STEP = 8
MOST_WIDTH = 6

Places = Sequence[tuple[Buffers, Point]]


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

    def emit(self, b: Emitter, places: Places, target: Access, nontemporal: int) -> None:
        """All of the result's row, at points that share its loop."""
        made, root = self.plan.scopes
        (outer,) = root.own
        places = [(replace(here, optimistic=False), point) for here, point in places]
        kept = max(0, self.width - self.move)
        count, steps = len(places), self.plan.extents[outer] // self.step
        start = [v for k in range(kept) for v in self._made(b, places, self.first + k, False)]
        ends = (steps - 1) * self.move + self.first + self.width > self._size
        with b.fold(0, steps, start, unroll=1) as loop:
            window = [loop.values[k : k + count] for k in range(0, kept * count, count)]
            for k in range(kept, self.width):
                place = b.add(b.mul(loop.index, self.move), self.first + k)
                window.append(self._made(b, places, place, ends or self.first + k < 0))
            for k in range(self.step):
                at = b.add(b.mul(loop.index, self.step), k)
                here = [
                    (
                        replace(
                            buffers,
                            held={made.op.result: _Window(self, k, [w[n] for w in window])},
                        ),
                        point.at({outer: at}),
                    )
                    for n, (buffers, point) in enumerate(places)
                ]
                for value, (_, point) in zip(emit_scopes(b, root, here), here, strict=True):
                    store(b, value, target, point, nontemporal=nontemporal)
            loop.next([v for values in window[self.move :] for v in values][: kept * count])

    @property
    def _size(self) -> int:
        return self.plan.extents[self.plan.scopes[0].own[0]]

    def _made(self, b: Emitter, places: Places, place: Index, checked: bool) -> list[Value]:
        """The first scope's values at one place of its row; zeros outside."""
        made = self.plan.scopes[0]
        (inner,) = made.own
        inside: Value | None = None
        nearest: Index = place
        if isinstance(place, int):
            nearest = min(max(place, 0), self._size - 1)
            inside = None if nearest == place else b.compare("lt", constant(I64, 1), 0)
        elif checked:
            inside = b.compare("lt", place, self._size, signed=False)
            nearest = b.minimum(b.maximum(place, 0), self._size - 1)
        values = emit_scopes(b, made, [(here, p.at({inner: nearest})) for here, p in places])
        return values if inside is None else [cleared(b, value, inside) for value in values]


@dataclass(frozen=True)
class _Window:
    """What place `number` of a step sees of the row, in one vector for each place."""

    rolled: Rolled
    number: int
    values: Sequence[Value]

    def read(self, b: Emitter, operand: NestOperand, point: Point) -> Value:
        del b
        (outer,) = self.rolled.plan.root.own
        known = {k: v for k, v in point.values.items() if isinstance(v, int)} | {outer: self.number}
        at = [known.get(k, 0) for k in range(len(point.extents))]
        index = operand.index[_dim(self.rolled.plan)].evaluate(at)
        return self.values[int(index) - self.rolled.first]


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
    indices = [r.index[_dim(plan)] for r in reads]
    if any(not e.iterators <= {outer, *root.sums} for e in indices):
        return None
    grid = np.indices([plan.extents[outer], *taps]).reshape(1 + len(taps), -1)
    values: list[np.ndarray | int] = [0] * len(plan.extents)
    for k, found in zip((outer, *root.sums), grid, strict=True):
        values[k] = found
    columns = [np.broadcast_to(e.evaluate(values), grid.shape[1]) for e in indices]
    places = np.stack([c.reshape(plan.extents[outer], -1) for c in columns], 1)
    places = places.reshape(plan.extents[outer], -1)
    for step in range(1, MOST_STEP + 1):
        if len(places) % step or len(places) == step:
            continue
        moves = places[step:] - places[:-step]
        window = places[:step]
        width = int(window.max() - window.min()) + 1
        if (moves == moves.flat[0]).all() and moves.flat[0] > 0 and width <= MOST_WIDTH:
            return Rolled(plan, step, int(moves.flat[0]), int(window.min()), width)
    return None


def _dim(plan: NestPlan) -> int:
    made = plan.scopes[0]
    return next(d for d, e in enumerate(made.here) if made.own[0] in e.iterators)
