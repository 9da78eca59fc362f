"""Translate a program of any level, or of several at once, to canonical scopes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, DictionaryAttr, ModuleOp, StringAttr, i1, i64
from xdsl.dialects.func import Func, ReturnOp
from xdsl.dialects.math import Math
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser

from ...dialects.algebra import ALGEBRA, ExternOp, OnesOp, ScopeOp
from ...dialects.canonical_body import from_op, literal_value, only_moves
from ...dialects.canonical_body import read as read_through
from ...dialects.canonical_scope import (
    Leaf,
    Read,
    Scope,
    Source,
    apply,
    constant,
    factor,
    leaf,
    numbers,
    scope,
    single_factor,
)
from ...dialects.control import ControlOp, IfOp, LoopOp, YieldOp, weights_inside
from ...dialects.discrete import discrete_constants
from ...dialects.errors import UserError
from ...dialects.graph import GRAPH, ConstantOp, GraphOp, OpaqueOp, WeightOp
from ...dialects.graph.base import discard
from ...dialects.graph.data import GatherOp, IotaOp
from ...dialects.index import Index, iterators
from ...dialects.kernel import KERNEL, CallOp, KernelOp, ViewOp
from ...dialects.op_reference import rebuild_extern
from ...dialects.opaque import RANDOM_NODES
from ...dialects.program import Program, main_of, return_of, where
from ...dialects.scalars import Call, postorder
from ...dialects.types import (
    Array,
    element_of,
    is_float,
    is_static,
    shape_of,
    tensor_type,
    to_numpy,
)
from .cancellation import without_signs
from .static_gather import DataOf, static_gather

Merge = Callable[[Source, Operation], Source]

# Literals up to this size are taken as their numbers.
MAX_KNOWN = 4096
_SUMS = frozenset({"add", "sub", "neg"})


def _no_expression(op: ConstantOp) -> Source | None:
    return None


def _numeral(array: Array, element: Attribute) -> Source:
    return numeral(array, element)


def _keep(source: Source, op: Operation) -> Source:
    return source


def _no_data(op: WeightOp) -> Array | None:
    return None


def _no_call(source: Leaf, op: Operation, number: int, data: DataOf) -> None:
    pass


def _no_name(source: Source) -> None:
    pass


@dataclass
class Translator:
    """Translate ops to sources, in order.

    Attributes:
        weight: gives the source of a weight.
        literal_expression: gives the source of a literal that keeps its expression.
        discrete: gives the source of a discrete constant, which is as computed.
        merge: called with each scope and its op; returns the source that replaces it.
        side: tells the programs apart where ops must not match (random nodes).
        data: gives the numbers of a weight, if available.
        called: called with each result of an op that no scope expresses, its number, and `data`.
        made: called with the source of each value, in order.
    """

    weight: Callable[[WeightOp], Source]
    merge: Merge = _keep
    side: str = ""
    data: DataOf = _no_data
    called: Callable[[Leaf, Operation, int, DataOf], None] = _no_call
    literal_expression: Callable[[ConstantOp], Source | None] = _no_expression
    values: dict[SSAValue, Source] = field(default_factory=dict[SSAValue, Source])
    discrete: Callable[[Array, Attribute], Source] = _numeral
    made: Callable[[Source], None] = _no_name
    random: int = 0

    def program(self, program: Program, input_names: Sequence[str]) -> list[Source]:
        """The sources of the outputs.

        Raises:
            UserError: a shape is dynamic, or an op belongs to no known dialect.
        """
        main = main_of(program.module)
        for name, arg in zip(input_names, main.body.block.args, strict=True):
            if not is_static(tensor_type(arg)):
                raise UserError("equivalence needs static shapes", where=name, found=arg.type)
            self.values[arg] = leaf(f"input {name}", shape_of(arg), element_of(arg), label=name)
            self.made(self.values[arg])
        self.ops(main.body.block.ops, discrete_constants(main.body.block.ops, program.weights))
        return [self.values[v] for v in return_of(program.module).arguments]

    def ops(self, ops: Iterable[Operation], known: Mapping[SSAValue, Array]) -> None:
        """Add the results of ops in order; discrete constants are known numbers."""
        for op in ops:
            if op.results and op.results[0] in known:
                for result in op.results:
                    element = element_of(result)
                    array = known[result].astype(to_numpy(element))
                    self.values[result] = self.discrete(array, element)
            elif not isinstance(op, ReturnOp | YieldOp):
                self.op(op, op)

    def op(self, op: Operation, owner: Operation) -> None:
        """Add the results of one op; `owner` is the program's op that it belongs to."""
        self._add(op, owner)
        for result in op.results:
            self.made(self.values[result])

    def _add(self, op: Operation, owner: Operation) -> None:
        match op:
            case WeightOp():
                self.values[op.result] = self.weight(op)
            case ConstantOp():
                kept = self.literal_expression(op)
                self.values[op.result] = literal(op) if kept is None else kept
            case OnesOp():
                shape = shape_of(op.result)
                self.values[op.result] = scope(shape, element_of(op.result), constant(1))
            case ScopeOp():
                made = self._scope(op)
                self.made(made)
                same = copied(made)
                self.values[op.result] = self.merge(made, owner) if same is None else same
            case KernelOp():
                self._region(op)
            case ViewOp():
                self.values[op.result] = self._view(op)
            case GraphOp() if type(op).has_scopes():
                self._graph_op(op)
            case GatherOp() | ExternOp() | CallOp() if (found := self._gathered(op)) is not None:
                same = copied(found)
                self.values[op.results[0]] = self.merge(found, owner) if same is None else same
            case IotaOp():
                self.values[op.result] = numeral(op.reference()[0], i64)
            case ExternOp() | CallOp() if op.callee.data == IotaOp.name:
                named = rebuild_extern(op)
                assert isinstance(named, IotaOp)
                self.values[op.results[0]] = numeral(named.reference()[0], i64)
            case ExternOp() | CallOp():
                self._extern(op, op.callee.data, op.config)
            case GraphOp() | OpaqueOp():
                self._extern(op, op.name, DictionaryAttr(dict(op.properties)))
            case LoopOp() | IfOp():
                self._control(op)
            case _:
                raise UserError("this op has no meaning for equivalence", where=where(op))

    def _gathered(self, op: GatherOp | ExternOp | CallOp) -> Scope | None:
        """A gather at known positions, also if a later level calls it by name."""
        if isinstance(op, GatherOp):
            return static_gather(op, self.values[op.x], self.data)
        if op.callee.data != GatherOp.name:
            return None
        named = rebuild_extern(op)
        assert isinstance(named, GatherOp)
        found = static_gather(named, self.values[named.x], self.data)
        named.drop_all_references()
        return found

    def _scope(self, op: ScopeOp) -> Scope:
        """One op's scope; if terms cancel inside it, its sums are kept as separate scopes.

        cancellation.py checks scopes for proofs that need cancelling: the scopes of an op
        that computes (x + c) - c must not have lost c by then.
        """
        made = from_op(op, self.values.__getitem__, only_moves)
        if op.summation or not is_float(made.element):
            return made
        if not any(isinstance(n, Call) and n.function in _SUMS for n in postorder(op.expr())):
            return made
        unsigned = from_op(op, self.values.__getitem__, only_moves, "unsigned")
        if without_signs(made.expr, made.shape).token == unsigned.expr.token:
            return made
        return from_op(op, self.values.__getitem__, only_moves, "apart")

    def _graph_op(self, op: GraphOp) -> None:
        steps, results = op.scopes()
        for step in steps:
            self.op(step, op)
        for result, made in zip(op.results, results, strict=True):
            self.values[result] = self.values[made]
        for step in steps:
            for result in step.results:
                del self.values[result]
        discard(steps)

    def _region(self, op: KernelOp) -> None:
        block = op.body.block
        for arg, value in zip(block.args, op.inputs, strict=True):
            self.values[arg] = self.values[value]
        last = block.last_op
        assert last is not None
        for step in block.ops:
            if step is not last:
                self.op(step, op)
        self.values[op.result] = self.values[last.operands[0]]

    def _view(self, op: ViewOp) -> Source:
        """A reshape or a part: elements of the source."""
        new = shape_of(op.result)
        value = read_through(self.values[op.source], op.index(), tuple(new), through=only_moves)
        made = scope(new, element_of(op.result), value)
        same = copied(made)
        return made if same is None else same

    def _extern(self, op: Operation, callee: str, config: DictionaryAttr) -> None:
        """An op that no scope expresses: its results are functions of its operands."""
        identity = f"{callee} {_config(callee, config)}"
        self._named(op, identity, _is_random(config))

    def _control(self, op: ControlOp) -> None:
        """A loop or a branch: the same as another one whose bodies are the same expressions."""
        config = {name: str(op.properties[name]) for name in _MEANING if name in op.properties}
        parts = [f"{op.name} {len(op.operands)} {config}"]
        for region in op.bodies:
            inner = Translator(
                weight=self.weight,
                data=self.data,
                literal_expression=self.literal_expression,
                discrete=self.discrete,
            )
            block = region.block
            for k, argument in enumerate(block.args):
                shape, element = shape_of(argument), element_of(argument)
                inner.values[argument] = leaf(f"argument {k}", shape, element)
            inner.ops(block.ops, discrete_constants(block.ops, weights_inside(op, self._whole)))
            assert block.last_op is not None
            parts += [inner.values[v].token for v in block.last_op.operands]
        called = [DictionaryAttr(dict(o.properties)) for o in op.walk() if o is not op]
        self._named(op, " ".join(parts), any(map(_is_random, called)))

    def _whole(self, op: WeightOp) -> Array | None:
        """The data of a weight that may decide shapes or positions; of floats nothing is read."""
        return None if is_float(element_of(op.result)) else self.data(op)

    def _named(self, op: Operation, identity: str, random: bool) -> None:
        """An op whose results are functions of its operands, named by its identity."""
        operands = [self.values[v] for v in op.operands]
        if random:
            self.random += 1
            identity += f" random {self.side} {self.random}"
        for k, result in enumerate(op.results):
            made = f"call {identity} result {k}"
            shape, element = shape_of(result), element_of(result)
            found = leaf(made, shape, element, operands, label=where(op))
            self.called(found, op, k, self.data)
            self.values[result] = found


