"""Propose corrected mutants for contractions, for groups that share an operand, and for sums.

A contraction is not searched if no mutant can gain: its product already takes as long as its bound
at the machine's peak. With several rounds, rules may still derive from it. Only the whole programs
show what a mutant's views save at neighbouring contractions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.errors import UserError
from ...dialects.floats import GUARDED
from ...dialects.program import Program
from ...dialects.weights_only import weights_only
from ..copies.algebra_gather_sums import AlgebraGatherSums, added_contractions
from ..cost.costs import Costs
from ..derivation.apply_steps import find_scope
from ..derivation.bound import has_fast_form, least_of_scope
from ..derivation.isolate import isolate_all
from ..derivation.lift import scope_names
from ..margins import ACCEPT, MEASURE, PRUNE_MUTATION
from ..search_result import Limits, Measure, Proof, SearchResult, StopReason
from ..subprograms.decisions import Decision, Trail
from ..subprograms.driver import search_subprograms
from ..subprograms.find import Key, Subprogram, groups, weight
from ..subprograms.prepare import run
from ..subprograms.prices import Prices
from ..subprograms.proposals import (
    AppliedRewrite,
    ChosenOccurrence,
    DoesNotFitError,
    Proposal,
    Proposals,
    Proposer,
)
from ..subprograms.state import SearchState
from ..work_clock import now
from . import rounds
from .alternatives import Deriver, Mutation, renumbered
from .apply import RULE, as_given, lifted
from .bound import is_plain, is_regular, least_modelled
from .chains import neighbours
from .generate import GenerationCounts, Kinds, Options
from .mutate import modelled, tried
from .rounds import EACH, FINISH, MutationState, Rounds, ScopeRewrite, cancels_first
from .search import Candidate, FoundCandidates, groupable, named_mutant, search_mutants


@dataclass(frozen=True)
class MutationSettings:
    """Limits of a search.

    Attributes:
        depth: operators of a mutant; keep: states of a round.
        rounds: successive rewrites; with several, rules derive, too.
        seconds: of generation for one subprogram.
        most: mutants of it that are corrected and priced.
        kinds: which mutants are taken: exact ones, the others, or both.
        forms: allowed forms of corrections; None for all.
        together: whether contractions are also searched in groups.
    """

    depth: int = 4
    rounds: int = 1
    keep: int = 8
    seconds: float = 10.0
    most: int = 24
    kinds: Kinds = "both"
    forms: tuple[str, ...] | None = None
    together: bool = True


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
    proposer = MutationProposer(settings or MutationSettings())
    return search_subprograms(program, [proposer], limits, Prices(costs, measure), PRUNE_MUTATION)


@dataclass(frozen=True)
class ExploredSubprogram:
    """A subprogram alone, its scopes' names in it, and the candidates."""

    alone: Program
    names: tuple[str, ...]
    state: MutationState


