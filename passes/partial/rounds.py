"""Rounds of mutation: what a mutant is made of may itself be mutated.

The states are programs, in a heap of the cheapest few. A round takes each of them that is new and
rewrites each of its contractions by its best mutants; a mutant's product and its corrections are
contractions, too. Views that then read views are one after a round (`FINISH`).

Source: PET, section 4 (mutants of mutants, a heap of the best K programs).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from ...dialects.algebra import ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.context import WeightContext
from ...dialects.program import Program, main_of
from ...lowering.algebra_to_kernel import AlgebraToKernel
from ..algebra_inline_copies import AlgebraInlineCopies
from ..algebra_sink_copies import AlgebraSinkCopies
from ..cost import Costs
from ..derivation.by_hand import find_scope
from ..derivation.lift import scope_names, scope_ops
from ..derivation.search import is_contraction
from ..fuse_kernels import FuseKernels
from ..weights_only import weights_only
from .apply import apply_to, lifted
from .search import Candidate, Found

# Views of consecutive mutants meet across what is elementwise, and cancel where they are inverses.
FINISH: tuple[ModulePass, ...] = (
    AlgebraSinkCopies(),
    AlgebraInlineCopies(),
    CommonSubexpressionElimination(),
    DeadCodeElimination(),
)
# Mutants of one contraction that become states.
EACH = 4

SearchScopes = Callable[[Sequence[ScopeOp], Sequence[Scope]], Found]
"""The mutants of some ops, whose canonical forms are given too."""


@dataclass(frozen=True)
class Rewrite:
    """Scopes by name, and what they were computed by."""

    names: tuple[str, ...]
    candidate: Candidate


@dataclass(frozen=True)
class State:
    """A program, what it costs, and the rewrites that made it.

    Units: seconds are modelled.
    """

    program: Program
    seconds: float
    steps: tuple[Rewrite, ...] = ()

    @property
    def text(self) -> tuple[str, ...]:
        """The rewrites as text: of states that cost the same the first is taken."""
        return tuple(f"{step.names} {step.candidate.mutant.name}" for step in self.steps)


@dataclass
class Rounds:
    """An exploration.

    Attributes:
        search: the mutants of some scopes.
        price: modelled seconds of a program.
        rounds: mutations on the way to a program, at most; keep: states that a round leaves.
        found: what the searches of distinct scopes gave.
    """

    search: SearchScopes
    price: Callable[[Program], float]
    rounds: int = 2
    keep: int = 8
    found: dict[tuple[Scope, ...], Found] = field(default_factory=dict[tuple[Scope, ...], Found])

    def run(self, program: Program, names: Sequence[str]) -> list[State]:
        """The cheapest programs, the given one among them, the cheapest first.

        Args:
            names: of scopes that the first round computes as one, or of one scope.
        """
        given = State(program, self.price(program))
        fresh = self._expanded(given, tuple(names))
        heap = self._best([given, *fresh])
        for _ in range(self.rounds - 1):
            fresh = [state for state in fresh if state in heap]
            made = [s for state in fresh for s in self._rewritten(state)]
            heap, fresh = self._best([*heap, *made]), made
        return heap

    def first(self, ops: Sequence[ScopeOp]) -> Found:
        """What the search of ops found; they were searched."""
        module = ops[0].get_toplevel_object()
        assert isinstance(module, ModuleOp)
        return self.found[tuple(lifted(module, ops)[0])]

    def _best(self, states: Sequence[State]) -> list[State]:
        """The cheapest; of those of one price and one text the first."""
        seen: dict[str, State] = {}
        for state in sorted(states, key=lambda s: (s.seconds, len(s.steps), s.text)):
            seen.setdefault(str(state.program.module), state)
        return list(seen.values())[: self.keep]

    def _rewritten(self, state: State) -> list[State]:
        """A state's program with any one of its contractions rewritten."""
        module = state.program.module
        known = weights_only(main_of(module).body.block.ops)
        names = scope_names(module)
        made: list[State] = []
        for op in scope_ops(module):
            if op.result in known or not names[op]:
                continue
            if is_contraction(lifted(module, [op])[0][0]):
                made += self._expanded(state, (names[op],))
        return made

    def _expanded(self, state: State, names: tuple[str, ...]) -> list[State]:
        module = state.program.module
        ops = [find_scope(module, name) for name in names]
        roots, _ = lifted(module, ops)
        key = tuple(roots)
        if key not in self.found:
            self.found[key] = self.search(ops, roots)
        made: list[State] = []
        for candidate in self.found[key].candidates[:EACH]:
            program = state.program.clone()
            apply_to(program.module, [find_scope(program.module, n) for n in names], candidate)
            steps = (*state.steps, Rewrite(names, candidate))
            made.append(State(program, self.price(program), steps))
        return made


def replayed(
    program: Program, names: Sequence[str], place: Program, at: Sequence[str], state: State
) -> list[Rewrite]:
    """Do to the scopes named `at` of a program what a state did to those of its own.

    Args:
        program: what the state began with, whose scopes `names` are those `at` of `place`.

    Returns the rewrites, by the names of `place`.
    """
    own, known = program.clone(), dict(zip(names, at, strict=True))
    done: list[Rewrite] = []
    for step in state.steps:
        there = tuple(known[name] for name in step.names)
        pairs = (own, step.names), (place, there)
        here, new = (
            apply_to(p.module, [find_scope(p.module, n) for n in its], step.candidate)
            for p, its in pairs
        )
        own_names, place_names = scope_names(own.module), scope_names(place.module)
        known |= {own_names[a]: place_names[b] for a, b in zip(here, new, strict=True)}
        done.append(Rewrite(there, step.candidate))
    return done


def finished(program: Program) -> Program:
    """A copy in which views of views are one, and views that cancel are gone."""
    made = program.clone()
    context = WeightContext(weights=made.weights)
    for one in FINISH:
        one.apply(context, made.module)
    return made


def priced(program: Program, costs: Costs) -> float:
    """Modelled seconds of a program of scopes, as it would be lowered."""
    made = finished(program)
    context = WeightContext(weights=made.weights)
    AlgebraToKernel().apply(context, made.module)
    FuseKernels().apply(context, made.module)
    return costs.program(made).seconds
