"""Corners of a drawn node: NaN, infinities, zeros of both signs, ties, and dims of no elements."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from support.random_nodes.draw import Draw, Generator, Sample

# What all orders of comparison agree on; what NaN is among other numbers is left open where values
# are sorted.
_ORDERED = {"TopK", "ArgMax", "ArgMin", "ScatterElements", "ScatterND", "Unique"}
# docs/onnx-disagreements.md: a window of nothing but -inf.
_ABOVE = {"MaxPool", "MaxRoiPool"}
# Sums of infinities are a number in one order of adding and NaN in another; positions and what a
# cast does to them are left open.
_FINITE = {
    "Cast", "CastLike", "Mod", "DeformConv", "Det", "GridSample", "Col2Im", "RoiAlign", "DFT",
    "STFT", "LSTM", "GRU", "RNN", "OneHot", "QuantizeLinear", "DynamicQuantizeLinear",
    "DynamicQuantizeMatMul", "MatMulNBits", "DynamicQuantizeLSTM", "Attention",
    "MultiHeadAttention", "GroupQueryAttention", "RotaryEmbedding",
}  # fmt: skip
_SPECIAL = {"ScatterElements": (0, 2), "ScatterND": (0, 2), "Scatter": (0, 2)}

# Ops whose operands are of one shape, or broadcast.
_POINTS = (
    "Add", "Sub", "Mul", "Div", "Max", "Min", "Less", "Greater", "LessOrEqual", "GreaterOrEqual",
    "Equal", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitShift", "Mod", "Pow",
    "Cast", "CastLike", "Abs", "Sign", "Shrink", "Clip", "Where", "PRelu",
)  # fmt: skip
# Operands that lose all elements along one of their first dims, together.
_BATCHES: dict[str, Sequence[Sequence[tuple[int, int]]]] = {
    "GridSample": [[(0, 0), (1, 0)], [(1, 1)], [(1, 2)]],
    "RoiAlign": [[(1, 0), (2, 0)]],
    "MaxRoiPool": [[(1, 0)]],
    "ScatterND": [[(1, 0), (2, 0)]],
    "Det": [[(0, 0)]],
    "MaxPool": [[(0, 0)]],
    "Col2Im": [[(0, 0)]],
    "ReverseSequence": [[(0, 2)]],
    "NonZero": [[(0, 0)], [(0, 1)]],
    "Unique": [[(0, 0)]],
    "Compress": [[(1, 0)]],
    "NonMaxSuppression": [[(0, 1), (1, 2)], [(1, 1)]],
    "DFT": [[(0, 0)]],
    "STFT": [[(0, 0)]],
    "GatherND": [[(1, 0)]],
    "TensorScatter": [[(0, 1), (1, 1)]],
}  # fmt: skip


def special(sample: Sample, d: Draw) -> Sample:
    """The node with NaN, infinities, signed zeros and repeated values among its floats."""
    numbers = [0.0, -0.0, 1.0, 1.0]
    if sample.op_type not in _FINITE:
        numbers += [np.inf] if sample.op_type in _ABOVE else [np.inf, -np.inf]
        numbers += [] if sample.op_type in _ORDERED | _ABOVE else [np.nan]
    places = _SPECIAL.get(sample.op_type, (0, 1) if sample.op_type in _POINTS else (0,))
    inputs = list(sample.inputs)
    for k in places:
        a = inputs[k] if k < len(inputs) else None
        if a is None or a.dtype.kind != "f" or (sample.op_type == "Pow" and k):
            continue
        if sample.op_type == "Sign" and a.dtype == np.float16:  # docs/onnx-disagreements.md
            numbers = [n for n in numbers if not np.isnan(n)]
        chosen = d.rng.choice(np.array(numbers, a.dtype), a.shape)
        inputs[k] = np.where(d.rng.random(a.shape) < 0.3, chosen, a)
    return dataclasses.replace(sample, inputs=inputs)


def empty(sample: Sample, d: Draw) -> Sample:
    """The node with a dim of no elements, where that leaves it a node; else as it is."""
    inputs: list[Any] = list(sample.inputs)
    op_type = sample.op_type
    ranks = [a.ndim for a in inputs if a is not None]
    if op_type in _POINTS and max(ranks):
        at = d.int(1, max(ranks))
        cut = [(k, -at) for k, a in enumerate(inputs) if a is not None and a.ndim >= at]
        cut = [(k, axis) for k, axis in cut if inputs[k].shape[axis] != 1 or d.flag(0.1)]
    elif op_type in _BATCHES:
        cut = d.pick(_BATCHES[op_type])
        cut = [(k, axis) for k, axis in cut if axis < inputs[k].ndim]
    elif op_type in ("ScatterElements", "Scatter"):
        axis = d.int(0, ranks[1] - 1)
        cut = [(1, axis), (2, axis)]
    elif op_type in ("TopK", "ArgMax", "ArgMin", "CumSum", "CumProd"):
        given = inputs[1] if op_type.startswith("Cum") else sample.attributes.get("axis", 0)
        dims = [k for k in range(ranks[0]) if k != int(given) % ranks[0]]
        cut = [(0, d.pick(dims))] if dims else []
    else:
        cut = []
    for k, axis in cut:
        inputs[k] = inputs[k].take(np.zeros(0, np.int64), axis)
    return dataclasses.replace(sample, inputs=inputs)


def cornered(generator: Generator) -> Generator:
    """Draws that are wide now and then, a quarter special, a twelfth empty."""

    def draw(d: Draw) -> Sample:
        d.wide = d.flag(0.3)
        sample, chance = generator(d), d.rng.random()
        if chance < 0.25:
            return special(sample, d)
        return empty(sample, d) if chance < 0.33 else sample

    return draw
