"""Algorithm 1 of ETO: build programs of a nest from the best known one of another.

Features of the known program bound those to try. A machine model picks the shapes for each of them;
what runs fastest is chosen by `measure`, in four rounds for each number of blocks: threads, slices
of the reduction, unroll limits, vector lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from .features import Range, block_counts, ranges, thread_counts
from .machine import Machine, memory_of
from .nest import Ints, OperatorNest
from .operands import operands
from .shapes import block_shape, near_slices, slices_within, thread_shape
from .tile_schedule import (
    TileSchedule,
    built,
    unroll_limits,
    unrolled_like,
    vector_lengths,
)

S = TypeVar("S")


@dataclass
class Trials(Generic[S]):
    """Measures schedules, each once, and remembers them in order.

    Attributes:
        measure: seconds of a schedule; infinity where it cannot be run.
    """

    measure: Callable[[S], float]
    seconds: dict[S, float] = field(default_factory=dict[S, float])

    def best(self, schedules: Iterable[S]) -> S | None:
        """The fastest, the first of equals; None if none can be run."""
        found: S | None = None
        least = math.inf
        for schedule in schedules:
            if schedule not in self.seconds:
                self.seconds[schedule] = self.measure(schedule)
            if self.seconds[schedule] < least:
                found, least = schedule, self.seconds[schedule]
        return found


@dataclass(frozen=True)
class Task:
    """Nest `a`, to be built from `known`, a program of nest `b`."""

    a: OperatorNest
    b: OperatorNest
    known: TileSchedule
    machine: Machine

    def block_counts(self) -> Ints:
        """Numbers of blocks to try."""
        return block_counts(self.a, self.b, self._ranges[0])

    def block(self, count: int) -> Ints:
        """The box of a block, of which there are so many."""
        found = block_shape(self.a, count, self.machine)
        assert found is not None, "the count divides the positions"
        return found

    @property
    def _ranges(self) -> tuple[Range, Range, Range]:
        return ranges(self.a, self.b, self.known.features(self.b))

    # --- the rounds ---

    def by_threads(self, block: Ints, count: int) -> Iterator[TileSchedule]:
        """Round 1: one for each number of threads, about as much memory a block as known."""
        memory = memory_of(self.b, self.known.block, self.known.slices)
        fetches, machine = near_slices(self.a, block, memory), self.machine
        for threads in thread_counts(block, count, self._ranges[1], machine.most_threads):
            thread = thread_shape(self.a, threads, block, fetches, machine)
            if thread is not None:
                yield self._like_known(built(self.a, block, thread, fetches))

    def by_slices(self, best: TileSchedule) -> Iterator[TileSchedule]:
        """Round 2: all other slices whose memory is in range."""
        thread = best.split, best.box
        for fetches in slices_within(self.a, best.block, self._ranges[2]):
            if fetches != best.fetches:
                yield self._like_known(built(self.a, best.block, thread, fetches))

    def by_unroll(self, best: TileSchedule) -> Iterator[TileSchedule]:
        """Round 3: limits that write out other loops."""
        done = best.unrolled()
        made = (replace(best, unroll=limit) for limit in unroll_limits(best))
        return (schedule for schedule in made if schedule.unrolled() != done)

    def by_vectors(self, best: TileSchedule, operand: int) -> Iterator[TileSchedule]:
        """Round 4, of one operand."""
        for n in vector_lengths(self.a, best, operand, self.machine):
            vectors = tuple(n if k == operand else old for k, old in enumerate(best.vectors))
            yield replace(best, vectors=vectors)

    def _like_known(self, schedule: TileSchedule) -> TileSchedule:
        return unrolled_like(self.a, schedule, self.known.registers(self.b))


def hierarchical_search(
    task: Task, measure: Callable[[TileSchedule], float]
) -> Trials[TileSchedule]:
    """Measure the programs of a task; the best of all is `trials.best(trials.seconds)`.

    Invalid candidates count as trials. A number of blocks without a valid one is skipped.
    """

    def checked(schedule: TileSchedule) -> float:
        return measure(schedule) if schedule.is_valid(task.a, task.machine) else math.inf

    trials = Trials(checked)
    for count in task.block_counts():
        best = trials.best(task.by_threads(task.block(count), count))
        if best is None:
            continue
        best = trials.best([best, *task.by_slices(best)]) or best
        best = trials.best([best, *task.by_unroll(best)]) or best
        for operand in range(len(operands(task.a))):
            best = trials.best([best, *task.by_vectors(best, operand)]) or best
    return trials
