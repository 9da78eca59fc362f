"""Write loops and branches as ONNX's Scan, Loop and If.

A subgraph may read values defined outside it, so captured values keep their outer names. A loop
becomes a Scan if it scans a tensor, its number of iterations is the constant `trips`, and its body
does not read the iteration's number. Every other loop becomes a Loop, which gathers rows of scanned
tensors by that number. Each value that a body yields goes through an Identity: ONNX requires
distinct outputs that are not inputs.
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
    """Return the ops in the bodies of loops and branches, nested ones included."""
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
    unread = op.body.block.args[0].first_use is None
    return bool(op.scanned) and not _may_end_early(op) and unread


def _may_end_early(op: LoopOp) -> bool:
    """Whether data decides how many iterations run."""
    return op.count is not None or op.start is not None or op.is_conditional


def _write_scan(writer: NodeWriter, op: LoopOp) -> None:
    operands = [writer.name(v) for v in (*op.carried, *op.scanned)]
    row_arguments = op.body.block.args[1 : 1 + len(operands)]
    outer = [writer.name(v) for v in op.captured]
    writer.names |= dict(zip(op.body.block.args[1 + len(operands) :], outer, strict=True))
    inputs = [_info(writer.name(v), v) for v in row_arguments]
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
    may_end_early = _may_end_early(op)
    renamed = range(len(op.stacked)) if may_end_early else backward
    loop_results = [
        writer.fresh(f"{name}_as_run") if k - len(carried) in renamed else name
        for k, name in enumerate(results)
    ]
    writer.emit("Loop", [count, start, *carried], loop_results, body=body)
    if may_end_early:
        for k, value in enumerate(op.stacked):  # a Loop stacks one row for each iteration that ran
            _pad_rows(writer, loop_results[len(carried) + k], results[len(carried) + k], value)
    for k in backward:
        slice_inputs = [
            writer.integers([n], "reverse") for n in (-1, np.iinfo(np.int64).min, 0, -1)
        ]
        result = len(carried) + k
        writer.emit("Slice", [loop_results[result], *slice_inputs], [results[result]])


def _pad_rows(writer: NodeWriter, name: str, result: str, value: SSAValue) -> None:
    """Pad the stacked rows with zeros to as many as the value's type has."""
    type_ = tensor_type(value)
    zero = to_proto(np.zeros(1, to_numpy(type_.element_type)), "")
    shape = writer.integers(type_.get_shape(), "shape")
    zeros = writer.emit("ConstantOfShape", [shape], value=zero)
    joined = writer.emit("Concat", [name, zeros], axis=0)
    slice_inputs = [writer.integers([n], "rows") for n in (0, type_.get_shape()[0], 0, 1)]
    writer.emit("Slice", [joined, *slice_inputs], [result])


def _loop_body(writer: NodeWriter, op: LoopOp, outer: Sequence[str]) -> onnx.GraphProto:
    """Write the body; it gathers its rows from the scanned tensors, by their outer names."""
    step, *arguments = op.body.block.args
    carried, rest = arguments[: len(op.carried)], arguments[len(op.carried) :]
    condition = writer.fresh("going")
    writer.names |= dict(zip(rest, outer, strict=True))
    inputs = [
        helper.make_tensor_value_info(writer.name(step), TensorProto.INT64, []),
        helper.make_tensor_value_info(condition, TensorProto.BOOL, []),
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
    conditions = [] if op.is_conditional else [condition]
    body = _graph(writer, "body", op.body, inputs, conditions)
    own_nodes = list(body.node)
    del body.node[:]
    body.node.extend([*rows, *own_nodes])
    return body


def _graph(
    writer: NodeWriter,
    name: str,
    region: Region,
    inputs: Sequence[onnx.ValueInfoProto],
    conditions: Sequence[str],
) -> onnx.GraphProto:
    """Write the body's ops as a subgraph, whose first outputs are the `conditions`."""
    before, reshapes = writer.nodes, dict(writer.reshapes)
    writer.nodes = []
    for op in region.block.ops:
        writer.one(op)
    last = region.block.last_op
    assert last is not None
    outputs: list[onnx.ValueInfoProto] = []
    for condition in conditions:
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
