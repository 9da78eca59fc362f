"""The tree that a search without interning would walk is counted right."""

import pytest

from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.replace import Roots
from isoform.passes.derivation.search import (
    DerivationSettings,
    DerivationState,
    Searcher,
    flops_of,
    uses_after,
)
from isoform.testing.derivation_cases import all_cases, stacked
from isoform.testing.derivation_tree import StepwiseSearcher, tree_of

PROGRAMS: dict[str, Roots] = {case.name: case.small for case in all_cases()}
PROGRAMS["stacked"] = stacked()


def walked(searcher: Searcher, state: DerivationState, depth: int, most_flops: float) -> int:
    """Nodes, one by one: nothing is known again."""
    if depth == 0:
        return 1
    count = 1
    for rule, applied, roots in searcher.applications(state):
        if flops_of(roots) <= most_flops:
            used = uses_after(state, rule, applied)
            count += walked(searcher, DerivationState(roots, used=used), depth - 1, most_flops)
    return count


@pytest.mark.parametrize("kind", [Searcher, StepwiseSearcher])
@pytest.mark.parametrize("name", ["conv3x3", "conv3x3-dilated", "transposed-delta", "stacked"])
def test_counted_nodes_are_those_of_a_walk(name: str, kind: type[Searcher]) -> None:
    searcher, roots = kind(ScopePrices(), DerivationSettings(depth=3)), PROGRAMS[name]
    tree = tree_of(searcher, roots)
    assert tree.nodes == walked(searcher, DerivationState(roots), 3, 3.0 * flops_of(roots))
    assert tree.states < tree.nodes


@pytest.mark.parametrize("name", ["conv3x3", "transposed-delta"])
def test_interning_hides_no_program_that_limits_on_another_path_would_allow(name: str) -> None:
    """A program's uses of limited rules are those of the first path to it alone."""
    settings = DerivationSettings(depth=4, states=10**6, budget=1e9)
    found = Searcher(ScopePrices(), settings).search(PROGRAMS[name]).states
    assert len(found) == tree_of(Searcher(ScopePrices(), settings), PROGRAMS[name]).states
