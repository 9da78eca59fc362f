"""Ops whose results have as many rows as the data say, on values that the program computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import Draw, Generator, Sample

KINDS = ("float32", "int32", "int64", "uint8", "bool")


def few(d: Draw, dtype: str, shape: list[int]) -> np.ndarray:
    """Numbers many of which are equal, or zero."""
    found = d.array(dtype, shape, -2, 2)
    return np.round(found) if found.dtype.kind == "f" else found


def non_zero(d: Draw) -> Sample:
    dtype, shape = d.pick(KINDS), d.shape(1, 4)
    x = few(d, dtype, shape)
    x = np.zeros_like(x) if d.flag(0.05) else np.ones_like(x) if d.flag(0.05) else x
    return Sample("NonZero", [x], {}, d.opset("NonZero", 9), computed=(0,))


def compress(d: Draw) -> Sample:
    shape = d.shape(1, 3)
    axis = d.int(-len(shape), len(shape) - 1)
    given = {"axis": axis} if d.flag(0.7) else {}
    length = shape[axis] if given else int(np.prod(shape))
    condition = d.array("bool", [d.int(1, length)])
    x = d.array(d.pick((*KINDS, "float64", "int8")), shape)
    opset = d.int(11 if axis < 0 else 9, 23)
    return Sample("Compress", [x, condition], given, opset, computed=(1,))


def unique(d: Draw) -> Sample:
    shape = d.shape(1, 3)
    x = few(d, d.pick(("float32", "float64", "int64", "int8")), shape)
    named = [d.flag(0.7) for _ in range(4)]
    named[d.int(0, 3)] = True
    return Sample("Unique", [x], {}, d.int(11, 23), named, computed=(0,))


def suppression(d: Draw) -> Sample:
    """Boxes on a grid, so that overlaps and scores tie; corners in any order."""
    batch, boxes, classes = d.int(1, 2), d.size(1, 12), d.int(1, 3)
    fine = d.flag()
    x = d.array("float32", [batch, boxes, 4], 0, 4)
    scores = d.array("float32", [batch, classes, boxes], 0, 1)
    x, scores = (x, scores) if fine else (np.round(x), np.round(scores * 4) / 4)
    given: dict[str, Any] = {"center_point_box": d.int(0, 1)} if d.flag() else {}
    if given.get("center_point_box"):
        x[..., 2:] += 1
    inputs: list[Any] = [x, scores]
    limits = [
        np.asarray([d.int(0, boxes + 2)], np.int64) if d.flag(0.9) else None,
        np.asarray([d.pick([0.0, 0.25, 0.5, 1.0])], np.float32) if d.flag(0.7) else None,
        np.asarray([d.pick([0.0, 0.25, 0.5])], np.float32) if d.flag() else None,
    ]
    while limits and limits[-1] is None:
        limits.pop()
    constants = [2 + k for k, v in enumerate(limits) if v is not None]
    opset = d.opset("NonMaxSuppression", 10)
    return Sample("NonMaxSuppression", [*inputs, *limits], given, opset, constants=constants)


GENERATORS: dict[str, Generator] = {
    "NonZero": non_zero,
    "Compress": compress,
    "Unique": unique,
    "NonMaxSuppression": suppression,
}
