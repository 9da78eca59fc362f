"""Mutate whole programs: every distinct contraction and group once, and keep what is faster.

A program is split as for derivation (derivation/whole.py): at functions, maxima and data-dependent
reads. Contractions that share an operand are also looked at together. Where the target runs here,
the cheapest corrected mutants by the model and the scopes as they stand are compiled alone and
measured in turn; elsewhere the model decides. What a scope takes was measured for derivation
already (derivation/alone.py): one whose product needs as long at the machine's peak is not
searched. Whoever calls `search` measures the whole program once more.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.errors import UserError
from ...dialects.floats import GUARDED
from ...dialects.program import Program, add_pipeline, where
from ...dialects.weights_only import weights_only
from ...lowering.algebra_to_kernel.match import match_conv, match_gemm
from ..algebra_gather_sums import AlgebraGatherSums, summands
from ..cost import Costs
from ..derivation.alone import Alone
from ..derivation.bound import has_fast_form, least_of_scope
from ..derivation.by_hand import find_scope
from ..derivation.isolate import isolate_all
from ..derivation.lift import scope_names
from ..derivation.price import ScopePrices
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
from . import rounds
from .apply import RULE, as_given, lifted
from .bound import least_modelled
from .chains import neighbours
from .generate import Count, Kinds, Options
from .mutate import modelled, tried
from .rounds import EACH, FINISH, MutationState, Rounds, ScopeRewrite, cancels_first, preferred
from .search import NOISE, Candidate, FoundCandidates, groupable, named_mutant, search_mutants
from .ways import Deriver, Mutation

Measure = Callable[[Sequence[Program], float], "list[float]"]

# Candidates of one subprogram that are measured; seconds of interleaved runs for them.
MEASURED, MEASURING = 5, 0.6
# Part of the time that measuring what there is may take.
MEASURING_ALL = 0.3
# A mutant must win by this much: less is noise.
MARGIN = 0.95
# What is modelled to take so many times as long is not measured, nor mutated further.
WORTH_MEASURING = 2.0
# What became of subprograms.
SEARCHED, SMALL, IDLE, MISSED = "searched", "too small", "cannot gain", "not reached"
DERIVED = "only derived"
# Subprograms of a smaller share of the whole program are left alone.
LEAST_SHARE = 0.005


@dataclass(frozen=True)
class MutationSettings:
    """How far a search goes.

    Attributes:
        depth: operators of a mutant; keep: states of a round.
        rounds: rewrites of what was rewritten; where there are several, rules derive, too.
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
class SubprogramDecision:
    """What to do with a subprogram: the state to take, seconds of both, and why.

    Attributes:
        alone: the subprogram as a program, and its scopes' names there.
    """

    chosen: MutationState | None
    before: float
    after: float
    reason: str
    alone: tuple[Program, tuple[str, ...]] | None = None


def search(
    program: Program,
    costs: Costs,
    limits: Limits,
    measure: Measure | None = None,
    settings: MutationSettings | None = None,
) -> SearchResult:
    """Mutate every contraction that gains.

    Args:
        measure: median seconds of programs, run in turn; None where the target does not run here.
    """
    return _Whole(program, costs, limits, measure, settings or MutationSettings()).run()


Gain = tuple[Subprogram, SubprogramDecision, tuple[str, ...]]
"""What is taken at one place: the names of its scopes."""


