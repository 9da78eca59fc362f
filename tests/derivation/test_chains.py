"""Products of three factors: a contraction of a contraction, its sums taken in another order."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from isoform.compiler.targets.levels import run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program, keep_names, pipeline_of
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation import search as searching
from isoform.passes.derivation.body import body_of
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.propose import SETTINGS, search
from isoform.passes.derivation.search import Searcher
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.prove import Prover
from isoform.passes.search_result import Limits
from isoform.passes.subprograms.find import chains
from isoform.passes.subprograms.prepare import prepared

H100 = Costs(target_named("h100"))


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions are remembered in a folder of the test's own."""
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))


def weight(b: GraphBuilder, name: str, *shape: int) -> SSAValue:
    drawn = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
    return b.weight(name, lambda: drawn, shape, f32)


def convolutions(first: Sequence[int], second: Sequence[int], *, twice: bool = False) -> Program:
    """A convolution of a convolution, without a function between them.

    Args:
        first: the shape of the first one's weights.
        twice: whether the first one's result is another result of the program.
    """
    b = GraphBuilder()
    y = b.input("x", (1, first[1], *(12 for _ in first[2:])))
    for k, shape in enumerate((first, second)):
        pads = [(n - 1) // 2 for n in shape[2:]] * 2
        ones = [1] * (len(shape) - 2)
        y = b.conv(y, weight(b, f"w{k}", *shape), strides=ones, pads=pads, dilations=ones)
        if twice or k == 1:
            b.output(f"y{k}", y)
    return b.build()


def of_a_vector() -> Program:
    """(A B) v of three inputs."""
    b = GraphBuilder()
    product = b.matmul(b.input("a", (96, 80)), b.input("b", (80, 112)))
    b.output("y", b.matmul(product, b.input("v", (112, 1))))
    return b.build()


GAINING = {
    "two 1x1 convolutions": convolutions((256, 64, 1, 1), (64, 256, 1, 1)),
    "1-D, coprime": convolutions((129, 35, 1), (26, 129, 1)),
    "3-D": convolutions((96, 8, 1, 1, 1), (16, 96, 1, 1, 1)),
    "a matrix product of a vector": of_a_vector(),
}


@pytest.mark.parametrize("name", GAINING)
def test_the_last_two_factors_are_multiplied_first(name: str) -> None:
    program = GAINING[name]
    result = search(program, H100, Limits(60.0))
    assert "derive traversal-merge" in {applied.rule for applied in result.applied}
    assert {applied.proof for applied in result.applied} == {"exact"}
    assert compare(program, result.program).is_equal
    again = program.clone()
    keep_names(again)
    run_passes(again, pipeline_of(result.program.module))
    assert compare(again, result.program).is_equal


def test_a_contraction_with_another_reader_is_in_no_chain() -> None:
    shapes = (256, 64, 1, 1), (64, 256, 1, 1)
    assert chains(prepared(convolutions(*shapes)).module, ScopePrices)
    assert not chains(prepared(convolutions(*shapes, twice=True)).module, ScopePrices)


def states_of(program: Program) -> list[bool]:
    """Whether each program with sums in another order is equal to the chain."""
    (sub,) = chains(prepared(program).module, ScopePrices)
    settings = replace(SETTINGS, depth=2, states=80, regroup=True, flops=1e9)
    result = Searcher(ScopePrices(sub.known), settings).search(sub.roots)
    regrouped = [s for s in result.states if "traversal-merge" in s.rules()]
    return [Prover().prove(sub.root, s.roots[0]).equal is True for s in regrouped]


SMALL = [convolutions((3, 2, 3), (2, 3, 1)), convolutions((3, 2, 1, 3), (2, 3, 3, 1))]


@pytest.mark.parametrize("program", SMALL)
def test_sums_in_another_order_are_equal(program: Program) -> None:
    found = states_of(program)
    assert len(found) > 3
    assert all(found)


def test_a_factor_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: what is multiplied out is the chain of a kernel with more taps."""
    merge = searching.traversal_merge
    (sub,) = chains(prepared(convolutions((3, 2, 3), (2, 3, 3))).module, ScopePrices)
    wrong = body_of(sub.root)
    assert wrong is not None
    monkeypatch.setattr(searching, "traversal_merge", lambda _, number: merge(wrong, number))
    assert not all(states_of(SMALL[0]))
