"""The symbolic check, at shrunk sizes and at full size, and the field check give one verdict."""

import random

import pytest
from support.expressions import field_equal, inlined, output
from support.families import program
from support.mutations import algebra, mutate

from isoform.dialects.canonical_scope import Expr, Scope, scope
from isoform.passes.equivalence import symbolic
from isoform.passes.equivalence.prove import Prover
from isoform.passes.equivalence.residues import draw_primes
from isoform.passes.equivalence.shrink import shrink

LINEAR = (
    "conv",
    "dilated_conv",
    "transposed_conv",
    "avg_pool",
    "max_pool",
    "matmul",
    "matmul_chain",
    "batched_matmul",
    "band_matmul",
)
FEW, MANY = 12, 120


def verdicts(a: Scope, b: Scope, seed: int) -> dict[str, bool | None]:
    """Every way to decide; None where a way does not apply."""
    first, second = inlined(a), inlined(b)
    small_a, small_b, small = shrink(first, second, a.shape)
    scopes_a, scopes_b, there = shrink(a.expr, b.expr, a.shape)
    primes = draw_primes(4, seed)
    return {
        "symbolic": symbolic.compare(first, second, a.shape),
        "symbolic, shrunk": symbolic.compare(small_a, small_b, small),
        "field": field_equal(a, b, primes, seed),
        "field, inlined": field_equal(whole(first, a), whole(second, a), primes, seed),
        "field, shrunk": field_equal(
            sized(small_a, a, small), sized(small_b, a, small), primes, seed
        ),
        "field, scopes shrunk": field_equal(
            sized(scopes_a, a, there), sized(scopes_b, b, there), primes, seed
        ),
        "prover": Prover(seed).prove(a, b).equal,
    }


def whole(expr: Expr, like: Scope) -> Scope:
    return scope(like.shape, like.element, expr)


def sized(expr: Expr, like: Scope, shape: tuple[int, ...]) -> Scope:
    return scope(shape, like.element, expr)


def check(name: str, seeds: range) -> int:
    base = algebra(program(name))
    a, equal = output(base), 0
    for seed in seeds:
        mutant, change = mutate(base, random.Random(f"{name} {seed}"))
        b = output(mutant)
        found = verdicts(a, b, seed)
        known = {v for v in found.values() if v is not None}
        assert len(known) == 1, f"{name}, seed {seed}, {change}: {found}\n{mutant.module}"
        if name in LINEAR and "pool" not in name:  # pools hold functions: max, 1 / count
            assert None not in found.values(), f"{name}, seed {seed}, {change}: {found}"
        equal += True in known
    return equal


@pytest.mark.parametrize("name", (*LINEAR, "attention"))
def test_all_ways_agree(name: str) -> None:
    check(name, range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("name", (*LINEAR, "attention"))
def test_all_ways_agree_on_many(name: str) -> None:
    check(name, range(FEW, FEW + MANY))


@pytest.mark.parametrize("name", ("conv", "matmul_chain", "transposed_conv"))
def test_equal_programs_are_seen_as_equal_by_all(name: str) -> None:
    """The chain associated the other way, operands exchanged: forms differ, values do not."""
    a = output(algebra(program(name)))
    b = output(algebra(program(name)))
    assert set(verdicts(a, b, 0).values()) == {True}


def test_sizes_that_cannot_matter_shrink() -> None:
    a, b = (inlined(output(program("matmul_chain"))) for _ in range(2))
    _, _, small = shrink(a, b, (3, 3))
    assert small == (2, 2)
