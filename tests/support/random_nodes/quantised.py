"""Quantisation: ties, saturation, per axis, in blocks, 8 and 16 bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import Draw, Generator, Sample

Q8 = ("uint8", "int8")
Q16 = ("uint16", "int16")


def scales(d: Draw, dtype: str, shape: list[int]) -> np.ndarray:
    """Powers of two among them, so that ties are met."""
    exact = 2.0 ** d.rng.integers(-3, 2, shape)
    return np.asarray(
        exact if d.flag() or dtype == "float16" else d.rng.uniform(0.05, 2, shape)
    ).astype(dtype)


def parameters(d: Draw, shape: list[int], opset: int) -> tuple[list[int], dict[str, Any]]:
    """The shape of scale and zero point, and the attributes that say so."""
    kind = d.pick(
        ["tensor", "axis", "block"]
        if opset >= 21
        else ["tensor", "axis"]
        if opset >= 13
        else ["tensor"]
    )
    if kind == "tensor" or not shape:
        return [] if d.flag(0.7) else ([1] if opset < 19 else []), {}
    axis = d.int(0, len(shape) - 1)
    given: dict[str, Any] = {"axis": axis - len(shape) if d.flag(0.3) else axis}
    if kind == "axis":
        return [shape[axis]], given
    block = d.int(1, shape[axis])
    given["block_size"] = block
    return [-(-n // block) if k == axis else n for k, n in enumerate(shape)], given


def quantize(d: Draw) -> Sample:
    opset = d.opset("QuantizeLinear", 10)
    shape = d.shape(1, 3, 6)
    source = d.pick(["float32", "float16"]) if opset >= 19 else "float32"
    wide, given = parameters(d, shape, opset)
    to = d.pick((*Q8, *Q16) if opset >= 21 else Q8)
    by = d.pick(["float32", "float16"]) if opset >= 23 else source  # the type of the division
    scale = scales(d, by, wide)
    span = float(np.iinfo(to).max) * 2
    span = 9 if "float16" in (source, by) or d.flag() else span
    x = d.array(source, shape, -span, span)
    x = (np.round(x * 2) / 2).astype(source) if d.flag() else x
    if d.flag(0.2) and source == "float32":
        x = np.where(
            d.rng.random(shape) < 0.4,
            d.rng.choice([3e9, -3e9, 1e30, -1e30, np.inf, -np.inf], shape),
            x,
        ).astype(source)
    info = np.iinfo(to)
    zero = d.rng.integers(info.min, info.max, wide, to, endpoint=True) if d.flag(0.8) else None
    zero = None if zero is None else np.asarray(zero, to)
    return Sample("QuantizeLinear", [x, scale, zero], given, opset)


def dequantize(d: Draw) -> Sample:
    opset = d.opset("DequantizeLinear", 10)
    shape = d.shape(1, 3, 6)
    dtype = d.pick((*Q8, *Q16, "int32") if opset >= 21 else (*Q8, "int32"))
    wide, given = parameters(d, shape, opset)
    to = d.pick(["float32", "float16"]) if opset >= 19 else "float32"
    x = d.extreme(dtype, shape)
    zero = d.array(dtype, wide, -100, 100) if d.flag(0.7) else None
    if dtype == "int32":
        x, zero = d.array(dtype, shape, -9999, 9999), None
    return Sample("DequantizeLinear", [x, scales(d, to, wide), zero], given, opset)


def dynamic(d: Draw) -> Sample:
    x = d.array("float32", d.shape(1, 3), d.float(-9, 1), d.float(1, 9))
    x = np.zeros_like(x) if d.flag(0.05) else x
    return Sample("DynamicQuantizeLinear", [x], {}, d.int(11, 23), (True, True, True))


def product_sizes(d: Draw) -> tuple[int, int, int]:
    """Rows, terms, columns: a few, or several steps and register blocks of a kernel."""
    most = d.pick([(4, 6, 4), (9, 70, 40)])
    return d.int(1, most[0]), d.int(1, most[1]), d.int(1, most[2])


def qlinear_matmul(d: Draw) -> Sample:
    m, k, n = product_sizes(d)
    batch = d.shape(0, 1, 3)
    a, b, y = d.pick(Q8), d.pick(Q8), d.pick(Q8)
    if a == "int8":
        b = "int8"
    y = a
    per_row = d.flag(0.4)

    def zero(dtype: str, shape: list[int]) -> np.ndarray:
        return d.array(dtype, shape, -20, 20)

    columns = [n] if per_row and not batch else []
    return Sample(
        "QLinearMatMul",
        [
            d.extreme(a, [*batch, m, k]), scales(d, "float32", []), zero(a, []),
            d.extreme(b, [*batch, k, n]), scales(d, "float32", columns), zero(b, columns),
            np.asarray(d.float(*d.pick([(0.1, 1), (5, 200)])), np.float32), zero(y, []),
        ],
        {},
        d.int(10, 20),
    )  # fmt: skip


def qlinear_conv(d: Draw) -> Sample:
    rank, group = d.int(1, 2), d.int(1, 2)
    most = d.pick([(2, 3), (20, 18)])
    c, m = group * d.int(1, most[0]), group * d.int(1, most[1])
    kernel = d.ints(1, 3, rank)
    dtype = d.pick(Q8)
    weights = "int8" if dtype == "int8" else d.pick(Q8)
    per_channel = d.flag() and weights == "int8"
    wide = [m] if per_channel else []
    zero = np.zeros(wide, weights) if per_channel else d.array(weights, [], -5, 5)
    given: dict[str, Any] = {"group": group, "kernel_shape": kernel}
    if d.flag():
        given["pads"] = d.ints(0, 2, 2 * rank)
    if d.flag():
        given["strides"] = d.ints(1, 2, rank)
    if d.flag(0.3):
        given["dilations"] = d.ints(1, 2, rank)
    size = [d.int(5, 7) for _ in range(rank)]
    return Sample(
        "QLinearConv",
        [
            d.extreme(dtype, [d.int(1, 2), c, *size]),
            scales(d, "float32", []), d.array(dtype, [], -20, 20),
            d.extreme(weights, [m, c // group, *kernel]), scales(d, "float32", wide), zero,
            np.asarray(d.float(*d.pick([(0.1, 1), (5, 200)])), np.float32),
            d.array(dtype, [], -20, 20),
            d.array("int32", [m], -999, 999) if d.flag() else None,
        ],
        given,
        d.int(10, 23),
    )  # fmt: skip


def matmul_integer(d: Draw) -> Sample:
    m, k, n = product_sizes(d)
    a, b = d.pick(Q8), d.pick(Q8)
    if a == "int8":
        b = "int8"
    za = d.array(a, [], -9, 9) if d.flag(0.7) else None
    zb = d.array(b, d.pick([[], [n]]), -9, 9) if d.flag(0.7) else None
    return Sample(
        "MatMulInteger", [d.extreme(a, [m, k]), d.extreme(b, [k, n]), za, zb], {}, d.int(10, 23)
    )


def conv_integer(d: Draw) -> Sample:
    rank = d.int(1, 2)
    most = d.pick([(3, 3), (20, 18)])
    c, m = d.int(1, most[0]), d.int(1, most[1])
    kernel = d.ints(1, 3, rank)
    given: dict[str, Any] = {"kernel_shape": kernel} if d.flag() else {}
    if d.flag():
        given["pads"] = d.ints(0, 2, 2 * rank)
    if d.flag():
        given["strides"] = d.ints(1, 2, rank)
    x = d.extreme("uint8", [d.int(1, 2), c, *d.ints(4, 6, rank)])
    za = d.array("uint8", [], 0, 20) if d.flag(0.7) else None
    zb = d.array("uint8", [], 0, 20) if d.flag(0.7) else None
    return Sample(
        "ConvInteger", [x, d.extreme("uint8", [m, c, *kernel]), za, zb], given, d.int(10, 23)
    )


GENERATORS: dict[str, Generator] = {
    "QuantizeLinear": quantize,
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLinear": dynamic,
    "QLinearMatMul": qlinear_matmul,
    "QLinearConv": qlinear_conv,
    "MatMulInteger": matmul_integer,
    "ConvInteger": conv_integer,
}
