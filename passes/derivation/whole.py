"""Derive whole programs: split them into subprograms, search each once, keep what is faster.

Subprograms are contractions, and pairs and groups of them that may become one (subprograms.py).
What was decided for one is remembered on disk. The search prices programs by the model; where the
target runs here, the cheapest of them and the scopes as they stand are then compiled alone and
measured in turn, and scopes stay as they are unless one is faster by more than noise. Programs that
cannot be, for their operations alone take longer at the machine's peak (bound.py), are not
measured; and the search stops where nothing that is left could save enough. Whoever calls `search`
measures the whole program once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from ...dialects.context import WeightContext
from ...dialects.errors import UserError
from ...dialects.floats import GUARDED
from ...dialects.program import Program, add_pipeline, keep_names, where
from ...lowering.graph_to_algebra import GraphToAlgebra
from ..algebra_inline_copies import AlgebraInlineCopies
from ..cost import Costs
from ..equivalence.prove import Prover
from ..search_result import Applied, Limits, Proof, Rejected, SearchResult, StopReason
from .alone import Alone, subprogram_key
from .bound import least_of_scope
from .by_hand import find_scope
from .choose import MARGIN, SETTINGS, Chooser, settings_of
from .derive import Done, apply_rules
from .name_scopes import AlgebraNameScopes
from .price import ScopePrices
from .remembered import Decision, Remembered
from .rules import named
from .search import Searcher, Stop
from .subprograms import Subprogram, groups, priced, split, weight

Measure = Callable[[Sequence[Program], float], "list[float]"]

# Copies are read through first, so that a contraction sees what it reads; names are for the trace.
PREPARE: tuple[ModulePass, ...] = (
    GraphToAlgebra(),
    AlgebraInlineCopies(),
    CommonSubexpressionElimination(),
    DeadCodeElimination(),
    AlgebraNameScopes(),
)
# What derivations leave: wrappers that are read through, layouts that two of them share.
FINISH: tuple[ModulePass, ...] = (CommonSubexpressionElimination(), DeadCodeElimination())

# CPU seconds that one subprogram may take, its measurement left out.
MOST_SECONDS = 60.0
# Subprograms of a smaller share of the whole program are left alone.
LEAST_SHARE = 0.002
# A whole program must gain this share to be taken: where less is left to gain, the search stops.
LEAST_GAIN = 0.03
# A subprogram that could save at most this share of the whole is not worth its search.
LEAST_SAVED = 0.005
# Part of the time after which pairs and groups are not begun any more.
GROUPING = 0.7


def search(
    program: Program, costs: Costs, limits: Limits, measure: Measure | None = None
) -> SearchResult:
    """Derive every subprogram of a program.

    Args:
        measure: median seconds of programs, run in turn; None where the target does not run here.
    """
    return _Whole(program, costs, limits, measure).run()


def prepared(program: Program) -> Program:
    """The program as scopes that read through copies, each with a name; a copy."""
    made = program.clone()
    keep_names(made)
    run(made, PREPARE)
    return made


def run(program: Program, passes: Sequence[ModulePass]) -> None:
    """Apply passes in place, and say so in the module."""
    context = WeightContext(weights=program.weights)
    for one in passes:
        one.apply(context, program.module)
    add_pipeline(program.module, ",".join(one.name for one in passes))


def with_winograd(costs: Costs) -> Costs:
    """Costs of what is measured: its kernels are tuned, and `tune` takes Winograd where it wins."""
    convolutions = dict.fromkeys((*costs.target.convolutions, "winograd"))
    target = replace(costs.target, convolutions=tuple(convolutions))
    return Costs(target, costs.file, costs.fitted)


Gain = tuple[Subprogram, Decision, tuple[str, ...]]
"""What is taken at one place: the names of its scopes."""


class _Whole:
    """One search."""

    def __init__(
        self, program: Program, costs: Costs, limits: Limits, measure: Measure | None
    ) -> None:
        self.costs = costs if measure is None else with_winograd(costs)
        self.measure = measure
        self.before = program
        self.work = prepared(program)
        self.started = time.perf_counter()
        self.seconds = limits.seconds
        self.settings = replace(SETTINGS, states=min(SETTINGS.states, limits.steps))
        self.remembered = Remembered(under=limits.floats.key)
        self.alone = Alone(self.work, self.costs, measure, self.remembered)
        self.chooser = Chooser(self.work, self.costs, measure, self.alone)
        self.reasons: list[StopReason] = []
        self.applied: list[Applied] = []
        self.rejected: list[Rejected] = []
        self.decided: list[tuple[Subprogram, Decision]] = []

    def run(self) -> SearchResult:
        """Decide for each subprogram, then rewrite them all."""
        singles = split(self.work.module, self._prices)
        subs = [*singles, *groups(self.work.module, self._prices)]
        try:
            self._decide(singles, subs)
        except KeyboardInterrupt:
            self.reasons.append("interrupted")
        gains = chosen_places(self.decided)
        result = SearchResult(self.before.clone(), self._stop(), [], self.rejected)
        result.looked_at = f"{len(subs)} subprograms, {len(self.decided)} searched"
        if self.decided:
            longest = max(d.spent + self.alone.spent(sub) for sub, d in self.decided)
            result.looked_at += f", {longest:.0f} s at most"
        if gains:
            result.program, result.applied = self._rewritten(gains), self.applied
            best = [gain for gain in gains if gain[1].after < 0.8 * gain[1].before]
            if 0 < len(best) < len(gains):
                result.alternatives = [self._rewritten(best, quiet=True)]
        return result

    def _decide(self, singles: Sequence[Subprogram], subs: Sequence[Subprogram]) -> None:
        """Search what is worth it, in order, until nothing that is left could save enough."""
        least = LEAST_SHARE * priced(singles)
        for sub in singles:
            if weight(sub) >= least and self._left() > 0:
                self.alone.seconds(sub)
        whole = sum(self.alone.known(sub) * len(sub.places) for sub in singles)
        of = {name: sub for sub in singles for name in sub.names}
        for number, sub in enumerate(subs):
            if weight(sub) < least:
                if len(sub.roots) == 1:
                    self._reject(sub, "it takes too small a share of the program")
            elif self._hopeless(singles, subs[number:]):
                break
            elif self.measure is not None and self._idle([of[n] for n in sub.places[0]], whole):
                self._reject(sub, self._bound([of[n] for n in sub.places[0]]))
            elif (decision := self._decision(sub)) is not None:
                self.decided.append((sub, decision))

    def _left(self, share: float = 1.0) -> float:
        return self.started + self.seconds * share - time.perf_counter()

    def _idle(self, members: Sequence[Subprogram], whole: float) -> bool:
        """Whether all that rules could save of these contractions is noise, or too little."""
        before = sum(map(self.alone.known, members))
        least = self._least(members)
        saved = (before - least) * len(members[0].places)
        return least >= before * MARGIN or saved < LEAST_SAVED * whole

    def _least(self, members: Sequence[Subprogram]) -> float:
        return self.alone.least_seconds(sum(least_of_scope(sub.root) for sub in members))

    def _bound(self, members: Sequence[Subprogram]) -> str:
        before = sum(map(self.alone.known, members))
        return not_faster("nothing derived", before, self._least(members))

    def _prices(self, known: Sequence[str]) -> ScopePrices:
        return ScopePrices(known, costs=self.costs)

    def _stop(self) -> StopReason:
        order: tuple[StopReason, ...] = ("interrupted", "time", "steps")
        found: list[StopReason] = [reason for reason in order if reason in self.reasons]
        return found[0] if found else "finished"

    def _reject(self, sub: Subprogram, reason: str) -> None:
        self.rejected.append(Rejected("derive", self._place(sub.places[0]), reason))

    def _place(self, names: Sequence[str]) -> str:
        return " with ".join(where(find_scope(self.work.module, name)) for name in names)

    def _hopeless(self, singles: Sequence[Subprogram], left: Sequence[Subprogram]) -> bool:
        """Whether what was gained and all that is left to gain are less than `LEAST_GAIN`."""
        done = {sub.roots: decision for sub, decision in self.decided}
        names = {name for sub in left for place in sub.places for name in place}
        total = gained = conceivable = 0.0
        for sub in singles:
            decision = done.get(sub.roots)
            before = self.alone.known(sub) if decision is None else decision.before
            after = before if decision is None or decision.trail is None else decision.after
            best = min(after, self.alone.least_seconds(least_of_scope(sub.root)))
            count = sum(name in names for name in sub.names)
            total += before * len(sub.places)
            gained += (before - after) * len(sub.places)
            conceivable += (after - best) * count
        if gained + conceivable >= LEAST_GAIN * total:
            return False
        share = f"{(gained + conceivable) / total:.1%}" if total else "nothing"
        reason = f"all that is left to search could save {share} of the program: stopped"
        self.rejected.append(Rejected("derive", "main", reason))
        return True

    # --- one subprogram ---

    def _decision(self, sub: Subprogram) -> Decision | None:
        """What to do with a subprogram: as remembered, else searched; None without time."""
        kind = "modelled" if self.measure is None else "measured"
        bounds = f"{self.settings.depth} {self.settings.states} {self.settings.keep} {kind}"
        key = (*subprogram_key(sub, self.costs), bounds)
        decision = self.remembered.load(key)
        if decision is None:
            left = self._left(1.0 if len(sub.roots) == 1 else GROUPING)
            if left <= 0:
                self.reasons.append("time")
                self._reject(sub, "the time was spent")
                return None
            seconds = min(left, MOST_SECONDS)
            started = time.perf_counter()
            decision = self.chooser.decide(sub, self.settings, seconds)
            decision = replace(decision, spent=time.perf_counter() - started)
            # One that was cut short says nothing of what more time would find.
            if decision.stop != Stop.TIME.value or seconds >= self.settings.budget:
                self.remembered.save(key, decision)
        self.reasons.append("steps" if decision.stop == Stop.STATES.value else "finished")
        if decision.stop == Stop.TIME.value:
            self.reasons.append("time")
        if decision.trail is None:
            self._reject(sub, declined(decision))
        return decision

    # --- the program ---

    def _rewritten(self, gains: Sequence[Gain], quiet: bool = False) -> Program:
        """A copy of the program with these subprograms replaced."""
        made = self.work.clone()
        pipelines: list[str] = []
        for sub, decision, names in gains:
            trial = made.clone()
            done = self._apply(trial.module, sub, decision, names)
            if done is not None:
                made = trial
                pipelines.append(done.pipeline)
                if not quiet:
                    self._note(done, decision)
            elif not quiet:
                reason = "what it reads was rewritten: the derivation does not fit any more"
                self.rejected.append(Rejected("derive", self._place(names), reason))
        add_pipeline(made.module, ",".join(text for text in pipelines if text))
        run(made, FINISH)
        made.module.verify()
        return made

    def _apply(
        self, module: ModuleOp, sub: Subprogram, decision: Decision, names: Sequence[str]
    ) -> Done | None:
        assert decision.trail is not None
        ops = [find_scope(module, name) for name in names]
        searcher = Searcher(self._prices(sub.known), settings_of(sub, self.settings))
        return apply_rules(module, ops, searcher, decision.trail, decision.modelled)

    def _note(self, done: Done, decision: Decision) -> None:
        """Write down what was applied, each rule on its own; the library's forms as one."""
        place = self._place(done.names)
        rules = [*done.found.state.rules(), "match"]
        floats = {rule: GUARDED if rule == "match" else named(rule).floats for rule in rules}
        proof = proof_of(done)
        delta = (decision.after - decision.before) / len(rules)
        self.applied += [
            Applied(f"derive {rule}", place, proof, delta, floats[rule]) for rule in rules
        ]


