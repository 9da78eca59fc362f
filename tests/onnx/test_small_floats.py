"""ONNX's Cast, QuantizeLinear and DequantizeLinear with floats of 8 and 4 bits."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import isoform
from isoform.dialects.errors import UserError
from isoform.lowering.graph_to_onnx.exporter import to_model
from isoform.lowering.onnx_to_graph import import_onnx

FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
STORED = (*FLOAT8, "float4_e2m1fn")
EVERY = (*STORED, "float8_e8m0fnu", "int4", "uint4", "int2", "uint2")


def number(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def model(node: onnx.NodeProto, operands: list[np.ndarray], result: int) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, number(a.dtype), a.shape)
        for name, a in zip(node.input, operands, strict=True)
    ]
    output = helper.make_tensor_value_info("y", result, None)
    graph = helper.make_graph([node], "g", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


def run(node: onnx.NodeProto, operands: list[np.ndarray], result: int) -> np.ndarray:
    made = import_onnx(model(node, operands, result))
    with isoform.compile(made, threads=1, effort="quick") as session:
        return session(**dict(zip(node.input, operands, strict=True)))["y"]


def assert_same(found: np.ndarray, wanted: np.ndarray) -> None:
    x, y = found.astype(np.float64), wanted.astype(np.float64)
    assert found.dtype == wanted.dtype
    assert np.array_equal(x, y, equal_nan=True)
    assert np.array_equal(np.signbit(x[x == 0]), np.signbit(y[x == 0]))


# --- Cast -----------------------------------------------------------------------------------------


def edges(dtype: Any) -> np.ndarray:
    """Numbers around the greatest one of a type, and what has no number."""
    greatest = float(ml_dtypes.finfo(dtype).max)
    near = [greatest * k for k in (0.99, 1, 1.01, 1.03, 1.07, 1.13, 2, 1e3)]
    few = [0.0, -0.0, math.inf, -math.inf, math.nan, 0.3, -0.7, 1e-3, 1e-6]
    return np.array([*near, *(-x for x in near), *few], np.float32)


@pytest.mark.parametrize(("to", "saturate"), list(itertools.product(FLOAT8, (0, 1))))
def test_a_cast_saturates_or_does_not(to: str, saturate: int) -> None:
    dtype = np.dtype(getattr(ml_dtypes, to))
    greatest = ml_dtypes.finfo(dtype).max
    for source in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        with np.errstate(all="ignore"):
            x = edges(dtype).astype(source)
            cut = np.clip(x.astype(np.float64), -greatest, greatest) if saturate else x
            wanted = cut.astype(np.float32).astype(dtype)
        node = helper.make_node("Cast", ["x"], ["y"], to=number(dtype), saturate=saturate)
        assert_same(run(node, [x], number(dtype)), wanted)


def power(x: float, mode: str, saturate: int) -> float:
    """A number rounded to a power of two, by the specification's words."""
    if math.isnan(x):
        return math.nan
    if x in (0.0, math.inf):
        return (2.0**127 if x else 2.0**-127) if saturate else math.nan
    low = math.ldexp(1.0, math.frexp(x)[1] - 1)
    up = {"down": False, "up": x > low, "nearest": x >= 1.5 * low}[mode]
    found = 2 * low if up else low
    cut = min(max(found, 2.0**-127), 2.0**127)
    return found if found == cut else cut if saturate else math.nan


@pytest.mark.parametrize(
    ("mode", "saturate"), list(itertools.product(("up", "down", "nearest"), (0, 1)))
)
def test_powers_of_two_round_by_each_mode(mode: str, saturate: int) -> None:
    powers = 2.0 ** np.arange(-149, 128)
    bits = np.random.default_rng(0).integers(1, 0x7F800000, 500, dtype=np.uint32)
    exact = np.concatenate([powers, 1.5 * powers]).astype(np.float32)
    sides = [np.nextafter(exact, np.float32(end)) for end in (0, np.inf)]
    ends = np.array([0, np.inf, np.nan], np.float32)
    x = np.concatenate([exact, *sides, bits.view(np.float32), ends])
    node = helper.make_node(
        "Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=mode
    )
    for operand in (x, x.astype(np.float64) * (1 + 2.0**-40)):
        wanted = np.array([power(float(v), mode, saturate) for v in operand])
        found = run(node, [operand], TensorProto.FLOAT8E8M0)
        assert np.array_equal(found.astype(np.float64), wanted, equal_nan=True)