# What of a loop's properties its results depend on.
_MEANING = ("trips", "conditional", "backward", "operandSegmentSizes")


def copied(made: Scope) -> Source | None:
    """The source that a scope copies unchanged, if it does."""
    read = single_factor(made.expr)
    if not isinstance(read, Read) or read.outside != 0.0:
        return None
    source = read.source
    here = [Index.iterator(k) if n != 1 else Index(0) for k, n in enumerate(made.shape)]
    same = list(read.index) == here and (source.shape, source.element) == (made.shape, made.element)
    return source if same else None


def whole(source: Source) -> Scope:
    """A source as a scope: a leaf becomes the scope that reads it at every point."""
    if isinstance(source, Scope):
        return source
    here = tuple(iterators(len(source.shape)))
    return scope(source.shape, source.element, factor(Read(source, here), source.shape))


def _config(callee: str, config: DictionaryAttr) -> str:
    """Properties in a fixed order; without the names of an ONNX node and of its tensors.

    Optional operands are identified by position, and so are the outputs that are read:
    LSTM's second output is another tensor than its third, though each may be the only result.
    """
    parts = {name: str(value) for name, value in config.data.items()}
    node = config.data.get("node")
    if callee == OpaqueOp.name and isinstance(node, StringAttr):
        proto = _node(node)
        given = [[bool(name) for name in names] for names in (proto.input, proto.output)]
        attributes = sorted(proto.attribute, key=lambda a: a.name)
        for name in ("name", "doc_string", "input", "output", "attribute", "metadata_props"):
            proto.ClearField(name)
        for attribute in attributes:
            attribute.ClearField("doc_string")
        proto.attribute.extend(attributes)
        parts["node"] = f"{given} {proto.SerializeToString(deterministic=True).hex()}"
    return str(sorted(parts.items()))


