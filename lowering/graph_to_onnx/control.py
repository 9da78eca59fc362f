"""Write loops and branches as ONNX's Scan, Loop and If.

A subgraph may read what is outside it, so captured values keep their outer names. A loop that
`trips` alone ends and that scans a tensor is a Scan, if it does not read the iteration's number; in
a Loop rows of scanned tensors are gathered by that number. What a body yields goes through an
Identity: ONNX wants distinct outputs that are not inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper
from xdsl.ir import Operation, Region, SSAValue

from ...dialects.control import ControlOp, LoopOp
from ...dialects.types import tensor_type, to_numpy
from ..onnx_to_graph.tensor_data import number_of_element, to_proto
from .nodes import NodeWriter


def inner_ops(ops: Sequence[Operation]) -> list[Operation]:
    """The ops of the bodies of loops and branches, and of those inside them."""
    found: list[Operation] = []
    for op in ops:
        if isinstance(op, ControlOp):
            inside = [inner for region in op.bodies for inner in region.block.ops]
            found += [*inside, *inner_ops(inside)]
    return found


def write_control(writer: NodeWriter, op: ControlOp) -> None:
    """Write a node and its subgraphs."""
    if isinstance(op, LoopOp):
        (_write_scan if _is_scan(op) else _write_loop)(writer, op)
        return
    captured = [writer.name(v) for v in op.captured]
    branches: list[onnx.GraphProto] = []
    for region, name in zip(op.bodies, ("then", "else"), strict=True):
        writer.names |= dict(zip(region.block.args, captured, strict=True))
        branches.append(_graph(writer, name, region, [], []))
    writer.emit(
        "If",
        [writer.name(op.condition)],
        [writer.name(r) for r in op.outputs],
        then_branch=branches[0],
        else_branch=branches[1],
    )


def _is_scan(op: LoopOp) -> bool:
    decided = op.count is not None or op.start is not None or op.is_conditional
    return bool(op.scanned) and not decided and op.body.block.args[0].first_use is None


def _write_scan(writer: NodeWriter, op: LoopOp) -> None:
    operands = [writer.name(v) for v in (*op.carried, *op.scanned)]
    own = op.body.block.args[1 : 1 + len(operands)]
    outer = [writer.name(v) for v in op.captured]
    writer.names |= dict(zip(op.body.block.args[1 + len(operands) :], outer, strict=True))
    inputs = [_info(writer.name(v), v) for v in own]
    body = _graph(writer, "body", op.body, inputs, [])
    back = [int(op.is_backward(k)) for k in range(len(op.scanned) + len(op.stacked))]
    writer.emit(
        "Scan",
        operands,
        [writer.name(r) for r in op.outputs],
        body=body,
        num_scan_inputs=len(op.scanned),
        scan_input_directions=back[: len(op.scanned)],
        scan_output_directions=back[len(op.scanned) :],
    )


def _write_loop(writer: NodeWriter, op: LoopOp) -> None:
    count = "" if op.count is None else writer.name(op.count)
    if op.trips is not None:
        trips = writer.data(np.asarray(op.trips.value.data, np.int64), "trips")
        count = writer.emit("Min", [count, trips]) if count else trips
    start = "" if op.start is None else writer.name(op.start)
    carried = [writer.name(v) for v in op.carried]
    outer = [writer.name(v) for v in (*op.scanned, *op.captured)]
    body = _loop_body(writer, op, outer)
    results = [writer.name(r) for r in op.outputs]
    backward = [k for k in range(len(op.stacked)) if op.is_backward(len(op.scanned) + k)]
    decided = op.count is not None or op.start is not None or op.is_conditional
    moved = range(len(op.stacked)) if decided else backward
    made = [
        writer.fresh(f"{name}_as_run") if k - len(carried) in moved else name
        for k, name in enumerate(results)
    ]
    writer.emit("Loop", [count, start, *carried], made, body=body)
    if decided:
        for k, value in enumerate(op.stacked):  # ONNX has as many rows as there are iterations
            _lengthen(writer, made[len(carried) + k], results[len(carried) + k], value)
    for k in backward:
        ends = [writer.integers([n], "reverse") for n in (-1, np.iinfo(np.int64).min, 0, -1)]
        number = len(carried) + k
        writer.emit("Slice", [made[number], *ends], [results[number]])


def _lengthen(writer: NodeWriter, name: str, result: str, value: SSAValue) -> None:
    """Rows up to the number that the type has; zeros behind those there are."""
    type_ = tensor_type(value)
    zero = to_proto(np.zeros(1, to_numpy(type_.element_type)), "")
    shape = writer.integers(type_.get_shape(), "shape")
    zeros = writer.emit("ConstantOfShape", [shape], value=zero)
    joined = writer.emit("Concat", [name, zeros], axis=0)
    ends = [writer.integers([n], "rows") for n in (0, type_.get_shape()[0], 0, 1)]
    writer.emit("Slice", [joined, *ends], [result])


def _loop_body(writer: NodeWriter, op: LoopOp, outer: Sequence[str]) -> onnx.GraphProto:
    """The body, whose rows are gathered from the scanned tensors' outer names."""
    step, *arguments = op.body.block.args
    carried, rest = arguments[: len(op.carried)], arguments[len(op.carried) :]
    going = writer.fresh("going")
    writer.names |= dict(zip(rest, outer, strict=True))
    inputs = [
        helper.make_tensor_value_info(writer.name(step), TensorProto.INT64, []),
        helper.make_tensor_value_info(going, TensorProto.BOOL, []),
        *(_info(writer.name(v), v) for v in carried),
    ]
    before, writer.nodes = writer.nodes, []
    for k, (row, name) in enumerate(zip(rest[: len(op.scanned)], outer, strict=False)):
        place = writer.name(step)
        if op.is_backward(k):
            assert op.trips is not None
            last = writer.data(np.asarray(op.trips.value.data - 1, np.int64), "last")
            place = writer.emit("Sub", [last, place])
        writer.names[row] = writer.emit("Gather", [name, place], axis=0)
    rows, writer.nodes = writer.nodes, before
    first = [] if op.is_conditional else [going]
    body = _graph(writer, "body", op.body, inputs, first)
    own_nodes = list(body.node)
    del body.node[:]
    body.node.extend([*rows, *own_nodes])
    return body


def _graph(
    writer: NodeWriter,
    name: str,
    region: Region,
    inputs: Sequence[onnx.ValueInfoProto],
    first: Sequence[str],
) -> onnx.GraphProto:
    """A subgraph with the body's ops; conditions in `first` are its first outputs."""
    before, reshapes = writer.nodes, dict(writer.reshapes)
    writer.nodes = []
    for op in region.block.ops:
        writer.one(op)
    last = region.block.last_op
    assert last is not None
    outputs: list[onnx.ValueInfoProto] = []
    for condition in first:
        copy = writer.emit("Identity", [condition])
        outputs.append(helper.make_tensor_value_info(copy, TensorProto.BOOL, []))
    for value in last.operands:
        outputs.append(_info(writer.emit("Identity", [writer.name(value)]), value))
    graph = helper.make_graph(writer.nodes, writer.fresh(name), inputs, outputs)
    writer.nodes, writer.reshapes = before, reshapes
    return graph


def _info(name: str, value: SSAValue) -> onnx.ValueInfoProto:
    type_ = tensor_type(value)
    number = number_of_element(type_.element_type)
    return helper.make_tensor_value_info(name, number, type_.get_shape())
