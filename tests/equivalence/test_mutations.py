"""Single mutations of 35 families of programs: a change that shows is never called equal."""

import random

import pytest
from support.families import FAMILIES, program
from support.mutations import algebra, mutate

from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.roundings import Nearness
from isoform.passes.equivalence.witness import ProgramPair, find

FEW, MANY = 6, 300  # per family: 210 by default, 10,500 in all
DRAWS = [(seed, scale) for seed in range(1000, 1003) for scale in (1.0, 8.0, 0.05, 200.0)]


def shows(a: Program, b: Program, tolerance: float) -> bool:
    """Whether two programs differ on some input, by brute force: the reference on many inputs."""
    for seed, scale in DRAWS:
        try:
            if find(ProgramPair(a, b, [0]), seed, scale, Nearness(tolerance)):
                return True
        except UserError:  # an index that a gather refuses
            continue
    return False


def check(name: str, seeds: range) -> None:
    base = algebra(program(name))
    unknown = {True: 0, False: 0}
    for seed in seeds:
        mutant, change = mutate(base, random.Random(f"{name} {seed}"))
        verdict = compare(base, mutant, seed=seed, budget=600)
        told = f"{name}, seed {seed}, {change}: {verdict}\n{mutant.module}"
        if verdict.is_equal:
            assert not shows(base, mutant, 1e-9), f"missed: {told}"
            assert verdict.error_bound <= 1e-12, told
        if verdict.kind == "different":
            assert verdict.difference is not None, told
        if verdict.kind == "unknown":
            unknown[shows(base, mutant, 1e-6)] += 1
    # A change that shows is nearly always shown; one that does not is mostly known to be none.
    assert unknown[True] <= len(seeds) // 50, unknown
    assert unknown[False] <= max(3, len(seeds) // 3), unknown


def test_there_are_thirty_families() -> None:
    assert len(FAMILIES) >= 30


@pytest.mark.parametrize("name", FAMILIES)
def test_a_program_equals_its_scopes(name: str) -> None:
    verdict = compare(program(name), algebra(program(name)))
    assert verdict.kind == "equal", verdict.text()
    assert verdict.error_bound == 0.0


@pytest.mark.parametrize("name", FAMILIES)
def test_mutations_are_found(name: str) -> None:
    check(name, range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_ten_thousand_mutations_are_found(name: str) -> None:
    check(name, range(FEW, FEW + MANY))
