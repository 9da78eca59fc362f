"""Control flow that is decided at import time: `If` by a constant, loops with a constant count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx

from ...dialects.errors import UserError
from ...dialects.opaque import captured
from ...dialects.types import element_of, shape_of
from .loading import in_order, needed
from .node import Node
from .values import NotConstant, Value

if TYPE_CHECKING:
    from .importer import Env, Importer, Scope

MAX_ITERATIONS = 4096


def branch(importer: Importer, node: Node, env: Env, scope: Scope) -> list[Value | None] | None:
    """`If` with a constant condition takes its branch; None where it depends on data."""
    condition = node.known(0)
    if condition is None:
        return None
    if condition.size != 1:
        raise UserError("the condition is no single boolean", found=list(condition.shape))
    taken = node.graph("then_branch" if condition.ravel()[0] else "else_branch")
    results = run_graph(importer, taken, {}, env, scope)
    importer.record(node, "folded")
    return list(results)


def run_graph(
    importer: Importer, graph: onnx.GraphProto, inputs: Env, outer: Env, scope: Scope
) -> list[Value]:
    """Run a subgraph on values for its inputs; names not found inside are the outer ones."""
    env: Env = {name: value for name, value in outer.items() if name not in inputs} | inputs
    for info in [*graph.initializer, *(o for n in graph.node for o in n.output)]:
        env.pop(info if isinstance(info, str) else info.name, None)
    importer.initialisers(graph, env)
    nodes = in_order(graph.node, env)
    importer.run(needed(nodes, [o.name for o in graph.output]), env, scope)
    found: list[Value] = []
    for info in graph.output:
        value = env.get(info.name)
        if value is None:
            raise UserError(f"the subgraph does not define its output '{info.name}'")
        found.append(value)
    return found


def _bound(body: onnx.GraphProto, values: Sequence[Value]) -> Env:
    """A subgraph's inputs with their values. Raises UserError where the numbers differ."""
    if len(body.input) != len(values):
        raise UserError(
            "the subgraph has another number of inputs", expected=len(body.input), found=len(values)
        )
    return {info.name: value for info, value in zip(body.input, values, strict=True)}


def loop(importer: Importer, node: Node, env: Env, scope: Scope) -> list[Value | None] | None:
    """Unroll `Loop` where count and conditions are constants; None where they depend on data."""
    count = node.known(0) if node.has(0) else np.asarray(MAX_ITERATIONS + 1)
    going = node.known(1) if node.has(1) else np.asarray(True)
    body = node.graph("body")
    if count is None or going is None:
        if captured(body):  # it cannot stand alone as an opaque node
            raise NotConstant(
                node.value(0 if count is None else 1).name, "the loop's count", node.where
            )
        return None
    if count.size != 1 or going.size != 1:
        raise UserError("count and condition are single numbers")
    trips = int(count.ravel()[0])
    carried: list[Value] = [node.value(k) for k in range(2, len(node.inputs))]
    rows: list[list[Value]] = []
    k = 0
    while k < trips and bool(going.ravel()[0]):
        if k > MAX_ITERATIONS:
            raise UserError(f"it has more than {MAX_ITERATIONS} iterations")
        iteration = [
            Value.of_array(f"{k}", np.asarray(k, np.int64)),
            Value.of_array("", np.asarray(True)),
        ]
        actual = _bound(body, [*iteration, *carried])
        results = run_graph(importer, body, actual, env, scope)
        if len(results) < 1 + len(carried):
            raise UserError("the subgraph has too few outputs", found=len(results))
        if not results[0].is_known:
            return None
        going = results[0].array()
        carried, row = results[1 : len(carried) + 1], results[len(carried) + 1 :]
        rows.append(row)
        k += 1
    if not rows and len(body.output) > len(carried) + 1:
        return None
    importer.record(node, "composed")
    return [*carried, *_stacked(importer, node, rows, [0] * (len(body.output) - 1 - len(carried)))]


