"""Control flow that depends on data: `If` as both branches and a select, loops as opaque nodes.

The types of an opaque node's results come from importing its subgraphs separately, never from
running them: on other data a loop may not end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx

from ...dialects.errors import UserError
from ...dialects.graph import OpaqueOp
from ...dialects.graph.data import GatherOp
from ...dialects.opaque import captured, outer_names
from ...dialects.types import Tensor, shape_of, tensor, tensor_type, to_numpy
from . import opaque
from .node import OnnxNode
from .sequences import SequenceValue, lengths, tensors
from .subgraphs import CallContext, Env, Importing, bound, run_graph
from .values import NotConstant, OnnxValue


def branch(
    importer: Importing, node: OnnxNode, env: Env, scope: CallContext
) -> list[OnnxValue | None]:
    """Both branches and a select; an opaque node if a branch may fail on the other's data.

    Raises:
        NotConstant: the branches have results of different types.
    """
    mark, recorded = importer.mark()
    results = [
        run_graph(importer, node.graph(name), {}, env, scope)
        for name in ("then_branch", "else_branch")
    ]
    what = "its branches give other types or shapes: the condition"
    if [lengths(v) for v in results[0]] != [lengths(v) for v in results[1]]:
        raise NotConstant(node.value(0).name, what, node.where)
    taken = [[_ssa(node, v) for value in values for v in tensors(value)] for values in results]
    types = [[tensor_type(v) for v in values] for values in taken]
    if types[0] != types[1]:
        raise NotConstant(node.value(0).name, what, node.where)
    if importer.holds_since(mark, OpaqueOp, GatherOp):  # it may fail, or draw random numbers
        importer.undo(mark, recorded)
        if any(isinstance(v, SequenceValue) for v in results[0]):
            raise NotConstant(
                node.value(0).name, "its branches give sequences: the condition", node.where
            )
        return _opaque(importer, node, env, scope, types[0])
    condition = node.reshape(node[0], [])
    found = [
        OnnxValue.of_ssa("", node.build.where(node.build.expand(condition, shape_of(a)), a, b))
        for a, b in zip(*taken, strict=True)
    ]
    importer.record(node, "composed")
    parts = iter(found)
    return [_like(value, parts) for value in results[0]]


def _like(value: OnnxValue, parts: Iterator[OnnxValue]) -> OnnxValue:
    """A tensor, or a sequence of as many tensors, of those that come next."""
    if not isinstance(value, SequenceValue):
        return next(parts)
    return SequenceValue("", [next(parts) for _ in value.items], value.present)


def loop(
    importer: Importing, node: OnnxNode, body: onnx.GraphProto, env: Env, scope: CallContext
) -> list[OnnxValue | None]:
    """A loop that is kept: its count depends on data, or is too large to unroll.

    Raises:
        UserError: a value changes its type between iterations, or a scan output has a
            data-dependent number of rows.
    """
    _require_end(node, body)
    if any(isinstance(v, SequenceValue) for v in node.inputs[2:]):
        raise _deciding(node) or UserError(
            "it carries sequences, and data decide how often it runs"
        )
    apart = _Apart(importer, node, env, scope)
    results = apart.iteration(body)
    carried = len(node.inputs) - 2
    types = [tensor_type(_ssa(node, v, apart.importer)) for v in results[1:]]
    rows: list[Tensor] = []
    for type_ in types[carried:]:
        rows.append(_rows(_trips(node, results[0]), type_))
    return _opaque(importer, node, env, scope, [*types[:carried], *rows])


def empty_rows(
    importer: Importing, node: OnnxNode, body: onnx.GraphProto, env: Env, scope: CallContext
) -> list[OnnxValue]:
    """The scan outputs of a loop without iterations: no rows of their type."""
    carried = len(node.inputs) - 2
    if len(body.output) == 1 + carried:
        return []
    apart = _Apart(importer, node, env, scope)
    results = apart.iteration(body)
    types = [tensor_type(_ssa(node, v, apart.importer)) for v in results[1 + carried :]]
    return [
        OnnxValue.of_array("", np.zeros((0, *t.get_shape()), to_numpy(t.element_type)))
        for t in types
    ]


def _rows(trips: int, type_: Tensor) -> Tensor:
    return tensor([trips, *type_.get_shape()], type_.element_type)


def _trips(node: OnnxNode, going: OnnxValue) -> int:
    """The number of iterations. Raises UserError if it depends on data."""
    count = node.known(0) if node.has(0) else None
    first = node.known(1) if node.has(1) else np.asarray(True)
    always = going.is_known and bool(going.array().all())
    if count is None or first is None or not first.all() or not always:
        raise _deciding(node) or UserError(
            "a scan output has as many rows as there are iterations, and data decide that"
        )
    return int(count.ravel()[0])


def _deciding(node: OnnxNode) -> NotConstant | None:
    """The count or condition that would have to be known."""
    for k, what in ((0, "the loop's count"), (1, "the loop's condition")):
        if node.has(k) and not node.value(k).is_known:
            return NotConstant(node.value(k).name, what, node.where)
    return None


def _require_end(node: OnnxNode, body: onnx.GraphProto) -> None:
    """Refuse a loop without a count that never changes its condition. Raises UserError."""
    if node.has(0) or not body.output or len(body.input) < 2:
        return
    if body.output[0].name == body.input[1].name:
        raise UserError("it has no count, and its condition never changes: it would not end")


class _Apart:
    """Import a subgraph into a separate program, to learn types; constants stay known."""

    def __init__(self, outer: Importing, node: OnnxNode, env: Env, scope: CallContext):
        self.importer = outer.apart()
        self.node, self.scope = node, scope
        wanted = {n for a in node.proto.attribute for g in (a.g, *a.graphs) for n in captured(g)}
        self.env: Env = {
            name: value if value is None else self._stand_in(value)
            for name, value in env.items()
            if name in wanted
        }

    def _stand_in(self, value: OnnxValue) -> OnnxValue:
        """An input of the same type, unless the data are known."""
        if value.is_known or value.element is None:
            return value.apart()
        name = self.importer.fresh("outer")
        return OnnxValue.of_ssa(name, self.importer.build.input(name, value.shape, value.element))

    def iteration(self, body: onnx.GraphProto) -> list[OnnxValue]:
        """The results of one iteration of a loop's body on values of the carried types.

        Raises:
            UserError: a carried value changes its type.
        """
        carried = [self.node.value(k) for k in range(2, len(self.node.inputs))]
        for value in carried:
            value.ssa(self.node.build, self.node.fresh, self.node.where)  # it has a type
        inputs = [self._carried(v) for v in carried]
        count = OnnxValue.of_array("", np.asarray(0, np.int64))
        steps = [self._carried(count), OnnxValue.of_array("", np.asarray(True))]
        actual = bound(body, [*steps, *inputs])
        results = run_graph(self.importer, body, actual, self.env, self.scope)
        if len(results) < 1 + len(carried):
            raise UserError("the subgraph has too few outputs", found=len(results))
        for name, before, after in zip(body.input[2:], carried, results[1:], strict=False):
            if (before.shape, before.element) != (after.shape, after.element):
                raise _deciding(self.node) or UserError(
                    f"'{name.name}' has another type after an iteration: shapes depend on data",
                    expected=f"{list(before.shape)} of {before.element}",
                    found=f"{list(after.shape)} of {after.element}",
                )
        return results

    def _carried(self, value: OnnxValue) -> OnnxValue:
        assert value.element is not None
        name = self.importer.fresh("carried")
        return OnnxValue.of_ssa(name, self.importer.build.input(name, value.shape, value.element))


def _ssa(node: OnnxNode, value: OnnxValue, importer: Importing | None = None):
    if importer is None:
        return value.ssa(node.build, node.fresh, node.where)
    return value.ssa(importer.build, importer.fresh, node.where)


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
