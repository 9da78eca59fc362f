"""The paper's derivations are found by search, at the paper's shapes, and are right."""

import pytest

from isoform.dialects.canonical_types import Scope
from isoform.passes.derivation.instantiate import instantiate
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.replace import Replacer
from isoform.passes.derivation.search import DerivationSettings, DerivationState, Searcher, Stop
from isoform.passes.equivalence.prove import Prover
from isoform.testing.derivation_cases import Case, all_cases, constants

CASES = all_cases()


def find(case: Case, **settings: object) -> tuple[DerivationState | None, int, float]:
    """Search until the goal is met: the state, how many were seen, CPU seconds."""
    found: list[DerivationState] = []

    def watch(state: DerivationState) -> bool:
        if case.reached(state.roots) is not None:
            found.append(state)
        return bool(found)

    searcher = Searcher(
        ScopePrices(constants(case.roots)),
        DerivationSettings(depth=case.depth, budget=600.0, **settings),
    )
    result = searcher.search(case.roots, watch)
    assert (result.stop is Stop.FOUND) == bool(found)
    return found[0] if found else None, len(result.states), result.seconds


@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_the_papers_case_is_found_and_equal(case: Case) -> None:
    state, states, _ = find(case)
    assert state is not None, f"{case.text} was not found"
    assert state.depth <= case.depth
    assert states <= 4000
    match = case.reached(state.roots)
    assert match is not None
    built = Replacer().replace(state.roots, match.contraction.scope, instantiate(match))
    for root, new, library in zip(case.roots, state.roots, built, strict=True):
        assert proved(root, new)
        assert proved(root, library)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[c.name for c in CASES])
def test_the_papers_case_is_found_within_five_seconds(case: Case) -> None:
    assert find(case)[2] <= 5.0


def proved(root: Scope, new: Scope) -> bool:
    return Prover().prove(root, new).equal is True


def test_a_goal_that_needs_rules_is_not_met_by_the_program_itself() -> None:
    met = [case.name for case in CASES if case.reached(case.roots) is not None]
    assert met == [case.name for case in CASES if case.depth == 0]


def test_without_reindexing_the_gemm_of_a_window_is_not_found() -> None:
    from isoform.passes.derivation.rules import RULES

    case = next(c for c in CASES if c.name == "conv3x3")
    state, _, _ = find(case, rules=tuple(r for r in RULES if r.name != "reindex"))
    assert state is None


def test_the_same_search_gives_the_same_states_in_the_same_order() -> None:
    case = next(c for c in CASES if c.name == "conv3x3-dilated")
    runs = [
        [
            s.roots[0].token
            for s in Searcher(ScopePrices(), DerivationSettings(depth=2)).search(case.roots).states
        ]
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == len(runs[0])
