"""Rounds of mutation: the contractions of a mutant may be mutated again.

The states are programs, in a heap of the cheapest few. A round takes each new one and rewrites each
of its contractions by its best mutants; a mutant's product and its corrections are contractions,
too. With more than one round, each also rewrites by the rules of derivation, whose programs are
fully equivalent: a mutant is derived from, and derived programs are mutated. Views that then read
views are merged after a round (`FINISH`).

Source: PET, section 4 (mutants of mutants, a heap of the best K programs) and its joint search of
fully and partially equivalent programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.context import WeightContext
from ...dialects.errors import UserError
from ...dialects.program import Program, main_of
from ...dialects.weights_only import weights_only
from ...lowering.algebra_to_kernel import AlgebraToKernel
from ..copies.algebra_inline_copies import AlgebraInlineCopies
from ..copies.algebra_sink_copies import AlgebraSinkCopies
from ..cost.costs import Costs
from ..derivation.apply_steps import find_scope
from ..derivation.lift import scope_names, scope_ops
from ..derivation.search import is_contraction
from ..fusion.fuse_kernels import FuseKernels
from ..margins import ACCEPT
from ..merge_equal import MergeEqual
from ..work_clock import charge, now
from .alternatives import Mutation, ScopeAlternative
from .apply import lifted
from .search import Candidate, FoundCandidates

# Views of consecutive mutants meet across elementwise scopes, and cancel if they are inverses.
FINISH: tuple[ModulePass, ...] = (
    AlgebraSinkCopies(),
    AlgebraInlineCopies(),
    MergeEqual(),
    DeadCodeElimination(),
)
# Mutants of one contraction that become states, and programs derived from it.
EACH = 4
# What pricing a program takes.
_SECONDS_A_PROGRAM = 0.02

SearchScopes = Callable[[Sequence[ScopeOp], Sequence[Scope]], FoundCandidates]
"""The mutants of some ops, whose canonical forms are given too."""


Derive = Callable[[ModuleOp, str], Sequence[ScopeAlternative]]
"""What rules derive from the contraction of a name."""


@dataclass(frozen=True)
class ScopeRewrite:
    """Scopes by name, their replacement, and the passes that repeat it."""

    names: tuple[str, ...]  # of the scopes
    alternative: ScopeAlternative  # that replaces them
    pipeline: str  # passes that repeat it


@dataclass(frozen=True)
class MutationState:
    """A program, its cost, and the rewrites that made it.

    Units: seconds are modelled.
    """

    program: Program
    seconds: float
    steps: tuple[ScopeRewrite, ...] = ()

    @property
    def text(self) -> tuple[str, ...]:
        """The rewrites as text: among states with equal cost the first is taken."""
        return tuple(f"{step.names} {step.alternative.text}" for step in self.steps)

    @property
    def trail(self) -> tuple[tuple[str, str], ...]:
        """The rule of each rewrite, and a key that identifies its use."""
        known = [(step.alternative.rule, step.alternative.trail) for step in self.steps]
        at = ["", *(f"{' '.join(step.names)} " for step in self.steps[1:])]
        return tuple((rule, place + text) for (rule, text), place in zip(known, at, strict=True))


def cancels_first(state: MutationState) -> tuple[bool, tuple[str, ...]]:
    """Orders equally fast states: first those whose views cancel, then by text, so that
    neighbours take the same.
    """
    return not all(step.alternative.reorders for step in state.steps), state.text


def preferred(states: Sequence[MutationState]) -> MutationState | None:
    """Among the states as fast as the fastest, one whose views cancel with others'."""
    least = min((state.seconds for state in states), default=0.0)
    close = [state for state in states if state.seconds <= least * ACCEPT.alike_mutants]
    return min(close, key=cancels_first, default=None)


