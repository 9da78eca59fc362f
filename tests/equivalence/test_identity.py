"""What makes two calls, or two weights, one: never less than what decides their values."""

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.dialects.builtin import f32, f64

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.graph import OpaqueOp
from isoform.dialects.program import Program
from isoform.dialects.types import Tensor, tensor
from isoform.dialects.weights import Weights
from isoform.passes.equivalence import Verdict, compare


def calling(
    op_type: str,
    inputs: list[str],
    outputs: list[str],
    read: int = 0,
    opset: str = "=20",
    domain: str = "",
    **attributes: Any,
) -> Program:
    """A program that returns one result of an opaque node; an empty name is an absent operand."""
    b = GraphBuilder()
    node = helper.make_node(op_type, inputs, outputs, domain=domain, **attributes)
    values = {name: b.input(name, (4,)) for name in ("p", "q", "r")}
    operands = [values[name] for name in inputs if name]
    types = [tensor((4,)) for name in outputs if name]
    op = OpaqueOp(op_type, operands, node.SerializeToString(), [opset], types)
    b.block.add_op(op)
    b.output("y", op.outputs[read])
    return b.build()


def loop_of(inner: str) -> onnx.GraphProto:
    """A subgraph that holds one node."""
    value = helper.make_tensor_value_info("v", TensorProto.FLOAT, [4])
    return helper.make_graph([helper.make_node(inner, ["v"], ["w"])], "body", [value], [value])


BASE: dict[str, object] = {"op_type": "Node", "inputs": ["p", "q"], "outputs": ["a", "b", "c"]}
OTHERS: dict[str, dict[str, object]] = {
    "another result of one node": {"read": 1},
    "the position of a lone output": {"outputs": ["", "a", ""]},
    "how many outputs there are": {"outputs": ["a", "b"]},
    "an absent operand": {"inputs": ["p", "", "q"]},
    "the order of operands": {"inputs": ["q", "p"]},
    "another operand": {"inputs": ["p", "r"]},
    "an attribute": {"clip": 0.5},
    "a list": {"activations": ["Tanh"]},
    "a subgraph": {"body": loop_of("Tanh")},
    "the opset": {"opset": "=7"},
    "the domain": {"domain": "com.example"},
    "the op": {"op_type": "Other"},
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_call_is_what_decides_its_result(what: str) -> None:
    first, second = calling(**BASE), calling(**{**BASE, **OTHERS[what]})  # type: ignore[arg-type]
    assert compare(second, second).kind == "equal"
    for pair in ((first, second), (second, first)):
        assert not compare(*pair).is_equal


def test_any_two_positions_of_a_lone_output_are_two() -> None:
    lone = [["a" if k == position else "" for k in range(3)] for position in range(3)]
    made = [calling("LSTM", ["p", "q"], outputs) for outputs in lone]
    for a, b in itertools.combinations(made, 2):
        assert not compare(a, b).is_equal


def test_subgraphs_with_other_nodes_are_others() -> None:
    first, second = (calling("Loop", ["p"], ["a"], body=loop_of(n)) for n in ("Tanh", "Erf"))
    assert compare(first, first).kind == "equal"
    assert not compare(first, second).is_equal


def test_names_and_the_order_of_attributes_do_not_matter() -> None:
    first = calling("Node", ["p", "q"], ["a", "b"], alpha=1.0, beta=2)
    second = calling("Node", ["p", "q"], ["x", "y"], name="n", doc_string="d", beta=2, alpha=1.0)
    assert compare(first, second).kind == "equal"


@pytest.mark.parametrize("op_type", ["RandomNormalLike", "Bernoulli", "Dropout", "Multinomial"])
def test_a_random_node_equals_nothing_even_inside_another(op_type: str) -> None:
    alone = calling(op_type, ["p"], ["a"])
    inside = calling("Loop", ["p"], ["a"], body=loop_of(op_type))
    for program in (alone, inside):
        assert not compare(program, program.clone()).is_equal


# --- weights ------------------------------------------------------------------------------------


def product(weights: dict[str, np.ndarray], absent: dict[str, Tensor] | None = None) -> Program:
    """x times every weight, `absent` ones without data."""
    b = GraphBuilder()
    value = b.input("x", (3, 3))
    store: dict[str, np.ndarray] = {}
    for name, array in weights.items():
        value = b.matmul(value, b.weight(name, array))
        store[name] = array
    for name, type_ in (absent or {}).items():
        value = b.matmul(value, b.weight(name, np.zeros(type_.get_shape(), np.float32)))
    b.output("y", value)
    return Program(b.build().module, Weights(store))


def listed(verdict: Verdict) -> str:
    return "".join(a.statement for a in verdict.assumptions if a.name == "weights-by-name")


ONES, SEVENS, SQUARE = np.ones((3, 3), np.float32), np.full((3, 3), 7, np.float32), tensor((3, 3))


def test_each_weight_is_compared_by_content_where_its_data_is_there() -> None:
    a, b = (product({"w": w}, {"v": SQUARE, "u": SQUARE}) for w in (ONES, SEVENS))
    assert compare(a, b).kind == "different"
    same = compare(a, a.clone())
    other = Program(a.module.clone(), Weights({"w": ONES.copy()}))
    named = compare(a, other)
    assert (same.kind, listed(same)) == ("equal", "")  # one store: nothing to assume
    assert named.kind == "equal"
    assert listed(named).endswith("are the same: 'u', 'v'")


def test_data_on_one_side_is_that_of_the_name_on_the_other() -> None:
    a, b = product({"w": SEVENS}), product({}, {"w": SQUARE})
    for pair in ((a, b), (b, a)):
        verdict = compare(*pair)
        assert verdict.kind == "equal"
        assert listed(verdict).endswith(": 'w'")


def test_nothing_is_claimed_of_a_weight_that_only_one_program_names() -> None:
    a, b = product({"w": ONES}), product({}, {"other": SQUARE})
    verdict = compare(a, b)
    assert verdict.kind == "unknown"
    assert "the data of weight 'other' is absent" in verdict.reason


def test_one_name_of_two_types_is_two_weights() -> None:
    def scaled(shape: tuple[int, ...], element: object = f32) -> Program:
        b = GraphBuilder()
        kind = np.float32 if element == f32 else np.float64
        w = b.weight("w", np.zeros(shape, kind))
        x = b.input("x", (3, 3))
        value = b.cast(w, to=f32) if element == f64 else w
        value = value if shape == (3, 3) else b.transpose(b.expand(value, (3, 3)), perm=[1, 0])
        b.output("y", b.mul(x, value))
        return Program(b.build().module)

    plain = scaled((3, 3))
    assert compare(plain, scaled((3, 3))).kind == "equal"
    for other in (scaled((1, 3)), scaled((3, 3), f64)):
        assert compare(plain, other).kind == "unknown"
