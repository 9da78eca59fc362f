"""The CPU target agrees with the reference on random programs, for every ISA and thread count."""

import pytest

from isoform.compiler.targets.levels import place
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.testing.random_programs import (
    Agreement,
    random_graph,
    random_inputs,
    random_scope_program,
)

CHUNK = 10
# Ops through which an infinity or NaN goes as IEEE says, whatever order sums are taken in.
PROPAGATING = ("unary", "activation", "binary", "where", "pool", "matmul", "reduction", "conv")


def disagreement(program: Program, seed: int, special: float = 0.0) -> str | None:
    """Where the compiled program differs from the reference, if it does."""
    inputs = random_inputs(program, seed, special=special)
    expected = Agreement.of(program, inputs)
    isa = Isa.named(runnable()[seed % len(runnable())].name)
    session = CpuSession(place(program), threads=1 + seed % 2, isa=isa)
    try:
        found = expected.difference(session.run(inputs))
        again = expected.difference(session.run(inputs))
    finally:
        session.close()
    if (found is None) != (again is None):
        return f"second run on {isa.name}: {found or again}"
    return None if found is None else f"value on {isa.name}: {found}"


def seeds(chunk: int) -> range:
    return range(chunk * CHUNK, (chunk + 1) * CHUNK)


@pytest.mark.parametrize("chunk", range(15))
def test_graphs_compute_what_they_mean(holds, chunk: int) -> None:
    holds(((s, random_graph(s)) for s in seeds(chunk)), disagreement)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(15, 200))
def test_more_graphs_compute_what_they_mean(holds, chunk: int) -> None:
    holds(((s, random_graph(s, ops=16)) for s in seeds(chunk)), disagreement)


@pytest.mark.parametrize("chunk", range(3))
def test_graphs_with_rows_of_vectors_compute_what_they_mean(holds, chunk: int) -> None:
    holds(((s, random_graph(s, longest=90)) for s in seeds(chunk)), disagreement)


@pytest.mark.parametrize("chunk", range(5))
def test_scopes_compute_what_they_mean(holds, chunk: int) -> None:
    holds(((s, random_scope_program(s)) for s in seeds(chunk)), disagreement)


@pytest.mark.parametrize("chunk", range(4))
def test_scopes_with_rows_of_vectors_compute_what_they_mean(holds, chunk: int) -> None:
    holds(((s, random_scope_program(s, most=70)) for s in seeds(chunk)), disagreement)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4, 60))
def test_more_scopes_with_rows_of_vectors_compute_what_they_mean(holds, chunk: int) -> None:
    holds(((s, random_scope_program(s, most=70)) for s in seeds(chunk)), disagreement)


@pytest.mark.parametrize("chunk", range(4))
def test_infinities_and_nan_go_where_they_go_in_the_reference(holds, chunk: int) -> None:
    programs = ((s, random_graph(s, ops=6, families=PROPAGATING)) for s in seeds(500 + chunk))
    holds(programs, lambda p, seed: disagreement(p, seed, special=0.05))


def test_most_elements_are_compared() -> None:
    compared = total = 0
    for seed in range(12):
        program = random_graph(seed)
        inputs = random_inputs(program, seed)
        agreement = Agreement.of(program, inputs)
        assert agreement.difference(agreement.exact) is None
        compared, total = compared + agreement.compared, total + agreement.total
    assert compared > 0.9 * total
