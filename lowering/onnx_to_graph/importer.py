"""Walk an ONNX model and build the graph program: the one loop over nodes.

A node is the first of these that fits: control flow decided now, a call of the model's own
function, a shape computation (evaluated now, no op left), a converter of TABLE, the expansion of
its ONNX function body, `graph.opaque`. A node that is none of these is a UserError.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import onnx
from onnx import FunctionProto
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.errors import ElementError, UserError
from ...dialects.graph import ConstantOp, OpaqueOp, WeightOp
from ...dialects.program import Program, name_value
from ...dialects.shape_guards import write_guards_and_sizes
from ...dialects.types import Array, element_of, is_float, is_unsigned
from . import (
    bounded,
    control_flow,
    folding,
    following,
    functions,
    half_floats,
    opaque,
    padded,
    sequences,
    small_integers,
)
from .declared_outputs import check_declared
from .default_inputs import deciding, deciding_inputs, overridable, tell
from .fused import fused_body
from .loading import OnnxModel, domain_of, in_order, load_model, needed
from .node import OnnxNode, describe
from .provenance import read_origin
from .shape_binding import (
    DeclaredInput,
    bind,
    declared_inputs,
    sequence_inputs,
    without_lengths,
)
from .subgraphs import CallContext, Env, NodeOutcome
from .table import ANY_TYPE, TABLE
from .tensor_data import element_of_number, reader, tensor_shape
from .value_ranges import ValueRange
from .values import NeedsNumbers, NotConstant, NotNative, OnnxValue

if TYPE_CHECKING:
    from ...dialects.extents import ShapeEnv

# A limit for the expansion of small files by unrolled loops.
MAX_NODES = 1_000_000


def import_onnx(
    model: str | os.PathLike[str] | onnx.ModelProto,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Program:
    """Read an ONNX model as a graph program.

    Args:
        model: a file, or a parsed model without external data.
        shapes: sizes of inputs whose dims are dynamic, by input name.

    Raises:
        UserError: the file is broken, a dim is unbound (the hint is the flag to type), an op is
            unknown or its shapes depend on data; `where` is the ONNX node.
    """
    loaded = load_model(model)
    program, fixed = imported(loaded, shapes or {})
    tell(loaded, program.defaults, fixed)
    return program


def imported(
    model: OnnxModel,
    shapes: Mapping[str, Sequence[int]],
    values: Mapping[str, Array] | None = None,
    examples: Mapping[str, Sequence[int]] | None = None,
) -> tuple[Program, Collection[str]]:
    """The program, and the initialisers that became constants although they are inputs.

    Args:
        values: arrays of inputs that become constants, by name: shapes depend on them.
        examples: shapes of inputs. With them, dims that `shapes` does not fix are symbols of the
            program, and its guards hold for these shapes.

    Raises:
        UserError: as `import_onnx`.
    """
    optional = overridable(model)
    fixed: set[str] = set()
    first: UserError | None = None  # why sizes are bounded, and not those of the inputs' numbers
    while True:
        try:
            importer = Importer(model, fixed, values, bounded=first is not None)
            if examples is None:
                return importer.program(shapes), fixed
            return importer.symbolic_program(shapes, examples), fixed
        except UserError as error:
            left = optional.keys() - fixed
            value = error.value if isinstance(error, NotConstant) else ""
            found = deciding(model.proto.graph, value, left)
            by_inputs = bool(value) and bool(deciding_inputs(model, value))
            if first is None and value and not found and not by_inputs:
                first = error
                continue
            if not left or (not found and by_inputs):
                raise first or error from None
            # Values that shapes depend on must be constants; if the error names none, all are
            # tried.
            fixed |= found or left


class Importer:
    """One import: the builder, the model's functions, and the outcome of each node.

    Args:
        fixed: initialisers that become constants although they are inputs.
        values: arrays of other inputs that become constants, by name.
        bounded: whether sizes that inputs of integers decide are bounded, as those of data.
    """

    def __init__(
        self,
        model: OnnxModel,
        fixed: Collection[str] = (),
        values: Mapping[str, Array] | None = None,
        bounded: bool = False,
    ):
        self.model = model
        self.bounded = bounded
        self.fixed = fixed
        self.is_body = False  # then its arguments are no inputs of the program
        self.values = values or {}
        self.optional = {n: p for n, p in overridable(model).items() if n not in fixed}
        self.build = GraphBuilder()
        self.functions = functions.local_functions(model.proto)
        self.outcomes: list[NodeOutcome] = []
        self.sizes = padded.Sizes({}, {})
        # What is known of symbolic dims; None where the shapes are numbers.
        self.shape_env: ShapeEnv | None = None
        self._weight_names: dict[str, int] = {}
        self._origin = read_origin(model.proto)
        # Shared with separate imports:
        self.visited = [0]
        self.undecided: set[tuple[bytes, tuple[bool, ...]]] = set()
        self.unfit: set[tuple[object, ...]] = set()

    def apart(self) -> Importer:
        """An import into a separate program, which finds the types of a loop."""
        found = Importer(self.model, self.fixed, self.values)
        found.is_body = self.is_body
        found.visited, found.undecided, found.unfit = self.visited, self.undecided, self.unfit
        found.shape_env, found.sizes.symbolic = self.shape_env, self.sizes.symbolic
        return found

    def inside(self) -> Importer:
        """An import of a body, whose weights are this program's."""
        found = self.apart()
        found.build, found._weight_names = self.build.inside(), self._weight_names
        found.is_body = True
        return found

    def is_padded(self, value: SSAValue | None) -> bool:
        """Whether data decide how much of a value is more than padding."""
        return value in self.sizes.counts

    # --- the whole program ---

    def program(self, shapes: Mapping[str, Sequence[int]]) -> Program:
        """Build everything. Raises UserError."""
        inputs = declared_inputs(self.model.proto.graph, shapes)
        return self._program(inputs, bind(inputs, without_lengths(self.model.proto.graph, shapes)))

    def symbolic_program(
        self, shapes: Mapping[str, Sequence[int]], examples: Mapping[str, Sequence[int]]
    ) -> Program:
        """Build everything, with symbols for what `shapes` does not fix. Raises UserError."""
        from ...dialects.extents import ShapeEnv  # sympy takes its time
        from .symbolic_inputs import symbolic_shapes

        graph = self.model.proto.graph
        if sequence_inputs(graph):
            raise UserError("a model of sequences is imported for their lengths")
        inputs = declared_inputs(graph)
        self.shape_env = ShapeEnv()
        self.sizes.symbolic = True
        bound = symbolic_shapes(inputs, shapes, examples, self.shape_env)
        with self.shape_env.active():
            program = self._program(inputs, bound)
        write_guards_and_sizes(program.main, self.shape_env)
        return program

    def _program(
        self, inputs: Sequence[DeclaredInput], bound: Mapping[str, Sequence[Any]]
    ) -> Program:
        graph = self.model.proto.graph
        env: Env = {}
        for entry in inputs:
            element = element_of_number(entry.number, f"input '{entry.name}'")
            if entry.name in self.values:
                env[entry.name] = OnnxValue.of_array(entry.name, self.values[entry.name])
                continue
            ssa = self.build.input(entry.name, bound[entry.name], element)
            env[entry.name] = OnnxValue.of_ssa(entry.name, ssa)
            self.unbound(ssa)
        sequences.gather(env, sequence_inputs(graph))
        self.defaults(env)
        self.initialisers(graph, env)
        nodes = in_order(graph.node, env)
        self.run(needed(nodes, [o.name for o in graph.output]), env, CallContext(self.model.opsets))
        self._drop_unused(self._outputs(graph, env))
        return self._origin.attach(self.build.build(self.model.source))

    def unbound(self, ssa: SSAValue) -> None:
        """Note that an input of integers is any number, where sizes that it decides are bounded."""
        if self.bounded and not is_float(element_of(ssa)):
            self.sizes.ranges[ssa] = ValueRange.of(-math.inf, math.inf)

    def defaults(self, env: Env) -> None:
        """Make inputs of the initialisers that a caller may replace, after the others."""
        for name, proto in self.optional.items():
            where = f"initialiser '{name}'"
            if name in env:
                raise UserError("two values have this name", where=where)
            load = reader(proto, self.model.folder, where)
            element = element_of_number(proto.data_type, where)
            ssa = self.build.input(name, tensor_shape(proto, where), element, load)
            self.fresh(name)
            env[name] = OnnxValue.of_ssa(name, ssa)

    def initialisers(self, graph: onnx.GraphProto, env: Env) -> None:
        """Put a graph's initialisers into `env`; data are read when first needed."""
        inputs = set(self.optional if graph is self.model.proto.graph else ())
        for proto in graph.initializer:
            if proto.name in inputs:
                inputs.remove(proto.name)
                continue
            where = f"initialiser '{proto.name}'"
            if not proto.name:
                raise UserError("an initialiser has no name", where="the graph's initialisers")
            if proto.name in env:
                raise UserError("two values have this name", where=where)
            env[proto.name] = self._initialiser(proto, where)

    def _initialiser(self, proto: onnx.TensorProto, where: str) -> OnnxValue:
        load = reader(proto, self.model.folder, where)
        try:
            element = element_of_number(proto.data_type, where)
        except UserError:  # only known data may have such a type; using it in the IR is the error
            return OnnxValue(proto.name, tensor_shape(proto, where), None, load=load)
        traced = proto.name in self._origin.expressions
        shape = tensor_shape(proto, where)
        return OnnxValue(proto.name, shape, element, load=load, weight=True, traced=traced)

    def _outputs(self, graph: onnx.GraphProto, env: Env) -> list[SSAValue]:
        values, names = list[SSAValue](), list[str]()
        for info in graph.output:
            where = f"output '{info.name}'"
            value = env.get(info.name)
            if value is None:
                raise UserError("nothing defines it", where=where)
            for name, part in sequences.entries(info, value):
                ssa = part.ssa(self.build, self.fresh, where)
                rows = self.sizes.counts.get(ssa)
                check_declared(info, part, where, None if rows is None else rows.dim)
                self.build.output(name, ssa)
                values.append(ssa)
                names.append(name)
        for name, value in zip(names, list(values), strict=True):
            rows = self.sizes.counts.get(value)
            if rows is not None:
                self.build.output(f"{name}.count", rows.count, cuts=(name, rows.dim))
                values.append(rows.count)
        return values

    def _drop_unused(self, outputs: Sequence[SSAValue]) -> None:
        """Remove unread weights and literals (left by attempts that were undone)."""
        kept = set(outputs)
        for op in list(self.build.block.ops):
            if not isinstance(op, WeightOp | ConstantOp) or op.result in kept:
                continue
            if op.result.first_use is None:
                op.detach()
                op.erase()

    def fresh(self, name: str) -> str:
        """An unused weight name: names of functions and branches may repeat."""
        found = name
        while found in self._weight_names:
            self._weight_names[name] += 1
            found = f"{name}.{self._weight_names[name]}"
        self._weight_names[found] = 0
        return found

    # --- nodes ---

    def run(self, nodes: Iterable[onnx.NodeProto], env: Env, scope: CallContext) -> None:
        """Convert nodes in order, reading and extending `env`."""
        for proto in nodes:
            self.visited[0] += 1
            if self.visited[0] > MAX_NODES:
                raise UserError(
                    f"the model expands to more than {MAX_NODES} nodes", where=describe(proto)
                )
            self.node(proto, env, scope)

    def node(self, proto: onnx.NodeProto, env: Env, scope: CallContext) -> None:
        """Convert one node. Raises UserError, whose `where` is the node."""
        name = scope.prefix + (proto.name or next((o for o in proto.output if o), ""))
        domain = domain_of(proto.domain)
        if domain == "" and domain not in scope.opsets:
            raise UserError(
                "the model names no opset of the ONNX domain",
                where=describe(proto),
                hint="add one to its opset_import",
            )
        node = OnnxNode(
            proto, scope.opsets.get(domain, 1), self._operands(proto, env), self.build, self.fresh
        )
        try:
            with self._at(name):
                if functions.key(proto) in self.functions:
                    results = self._results(node, domain, env, scope)
                else:
                    plain = partial(self._results, domain=domain, env=env, scope=scope)
                    results = following.results(self, node, domain, scope, plain)
        except (NotConstant, NeedsNumbers):
            raise
        except UserError as error:
            raise _located(error, proto) from error
        self._bind(proto, results, env)

    @contextmanager
    def _at(self, name: str) -> Generator[None]:
        """Ops and guards that come about in the block are this node's."""
        guards = nullcontext() if self.shape_env is None else self.shape_env.at(name)
        with self.build.at(name), guards:
            yield

    def _operands(self, proto: onnx.NodeProto, env: Env) -> list[OnnxValue | None]:
        found: list[OnnxValue | None] = []
        for name in proto.input:
            if name and name not in env:
                raise UserError(f"it reads '{name}', which nothing defines", where=describe(proto))
            found.append(env[name] if name else None)
        return found

    def _bind(self, proto: onnx.NodeProto, results: Sequence[OnnxValue | None], env: Env) -> None:
        for name, value in zip(proto.output, results, strict=False):
            if name and name in env:
                raise UserError(f"value '{name}' is defined twice", where=describe(proto))
            if name and value is not None:
                env[name] = value
        for name in proto.output[len(results) :]:
            if name:
                raise UserError(f"it has no output '{name}'", where=describe(proto))

    def _results(
        self, node: OnnxNode, domain: str, env: Env, scope: CallContext
    ) -> Sequence[OnnxValue | None]:
        """The node's results, by the first conversion that fits."""
        called = self.functions.get(functions.key(node.proto))
        if called is not None:
            return functions.call(self, called, node, scope)
        if fused_body(node, domain) is not None:
            return self.call_body(node, lambda n: fused_body(n, domain), scope)
        functions.require_schema(node, domain)
        if domain == "" and node.op_type in control_flow.CONTROL:
            return control_flow.CONTROL[node.op_type](self, node, env, scope)
        if domain == "" and (listed := sequences.resolve(node)) is not None:
            self.record(node, "folded")
            return listed
        folded = folding.fold(node, domain)
        if folded is not None:
            self.record(node, "folded")
            return folded
        if domain == "" and (kept := self._bounded(node, scope)):
            return self._kept(node, kept, opaque.kind(node, kept))
        if domain == "" and (found := self._convert(node)) is not None:
            return found
        if domain == "" and (found := self._by_nests(node, scope)) is not None:
            return found
        if (found := self._expand(node, domain, scope)) is not None:
            return found
        values = opaque.keep(node, domain, scope.opsets)
        return self._kept(node, values, opaque.kind(node, values))

    def _bounded(self, node: OnnxNode, scope: CallContext) -> Sequence[SSAValue] | None:
        return bounded.convert(node, scope.opsets, self.sizes.counts, self.is_body)

    def _kept(self, node: OnnxNode, values: Sequence[SSAValue], kind: str) -> list[OnnxValue]:
        """Note the outcome of a kept node."""
        self.record(node, kind, (OpaqueOp.name,), opaque.reason(node, kind))
        return self.named(node, values)

    def _by_nests(self, node: OnnxNode, scope: CallContext) -> list[OnnxValue] | None:
        """By loop nests; None, with nothing built, if there are none for this use."""
        if not opaque.has_nests(node):
            return None
        mark = self.build.block.last_op
        try:
            values = opaque.keep(node, "", scope.opsets)
        except UserError:  # the op's body may do, and says more where it does not
            self._undo(mark)
            return None
        if (kind := opaque.kind(node, values)) == "opaque":
            self._undo(mark)
            return None
        return self._kept(node, values, kind)

    def _convert(self, node: OnnxNode) -> list[OnnxValue] | None:
        """By the node's converter; None, with nothing built, if it has none that fits."""
        converter = TABLE.get(node.op_type)
        small = small_integers.applies(node)
        if converter is None or not (small or _types_fit(node)):
            return None
        mark = self.build.block.last_op
        try:
            if small:
                wide = converter(small_integers.widened(node))
                results = [small_integers.narrowed(node, value) for value in wide]
            else:
                results = converter(node)
            if half_floats.has_half(node) and half_floats.takes_steps(node, self._since(mark)):
                self._undo(mark)
                wide = converter(half_floats.widened(node))
                results = [half_floats.narrowed(node, k, value) for k, value in enumerate(wide)]
        except NotNative:
            self._undo(mark)
            return None
        except ElementError:  # ONNX may allow types that graph ops do not
            if not functions.allows(node):
                raise
            self._undo(mark)
            return None
        if any(node.wants(k) for k in range(len(results), len(node.proto.output))):
            self._undo(mark)
            return None
        made = self._since(mark)
        working = [
            op for op in made if op not in ("graph.reshape", "graph.broadcast", "graph.constant")
        ]
        self.record(node, "native" if len(working) <= 1 else "composed", tuple(made))
        return self.named(node, results)

    def _expand(
        self, node: OnnxNode, domain: str, scope: CallContext
    ) -> Sequence[OnnxValue | None] | None:
        """By the op's function body; None, with nothing built, if it has none that works."""
        if functions.schema_body(node, domain) is None or functions.key(node.proto) in scope.calls:
            return None
        mark, recorded = self.mark()
        try:
            results = self.call_body(node, lambda n: functions.schema_body(n, domain), scope)
        except (NotConstant, NeedsNumbers):
            raise
        except UserError:  # the body does not fit this use: the op may still run as opaque
            self.undo(mark, recorded)
            return None
        opaque_inside = any(o.kind == "opaque" for o in self.outcomes[recorded:])
        if opaque_inside and opaque.can_run(node, domain, scope.opsets):
            # One wholly opaque node says more than its body with opaque parts.
            self.undo(mark, recorded)
            return None
        del self.outcomes[recorded:]
        self.record(node, "composed", tuple(self._since(mark)))
        return results

    def mark(self) -> tuple[Operation | None, int]:
        """The current end of the program and the outcomes, for `undo`."""
        return self.build.block.last_op, len(self.outcomes)

    def undo(self, mark: Operation | None, recorded: int) -> None:
        """Remove what was added and noted since `mark`."""
        self._undo(mark)
        del self.outcomes[recorded:]

    def holds_since(self, mark: Operation | None, *kinds: type[Operation]) -> bool:
        """Whether an op of these kinds was added after `mark`."""
        op = self.build.block.last_op
        while op is not mark and op is not None:
            if isinstance(op, kinds):
                return True
            op = op.prev_op
        return False

    def call_body(
        self, node: OnnxNode, make: Callable[[OnnxNode], FunctionProto | None], scope: CallContext
    ) -> Sequence[OnnxValue | None]:
        """The body that defines an op, on the operands; in float32 for half floats."""
        wide = half_floats.widened(node) if half_floats.has_half(node) else node
        body = make(wide)
        assert body is not None
        results = functions.call(self, body, wide, scope)
        if wide is node:
            return results
        return [value and self._narrowed(node, k, value) for k, value in enumerate(results)]

    def _narrowed(self, node: OnnxNode, k: int, value: OnnxValue) -> OnnxValue:
        """Result `k` of a widened node, in the node's own type."""
        if value.element != f32:
            return value
        ssa = half_floats.narrowed(node, k, value.ssa(self.build, self.fresh, node.where))
        return OnnxValue.of_ssa(value.name, ssa)

    def record(
        self, node: OnnxNode, kind: str, ops: tuple[str, ...] = (), reason: str = ""
    ) -> None:
        """Note the outcome of a node, for `isoform check`."""
        self.outcomes.append(
            NodeOutcome(
                node.op_type, domain_of(node.proto.domain), node.proto.name, kind, ops, reason
            )
        )

    def named(self, node: OnnxNode, results: Sequence[SSAValue]) -> list[OnnxValue]:
        values: list[OnnxValue] = []
        for name, ssa in zip(node.proto.output, results, strict=False):
            if name and ssa.name_hint is None:
                name_value(ssa, name)
            values.append(OnnxValue.of_ssa(name, ssa))
        return values

    def _since(self, mark: Operation | None) -> list[str]:
        """Names of the ops added after `mark`, without weights."""
        names: list[str] = []
        op = self.build.block.last_op
        while op is not mark and op is not None:
            if not isinstance(op, WeightOp):
                names.append(op.name)
            op = op.prev_op
        return names[::-1]

    def _undo(self, mark: Operation | None) -> None:
        """Remove the ops added after `mark`; weights and literals stay, others may read them."""
        op = self.build.block.last_op
        while op is not mark and op is not None:
            before = op.prev_op
            if not isinstance(op, WeightOp | ConstantOp):
                op.detach()
                op.drop_all_references()
                op.erase(safe_erase=False)  # an op that failed to build may still count as a user
            op = before


def _types_fit(node: OnnxNode) -> bool:
    """Whether no operand is unsigned, or the op only moves data."""
    if node.op_type in ANY_TYPE:
        return True
    return not any(
        v is not None and (v.element is None or is_unsigned(v.element)) for v in node.inputs
    )


def _located(error: UserError, proto: onnx.NodeProto) -> UserError:
    """The same error, located at the ONNX node."""
    if error.where is not None and error.where.startswith(("node '", "initialiser '", "input '")):
        return error
    message = error.message if error.where is None else f"{error.where}: {error.message}"
    return UserError(
        message, where=describe(proto), expected=error.expected, found=error.found, hint=error.hint
    )


__all__ = ["CallContext", "Env", "Importer", "NodeOutcome", "import_onnx"]
