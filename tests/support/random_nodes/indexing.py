"""Reads and writes at positions that are data."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import NUMBERS, Draw, Generator, Sample

ANY = (*NUMBERS, "bool")


def positions(d: Draw, size: int, shape: list[int], negative: bool = True) -> np.ndarray:
    """Indices into a dim, some counted from its end."""
    found = d.rng.integers(-size if negative and d.flag() else 0, size, shape)
    return np.asarray(found, d.pick(["int32", "int64"]))


def gather(d: Draw) -> Sample:
    shape, opset = d.shape(1, 3), d.opset("Gather")
    axis = d.int(-len(shape), len(shape) - 1) if opset >= 11 else d.int(0, len(shape) - 1)
    index = positions(d, shape[axis], d.shape(0, 2), opset >= 11)
    return Sample(
        "Gather",
        [d.array(d.pick(ANY), shape), index],
        {"axis": axis} if d.flag(0.8) or axis else {},
        opset,
    )


def gather_elements(d: Draw) -> Sample:
    shape = d.shape(1, 4, 5)
    axis = d.int(-len(shape), len(shape) - 1)
    out = [d.int(1, 6) if k == axis % len(shape) else d.int(1, n) for k, n in enumerate(shape)]
    x = d.array(d.pick(ANY), shape)
    return Sample(
        "GatherElements",
        [x, positions(d, shape[axis], out)],
        {"axis": axis},
        d.opset("GatherElements"),
    )


def gather_nd(d: Draw) -> Sample:
    shape, opset = d.shape(1, 4), d.opset("GatherND")
    batch = d.int(0, len(shape) - 1) if opset >= 12 and d.flag() else 0
    depth = d.int(1, len(shape) - batch)
    lead = shape[:batch] + d.shape(0 if batch else 1, 2)
    columns = [d.rng.integers(-n if d.flag() else 0, n, lead) for n in shape[batch : batch + depth]]
    index = np.stack(columns, axis=-1).astype(np.int64)
    return Sample(
        "GatherND",
        [d.array(d.pick(ANY), shape), index],
        {"batch_dims": batch} if batch else {},
        opset,
    )


def scatter_elements(op_type: str) -> Generator:
    def draw(d: Draw) -> Sample:
        """Each position once where nothing is reduced: the order of writes is left open."""
        shape, opset = (
            d.shape(1, 3, 5),
            d.opset("ScatterElements") if op_type == "ScatterElements" else d.int(9, 10),
        )
        axis = d.int(-len(shape) if opset >= 11 else 0, len(shape) - 1)
        dim = axis % len(shape)
        how = "none"
        if op_type == "ScatterElements" and opset >= 16:
            how = d.pick(["none", "add", "mul"] + (["min", "max"] if opset >= 18 else []))
        out = [d.int(1, n) for n in shape]
        if how == "none":
            index = np.apply_along_axis(
                lambda _: d.rng.permutation(shape[dim])[: out[dim]], dim, np.zeros(out)
            )
            index = index.astype(np.int64) - (shape[dim] if d.flag(0.3) and opset >= 11 else 0)
        else:
            index = positions(d, shape[dim], out)
        dtype = d.pick(NUMBERS if how != "none" else ANY)
        given: dict[str, Any] = {"axis": axis}
        if how != "none" or (d.flag(0.2) and opset >= 16):
            given["reduction"] = how
        return Sample(op_type, [d.array(dtype, shape), index, d.array(dtype, out)], given, opset)

    return draw


def scatter_nd(d: Draw) -> Sample:
    shape, opset = d.shape(1, 3, 5), d.opset("ScatterND")
    depth = d.int(1, len(shape))
    how = (
        d.pick(["none", "add", "mul"] + (["min", "max"] if opset >= 18 else []))
        if opset >= 16
        else "none"
    )
    total = int(np.prod(shape[:depth]))
    count = d.int(1, total)
    flat = d.rng.permutation(total)[:count] if how == "none" else d.rng.integers(0, total, count)
    index = np.stack(np.unravel_index(flat, shape[:depth]), axis=-1).astype(np.int64)
    if d.flag(0.3):
        index = index - np.asarray(shape[:depth])
    dtype = d.pick(("float32", "float64", "int32", "int64", "uint8") if how != "none" else ANY)
    updates = d.array(dtype, [count, *shape[depth:]])
    return Sample(
        "ScatterND",
        [d.array(dtype, shape), index, updates],
        {"reduction": how} if how != "none" else {},
        opset,
    )


def one_hot(d: Draw) -> Sample:
    shape, depth = d.shape(0, 3), d.int(1, 5)
    axis = d.int(-len(shape) - 1, len(shape))
    index = d.array(d.pick(["int64", "int32", "float32"]), shape, -depth - 1, depth + 1)
    index = np.round(index) if index.dtype.kind == "f" else index
    dtype = d.pick(["float32", "int32", "int64"])
    values = d.array(dtype, [2])
    kind = "int32" if index.dtype == np.int32 else "int64"
    if index.dtype == np.int32:
        dtype, values = "float32", values.astype(np.float32)
    return Sample(
        "OneHot",
        [index, np.asarray(depth, kind), values],
        {"axis": axis} if d.flag() else {},
        d.opset("OneHot"),
        constants=[1],
    )


def compress(d: Draw) -> Sample:
    shape = d.shape(1, 3)
    axis = d.int(-len(shape), len(shape) - 1)
    given = {"axis": axis} if d.flag(0.7) else {}
    length = shape[axis] if given else int(np.prod(shape))
    condition = d.array("bool", [d.int(1, length)])
    return Sample(
        "Compress",
        [d.array(d.pick(ANY), shape), condition],
        given,
        d.opset("Compress", 9),
        constants=[1],
    )


def reverse_sequence(d: Draw) -> Sample:
    shape = d.shape(2, 4)
    time = d.int(0, 1)
    lengths = np.asarray(d.ints(1, shape[time], shape[1 - time]), np.int64)
    given = {"time_axis": time, "batch_axis": 1 - time}
    return Sample("ReverseSequence", [d.array(d.pick(ANY), shape), lengths], given, d.int(10, 23))


def tensor_scatter(d: Draw) -> Sample:
    """A cache of [batch, heads, length, size] written at one place a batch entry."""
    b, h, length, size = d.int(1, 2), d.int(1, 2), d.int(2, 5), d.int(1, 3)
    n = d.int(1, length)
    circular = d.flag()
    at = d.ints(0, length - 1 if circular else length - n, b)
    given = {"mode": "circular"} if circular else {}
    shapes = [[b, h, length, size], [b, h, n, size]]
    inputs = [*(d.array("float32", s) for s in shapes), np.asarray(at, np.int64)]
    return Sample("TensorScatter", inputs, given, 24)


GENERATORS: dict[str, Generator] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "ScatterElements": scatter_elements("ScatterElements"),
    "Scatter": scatter_elements("Scatter"),
    "ScatterND": scatter_nd,
    "OneHot": one_hot,
    "TensorScatter": tensor_scatter,
    "Compress": compress,
    "ReverseSequence": reverse_sequence,
}
