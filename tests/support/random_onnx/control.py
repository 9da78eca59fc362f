"""Loops of a known count, scans, and branches on constants."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from support.random_onnx.case import Value
from support.random_onnx.elementwise import floating
from support.random_onnx.grower import Grower


def _type(v: Value, shape=None) -> tuple[int, list[int]]:
    return helper.np_dtype_to_tensor_dtype(v.dtype), list(v.shape if shape is None else shape)


def loop(g: Grower) -> None:
    """h -> tanh(h * w + x) for a few rounds; sometimes with a scan output; x from outside."""
    x = g.pick(floating)
    if x is None:
        return
    tag = g._name("body")
    w = g.weight(g.data((), x.dtype))
    nodes = [
        helper.make_node("Mul", [f"{tag}h", w.name], [f"{tag}m"]),
        helper.make_node("Add", [f"{tag}m", x.name], [f"{tag}s"]),
        helper.make_node(g.rng.choice(("Tanh", "Sigmoid")), [f"{tag}s"], [f"{tag}n"]),
        helper.make_node("Identity", [f"{tag}c"], [f"{tag}d"]),
    ]
    kind, shape = _type(x)
    outputs = [
        helper.make_tensor_value_info(f"{tag}d", TensorProto.BOOL, []),
        helper.make_tensor_value_info(f"{tag}n", kind, shape),
    ]
    scan = g.chance(0.5)
    if scan:
        nodes.append(helper.make_node("Neg", [f"{tag}n"], [f"{tag}o"]))
        outputs.append(helper.make_tensor_value_info(f"{tag}o", kind, shape))
    body = helper.make_graph(
        nodes,
        tag,
        [
            helper.make_tensor_value_info(f"{tag}i", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"{tag}c", TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"{tag}h", kind, shape),
        ],
        outputs,
    )
    count = g.weight(np.asarray(g.rng.randint(0 if not scan else 1, 5), np.int64))
    condition = g.weight(np.asarray(True)) if g.chance(0.5) else None
    start = g.source(x.shape, x.dtype)
    g.add("Loop", [count, condition, start], 2 if scan else 1, body=body)


def scan(g: Grower) -> None:
    """A running sum over the first axis, with a result for every step."""
    x = g.pick(lambda v: v.is_float and v.rank >= 1 and 1 <= v.shape[0] <= 9)
    if x is None:
        return
    tag = g._name("body")
    kind, shape = _type(x, x.shape[1:])
    body = helper.make_graph(
        [
            helper.make_node("Add", [f"{tag}h", f"{tag}x"], [f"{tag}n"]),
            helper.make_node("Relu", [f"{tag}n"], [f"{tag}o"]),
        ],
        tag,
        [helper.make_tensor_value_info(f"{tag}{n}", kind, shape) for n in "hx"],
        [helper.make_tensor_value_info(f"{tag}{n}", kind, shape) for n in "no"],
    )
    start = g.source(x.shape[1:], x.dtype)
    g.add(
        "Scan",
        [start, x],
        2,
        body=body,
        num_scan_inputs=1,
        scan_input_directions=[g.rng.choice((0, 1))],
    )


def branch(g: Grower) -> None:
    """An If on a constant, whose branches read values from outside."""
    x = g.pick(floating)
    if x is None:
        return
    tag = g._name("if")
    kind, shape = _type(x)
    graphs: list[onnx.GraphProto] = []
    for side, op in (("t", "Tanh"), ("e", "Neg")):
        out = f"{tag}{side}"
        graphs.append(
            helper.make_graph(
                [helper.make_node(op, [x.name], [out])],
                out,
                [],
                [helper.make_tensor_value_info(out, kind, shape)],
            )
        )
    condition = g.weight(np.asarray(g.chance(0.5)))
    g.add("If", [condition], then_branch=graphs[0], else_branch=graphs[1])


FAMILIES = {loop: 2, scan: 1, branch: 2}
