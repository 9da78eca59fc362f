"""Mutants of mutants are the same program, and can be made again at another place."""

from collections.abc import Sequence
from functools import partial

import pytest

from isoform.compiler import api
from isoform.compiler.targets.levels import run_passes
from isoform.dialects.algebra import ScopeOp
from isoform.dialects.canonical_types import Scope
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation.derive import DERIVATION
from isoform.passes.derivation.lift import scope_ops
from isoform.passes.equivalence import compare
from isoform.passes.partial.alternatives import Deriver
from isoform.passes.partial.generate import Options
from isoform.passes.partial.mutate import modelled, tried
from isoform.passes.partial.rounds import MutationState, Rounds, replayed
from isoform.passes.partial.search import FoundCandidates, search_mutants

COSTS = Costs(target_named("v100"))
# The result has another name than the scope in the isolated program has.
TEXT = """
func.func @main(%x: tensor<1x4x6x6xf32>, %k: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %NAME = algebra.scope (n: 1, f: 4, h: 6, w: 6) sum (c: 4, r: 3, s: 3)
         %x[n, c, h + r - 1, w + s - 1] * %k[f, c, r, s] : tensor<1x4x6x6xf32>
  func.return %NAME : tensor<1x4x6x6xf32>
}
"""


def few(ops: Sequence[ScopeOp], roots: Sequence[Scope]) -> FoundCandidates:
    options = tried(ops, Options(depth=4, seconds=600.0))
    return search_mutants(roots, options, partial(modelled, costs=COSTS), 3, COSTS, 2)


def most_scopes(program: Program) -> float:
    """A price that every rewrite lowers: what counts here is that the rounds are right."""
    return -float(len(scope_ops(program.module)))


def explored(rounds: int) -> tuple[Program, list[MutationState]]:
    program = api.parse(TEXT.replace("NAME", "y"))
    return program, Rounds(few, most_scopes, rounds=rounds, keep=4).run(program, ["y"])


def check_replay(program: Program, state: MutationState) -> None:
    """Done again at another place, by name and by its passes, a state is the same program."""
    assert compare(program, state.program).kind == "equal"
    place = api.parse(TEXT.replace("NAME", "other"))
    done = replayed(program, ["y"], place, ["other"], state)
    assert all(name.startswith("other") for step in done for name in step.names)
    assert len(scope_ops(place.module)) == len(scope_ops(state.program.module))
    assert compare(program, place).kind == "equal"
    again = api.parse(TEXT.replace("NAME", "other"))
    run_passes(again, ",".join(step.pipeline for step in done))
    for op in scope_ops(place.module):
        op.attributes.pop(DERIVATION, None)
    assert str(again.module) == str(place.module)


def test_a_second_round_mutates_what_the_first_made() -> None:
    program, states = explored(2)
    assert len(states) == 4
    assert len(states[0].steps) == 2
    assert states[0].steps[0].names != states[0].steps[1].names
    assert states == sorted(states, key=lambda state: state.seconds)
    for state in states:
        assert compare(program, state.program).kind == "equal"
    check_replay(program, states[0])


def test_mutants_are_derived_from_and_what_is_derived_is_mutated() -> None:
    program = api.parse(TEXT.replace("NAME", "y"))
    deriver = Deriver(COSTS, 2)
    rounds = Rounds(few, most_scopes, rounds=2, keep=64, derive=deriver.alternatives)
    found: dict[tuple[bool, ...], MutationState] = {}
    for state in rounds.run(program, ["y"]):
        found.setdefault(tuple(step.alternative.rule == "mutate" for step in state.steps), state)
    for kinds in ((True, False), (False, True)):
        check_replay(program, found[kinds])


def test_what_is_rewritten_further_is_the_same_scope_elsewhere() -> None:
    program, states = explored(1)
    place = api.parse(TEXT.replace("NAME", "y").replace("r - 1", "r - 2"))
    with pytest.raises(UserError, match="no such scope"):
        replayed(program, ["y"], place, ["y"], states[0])