@dataclass
class Rounds:
    """An exploration.

    Attributes:
        search: the mutants of some scopes, and each as an alternative.
        price: modelled seconds of a program.
        rounds: most rewrites on the way to a program; keep: states that a round leaves.
        derive: what rules derive from a contraction; None for mutants alone.
        end: on the clock of searches, after which a round stops; cut: whether it did.
        found: results of the searches of distinct scopes; derived: and of the rules.
    """

    search: SearchScopes
    price: Callable[[Program], float]
    alternative: Callable[[Candidate], ScopeAlternative] = Mutation
    rounds: int = 2
    keep: int = 8
    derive: Derive | None = None
    end: float = math.inf
    cut: bool = False
    found: dict[tuple[Scope, ...], FoundCandidates] = field(
        default_factory=dict[tuple[Scope, ...], FoundCandidates]
    )

    def run(self, program: Program, names: Sequence[str]) -> list[MutationState]:
        """The cheapest programs, cheapest first, with the given one.

        Args:
            names: of scopes that the first round computes as one, or of one scope.
        """
        self.cut = False
        given = MutationState(program, self.price(program))
        fresh = self._expanded(given, tuple(names))
        heap = self._best([given, *fresh])
        for _ in range(self.rounds - 1):
            fresh = [state for state in fresh if state in heap]
            made = [s for state in fresh for s in self._rewritten(state)]
            heap, fresh = self._best([*heap, *made]), made
        return heap

    def first(self, ops: Sequence[ScopeOp]) -> FoundCandidates:
        """The result of the search of these ops, which were searched."""
        module = ops[0].get_toplevel_object()
        assert isinstance(module, ModuleOp)
        return self.found[tuple(lifted(module, ops)[0])]

    def _best(self, states: Sequence[MutationState]) -> list[MutationState]:
        """The cheapest; among equal prices and texts the first."""
        seen: dict[str, MutationState] = {}
        for state in sorted(states, key=lambda s: (s.seconds, len(s.steps), s.text)):
            seen.setdefault(str(state.program.module), state)
        return list(seen.values())[: self.keep]

    def _rewritten(self, state: MutationState) -> list[MutationState]:
        """A state's program with any one of its contractions rewritten."""
        module = state.program.module
        known = weights_only(main_of(module).body.block.ops)
        names = scope_names(module)
        made: list[MutationState] = []
        for op in scope_ops(module):
            if op.result in known:
                continue
            if now() >= self.end:
                self.cut = True
                break
            if is_contraction(lifted(module, [op])[0][0]):
                made += self._expanded(state, (names[op],))
        return made

    def _expanded(self, state: MutationState, names: tuple[str, ...]) -> list[MutationState]:
        """A state's program with these scopes rewritten by each of the best alternatives."""
        made: list[MutationState] = []
        for alternative in self._alternatives(state.program.module, names):
            if made and now() >= self.end:
                self.cut = True
                break
            program = state.program.clone()
            try:
                _, pipeline = alternative.apply(program.module, names)
            except UserError:
                continue
            steps = (*state.steps, ScopeRewrite(names, alternative, pipeline))
            charge(_SECONDS_A_PROGRAM)
            made.append(MutationState(program, self.price(program), steps))
        return made

    def _alternatives(self, module: ModuleOp, names: tuple[str, ...]) -> list[ScopeAlternative]:
        ops = [find_scope(module, name) for name in names]
        roots, _ = lifted(module, ops)
        key = tuple(roots)
        if key not in self.found:
            self.found[key] = self.search(ops, roots)
        alternatives = [
            self.alternative(candidate) for candidate in self.found[key].candidates[:EACH]
        ]
        if self.derive is not None and len(names) == 1 and is_contraction(roots[0]):
            alternatives += self.derive(module, names[0])
        return alternatives


def replayed(
    program: Program, names: Sequence[str], target: Program, at: Sequence[str], state: MutationState
) -> list[ScopeRewrite]:
    """Apply a state's rewrites to the scopes named `at` of another program.

    Args:
        program: the program the state began with, whose scopes `names` correspond to `at` in
            `target`.

    Returns the rewrites, by the names of `target`.

    Raises:
        UserError: a rewrite does not fit there; `target` may be changed.
    """
    own, known = program.clone(), dict(zip(names, at, strict=True))
    done: list[ScopeRewrite] = []
    for step in state.steps:
        there = tuple(known[name] for name in step.names if name in known)
        if len(there) < len(step.names) or _roots(own, step.names) != _roots(target, there):
            raise UserError("what is rewritten further is no such scope here", where=f"%{at[0]}")
        here, _ = step.alternative.apply(own.module, step.names)
        new, pipeline = step.alternative.apply(target.module, there)
        own_names, target_names = scope_names(own.module), scope_names(target.module)
        # The last copy of a derived program disappears where its readers read through it.
        known |= {own_names[a]: target_names[b] for a, b in zip(here, new, strict=False)}
        done.append(ScopeRewrite(there, step.alternative, pipeline))
    return done


def _roots(program: Program, names: Sequence[str]) -> list[Scope]:
    """The forms of scopes, independent of the names of their operands."""
    return lifted(program.module, [find_scope(program.module, name) for name in names])[0]


def finished(program: Program) -> Program:
    """A copy in which views of views are merged, and views that cancel are gone."""
    made = program.clone()
    context = WeightContext(weights=made.weights)
    for one in FINISH:
        one.apply(context, made.module)
    return made


def priced(program: Program, costs: Costs) -> float:
    """Modelled seconds of a program of scopes, as lowered."""
    made = finished(program)
    context = WeightContext(weights=made.weights)
    AlgebraToKernel().apply(context, made.module)
    FuseKernels().apply(context, made.module)
    return costs.program(made).seconds