def chosen_places(decided: Sequence[tuple[Subprogram, Decision]]) -> list[Gain]:
    """What to take where: pairs and groups only where they save more than their members alone."""
    saved: dict[str, float] = {}
    gains: list[Gain] = []
    groups_: list[tuple[float, Gain]] = []
    for sub, decision in decided:
        if decision.trail is None:
            continue
        for names in sub.places:
            if len(names) == 1:
                saved[names[0]] = decision.before - decision.after
                gains.append((sub, decision, names))
            else:
                more = decision.before - decision.after - sum(saved.get(n, 0.0) for n in names)
                groups_.append((more, (sub, decision, names)))
    taken: set[str] = set()
    together: list[Gain] = []
    for more, gain in sorted(groups_, key=lambda item: -item[0]):
        if more > 0 and not taken & set(gain[2]):
            taken |= set(gain[2])
            together.append(gain)
    return [*together, *(gain for gain in gains if gain[2][0] not in taken)]


def declined(decision: Decision) -> str:
    """Why a subprogram stays as it is."""
    if decision.kind == "bound":
        if decision.after == decision.before:
            return f"{decision.states} programs, none but the one that runs"
        return not_faster(f"none of {decision.states} programs", decision.before, decision.after)
    ratio = decision.after / decision.before if decision.before else 1.0
    return f"{decision.states} programs, the best {decision.kind} to take {ratio:.2f} of the time"


def not_faster(what: str, before: float, least: float) -> str:
    """Why something was not measured: what it would take at least, and what there is takes."""
    gain = "be faster" if least >= before * MARGIN else "save enough"
    return f"{what} could {gain}: {least * 1e6:.3g} us at the peak, {before * 1e6:.3g} us as it is"


def proof_of(done: Done) -> Proof:
    """How the derived scopes are known to equal the given ones.

    Raises:
        UserError: they do not: a bug in a rule.
    """
    exact = True
    for name, given, root in zip(done.names, done.roots, done.found.state.roots, strict=True):
        proof = Prover().prove(given, root)
        if proof.equal is False:
            raise UserError(f"a derivation is wrong (a bug): {proof.method}", where=f"%{name}")
        exact = exact and bool(proof.equal) and proof.bound == 0.0
    return "exact" if exact else "checked"


__all__ = [
    "FINISH",
    "PREPARE",
    "Subprogram",
    "prepared",
    "priced",
    "proof_of",
    "search",
    "split",
    "weight",
]