def _node(text: StringAttr) -> Any:
    import onnx

    return onnx.NodeProto.FromString(bytes.fromhex(text.data))


def _is_random(config: DictionaryAttr) -> bool:
    """Whether an ONNX node, or one inside it, is random."""
    node = config.data.get("node")
    if not isinstance(node, StringAttr):
        return False
    stack = [_node(node)]
    while stack:
        proto = stack.pop()
        if proto.op_type in RANDOM_NODES:
            return True
        stack.extend(n for a in proto.attribute for g in (a.g, *a.graphs) for n in g.node)
    return False


def literal(op: ConstantOp) -> Source:
    """A literal: one number everywhere is a coefficient, anything else a tensor of its own.

    A large literal stands for any tensor, as weights do.
    """
    return numeral(op.array(), op.type.element_type)


def numeral(array: Array, element: Attribute) -> Source:
    """Known numbers as a source."""
    known = known_numbers(array, element)
    if known is not None:
        return known
    name = f"literal {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"
    return leaf(name, array.shape, element, label="literal")


def known_numbers(array: Array, element: Attribute) -> Source | None:
    """Data as a tensor of known numbers; None if large, or if only some are infinite."""
    if array.size and (array == array.flat[0]).all():
        number = array.flat[0]
        value = float(number) if is_float(element) else int(number)
        return scope(array.shape, element, literal_value(value))
    if array.size <= MAX_KNOWN and np.isfinite(array.astype(np.float64)).all():
        kind = float if is_float(element) else int
        return numbers([Fraction(kind(v)) for v in array.flat], array.shape, element)
    return _mask(array, element) if array.size <= MAX_KNOWN and is_float(element) else None


