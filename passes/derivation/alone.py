"""What subprograms take as they stand, and what is derived from them at least.

Each is compiled alone and measured once: what that gave is remembered on disk, for this search and
the next (passes/partial), so that none looks twice at what runs at the machine's peak already.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property

from xdsl.dialects.builtin import f32

from ...dialects.canonical_types import Read, Scope, leaf
from ...dialects.index import iterators
from ...dialects.program import Program
from ...dialects.weights_only import weights_only
from ..cost import EFFICIENCY, Costs
from .body import build
from .by_hand import find_scope
from .isolate import isolate_all
from .lift import program_of_scope
from .remembered import Decision, Remembered
from .subprograms import Subprogram, weight

Measure = Callable[[Sequence[Program], float], "list[float]"]

# Seconds of runs of one program alone.
SECONDS = 0.1
# Side of the product whose rate says what this machine does.
SIDE = 384


class Alone:
    """Seconds of the subprograms of one program.

    Args:
        measure: median seconds of programs, run in turn; None where the target does not run here.
    """

    def __init__(
        self, work: Program, costs: Costs, measure: Measure | None, remembered: Remembered
    ) -> None:
        self.work, self.costs, self.measure = work, costs, measure
        self.remembered = remembered
        self._singles: dict[tuple[tuple[Scope, ...], tuple[str, ...]], Decision] = {}

    def seconds(self, sub: Subprogram) -> float:
        """What one takes: as measured, now or before; as modelled where nothing is measured."""
        if self.measure is None:
            return weight(sub) / len(sub.places)
        key = sub.roots, sub.known
        if key not in self._singles:
            self._singles[key] = self._remembered(subprogram_key(sub, self.costs), sub)
        return self._singles[key].before

    def known(self, sub: Subprogram) -> float:
        """As `seconds`, but as modelled where it was not asked for before."""
        found = self._singles.get((sub.roots, sub.known))
        return weight(sub) / len(sub.places) if found is None else found.before

    def spent(self, sub: Subprogram) -> float:
        """Seconds that it took to compile and measure one."""
        found = self._singles.get((sub.roots, sub.known))
        return 0.0 if found is None else found.spent

    def least_seconds(self, operations: float) -> float:
        """What so many operations take at the machine's peak."""
        return operations / self._peak if operations else 0.0

    def _remembered(self, key: Sequence[str], sub: Subprogram | None) -> Decision:
        assert self.measure is not None
        key = ("alone", *key)
        found = self.remembered.load(key)
        if found is None:
            started = time.perf_counter()
            (seconds,) = self.measure([square() if sub is None else self._program(sub)], SECONDS)
            spent = time.perf_counter() - started
            found = Decision(None, 0.0, seconds, seconds, "alone", "finished", 0, 1, spent)
            self.remembered.save(key, found)
        return found

    def _program(self, sub: Subprogram) -> Program:
        ops = [find_scope(self.work.module, name) for name in sub.places[0]]
        return isolate_all(ops, weights_only(self.work.main.body.block.ops))[0]

    @cached_property
    def _peak(self) -> float:
        """The target's peak; more where a matrix product shows that this machine has more."""
        rate = self.costs.target.rate("f32")
        if self.measure is None:
            return rate
        seconds = self._remembered(("square", str(SIDE)), None).before
        return max(rate, 2.0 * SIDE**3 / seconds / EFFICIENCY["gemm"])


def subprogram_key(sub: Subprogram, costs: Costs) -> tuple[str, ...]:
    """What is remembered of a subprogram on a target stands under this, and what was asked."""
    roots = "+".join(root.token for root in sub.roots)
    return (roots, *sub.known, *costs.key)


def square() -> Program:
    """A matrix product of a size that registers and caches suit."""
    a, b = leaf("A", (SIDE, SIDE), f32, label="a"), leaf("B", (SIDE, SIDE), f32, label="b")
    m, n, k = iterators(3)
    factors = Read(a, (m, k)), Read(b, (k, n))
    return Program(program_of_scope(build((SIDE, SIDE), (SIDE,), factors, f32)))
