"""Search programs that compute several contractions as one: each alone, then the forms that meet.

Breadth first over all of them would multiply their states. Whether two merge depends on the two
contractions alone, so each root is derived by itself, and of the states that hold a contraction the
one whose other scopes take the least time stands for it. Then contractions are merged, root after
root. A pair of forms is left out where the other scopes of both and the fewest operations of the
product at the machine's peak take longer than the best programs so far: merging leaves those scopes
and those operations.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...dialects.canonical_types import Scope
from ..work_clock import charge, now
from .bound import least_of_scope
from .replace import Roots, scopes_of
from .rules import RULES
from .search import (
    SECONDS_A_STATE,
    DerivationResult,
    DerivationState,
    FoundProgram,
    RuleApplication,
    Searcher,
    Stop,
    innermost,
    uses_after,
)

# Rules on the path of each root before it is merged.
ALONE = 2
# How many merged programs of the first roots are merged with a form of the next one, and how much
# more than the cheapest they may take: measured, the order may be another.
BEAM = 4
SPREAD = 1.25
# Pairs of forms that are tried, those likely to be fast first.
TRIES = 2000


@dataclass(frozen=True)
class _Form:
    """A program of some roots, and one of its contractions, which is to be merged.

    Attributes:
        others: seconds of its other scopes.
        seconds: of all its scopes.
        product: seconds of the contraction in the layout that suits it.
        operations: the fewest that compute the contraction.
    """

    state: DerivationState
    contraction: Scope
    others: float
    seconds: float
    product: float
    operations: float


def search_together(searcher: Searcher, roots: Sequence[Scope]) -> DerivationResult:
    """Derive programs that compute a contraction of each root as one product.

    `best` of the result are such programs, the cheapest first; there may be none. Roots that eager
    rules change are searched breadth first.
    """
    if any(searcher.normalised((root,))[0] != (root,) for root in roots):
        return searcher.search(roots)
    return _Meeting(searcher, tuple(roots)).run()


class _Meeting:
    """One search."""

    def __init__(self, searcher: Searcher, roots: Roots):
        self.searcher, self.prices, self.roots = searcher, searcher.prices, roots
        self.started = now(time.process_time)
        count = searcher.settings.states // len(roots)
        depth = min(ALONE, searcher.settings.depth)
        self.alone = Searcher(self.prices, replace(searcher.settings, depth=depth, states=count))
        self.states: list[DerivationState] = []
        self.generated = 0
        self.stop = Stop.EXHAUSTED

    def run(self) -> DerivationResult:
        """Derive each root alone, then merge one after the other."""
        first = DerivationState(self.roots)
        root = FoundProgram(first, self.prices.program(self.roots))
        forms = [self._forms(number) for number in range(len(self.roots))]
        counts = [len(self.states)]
        made = [replace(form, state=self._grafted(first, form, 0)) for form in forms[0]]
        for number in range(1, len(self.roots)):
            made = self._merged(made, forms[number], number)
            counts.append(len(self.states) - sum(counts))
        best = [FoundProgram(form.state, self.prices.program(form.state.roots)) for form in made]
        best.sort(key=lambda found: (found.priced.seconds, found.state.depth))
        seconds = now(time.process_time) - self.started
        return DerivationResult(root, best, self.states, self.generated, counts, seconds, self.stop)

    # --- one root ---

    def _forms(self, number: int) -> list[_Form]:
        """The contractions that a root's programs leave, each with the cheapest other scopes."""
        result = self.alone.search((self.roots[number],))
        self.generated += result.generated
        self.states += result.states
        if result.stop in (Stop.STATES, Stop.TIME):
            self.stop = result.stop
        found: dict[Scope, _Form] = {}
        for state in result.states:
            for contraction in innermost(state.roots):
                form = self._form(state, contraction)
                known = found.get(contraction)
                if known is None or form.others < known.others:
                    found[contraction] = form
        return list(found.values())

    def _form(self, state: DerivationState, contraction: Scope) -> _Form:
        roots = state.roots
        priced = [s for s in scopes_of(roots) if not self.prices.constant(s)]
        apart = sum(
            self.prices.scope(s, fixed=s in roots)[0] for s in priced if s is not contraction
        )
        own = self.prices.scope(contraction, fixed=contraction in roots)[0]
        product = self.prices.scope(contraction)[0]
        return _Form(state, contraction, apart, apart + own, product, least_of_scope(contraction))

    # --- two and more ---

    def _merged(self, made: Sequence[_Form], forms: Sequence[_Form], number: int) -> list[_Form]:
        """The cheapest programs in which the first roots and the next one are one product."""
        best: list[_Form] = []
        apart = sum(min((f.seconds for f in one), default=math.inf) for one in (made, forms))
        pairs, tries = list(itertools.product(made, forms)), 0
        for a, b in sorted(pairs, key=lambda pair: _about(*pair)):
            most = SPREAD * min([apart, *(form.seconds for form in best)])
            if len(best) == BEAM:
                most = min(most, best[-1].seconds)
            if self._least(a, b) >= most:
                continue
            if not self.searcher.may_merge(a.contraction, b.contraction):
                continue
            if tries == TRIES:
                self.stop = Stop.STATES
                break
            tries += 1
            charge(SECONDS_A_STATE)
            if now(time.process_time) - self.started > self.searcher.settings.budget:
                self.stop = Stop.TIME
                break
            best = sorted([*best, *self._joined(a, b, number)], key=lambda f: f.seconds)[:BEAM]
        return best

    def _least(self, a: _Form, b: _Form) -> float:
        """A bound for the seconds of two forms whose contractions have become one.

        The other scopes stay, and the product has the rows of both: it takes the operations and the
        results of both at the machine's peaks, and half of what either takes alone. Half: where
        more rows begin a second tile, the model charges for tiles that are half as full.
        """
        costs = self.prices.costs
        target, scale = costs.target, min([1.0, *costs.file.class_scale.values()])
        written = self.prices.bytes_of(a.contraction) + self.prices.bytes_of(b.contraction)
        arithmetic = (a.operations + b.operations) / target.rate("f32")
        moving = written / max(target.cache_bandwidth, target.bandwidth)
        half = (max(a.product, b.product) - scale * target.launch) / 2
        return (
            a.others
            + b.others
            + scale * target.launch
            + max(scale * arithmetic, scale * moving, half)
        )

    def _joined(self, a: _Form, b: _Form, number: int) -> list[_Form]:
        """The programs in which the contractions of two forms are one."""
        mergers = self.searcher.mergers(a.contraction, b.contraction)
        state = self._grafted(a.state, b, number) if mergers else None
        if state is None:
            return []
        found: list[_Form] = []
        for made in mergers:
            roots = self.searcher.replacer.replace(state.roots, a.contraction, made.first)
            roots = self.searcher.replacer.replace(roots, b.contraction, made.second)
            roots, eager = self.searcher.normalised(roots)
            merger = RuleApplication(a.contraction, made.first, (b.contraction, made.second))
            new = DerivationState(roots, state.depth + 1, state, (merger, *eager), state.used)
            self.generated += 1
            charge(SECONDS_A_STATE)
            self.states.append(new)
            left = set(innermost(state.roots))
            merged = [s for s in innermost(roots) if s not in left]
            found += [self._form(new, s) for s in merged[:1]]
        return [form for form in found if math.isfinite(form.seconds)]

    def _grafted(self, state: DerivationState, form: _Form, number: int) -> DerivationState | None:
        """The path of a root's form, continued from a state of all roots; None if it is lost."""
        rules = {rule.name: rule for rule in RULES}
        for one in form.state.path()[1:]:
            roots = state.roots
            for applied in one.applied:
                roots = self.searcher.replacer.replace(roots, applied.old, applied.step)
            if roots[number] is not one.roots[0]:
                return None
            used = uses_after(state, rules.get(one.applied[0].step.rule), one.applied)
            state = DerivationState(roots, state.depth + 1, state, one.applied, used)
        return state


def _about(a: _Form, b: _Form) -> float:
    """The seconds to expect of two forms whose contractions have become one."""
    return a.others + b.others + max(a.product, b.product)