class _Whole:
    """One search."""

    def __init__(
        self,
        program: Program,
        costs: Costs,
        limits: Limits,
        measure: Measure | None,
        settings: MutationSettings,
    ) -> None:
        self.before, self.costs, self.measure = program, costs, measure
        self.settings = settings
        self.plain = prepared(program)
        self.work = self.plain.clone()
        # For each scope that adds contractions, what it adds.
        self.parts: dict[str, tuple[str, ...]] = {}
        if self.settings.together:
            run(self.work, (AlgebraGatherSums(),))
            names = scope_names(self.work.module)
            for op in names:
                if summands(op):
                    self.parts[names[op]] = tuple(names[part] for part in summands(op))
        self.end = time.perf_counter() + limits.seconds
        self.seconds = limits.seconds
        self.seed = limits.seed
        self.alone = Alone(self.work, costs, measure, Remembered(under=limits.floats.key))
        self.seen: Counter[str] = Counter()
        self.stop: StopReason = "finished"
        self.rejected: list[Rejected] = []
        deriver = Deriver(costs, EACH, self.end)
        self.rounds = Rounds(
            self._search,
            partial(rounds.priced, costs=costs),
            self._way,
            settings.rounds,
            settings.keep,
            deriver.ways if settings.rounds > 1 else None,
            self.end,
        )
        # For what no mutant gains, but rules may.
        self.rules = replace(self.rounds, search=no_mutants, found={})
        self.only_derived: set[tuple[str, ...]] = set()

    def run(self) -> SearchResult:
        """Decide for each subprogram, then rewrite them all."""
        singles = split(self.work.module, self._prices)
        subs = [*singles, *self._groups(), *self._sums(singles)]
        least = LEAST_SHARE * priced(singles)
        until = self.end - (1.0 - MEASURING_ALL) * self.seconds
        decided: list[tuple[Subprogram, SubprogramDecision]] = []
        try:
            for sub in singles:
                if weight(sub) >= least and time.perf_counter() < until:
                    self.alone.seconds(sub)
            for sub in subs:
                small = weight(sub) < least
                decision = self._left_alone(sub, singles, small) or self._decision(sub)
                decided.append((sub, decision))
                if decision.chosen is None and len(sub.roots) == 1:
                    self._reject(sub, decision.reason)
        except KeyboardInterrupt:
            self.stop = "interrupted"
        gains = chosen_places(decided, self.parts)
        made = [self._rewritten(gains)] if gains else []
        if gains and self.stop != "interrupted" and (longer := self._continued(gains, singles)):
            # First the one that the model prefers.
            made.append(self._rewritten([*gains, *longer]))
            made.sort(key=lambda one: rounds.priced(one.program, self.costs))
        result = made[0] if made else SearchResult(self.before.clone(), self.stop)
        result.rejected = [*self.rejected, *result.rejected]
        result.alternatives = [other.program for other in made[1:]]
        result.looked_at = f"{len(subs)} subprograms: {self._looked_at()}"
        return result

    def _way(self, candidate: Candidate) -> Mutation:
        return Mutation(candidate, self.costs.target.name, self.settings.depth)

    def _looked_at(self) -> str:
        """How many subprograms were searched, and what of the others."""
        parts = [f"{count} {what}" for what, count in self.seen.items() if what != SEARCHED]
        return ", ".join([f"{self.seen[SEARCHED]} {SEARCHED}", *parts])

    def _prices(self, known: Sequence[str]) -> ScopePrices:
        return ScopePrices(known, costs=self.costs)

    def _groups(self) -> list[Subprogram]:
        found = groups(self.work.module, self._prices) if self.settings.together else []
        return [sub for sub in found if groupable([root.shape for root in sub.roots])]

    def _sums(self, singles: Sequence[Subprogram]) -> list[Subprogram]:
        """Contractions that one scope adds, those that are alike as one."""
        found: dict[tuple[Scope, tuple[str, ...]], Subprogram] = {}
        native = {name: sub.native for sub in singles for name in sub.names}
        for name, parts in self.parts.items():
            if not all(part in native for part in parts):
                continue
            roots, lift = lifted(self.work.module, [find_scope(self.work.module, name)])
            key = roots[0], tuple(lift.known())
            seconds = sum(native[part] for part in parts)
            sub = found.setdefault(key, Subprogram((key[0],), key[1], seconds))
            sub.places.append((name,))
        return sorted(found.values(), key=lambda s: -weight(s))

    def _members(self, names: Sequence[str]) -> tuple[str, ...]:
        """The contractions that scopes are, or add."""
        return tuple(part for name in names for part in self.parts.get(name, (name,)))

    def _place(self, names: Sequence[str]) -> str:
        return " with ".join(where(find_scope(self.work.module, name)) for name in names)

    def _reject(self, sub: Subprogram, reason: str) -> None:
        self.rejected.append(Rejected(RULE, self._place(sub.places[0]), reason))

    # --- one subprogram ---

    def _left_alone(
        self, sub: Subprogram, singles: Sequence[Subprogram], small: bool
    ) -> SubprogramDecision | None:
        """The decision not to search a subprogram; None where it may gain."""
        reason = self._why_not(sub, singles, small)
        return None if reason is None else SubprogramDecision(None, 0.0, 0.0, reason)

    def _why_not(self, sub: Subprogram, singles: Sequence[Subprogram], small: bool) -> str | None:
        if small:
            self.seen[SMALL] += 1
            return "it takes too small a share of the program"
        reason = self._cannot_gain(sub, singles)
        if reason is not None and self.rules.derive is not None and sub in singles:
            self.only_derived.add(sub.places[0])
            reason = None
        if reason is not None:
            self.seen[IDLE] += 1
        elif self.end <= time.perf_counter():
            self.stop, reason = "time", "the time was spent: it was not searched"
            self.seen[MISSED] += 1
        return reason

    def _cannot_gain(self, sub: Subprogram, singles: Sequence[Subprogram]) -> str | None:
        """Why no mutant could gain, as far as it shows without a search."""
        names = self._members(sub.places[0])
        ops = [find_scope(self.work.module, name) for name in names]
        if self.costs.target.runs_here and len(ops) == 1:
            # The same work in other images; a core is as well used by any of them.
            if is_regular(ops[0]):
                return "it is regular: another shape gains nothing here"
            if is_plain(ops[0]) and not has_fast_form(sub.root):
                return "its windows fit no faster algorithm in any shape: that gains nothing here"
        of = {name: single for single in singles for name in single.names}
        return self._bound(sub, [of[name] for name in names], singles)

    def _bound(
        self, sub: Subprogram, members: Sequence[Subprogram], singles: Sequence[Subprogram]
    ) -> str | None:
        """Why no mutant could save enough; None where one may."""
        before, least = sum(map(self.alone.seconds, members)), self._least(members)
        if least is None:
            return None
        if self.measure is None:  # lowered as it stands: derivation's price may be of other copies
            before = modelled([member.root for member in members], self.costs)
        priced_ = [other for other in singles if math.isfinite(other.native)]
        whole = sum(self.alone.known(other) * len(other.places) for other in priced_)
        saved = (before - least) * len(sub.places)
        idle = least >= before * MARGIN or saved < LEAST_SAVED * whole
        return not_faster("no mutant", before, least) if idle else None

    def _least(self, members: Sequence[Subprogram]) -> float | None:
        """Seconds of any mutant of these contractions, at least; None where nothing is known."""
        if self.measure is not None:
            operations = sum(least_of_scope(m.root, one_product=True) for m in members)
            return self.alone.least_seconds(operations)
        if len(members) > 1:
            return None
        (one,) = members
        return least_modelled(find_scope(self.work.module, one.names[0]), one.root, self.costs)

    def _decision(self, sub: Subprogram) -> SubprogramDecision:
        """Search a subprogram, and choose."""
        ops = [find_scope(self.work.module, name) for name in sub.places[0]]
        only = sub.places[0] in self.only_derived
        self.seen[DERIVED if only else SEARCHED] += 1
        known = weights_only(self.work.main.body.block.ops)
        inside = [part for op in ops for part in summands(op)]
        alone, copies = isolate_all(ops, known, inside=inside)
        names = tuple(scope_names(alone.module)[copy] for copy in copies)
        explored = self.rules if only else self.rounds
        before, heap = explored.price(alone), explored.run(alone, names)
        if explored.cut:
            self.stop = "time"
            self.seen["of fewer rounds (time)"] += 1
        states = [state for state in heap if state.steps]
        seen = DERIVED if only else self._seen(copies)
        if not states:
            return SubprogramDecision(None, before, before, f"{seen}, none that is faster")
        if self.measure is None or (
            len(ops) + len(inside) > 1 and states[0].seconds >= before * MARGIN
        ):
            decision = self._modelled(before, states)
        else:
            decision = self._measured(self.measure, alone, states)
        return replace(decision, reason=f"{seen}, {decision.reason}", alone=(alone, names))

    def _search(self, ops: Sequence[ScopeOp], roots: Sequence[Scope]) -> FoundCandidates:
        left = max(self.end - time.perf_counter(), 0.0)
        made, price = self.settings, partial(modelled, costs=self.costs)
        seconds = min(left / 2, made.seconds)
        options = Options(depth=made.depth, seconds=seconds, kinds=made.kinds, seed=self.seed)
        if made.forms is not None:
            options = replace(options, forms=made.forms)
        # Of one round without measurements only what gains is taken.
        last = self.measure is None and made.rounds == 1
        module = ops[0].get_toplevel_object()
        assert isinstance(module, ModuleOp)
        given = price(as_given(module, ops)[0])
        below = given * (MARGIN if last else WORTH_MEASURING)
        found = search_mutants(
            roots, tried(ops, options), price, made.most, self.costs, EACH, below
        )
        if found.count.stopped != "finished":
            self.stop = found.count.stopped
            self.seen[f"cut short ({found.count.stopped})"] += 1
        return found

    def _seen(self, ops: Sequence[ScopeOp]) -> str:
        found = self.rounds.first(ops)
        stopped = found.count.stopped
        cut = "" if stopped == "finished" else f" when it stopped for {stopped}"
        kept = f"{found.count.kept} of them mostly right"
        return f"{found.count.products} mutants{cut}, {kept}, {found.priced} corrected and priced"

    def _modelled(self, before: float, states: Sequence[MutationState]) -> SubprogramDecision:
        best = preferred(states)
        assert best is not None
        reason = f"the best modelled to take {best.seconds / before:.2f} of the time"
        chosen = best if best.seconds < before * MARGIN else None
        return SubprogramDecision(chosen, before, best.seconds, reason)

    def _measured(
        self, measure: Measure, alone: Program, states: Sequence[MutationState]
    ) -> SubprogramDecision:
        """The state that won against the scopes as they stand, each alone."""
        tried_ = states[:MEASURED]
        programs = [alone, *(rounds.finished(state.program) for state in tried_)]
        seconds = measure(programs, MEASURING)
        least = min(seconds[1:])
        close = [k for k in range(1, len(seconds)) if seconds[k] <= least * NOISE]
        best = min(close, key=lambda k: cancels_first(tried_[k - 1]))
        reason = f"the best measured to take {seconds[best] / seconds[0]:.2f} of the time"
        wins = seconds[best] < seconds[0] * MARGIN
        return SubprogramDecision(
            tried_[best - 1] if wins else None, seconds[0], seconds[best], reason
        )

    # --- the program ---

    def _continued(self, gains: Sequence[Gain], singles: Sequence[Subprogram]) -> list[Gain]:
        """What the contractions beside those taken become if they are mutated alike."""
        beside = neighbours(self.work.module)
        of = {name: sub for sub in singles for name in sub.names}
        taken = {names: d.chosen for _, d, names in gains if d.chosen and len(d.chosen.steps) == 1}
        ways = {names[0]: state.steps[0].way for names, state in taken.items()}
        mutants = {n: way.candidate for n, way in ways.items() if isinstance(way, Mutation)}
        done = {part for _, _, names in gains for part in self._members(names)}
        known: dict[tuple[int, str], SubprogramDecision | None] = {}
        found: list[Gain] = []
        queue = [(name, mutants[name]) for (name, *more) in taken if not more and name in mutants]
        for name, candidate in queue:
            for other in sorted(beside.get(name, set()) - done):
                sub = of.get(other)
                if sub is None or time.perf_counter() > self.end:
                    continue
                key = id(sub), candidate.mutant.name
                if key not in known:
                    known[key] = self._alike(sub, candidate)
                decision = known[key]
                if decision is not None:
                    done.add(other)
                    found.append((sub, decision, (other,)))
                    queue.append((other, candidate))
        return found

    def _alike(self, sub: Subprogram, candidate: Candidate) -> SubprogramDecision | None:
        """The decision to make a contraction the same mutant; None where it has none."""
        ops = [find_scope(self.work.module, name) for name in sub.places[0]]
        if is_regular(ops[0]):
            return None
        alone, copies = isolate_all(ops, weights_only(self.work.main.body.block.ops))
        seconds = min(self.settings.seconds, max(self.end - time.perf_counter(), 0.0))
        options = tried(copies, Options(self.settings.depth, seconds=seconds))
        roots, _ = lifted(alone.module, copies)
        mutant = candidate.mutant.name
        same = named_mutant(
            roots, options, mutant, candidate.form, self.costs, also=renumbered(mutant)
        )
        if same is None:
            return None
        names = tuple(scope_names(alone.module)[copy] for copy in copies)
        way = self._way(same)
        state = MutationState(alone, 0.0, (ScopeRewrite(names, way, way.replay(names)),))
        return SubprogramDecision(state, 0.0, 0.0, "beside one that is", (alone, names))

    def _rewritten(self, gains: Sequence[Gain]) -> SearchResult:
        """A copy of the program with these subprograms replaced, each written down."""
        sums = any(name in self.parts for _, _, names in gains for name in names)
        made = (self.work if sums else self.plain).clone()
        result = SearchResult(made, self.stop, [], [])
        for _, decision, names in gains:
            assert decision.chosen is not None and decision.alone is not None
            alone, own = decision.alone
            trial = made.clone()
            try:
                steps = rounds.replayed(alone, own, trial, names, decision.chosen)
            except UserError as error:
                result.rejected.append(Rejected(RULE, self._place(names), str(error)))
                continue
            made = trial
            add_pipeline(made.module, ",".join(step.pipeline for step in steps))
            proofs: list[Proof] = [step.way.proof for step in steps]
            proof: Proof = "checked" if "checked" in proofs else "exact"
            rule = ", ".join(step.way.rule for step in steps)
            delta = decision.after - decision.before
            result.applied.append(Applied(rule, self._place(names), proof, delta, GUARDED))
        run(made, FINISH)
        made.module.verify()
        result.program = made
        return result


