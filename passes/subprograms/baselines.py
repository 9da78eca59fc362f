"""The baseline times of subprograms, and lower bounds for programs derived from them.

Each subprogram is compiled alone and measured once; the seconds are stored on disk for later
searches, which need not measure again what already runs at the machine's peak.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
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
        self._decisions: dict[Key, Decision] = {}

    def seconds(self, sub: Subprogram) -> float:
        """Return a subprogram's seconds, measured now or earlier; modelled without measuring."""
        if self.prices.measure is None:
            return weight(sub) / len(sub.occurrences)
        if sub.key not in self._decisions:
            self._decisions[sub.key] = self._measured(_scopes_key(sub), lambda: self.program(sub))
        return self._decisions[sub.key].before

    def known_seconds(self, sub: Subprogram) -> float:
        """Return a subprogram's seconds: measured if they were measured before, else modelled."""
        decision = self._decisions.get(sub.key)
        return weight(sub) / len(sub.occurrences) if decision is None else decision.before

    def total(self, subs: Sequence[Subprogram]) -> float:
        """Return the seconds of all occurrences; subprograms without a price are left out."""
        return sum(
            self.known_seconds(s) * len(s.occurrences) for s in subs if math.isfinite(s.native)
        )

    def spent(self, sub: Subprogram) -> float:
        """Return the seconds spent on compiling and measuring a subprogram."""
        decision = self._decisions.get(sub.key)
        return 0.0 if decision is None else decision.spent

    def least_seconds(self, operations: float) -> float:
        """Return the seconds of this many operations at the machine's peak."""
        return operations / self._peak if operations else 0.0

    def _measured(self, key: Sequence[str], build: Callable[[], Program]) -> Decision:
        """Measure a program, or load what an earlier search measured under this key."""
        assert self.prices.measure is not None
        key = ("baseline", self.prices.costs.target.name, *key)  # independent of the model's prices
        decision = self.record.load(key)
        if decision is None:
            started = time.perf_counter()
            (seconds,) = self.prices.measure([build()], MEASURE.baseline_seconds)
            spent = time.perf_counter() - started
            decision = Decision(None, 0.0, seconds, seconds, "measured", "finished", spent=spent)
            self.record.save(key, decision)
        return decision

    def program(self, sub: Subprogram) -> Program:
        """Return a subprogram as a program of its own."""
        ops = [find_scope(self.work.module, name) for name in sub.occurrences[0]]
        ops, chained = ops[: len(sub.roots)], ops[len(sub.roots) :]
        inside = dict.fromkeys([*(part for op in ops for part in added_contractions(op)), *chained])
        weights = weights_only(self.work.main.body.block.ops)
        return isolate_all(ops, weights, inside=tuple(inside))[0]

    @cached_property
    def _peak(self) -> float:
        """Operations per second: the target's peak, or a higher rate of a matrix product here."""
        rate = self.prices.costs.target.rate("f32")
        if self.prices.measure is None:
            return rate
        seconds = self._measured(("square", str(SIDE)), square_product).before
        return max(rate, 2.0 * SIDE**3 / seconds / EFFICIENCY["gemm"])


def subprogram_key(sub: Subprogram, costs: Costs) -> tuple[str, ...]:
    """Return the key of the decisions about a subprogram on a target."""
    return (*_scopes_key(sub), *costs.key)


def _scopes_key(sub: Subprogram) -> tuple[str, ...]:
    return "+".join(root.token for root in sub.roots), *sub.known


def square_product() -> Program:
    """Return the product of two square matrices, of a size that suits registers and caches."""
    a, b = leaf("A", (SIDE, SIDE), f32, label="a"), leaf("B", (SIDE, SIDE), f32, label="b")
    m, n, k = iterators(3)
    factors = Read(a, (m, k)), Read(b, (k, n))
    return Program(program_of_scope(build((SIDE, SIDE), (SIDE,), factors, f32)))
