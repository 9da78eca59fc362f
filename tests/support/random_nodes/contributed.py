"""Random settings of onnxruntime's quantised ops, and of products with constant weights."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from support.random_nodes import quantised
from support.random_nodes.draw import Draw, Generator, Sample
from support.random_nodes.judge import WEIGHTS

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
        return Sample(op, operands, {}, 1, domain=DOMAIN, steps=1)

    return draw


def unary(op: str, **attributes: Any) -> Generator:
    def draw(d: Draw) -> Sample:
        dtype = d.pick(("uint8", "int8"))
        operands = [*triple(d, dtype, d.shape(2, 3, 6)), *after(d, dtype)]
        return Sample(op, operands, attributes, 1, constants=[1, 2, 3, 4], domain=DOMAIN, steps=1)

    return draw


def average(d: Draw) -> Sample:
    given = {"kernel_shape": [2, 3], "strides": d.ints(1, 2, 2), "pads": d.ints(0, 1, 4)}
    shape = [1, d.int(1, 3), d.int(4, 6), d.int(4, 6)]
    operands = [*triple(d, "uint8", shape), *after(d, "uint8")]
    return Sample("QLinearAveragePool", operands, given, 1, domain=DOMAIN, steps=1)


def global_average(d: Draw) -> Sample:
    shape, last = [1, d.int(1, 4), d.int(2, 6), d.int(2, 6)], int(d.flag())
    operands = [*triple(d, "uint8", shape), *after(d, "uint8")]
    attributes = {"channels_last": last}
    return Sample("QLinearGlobalAveragePool", operands, attributes, 1, domain=DOMAIN, steps=1)


def softmax(d: Draw) -> Sample:
    opset = d.pick((12, 13))
    operands = [*triple(d, "uint8", [2, 3, 5]), np.asarray(1 / 256, np.float32), np.uint8(0)]
    operands[4] = np.asarray(operands[4])
    return Sample("QLinearSoftmax", operands, {"axis": d.int(1, 2), "opset": opset}, 1,
                  constants=[1, 2, 3, 4], domain=DOMAIN, steps=1)  # fmt: skip


def concat(d: Draw) -> Sample:
    shape = d.shape(2, 3, 5)
    operands = after(d, "uint8")
    for _ in range(d.int(1, 3)):
        operands += triple(d, "uint8", shape)
    constants = [k for k in range(len(operands)) if k < 2 or (k - 2) % 3]
    return Sample(
        "QLinearConcat", operands, {"axis": 1}, 1, constants=constants, domain=DOMAIN, steps=1
    )


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
    return Sample("QGemm", [*left, *right, bias, *last], flags, 1, domain=DOMAIN, steps=1)


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


GENERATORS: dict[str, Generator] = {
    "DynamicQuantizeMatMul": dynamic,
    "GatherBlockQuantized": gathered,
    "MatMulIntegerToFloat": to_float,
    "MatMulNBits": nbits,
    "QGemm": qgemm,
    "QLinearAdd": binary("QLinearAdd"),
    "QLinearAveragePool": average,
    "QLinearConcat": concat,
    "QLinearGlobalAveragePool": global_average,
    "QLinearLeakyRelu": unary("QLinearLeakyRelu", alpha=0.3),
    "QLinearMul": binary("QLinearMul"),
    "QLinearSigmoid": unary("QLinearSigmoid"),
    "QLinearSoftmax": softmax,
}


def with_constant_weights(generator: Generator) -> Generator:
    """A product whose weights are constants: kernels of bytes multiply them."""

    def draw(d: Draw) -> Sample:
        sample = generator(d)
        places = WEIGHTS.get(sample.op_type, (1, 3))
        constants = {k for k in places if k < len(sample.inputs) and sample.inputs[k] is not None}
        return dataclasses.replace(sample, constants=sorted({*sample.constants, *constants}))

    return draw


PRODUCTS = {
    f"{op}, constant weights": with_constant_weights(generator)
    for op, generator in {**quantised.GENERATORS, **GENERATORS}.items()
    if op in WEIGHTS or op == "ConvInteger"
}
