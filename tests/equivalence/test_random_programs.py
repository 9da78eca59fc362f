"""Random programs against what our own passes make of them: equal, or a reason."""

import pytest

from isoform.compiler.search.optimizer import improve
from isoform.compiler.targets.levels import lower_to
from isoform.passes.equivalence import compare
from isoform.testing.random_programs.graphs import random_graph

FEW, MANY = 40, 500


def check(seeds: range) -> None:
    unknown: list[int] = []
    for seed in seeds:
        program = random_graph(seed)
        for level in ("algebra", "kernel"):
            verdict = compare(program, lower_to(program, level), seed=seed, budget=600.0)
            assert verdict.kind == "equal", f"seed {seed}, {level}: {verdict.text()}"
        verdict = compare(program, improve(program), seed=seed, budget=600.0)
        assert verdict.kind != "different", f"seed {seed}, improved: {verdict.text()}"
        assert verdict.error_bound <= 1e-12
        if not verdict.is_equal:  # calls (gather, arg_max) of literals alone were computed
            unknown.append(seed)
    assert len(unknown) <= 1 + len(seeds) // 40, unknown


def test_random_programs_equal_what_passes_make_of_them() -> None:
    check(range(FEW))


@pytest.mark.slow
def test_many_random_programs_equal_what_passes_make_of_them() -> None:
    check(range(FEW, FEW + MANY))
