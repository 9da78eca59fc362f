"""Runs that do nothing twice give what runs that do give, bit for bit."""

import numpy as np
import pytest
from support.families import FAMILIES, program

from isoform.dialects.arithmetic import Arithmetic
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.passes.equivalence import witness
from isoform.passes.equivalence.memoised_evaluation import MemoisedEvaluator


def bits(arrays: dict[str, np.ndarray]) -> list[bytes]:
    return [np.ascontiguousarray(array).tobytes() for array in arrays.values()]


def uses(p: Program) -> list[int]:
    block = p.main.body.block
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    return [len(list(value.uses)) for value in values]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("arithmetic", [Arithmetic.EXACT, Arithmetic.REAL, Arithmetic.COMPUTED])
def test_runs_are_the_same(name: str, arithmetic: Arithmetic) -> None:
    p, remembering = program(name), MemoisedEvaluator()
    inputs = witness.inputs_of(p, 0, 1.0)
    plain, before = bits(run(p, inputs, arithmetic)), uses(p)
    program_pair = witness.ProgramPair(p, p.clone(), list(range(len(p.output_names))))
    for _ in range(2):
        assert bits(run(p, inputs, arithmetic, None, remembering)) == plain
        assert bits(run(p, inputs, arithmetic, program_pair.known("a"), remembering)) == plain
        other = run(program_pair.b, inputs, arithmetic, program_pair.known("b"), remembering)
        assert bits(other) == plain
    remembering.drop()
    assert uses(p) == before


def one(axis: int, negative: bool = False) -> Program:
    b = GraphBuilder()
    x = b.input("x", (3, 3))
    zero = b.constant(np.full((3, 3), -0.0 if negative else 0.0, np.float32))
    b.output("y", b.softmax(b.div(x, b.add(zero, zero)), axis=axis))
    return b.build()


def evaluated(first: Program, second: Program, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many ops of the second are evaluated after the first was."""
    counts = [0]
    plain = MemoisedEvaluator.compute

    def counted(self: MemoisedEvaluator, *args: object) -> object:
        counts[0] += 1
        return plain(self, *args)  # pyright: ignore

    monkeypatch.setattr(MemoisedEvaluator, "compute", counted)
    remembering, x = MemoisedEvaluator(), {"x": np.ones((3, 3))}
    run(first, x, evaluate=remembering)
    before = counts[0]
    run(second, dict(x), evaluate=remembering)
    remembering.drop()
    return counts[0] - before


def test_what_both_have_iscompute_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert evaluated(one(1), one(1), monkeypatch) == 0


def test_another_property_or_another_sign_of_zero_is_another_op(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert evaluated(one(1), one(0), monkeypatch) == 1
    assert evaluated(one(1), one(1, negative=True), monkeypatch) >= 3


def test_a_number_is_no_row_of_one() -> None:
    """Both hold the same bits; what reads them expects its own rank."""
    b = GraphBuilder()
    x = b.input("x", (2, 2))
    number, row = (b.constant(np.full(shape, 0.5, np.float32)) for shape in ((), (1,)))
    y = b.mul(x, b.broadcast(number, shape=[2, 2], dims=[]))
    b.output("y", b.add(y, b.broadcast(row, shape=[2, 2], dims=[1])))
    remembering, given = MemoisedEvaluator(), {"x": np.ones((2, 2))}
    assert run(b.build(), given, evaluate=remembering)["y"].tolist() == [[1.0, 1.0]] * 2
    remembering.drop()


def test_equal_bits_are_one_array_and_equal_checksums_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remembering, first = MemoisedEvaluator(), np.array([1.0, 2.0])
    assert remembering._one(first) is first
    assert remembering._one(first.copy()) is first
    monkeypatch.setattr("zlib.crc32", lambda data: 7)
    zero, other = np.array([0.0, 3.0]), np.array([-0.0, 3.0])
    assert remembering._one(zero) is zero
    assert remembering._one(other) is other
    assert remembering._one(zero.copy()) is zero
