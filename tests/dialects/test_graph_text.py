"""Graph programs as text: whole models and literals of every element type come back the same."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from isoform.compiler import zoo
from isoform.dialects.algebra import ALGEBRA
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.graph import GRAPH, ConstantOp
from isoform.dialects.program import Program
from isoform.dialects.types import from_numpy

LIT = Path(__file__).resolve().parents[2] / "lit_tests"


@pytest.mark.parametrize("name", ["resnet18", "bert-base", "inception-v3", "dcgan"])
def test_models_round_trip(name: str, round_trip) -> None:
    program = zoo.build(name)
    text = round_trip(program.module)
    assert f"@{next(iter(program.weights))}" in text


def test_names_of_inputs_and_outputs_survive_the_text(parse) -> None:
    b = GraphBuilder()
    x = b.input("input.1:0", (2,))
    b.output("out/put", b.relu(x))
    program = Program(parse(str(b.build().module)))
    assert (program.input_names, program.output_names) == (["input.1:0"], ["out/put"])


LITERALS = [
    np.array([1.5, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32),
    np.array([0.1, np.nan, 1e-300, 5e-324]),
    np.array([0.1, 65504, np.inf], np.float16),
    np.array([0.1, 3e38, np.nan], ml_dtypes.bfloat16),
    np.array([-128, 127], np.int8),
    np.array([-(2**15), 2**15 - 1], np.int16),
    np.array([-(2**31), 2**31 - 1], np.int32),
    np.array([-(2**63), 2**63 - 1]),
    np.array([0, 255], np.uint8),
    np.array([0, 2**32 - 1], np.uint32),
    np.array([0, 2**64 - 1], np.uint64),
    np.array([True, False, True]),
    np.array(2.5, np.float32),
    np.array(True),
    np.zeros((0, 3), np.float32),
    np.zeros((2, 3), np.int64),
    np.arange(6, dtype=np.float32).reshape(2, 3),
]


@pytest.mark.parametrize("array", LITERALS, ids=lambda a: f"{a.dtype}-{a.shape}")
def test_literals_of_every_element_type_round_trip(array: np.ndarray, parse, round_trip) -> None:
    b = GraphBuilder()
    b.output("y", b.constant(array))
    module = b.build().module
    again = parse(round_trip(module))
    found = next(op for op in Program(again).main.body.block.ops if isinstance(op, ConstantOp))
    assert found.type.element_type == from_numpy(array.dtype)
    assert found.array().dtype == array.dtype
    assert found.array().tobytes() == array.tobytes()


@pytest.mark.parametrize("value", [0.1, 1e-30, 1e30, -1e22, float("inf"), float("-inf"), 1 / 3])
def test_float_properties_round_trip(value: float, parse, round_trip) -> None:
    b = GraphBuilder()
    b.output("y", b.leaky_relu(b.input("x", (2,)), alpha=value))
    module = parse(round_trip(b.build().module))
    (op,) = [op for op in Program(module).main.body.block.ops if op.name == "graph.leaky_relu"]
    assert op.value("alpha") == value


@pytest.mark.parametrize("dialect", [GRAPH, ALGEBRA], ids=lambda d: d.name)
def test_every_op_is_in_the_lit_file(dialect) -> None:
    text = (LIT / dialect.name / "ops.mlir").read_text()
    shown = set(re.findall(rf"\b{dialect.name}\.\w+", text))
    assert {op.name for op in dialect.operations} <= shown


@pytest.mark.slow
def test_ten_thousand_ops_parse_verify_and_print_in_seconds(parse, round_trip) -> None:
    b = GraphBuilder()
    x = b.input("x", (4, 4))
    for _ in range(5000):
        x = b.relu(b.transpose(x, perm=[1, 0]))
    b.output("y", x)
    round_trip(b.build().module)
