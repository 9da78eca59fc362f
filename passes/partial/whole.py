"""Mutate whole programs: every distinct contraction and group once, and keep what is faster.

A program is split as for derivation (derivation/whole.py): at functions, maxima and data-dependent
reads. Contractions that share an operand are also looked at together. Where the target runs here,
the cheapest corrected mutants by the model and the scopes as they stand are compiled alone and
measured in turn; elsewhere the model decides. What a scope takes was measured for derivation
already (derivation/alone.py): one whose product needs as long at the machine's peak is not
searched. Whoever calls `search` measures the whole program once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.errors import UserError
from ...dialects.program import Program, add_pipeline, where
from ...lowering.algebra_to_kernel.match import match_conv, match_gemm
from ..cost import Costs
from ..derivation.alone import Alone
from ..derivation.bound import has_fast_form, least_of_scope
from ..derivation.by_hand import find_scope
from ..derivation.isolate import isolate_all
from ..derivation.lift import scope_names
from ..derivation.price import Prices
from ..derivation.remembered import Remembered
from ..derivation.subprograms import groups
from ..derivation.whole import (
    LEAST_SAVED,
    Subprogram,
    not_faster,
    prepared,
    priced,
    run,
    split,
    weight,
)
from ..search_result import Applied, Limits, Proof, Rejected, SearchResult, StopReason
from ..weights_only import weights_only
from . import rounds
from .apply import RULE
from .generate import Kinds, Options
from .mutate import modelled, replay, tried
from .rounds import FINISH, Rounds, State
from .search import Found, groupable, search_mutants

Measure = Callable[[Sequence[Program], float], "list[float]"]

# Candidates of one subprogram that are measured; seconds of interleaved runs for them.
MEASURED, MEASURING = 5, 0.6
# A mutant must win by this much: less is noise.
MARGIN = 0.95
# Mutants that take at most this much longer than the fastest count as fast.
NOISE = 1.05
# Subprograms of a smaller share of the whole program are left alone.
LEAST_SHARE = 0.005


@dataclass(frozen=True)
class Settings:
    """How far a search goes.

    Attributes:
        depth: operators of a mutant; rounds: mutations of mutants; keep: states of a round.
        seconds: of generation for one subprogram.
        most: mutants of it that are corrected and priced.
        kinds: whether mutants may be wrong somewhere, must be, or both are taken.
        forms: those that corrections may have; None for all.
        together: whether contractions are also looked at in groups.
    """

    depth: int = 4
    rounds: int = 1
    keep: int = 8
    seconds: float = 10.0
    most: int = 24
    kinds: Kinds = "both"
    forms: tuple[str, ...] | None = None
    together: bool = True


@dataclass(frozen=True)
class Decision:
    """What to do with a subprogram: the state to take, seconds of both, and why.

    Attributes:
        alone: the subprogram as a program, and its scopes' names there.
    """

    chosen: State | None
    before: float
    after: float
    reason: str
    alone: tuple[Program, tuple[str, ...]] | None = None


def search(
    program: Program,
    costs: Costs,
    limits: Limits,
    measure: Measure | None = None,
    settings: Settings | None = None,
) -> SearchResult:
    """Mutate every contraction that gains.

    Args:
        measure: median seconds of programs, run in turn; None where the target does not run here.
    """
    return _Whole(program, costs, limits, measure, settings or Settings()).run()


Gain = tuple[Subprogram, Decision, tuple[str, ...]]
"""What is taken at one place: the names of its scopes."""


class _Whole:
    """One search."""

    def __init__(
        self,
        program: Program,
        costs: Costs,
        limits: Limits,
        measure: Measure | None,
        settings: Settings,
    ) -> None:
        self.before, self.costs, self.measure = program, costs, measure
        self.settings = settings
        self.work = prepared(program)
        self.end = time.perf_counter() + limits.seconds
        self.seed = limits.seed
        self.alone = Alone(self.work, costs, measure, Remembered())
        self.searched = 0
        self.stop: StopReason = "finished"
        self.applied: list[Applied] = []
        self.rejected: list[Rejected] = []
        self.rounds = Rounds(
            self._search, partial(rounds.priced, costs=costs), settings.rounds, settings.keep
        )

    def run(self) -> SearchResult:
        """Decide for each subprogram, then rewrite them all."""
        singles = split(self.work.module, self._prices)
        subs = [*singles, *self._groups()]
        least = LEAST_SHARE * priced(singles)
        decided: list[tuple[Subprogram, Decision]] = []
        try:
            for sub in subs:
                small = weight(sub) < least
                decision = self._left_alone(sub, singles, small) or self._decision(sub)
                decided.append((sub, decision))
                if decision.chosen is None and len(sub.roots) == 1:
                    self._reject(sub, decision.reason)
        except KeyboardInterrupt:
            self.stop = "interrupted"
        gains = chosen_places(decided)
        seen = f"{len(subs)} subprograms, {self.searched} searched"
        result = self._rewritten(gains) if gains else self.before.clone()
        return SearchResult(result, self.stop, self.applied, self.rejected, looked_at=seen)

    def _prices(self, known: Sequence[str]) -> Prices:
        return Prices(known, costs=self.costs)

    def _groups(self) -> list[Subprogram]:
        found = groups(self.work.module, self._prices) if self.settings.together else []
        return [sub for sub in found if groupable([root.shape for root in sub.roots])]

    def _place(self, names: Sequence[str]) -> str:
        return " with ".join(where(find_scope(self.work.module, name)) for name in names)

    def _reject(self, sub: Subprogram, reason: str) -> None:
        self.rejected.append(Rejected(RULE, self._place(sub.places[0]), reason))

    # --- one subprogram ---

    def _left_alone(
        self, sub: Subprogram, singles: Sequence[Subprogram], small: bool
    ) -> Decision | None:
        """The decision not to search a subprogram; None where it may gain."""
        reason = self._why_not(sub, singles, small)
        return None if reason is None else Decision(None, 0.0, 0.0, reason)

    def _why_not(self, sub: Subprogram, singles: Sequence[Subprogram], small: bool) -> str | None:
        if small:
            return "it takes too small a share of the program"
        if self.end <= time.perf_counter():
            self.stop = "time"
            return "the time was spent"
        ops = [find_scope(self.work.module, name) for name in sub.places[0]]
        if self.costs.target.runs_here and len(ops) == 1:
            # The same work in other images; a core is as well used by any of them.
            if is_regular(ops[0]):
                return "it is regular: another shape gains nothing here"
            if is_plain(ops[0]) and not has_fast_form(sub.root, one_product=True):
                return "its windows fit no faster algorithm in any shape: that gains nothing here"
        return None if self.measure is None else self._bound(sub, singles)

    def _bound(self, sub: Subprogram, singles: Sequence[Subprogram]) -> str | None:
        """Why no mutant could save enough; None where one may."""
        of = {name: single for single in singles for name in single.names}
        members = [of[name] for name in sub.places[0]]
        before = sum(map(self.alone.seconds, members))
        operations = sum(least_of_scope(m.root, one_product=True) for m in members)
        least = self.alone.least_seconds(operations)
        whole = sum(self.alone.known(other) * len(other.places) for other in singles)
        saved = (before - least) * len(sub.places)
        idle = least >= before * MARGIN or saved < LEAST_SAVED * whole
        return not_faster("no mutant", before, least) if idle else None

    def _decision(self, sub: Subprogram) -> Decision:
        """Search a subprogram, and choose."""
        ops = [find_scope(self.work.module, name) for name in sub.places[0]]
        self.searched += 1
        alone, copies = isolate_all(ops, weights_only(self.work.main.body.block.ops))
        names = tuple(scope_names(alone.module)[copy] for copy in copies)
        before, states = self._explored(alone, names)
        if not states:
            return Decision(None, before, before, f"{self._seen(copies)}, none with less work")
        if self.measure is None or (len(ops) > 1 and states[0].seconds >= before * MARGIN):
            decision = self._modelled(before, states[0])
        else:
            decision = self._measured(self.measure, alone, states)
        reason = f"{self._seen(copies)}, {decision.reason}"
        return replace(decision, reason=reason, alone=(alone, names))

    def _explored(self, alone: Program, names: tuple[str, ...]) -> tuple[float, list[State]]:
        """Modelled seconds as it stands, and what it may become, the cheapest first."""
        heap = self.rounds.run(alone, names)
        given = self.rounds.price(alone)
        return given, [state for state in heap if state.steps]

    def _search(self, ops: Sequence[ScopeOp], roots: Sequence[Scope]) -> Found:
        left = max(self.end - time.perf_counter(), 0.0)
        made = self.settings
        options = Options(
            depth=made.depth, seconds=min(left, made.seconds), kinds=made.kinds, seed=self.seed
        )
        if made.forms is not None:
            options = replace(options, forms=made.forms)
        price = partial(modelled, costs=self.costs)
        found = search_mutants(roots, tried(ops, options), price, made.most, self.costs)
        if found.count.stopped != "finished":
            self.stop = found.count.stopped
        return found

    def _seen(self, ops: Sequence[ScopeOp]) -> str:
        found = self.rounds.first(ops)
        return f"{found.count.products} mutants, {found.count.kept} of them mostly right"

    def _modelled(self, before: float, best: State) -> Decision:
        reason = f"the best modelled to take {best.seconds / before:.2f} of the time"
        chosen = best if best.seconds < before * MARGIN else None
        return Decision(chosen, before, best.seconds, reason)

    def _measured(self, measure: Measure, alone: Program, states: Sequence[State]) -> Decision:
        """The state that won against the scopes as they stand, each alone."""
        tried_ = states[:MEASURED]
        programs = [alone, *(rounds.finished(state.program) for state in tried_)]
        seconds = measure(programs, MEASURING)
        least = min(seconds[1:])
        # Of those that are as fast, the first by its text: views of neighbours then cancel.
        close = [k for k in range(1, len(seconds)) if seconds[k] <= least * NOISE]
        best = min(close, key=lambda k: tried_[k - 1].text)
        reason = f"the best measured to take {seconds[best] / seconds[0]:.2f} of the time"
        wins = seconds[best] < seconds[0] * MARGIN
        return Decision(tried_[best - 1] if wins else None, seconds[0], seconds[best], reason)

    # --- the program ---

    def _rewritten(self, gains: Sequence[Gain]) -> Program:
        """A copy of the program with these subprograms replaced."""
        made = self.work.clone()
        for _, decision, names in gains:
            assert decision.chosen is not None and decision.alone is not None
            alone, own = decision.alone
            trial = made if len(names) == 1 else made.clone()
            try:
                steps = rounds.replayed(alone, own, trial, names, decision.chosen)
            except UserError as error:
                self.rejected.append(Rejected(RULE, self._place(names), str(error)))
                continue
            made = trial
            name, depth = self.costs.target.name, self.settings.depth
            texts = [replay(step.names, step.candidate, name, depth) for step in steps]
            add_pipeline(made.module, ",".join(texts))
            proofs: list[Proof] = [step.candidate.proof for step in steps]
            proof: Proof = "checked" if "checked" in proofs else "exact"
            delta = decision.after - decision.before
            self.applied.append(Applied(RULE, self._place(names), proof, delta))
        run(made, FINISH)
        made.module.verify()
        return made


def chosen_places(decided: Sequence[tuple[Subprogram, Decision]]) -> list[Gain]:
    """What to take where: groups only where they save more than their members alone."""
    saved: dict[str, float] = {}
    alone: list[Gain] = []
    together: list[tuple[float, Gain]] = []
    for sub, decision in decided:
        if decision.chosen is None:
            continue
        for names in sub.places:
            more = decision.before - decision.after
            if len(names) == 1:
                saved[names[0]] = more
                alone.append((sub, decision, names))
            else:
                more -= sum(saved.get(name, 0.0) for name in names)
                together.append((more, (sub, decision, names)))
    taken: set[str] = set()
    gains: list[Gain] = []
    for more, gain in sorted(together, key=lambda one: -one[0]):
        if more > 0 and not taken & set(gain[2]):
            taken |= set(gain[2])
            gains.append(gain)
    return [*gains, *(gain for gain in alone if gain[2][0] not in taken)]


def is_regular(op: ScopeOp) -> bool:
    """Whether it is a matrix product, or a convolution with no stride, dilation or groups."""
    if match_gemm(op) is not None:
        return True
    found = match_conv(op)
    return found is not None and is_plain(op) and {*found.strides, *found.dilations} == {1}


def is_plain(op: ScopeOp) -> bool:
    """Whether it is a convolution of one group, not transposed."""
    found = match_conv(op)
    return found is not None and not found.transposed and found.groups == 1


__all__ = ["search"]
