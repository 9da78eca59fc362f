"""Elementwise graph ops mean what ONNX (or numpy) says, special values included."""

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-9, 1e9])
ORDINARY = np.random.default_rng(0).standard_normal((3, 4, 5))
POSITIVE = np.abs(ORDINARY) + 1.0
SMALL = np.tanh(ORDINARY)
WHOLE = np.random.default_rng(1).integers(-5, 6, (3, 4)).astype(np.int64)

UNARY = [
    # graph op, ONNX op, operand, properties in both
    ("abs", "Abs", ORDINARY, {}),
    ("abs", "Abs", WHOLE, {}),
    ("neg", "Neg", SPECIAL, {}),
    ("neg", "Neg", WHOLE, {}),
    ("exp", "Exp", SPECIAL, {}),
    ("log", "Log", SPECIAL, {}),
    ("sqrt", "Sqrt", SPECIAL, {}),
    ("tanh", "Tanh", SPECIAL, {}),
    ("erf", "Erf", ORDINARY, {}),
    ("floor", "Floor", SPECIAL, {}),
    ("ceil", "Ceil", SPECIAL, {}),
    ("round", "Round", SPECIAL, {}),
    ("sin", "Sin", ORDINARY, {}),
    ("cos", "Cos", ORDINARY, {}),
    ("tan", "Tan", ORDINARY, {}),
    ("asin", "Asin", SMALL, {}),
    ("acos", "Acos", SMALL, {}),
    ("atan", "Atan", SPECIAL, {}),
    ("sinh", "Sinh", ORDINARY, {}),
    ("cosh", "Cosh", ORDINARY, {}),
    ("asinh", "Asinh", ORDINARY, {}),
    ("acosh", "Acosh", POSITIVE, {}),
    ("atanh", "Atanh", SMALL, {}),
    ("relu", "Relu", SPECIAL, {}),
    ("relu", "Relu", WHOLE, {}),
    ("sigmoid", "Sigmoid", ORDINARY, {}),
    ("softplus", "Softplus", ORDINARY * 4, {}),
    ("reciprocal", "Reciprocal", SPECIAL, {}),
    ("leaky_relu", "LeakyRelu", SPECIAL, {"alpha": 0.25}),
    ("elu", "Elu", ORDINARY, {"alpha": 1.5}),
    ("hard_sigmoid", "HardSigmoid", ORDINARY * 4, {"alpha": 0.25, "beta": 0.5}),
    ("is_nan", "IsNaN", SPECIAL, {}),
    ("sign", "Sign", ORDINARY, {}),
    ("sign", "Sign", WHOLE, {}),
    ("not", "Not", WHOLE > 0, {}),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "onnx_name", "x", "properties"), UNARY)
def test_unary_ops(name: str, onnx_name: str, x, properties, graph_op, onnx_op) -> None:
    (found,), (expected,) = graph_op(name, x, **properties), onnx_op(onnx_name, x, **properties)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    assert (found.dtype == np.bool_) == (np.asarray(expected).dtype == np.bool_)


FLOATS = (np.tile(SPECIAL, len(SPECIAL)), np.repeat(SPECIAL, len(SPECIAL)))
INTS = (WHOLE, WHOLE[::-1])
BOOLS = (np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool))
BINARY = [
    ("add", "Add", FLOATS),
    ("add", "Add", INTS),
    ("sub", "Sub", FLOATS),
    ("mul", "Mul", FLOATS),
    ("mul", "Mul", INTS),
    ("div", "Div", FLOATS),
    ("max", "Max", FLOATS),
    ("max", "Max", INTS),
    ("min", "Min", FLOATS),
    ("pow", "Pow", (POSITIVE, ORDINARY)),
    ("equal", "Equal", FLOATS),
    ("equal", "Equal", INTS),
    ("less", "Less", FLOATS),
    ("less_equal", "LessOrEqual", FLOATS),
    ("greater", "Greater", FLOATS),
    ("greater_equal", "GreaterOrEqual", FLOATS),
    ("greater_equal", "GreaterOrEqual", INTS),
    ("and", "And", BOOLS),
    ("or", "Or", BOOLS),
    ("xor", "Xor", BOOLS),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "onnx_name", "operands"), BINARY)
def test_binary_ops(name: str, onnx_name: str, operands, graph_op, onnx_op) -> None:
    (found,), (expected,) = graph_op(name, *operands), onnx_op(onnx_name, *operands)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_integer_division_truncates(graph_op) -> None:
    a, b = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    assert graph_op("div", a, b)[0].tolist() == [3, -3, -3, 3]


@pytest.mark.parametrize("bounds", [(-1.0, 1.5), (0.0, None), (None, 2.0), (None, None)])
@pytest.mark.parametrize("x", [SPECIAL, ORDINARY])
def test_clip_keeps_nan_and_open_bounds(x, bounds, graph_op, onnx_op) -> None:
    low, high = bounds
    (found,) = graph_op("clip", x, min=low, max=high)
    limits = [None if v is None else np.array(v) for v in bounds]
    np.testing.assert_array_equal(found, onnx_op("Clip", x, *limits)[0])


def test_clip_takes_whole_numbers_for_integers(graph_op) -> None:
    assert graph_op("clip", WHOLE, min=0, max=3)[0].tolist() == WHOLE.clip(0, 3).tolist()


@pytest.mark.parametrize("other", [ORDINARY, WHOLE])
def test_where(other, graph_op, onnx_op) -> None:
    condition = np.random.default_rng(3).random(other.shape) < 0.5
    operands = (condition, other, other * 2)
    np.testing.assert_array_equal(graph_op("where", *operands)[0], onnx_op("Where", *operands)[0])


CASTS = [
    (np.array([1.9, -1.9, 0.0, -0.5]), i32, [1, -1, 0, 0]),
    (np.array([np.nan, np.inf, -1e30]), i64, [0, 2**63 - 1, -(2**63)]),
    (np.array([300.7, -129.0, np.nan], np.float32), i8, [127, -128, 0]),
    (np.array([300, -129], np.int32), i8, [44, 127]),
    (np.array([70000.0, 2049.0, 1e-9], np.float32), f16, [np.inf, 2048.0, 0.0]),
    (np.array([1e39, 0.1]), f32, [np.inf, float(np.float32(0.1))]),
    (np.array([257.0, 3.4e38], np.float32), bf16, [256.0, np.inf]),
    (np.array([0.5, 0.0, np.nan]), i1, [True, False, True]),
    (np.array([True, False]), f32, [1.0, 0.0]),
    (np.array([True, False]), i64, [1, 0]),
    (np.array([3, 0, -1]), i1, [True, False, True]),
    (np.array([3, -1], np.int32), f64, [3.0, -1.0]),
    (np.array([3, -1], np.int8), i64, [3, -1]),
    (np.array([0.5], np.float16), f32, [0.5]),
    (np.array([0.5], np.float32), f32, [0.5]),
]


@pytest.mark.parametrize(("x", "to", "expected"), CASTS)
def test_cast(x, to, expected, graph_op) -> None:
    (found,) = graph_op("cast", x, to=to)
    assert found.tolist() == expected


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3)])
def test_rank_0_and_empty_operands(shape, graph_op) -> None:
    x = np.ones(shape)
    assert graph_op("relu", x)[0].shape == shape
    np.testing.assert_array_equal(graph_op("add", x, x)[0], x + x)
