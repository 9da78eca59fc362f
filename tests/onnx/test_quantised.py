"""Quantised ops agree with onnxruntime on random settings, its own domain's too.

Where the specification fixes the result, results are the same bit for bit. onnxruntime computes
some ops of its domain in other steps: those may differ by one.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.random_nodes import quantised
from support.random_nodes.draw import Draw, Generator, Sample
from support.random_nodes.judge import WAYS, NoKernel, by_onnxruntime, verdict

from isoform.dialects import reference
from isoform.lowering.onnx_to_graph import import_onnx

DOMAIN = "com.microsoft"


def scale(d: Draw, shape: tuple[int, ...] = ()) -> np.ndarray:
    return np.asarray(d.rng.uniform(0.01, 0.3, shape), np.float32)


def triple(d: Draw, dtype: str, shape: list[int]) -> list[Any]:
    """Random integers of the whole range, their scale, their zero point."""
    info = np.iinfo(dtype)
    zero = np.asarray(d.rng.integers(info.min, info.max, (), dtype, endpoint=True))
    return [d.extreme(dtype, shape), scale(d), zero]


def after(d: Draw, dtype: str) -> list[Any]:
    """Scale and zero point of a result."""
    return triple(d, dtype, [1])[1:]


def binary(op: str) -> Generator:
    def draw(d: Draw) -> Sample:
        dtype, shape = d.pick(("uint8", "int8")), d.shape(1, 3, 6)
        other = shape if d.flag() else shape[-1:]
        operands = [*triple(d, dtype, shape), *triple(d, dtype, other), *after(d, dtype)]
        return Sample(op, operands, {}, 1, domain=DOMAIN)

    return draw


def unary(op: str, **attributes: Any) -> Generator:
    def draw(d: Draw) -> Sample:
        dtype = d.pick(("uint8", "int8"))
        operands = [*triple(d, dtype, d.shape(2, 3, 6)), *after(d, dtype)]
        return Sample(op, operands, attributes, 1, constants=[1, 2, 3, 4], domain=DOMAIN)

    return draw


def average(d: Draw) -> Sample:
    given = {"kernel_shape": [2, 3], "strides": d.ints(1, 2, 2), "pads": d.ints(0, 1, 4)}
    shape = [1, d.int(1, 3), d.int(4, 6), d.int(4, 6)]
    operands = [*triple(d, "uint8", shape), *after(d, "uint8")]
    return Sample("QLinearAveragePool", operands, given, 1, domain=DOMAIN)


def global_average(d: Draw) -> Sample:
    shape, last = [1, d.int(1, 4), d.int(2, 6), d.int(2, 6)], int(d.flag())
    operands = [*triple(d, "uint8", shape), *after(d, "uint8")]
    attributes = {"channels_last": last}
    return Sample("QLinearGlobalAveragePool", operands, attributes, 1, domain=DOMAIN)


def softmax(d: Draw) -> Sample:
    opset = d.pick((12, 13))
    operands = [*triple(d, "uint8", [2, 3, 5]), np.asarray(1 / 256, np.float32), np.uint8(0)]
    operands[4] = np.asarray(operands[4])
    return Sample("QLinearSoftmax", operands, {"axis": d.int(1, 2), "opset": opset}, 1,
                  constants=[1, 2, 3, 4], domain=DOMAIN)  # fmt: skip


def concat(d: Draw) -> Sample:
    shape = d.shape(2, 3, 5)
    operands = after(d, "uint8")
    for _ in range(d.int(1, 3)):
        operands += triple(d, "uint8", shape)
    constants = [k for k in range(len(operands)) if k < 2 or (k - 2) % 3]
    return Sample("QLinearConcat", operands, {"axis": 1}, 1, constants=constants, domain=DOMAIN)


def qgemm(d: Draw) -> Sample:
    m, k, n = d.int(1, 5), d.int(1, 9), d.int(1, 6)
    flip = d.flag()
    left = triple(d, "uint8", [k, m] if d.flag() else [m, k])
    flags = {"transA": int(left[0].shape != (m, k)), "transB": int(flip), "alpha": 0.5}
    b = d.extreme("int8", [n, k] if flip else [k, n])
    right = [b, scale(d), np.asarray(0, np.int8)]
    bias = d.array("int32", [n], -99, 99) if d.flag() else None
    if left[0].shape == (m, k) and m == k:
        flags["transA"] = 0
    last = after(d, "uint8") if d.flag() else []
    return Sample("QGemm", [*left, *right, bias, *last], flags, 1, domain=DOMAIN)


def to_float(d: Draw) -> Sample:
    m, k, n = d.int(1, 5), d.int(1, 9), d.int(1, 6)
    a, b = triple(d, "uint8", [m, k]), d.extreme("int8", [k, n])
    columns = (n,) if d.flag() else ()
    zero = d.array("int8", list(columns), -9, 9) if d.flag() else None
    bias = d.array("float32", [n]) if d.flag() else None
    operands = [a[0], b, a[1], scale(d, columns), a[2], zero, bias]
    return Sample("MatMulIntegerToFloat", operands, {}, 1, domain=DOMAIN)


def dynamic(d: Draw) -> Sample:
    m, k, n = d.int(1, 5), d.int(2, 9), d.int(1, 6)
    zero = d.array("int8", [], -9, 9) if d.flag() else None
    bias = d.array("float32", [n]) if d.flag() else None
    operands = [d.array("float32", [m, k]), d.extreme("int8", [k, n]), scale(d), zero, bias]
    return Sample("DynamicQuantizeMatMul", operands, {}, 1, domain=DOMAIN)


def nbits(d: Draw) -> Sample:
    block, k, n = d.pick((16, 32)), d.pick((32, 48, 64)), d.int(1, 6)
    blocks = -(-k // block)
    bytes_ = d.rng.integers(0, 255, (n, blocks, block // 2), "uint8", endpoint=True)
    zeros = d.rng.integers(0, 255, (n * -(-blocks // 2),), "uint8", endpoint=True)
    operands = [
        d.array("float32", [d.int(1, 3), k]), bytes_, scale(d, (n * blocks,)),
        zeros if d.flag() else None,
    ]  # fmt: skip
    given = {"K": k, "N": n, "bits": 4, "block_size": block}
    constants = [1, 2, 3] if operands[3] is not None else [1, 2]
    return Sample("MatMulNBits", operands, given, 1, constants=constants, domain=DOMAIN)


def gathered(d: Draw) -> Sample:
    rows, columns = d.int(3, 6), d.pick((32, 64))
    data = d.rng.integers(0, 255, (rows, columns // 2), "uint8", endpoint=True)
    operands = [data, d.rng.integers(0, rows, (2, 3)), scale(d, (rows, columns // 16))]
    given = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": 4}
    return Sample("GatherBlockQuantized", operands, given, 1, constants=[0], domain=DOMAIN)


# onnxruntime's own ops: how they are drawn, and by how many steps results may differ.
CONTRIBUTED: dict[str, tuple[Generator, int]] = {
    "DynamicQuantizeMatMul": (dynamic, 0),
    "GatherBlockQuantized": (gathered, 0),
    "MatMulIntegerToFloat": (to_float, 0),
    "MatMulNBits": (nbits, 0),
    "QGemm": (qgemm, 1),
    "QLinearAdd": (binary("QLinearAdd"), 1),
    "QLinearAveragePool": (average, 1),
    "QLinearConcat": (concat, 1),
    "QLinearGlobalAveragePool": (global_average, 1),
    "QLinearLeakyRelu": (unary("QLinearLeakyRelu", alpha=0.3), 1),
    "QLinearMul": (binary("QLinearMul"), 1),
    "QLinearSigmoid": (unary("QLinearSigmoid"), 1),
    "QLinearSoftmax": (softmax, 1),
}


def differences(sample: Sample, way: str, steps: int) -> str:
    """What is wrong; integers may differ by some steps, floats by rounding."""
    try:
        wanted = by_onnxruntime(sample)
    except NoKernel as error:
        return f"no kernel: {error}"[:200]
    found = WAYS[way](sample)
    for name, want in wanted.items():
        got, want = (np.asarray(a).astype(np.float64) for a in (found[name], want))
        most = steps if wanted[name].dtype.kind in "iu" else 1e-4 * max(1.0, np.abs(want).max())
        apart = float(np.abs(got - want).max(initial=0)) if got.shape == want.shape else np.inf
        if not apart <= most:
            return f"{name} differs by {apart} ({sample})"
    return "agrees"


def failures(op: str, way: str, seeds: range) -> list[str]:
    draw, steps = CONTRIBUTED[op]
    found = [(seed, differences(draw(Draw(seed)), way, steps)) for seed in seeds]
    assert "agrees" in {v for _, v in found}, found[0]
    return [f"{op}, seed {s}: {v}" for s, v in found if not v.startswith(("agrees", "no kernel"))]


@pytest.mark.parametrize("op", CONTRIBUTED)
def test_a_contributed_op_computes_what_onnxruntime_does(op: str) -> None:
    assert failures(op, "reference", range(6)) == []
    assert failures(op, "compiled", range(6, 7)) == []


@pytest.mark.slow
@pytest.mark.parametrize("op", CONTRIBUTED)
def test_many_contributed_ops_agree(op: str) -> None:
    assert failures(op, "reference", range(300)) == []
    assert failures(op, "compiled", range(20)) == []


@pytest.mark.parametrize("op", quantised.GENERATORS)
def test_a_compiled_op_is_the_same_bit_for_bit(op: str) -> None:
    for seed in range(2):
        assert verdict(quantised.GENERATORS[op](Draw(100 + seed)), "compiled") in ("agrees",)


def test_numbers_of_4_bits_are_inputs_and_results() -> None:
    import ml_dtypes
    import onnx

    import isoform

    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (uint4[5] x, float s) => (uint4[5] z, int4[5] c, float[5] y) {
        y = DequantizeLinear(x, s) z = QuantizeLinear <output_dtype = 21> (y, s)
        w = Neg(y) c = Cast <to = 22> (w)
    }"""
    program = import_onnx(onnx.parser.parse_model(text))
    x = np.array([0, 3, 9, 15, 8], ml_dtypes.uint4)
    for found in (
        reference.run(program, {"x": x, "s": np.array(0.5, np.float32)}),
        isoform.compile(program, threads=1, effort="quick")(x=x, s=np.array(0.5, np.float32)),
    ):
        assert np.array_equal(found["y"], [0, 1.5, 4.5, 7.5, 4])
        assert np.array_equal(np.asarray(found["z"]).astype(int), [0, 3, 9, 15, 8])
        assert np.array_equal(np.asarray(found["c"]).astype(int), [0, -1, -4, -7, -4])


