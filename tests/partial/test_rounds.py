"""Mutants of mutants are the same program, and can be made again at another place."""

from collections.abc import Sequence
from functools import partial

from isoform.compiler import api
from isoform.compiler.levels import run_passes
from isoform.dialects.algebra import ScopeOp
from isoform.dialects.canonical_types import Scope
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost import Costs
from isoform.passes.derivation.lift import scope_ops
from isoform.passes.equivalence import compare
from isoform.passes.partial.generate import Options
from isoform.passes.partial.mutate import modelled, replay, tried
from isoform.passes.partial.rounds import Rounds, State, replayed
from isoform.passes.partial.search import Found, search_mutants

COSTS = Costs(target_named("v100"))
# The result has another name than the scope in the isolated program has.
TEXT = """
func.func @main(%x: tensor<1x4x6x6xf32>, %k: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %NAME = algebra.scope (n: 1, f: 4, h: 6, w: 6) sum (c: 4, r: 3, s: 3)
         %x[n, c, h + r - 1, w + s - 1] * %k[f, c, r, s] : tensor<1x4x6x6xf32>
  func.return %NAME : tensor<1x4x6x6xf32>
}
"""


def few(ops: Sequence[ScopeOp], roots: Sequence[Scope]) -> Found:
    options = tried(ops, Options(depth=4, seconds=30.0))
    return search_mutants(roots, options, partial(modelled, costs=COSTS), 3, COSTS, 2)


def most_scopes(program: Program) -> float:
    """A price that every rewrite lowers: what counts here is that the rounds are right."""
    return -float(len(scope_ops(program.module)))


def explored(rounds: int) -> tuple[Program, list[State]]:
    program = api.parse(TEXT.replace("NAME", "y"))
    return program, Rounds(few, most_scopes, rounds=rounds, keep=4).run(program, ["y"])


def test_a_second_round_mutates_what_the_first_made() -> None:
    program, states = explored(2)
    assert len(states) == 4
    assert len(states[0].steps) == 2
    assert states[0].steps[0].names != states[0].steps[1].names
    assert states == sorted(states, key=lambda state: state.seconds)
    for state in states:
        assert compare(program, state.program).kind == "equal"
    state = states[0]
    place = api.parse(TEXT.replace("NAME", "other"))
    done = replayed(program, ["y"], place, ["other"], state)
    assert all(name.startswith("other") for step in done for name in step.names)
    assert len(scope_ops(place.module)) == len(scope_ops(state.program.module))
    assert compare(program, place).kind == "equal"
    again = api.parse(TEXT.replace("NAME", "other"))
    run_passes(again, ",".join(replay(s.names, s.candidate, "v100") for s in done))
    assert again.module.is_structurally_equivalent(place.module)
