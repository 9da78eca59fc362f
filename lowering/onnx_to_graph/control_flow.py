"""Control flow decided at import time: `If` on a constant, loops with a constant count.

loops_to_ir.py handles what depends on data. A loop of `regions.UNROLLED` iterations or more
stays one, if its body has a form as one; others are unrolled. No loop runs more than MAX_ITERATIONS
times at import, and none makes many more nodes than MAX_UNROLLED.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import onnx
from xdsl.ir import SSAValue

from ...dialects.control import LoopOp
from ...dialects.errors import UserError
from ...dialects.opaque import outer_names
from ...dialects.types import shape_of
from . import loops_to_ir, regions
from .node import OnnxNode
from .regions import SubgraphBody
from .scan_to_loop import scan_loop
from .sequences import sequence_map
from .subgraphs import CallContext, Env, Importing, bound, run_graph
from .values import NeedsNumbers, OnnxValue

MAX_ITERATIONS = 4096
# A loop that makes more nodes than this is not unrolled further: it stays a loop.
MAX_UNROLLED = 20_000


def branch(
    importer: Importing, node: OnnxNode, env: Env, scope: CallContext
) -> list[OnnxValue | None]:
    """`If` on a constant takes its branch; otherwise both are computed, or it is opaque."""
    if math.prod(node.shape(0)) != 1:
        raise UserError("the condition is not a single boolean", found=list(node.shape(0)))
    condition = node.known(0)
    if condition is None:
        return loops_to_ir.branch(importer, node, env, scope)
    taken = node.graph("then_branch" if condition.ravel()[0] else "else_branch")
    results = run_graph(importer, taken, {}, env, scope)
    importer.record(node, "folded")
    return list(results)


def loop(
    importer: Importing, node: OnnxNode, env: Env, scope: CallContext
) -> list[OnnxValue | None]:
    """Unroll a short `Loop` if count and conditions are constants, otherwise keep a loop."""
    count = node.known(0) if node.has(0) else None
    going = node.known(1) if node.has(1) else np.asarray(True)
    body = node.graph("body")
    for given in (count, going):
        if given is not None and given.size != 1:
            raise UserError("count and condition are single numbers", found=list(given.shape))
    if going is None or (node.has(0) and count is None):
        return loops_to_ir.loop(importer, node, body, env, scope)
    trips = None if count is None else int(count.ravel()[0])
    if trips is not None and trips > MAX_ITERATIONS:
        return loops_to_ir.loop(importer, node, body, env, scope)
    if _key(node, body, env) in importer.undecided:
        return loops_to_ir.loop(importer, node, body, env, scope)
    if trips is not None and trips >= regions.UNROLLED and bool(going.ravel()[0]):
        attempt = partial(loops_to_ir.native_loop, importer, node, body, env, scope)
        if (found := _attempted(importer, (*_key(node, body, env), trips), attempt)) is not None:
            return found
    (mark, recorded), visited = importer.mark(), importer.visited[0]
    carried: list[OnnxValue] = [node.value(k) for k in range(2, len(node.inputs))]
    rows: list[list[OnnxValue]] = []
    while (trips is None or len(rows) < trips) and bool(going.ravel()[0]):
        if len(rows) >= MAX_ITERATIONS:
            raise _endless(len(rows))
        iteration = [
            OnnxValue.of_array(f"{len(rows)}", np.asarray(len(rows), np.int64)),
            OnnxValue.of_array("", np.asarray(True)),
        ]
        results = run_graph(importer, body, bound(body, [*iteration, *carried]), env, scope)
        if len(results) < 1 + len(carried):
            raise UserError("the subgraph has too few outputs", found=len(results))
        too_large = importer.visited[0] - visited > MAX_UNROLLED
        if too_large and trips is None and results[0].is_known:
            raise _endless(len(rows) + 1)
        if not results[0].is_known or too_large:  # whether it goes on depends on data
            importer.undo(mark, recorded)
            importer.undecided.add(_key(node, body, env))
            return loops_to_ir.loop(importer, node, body, env, scope)
        going = results[0].array()
        carried, row = results[1 : len(carried) + 1], results[len(carried) + 1 :]
        rows.append(row)
    importer.record(node, "composed")
    outs = len(body.output) - 1 - len(carried)
    if not rows:
        return [*carried, *loops_to_ir.empty_rows(importer, node, body, env, scope)]
    return [*carried, *_stacked(node, rows, [0] * outs)]


def _attempted(
    importer: Importing,
    key: tuple[object, ...],
    attempt: Callable[[], list[OnnxValue | None] | None],
) -> list[OnnxValue | None] | None:
    """A loop by an attempt to keep it; None, with nothing built, where it has no form as one.

    What fails is not tried again: loops within loops would double the time with each.
    """
    if key in importer.unfit:
        return None
    mark, recorded = importer.mark()
    try:
        found = attempt()
    except NeedsNumbers:
        raise
    except UserError:  # with its numbers known, each iteration may be possible by itself
        found = None
    if found is None:
        importer.undo(mark, recorded)
        importer.unfit.add(key)
    return found


def _endless(iterations: int) -> UserError:
    return UserError(f"it has no count, and has not ended after {iterations} iterations")


def _key(node: OnnxNode, body: onnx.GraphProto, env: Env) -> tuple[bytes, tuple[bool, ...]]:
    """A loop and the known data of its operands; one that depends on data is not tried again."""
    values = [*node.inputs, *(env.get(name) for name in outer_names(node.proto))]
    return body.SerializeToString(), tuple(v is not None and v.is_known for v in values)


def scan(
    importer: Importing, node: OnnxNode, env: Env, scope: CallContext
) -> list[OnnxValue | None]:
    """Unroll a short `Scan`, otherwise keep it as a loop: its count is a static dim."""
    if node.version < 9:
        return _batched_scan(importer, node, env, scope)
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
    counts = {int(shape_of(x)[axis]) for x, axis in zip(sources, in_axes, strict=True)}
    if len(counts) != 1:
        raise UserError("the scan inputs have different lengths", found=sorted(counts))
    (trips,) = counts
    scans = list(zip(sources, in_axes, in_directions, strict=True))
    directions = node.ints("scan_output_directions", [0] * outs)
    out_axes = node.ints("scan_output_axes", [0] * outs)
    if {len(directions), len(out_axes)} != {outs}:
        raise UserError("one axis and direction per scan output are needed", expected=outs)
    if trips >= regions.UNROLLED:
        kept = (node, SubgraphBody(importer, env, scope), scans, directions, out_axes)
        if found := _attempted(importer, _key(node, body, env), partial(scan_loop, *kept)):
            importer.outcomes += kept[1].importer.outcomes
            importer.record(node, "native", (LoopOp.name,))
            return list(found)
    run = partial(run_graph, importer, body, outer=env, scope=scope)
    carried, rows = _scanned(node, carried, scans, trips, run)
    columns = [[row[j] for row in rows] for j in range(outs)]
    columns = [c[::-1] if directions[j] else c for j, c in enumerate(columns)]
    importer.record(node, "composed")
    rows = [list(row) for row in zip(*columns, strict=True)]
    return [*carried, *_stacked(node, rows, out_axes)]


def _scanned(
    node: OnnxNode,
    carried: list[OnnxValue],
    scans: Sequence[tuple[SSAValue, int, int]],
    trips: int,
    run: Callable[[Env], list[OnnxValue]],
) -> tuple[list[OnnxValue], list[list[OnnxValue]]]:
    """The last states, and what each step gives beside them.

    Args:
        scans: what is scanned, along which axis, and whether backward.
        run: the body on values of its inputs.
    """
    if not 0 < trips <= MAX_ITERATIONS:
        raise UserError(
            "the number of steps is out of range", expected=f"1 to {MAX_ITERATIONS}", found=trips
        )
    states, rows = len(carried), list[list[OnnxValue]]()
    for k in range(trips):
        slices = [_row(node, x, axis, trips - 1 - k if back else k) for x, axis, back in scans]
        results = run(bound(node.graph("body"), [*carried, *slices]))
        carried = results[:states]
        rows.append(results[states:])
    return carried, rows


def _batched_scan(
    importer: Importing, node: OnnxNode, env: Env, scope: CallContext
) -> list[OnnxValue | None]:
    """`Scan` of opset 8: each example of a batch (axis 0) is scanned by itself, along axis 1."""
    if node.has(0):
        raise UserError("Scan of opset 8 with lengths is not supported", hint="export with opset 9")
    body, scanned = node.graph("body"), node.int("num_scan_inputs", 1)
    states = len(node.inputs) - 1 - scanned
    directions = node.ints("directions", [0] * scanned)
    if not 0 < scanned < len(node.inputs) or len(directions) != scanned:
        raise UserError("operands and num_scan_inputs do not fit each other")
    sources = [node[1 + states + k] for k in range(scanned)]
    batch, trips = shape_of(sources[0])[:2]
    run = partial(run_graph, importer, body, outer=env, scope=scope)
    examples: list[list[OnnxValue]] = []
    for k in range(batch):
        carried = [_row(node, node[1 + j], 0, k) for j in range(states)]
        parts = [_row(node, x, 0, k).ssa(node.build, node.fresh, node.where) for x in sources]
        scans = [(x, 0, back) for x, back in zip(parts, directions, strict=True)]
        carried, rows = _scanned(node, carried, scans, trips, run)
        examples.append([*carried, *_stacked(node, rows, [0] * len(rows[0]))])
    importer.record(node, "composed")
    return list(_stacked(node, examples, [0] * len(examples[0])))


def _row(node: OnnxNode, x: SSAValue, axis: int, position: int) -> OnnxValue:
    """x[.., position, ..] as a value."""
    shape = shape_of(x)
    starts = [position if k == axis else 0 for k in range(len(shape))]
    sizes = [1 if k == axis else n for k, n in enumerate(shape)]
    part = node.build.slice(x, starts=starts, sizes=sizes, steps=[1] * len(shape))
    return OnnxValue.of_ssa("", node.reshape(part, [n for k, n in enumerate(shape) if k != axis]))


def _stacked(
    node: OnnxNode, rows: Sequence[Sequence[OnnxValue]], axes: Sequence[int]
) -> list[OnnxValue]:
    """Scan outputs: the values of all iterations along a new axis."""
    found: list[OnnxValue] = []
    for j, column in enumerate(zip(*rows, strict=True)):
        parts = [v.ssa(node.build, node.fresh, node.where) for v in column]
        if len({p.type for p in parts}) != 1:
            raise UserError("a scan output changes its shape from one iteration to the next")
        axis = node.axis(axes[j], len(shape_of(parts[0])) + 1)
        shape = [*shape_of(parts[0])[:axis], 1, *shape_of(parts[0])[axis:]]
        parts = [node.reshape(p, shape) for p in parts]
        found.append(OnnxValue.of_ssa("", node.build.concat(*parts, axis=axis)))
    return found


Control = Callable[[Importing, OnnxNode, Env, CallContext], "list[OnnxValue | None]"]
CONTROL: dict[str, Control] = {
    "If": branch,
    "Loop": loop,
    "Scan": scan,
    "SequenceMap": sequence_map,
}