class MutationProposer(Proposer):
    """Proposes the cheapest corrected mutants."""

    rule = RULE
    alike = ACCEPT.alike_mutants
    finish = FINISH

    def __init__(self, settings: MutationSettings) -> None:
        self.settings = settings
        self.stop: StopReason = "finished"
        self.explored: dict[tuple[Key, Trail], ExploredSubprogram] = {}
        self.reasons: dict[Key, str | None] = {}

    @property
    def key(self) -> str:
        """The settings and the seed."""
        return f"{asdict(self.settings)} {self.search.limits.seed}"

    def begin(self, search: SearchState) -> None:
        """Add scopes that hold the contractions that one scope adds."""
        self.search, self.costs = search, search.prices.costs
        self.measured = search.prices.measure is not None
        several = self.settings.rounds > 1
        self.rounds = Rounds(
            self._mutants,
            partial(rounds.priced, costs=self.costs),
            self._alternative,
            self.settings.rounds,
            self.settings.keep,
            Deriver(self.costs, EACH, search.end).alternatives if several else None,
            search.end,
        )
        # For subprograms that no mutant improves, but rules may.
        self.rules = replace(self.rounds, search=no_mutants, found={})
        if self.settings.together:
            run(search.work, (AlgebraGatherSums(),))
            names = scope_names(search.work.module)
            for op in names:
                if parts := added_contractions(op):
                    search.parts[names[op]] = tuple(names[part] for part in parts)

    def _alternative(self, candidate: Candidate) -> Mutation:
        return Mutation(candidate, self.costs.target.name, self.settings.depth)

    # --- which subprograms ---

    def together(self) -> Sequence[Subprogram]:
        """Groups that can be one product, and sums of contractions."""
        if not self.settings.together:
            return ()
        found = groups(self.search.work.module, self.search.prices.scopes)
        return [*(s for s in found if groupable([r.shape for r in s.roots])), *self._sums()]

    def _sums(self) -> Sequence[Subprogram]:
        """Contractions that one scope adds; equal ones as one subprogram."""
        found: dict[Key, Subprogram] = {}
        module = self.search.work.module
        native = {name: sub.native for sub in self.search.singles for name in sub.names}
        for name, parts in self.search.parts.items():
            if all(part in native for part in parts):
                roots, lift = lifted(module, [find_scope(module, name)])
                seconds = sum(native[part] for part in parts)
                sub = Subprogram(tuple(roots), tuple(lift.known()), seconds)
                found.setdefault(sub.key, sub).occurrences.append((name,))
        return sorted(found.values(), key=lambda s: -weight(s))

    def why_not(self, sub: Subprogram) -> str | None:
        """Why no mutant could gain; None if rules may derive from it."""
        if sub.key not in self.reasons:
            self.reasons[sub.key] = self._cannot_gain(sub)
        return None if self._only_derived(sub) else self.reasons[sub.key]

    def _only_derived(self, sub: Subprogram) -> bool:
        derives = self.rules.derive is not None and sub in self.search.singles
        return derives and self.reasons[sub.key] is not None

    def _cannot_gain(self, sub: Subprogram) -> str | None:
        module, members = self.search.work.module, self.search.members(sub)
        if self.costs.target.runs_here and len(members) == 1:
            op = find_scope(module, members[0].occurrences[0][0])
            # The same work in other images; a core is used equally well by any of them.
            if is_regular(op):
                return "it is regular: another shape gains nothing here"
            if is_plain(op) and not has_fast_form(sub.root):
                return "its windows fit no faster algorithm in any shape: that gains nothing here"
        before = sum(map(self.search.baselines.seconds, members))
        if self.measured:
            operations = sum(least_of_scope(m.root, one_product=True) for m in members)
            least = self.search.baselines.least_seconds(operations)
        elif len(members) == 1:
            (one,) = members
            least = least_modelled(find_scope(module, one.names[0]), one.root, self.costs)
            # Priced as lowered: derivation's price may include other copies.
            before = modelled([one.root], self.costs)
        else:
            least = None
        return None if least is None else self.search.idle("no mutant", sub, before, least)

    # --- one subprogram ---

    def propose(self, sub: Subprogram, seconds: float) -> Proposals:
        """The cheapest states of the rounds of mutation."""
        ops = [find_scope(self.search.work.module, name) for name in sub.occurrences[0]]
        only = self._only_derived(sub)
        alone, names = self._alone(sub)
        copies = [find_scope(alone.module, name) for name in names]
        explored = self.rules if only else self.rounds
        self.stop = "finished"
        before, heap = explored.price(alone), explored.run(alone, names)
        if explored.cut:
            self.stop = "time"
        states = [state for state in heap if state.steps]
        parts = [part for op in ops for part in added_contractions(op)]
        several = len(ops) + len(parts) > 1
        looked = "only derived" if only else self._looked(copies)
        if self.measured and several and states and states[0].seconds >= before * ACCEPT.subprogram:
            looked += f", the best modelled to take {states[0].seconds / before:.2f} of the time"
            states = []
        states = states[: MEASURE.mutants] if self.measured else states
        return Proposals(
            before,
            [self._proposal(sub, ExploredSubprogram(alone, names, state)) for state in states],
            looked,
            self.stop,
            "only derived" if only else "searched",
            repeatable=self.stop != "time",  # by the clock: a busy machine finds less
        )

    def _alone(self, sub: Subprogram) -> tuple[Program, tuple[str, ...]]:
        """A subprogram as a program, and its scopes' names there."""
        work = self.search.work
        ops = [find_scope(work.module, name) for name in sub.occurrences[0]]
        inside = [part for op in ops for part in added_contractions(op)]
        alone, copies = isolate_all(ops, weights_only(work.main.body.block.ops), inside=inside)
        names = scope_names(alone.module)
        return alone, tuple(names[copy] for copy in copies)

    def _proposal(self, sub: Subprogram, explored: ExploredSubprogram) -> Proposal:
        state = explored.state
        trail = state.trail
        self.explored[sub.key, trail] = explored
        return Proposal(
            trail,
            state.seconds,
            lambda: rounds.finished(state.program),
            rank=cancels_first(state),
            repeatable=len(trail) == 1 and isinstance(state.steps[0].alternative, Mutation),
        )

    def _mutants(self, ops: Sequence[ScopeOp], roots: Sequence[Scope]) -> FoundCandidates:
        left = max(self.search.left(), 0.0)
        made, price = self.settings, partial(modelled, costs=self.costs)
        seconds = min(left / 2, made.seconds)
        seed = self.search.limits.seed
        options = Options(depth=made.depth, seconds=seconds, kinds=made.kinds, seed=seed)
        if made.forms is not None:
            options = replace(options, forms=made.forms)
        # After one round without measurements only gains are taken.
        last = not self.measured and made.rounds == 1
        module = ops[0].get_toplevel_object()
        assert isinstance(module, ModuleOp)
        given = price(as_given(module, ops)[0])
        below = given * (ACCEPT.subprogram if last else MEASURE.mutant)
        found = search_mutants(
            roots, tried(ops, options), price, made.most, self.costs, EACH, below
        )
        if found.count.stopped != "finished":
            self.stop = found.count.stopped
        return found

    def _looked(self, ops: Sequence[ScopeOp]) -> str:
        found = self.rounds.first(ops)
        stopped = found.count.stopped
        cut = "" if stopped == "finished" else f" when it stopped for {stopped}"
        kept = f"{found.count.kept} of them mostly right"
        return f"{found.count.products} mutants{cut}, {kept}, {found.priced} corrected and priced"

    # --- the program ---

    def apply(self, module: ModuleOp, choice: ChosenOccurrence) -> AppliedRewrite:
        """Apply the state's rewrites at the occurrence."""
        found = self._explored(choice)
        program = Program(module, self.search.work.weights)
        try:
            steps = rounds.replayed(found.alone, found.names, program, choice.names, found.state)
        except UserError as error:
            raise DoesNotFitError(str(error)) from error
        proofs: list[Proof] = [step.alternative.proof for step in steps]
        proof: Proof = "checked" if "checked" in proofs else "exact"
        rule = ", ".join(step.alternative.rule for step in steps)
        return AppliedRewrite(",".join(step.pipeline for step in steps), [(rule, GUARDED)], proof)

    def _explored(self, choice: ChosenOccurrence) -> ExploredSubprogram:
        """The state of a trail; if another process found it, it is searched again by its name.

        Raises DoesNotFitError.
        """
        trail = choice.decision.trail
        assert trail is not None
        if (choice.sub.key, trail) not in self.explored:
            form, _, mutant = trail[0][1].partition(": ")
            made = self._named(choice.sub, mutant, form, self.settings.seconds)
            if made is None:
                raise DoesNotFitError(f"there is no mutant '{mutant}' any more")
            self.explored[choice.sub.key, trail] = made
        return self.explored[choice.sub.key, trail]

    def _named(
        self, sub: Subprogram, mutant: str, form: str, seconds: float, also: str = ""
    ) -> ExploredSubprogram | None:
        """A subprogram as a mutant of that name; None if it has none."""
        alone, names = self._alone(sub)
        copies = [find_scope(alone.module, name) for name in names]
        options = tried(copies, Options(self.settings.depth, seconds=seconds))
        same = named_mutant(
            lifted(alone.module, copies)[0], options, mutant, form, self.costs, also=also
        )
        if same is None:
            return None
        alternative = self._alternative(same)
        state = MutationState(
            alone, 0.0, (ScopeRewrite(names, alternative, alternative.replay(names)),)
        )
        return ExploredSubprogram(alone, names, state)

    def variants(self, choices: Sequence[ChosenOccurrence]) -> Sequence[Sequence[ChosenOccurrence]]:
        """Neighbouring contractions turned into the same mutants."""
        longer = list(self._beside(choices))
        return [[*choices, *longer]] if longer else []

    def _beside(self, choices: Sequence[ChosenOccurrence]) -> Iterator[ChosenOccurrence]:
        beside = neighbours(self.search.work.module)
        of = {name: sub for sub in self.search.singles for name in sub.names}
        done = {part for choice in choices for part in self.search.contractions(choice.names)}
        queue = [
            (choice.names[0], alternative)
            for choice in choices
            if (alternative := self._one_mutant(choice))
        ]
        known: dict[tuple[int, str], Decision | None] = {}
        for name, candidate in queue:
            for other in sorted(beside.get(name, set()) - done):
                sub = of.get(other)
                if sub is None or now() > self.search.end:
                    continue
                key = id(sub), candidate.mutant.name
                if key not in known:
                    known[key] = self._alike(sub, candidate)
                if (decision := known[key]) is not None:
                    done.add(other)
                    queue.append((other, candidate))
                    yield ChosenOccurrence(sub, decision, (other,))

    def _one_mutant(self, choice: ChosenOccurrence) -> Candidate | None:
        """The mutant that one scope becomes, if that is its only rewrite."""
        try:
            state = self._explored(choice).state
        except DoesNotFitError:
            return None
        alternative = state.steps[0].alternative
        one = len(choice.names) == len(state.steps) == 1 and isinstance(alternative, Mutation)
        return alternative.candidate if one and isinstance(alternative, Mutation) else None

    def _alike(self, sub: Subprogram, candidate: Candidate) -> Decision | None:
        """The decision to use the same mutant for a contraction; None if it has none."""
        if is_regular(find_scope(self.search.work.module, sub.occurrences[0][0])):
            return None
        mutant = candidate.mutant.name
        seconds = min(self.settings.seconds, max(self.search.left(), 0.0))
        made = self._named(sub, mutant, candidate.form, seconds, renumbered(mutant))
        if made is None:
            return None
        trail = made.state.trail
        self.explored[sub.key, trail] = made
        return Decision(trail, 0.0, 0.0, 0.0, "modelled", "finished", proposer=self.rule)

    def order(self, programs: Sequence[Program]) -> Sequence[int]:
        """By the model."""
        if len(programs) < 2:
            return range(len(programs))
        seconds = [rounds.priced(program, self.costs) for program in programs]
        return sorted(range(len(programs)), key=seconds.__getitem__)


def no_mutants(ops: Sequence[ScopeOp], roots: Sequence[Scope]) -> FoundCandidates:
    """Look at none."""
    return FoundCandidates((), GenerationCounts(), 0)
