"""Random programs: valid, the same for the same seed, of every op; and how failing ones shrink."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from isoform.compiler.checks.verify_module import verify_module
from isoform.compiler.frontends.program_file import module_text, read_program
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.graph import OPS, OpaqueOp
from isoform.dialects.program import Program
from isoform.testing.random_programs import (
    FAMILIES,
    Agreement,
    random_graph,
    random_inputs,
    random_scope_program,
    random_weights,
    reduce,
    write_reproducer,
)


def names(program: Program) -> Counter[str]:
    return Counter(op.name for op in program.main.body.block.ops)


def test_the_same_seed_gives_the_same_program_and_data() -> None:
    for seed in range(5):
        one, other = random_graph(seed), random_graph(seed)
        assert module_text(one.module) == module_text(other.module)
        assert all(np.array_equal(one.weights[k], other.weights[k]) for k in one.weights)
        inputs = random_inputs(one, seed)
        again = random_inputs(other, seed)
        assert all(np.array_equal(inputs[k], again[k]) for k in inputs)
    assert module_text(random_graph(0).module) != module_text(random_graph(1).module)


def test_programs_verify_and_can_be_evaluated() -> None:
    for seed in range(60):
        for program in (random_graph(seed), random_scope_program(seed)):
            verify_module(program.module)
            found = reference.run(program, random_inputs(program, seed))
            assert [a.shape for a in found.values()] == [
                t.get_shape() for t in program.outputs.values()
            ]


def test_every_op_of_the_graph_dialect_is_drawn() -> None:
    seen: Counter[str] = Counter()
    for seed in range(250):
        seen += names(random_graph(seed))
    wanted = {op.name for op in OPS} - {OpaqueOp.name}
    assert wanted - set(seen) == set()


def test_what_is_drawn_is_varied() -> None:
    """Shared values, several outputs, unused inputs, extents of 1 and 0."""
    programs = [random_graph(seed) for seed in range(80)]
    blocks = [p.main.body.block for p in programs]
    assert sum(len(p.outputs) > 1 for p in programs) > 20
    assert sum(any(not a.uses for a in block.args) for block in blocks) > 5
    assert (
        sum(any(len([*r.uses]) > 1 for op in block.ops for r in op.results) for block in blocks)
        > 40
    )
    shapes = [a.type.get_shape() for block in blocks for a in block.args]
    assert any(1 in shape for shape in shapes) and any(0 in shape for shape in shapes)


def test_families_and_types_can_be_chosen() -> None:
    program = random_graph(3, families=["matmul"], floats=[f32], integers=False, empty=0.0)
    ops = set(names(program)) - {"graph.weight", "graph.constant", "func.return"}
    assert ops == {"graph.matmul"}
    with pytest.raises(UserError, match=r"there is no family 'matmal'.*matmul"):
        random_graph(0, families=["matmal"])
    assert "conv" in FAMILIES


def test_special_values_and_missing_weights_are_drawn() -> None:
    program = random_graph(1, families=["binary"], floats=[f32], integers=False, empty=0.0)
    drawn = [random_inputs(program, seed, special=0.5) for seed in range(10)]
    everything = np.concatenate([a.ravel() for one in drawn for a in one.values()])
    assert np.isnan(everything).any() and np.isinf(everything).any()
    weights = random_weights(program, 0)
    assert set(weights) == {op.key for op in program.module.walk() if op.name == "graph.weight"}


# --- reduction ----------------------------------------------------------------------------------


def has(program: Program, op_name: str) -> bool:
    return op_name in names(program)


def test_a_failing_program_shrinks_to_the_op_that_fails() -> None:
    seed = next(s for s in range(200) if has(random_graph(s), "graph.softmax"))
    program = random_graph(seed)
    before = module_text(program.module)
    small = reduce(program, lambda p: has(p, "graph.softmax"))
    verify_module(small.module)
    assert module_text(program.module) == before
    assert set(names(small)) - {"graph.weight", "graph.constant"} == {
        "graph.softmax",
        "func.return",
    }
    assert sum(a.type.get_shape() != () for a in small.main.body.block.args) <= 1
    assert all(n <= 1 for t in small.inputs.values() for n in t.get_shape())


def test_two_ops_that_must_meet_are_kept_together() -> None:
    """A failure of an op on another's result keeps both, and drops what is between elsewhere."""

    def fails(program: Program) -> bool:
        return any(
            op.name == "graph.relu" and getattr(op.operands[0].owner, "name", "") == "graph.conv"
            for op in program.main.body.block.ops
        )

    b = GraphBuilder()
    x = b.input("x", (2, 3, 8, 9))
    w = b.weight("w", np.ones((4, 3, 3, 3), np.float32))
    y = b.conv(b.exp(x), w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
    b.output("a", b.softmax(b.relu(y), axis=1))
    b.output("b", b.abs(y))
    small = reduce(b.build(), fails)
    assert set(names(small)) <= {"graph.weight", "graph.conv", "graph.relu", "func.return"}
    assert list(small.outputs) == ["y0"]
    reference.run(small, random_inputs(small, 0))


def test_scopes_shrink_too() -> None:
    for seed in range(10):
        program = random_scope_program(seed, scopes=6)
        small = reduce(program, lambda p: has(p, "algebra.scope"))
        verify_module(small.module)
        assert names(small)["algebra.scope"] == 1


def test_nothing_is_returned_that_does_not_fail() -> None:
    program = random_graph(7)
    text = module_text(program.module)
    same = reduce(program, lambda p: module_text(p.module) == text)
    assert module_text(same.module) == text


def test_a_reproducer_reads_back_with_its_weights(tmp_path: Path) -> None:
    program = random_graph(11, floats=[f32])
    path = write_reproducer(program, tmp_path / "new", "failure")
    assert path == tmp_path / "new" / "failure.mlir"
    back = read_program(path)
    inputs = random_inputs(program, 0)
    for one, other in zip(
        reference.run(program, inputs).values(), reference.run(back, inputs).values(), strict=True
    ):
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


# --- agreement ----------------------------------------------------------------------------------


def small(build) -> Program:
    b = GraphBuilder()
    b.output("y", build(b, b.input("x", (64,))))
    return b.build()


def test_rounding_agrees_and_a_small_error_does_not() -> None:
    program = small(lambda b, x: b.tanh(b.mul(x, x)))
    inputs = random_inputs(program, 0)
    agreement = Agreement.of(program, inputs)
    x = inputs["x"]
    found = np.tanh(x * x)
    assert found.dtype == np.float32
    assert agreement.difference({"y": found}) is None
    assert agreement.compared == agreement.total == 64
    found[17] *= 1.0001
    difference = agreement.difference({"y": found})
    assert difference is not None and difference.position == (17,)
    assert "output 'y' at [17]: expected" in str(difference)


def test_ties_are_not_compared() -> None:
    program = small(lambda b, x: b.floor(x))
    agreement = Agreement.of(program, {"x": np.full(64, 3.0, np.float32)})
    assert agreement.difference({"y": np.full(64, 2.0)}) is None
    assert agreement.compared == 0
    agreement = Agreement.of(program, {"x": np.full(64, 3.5, np.float32)})
    assert agreement.difference({"y": np.full(64, 2.0)}) is not None


def test_nan_and_infinities_must_be_where_they_belong() -> None:
    program = small(lambda b, x: b.relu(x))
    x = np.zeros(64, np.float32)
    x[:3] = np.nan, np.inf, -np.inf
    agreement = Agreement.of(program, {"x": x})
    right = np.maximum(x, 0)
    assert agreement.difference({"y": right}) is None
    for place, value in ((0, 0.0), (1, 1e30), (2, np.nan), (5, np.nan)):
        wrong = right.copy()
        wrong[place] = value
        assert agreement.difference({"y": wrong}) is not None


def test_another_shape_is_a_difference() -> None:
    program = small(lambda b, x: b.relu(x))
    agreement = Agreement.of(program, random_inputs(program, 0))
    assert agreement.difference({"y": np.zeros((64, 1))}) is not None


def test_what_two_pairs_of_noisy_runs_miss_is_no_difference() -> None:
    """In seed 20187 four noisy runs move some sums of 44 products by less than their rounding."""
    program = random_graph(20187, longest=90)
    inputs = random_inputs(program, 20187)
    agreement = Agreement.of(program, inputs)
    moved = np.where(agreement.tolerance["y3"] > 1e-30, agreement.tolerance["y3"], np.inf)
    place = tuple(int(k) for k in np.unravel_index(np.argmin(moved), moved.shape))
    rounded = {k: v.copy() for k, v in agreement.exact.items()}
    rounded["y3"][place] += 1.3e-6  # the terms are 25 in all, their roundings 1.5e-6 each at most
    assert agreement.tolerance["y3"][place] < 1e-6
    assert agreement.difference(rounded) is None
    rounded["y3"][place] += 1e-4
    assert agreement.difference(rounded) is not None
