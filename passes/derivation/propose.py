"""Propose derived programs for contractions, and for pairs and groups that may become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.errors import UserError
from ...dialects.floats import GUARDED
from ...dialects.program import Program
from ...dialects.weights_only import weights_only
from ..cost.costs import Costs
from ..equivalence.prove import Prover
from ..margins import ACCEPT, PRUNE
from ..search_result import Limits, Measure, Proof, SearchResult, StopReason
from ..subprograms.driver import search_subprograms
from ..subprograms.find import Subprogram, chains, groups
from ..subprograms.prices import Prices
from ..subprograms.proposals import (
    AppliedRewrite,
    ChosenOccurrence,
    DoesNotFitError,
    Proposal,
    Proposals,
    Proposer,
)
from .apply_steps import find_scope
from .bound import least_of_program, least_of_scope
from .derive import FoundDerivation, apply_found, apply_rules, is_unchanged
from .flattening import ROWS
from .isolate import isolate_all
from .lift import program_of_scopes
from .parts import PARTS
from .rules import named
from .search import DerivationSettings, FoundProgram, Searcher, Stop
from .side_by_side import BATCH, SHARED
from .step import ProposalOptions
from .together import search_together

# A block of rows is a matrix that fills the register tiles many times over.
BLOCK = 128
SETTINGS = DerivationSettings(
    depth=3, states=1500, budget=20.0, keep=7, options=ProposalOptions(block=BLOCK)
)
# Two contractions need a derivation each before they merge; blocks of each would hide that.
PAIR = replace(SETTINGS, depth=5, states=4000, keep=200, options=ProposalOptions())
PAIR_KEEP = 4
_STOPS: dict[Stop, StopReason] = {Stop.TIME: "time", Stop.STATES: "steps"}


def search(
    program: Program, costs: Costs, limits: Limits, measure: Measure | None = None
) -> SearchResult:
    """Derive every subprogram of a program.

    Args:
        measure: median seconds of programs, run in turn; None if the target does not run here.
    """
    prices = Prices(costs if measure is None else with_winograd(costs), measure)
    return search_subprograms(program, [DerivationProposer(limits.steps)], limits, prices, PRUNE)


def with_winograd(costs: Costs) -> Costs:
    """Costs for measured programs: kernels are tuned, and `tune` uses Winograd where it wins."""
    convolutions = dict.fromkeys((*costs.target.convolutions, "winograd"))
    target = replace(costs.target, convolutions=tuple(convolutions))
    return Costs(target, costs.file, costs.fitted)


def settings_of(sub: Subprogram, settings: DerivationSettings) -> DerivationSettings:
    """Search limits of a subprogram."""
    if len(sub.roots) == 1:
        return replace(settings, regroup=len(sub.occurrences[0]) > 1)
    states = settings.states if settings.states < SETTINGS.states else PAIR.states
    return replace(PAIR, states=states, budget=settings.budget)


class DerivationProposer(Proposer):
    """Proposes the cheapest programs that rules derive.

    Args:
        steps: the limit of a search's states.
    """

    rule = "derive"

    def __init__(self, steps: int) -> None:
        self.settings = replace(SETTINGS, states=min(SETTINGS.states, steps))

    @property
    def alike(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Measured, programs within noise of the fastest are alike; modelled, none is."""
        return 1.0 if self.search.prices.measure is None else ACCEPT.alike_derivations

    @property
    def key(self) -> str:
        """The bounds of a search."""
        return f"{self.settings.depth} {self.settings.states} {self.settings.keep}"

    def together(self) -> Sequence[Subprogram]:
        """Pairs and groups of contractions, and contractions of contractions."""
        module, prices = self.search.work.module, self.search.prices.scopes
        return [*groups(module, prices), *chains(module, prices)]

    def why_not(self, sub: Subprogram) -> str | None:
        """Whether every possible saving is noise or too small; models have no such limit."""
        if self.search.prices.measure is None:
            return None
        members, baselines = self.search.members(sub), self.search.baselines
        least = baselines.least_seconds(sum(least_of_scope(one.root) for one in members))
        return self.search.idle(
            "nothing derived", sub, sum(map(baselines.known_seconds, members)), least
        )

    def least(self, sub: Subprogram) -> float:
        """The time of its fewest operations at the machine's peak."""
        return self.search.baselines.least_seconds(least_of_scope(sub.root))

    def propose(self, sub: Subprogram, seconds: float) -> Proposals:
        """The cheapest programs by the model; for a pair, those that merge it."""
        settings = settings_of(sub, self.settings)
        settings = replace(settings, budget=min(settings.budget, seconds))
        searcher = Searcher(self.search.prices.scopes(sub.known), settings)
        alone = len(sub.roots) == 1
        result = searcher.search(sub.roots) if alone else search_together(searcher, sub.roots)
        best = result.best if len(sub.roots) == 1 else merged(result.best)[:PAIR_KEEP]
        if self.search.prices.measure is not None and len(sub.roots) == 1:
            op = find_scope(self.search.work.module, sub.occurrences[0][0])
            best = [found for found in best if not is_unchanged(found, op)]
        return Proposals(
            sub.native,
            [self._proposal(sub, searcher, found, best[0]) for found in best],
            f"{len(result.states)} program{'' if len(result.states) == 1 else 's'}",
            _STOPS.get(result.stop, "finished"),
            repeatable=result.stop is not Stop.TIME or seconds >= self.settings.budget,
        )

    def _proposal(
        self, sub: Subprogram, searcher: Searcher, found: FoundProgram, cheapest: FoundProgram
    ) -> Proposal:
        def write() -> Program | None:
            work = self.search.work
            ops = [find_scope(work.module, name) for name in sub.occurrences[0]]
            ops, inside = ops[: len(sub.roots)], ops[len(sub.roots) :]
            known = weights_only(work.main.body.block.ops)
            program, copies = isolate_all(ops, known, inside=inside)
            read = [v.owner for v in copies[0].inputs] if inside else []
            opened = [owner for owner in read if isinstance(owner, ScopeOp)]
            done = apply_found(program.module, copies, searcher, found, opened)
            return None if done is None else program

        least = 0.0
        if self.search.prices.measure is not None:
            operations = least_of_program(found.state.roots, found.priced, searcher.prices)
            least = self.search.baselines.least_seconds(operations)
        trail = found.state.trail()
        # Of programs that measure alike: those modelled to be fast, then the shortest derivation.
        slow = found.priced.seconds > cheapest.priced.seconds * ACCEPT.alike_models
        return Proposal(trail, found.priced.seconds, write, least, rank=(slow, len(trail)))

    def apply(self, module: ModuleOp, choice: ChosenOccurrence) -> AppliedRewrite:
        """Apply the rules again; each is named separately, the library's forms together."""
        decision = choice.decision
        assert decision.trail is not None
        ops = [find_scope(module, name) for name in choice.names]
        settings = settings_of(choice.sub, self.settings)
        searcher = Searcher(self.search.prices.scopes(choice.sub.known), settings)
        ops, inside = ops[: len(choice.sub.roots)], ops[len(choice.sub.roots) :]
        done = apply_rules(module, ops, searcher, decision.trail, decision.modelled, inside)
        if done is None:
            reason = "what it reads was rewritten: the derivation does not fit any more"
            raise DoesNotFitError(reason)
        rules = [(f"derive {rule}", named(rule).floats) for rule in done.found.state.rules()]
        rules.append(("derive match", GUARDED))
        states = done.found.state.path()[1:]
        steps = [text_of_roots(state.roots) for state in states]
        return AppliedRewrite(done.pipeline, rules, proof_of(done), steps)

    def variants(self, choices: Sequence[ChosenOccurrence]) -> Sequence[Sequence[ChosenOccurrence]]:
        """Only gains above noise, or only large ones: a small one may cost its neighbours more."""
        found: list[Sequence[ChosenOccurrence]] = []
        for most in (ACCEPT.subprogram, ACCEPT.strong):
            large = [p for p in choices if p.decision.after < most * p.decision.before]
            if 0 < len(large) < len(choices) and large not in found:
                found.append(large)
        return found


def text_of_roots(roots: Sequence[Scope]) -> str:
    """The scopes that a derivation has come to, as a program of their leaves."""
    return "\n".join(line[2:] for line in str(program_of_scopes(roots)).splitlines()[1:-1])


def merged(found: Sequence[FoundProgram]) -> list[FoundProgram]:
    """The programs in which two contractions have become one."""
    return [f for f in found if {SHARED, BATCH, PARTS, ROWS} & set(f.state.rules())]


def proof_of(done: FoundDerivation) -> Proof:
    """How the derived scopes are known to equal the given ones.

    Raises:
        UserError: they are not equal: a bug in a rule.
    """
    exact = True
    for name, given, root in zip(done.names, done.roots, done.found.state.roots, strict=True):
        proof = Prover().prove(given, root)
        if proof.equal is False:
            raise UserError(f"a derivation is wrong (a bug): {proof.method}", where=f"%{name}")
        exact = exact and bool(proof.equal) and proof.bound == 0.0
    return "exact" if exact else "checked"
