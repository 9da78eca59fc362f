"""Derive whole programs: split them into subprograms, search each once, keep what is faster.

A program is split at what the rules say nothing of: functions, maxima, data-dependent reads. What
is between is a contraction with the copies it reads, which were read through before. Subprograms
that are equal up to names are one interned scope and are searched once; what was decided for one is
remembered on disk. The search prices programs by the model; where the target runs here, the
cheapest of them and the scope as it stands are then compiled alone and measured in turn, and a
scope stays as it is unless one is faster by more than noise. Whoever calls `search` measures the
whole program once more.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from ...dialects.canonical_types import Scope
from ...dialects.context import WeightContext
from ...dialects.errors import UserError
from ...dialects.program import Program, add_pipeline, keep_names, main_of, where
from ...lowering.graph_to_algebra import GraphToAlgebra
from ..algebra_inline_copies import AlgebraInlineCopies
from ..cost import Costs
from ..equivalence.prove import Prover
from ..search_result import Applied, Limits, Proof, Rejected, SearchResult, StopReason
from ..weights_only import weights_only
from .by_hand import find_scope
from .derive import Done, apply_found, apply_rules, native_seconds
from .isolate import isolate
from .lift import Lift, family, scope_ops
from .name_scopes import AlgebraNameScopes
from .price import Prices
from .remembered import Decision, Remembered
from .search import Found, Searcher, Settings, Stop, is_contraction
from .step import Options

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

# A block of rows is a matrix that fills the registers' tiles many times over.
BLOCK = 128
SETTINGS = Settings(depth=4, states=1500, budget=20.0, keep=7, options=Options(block=BLOCK))
# CPU seconds that one subprogram may take, its measurement left out.
MOST_SECONDS = 60.0
# Seconds of interleaved runs for one subprogram.
MEASURING = 0.6
# A program must win by this much: less is noise.
MARGIN = 0.96
# Subprograms of a smaller share of the whole program are left alone.
LEAST_SHARE = 0.002


def search(
    program: Program, costs: Costs, limits: Limits, measure: Measure | None = None
) -> SearchResult:
    """Derive every subprogram of a program.

    Args:
        measure: median seconds of programs, run in turn; None where the target does not run here.
    """
    return _Whole(program, costs, limits, measure).run()


@dataclass
class Subprogram:
    """Ops that are one interned scope, the first of them to be looked at.

    Attributes:
        names: of the ops' results.
        known: tokens of the leaves that are weights.
        native: modelled seconds as it stands.
    """

    root: Scope
    known: tuple[str, ...]
    native: float
    names: list[str] = field(default_factory=list[str])


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


def split(module: ModuleOp, prices: Callable[[Sequence[str]], Prices]) -> list[Subprogram]:
    """The subprograms of a program, those that take the most time first."""
    found: dict[tuple[Scope, tuple[str, ...]], Subprogram] = {}
    known = weights_only(main_of(module).body.block.ops)
    for op in scope_ops(module):
        if op.result in known:
            continue
        lift = Lift(module, family(op), known, positional=True)
        root = lift.scope(op)
        if not is_contraction(root):
            continue
        key = root, tuple(lift.known())
        if key not in found:
            table = prices(key[1])
            native = min(native_seconds(op, table), table.program((root,)).seconds)
            found[key] = Subprogram(*key, native)
        found[key].names.append(op.result.name_hint or "")
    return sorted(found.values(), key=lambda s: (-weight(s), s.names[0]))


def weight(sub: Subprogram) -> float:
    """What it takes in the whole program; nothing is modelled to take for ever."""
    return (sub.native if math.isfinite(sub.native) else 1.0) * len(sub.names)


def priced(subs: Sequence[Subprogram]) -> float:
    """Modelled seconds of all subprograms that have a price: what a share is a share of."""
    return sum(weight(sub) for sub in subs if math.isfinite(sub.native))


class _Whole:
    """One search."""

    def __init__(
        self, program: Program, costs: Costs, limits: Limits, measure: Measure | None
    ) -> None:
        self.target, self.measure = costs.target, measure
        self.before = program
        self.work = prepared(program)
        self.end = time.perf_counter() + limits.seconds
        self.settings = replace(SETTINGS, states=min(SETTINGS.states, limits.steps))
        self.remembered = Remembered()
        self.reasons: list[StopReason] = []
        self.applied: list[Applied] = []
        self.rejected: list[Rejected] = []

    def run(self) -> SearchResult:
        """Decide for each subprogram, then rewrite them all."""
        subs = split(self.work.module, lambda known: Prices(known, self.target))
        total = priced(subs)
        decided: list[tuple[Subprogram, Decision]] = []
        try:
            for sub in subs:
                if weight(sub) < LEAST_SHARE * total:
                    self._reject(sub, "it takes too small a share of the program")
                    continue
                decision = self._decision(sub)
                if decision is not None:
                    decided.append((sub, decision))
        except KeyboardInterrupt:
            self.reasons.append("interrupted")
        gains = [(sub, d) for sub, d in decided if d.rules is not None]
        if not gains:
            return SearchResult(self.before.clone(), self._stop(), [], self.rejected)
        result = self._rewritten(gains)
        best = [(s, d) for s, d in gains if d.after < 0.8 * d.before]
        others = [self._rewritten(best, quiet=True)] if 0 < len(best) < len(gains) else []
        return SearchResult(result, self._stop(), self.applied, self.rejected, others)

    def _stop(self) -> StopReason:
        order: tuple[StopReason, ...] = ("interrupted", "time", "steps")
        found: list[StopReason] = [reason for reason in order if reason in self.reasons]
        return found[0] if found else "finished"

    def _reject(self, sub: Subprogram, reason: str) -> None:
        place = where(find_scope(self.work.module, sub.names[0]))
        self.rejected.append(Rejected("derive", place, reason))

    # --- one subprogram ---

    def _decision(self, sub: Subprogram) -> Decision | None:
        """What to do with a subprogram: as remembered, else searched; None without time."""
        kind = "modelled" if self.measure is None else "measured"
        bounds = f"{self.settings.depth} {self.settings.states} {self.settings.keep} {kind}"
        key = (sub.root.token, *sub.known, repr(self.target), bounds)
        decision = self.remembered.load(key)
        if decision is None:
            left = self.end - time.perf_counter()
            if left <= 0:
                self.reasons.append("time")
                self._reject(sub, "the time was spent")
                return None
            seconds = min(left, MOST_SECONDS)
            decision = self._searched(sub, seconds)
            # One that was cut short says nothing of what more time would find.
            if decision.stop != Stop.TIME.value or seconds >= self.settings.budget:
                self.remembered.save(key, decision)
        self.reasons.append("steps" if decision.stop == Stop.STATES.value else "finished")
        if decision.stop == Stop.TIME.value:
            self.reasons.append("time")
        if decision.rules is None:
            ratio = decision.after / decision.before if decision.before else 1.0
            found = f"{decision.states} programs, the best {decision.kind} to take {ratio:.2f}"
            self._reject(sub, f"{found} of the time")
        return decision

    def _searched(self, sub: Subprogram, seconds: float) -> Decision:
        settings = replace(self.settings, budget=min(self.settings.budget, seconds))
        searcher = Searcher(Prices(sub.known, self.target), settings)
        result = searcher.search((sub.root,))
        before, chosen, after = sub.native, None, math.inf
        if self.measure is None:
            found = next(iter(result.best), None)
            after = math.inf if found is None else found.priced.seconds
            if found is not None and after < before * MARGIN:
                chosen = found
        else:
            before, chosen, after = self._measured(self.measure, sub, searcher, result.best)
        rules = None if chosen is None else tuple(chosen.state.rules())
        modelled = 0.0 if chosen is None else chosen.priced.seconds
        kind = "modelled" if self.measure is None else "measured"
        states = len(result.states)
        return Decision(rules, modelled, before, after, kind, result.stop.value, states)

    def _measured(
        self, measure: Measure, sub: Subprogram, searcher: Searcher, best: Sequence[Found]
    ) -> tuple[float, Found | None, float]:
        """Seconds as it stands, the program that won against that (if any), and its seconds."""
        op = find_scope(self.work.module, sub.names[0])
        known = weights_only(self.work.main.body.block.ops)
        programs, chosen = [isolate(op, known)[0]], list[Found | None]([None])
        for found in best:
            alone, copy = isolate(op, known)
            if apply_found(alone.module, copy, searcher, found) is not None:
                programs.append(alone)
                chosen.append(found)
        seconds = measure(programs, MEASURING)
        if len(seconds) == 1:
            return seconds[0], None, seconds[0]
        number = min(range(1, len(seconds)), key=seconds.__getitem__)
        wins = seconds[number] < seconds[0] * MARGIN
        return seconds[0], chosen[number] if wins else None, seconds[number]

    # --- the program ---

    def _rewritten(
        self, gains: Sequence[tuple[Subprogram, Decision]], quiet: bool = False
    ) -> Program:
        """A copy of the program with these subprograms replaced."""
        made = self.work.clone()
        pipelines: list[str] = []
        for sub, decision in gains:
            for name in sub.names:
                done = self._apply(made.module, sub, decision, name)
                if done is not None:
                    pipelines.append(done.pipeline)
                    if not quiet:
                        self._note(made.module, done, decision)
                elif not quiet:
                    reason = "what it reads was rewritten: the derivation does not fit any more"
                    place = where(find_scope(self.work.module, name))
                    self.rejected.append(Rejected("derive", place, reason))
        add_pipeline(made.module, ",".join(text for text in pipelines if text))
        run(made, FINISH)
        made.module.verify()
        return made

    def _apply(
        self, module: ModuleOp, sub: Subprogram, decision: Decision, name: str
    ) -> Done | None:
        assert decision.rules is not None
        op = find_scope(module, name)
        searcher = Searcher(Prices(sub.known, self.target), self.settings)
        return apply_rules(module, op, searcher, decision.rules, decision.modelled)

    def _note(self, module: ModuleOp, done: Done, decision: Decision) -> None:
        """Write down what was applied, each rule on its own; the library's forms as one."""
        place = where(find_scope(module, done.name))
        rules = [*done.found.state.rules(), "match"]
        proof = proof_of(done)
        delta = (decision.after - decision.before) / len(rules)
        self.applied += [Applied(f"derive {rule}", place, proof, delta) for rule in rules]


def proof_of(done: Done) -> Proof:
    """How the derived scope is known to equal the given one.

    Raises:
        UserError: it is not: a bug in a rule.
    """
    (root,) = done.found.state.roots
    proof = Prover().prove(done.root, root)
    if proof.equal is False:
        raise UserError(f"a derivation is wrong (a bug): {proof.method}", where=f"%{done.name}")
    return "exact" if proof.equal and proof.bound == 0.0 else "checked"


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