def _mask(array: Array, element: Attribute) -> Source | None:
    """Data with one infinite number at some positions: a choice between it and the others."""
    values = array.astype(np.float64)
    infinite = np.isinf(values)
    kinds = np.unique(values[infinite])
    if np.isnan(values).any() or len(kinds) != 1:
        return None
    here = tuple(iterators(array.ndim))
    positions = numbers([Fraction(int(v)) for v in infinite.flat], array.shape, i1)
    others = np.where(infinite, 0.0, values)
    rest = numbers([Fraction(float(v)) for v in others.flat], array.shape, element)
    parts = [factor(Read(source, here), array.shape) for source in (positions, rest)]
    then = parts[1] if others.any() else constant(0)
    choice = [parts[0], literal_value(float(kinds[0])), then]
    return scope(array.shape, element, apply("raw.select", choice, array.shape))


# --- expressions of folded constants ------------------------------------------------------------

_STATEMENT = re.compile(r"; (?=%[\w$.-]+(?:, %[\w$.-]+)* = |func\.return )")


def _context() -> Context:
    context = Context()
    for dialect in (Builtin, Func, Arith, Math, GRAPH, ALGEBRA, KERNEL):
        context.load_dialect(dialect)
    return context


def parse_expression(text: str, result: Attribute) -> ModuleOp:
    """A program without inputs that returns the value of an `isoform.expression`.

    Raises:
        UserError: the text is not an expression of that type.
    """
    from xdsl.utils.exceptions import ParseError, VerifyException

    steps = _STATEMENT.split(text)
    if not steps[-1].startswith("func.return "):
        last = re.match(r"(%[\w$.-]+) = ", steps[-1])
        if last is None:
            raise UserError("a folded constant's expression cannot be read", found=steps[-1][:80])
        steps.append(f"func.return {last[1]} : {result}")
    lines = "\n".join(steps)
    program = f"func.func @main() -> {result} {{\n{lines}\n}}\n"
    try:
        module = Parser(_context(), program).parse_module()
        module.verify()
    except (ParseError, VerifyException, UserError) as error:
        raise UserError(f"a folded constant's expression cannot be read ({error})") from error
    return module
