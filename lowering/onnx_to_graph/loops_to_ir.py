"""Control flow that depends on data: loops and branches, as ops of the control dialect.

Where a body has a node without native code, the ONNX node is kept as it is and onnx.reference runs
it. The types of its results come from its bodies, never from running them: on other data a loop may
not end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import onnx
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from ...dialects.control import IfOp, LoopOp
from ...dialects.errors import UserError
from ...dialects.graph import OpaqueOp
from ...dialects.graph.contraction import ConvolutionOp, MatmulOp
from ...dialects.graph.data import GatherOp
from ...dialects.opaque import outer_names
from ...dialects.types import Tensor, shape_of, tensor, tensor_type, to_numpy
from . import opaque
from .growing import ChangedTypes, Growths, carry_rows, filtered, growths, number_rows, widened
from .node import OnnxNode
from .padded import PaddedDim
from .regions import LoopParts, SubgraphBody
from .sequences import SequenceValue, lengths, tensors
from .shaping import MAX_CONSTANT
from .subgraphs import CallContext, Env, Importing
from .trip_bounds import trips_by_condition
from .unlike_branches import aligned
from .value_ranges import ValueRange, by_inputs_alone, range_of
from .values import NeedsNumbers, NotConstant, OnnxValue

# Ops whose work a branch is worth: without them both branches are computed, in one kernel with what
# reads them. Ops that may fail on the other branch's data are in a branch of their own, too.
_BRANCHED = (MatmulOp, ConvolutionOp, GatherOp, OpaqueOp, LoopOp, IfOp)


def branch(
    importer: Importing, node: OnnxNode, env: Env, scope: CallContext
) -> list[OnnxValue | None]:
    """Both branches and a select if they are cheap, else `control.if`.

    It is an opaque node if a branch has a node without native code.

    Raises:
        NotConstant: the branches have results of different types, or one cannot run.
    """
    taken = [SubgraphBody(importer, env, scope) for _ in range(2)]
    names = ("then_branch", "else_branch")
    given = [_outcome(body, node, name) for body, name in zip(taken, names, strict=True)]
    what = "its branches give other types or shapes: the condition"
    if [lengths(v) for v in given[0]] != [lengths(v) for v in given[1]]:
        raise NotConstant(node.value(0).name, what, node.where)
    results = [
        body.yields(node, [v for value in values for v in tensors(value)])
        for body, values in zip(taken, given, strict=True)
    ]
    alike = aligned(taken, results)
    if alike is None or (
        alike[1] and by_inputs_alone(node.value(0).computed, importer.sizes.ranges)
    ):
        raise NotConstant(node.value(0).name, what, node.where)
    results, padded = alike
    if not all(body.is_native for body in taken):
        if any(isinstance(v, SequenceValue) for v in given[0]):
            what = "its branches give sequences: the condition"
            raise NotConstant(node.value(0).name, what, node.where)
        if padded:
            raise NotConstant(node.value(0).name, what, node.where)
        return _opaque(importer, node, env, scope, [tensor_type(v) for v in results[0]])
    condition = node.reshape(node[0], [])
    for body in taken:
        importer.outcomes += body.importer.outcomes
    if any(isinstance(op, _BRANCHED) for body in taken for op in body.body.build.block.ops):
        importer.record(node, "native", (IfOp.name,))
        return _outputs(importer, node, given[0], _if(node, condition, taken, results), padded)
    for k, body in enumerate(taken):
        args, captured = body.body.build.block.args, body.body.captured
        outer: dict[SSAValue, SSAValue] = dict(zip(args, captured, strict=True))
        results[k] = [outer.get(v, v) for v in results[k]]
        body.body.inline(node.build)
    found = [
        node.build.where(node.build.expand(condition, shape_of(a)), a, b)
        for a, b in zip(*results, strict=True)
    ]
    importer.record(node, "composed")
    return _outputs(importer, node, given[0], found, padded)


def _outputs(
    importer: Importing,
    node: OnnxNode,
    given: Sequence[OnnxValue],
    ends: Sequence[SSAValue],
    padded: Sequence[tuple[int, int]],
) -> list[OnnxValue | None]:
    """The results of an If from its tensors, which the counts of padded ones follow."""
    first = len(ends) - len(padded)
    for (k, dim), count in zip(padded, ends[first:], strict=True):
        importer.sizes.ranges[count] = ValueRange.of(0, shape_of(ends[k])[dim])
        importer.sizes.pad(ends[k], PaddedDim(dim, count))
    if not any(isinstance(v, SequenceValue) for v in given):
        return list(importer.named(node, ends[:first]))
    parts = iter([OnnxValue.of_ssa("", v) for v in ends])
    return [_like(value, parts) for value in given]


def _outcome(body: SubgraphBody, node: OnnxNode, name: str) -> list[OnnxValue]:
    """The results of a branch.

    Raises:
        NotConstant: the branch is wrong for these shapes. Where the condition is known it may never
            be taken.
    """
    try:
        return body.run(node.graph(name), [])
    except NotConstant:
        raise
    except UserError as error:
        what = f"its {name} cannot run ({error}): the condition"
        raise NotConstant(node.value(0).name, what, node.where) from error


def _like(value: OnnxValue, parts: Iterator[OnnxValue]) -> OnnxValue:
    """A tensor, or a sequence of as many tensors, of those that come next."""
    if not isinstance(value, SequenceValue):
        return next(parts)
    return SequenceValue("", [next(parts) for _ in value.items], value.present)


def _if(
    node: OnnxNode,
    condition: SSAValue,
    bodies: Sequence[SubgraphBody],
    results: Sequence[Sequence[SSAValue]],
) -> Sequence[SSAValue]:
    """Both branches read the same captured values."""
    captured = list(dict.fromkeys(v for body in bodies for v in body.body.captured))
    first, second = (
        body.body.close(values, captured) for body, values in zip(bodies, results, strict=True)
    )
    op = IfOp(condition, captured, (first, second), [v.type for v in results[0]])
    node.build.append(op)
    return op.outputs


def loop(
    importer: Importing, node: OnnxNode, body: onnx.GraphProto, env: Env, scope: CallContext
) -> list[OnnxValue | None]:
    """A `control.loop`; an opaque node if the body has a node without native code.

    Raises:
        UserError: as `native_loop`.
    """
    kept: list[Tensor] = []
    found = native_loop(importer, node, body, env, scope, kept)
    return _opaque(importer, node, env, scope, kept) if found is None else found


def native_loop(
    importer: Importing,
    node: OnnxNode,
    body: onnx.GraphProto,
    env: Env,
    scope: CallContext,
    types: list[Tensor] | None = None,
) -> list[OnnxValue | None] | None:
    """A `control.loop`; None if the body has a node without native code.

    Args:
        types: then gets the types of the results.

    Raises:
        UserError: a value changes its type between iterations, or a scan output has a
            data-dependent number of rows.
    """
    if any(isinstance(v, SequenceValue) for v in node.inputs[2:]):
        raise _deciding(node) or UserError(
            "it carries sequences, and data decide how often it runs"
        )
    stacks = len(body.output) > len(node.inputs) - 1
    inside, results, grown = _any_iteration(importer, node, body, env, scope, stacks)
    _require_end(node, results[0])
    inside.require_whole([v for k, v in enumerate(results) if k - 1 not in grown])
    values = inside.yields(node, results)
    ends, rows = values[1 : len(node.inputs) - 1], values[len(node.inputs) - 1 :]
    by_condition = _bound_of_condition(node, inside, results)
    trips = _most_trips(importer, node, results[0], rows, by_condition) if rows else None
    count = node.known(0) if node.has(0) else None
    known = None if count is None else int(count.ravel()[0])
    going = None if _always(results[0]) else node.reshape(values[0], [])
    start, limit = _scalar(node, 1), _scalar(node, 0) if count is None else None
    decided = any(v is not None for v in (going, start, limit))
    if not inside.is_native:
        if rows and decided:
            raise UserError("data decide how many rows it gives, and the host runs its body")
        if types is not None:
            types += [tensor_type(v) for v in ends]
            types += [_rows(trips or 0, tensor_type(v)) for v in rows]
        return None
    importer.outcomes += inside.importer.outcomes
    importer.record(node, "native", (LoopOp.name,))
    parts = LoopParts(
        inside.body,
        [node[k] for k in range(2, len(node.inputs))],
        ends,
        rows=rows,
        going=going,
        count=limit,
        start=start,
        trips=trips if known is None else known if trips is None else min(known, trips),
    )
    if grown:
        carry_rows(node, inside, parts, grown)
    if stacks:
        _count_iterations(node, inside, parts)
    made = parts.add(node.build)
    numbers = [made.pop(len(ends)) for _ in grown]
    for (k, growth), number in zip(grown.items(), numbers, strict=True):
        importer.sizes.ranges[number] = ValueRange.of(0, growth.most)
        importer.sizes.pad(made[k], PaddedDim(growth.dim, number))
    if stacks:
        ran = made.pop(len(ends))
        if decided:
            made[len(ends) :] = [_counted(importer, node, v, ran) for v in made[len(ends) :]]
    return list(importer.named(node, made))


def _count_iterations(node: OnnxNode, inside: SubgraphBody, parts: LoopParts) -> None:
    """Carry the number of iterations, in the last argument for a carried value."""
    build = inside.importer.build
    more = build.add(build.block.args[0], build.constant(np.asarray(1, np.int64), i64))
    zero = node.build.constant(np.asarray(0, np.int64), i64)
    parts.carried, parts.nexts = [*parts.carried, zero], [*parts.nexts, more]


def _counted(importer: Importing, node: OnnxNode, rows: SSAValue, ran: SSAValue) -> SSAValue:
    """Rows of all iterations, zeros where there was none."""
    build, shape = node.build, shape_of(rows)
    places = np.arange(shape[0], dtype=np.int64).reshape([-1] + [1] * (len(shape) - 1))
    inside = build.less(build.expand(node.data(places, "rows"), shape), build.expand(ran, shape))
    found = build.where(inside, rows, node.literal(0, rows))
    importer.sizes.ranges[ran] = ValueRange.of(0, shape[0])
    importer.sizes.pad(found, PaddedDim(0, ran))
    return found


def _any_iteration(
    importer: Importing,
    node: OnnxNode,
    body: onnx.GraphProto,
    env: Env,
    scope: CallContext,
    counted: bool,
) -> tuple[SubgraphBody, list[OnnxValue], Growths]:
    """One iteration, and the carried values whose numbers of rows it changes."""
    import_one = partial(_iteration, importer, node, body, env, scope, counted)
    try:
        inside, results = import_one()
        grown = filtered(inside, results[1 : len(node.inputs) - 1])
        if not grown:
            return inside, results, {}
    except ChangedTypes as error:
        by_inputs = [
            k
            for k in (0, 1)
            if node.has(k) and by_inputs_alone(node.value(k).computed, importer.sizes.ranges)
        ]
        if by_inputs or importer.sizes.symbolic:
            raise _deciding(node) or error from error
        try:
            by_count = _bound_of_count(importer, node)
            by_condition = _bound_of_condition(node, error.inside, error.results)
            grown = growths(error, min(by_count, by_condition))
        except ChangedTypes:
            raise _deciding(node) or error from error
    return *import_one(grown), grown


def _bound_of_count(importer: Importing, node: OnnxNode) -> float:
    """The most iterations that the count allows."""
    count = node.value(0) if node.has(0) else None
    if count is not None and count.is_known:
        return int(count.array().ravel()[0])
    if count is None or count.computed is None:
        return math.inf
    found = range_of(count.computed, importer.sizes.ranges)
    return math.inf if found is None else found.at(0)[1]


def _bound_of_condition(
    node: OnnxNode, inside: SubgraphBody, results: Sequence[OnnxValue]
) -> float:
    """The most iterations that the condition allows."""
    carried = node.inputs[2:]
    known = [v.array() if v is not None and v.is_known else None for v in carried]
    firsts = [None if a is None or a.size != 1 else float(a.ravel()[0]) for a in known]
    values = [v.computed for v in results[: 1 + len(carried)]]
    arguments = inside.body.build.block.args[1 : 1 + len(carried)]
    kept = [k for k, v in enumerate(values[1:]) if v is not None]
    if values[0] is None:
        return math.inf
    return trips_by_condition(
        values[0],
        [arguments[k] for k in kept],
        [v for v in values[1:] if v is not None],
        [firsts[k] for k in kept],
        inside.importer.sizes,
    )


def _iteration(
    importer: Importing,
    node: OnnxNode,
    body: onnx.GraphProto,
    env: Env,
    scope: CallContext,
    counted: bool = False,
    grown: Growths | None = None,
) -> tuple[SubgraphBody, list[OnnxValue]]:
    """The results of one iteration of a loop's body on values of the carried types.

    Args:
        counted: whether one more argument, the last, is the number of iterations.
        grown: the carried values whose numbers of rows change; those are arguments before that.

    Raises:
        ChangedTypes: carried values change their types.
    """
    inside = SubgraphBody(importer, env, scope)
    step = inside.argument(tensor([], i64), "step")
    carried = [node.value(k) for k in range(2, len(node.inputs))]
    grown = grown or {}
    inputs = [
        inside.argument(widened(tensor_type(node[2 + k]), grown.get(k)), v.name)
        for k, v in enumerate(carried)
    ]
    number_rows(inside, inputs, grown)
    if counted:
        inside.argument(tensor([], i64), "ran")
    results = inside.run(body, [step, OnnxValue.of_array("", np.asarray(True)), *inputs])
    if len(results) < 1 + len(carried):
        raise UserError("the subgraph has too few outputs", found=len(results))
    changed = {
        k: (before, after)
        for k, (before, after) in enumerate(zip(carried, results[1:], strict=False))
        if k not in grown and (before.shape, before.element) != (after.shape, after.element)
    }
    if changed:
        name = body.input[2 + next(iter(changed))].name
        told = f"'{name}' has another type after an iteration: shapes depend on data"
        raise ChangedTypes(told, changed, inside, results)
    if math.prod(results[0].shape) != 1:
        raise UserError("a condition is a single boolean", found=list(results[0].shape))
    return inside, results


def _scalar(node: OnnxNode, k: int) -> SSAValue | None:
    """Operand `k` as a scalar; None if it is missing or a condition that is known to hold."""
    if not node.has(k) or _always(node.value(k)):
        return None
    return node.reshape(node[k], [])


def _always(condition: OnnxValue) -> bool:
    return condition.element == i1 and condition.is_known and bool(condition.array().all())


def empty_rows(
    importer: Importing, node: OnnxNode, body: onnx.GraphProto, env: Env, scope: CallContext
) -> list[OnnxValue]:
    """The scan outputs of a loop without iterations: no rows of their type."""
    carried = len(node.inputs) - 2
    if len(body.output) == 1 + carried:
        return []
    inside, results = _iteration(importer, node, body, env, scope)
    types = [tensor_type(v) for v in inside.yields(node, results[1 + carried :])]
    return [
        OnnxValue.of_array("", np.zeros((0, *t.get_shape()), to_numpy(t.element_type)))
        for t in types
    ]


def _rows(trips: int, type_: Tensor) -> Tensor:
    return tensor([trips, *type_.get_shape()], type_.element_type)


def _most_trips(
    importer: Importing,
    node: OnnxNode,
    going: OnnxValue,
    rows: Sequence[SSAValue],
    by_condition: float,
) -> int:
    """The most iterations, of a loop that gives a row for each.

    Raises:
        UserError: nothing bounds them.
        NotConstant: inputs alone decide them.
    """
    count = node.value(0) if node.has(0) else None
    first = node.known(1) if node.has(1) else np.asarray(True)
    known = count is not None and count.is_known and first is not None and bool(first.all())
    if importer.sizes.symbolic and not (known and _always(going)):
        raise NeedsNumbers("data decide rows beside symbols", where=node.where)
    for k in (0, 1):
        if node.has(k) and by_inputs_alone(node.value(k).computed, importer.sizes.ranges):
            raise _deciding(node) or AssertionError
    most = min(_bound_of_count(importer, node), by_condition)
    size = max((math.prod(shape_of(v)) for v in rows), default=1)
    if not most * max(size, 1) <= MAX_CONSTANT:
        raise _deciding(node) or UserError(
            "a scan output has as many rows as there are iterations, and nothing bounds them",
            hint="give the loop a count, or Min of it and a constant",
        )
    return max(int(most), 0)


def _deciding(node: OnnxNode) -> NotConstant | None:
    """The count or condition that would have to be known."""
    for k, what in ((0, "the loop's count"), (1, "the loop's condition")):
        if node.has(k) and not node.value(k).is_known:
            return NotConstant(node.value(k).name, what, node.where)
    return None


def _require_end(node: OnnxNode, going: OnnxValue) -> None:
    """Refuse a loop without a count that never changes its condition. Raises UserError."""
    if not node.has(0) and _always(going):
        raise UserError("it has no count, and its condition never changes: it would not end")


def _opaque(
    importer: Importing, node: OnnxNode, env: Env, scope: CallContext, types: Sequence[Tensor]
) -> list[OnnxValue | None]:
    """The node with the outside values that its subgraphs read as further operands."""
    read: list[OnnxValue] = []
    for name in outer_names(node.proto):
        value = env.get(name)
        if value is None:
            raise UserError(f"its subgraph reads '{name}', which nothing defines")
        read.append(value)
    wanted = [type_ for name, type_ in zip(node.proto.output, types, strict=False) if name]
    results = opaque.add(node, scope.opsets, read, wanted)
    importer.record(node, "opaque", (OpaqueOp.name,))
    return list(importer.named(node, results))


__all__ = ["branch", "empty_rows", "loop"]
