"""exp(x) - 1 keeps its digits where x is small: Elu, Celu and Selu, in every float type."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import isoform
from isoform.dialects.reference import run
from isoform.lowering.onnx_to_graph.importer import import_onnx

SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875  # as ONNX has them
TYPES: dict[str, Any] = {
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
    "float64": np.float64,
}
# How an op is made of expm1, where x < 0; ONNX has Celu in float32 alone, and the others in
# bfloat16 since opset 22.
OPS: dict[str, tuple[dict[str, Any], Callable[[np.ndarray], np.ndarray]]] = {
    "Elu": ({"alpha": 1.5}, lambda x: 1.5 * np.expm1(x)),
    "Celu": ({"alpha": 2.0}, lambda x: 2.0 * np.expm1(x / 2.0)),
    "Selu": ({}, lambda x: SELU_GAMMA * SELU_ALPHA * np.expm1(x)),
}
CASES = [(op, name) for op in OPS for name in TYPES if op != "Celu" or name == "float32"]


def imported(op: str, name: str, size: int) -> isoform.Program:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[name]))
    values = [helper.make_tensor_value_info(n, kind, [size]) for n in "xy"]
    node = helper.make_node(op, ["x"], ["y"], **OPS[op][0])
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 22)]
    return import_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=10))


@pytest.mark.parametrize(("op", "name"), CASES)
def test_small_results_have_all_their_digits(op: str, name: str) -> None:
    dtype = TYPES[name]
    info = ml_dtypes.finfo(dtype)
    drawn = np.random.default_rng(0).uniform(np.log2(float(info.smallest_normal)) + 3, 5, 500)
    x = (-(2.0**drawn)).astype(dtype)
    program = imported(op, name, x.size)
    wanted = OPS[op][1](x.astype(np.float64))
    computed = isoform.compile(program)(x=x)["y"].astype(np.float64)
    reference = run(program, {"x": x})["y"]
    # Half floats are computed in float32 and rounded once; wider types are rounded at each step.
    tolerance_in_eps = 2 if name in ("float16", "bfloat16") else 6
    for found in (computed, reference):
        assert np.abs(found / wanted - 1).max() <= tolerance_in_eps * float(info.eps), name


def test_the_sign_of_zero_and_infinities_are_kept() -> None:
    x = np.array([-0.0, 0.0, -np.inf, np.inf, np.nan, -(2.0**-90)], np.float32)
    found = isoform.compile(imported("Elu", "float32", x.size))(x=x)["y"]
    assert np.array_equal(found, [0, 0, -1.5, np.inf, np.nan, -1.5 * 2.0**-90], equal_nan=True)
    assert np.signbit(found[:2]).tolist() == [True, False]