def with_constant_weights(op: str) -> Generator:
    """A product whose weights are constants: kernels of bytes multiply them."""

    def draw(d: Draw) -> Sample:
        sample = quantised.GENERATORS[op](d)
        weights = (3, 5) if op.startswith("QLinear") else (1, 3)
        constants = [k for k in weights if k < len(sample.inputs) and sample.inputs[k] is not None]
        return dataclasses.replace(sample, constants=constants)

    return draw


PRODUCTS = ("ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul")


def product_failures(op: str, seeds: range) -> list[str]:
    draw = with_constant_weights(op)
    found = [(seed, verdict(draw(Draw(seed)), "compiled")) for seed in seeds]
    assert "agrees" in {v for _, v in found}
    return [f"{op}, seed {s}: {v}" for s, v in found if not v.startswith(("agrees", "no kernel"))]


@pytest.mark.parametrize("op", PRODUCTS)
def test_products_of_bytes_are_exact(op: str) -> None:
    """Of all signs and zero points, padded, in groups: onnxruntime's numbers, bit for bit."""
    assert product_failures(op, range(6)) == []


@pytest.mark.slow
@pytest.mark.parametrize("op", PRODUCTS)
def test_many_products_of_bytes_are_exact(op: str) -> None:
    assert product_failures(op, range(500)) == []
