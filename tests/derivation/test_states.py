"""Every program that the rules reach computes the same values as the one they began with.

Exact: all programs are evaluated modulo primes at every output position, at small sizes.
"""

import pytest

from isoform.lowering.algebra_to_kernel.table import matches
from isoform.passes.derivation.instantiate import instantiate
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.replace import Replacer, Roots, scopes_of
from isoform.passes.derivation.search import DerivationSettings, DerivationState, Searcher
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.testing.derivation_cases import all_cases, stacked

SMALL: dict[str, Roots] = {case.name: case.small for case in all_cases()}
SMALL["stacked"] = stacked()
# Each program once, and only those that a rule applies to.
SAME = {"conv3x3-im2col", "conv3x3-grouped", "conv3x3-smaller", "conv3x3-batched", "conv1x1"}
DISTINCT = [name for name in SMALL if name not in SAME]


def checker(roots: Roots, seed: int) -> tuple[Evaluator, list]:
    evaluator = Evaluator(Residues(draw_primes(2, seed), seed))
    return evaluator, [evaluator.value(root) for root in roots]


def wrong_states(roots: Roots, states: list[DerivationState]) -> list[DerivationState]:
    evaluator, wanted = checker(roots, seed=5)

    def same(state: DerivationState) -> bool:
        values = [evaluator.value(root) for root in state.roots]
        pairs = zip(values, wanted, strict=True)
        return all(bool(evaluator.field.equal(v, w).all()) for v, w in pairs)

    return [state for state in states if not same(state)]


def reached(
    roots: Roots, depth: int, *, guards: bool = True, free: bool = False
) -> list[DerivationState]:
    """All states; `free` lifts every cap."""
    flops = 1e12 if free else 3.0
    settings = DerivationSettings(depth, 10**6, 1e9, flops=flops, limits=not free, guards=guards)
    return Searcher(ScopePrices(), settings).search(roots).states


@pytest.mark.parametrize("name", DISTINCT)
def test_states_to_depth_2_are_equal_to_their_root(name: str) -> None:
    states = reached(SMALL[name], 2)
    assert len(states) > 1
    assert not wrong_states(SMALL[name], states)


def test_without_the_guards_some_state_is_wrong() -> None:
    """The planted bug: readers that leave the old shape would see relaxed values."""
    assert not wrong_states(stacked(), reached(stacked(), 2))
    assert wrong_states(stacked(), reached(stacked(), 2, guards=False))


@pytest.mark.slow
def test_every_state_to_depth_4_is_equal_to_its_root() -> None:
    checked = 0
    for name in DISTINCT:
        states = reached(SMALL[name], 4, free=name not in ("gcn-lines", "transposed-gather"))
        checked += len(states)
        wrong = wrong_states(SMALL[name], states)
        assert not wrong, f"{name}: {len(wrong)} of {len(states)}, {wrong[0].rules()}"
    assert checked >= 10_000


@pytest.mark.parametrize("name", DISTINCT)
def test_every_match_built_is_equal_to_the_scope_it_matched(name: str) -> None:
    assert matches_checked(SMALL[name], 1) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", DISTINCT)
def test_every_match_of_deeper_states_is_equal_too(name: str) -> None:
    assert matches_checked(SMALL[name], 2) > 0


def matches_checked(roots: Roots, depth: int) -> int:
    """Build every match of every state and compare; how many there were."""
    evaluator, _ = checker(roots, seed=6)
    replacer = Replacer()
    scopes = {s for state in reached(roots, depth) for s in scopes_of(state.roots)}
    count = 0
    for scope in sorted(scopes, key=lambda s: s.token):
        for match in matches(scope):
            (built,) = replacer.replace((scope,), scope, instantiate(match))
            same = evaluator.field.equal(evaluator.value(scope), evaluator.value(built))
            assert same.all(), f"{match.kernel.name} {match.groups} {match.windows}"
            count += 1
    return count