def test_a_rounding_mode_that_is_none_is_refused() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, round_mode="even")
    with pytest.raises(UserError, match="expected up, down or nearest"):
        import_onnx(model(node, [np.ones(2, np.float32)], TensorProto.FLOAT8E8M0))


# --- QuantizeLinear and DequantizeLinear ----------------------------------------------------------


def parameters(rng: np.random.Generator, shape: list[int]) -> tuple[list[int], dict[str, Any]]:
    """The shape of scales (one, along an axis, in blocks), and the attributes that say so."""
    axis = int(rng.integers(len(shape)))
    match int(rng.integers(3)):
        case 0:
            return [], {}
        case 1:
            return [shape[axis]], {"axis": axis}
        case _:
            block = int(rng.integers(1, shape[axis] + 1))
            blocks = [-(-n // block) if k == axis else n for k, n in enumerate(shape)]
            return blocks, {"axis": axis, "block_size": block}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("to", STORED)
def test_quantising_agrees_with_onnx_reference(to: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, to))
    rng = np.random.default_rng(FLOAT8.index(to) if to in FLOAT8 else 9)
    for _ in range(12):
        shape = [int(n) for n in rng.integers(1, 8, int(rng.integers(1, 4)))]
        scaled, given = parameters(rng, shape)
        source = (np.float32, np.float16)[int(rng.integers(2))]
        scale = rng.uniform(0.01, 2.0, scaled).astype(source)
        x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)).astype(source)
        x.flat[0] = (np.nan, np.inf, -np.inf, -0.0)[int(rng.integers(4))]
        zero = np.zeros(scaled, dtype)
        attributes: dict[str, Any] = {**given, "saturate": int(rng.integers(2))}
        node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], **attributes)
        found = run(node, [x, scale, zero], number(dtype))
        evaluator = ReferenceEvaluator(model(node, [x, scale, zero], number(dtype)))
        results: Any = evaluator.run(None, {"x": x, "s": scale, "z": zero})
        wanted = results[0]
        assert np.array_equal(
            found.astype(np.float64), wanted.astype(np.float64), equal_nan=True
        ), (shape, attributes)


@pytest.mark.parametrize("to", STORED)
def test_every_number_is_dequantised(to: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, to))
    x = np.arange(16 if to.startswith("float4") else 256, dtype=np.uint8).view(dtype)
    x, rng = x.reshape(4, -1), np.random.default_rng(3)
    ways: list[tuple[list[int], dict[str, Any]]] = [
        ([], {}),
        ([4], {"axis": 0}),
        ([4, 2], {"block_size": x.shape[1] // 2}),
    ]
    for scaled, given in ways:
        scale = rng.uniform(0.1, 3.0, scaled).astype(np.float32)
        node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], **given)
        spread = scale if not scaled else scale.reshape(4, -1)
        if "block_size" in given:
            spread = np.repeat(scale, x.shape[1] // 2, axis=1)
        assert_same(run(node, [x, scale], TensorProto.FLOAT), x.astype(np.float32) * spread)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", EVERY)
def test_weights_survive_every_file(to: str, tmp_path: Any) -> None:
    dtype = np.dtype(getattr(ml_dtypes, to))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w = np.abs(np.random.default_rng(0).standard_normal((20, 33)) * 3).astype(dtype)
    nodes = [
        helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "x"], ["y"]),
        helper.make_node("Transpose", ["w"], ["z"], perm=[1, 0]),
    ]
    result = helper.make_tensor_value_info("z", number(dtype), [33, 20])
    floats = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [20, 33]) for n in "xy"]
    weight = onnx.numpy_helper.from_array(w, "w")
    graph = helper.make_graph(nodes, "g", floats[:1], [floats[1], result], [weight])
    opset = [helper.make_opsetid("", 25)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=13), tmp_path / "m.onnx")
    program = isoform.load(tmp_path / "m.onnx")
    isoform.save(program, tmp_path / "m.mlir")
    with isoform.compile(program, threads=1, effort="quick") as session:
        session.save(tmp_path / "session")
    x = np.full((20, 33), 0.5, np.float32)
    again = isoform.load(tmp_path / "m.mlir")
    runs = (
        isoform.compile(again, threads=1, effort="quick"),
        isoform.compile(import_onnx(to_model(again)), threads=1, effort="quick"),
        isoform.open(tmp_path / "session"),
    )
    for session in runs:
        with session:
            found = session(x=x)
        assert_same(found["y"], w.astype(np.float32) * 0.5)
        assert_same(found["z"], w.T)
