"""Matrix products, convolutions and einsum."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.dims import broadcast_shapes
from ...dialects.errors import UserError
from ...dialects.types import element_of, is_float, shape_of
from .node import OnnxNode
from .values import NotNative


def matmul(node: OnnxNode) -> list[SSAValue]:
    """MatMul of any ranks."""
    return [product(node, node[0], node[1])]


def product(node: OnnxNode, a: SSAValue, b: SSAValue) -> SSAValue:
    """numpy's matmul: vectors on either side, broadcast batch dims."""
    left, right = shape_of(a), shape_of(b)
    if not left or not right:
        raise UserError("a product needs operands of rank at least 1", found=f"{left} and {right}")
    a = node.reshape(a, [1, *left]) if len(left) == 1 else a
    b = node.reshape(b, [*right, 1]) if len(right) == 1 else b
    try:
        batch = broadcast_shapes(shape_of(a)[:-2], shape_of(b)[:-2])
    except ValueError as error:
        raise UserError("batch dims do not broadcast", found=f"{left} and {right}") from error
    a = node.build.expand(a, (*batch, *shape_of(a)[-2:]))
    b = node.build.expand(b, (*batch, *shape_of(b)[-2:]))
    y = node.build.matmul(a, b)
    shape = list(batch)
    shape += [] if len(left) == 1 else [shape_of(y)[-2]]
    shape += [] if len(right) == 1 else [shape_of(y)[-1]]
    return node.reshape(y, shape)


def gemm(node: OnnxNode) -> list[SSAValue]:
    """alpha * A' * B' + beta * C, C broadcast to the result."""
    a, b = node[0], node[1]
    if len(shape_of(a)) != 2 or len(shape_of(b)) != 2:
        raise UserError("A and B must be matrices", found=f"{shape_of(a)} and {shape_of(b)}")
    y = node.build.matmul(a, b, transpose_a=node.flag("transA"), transpose_b=node.flag("transB"))
    y = _scaled(node, y, node.float("alpha", 1.0))
    beta = node.float("beta", 1.0)
    if not node.has(2) or beta == 0.0:
        return [y]
    c = _scaled(node, node[2], beta)
    return [node.build.add(y, node.build.expand(c, shape_of(y)))]


def _scaled(node: OnnxNode, x: SSAValue, factor: float) -> SSAValue:
    if factor == 1.0:
        return x
    if not is_float(element_of(x)):
        raise NotNative
    return node.build.mul(x, node.literal(factor, x))


# --- windows ---


def window_pads(
    node: OnnxNode, size: list[int], kernel: list[int], strides: list[int], dilations: list[int]
) -> list[int]:
    """Pads, begins then ends, from `pads` or `auto_pad`."""
    spatial, mode = len(size), node.string("auto_pad", "NOTSET")
    if mode in ("NOTSET", ""):
        pads = node.ints("pads", [0] * (2 * spatial))
        if len(pads) != 2 * spatial:
            raise UserError(f"'pads' needs {2 * spatial} numbers", found=pads)
        return pads
    if mode == "VALID":
        return [0] * (2 * spatial)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise UserError(f"auto_pad '{mode}' is unknown")
    total = [
        max(
            0,
            (-(-size[k] // strides[k]) - 1) * strides[k]
            + (kernel[k] - 1) * dilations[k]
            + 1
            - size[k],
        )
        for k in range(spatial)
    ]
    return split_pads(total, mode)


def split_pads(total: list[int], mode: str) -> list[int]:
    """Begins then ends; an odd pad goes to the end for SAME_UPPER, otherwise to the begin."""
    small, large = [t // 2 for t in total], [t - t // 2 for t in total]
    return [*small, *large] if mode == "SAME_UPPER" else [*large, *small]


def window(
    node: OnnxNode, data: int = 0, filters: int = 1
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Spatial size, kernel, strides and dilations of a convolution of these operands."""
    x, w = node.shape(data), node.shape(filters)
    spatial = len(x) - 2
    if spatial < 1 or len(w) != len(x):
        raise UserError("x and w need one rank of at least 3", found=f"{list(x)} and {list(w)}")
    kernel = node.ints("kernel_shape", w[2:])
    if kernel != list(w[2:]):
        raise UserError("kernel_shape is not w's", expected=list(w[2:]), found=kernel)
    ones = [1] * spatial
    return list(x[2:]), kernel, node.ints("strides", ones), node.ints("dilations", ones)


def conv(node: OnnxNode) -> list[SSAValue]:
    """Convolution with explicit or automatic pads."""
    size, kernel, strides, dilations = window(node)
    pads = window_pads(node, size, kernel, strides, dilations)
    return [
        node.build.conv(
            *node.operands(),
            strides=strides,
            pads=pads,
            dilations=dilations,
            groups=node.int("group", 1),
        )
    ]


def conv_transpose(node: OnnxNode) -> list[SSAValue]:
    """Transposed convolution, with pads that give the requested output shape."""
    size, kernel, strides, dilations = window(node)
    spatial = len(size)
    extra = node.ints("output_padding", [0] * spatial)
    full = [
        (size[k] - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 + extra[k]
        for k in range(spatial)
    ]
    return [
        node.build.conv_transpose(
            *node.operands(),
            strides=strides,
            pads=_transposed_pads(node, size, strides, full),
            dilations=dilations,
            output_padding=extra,
            groups=node.int("group", 1),
        )
    ]


def _transposed_pads(
    node: OnnxNode, size: list[int], strides: list[int], full: list[int]
) -> list[int]:
    """Pads that give `output_shape`, or size * stride for SAME.

    What is larger than the whole result is extended at its end, by a negative pad.
    """
    mode = node.string("auto_pad", "NOTSET")
    spatial = len(size)
    if "output_shape" in node.attributes:
        target = node.ints("output_shape")[-spatial:]
        if len(target) != spatial:
            raise UserError(f"'output_shape' needs {spatial} numbers", found=target)
    elif mode in ("SAME_UPPER", "SAME_LOWER"):
        target = [n * s for n, s in zip(size, strides, strict=True)]
    else:
        return [0] * (2 * spatial) if mode == "VALID" else node.ints("pads", [0] * (2 * spatial))
    total = [f - t for f, t in zip(full, target, strict=True)]
    cut = split_pads(
        [max(0, t) for t in total], "SAME_UPPER" if mode == "SAME_UPPER" else "SAME_LOWER"
    )
    return [*cut[:spatial], *(c + min(0, t) for c, t in zip(cut[spatial:], total, strict=True))]
