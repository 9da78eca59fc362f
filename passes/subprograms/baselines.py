"""The baseline times of subprograms, and lower bounds for programs derived from them.

Each is compiled alone and measured once. The result is stored on disk for later searches, so
that none measures again what already runs at the machine's peak.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import cached_property

from xdsl.dialects.builtin import f32

from ...dialects.canonical_types import Read, leaf
from ...dialects.index import iterators
from ...dialects.program import Program
from ...dialects.weights_only import weights_only
from ..copies.algebra_gather_sums import added_contractions
from ..cost.costs import EFFICIENCY, Costs
from ..derivation.apply_steps import find_scope
from ..derivation.body import build
from ..derivation.isolate import isolate_all
from ..derivation.lift import program_of_scope
from ..margins import MEASURE
from .decisions import Decision, DecisionRecord
from .find import Key, Subprogram, weight
from .prices import Prices

# Side of the product whose rate measures this machine.
SIDE = 384


class Baselines:
    """Baseline seconds of the subprograms of one program."""

    def __init__(self, work: Program, prices: Prices, record: DecisionRecord) -> None:
        self.work, self.prices, self.record = work, prices, record
        self._singles: dict[Key, Decision] = {}

    def seconds(self, sub: Subprogram) -> float:
        """The baseline of one: measured now or earlier, or modelled if nothing is measured."""
        if self.prices.measure is None:
            return weight(sub) / len(sub.occurrences)
        if sub.key not in self._singles:
            self._singles[sub.key] = self._remembered(_scopes_key(sub), sub)
        return self._singles[sub.key].before

    def known(self, sub: Subprogram) -> float:
        """As `seconds`, but modelled if it was not measured before."""
        found = self._singles.get(sub.key)
        return weight(sub) / len(sub.occurrences) if found is None else found.before

    def total(self, subs: Sequence[Subprogram]) -> float:
        """Total seconds; subprograms without a price are left out."""
        return sum(self.known(s) * len(s.occurrences) for s in subs if math.isfinite(s.native))

    def spent(self, sub: Subprogram) -> float:
        """Seconds spent on compiling and measuring one."""
        found = self._singles.get(sub.key)
        return 0.0 if found is None else found.spent

    def least_seconds(self, operations: float) -> float:
        """The time of this many operations at the machine's peak."""
        return operations / self._peak if operations else 0.0

    def _remembered(self, key: Sequence[str], sub: Subprogram | None) -> Decision:
        assert self.prices.measure is not None
        key = ("baseline", self.prices.costs.target.name, *key)  # independent of the model's prices
        found = self.record.load(key)
        if found is None:
            started = time.perf_counter()
            program = square() if sub is None else self.program(sub)
            (seconds,) = self.prices.measure([program], MEASURE.baseline_seconds)
            spent = time.perf_counter() - started
            found = Decision(None, 0.0, seconds, seconds, "measured", "finished", spent=spent)
            self.record.save(key, found)
        return found

    def program(self, sub: Subprogram) -> Program:
        """A subprogram as a program of its own."""
        ops = [find_scope(self.work.module, name) for name in sub.occurrences[0]]
        ops, chained = ops[: len(sub.roots)], ops[len(sub.roots) :]
        inside = dict.fromkeys([*(part for op in ops for part in added_contractions(op)), *chained])
        known = weights_only(self.work.main.body.block.ops)
        return isolate_all(ops, known, inside=tuple(inside))[0]

    @cached_property
    def _peak(self) -> float:
        """The target's peak, or a higher one that a matrix product reaches on this machine."""
        rate = self.prices.costs.target.rate("f32")
        if self.prices.measure is None:
            return rate
        seconds = self._remembered(("square", str(SIDE)), None).before
        return max(rate, 2.0 * SIDE**3 / seconds / EFFICIENCY["gemm"])


def subprogram_key(sub: Subprogram, costs: Costs) -> tuple[str, ...]:
    """The key of a subprogram's decisions on a target, with the question asked."""
    return (*_scopes_key(sub), *costs.key)


def _scopes_key(sub: Subprogram) -> tuple[str, ...]:
    return "+".join(root.token for root in sub.roots), *sub.known


def square() -> Program:
    """A matrix product of a size that suits registers and caches."""
    a, b = leaf("A", (SIDE, SIDE), f32, label="a"), leaf("B", (SIDE, SIDE), f32, label="b")
    m, n, k = iterators(3)
    factors = Read(a, (m, k)), Read(b, (k, n))
    return Program(program_of_scope(build((SIDE, SIDE), (SIDE,), factors, f32)))
