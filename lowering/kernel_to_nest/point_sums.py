"""Points with summations: vectors, and neighbours in a stack, that share the loops over these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.nest import (
    ForOp,
)
from . import rewrites
from .guards import cut_inside, interior, regions
from .peeled import stage_rows
from .reductions import chain
from .windows import ask_for_rows, put_rows_outside, stage_window, window_of

# A window of this many taps or fewer is written out: addresses and bounds then fold.
UNROLLED = 9
# Partial results that a reduction keeps, for an addition to start in every cycle.
CHAINS = 8
# Bodies written out in a loop over a summation.
MAX_BODIES = 32


@dataclass(frozen=True)
class PointSums:
    """How the loop along the vectors of points is run.

    Attributes:
        width: lanes of a vector.
        stacked: whether the loop over lanes holds one over neighbours that are computed together.
        block: vectors that share the loops over long sums.
        staged: whether rows stay on the stack until they are whole.
        ahead: an iterator, and how far along it what is read is asked for.
        chains: totals of a reduction.
    """

    width: int
    stacked: bool = False
    block: int = 1
    staged: bool = False
    ahead: tuple[SSAValue, int] | None = None
    chains: int = CHAINS

    def run(self, lane: ForOp) -> None:
        """Schedule a loop along vectors, the only op of its block."""
        for region in regions(lane):
            if self.staged:
                stage_rows(region, self._stack_in(region), self.width)
            for row in interior(region):
                for part in cut_inside(row, self.width):
                    self.vectors(part)

    def _stack_in(self, loop: ForOp) -> ForOp | None:
        return rewrites.only_op(loop) if self.stacked else None

    def vectors(self, part: ForOp) -> None:
        """Cut a loop along the lanes into vectors, those that share loops in one body."""
        for loop in self._sums_in(part):
            put_rows_outside(loop, part.iterator)
        found = [window_of(loop, part.iterator) for loop in self._sums_in(part)]
        windows = [window for window in found if window is not None]
        beside = min((w.beside for w in windows), default=0)
        stack = self._stack_in(part)
        block = max(1, self.block // (1 if stack is None else stack.size))
        for vectors in (beside,) if beside else sorted({1, block}, reverse=True):
            step = vectors * self.width
            whole = part.size - part.size % step
            if not whole:
                continue
            main, *rest = rewrites.cut_at(part, [whole])
            self._together(rewrites.split(main, step)[1])
            if not rest:
                return
            (part,) = rest
        self._together(part)

    def _sums_in(self, part: ForOp) -> list[ForOp]:
        """The outermost loops over summations."""
        return inner_loops(self._stack_in(part) or part)

    def _together(self, run: ForOp) -> None:
        """Vectors, and points of a stack, in one body."""
        stack = self._stack_in(run)
        if stack is not None:
            rewrites.interchange(run)
        points = 1 if stack is None else stack.size
        count = points * -(-run.size // self.width)
        picked = [self._stage(loop, run, stack) for loop in self._sums_in(run)]
        pieces = cut_vectors(run, self.width)
        paths = [[loop_path(loop) for loop in inner_loops(lane)] for _, lane in pieces]
        deep = any(
            _serial(path)
            for found in paths
            for path, taps in zip(found, picked, strict=True)
            if not taps
        )
        if stack is not None:
            rewrites.mark(stack, "unrolled")
        for vector, lane in pieces:
            sink(lane)
            if vector is not None and deep:
                sink(vector)
        if stack is not None and deep:
            sink(stack)
        for found in paths:
            for path, taps in zip(found, picked, strict=True):
                self.reduce(path, count, written=taps)

    def _stage(self, loop: ForOp, run: ForOp, stack: ForOp | None) -> bool:
        """Reduce across a window before a loop over points, if a sum is of one; else False."""
        window = window_of(loop, run.iterator)
        if window is None:
            return False
        if self.ahead is not None:
            ask_for_rows(window, run, stack, self.width, self.ahead)
        for lane in stage_window(window, run, self.width):
            across = [loop_path(inner) for inner in inner_loops(lane)]
            sink(lane)
            for path in across:
                self.reduce(path, 1 if stack is None else stack.size, written=False)
        return True

    def reduce(self, path: list[ForOp], count: int, *, written: bool) -> None:
        """Loops over summations: the inner ones written out, several totals along the next."""
        outer = [] if written else _serial(path)
        inside = math.prod(loop.size for loop in path[len(outer) :])
        for loop in path[len(outer) :]:
            rewrites.mark(loop, "unrolled")
        if not outer:
            return
        deep = rewrites.mark(outer[-1], "serial", unroll=1)
        chains = min(self.chains // count, MAX_BODIES // inside, deep.size)
        if chains > 1:
            chain(_top(outer), deep, chains, self.width)


def cut_vectors(run: ForOp, width: int) -> list[tuple[ForOp | None, ForOp]]:
    """Whole vectors and the rest: (the loop over vectors, the one over lanes)."""
    found: list[tuple[ForOp | None, ForOp]] = []
    for part in rewrites.cut_at(run, [run.size - run.size % width]):
        if part.size < width:
            found.append((None, rewrites.mark(part, "vector", width)))
        else:
            vector, lane = rewrites.split(part, width)
            rewrites.mark(vector, "unrolled")
            found.append((vector, rewrites.mark(lane, "vector", width)))
    return found


def sink(loop: ForOp) -> None:
    """Move a loop into all serial loops below it."""
    for part in rewrites.sink(loop):
        if any(isinstance(op, ForOp) and op.kind.data == "serial" for op in part.block.ops):
            sink(part)


def inner_loops(loop: ForOp) -> list[ForOp]:
    """The loops that stand in a loop."""
    return [op for op in loop.block.ops if isinstance(op, ForOp)]


def loop_path(loop: ForOp) -> list[ForOp]:
    """A loop and the loops in it, of which each holds one at most."""
    inner = inner_loops(loop)
    return [loop, *(loop_path(inner[0]) if inner else [])]


def _top(path: Sequence[ForOp]) -> ForOp:
    """The outermost of a path's loops that take values into the same total as the last one."""
    top = path[-1]
    for loop in reversed(path[:-1]):
        if rewrites.only_op(loop) is not top:
            break
        top = loop
    return top


def _serial(path: Sequence[ForOp]) -> list[ForOp]:
    """The loops that are not written out: what is left inside is short."""
    for n in range(len(path) + 1):
        if math.prod(loop.size for loop in path[n:]) <= UNROLLED:
            return list(path[:n])
    return list(path)
