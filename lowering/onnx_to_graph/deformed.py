"""DeformConv as a product: what its taps read is put together once, then multiplied by the filters.

The reads are a DeformConv themselves, whose filters have a single one each: filter c * taps + t
gives what tap t reads of channel c. Its nest is a loop over channels for each tap and point.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue

from ...dialects.graph import OpaqueOp
from ...dialects.types import element_of, shape_of, tensor, to_numpy
from .node import OnnxNode
from .values import NotNative


def deform_conv(node: OnnxNode) -> list[SSAValue]:
    """Of two spatial dims, in float32 or float64; others are one nest."""
    x, w, build = node[0], node[1], node.build
    n, channels, *size = node.shape(0)
    filters, depth, *kernel = node.shape(1)
    groups, taps = node.int("group", 1), math.prod(kernel)
    if len(size) != 2 or element_of(x) not in (f32, f64) or not node.has(2):
        raise NotNative
    out = node.shape(2)[2:]
    if 0 in (n, channels, filters, taps, *out) or filters % groups or channels != groups * depth:
        raise NotNative
    columns = _columns(node, [n, channels * taps, *out], taps)
    points = math.prod(out)
    rows = node.reshape(columns, [n, groups, depth * taps, points])
    weights = node.reshape(w, [1, groups, filters // groups, depth * taps])
    weights = build.expand(weights, [n, groups, filters // groups, depth * taps])
    found = node.reshape(build.matmul(weights, rows), [n, filters, *out])
    if node.has(3):
        bias = build.expand(node.reshape(node[3], [1, filters, 1, 1]), shape_of(found))
        found = build.add(found, bias)
    return [found]


def _columns(node: OnnxNode, shape: list[int], taps: int) -> SSAValue:
    """What each tap reads of each channel at each point."""
    channels, element = node.shape(0)[1], element_of(node[0])
    ones = np.tile(np.eye(taps, dtype=to_numpy(element)), (channels, 1))
    weights = node.data(ones.reshape(channels * taps, 1, *node.shape(1)[2:]), "taps")
    proto = onnx.NodeProto.FromString(node.proto.SerializeToString())
    masked = node.has(4)
    names = [*proto.input, *[""] * (5 - len(proto.input))]
    del proto.input[:], proto.output[:]
    proto.input.extend([names[0], "taps", names[2], *(["", names[4]] if masked else [])])
    proto.output.append("columns")
    kept = [a for a in proto.attribute if a.name != "group"]
    del proto.attribute[:]
    proto.attribute.extend([*kept, onnx.helper.make_attribute("group", channels)])
    operands = [node[0], weights, node[2], *([node[4]] if masked else [])]
    op = OpaqueOp(
        node.op_type,
        operands,
        proto.SerializeToString(),
        [f"={node.version}"],
        [tensor(shape, element)],
    )
    return node.build.append(op)
