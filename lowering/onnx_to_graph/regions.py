"""Subgraphs as bodies of `control.loop` and `control.if`.

A body is imported as a program of its own. Its inputs are its arguments; values that it reads from
outside are captured: they become further arguments and operands. Weights and known data are made
inside the body, where its kernels find them at compile time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx
from xdsl.ir import Operation, Region, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.control import LoopOp, YieldOp
from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, GraphOp, OpaqueOp, WeightOp
from ...dialects.loop_invariants import hoisted
from ...dialects.opaque import RANDOM_NODES, captured
from ...dialects.program import name_value
from ...dialects.types import Tensor, element_of, is_float, shape_of, tensor, tensor_type
from ...dialects.weights_only import depends_on_weights_only, is_source
from .node import OnnxNode
from .padded import PaddedDim, same_count
from .sequences import SequenceValue, tensors
from .subgraphs import CallContext, Env, Importing, bound, run_graph
from .value_ranges import EACH, ValueRange, by_inputs_alone, range_of
from .values import NeedsNumbers, OnnxValue

# A loop of fewer iterations, whose number is known, becomes one program. Elementwise ops are fused
# across its iterations, and the searches of `optimize` see them. Products are as fast in a loop,
# and a longer program takes as much longer to compile.
UNROLLED = 8


class BodyBuilder:
    """Builds one body. Arguments come first, then captured values, then ops.

    Attributes:
        build: what its ops are added to.
        captured: the outside values that it reads, in the order of their arguments.
    """

    def __init__(self, build: GraphBuilder) -> None:
        self.build = build
        self.captured: list[SSAValue] = []
        self._copies: dict[SSAValue, SSAValue | None] = {}  # None of values that data decide
        self._arguments: dict[SSAValue, SSAValue] = {}

    def argument(self, type_: Tensor, name: str) -> SSAValue:
        """Add an argument, before anything is captured."""
        assert not self.captured
        return self._added(type_, name)

    def capture(self, value: SSAValue) -> SSAValue:
        """An outside value inside the body; what depends on weights alone is computed there."""
        return self._copied(value) or self._captured(value)

    def hoist(self, build: GraphBuilder, results: Sequence[SSAValue]) -> list[SSAValue]:
        """Move out what is the same in all iterations; returns the results of the body then."""
        block = self.build.block
        arguments = block.args[len(block.args) - len(self.captured) :]
        moved = hoisted(block, dict(zip(arguments, self.captured, strict=True)), build)
        inside = {old: self._captured(new) for old, new in moved.items()}
        for old, new in inside.items():
            old.replace_all_uses_with(new)
        for op in reversed(list(block.ops)):
            unread = not any(v.uses or v in results for v in op.results)
            if unread and isinstance(op, GraphOp | ConstantOp | WeightOp):
                op.detach()
                op.erase()
        return [inside.get(v, v) for v in results]

    def read(self, results: Sequence[SSAValue]) -> list[SSAValue]:
        """The captured values that the body reads, or yields as they are."""
        arguments = self.build.block.args[len(self.build.block.args) - len(self.captured) :]
        pairs = zip(self.captured, arguments, strict=True)
        return [v for v, argument in pairs if argument.first_use is not None or argument in results]

    def close(self, results: Sequence[SSAValue], captured: Sequence[SSAValue]) -> Region:
        """The body that yields these values, and whose last arguments are these captured values."""
        block = self.build.block
        block.add_op(YieldOp(results))
        first = len(block.args) - len(self.captured)
        old = dict(zip(self.captured, block.args[first:], strict=True))
        for value in captured:
            argument = block.insert_arg(value.type, len(block.args))
            argument.name_hint = value.name_hint
            if value in old:
                old[value].replace_all_uses_with(argument)
        for argument in old.values():
            block.erase_arg(argument)
        return Region(block)

    def hand_on(self, number: int, value: SSAValue) -> SSAValue:
        """Make a captured value, returned, of an argument that no iteration changes."""
        argument = self.build.block.args[number]
        found = self._captured(value)
        argument.replace_all_uses_with(found)
        self.build.block.erase_arg(argument)
        return found

    def inline(self, into: GraphBuilder) -> None:
        """Move the ops to where the captured values are; the body has no other arguments."""
        for argument, value in zip(list(self.build.block.args), self.captured, strict=True):
            argument.replace_all_uses_with(value)
        for op in list(self.build.block.ops):
            op.detach()
            into.block.add_op(op)

    def _captured(self, value: SSAValue) -> SSAValue:
        if value not in self._arguments:
            self.captured.append(value)
            self._arguments[value] = self._added(tensor_type(value), value.name_hint or "outer")
        return self._arguments[value]

    def _added(self, type_: Tensor, name: str) -> SSAValue:
        block = self.build.block
        found = block.insert_arg(type_, len(block.args))
        name_value(found, name)
        return found

    def _copied(self, value: SSAValue) -> SSAValue | None:
        """A copy of the ops that make a weights-only value; None of any other."""
        stack = [value]
        while stack:
            op = stack[-1].owner
            if stack[-1] in self._copies:
                stack.pop()
            elif not isinstance(op, Operation):
                self._copies[stack.pop()] = None
            elif waiting := [v for v in op.operands if v not in self._copies]:
                stack += waiting
            else:
                self._copy(op)
        return self._copies[value]

    def _copy(self, op: Operation) -> None:
        """Copy an op if its operands are copied and nothing else decides its results."""
        known = {v: made for v in op.operands if (made := self._copies[v]) is not None}
        if not is_source(op) and not depends_on_weights_only(op, set(known)):
            self._copies.update(dict.fromkeys(op.results))
            return
        copy = op.clone(dict(known))
        self.build.block.add_op(copy)
        self._copies.update(zip(op.results, copy.results, strict=True))


@dataclass
class LoopParts:
    """A loop to be made: its body, the values it begins with, and what an iteration gives.

    Attributes:
        carried, nexts: each carried value at first, and after an iteration.
        scanned, rows: the tensors whose rows are arguments; the values that are stacked.
        going: whether to go on, of the body; None if always.
        count, start, trips, backward: as of `control.loop`.
    """

    body: BodyBuilder
    carried: Sequence[SSAValue]
    nexts: Sequence[SSAValue]
    scanned: Sequence[SSAValue] = ()
    rows: Sequence[SSAValue] = ()
    going: SSAValue | None = None
    count: SSAValue | None = None
    start: SSAValue | None = None
    trips: Any = None  # a number, or None; of a dim that is a symbol there is no loop
    backward: Sequence[int] = ()

    def add(self, build: GraphBuilder) -> list[SSAValue]:
        """Add the loop. Returns the carried values at the end, then the stacked rows.

        A carried value that no iteration changes becomes a captured one.
        """
        arguments = self.body.build.block.args
        same = [arguments[1 + k] is value for k, value in enumerate(self.nexts)]
        moved: dict[SSAValue, SSAValue] = {}
        for k in reversed(range(len(self.carried))):
            if same[k]:
                argument = self.nexts[k]
                moved[argument] = self.body.hand_on(1 + k, self.carried[k])
        carried = [v for v, kept in zip(self.carried, same, strict=True) if not kept]
        nexts = [v for v, kept in zip(self.nexts, same, strict=True) if not kept]
        going = [] if self.going is None else [self.going]
        yielded = [moved.get(v, v) for v in (*going, *nexts, *self.rows)]
        yielded = self.body.hoist(build, yielded)
        if not nexts and not self.rows:  # it computes nothing
            return list(self.carried)
        if not isinstance(self.trips, int | None):
            raise NeedsNumbers("a loop over a dim is for one size of it")
        captured = self.body.read(yielded)
        region = self.body.close(yielded, captured)
        op = LoopOp(
            region,
            [*(v.type for v in nexts), *(self._stacked(v) for v in self.rows)],
            count=self.count,
            start=self.start,
            carried=carried,
            scanned=self.scanned,
            captured=captured,
            trips=self.trips,
            conditional=self.going is not None,
            backward=self.backward,
        )
        build.append(op)
        ends = iter(op.outputs)
        found = [v if kept else next(ends) for v, kept in zip(self.carried, same, strict=True)]
        return [*found, *ends]

    def _stacked(self, row: SSAValue) -> Tensor:
        assert self.trips is not None
        type_ = tensor_type(row)
        return tensor([self.trips, *type_.get_shape()], type_.element_type)


class SubgraphBody:
    """A subgraph imported as a body.

    Attributes:
        importer: what imports it; its outcomes are the inner nodes'.
    """

    def __init__(self, outer: Importing, env: Env, scope: CallContext) -> None:
        self.importer = outer.inside()
        self.body = BodyBuilder(self.importer.build)
        self._outer, self._env, self._scope = outer, env, scope

    def argument(self, type_: Tensor, name: str) -> OnnxValue:
        """Add an argument; all before `run`."""
        value = self.body.argument(type_, name)
        if not is_float(type_.element_type):  # no input of the program, which a session may fix
            self.importer.sizes.ranges[value] = ValueRange.of(-math.inf, math.inf)
        return OnnxValue.of_ssa(name, value)

    def run(self, graph: onnx.GraphProto, arguments: Sequence[OnnxValue]) -> list[OnnxValue]:
        """The subgraph's results. Raises UserError, as an import."""
        inputs = bound(graph, arguments)
        wanted = [name for name in captured(graph) if name in self._env]
        env: Env = {name: self._inside(name, self._env[name]) for name in wanted}
        return run_graph(self.importer, graph, inputs, env, self._scope)

    def require_whole(self, results: Sequence[OnnxValue]) -> None:
        """Raise UserError where data decide the size of a result."""
        for value in (v for result in results for v in tensors(result)):
            if self.importer.is_padded(value.computed):
                raise UserError(
                    f"'{value.name}' has as many rows as the data say, and leaves a loop",
                    hint="compute with its rows inside the loop",
                )

    def yields(self, node: OnnxNode, values: Sequence[OnnxValue]) -> list[SSAValue]:
        """The values as the body's own."""
        return [v.ssa(self.importer.build, self.importer.fresh, node.where) for v in values]

    @property
    def is_native(self) -> bool:
        """Whether all inner nodes have native code, and none draws random numbers."""
        kept = [op for op in self.body.build.block.walk() if isinstance(op, OpaqueOp)]
        random = any(op.op_type.data in RANDOM_NODES for op in kept)
        return not random and all(o.kind != "opaque" for o in self.importer.outcomes)

    def _inside(self, name: str, value: OnnxValue | None) -> OnnxValue | None:
        if value is None:
            return None
        if isinstance(value, SequenceValue):
            items = [self._inside(name, item) for item in value.items]
            return SequenceValue(value.name, [v for v in items if v is not None], value.present)
        if value.has_data or value.computed is None:
            return value.apart()
        found = self.body.capture(value.computed)
        self._note(value.computed, found)
        return OnnxValue.of_ssa(name, found)

    def _note(self, value: SSAValue, inside: SSAValue) -> None:
        """Hand on what is known of a captured value: its padding, the range of its numbers."""
        outer, own = self._outer.sizes, self.importer.sizes
        rows = outer.counts.get(value)
        if rows is not None:
            known = (v for v in self.body.captured if same_count(v, rows.count))
            count = self.body.capture(next(known, rows.count))
            own.counts[inside] = PaddedDim(rows.dim, count)
            self._note(rows.count, count)
        if is_float(element_of(value)):
            return
        small = math.prod(shape_of(value)) <= EACH
        numbers = range_of(value, outer.ranges) if small else None
        if numbers is None and not by_inputs_alone(value, outer.ranges):
            numbers = ValueRange.of(-math.inf, math.inf)
        if numbers is not None:
            own.ranges[inside] = numbers
