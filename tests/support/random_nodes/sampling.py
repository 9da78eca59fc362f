"""Reads between positions: grids, deformed kernels, columns, resizing."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.random_nodes.draw import Draw, Generator, Sample


def grid_sample(d: Draw) -> Sample:
    opset = d.opset("GridSample", 16)
    rank = d.int(2, 3) if opset >= 20 else 2
    modes = ["linear", "nearest", "cubic"] if opset >= 20 else ["bilinear", "nearest", "bicubic"]
    mode = d.pick(modes[:2] if rank == 3 else modes)
    n, c = d.int(1, 2), d.int(1, 3)
    given: dict[str, Any] = {"mode": mode} if d.flag(0.8) else {}
    if d.flag():
        given["padding_mode"] = d.pick(["zeros", "border", "reflection"])
    if d.flag():
        given["align_corners"] = d.int(0, 1)
    x = d.array("float32", [n, c, *(d.size(2, 5) for _ in range(rank))])
    grid = d.array("float32", [n, *d.ints(1, 4, rank - 1), d.size(1, 4), rank], -1.6, 1.6)
    return Sample("GridSample", [x, grid], given, opset, tolerance=1e-3)


def affine_grid(d: Draw) -> Sample:
    rank, n = d.int(2, 3), d.int(1, 2)
    theta = d.array("float32", [n, rank, rank + 1])
    size = np.asarray([n, d.int(1, 3), *d.ints(2, 4, rank)], np.int64)
    given = {"align_corners": d.int(0, 1)} if d.flag() else {}
    return Sample("AffineGrid", [theta, size], given, d.int(20, 23), constants=[1])


def deform_conv(d: Draw) -> Sample:
    group, spread = d.int(1, 2), d.int(1, 2)
    c = 2 * d.int(1, 2)
    m = group * d.int(1, 2)
    kernel, strides, dilations = d.ints(1, 3, 2), d.ints(1, 2, 2), d.ints(1, 2, 2)
    pads = d.ints(0, 1, 4)
    size = [d.int(5, 7), d.size(5, 7)]
    out = [
        (s + pads[k] + pads[k + 2] - dilations[k] * (kernel[k] - 1) - 1) // strides[k] + 1
        for k, s in enumerate(size)
    ]
    n, count = d.int(1, 2), kernel[0] * kernel[1]
    given = {"group": group, "offset_group": spread, "kernel_shape": kernel, "strides": strides,
             "dilations": dilations, "pads": pads}  # fmt: skip
    inputs = [
        d.array("float32", [n, c, *size]),
        d.array("float32", [m, c // group, *kernel]),
        d.array("float32", [n, spread * 2 * count, *out], -1.5, 1.5),
        d.array("float32", [m]) if d.flag() else None,
        d.array("float32", [n, spread * count, *out], 0, 1) if d.flag() else None,
    ]
    return Sample("DeformConv", inputs, given, d.int(19, 23))


def col2im(d: Draw) -> Sample:
    """Of two dims: onnxruntime is wrong in others (docs/onnx-disagreements.md)."""
    rank = 2
    block, dilations, strides = d.ints(1, 3, rank), d.ints(1, 2, rank), d.ints(1, 2, rank)
    pads = d.ints(0, 1, 2 * rank)
    image = [(b - 1) * e + 1 + d.size(0, 3) for b, e in zip(block, dilations, strict=True)]
    out = [
        (n + pads[k] + pads[rank + k] - (block[k] - 1) * dilations[k] - 1) // strides[k] + 1
        for k, n in enumerate(image)
    ]
    x = d.array("float32", [d.int(1, 2), d.int(1, 2) * int(np.prod(block)), int(np.prod(out))])
    given = {"dilations": dilations, "pads": pads, "strides": strides}
    shapes = [np.asarray(v, np.int64) for v in (image, block)]
    return Sample("Col2Im", [x, *shapes], given, d.int(18, 23), constants=[1, 2])


def resize(d: Draw) -> Sample:
    """At opset 18 and later; the attributes that onnxruntime has."""
    rank = d.int(1, 2)
    size = d.ints(2, 6, rank)
    x = d.array("float32", [d.int(1, 2), d.int(1, 2), *size])
    mode = d.pick(["nearest", "linear", "cubic"]) if rank == 2 else d.pick(["nearest", "linear"])
    given: dict[str, Any] = {"mode": mode}
    given["coordinate_transformation_mode"] = d.pick(
        ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"]
    )
    if mode == "nearest":
        given["nearest_mode"] = d.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic" and d.flag():
        given["cubic_coeff_a"] = d.pick([-0.5, -0.75])
    if d.flag():
        sizes = np.asarray([*x.shape[:2], *d.ints(2, 8, rank)], np.int64)
        return Sample("Resize", [x, None, None, sizes], given, d.int(13, 23), constants=[3])
    # What a fractional extent means under two of the modes: docs/onnx-disagreements.md.
    whole = given["coordinate_transformation_mode"] in ("align_corners", "pytorch_half_pixel")
    choices = [1, 2, 3] if whole else [0.5, 1, 1.5, 2, 2.5, 3]
    scales = np.asarray([1, 1, *[d.pick(choices) for _ in range(rank)]], np.float32)
    return Sample("Resize", [x, None, scales], given, d.int(13, 23), constants=[2])


GENERATORS: dict[str, Generator] = {
    "AffineGrid": affine_grid,
    "Col2Im": col2im,
    "DeformConv": deform_conv,
    "GridSample": grid_sample,
    "Resize": resize,
}
