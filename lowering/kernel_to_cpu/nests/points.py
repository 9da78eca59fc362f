"""Loop nests whose scopes share all loops: one in the lanes, intermediates in registers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.ir import SSAValue

from ....dialects.index import Index as Affine
from ....dialects.kernel import KernelOp
from ....dialects.types import byte_size, tensor_type
from ..emit.access import Access, Point, Vector, store
from ..emit.emitter import Emitter
from ..emit.types import I64, Index, Value
from ..isa import Isa
from .lanes import SLICES, power_of_two, result_access, result_address, split_item
from .nest import Buffers, NestPlan, ScopePlan, interior_at, lanes_inside
from .nontemporal import is_peeled, streamed
from .reduction import UNROLLED, any_nan, emit_scopes, is_far, start_checks
from .row_staging import StagedRows, can_be_staged
from .windows import window_of

Target: TypeAlias = Access | StagedRows

# Vectors of one long loop that make up a slice.
TILE_VECTORS = 16
# Points with overlapping windows that are computed together.
STACK = 4


@dataclass
class Points:
    """All loops shared; `vector` in the lanes, the rest as loops, outermost ones in parallel."""

    op: KernelOp
    plan: NestPlan
    vector: int
    isa: Isa
    lanes: int

    def __post_init__(self) -> None:
        out = result_address(self.op, self.plan)
        others = [
            k for k in range(self.plan.shared) if k != self.vector and self.plan.extents[k] != 1
        ]
        self.order = sorted(others, key=lambda k: -out.coefficient(k))
        self.extent = self.plan.extents[self.vector]
        self.width = power_of_two(self.extent, self.lanes)
        # Vectors whose reductions share their loops: so many chains, so many bytes at each step.
        self.block = self.isa.registers // 2 if _has_long_sums(self.plan) else 1
        self.parallel: list[int] = []
        count = 1
        for k in self.order:
            if count >= SLICES:
                break
            self.parallel.append(k)
            count *= self.plan.extents[k]
        self._plan_stacks()
        count = math.prod(self._groups()[k] for k in self.parallel)
        self.tile = self.extent
        if count < SLICES and self.extent > self.width * TILE_VECTORS:
            share = -(-self.extent * count // SLICES)
            step = self.width * self.block  # what is left of a tile goes vector by vector
            self.tile = max(TILE_VECTORS * self.width, -(-share // step) * step)
        self.tiles = -(-self.extent // self.tile)
        self.streamed = streamed(self.op.type, out, self.vector)
        self.staged = self._is_staged(out)
        self.items = count * self.tiles

    def _is_staged(self, out: Affine) -> bool:
        """Whether rows of totals stay on the stack until they are whole.

        Measured: of a pool with strides, where little is stored, it gains nothing.
        """
        if self.tiles > 1 or not any(scope.sums for scope in self.plan.scopes):
            return False
        if 2 * byte_size(self.op.type) < sum(byte_size(tensor_type(v)) for v in self.op.inputs):
            return False
        target = Access(None, self.op.type.element_type, out)
        return is_peeled(self.op.type, out, self.vector, self.extent, self.width) and can_be_staged(
            self.isa, target, self.extent, self.stack
        )

    def _plan_stacks(self) -> None:
        """Stack points whose windows overlap along one of the innermost loops: they share much.

        Where no window lies along the lanes, that is the outer one of two: a row of such windows
        is longer than the first-level cache holds of several, and is then read less often.
        """
        inner = [k for k in self.order[-2:] if k == self.order[-1] or k in self.parallel]
        if _overlapping(self.plan, self.vector):
            inner = inner[-1:]
        self.along = next((k for k in inner if _overlapping(self.plan, k)), -1)
        shared = _overlapping(self.plan, self.along)
        alone = self.block == 1 or _overlapping(self.plan, self.vector)
        self.stack = STACK if shared and alone else 1
        if self.stack == 1:
            self.along = -1
        else:
            self.plan = replace(self.plan, scopes=[_first(s, shared) for s in self.plan.scopes])

    def _groups(self) -> tuple[int, ...]:
        """Extents, the stacked loop's in stacks if it is parallel."""
        extents = list(self.plan.extents)
        if self.along in self.parallel:
            extents[self.along] = -(-extents[self.along] // self.stack)
        return tuple(extents)

    def emit(self, b: Emitter, buffers: Buffers, result: Value, low: Index, high: Index) -> None:
        if self.order and self._is_far(buffers):
            buffers = replace(buffers, ahead=(self.order[-1], self.stack))
        target: Target = result_access(self.op, self.plan, result)
        if self.staged:
            row = self.vector, self.extent
            target = StagedRows.reserve(b, self.isa, target, row, self.stack)
        with b.loop(low, high) as item:
            rest, tile = b.split(item, self.tiles)
            values = split_item(b, rest, self.parallel, self._groups())
            point = Point(self.plan.extents, values)
            inner = [k for k in self.order if k not in self.parallel]
            self._loops(b, buffers, target, point, inner, tile)

    def _group(
        self, b: Emitter, buffers: Buffers, target: Target, point: Point, tile: Index
    ) -> None:
        """The stack whose number the stacked loop's iterator holds; the last may be shorter."""
        iterator = self.along
        group, extent = point.values[iterator], self.plan.extents[iterator]
        whole, rest = divmod(extent, self.stack)
        start = b.mul(group, self.stack)

        def stacked(count: int) -> list[Value]:
            at = [point.at({iterator: b.add(start, k)}) for k in range(count)]
            self._tile(b, buffers, target, at, tile)
            return []

        if whole and rest:
            inside = b.compare("lt", b.value(group, I64), whole)
            b.if_else(inside, lambda: stacked(self.stack), lambda: stacked(rest))
        else:
            stacked(rest or self.stack)

    def _loops(
        self,
        b: Emitter,
        buffers: Buffers,
        target: Target,
        point: Point,
        inner: list[int],
        tile: Index,
    ) -> None:
        if not inner and self.along in self.parallel:
            self._group(b, buffers, target, point, tile)
            return
        if not inner:
            self._tile(b, buffers, target, [point], tile)
            return
        iterator, *rest = inner
        extent, start = self.plan.extents[iterator], 0
        for count in sorted({1, self.stack}, reverse=True) if iterator == self.along else (1,):
            stop = start + (extent - start) // count * count
            if start == stop:
                continue
            with b.loop(start, stop, count) as index:
                at = [point.at({iterator: b.add(index, k)}) for k in range(count)]
                if rest or self.along in self.parallel:
                    self._loops(b, buffers, target, at[0], rest, tile)
                else:
                    self._tile(b, buffers, target, at, tile)
            start = stop

    def _tile(
        self, b: Emitter, buffers: Buffers, target: Target, points: Sequence[Point], tile: Index
    ) -> None:
        """One tile of the vector loop, or all of it, at neighbouring points."""
        if self.tiles == 1:
            self._guarded(b, buffers, target, points)
            return
        full = self.extent // self.tile
        start = b.mul(tile, self.tile)
        last = b.compare("ge", b.value(tile, I64), full)
        rest = self.extent - full * self.tile

        def whole() -> Sequence[Value]:
            self._range(b, buffers, target, points, start, self.tile)
            return []

        def partial() -> Sequence[Value]:
            self._range(b, buffers, target, points, full * self.tile, rest)
            return []

        if rest:
            b.if_else(last, partial, whole)
        else:
            whole()

    def _guarded(
        self, b: Emitter, buffers: Buffers, target: Target, points: Sequence[Point]
    ) -> None:
        """The whole vector loop, twice where there are bounds to check: inside, none is checked."""
        inside: Value | None = None
        for point in points:
            here = interior_at(b, self.plan, buffers, point, self.vector)
            if here is None:
                self._range(b, buffers, target, points, 0, self.extent)
                return
            inside = here if inside is None else b.logic("and", inside, here)
        assert inside is not None
        unchecked = replace(buffers, lanes=self.vector, interior=True)

        def emit(which: Buffers) -> list[Value]:
            self._range(b, which, target, points, 0, self.extent)
            return []

        b.if_else(inside, lambda: emit(unchecked), lambda: emit(buffers))

    def _range(
        self,
        b: Emitter,
        buffers: Buffers,
        target: Target,
        points: Sequence[Point],
        start: Index,
        count: int,
    ) -> None:
        """The vector loop over `count` elements from `start`; exactly if a maximum may lose NaN.

        Tests between the vectors would keep the processor from reading far ahead.
        """
        inside = replace(buffers, lanes=self.vector, inside=True)
        at = points[0].at({self.vector: start}, Vector(self.vector, self.width, aligned=True))
        checks = start_checks(self.plan.scopes, inside, at)
        checks = self._pass(b, replace(buffers, checks=checks), target, points, start, count)
        exact = replace(buffers, optimistic=False)
        for check in checks.values():
            with b.when(any_nan(b, check)):
                self._pass(b, exact, target, points, start, count)
        if isinstance(target, StagedRows):
            target.store(b, points)

    def _pass(
        self,
        b: Emitter,
        buffers: Buffers,
        target: Target,
        points: Sequence[Point],
        start: Index,
        count: int,
    ) -> dict[SSAValue, Value]:
        """The vector loop once, with a masked end; the sums to check after it."""
        low, high = self._inside(buffers) if count == self.extent else (0, 0)
        inside = replace(buffers, lanes=self.vector, inside=True)
        for here, done, stop in ((buffers, 0, low), (inside, low, high), (buffers, high, count)):
            now = replace(here, checks=buffers.checks)
            buffers = replace(
                buffers, checks=self._vectors(b, now, target, points, start, (done, stop))
            )
        return buffers.checks

    def _inside(self, buffers: Buffers) -> tuple[int, int]:
        """The vectors all lanes of which are inside bounds that lanes decide."""
        low, high = lanes_inside(self.plan, buffers, self.vector)
        low, high = -(-low // self.width) * self.width, high // self.width * self.width
        return (low, high) if low < high else (0, 0)

    def _vectors(
        self,
        b: Emitter,
        buffers: Buffers,
        target: Target,
        points: Sequence[Point],
        start: Index,
        bounds: tuple[int, int],
    ) -> dict[SSAValue, Value]:
        """Vectors between places counted from `start`, the last one masked; the sums to check."""
        checks = buffers.checks
        done, end = bounds
        windows = self._beside(buffers, points[0])
        block = max(1, self.block // len(points))
        for vectors in (windows,) if windows else sorted({1, block}, reverse=True):
            step = vectors * self.width
            stop = done + (end - done) // step * step
            if done == stop:
                continue
            # The rows of a long sum are read block by block: each block is a leap to all of them.
            leaps = self.block > 1 and vectors > 1 and stop - done > step
            ahead = (self.vector, step) if leaps and self._is_far(buffers) else buffers.ahead
            with b.fold(done, stop, list(checks.values()), step) as loop:
                checked = dict(zip(checks, loop.values, strict=True))
                here = replace(buffers, checks=checked, ahead=ahead)
                self._points(b, here, target, points, b.add(start, loop.index), step)
                loop.next(list(here.checks.values()))
            checks = dict(zip(checks, loop.results, strict=True))
            done = stop
        if done < end:
            last = replace(buffers, checks=dict(checks))
            self._points(b, last, target, points, b.add(start, done), end - done)
            checks = last.checks
        return checks

    def _is_far(self, buffers: Buffers) -> bool:
        return any(is_far(scope, buffers) for scope in self.plan.scopes)

    def _beside(self, buffers: Buffers, point: Point) -> int:
        """The vectors to compute together where windows lie along the lanes; 0 where none does."""
        at = point.at({self.vector: 0}, Vector(self.vector, self.width))
        found = (window_of(scope, buffers, at) for scope in self.plan.scopes)
        return min((window.beside for window in found if window is not None), default=0)

    def _points(
        self,
        b: Emitter,
        buffers: Buffers,
        target: Target,
        points: Sequence[Point],
        first: Index,
        count: int,
    ) -> None:
        """`count` elements from `first` on of each point, in vectors side by side."""
        at: list[Point] = []
        for point in points:
            for k in range(0, count, self.width):
                mask = count - k if k + self.width > count else None
                vector = Vector(self.vector, self.width, mask, aligned=True)
                at.append(point.at({self.vector: b.add(first, k)}, vector))
        beside = len(at) // len(points)
        values = self._values(b, buffers, at, beside)
        for k, (value, point) in enumerate(zip(values, at, strict=True)):
            if isinstance(target, StagedRows):
                store(b, value, target.row(k // beside), point)
            else:
                store(b, value, target, point, nontemporal=self.streamed)

    def _values(
        self, b: Emitter, buffers: Buffers, points: Sequence[Point], beside: int = 1
    ) -> list[Value]:
        """The result at points that share what they have in common, each `beside` side by side."""
        places = [(replace(buffers, values={}), point) for point in points]
        for scope in self.plan.scopes:
            made = emit_scopes(b, scope, places, beside)
            for (here, _), value in zip(places, made, strict=True):
                here.values[scope.op.result] = value
        return [here.values[self.plan.root.op.result] for here, _ in places]


def _has_long_sums(plan: NestPlan) -> bool:
    """Whether a summation is a loop, not written out."""
    return any(math.prod(plan.extents[k] for k in scope.sums) > UNROLLED for scope in plan.scopes)


def _overlapping(plan: NestPlan, iterator: int) -> dict[int, None]:
    """Summations over windows that neighbours along an iterator have parts of in common."""
    found: dict[int, None] = {}
    for scope in plan.scopes:
        for operand in scope.reads:
            for e in operand.index:
                step = e.coefficient(iterator)
                for k in scope.sums if step else ():
                    tap = e.coefficient(k)
                    if tap and step % tap == 0 and 0 < step // tap < plan.extents[k]:
                        found[k] = None
    return found


def _first(scope: ScopePlan, wanted: Mapping[int, None]) -> ScopePlan:
    """The scope with these summations outermost."""
    return replace(scope, sums=tuple(sorted(scope.sums, key=lambda k: k not in wanted)))
