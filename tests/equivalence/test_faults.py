"""A fault at any single output element is found, and its position is named."""

import random

import numpy as np
import pytest
from support.families import FAMILIES, program
from support.mutations import algebra
from xdsl.dialects.func import ReturnOp

from isoform.dialects.index import iterators
from isoform.dialects.program import Program, main_of
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import element_of, shape_of, tensor_type
from isoform.passes.equivalence import compare

FEW, MANY = 40, 200


def faulty(base: Program, rng: random.Random) -> tuple[Program, tuple[int, ...]]:
    """A copy whose output is larger by 1 at one position."""
    copy = base.clone()
    block = main_of(copy.module).body.block
    last = block.last_op
    assert isinstance(last, ReturnOp)
    value = last.arguments[0]
    position = tuple(rng.randrange(n) for n in shape_of(value))
    build = ScopeBuilder()
    one = build.ones([1] * len(position), element_of(value))
    here = iterators(len(position))
    at = [e - p for e, p in zip(here, position, strict=True)]
    made = build.pointwise(tensor_type(value), Source(value)[here] + one[at])
    for op in build.ops:
        block.insert_op_before(op, last)
    last.operands[0] = made.value
    copy.module.verify()
    return copy, position


def check(seed: int) -> None:
    rng = random.Random(seed)
    name = sorted(FAMILIES)[seed % len(FAMILIES)]
    base = algebra(program(name))
    wrong, position = faulty(base, rng)
    verdict = compare(base, wrong, seed=seed)
    assert verdict.kind == "different", f"{name} at {position}: {verdict.text()}"
    found = verdict.difference
    assert found is not None and found.output == "y" and found.witness
    assert (found.position, found.positions) == (position, 1), (
        f"{name} at {position}: {verdict.text()}"
    )
    assert abs(abs(found.values[0] - found.values[1]) - 1) < 1e-6


@pytest.mark.parametrize("seed", range(FEW))
def test_a_fault_of_one_element_is_found(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FEW, MANY))
def test_faults_of_one_element_are_found_in_all_of_two_hundred(seed: int) -> None:
    check(seed)


def test_a_fault_of_one_weight_is_found() -> None:
    from isoform.dialects.builder import GraphBuilder

    def network(fault: bool) -> Program:
        b = GraphBuilder()
        w = np.arange(24, dtype=np.float32).reshape(4, 6)
        w[2, 3] += 0.5 * fault
        b.output("y", b.matmul(b.input("x", (3, 4)), b.weight("w", w)))
        return b.build()

    verdict = compare(network(False), network(True))
    assert verdict.kind == "different"
    assert verdict.difference is not None
    assert verdict.difference.positions == 3
    assert verdict.difference.position == (0, 3)