def scan(importer: Importer, node: Node, env: Env, scope: Scope) -> list[Value | None] | None:
    """Unroll `Scan` (opset 9 on): its count is a static dim."""
    if node.version < 9:
        return None
    body, scanned = node.graph("body"), node.int("num_scan_inputs", 1)
    states = len(node.inputs) - scanned
    if not 0 < scanned <= len(node.inputs) or len(body.output) < states:
        raise UserError("operands, results and num_scan_inputs do not fit each other")
    in_axes = node.ints("scan_input_axes", [0] * scanned)
    in_directions = node.ints("scan_input_directions", [0] * scanned)
    carried = [node.value(k) for k in range(states)]
    sources = [node[states + k] for k in range(scanned)]
    outs = len(body.output) - states
    if {len(in_axes), len(in_directions)} != {scanned}:
        raise UserError("one axis and direction per scan input are needed", expected=scanned)
    in_axes = [node.axis(a, len(shape_of(x))) for a, x in zip(in_axes, sources, strict=True)]
    counts = {shape_of(x)[axis] for x, axis in zip(sources, in_axes, strict=True)}
    if len(counts) != 1:
        raise UserError("the scan inputs have different lengths", found=sorted(counts))
    (trips,) = counts
    rows: list[list[Value]] = []
    if trips > MAX_ITERATIONS or trips == 0:
        return None
    for k in range(trips):
        slices = [
            _row(node, x, axis, trips - 1 - k if backward else k)
            for x, axis, backward in zip(sources, in_axes, in_directions, strict=True)
        ]
        actual = _bound(body, [*carried, *slices])
        results = run_graph(importer, body, actual, env, scope)
        carried = results[:states]
        rows.append(results[states:])
    directions = node.ints("scan_output_directions", [0] * outs)
    out_axes = node.ints("scan_output_axes", [0] * outs)
    if {len(directions), len(out_axes)} != {outs}:
        raise UserError("one axis and direction per scan output are needed", expected=outs)
    columns = [[row[j] for row in rows] for j in range(outs)]
    columns = [c[::-1] if directions[j] else c for j, c in enumerate(columns)]
    importer.record(node, "composed")
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [*carried, *_stacked(importer, node, rows, out_axes)]


def _row(node: Node, x: object, axis: int, position: int) -> Value:
    """x[.., position, ..] as a value."""
    from xdsl.ir import SSAValue

    assert isinstance(x, SSAValue)
    shape = shape_of(x)
    starts = [position if k == axis else 0 for k in range(len(shape))]
    sizes = [1 if k == axis else n for k, n in enumerate(shape)]
    part = node.build.slice(x, starts=starts, sizes=sizes, steps=[1] * len(shape))
    return Value.of_ssa("", node.reshape(part, [n for k, n in enumerate(shape) if k != axis]))


def _stacked(
    importer: Importer, node: Node, rows: Sequence[Sequence[Value]], axes: Sequence[int]
) -> list[Value]:
    """Scan outputs: the values of all iterations along a new axis."""
    found: list[Value] = []
    for j, column in enumerate(zip(*rows, strict=True)):
        parts = [v.ssa(node.build, node.fresh, node.where) for v in column]
        if len({(shape_of(p), element_of(p)) for p in parts}) != 1:
            raise UserError("a scan output changes its shape from one iteration to the next")
        axis = node.axis(axes[j], len(shape_of(parts[0])) + 1)
        shape = [*shape_of(parts[0])[:axis], 1, *shape_of(parts[0])[axis:]]
        parts = [node.reshape(p, shape) for p in parts]
        found.append(Value.of_ssa("", node.build.concat(*parts, axis=axis)))
    return found


Control = Callable[["Importer", Node, "Env", "Scope"], "list[Value | None] | None"]
CONTROL: dict[str, Control] = {"If": branch, "Loop": loop, "Scan": scan}