def no_mutants(ops: Sequence[ScopeOp], roots: Sequence[Scope]) -> FoundCandidates:
    """Look at none."""
    return FoundCandidates((), Count(), 0)


def renumbered(mutant: str) -> str:
    """A mutant's name where the program reads its two operands in the other order."""
    return re.sub(r"input ([01])\b", lambda found: f"input {1 - int(found[1])}", mutant)


def chosen_places(
    decided: Sequence[tuple[Subprogram, SubprogramDecision]], parts: Mapping[str, Sequence[str]]
) -> list[Gain]:
    """What to take where: groups and sums only where they save more than their members alone.

    Args:
        parts: for each scope that adds contractions, what it adds.
    """
    saved: dict[str, float] = {}
    alone: list[Gain] = []
    together: list[tuple[float, Gain, set[str]]] = []
    for sub, decision in decided:
        if decision.chosen is None:
            continue
        for names in sub.places:
            more = decision.before - decision.after
            members = {part for name in names for part in parts.get(name, (name,))}
            if len(members) == 1:
                saved[names[0]] = more
                alone.append((sub, decision, names))
            else:
                more -= sum(saved.get(name, 0.0) for name in members)
                together.append((more, (sub, decision, names), members))
    taken: set[str] = set()
    gains: list[Gain] = []
    for more, gain, members in sorted(together, key=lambda one: -one[0]):
        if more > 0 and not taken & members:
            taken |= members
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
