"""Reductions, extrema and running sums on every dtype, axes as attribute and as operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import FLOATS, NUMBERS, Draw, Generator, Sample

AXES_AS_INPUT = {"ReduceSum": 13}


def reduction(op_type: str, dtypes: tuple[str, ...], **ranges: float) -> Generator:
    def draw(d: Draw) -> Sample:
        dtype, shape = d.pick(dtypes), d.shape(0, 4, 3)
        opset = d.opset(op_type)
        given: dict[str, Any] = {}
        if d.flag():
            given["keepdims"] = d.int(0, 1)
        count = d.int(0, len(shape))
        axes = [int(a) for a in d.rng.permutation(len(shape))[:count]]
        axes = [a - len(shape) if d.flag(0.3) and opset >= 11 else a for a in axes]
        inputs: list[Any] = [d.array(dtype, shape, **ranges)]
        if opset >= AXES_AS_INPUT.get(op_type, 18):
            inputs.append(np.asarray(axes, np.int64) if axes or d.flag() else None)
            if d.flag(0.3):
                given["noop_with_empty_axes"] = 1
        elif axes:
            given["axes"] = axes
        return Sample(
            op_type,
            inputs,
            given,
            opset,
            constants=[1] if len(inputs) > 1 and inputs[1] is not None else [],
        )

    return draw


def extremum(op_type: str) -> Generator:
    def draw(d: Draw) -> Sample:
        shape, opset = d.shape(1, 4), d.opset(op_type)
        axis = d.int(-len(shape) if opset >= 11 else 0, len(shape) - 1)
        given: dict[str, Any] = {"axis": axis} if d.flag(0.8) else {}
        if d.flag():
            given["keepdims"] = d.int(0, 1)
        if d.flag() and opset >= 12:
            given["select_last_index"] = d.int(0, 1)
        x = d.array(d.pick(NUMBERS), shape)
        x = np.round(x) if d.flag() else x  # ties
        return Sample(op_type, [x], given, opset)

    return draw


def cumulative(op_type: str) -> Generator:
    def draw(d: Draw) -> Sample:
        shape = d.shape(1, 3)
        axis = np.asarray(d.int(-len(shape), len(shape) - 1), d.pick(("int32", "int64")))
        given = {k: d.int(0, 1) for k in ("exclusive", "reverse") if d.flag()}
        dtype = d.pick(("float32", "float64", "int32", "int64"))
        return Sample(
            op_type, [d.array(dtype, shape), axis], given, d.opset(op_type), constants=[1]
        )

    return draw


def cum_prod(d: Draw) -> Sample:
    shape = d.shape(1, 3)
    axis = np.asarray(d.int(-len(shape), len(shape) - 1), np.int64)
    given = {k: d.int(0, 1) for k in ("exclusive", "reverse") if d.flag()}
    return Sample("CumProd", [d.array("float32", shape), axis], given, 26, constants=[1])


def top_k(d: Draw) -> Sample:
    shape, opset = d.shape(1, 3, 6), d.opset("TopK")
    opset = max(opset, 10)
    axis = d.int(-len(shape) if opset >= 11 else 0, len(shape) - 1)
    k = np.asarray([d.int(1, shape[axis])], np.int64)
    given: dict[str, Any] = {"axis": axis}
    dtype = "float32"
    if opset >= 11:
        dtype = d.pick(("float32", "float64", "int32", "int64"))
        given |= {n: d.int(0, 1) for n in ("largest",) if d.flag()}
    x = d.array(dtype, shape)
    return Sample("TopK", [np.round(x) if d.flag() else x, k], given, opset, (True, True), [1])


def l2_norm(d: Draw) -> Sample:
    shape = d.shape(1, 3)
    given: dict[str, Any] = {"axis": d.int(-len(shape), len(shape) - 1)} if d.flag() else {}
    if d.flag():
        given["p"] = d.int(1, 2)
    return Sample("LpNormalization", [d.array("float32", shape)], given, d.opset("LpNormalization"))


def softmax(op_type: str) -> Generator:
    def draw(d: Draw) -> Sample:
        shape, opset = d.shape(1, 4), d.opset(op_type)
        axis = d.int(-len(shape) if opset >= 11 else 0, len(shape) - 1)
        return Sample(
            op_type, [d.array(d.pick(FLOATS), shape)], {"axis": axis} if d.flag(0.7) else {}, opset
        )

    return draw


_KINDS = (*FLOATS, "int8", "int32", "int64", "uint8", "uint32", "uint64")
GENERATORS: dict[str, Generator] = {
    **{
        op: reduction(op, _KINDS)
        for op in (
            "ReduceL1",
            "ReduceMax",
            "ReduceMin",
            "ReduceMean",
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
        )
    },
    "ReduceL2": reduction("ReduceL2", _KINDS),
    "ReduceLogSum": reduction("ReduceLogSum", _KINDS, low=1, high=4),
    "ReduceLogSumExp": reduction("ReduceLogSumExp", FLOATS),  # integers: a test of its own
    "ArgMax": extremum("ArgMax"),
    "ArgMin": extremum("ArgMin"),
    "CumSum": cumulative("CumSum"),
    "CumProd": cum_prod,
    "TopK": top_k,
    "LpNormalization": l2_norm,
    **{op: softmax(op) for op in ("Softmax", "LogSoftmax", "Hardmax")},
}
