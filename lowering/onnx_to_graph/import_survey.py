"""Import as far as possible: find the outcome of every node without failing at the first error."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import onnx
from xdsl.ir import Operation

from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, WeightOp
from ...dialects.opaque import reads
from ...dialects.types import Array
from . import functions, opaque, sequences
from .default_inputs import deciding_inputs
from .importer import Importer
from .loading import OnnxModel, domain_of, in_order
from .node import OnnxNode
from .shape_binding import (
    DeclaredInput,
    bind,
    declared_inputs,
    flags,
    named_dims,
    sequence_inputs,
    without_lengths,
)
from .subgraphs import CallContext, Env, NodeOutcome
from .table import TABLE
from .tensor_data import element_of_number, is_supported, tensor_shape
from .values import NotConstant, OnnxValue


class Unknown(OnnxValue):
    """A value of unknown type, because its node could not be converted."""

    def __init__(self, name: str):
        super().__init__(name, (), None)


class Survey(Importer):
    """An import that notes failures in `outcomes` and `problems` and continues."""

    def __init__(
        self,
        model: OnnxModel,
        fixed: Collection[str] = (),
        assumed: Mapping[str, Array] | None = None,
        bounded: bool = False,
    ):
        super().__init__(model, fixed, assumed, bounded)
        self.deciding: set[str] = set()
        """Inputs on whose values it depends which ops there are."""
        self.problems: list[str] = []
        self.made: dict[int, list[Operation]] = {}
        """The ops of each outcome, by its number."""
        self.inputs: list[DeclaredInput] = []
        self.flags: list[str] = []
        self._expanding = 0

    def survey(self, shapes: Mapping[str, Sequence[int]]) -> None:
        """Visit every node; unbound dims count as 1.

        Raises:
            UserError: the file is not a valid graph (a cycle, an undefined value, two definitions).
        """
        graph = self.model.proto.graph
        env: Env = {}
        self.inputs, unreadable = _readable(graph, shapes)
        self.problems += unreadable.values()
        self.flags = flags(self.inputs, _given_symbols(self.inputs, shapes), list(shapes))
        lists = [name for name in sequence_inputs(graph) if name not in unreadable]
        given = {**dict(map(_parsed, self.flags)), **shapes}
        bound = bind(self.inputs, without_lengths(graph, given))
        for entry in self.inputs:
            element = element_of_number(entry.number, f"input '{entry.name}'")
            ssa = self.build.input(entry.name, bound[entry.name], element)
            env[entry.name] = OnnxValue.of_ssa(entry.name, ssa)
            self.unbound(ssa)
            if entry.name in self.values:
                env[entry.name] = OnnxValue.of_array(entry.name, self.values[entry.name])
        sequences.gather(env, lists)
        env |= {name: Unknown(name) for name in unreadable}
        self.defaults(env)
        self.initialisers(graph, env)
        self.run(in_order(graph.node, env), env, CallContext(self.model.opsets))

    def _initialiser(self, proto: onnx.TensorProto, where: str) -> OnnxValue:
        try:
            return super()._initialiser(proto, where)
        except UserError as error:
            self.problems.append(str(error))
            if not is_supported(proto.data_type):
                return Unknown(proto.name)
            element, message = element_of_number(proto.data_type, where), str(error)

            def missing() -> Array:
                _raise(message)

            shape = tensor_shape(proto, where)
            return OnnxValue.of_ssa(
                proto.name, self.build.weight(self.fresh(proto.name), missing, shape, element)
            )

    def node(self, proto: onnx.NodeProto, env: Env, scope: CallContext) -> None:
        """Convert one node, or note the failure."""
        if self._expanding:
            super().node(proto, env, scope)
            return
        if any(isinstance(env.get(name), Unknown) for name in reads(proto)):
            self._assumed(proto, env, scope)
        else:
            mark, first = self.build.block.last_op, len(self.outcomes)
            try:
                super().node(proto, env, scope)
                self._attribute(mark, first)
                return
            except UserError as error:
                if isinstance(error, NotConstant):
                    self.deciding |= deciding_inputs(self.model, error.value)
                domain = domain_of(proto.domain)
                self.outcomes.append(
                    NodeOutcome(proto.op_type, domain, proto.name, "unsupported", (), str(error))
                )
        env.update({name: Unknown(name) for name in proto.output if name})

    def _attribute(self, mark: Operation | None, first: int) -> None:
        """Note which ops the last outcome made: those since `mark` that no node inside it did."""
        if len(self.outcomes) == first:
            return
        inside = {op for k, ops in self.made.items() if k >= first for op in ops}
        found: list[Operation] = []
        op = self.build.block.last_op
        while op is not mark and op is not None:
            if op not in inside and not isinstance(op, WeightOp | ConstantOp):
                found.append(op)
            op = op.prev_op
        self.made.setdefault(len(self.outcomes) - 1, []).extend(found)

    def _assumed(self, proto: onnx.NodeProto, env: Env, scope: CallContext) -> None:
        """Judge a node by its op alone: the types of its operands are unknown."""
        domain = domain_of(proto.domain)
        node = OnnxNode(proto, scope.opsets.get(domain, 1), [], self.build, self.fresh)
        reason = "judged by its op alone: its operands are unknown"
        try:
            functions.require_schema(node, domain)
        except UserError as error:
            kind, reason = "unsupported", str(error)
            if functions.key(proto) in self.functions:
                kind, reason = "composed", "a function of the model"
        else:
            schema: Any = onnx.defs.get_schema(proto.op_type, node.version, domain)
            if domain == "" and proto.op_type in TABLE:
                kind = "native"
            elif schema.all_function_opset_versions:
                kind = "composed"
            else:
                kind = "opaque" if opaque.can_run(node, domain, scope.opsets) else "unsupported"
        self.outcomes.append(NodeOutcome(proto.op_type, domain, proto.name, kind, (), reason))

    def _expand(
        self, node: OnnxNode, domain: str, scope: CallContext
    ) -> Sequence[OnnxValue | None] | None:
        self._expanding += 1
        try:
            return super()._expand(node, domain, scope)
        finally:
            self._expanding -= 1


def _raise(message: str) -> NoReturn:
    raise UserError(message)


def _readable(
    graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]
) -> tuple[list[DeclaredInput], dict[str, str]]:
    """Inputs whose types isoform has; the others with what is wrong with them."""
    try:
        return declared_inputs(graph, shapes), {}
    except UserError:
        good, bad = onnx.GraphProto(), dict[str, str]()
        good.initializer.extend(onnx.TensorProto(name=t.name) for t in graph.initializer)
        for info in graph.input:
            alone = onnx.GraphProto(input=[info])
            try:
                declared_inputs(alone, shapes)
                good.input.append(info)
            except UserError as error:
                bad[info.name] = str(error)
        return declared_inputs(good, shapes), bad


def _given_symbols(
    inputs: Sequence[DeclaredInput], shapes: Mapping[str, Sequence[int]]
) -> dict[str, int]:
    named = {dim: shapes[dim][0] for dim in named_dims(inputs) if shapes.get(dim)}
    return named | {
        dim: n
        for entry in inputs
        for dim, n in zip(entry.dims or (), shapes.get(entry.name, ()), strict=False)
        if isinstance(dim, str)
    }


def _parsed(flag: str) -> tuple[str, list[int]]:
    name, _, dims = flag.removeprefix("--shape ").rpartition("=")
    return name, [int(n) for n in dims.split(",") if n]


__all__ = ["Survey"]
