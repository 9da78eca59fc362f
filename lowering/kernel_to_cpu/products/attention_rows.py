"""Emit the ops between the two products of attention, with queries in the lanes of vectors.

A value for each key is a row of vectors, stored transposed: [key][query of the block]. A value for
each query (a maximum, a sum) is one such vector. Both are on the stack between passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ....dialects.index import normalise
from ....dialects.kernel import KernelOp
from ....dialects.types import Tensor, element_of, tensor_type
from ...algebra_to_kernel.attention import Attention, MappedScope
from ..emit.access import Point, Vector, compute_type, memory_type, to_compute, to_memory
from ..emit.emitter import Emitter
from ..emit.scalar_code import combine, identity
from ..emit.types import I8, Index, Type, Value
from ..nests.nest import Buffers, NestOperand, ScopePlan
from ..nests.scope_value import emit_scope
from .attention_passes import RowPass, plan_rows
from .blocks import Panel

# Keys processed together in a pass, so that exponentials do not wait for each other.
UNROLL = 4

Totals = dict[tuple[SSAValue, int], Value]
"""Reductions so far, by value and vector of queries."""


@dataclass(frozen=True)
class Frame:
    """The environment inside the loops: pointers to buffers, and the values of the loops.

    `rows` are the buffers of values for each key, `stats` those of values for each query, `local`
    the block's other stack buffers. The loop of the keys is at the first of a block of keys.
    """

    outer: dict[SSAValue, Value]
    result: Value
    rows: tuple[Value, ...]
    stats: dict[SSAValue, Value]
    local: tuple[Value, ...]
    loops: dict[int, Index]

    @property
    def pointers(self) -> list[Value]:
        """All pointers, in the order in which `inside` takes them."""
        return [*self.outer.values(), self.result, *self.rows, *self.stats.values(), *self.local]

    def inside(self, b: Emitter) -> Frame:
        """The same inside a function that takes the pointers and loop values first."""
        given = iter(b.parameters)
        return Frame(
            {value: next(given) for value in self.outer},
            next(given),
            tuple(next(given) for _ in self.rows),
            {value: next(given) for value in self.stats},
            tuple(next(given) for _ in self.local),
            {k: next(given) for k in self.loops},
        )


class RowCode:
    """Emit the passes of one kernel; `found` may lack scopes that are handled elsewhere."""

    def __init__(self, op: KernelOp, found: Attention, lanes: int) -> None:
        self.found, self.lanes = found, lanes
        self.extents = found.extents
        self.key = found.loops
        self.plan = plan_rows(found)
        arguments = zip(op.body.block.args, op.inputs, strict=True)
        self.types: dict[SSAValue, Tensor] = {a: tensor_type(value) for a, value in arguments}
        placed = (*found.between, *found.behind)
        self.scopes: dict[SSAValue, ScopePlan] = {p.scope.result: self._scope(p) for p in placed}
        self.stats = [p.scope.result for p in found.between if not p.moves(self.key)]

    def _scope(self, placed: MappedScope) -> ScopePlan:
        """A scope's body in the common iterators; the passes do its reductions."""
        reads = tuple(
            NestOperand(
                r.source,
                tuple(normalise(e.substitute(placed.images), self.extents) for e in r.index),
                r.outside,
            )
            for r in placed.scope.reads()
        )
        return ScopePlan(placed.scope, (), (), reads, placed.here)

    def reserve(self, b: Emitter, keys: int, size: int) -> tuple[tuple[Value, ...], list[Value]]:
        """Reserve buffers for a block of keys and queries: of the rows, and of the stats."""
        rows = tuple(b.reserve(I8, keys * size * width) for width in self.plan.slots)
        return rows, [b.reserve(memory_type(element_of(v)), size) for v in self.stats]

    def block(self, frame: Frame) -> Value:
        """The rows that the second product reads."""
        return frame.rows[self.plan.slot[self.found.rows]]

    def clear(self, b: Emitter, frame: Frame, kind: Panel) -> None:
        """Start every reduction."""
        for placed in self.found.between:
            result = placed.scope.result
            if placed.reduces(self.key):
                start = identity(placed.scope.reduction.data, self._type(result))
                for v in range(kind.vectors):
                    self.keep(b, frame, result, v, start)

    def walk(self, b: Emitter, frame: Frame, kind: Panel, run: RowPass, keys: Index) -> None:
        """One pass over a block of keys."""
        sums: list[SSAValue] = [p.scope.result for p in run.steps if p.reduces(self.key)]
        known = [self._known(b, frame, run.steps, v) for v in range(kind.vectors)]
        names = [(s, v) for s in sums for v in range(kind.vectors)]
        starts = [self.stat(b, frame, s, v * self.lanes) for s, v in names]
        with b.fold(0, keys, starts, unroll=UNROLL) as loop:
            totals: Totals = dict(zip(names, loop.values, strict=True))
            for v in range(kind.vectors):
                rows = {x: self._row(b, frame, kind, x, v, loop.index) for x in run.loads}
                values = {**known[v], **rows}
                self._steps(b, frame, run, kind, (v, loop.index), values, totals)
            loop.next([totals[name] for name in names])
        for (value, v), total in zip(names, loop.results, strict=True):
            self.keep(b, frame, value, v, total)

    def on_scores(
        self, b: Emitter, frame: Frame, kind: Panel, key: Index, scores: Sequence[Value]
    ) -> None:
        """The first pass on a tile of scores: keys from `key` on, some vectors of each."""
        run = self.plan.passes[0]
        totals: Totals = {}
        for at, score in enumerate(scores):
            i, v = divmod(at, kind.vectors)
            position = (v, b.add(key, i))
            self._steps(b, frame, run, kind, position, {self.found.scores.result: score}, totals)
        for (value, v), total in totals.items():
            before = self.stat(b, frame, value, v * self.lanes)
            self.keep(b, frame, value, v, combine(b, self._reduction(value), before, total))

    def _steps(
        self,
        b: Emitter,
        frame: Frame,
        run: RowPass,
        kind: Panel,
        position: tuple[int, Index],
        values: dict[SSAValue, Value],
        totals: Totals,
    ) -> None:
        """A pass at one vector and key: new values, stored if needed again, and new totals."""
        v, key = position
        point = self._point(b, frame, kind, v, key)
        for placed in run.steps:
            result = placed.scope.result
            value = self.emit(b, frame, result, values, point)
            if not placed.reduces(self.key):
                values[result] = value
                continue
            before = totals.get((result, v))
            reduction = self._reduction(result)
            totals[result, v] = value if before is None else combine(b, reduction, before, value)
        for result in run.stores:
            value = to_memory(b, values[result], element_of(result))
            buffer = frame.rows[self.plan.slot[result]]
            b.store(value, buffer, self._offset(b, kind, v, key))

    def finish(self, b: Emitter, frame: Frame, kind: Panel, run: RowPass) -> None:
        """The values of each query that are complete after a pass."""
        for v in range(kind.vectors if run.after else 0):
            values = self._known(b, frame, run.after, v)
            point = self._point(b, frame, kind, v, 0)
            for placed in run.after:
                result = placed.scope.result
                values[result] = self.emit(b, frame, result, values, point)
                self.keep(b, frame, result, v, values[result])

    def emit(
        self,
        b: Emitter,
        frame: Frame,
        result: SSAValue,
        values: dict[SSAValue, Value],
        point: Point,
    ) -> Value:
        """A scope's body at a point, given `values` of other scopes."""
        buffers = Buffers(frame.outer, self.types, values=values)
        return emit_scope(b, self.scopes[result], buffers, point)

    def _point(self, b: Emitter, frame: Frame, kind: Panel, v: int, key: Index) -> Point:
        """Queries of vector `v` in the lanes, at one key of the block."""
        start, query = v * self.lanes, self.found.query
        valid = kind.channels - start
        here = {
            query: b.add(frame.loops[query], start),
            self.key: b.add(frame.loops[self.key], key),
        }
        mask = None if valid >= self.lanes else valid
        return Point(self.extents, {**frame.loops, **here}, Vector(query, self.lanes, mask))

    def _offset(self, b: Emitter, kind: Panel, v: int, key: Index) -> Index:
        return b.add(b.mul(key, kind.vectors * self.lanes), v * self.lanes)

    def _row(
        self, b: Emitter, frame: Frame, kind: Panel, value: SSAValue, v: int, key: Index
    ) -> Value:
        """A vector of queries of a value for each key."""
        dtype = memory_type(element_of(value)).vector(self.lanes)
        buffer = frame.rows[self.plan.slot[value]]
        loaded = b.load(dtype, buffer, self._offset(b, kind, v, key))
        return to_compute(b, loaded, element_of(value))

    def _type(self, value: SSAValue) -> Type:
        return compute_type(element_of(value)).vector(self.lanes)

    def _reduction(self, value: SSAValue) -> str:
        return self.scopes[value].reduction

    def _known(
        self, b: Emitter, frame: Frame, readers: Sequence[MappedScope], v: int
    ) -> dict[SSAValue, Value]:
        """Vectors of the finished values for each query that scopes read."""
        own = {p.scope.result for p in readers}
        read = dict.fromkeys(x for p in readers for x in p.scope.inputs if x not in own)
        return {x: self.stat(b, frame, x, v * self.lanes) for x in read if x in frame.stats}

    def stat(self, b: Emitter, frame: Frame, value: SSAValue, at: Index) -> Value:
        """A vector of a value for each query, from query `at` of the block on."""
        dtype = memory_type(element_of(value)).vector(self.lanes)
        return to_compute(b, b.load(dtype, frame.stats[value], at), element_of(value))

    def stat_of(self, b: Emitter, frame: Frame, value: SSAValue, at: Index) -> Value:
        """A value for each query, of one query."""
        loaded = b.load(memory_type(element_of(value)), frame.stats[value], at)
        return to_compute(b, loaded, element_of(value))

    def keep(self, b: Emitter, frame: Frame, result: SSAValue, v: int, value: Value) -> None:
        """Store a vector of a value for each query."""
        b.store(to_memory(b, value, element_of(result)), frame.stats[result], v * self.lanes)
