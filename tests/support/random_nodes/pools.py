"""Pools over every attribute, positions included."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import Draw, Generator, Sample


def window(
    d: Draw, op_type: str, opset: int, dilated: int, ceil: int
) -> tuple[list[int], dict[str, Any]]:
    """A spatial shape and the attributes of a window on it; pads are smaller than the window.

    Left out is where onnxruntime departs (docs/onnx-disagreements.md): automatic pads with
    dilations or with strides beyond the window, VALID with ceil_mode.
    """
    rank = d.int(1, 3)
    kernel = d.ints(1, 3, rank)
    given: dict[str, Any] = {"kernel_shape": kernel}
    dilations = d.ints(1, 3, rank) if d.flag(0.4) and opset >= dilated else [1] * rank
    if dilations != [1] * rank or d.flag(0.2):
        given |= {"dilations": dilations} if opset >= dilated else {}
    if d.flag(0.7):
        given["strides"] = d.ints(1, 3, rank)
    mode = d.pick(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if dilations != [1] * rank and mode.startswith("SAME"):
        mode = "VALID"
    if mode.startswith("SAME") and "strides" in given:
        given["strides"] = [min(s, k) for s, k in zip(given["strides"], kernel, strict=True)]
    if mode != "NOTSET":
        given["auto_pad"] = mode
    elif d.flag(0.7):
        given["pads"] = [d.int(0, k - 1) for k in kernel * 2]
    if d.flag() and opset >= ceil and mode != "VALID":
        given["ceil_mode"] = 1
    extents = [1 + (k - 1) * e for k, e in zip(kernel, dilations, strict=True)]
    return [*(e + d.int(0, 5) for e in extents[:-1]), extents[-1] + d.size(0, 5)], given


def pool(op_type: str, dilated: int, ceil: int) -> Generator:
    def draw(d: Draw) -> Sample:
        opset = d.opset(op_type)
        spatial, given = window(d, op_type, opset, dilated, ceil)
        dtype, named = "float32", [True]
        if op_type == "MaxPool":
            dtype = d.pick(["float32", "float64"] + (["int8", "uint8"] if opset >= 12 else []))
            if d.flag() and opset >= 8:
                named = [d.flag(0.8), True]
                if d.flag():
                    given["storage_order"] = 1
        if op_type == "AveragePool" and d.flag():
            given["count_include_pad"] = 1
        if op_type == "LpPool" and d.flag(0.7):
            given["p"] = d.int(1, 3)
        x = d.array(dtype, [d.int(1, 2), d.int(1, 2), *spatial], -9, 9)
        return Sample(op_type, [x], given, opset, named)

    return draw


def globally(op_type: str) -> Generator:
    def draw(d: Draw) -> Sample:
        given = {"p": d.int(1, 3)} if op_type == "GlobalLpPool" and d.flag() else {}
        return Sample(op_type, [d.array("float32", d.shape(3, 5))], given, d.opset(op_type))

    return draw


def max_unpool(d: Draw) -> Sample:
    """Positions as MaxPool gives them, each once."""
    rank = d.int(1, 3)
    kernel, strides = d.ints(1, 3, rank), d.ints(1, 3, rank)
    strides = [max(k, s) for k, s in zip(kernel, strides, strict=True)]
    shape = [d.int(1, 2), d.int(1, 2), *d.ints(1, 3, rank - 1), d.size(1, 3)]
    full = [(n - 1) * s + k for n, s, k in zip(shape[2:], strides, kernel, strict=True)]
    given: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    inputs: list[Any] = [d.array("float32", shape)]
    size = int(np.prod(full))
    count = int(np.prod(shape[2:]))
    rows = [d.rng.permutation(size)[:count] + size * k for k in range(shape[0] * shape[1])]
    inputs.append(np.reshape(rows, shape).astype(np.int64))
    # output_shape: docs/onnx-disagreements.md.
    return Sample("MaxUnpool", inputs, given, d.opset("MaxUnpool"))


def roi_align(d: Draw) -> Sample:
    n, c, h, w, count = d.int(1, 2), d.int(1, 2), d.int(2, 6), d.size(2, 6), d.int(1, 4)
    corners = d.array("float32", [count, 2], -1, 4)
    rois = np.concatenate([corners, corners + d.array("float32", [count, 2], 0.1, 5)], 1)
    given: dict[str, Any] = {"output_height": d.int(1, 3), "output_width": d.int(1, 3)}
    opset = d.opset("RoiAlign")
    if d.flag():
        given["sampling_ratio"] = d.int(0, 3)
    if d.flag():
        given["spatial_scale"] = d.float(0.4, 1.5)
    if d.flag():
        given["mode"] = "max" if d.flag(0.4) else "avg"
    if given.get("mode") == "max":
        given["sampling_ratio"] = 1  # onnxruntime's other maxima are wrong by its own words
    if opset >= 16 and d.flag():
        given["coordinate_transformation_mode"] = d.pick(["half_pixel", "output_half_pixel"])
    batch = np.asarray(d.ints(0, n - 1, count), np.int64)
    return Sample("RoiAlign", [d.array("float32", [n, c, h, w]), rois, batch], given, opset)


def max_roi_pool(d: Draw) -> Sample:
    n, count = d.int(1, 2), d.int(1, 3)
    h, w = d.int(3, 6), d.int(3, 6)
    starts = np.asarray([[d.int(0, 1), d.int(0, 1)] for _ in range(count)])
    ends = starts + np.asarray([[d.int(0, w - 2), d.int(0, h - 2)] for _ in range(count)])
    batch = np.asarray(d.ints(0, n - 1, count))[:, None]
    rois = np.concatenate([batch, starts, ends], 1).astype(np.float32)
    given = {"pooled_shape": d.ints(1, 3, 2), "spatial_scale": 1.0}
    return Sample(
        "MaxRoiPool", [d.array("float32", [n, 2, h, w]), rois], given, d.opset("MaxRoiPool")
    )


GENERATORS: dict[str, Generator] = {
    "AveragePool": pool("AveragePool", 19, 10),
    "LpPool": pool("LpPool", 18, 18),
    "MaxPool": pool("MaxPool", 10, 10),
    **{op: globally(op) for op in ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")},
    "MaxUnpool": max_unpool,
    "RoiAlign": roi_align,
    "MaxRoiPool": max_roi_pool,
}
