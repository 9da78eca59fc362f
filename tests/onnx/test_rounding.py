"""Every node rounds to its own dtype: compiled, in the reference, and in folded constants."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel
from support.stepwise import Chain, random_chain, unequal

import isoform
from isoform.dialects import reference
from isoform.dialects.arithmetic import Arithmetic
from isoform.lowering.onnx_to_graph import import_onnx

MANY = range(1000, 3000)


def seeds(count: int) -> list[object]:
    """A few, and many under the marker."""
    return [*range(count), *(pytest.param(seed, marks=pytest.mark.slow) for seed in MANY)]


def compiled(chain: Chain) -> str:
    session = isoform.compile(import_onnx(chain.model), threads=1, effort="quick")
    return unequal(chain.expected, session(**chain.inputs))


def referred(chain: Chain) -> str:
    program = import_onnx(chain.model)
    found = reference.run(program, chain.inputs, Arithmetic.COMPUTED)
    return unequal(chain.expected, found)


def by_onnxruntime(chain: Chain) -> str | None:
    """What onnxruntime says, None where it has no kernel.

    It leaves out roundings between half floats, so these are not for it.
    """
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(
            chain.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except NoKernel:
        return None
    found = session.run(None, chain.inputs)
    names = [o.name for o in session.get_outputs()]
    return unequal(chain.expected, dict(zip(names, found, strict=True)))


@pytest.mark.parametrize("seed", seeds(12))
def test_chains_are_rounded_step_by_step(seed: int) -> None:
    chain = random_chain(seed)
    assert referred(chain) == ""
    assert compiled(chain) == ""


@pytest.mark.parametrize("count", [5, 24])  # known to the importer, and folded by the pass
@pytest.mark.parametrize(
    "seed", [*range(20), *(pytest.param(s, marks=pytest.mark.slow) for s in MANY)]
)
def test_constants_are_folded_step_by_step(seed: int, count: int) -> None:
    chain = random_chain(seed, count=count, constant=True)
    assert referred(chain) == ""
    assert compiled(chain) == ""


def test_onnxruntime_says_the_same_where_no_half_float_is() -> None:
    chains = [random_chain(seed) for seed in range(200)]
    compared = [by_onnxruntime(chain) for chain in chains if not chain.has_half]
    assert compared.count("") >= 5
    assert set(compared) <= {"", None}


def test_chains_reach_what_they_are_for() -> None:
    chains = [random_chain(seed) for seed in range(60)]
    kinds = {a.dtype for chain in chains for a in chain.expected.values()}
    assert len(kinds) == 9
    halves = [
        a.astype(np.float64) for c in chains for a in c.expected.values() if a.dtype.itemsize == 2
    ]
    assert any(np.isinf(a).any() for a in halves)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "Gemm"])
def test_half_sums_of_products_round_once_after_the_bias(op: str, dtype: str) -> None:
    """Where floats are two apart, one by the sum and one by the bias make two, not none."""
    even = 2.0 ** (ml_dtypes.finfo(dtype).nmant + 1)
    x = np.array([even, 1.0]).reshape((1, 2) + (() if op == "Gemm" else (1, 1)))
    w = np.ones({"Conv": (1, 2, 1, 1), "ConvTranspose": (2, 1, 1, 1), "Gemm": (2, 1)}[op])
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    data = {"w": w.astype(dtype), "b": np.ones(1, dtype)}
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(op, ["x", "w", "b"], ["y"])],
        "half",
        [onnx.helper.make_tensor_value_info("x", kind, x.shape)],
        [onnx.helper.make_tensor_value_info("y", kind, None)],
        [onnx.helper.make_tensor(n, kind, a.shape, a.tobytes(), raw=True) for n, a in data.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 22)])
    program = import_onnx(model)
    inputs = {"x": x.astype(dtype)}
    for found in (
        reference.run(program, inputs, Arithmetic.COMPUTED),
        isoform.compile(program, threads=1, effort="quick")(**inputs),
    ):
        assert found["y"].astype(float).ravel() == [even + 2]
