"""Weights of 2, 4 and 8 bits in onnxruntime's domain, unpacked at import.

Source: onnxruntime docs/ContribOperators.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import FunctionProto

from ...dialects.types import Array
from .fused_quantised import QuantisedBody
from .node import OnnxNode


def unpacked(packed: Array, bits: int) -> Array:
    """Numbers of 2, 4 or 8 bits along the last dim, those of a byte in the order of rising bits."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = packed[..., None] >> shifts & np.uint8((1 << bits) - 1)
    return parts.reshape(*packed.shape[:-1], -1)


def matmul_nbits(node: OnnxNode) -> FunctionProto:
    """A product with weights of few bits, packed block by block along k.

    Shapes: b is [n, blocks, bytes of a block]; scales and zero points are [n, blocks]; g_idx names
    the scale of each k, where it is not that of its block.
    """
    body = QuantisedBody(node)
    k, n = node.int("K", 0), node.int("N", 0)
    bits, block = node.int("bits", 4), node.int("block_size", 32)
    blocks = -(-k // block)
    packed = node.constant(1, "the packed weights").reshape(n, blocks, -1)
    numbers = unpacked(packed, bits).reshape(n, blocks * block)[:, :k]
    scales = body.add("Reshape", "x2", body.integers(n, blocks))
    scales = body.add("Cast", scales, to=1)
    floating = node.has(3) and node.value(3).element != node.value(1).element
    zeros = np.full((n, blocks), 1 << bits - 1, np.uint8)
    if node.has(3) and not floating:
        given = node.constant(3, "zero points").reshape(n, -1)
        zeros = unpacked(given, bits)[:, :blocks]
    if floating or node.has(4):
        whole = body.tensor(numbers.astype(np.float32))
        points = body.tensor(zeros.astype(np.float32))
        if floating:
            points = body.add("Reshape", "x3", body.integers(n, blocks))
            points = body.add("Cast", points, to=1)
        groups = "x4"
        if not node.has(4):
            groups = body.tensor(np.arange(k, dtype=np.int64) // block)
        points, by = (body.add("Gather", v, groups, axis=1) for v in (points, scales))
        weights = body.add("Mul", body.add("Sub", whole, points), by)
    else:
        pair = body.tensor(numbers), scales, body.tensor(zeros)
        weights = body.add("DequantizeLinear", *pair, axis=1, block_size=block)
    weights = body.add("CastLike", weights, "x0")
    y = body.add("MatMul", "x0", body.add("Transpose", weights, perm=[1, 0]))
    return body.function(body.add("Add", y, body.operand(5)) if node.has(5) else y)


def gather_blocks(node: OnnxNode) -> FunctionProto:
    """Rows of a matrix that is quantised in blocks; bytes may hold two numbers of the last dim."""
    body = QuantisedBody(node)
    data = node.constant(0, "the quantised data")
    bits = node.int("bits", 4)
    rank = data.ndim
    gather = node.axis(node.int("gather_axis", 0), rank)
    axis = node.axis(node.int("quantize_axis", 1), rank)
    block = node.int("block_size", 128)
    packed = data.dtype == np.uint8 and bits < 8
    numbers = unpacked(data, bits) if packed else data
    zero: list[str] = []
    if packed or data.dtype == np.uint8:
        shape = list(node.shape(2))
        zeros = np.full(shape, 1 << bits - 1, np.uint8)
        if node.has(3):
            given = node.constant(3, "zero points")
            zeros = (unpacked(given, bits) if packed else given)[..., : shape[-1]]
        zero = [body.tensor(zeros)]
    elif node.has(3):
        zero = [body.operand(3)]
    whole: Any = body.tensor(numbers) if packed else "x0"
    floats = body.add("DequantizeLinear", whole, "x2", *zero, axis=axis, block_size=block)
    return body.function(body.add("Gather", floats, "x1", axis=gather))


__all__ = ["gather_blocks", "matmul_nbits", "unpacked"]
