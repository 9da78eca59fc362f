"""What a converter of a StableHLO op is given, and the scope where that stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from xdsl.dialects.builtin import f32, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.arithmetic import Arithmetic
from ...dialects.builder import GraphBuilder
from ...dialects.deadline import check_time
from ...dialects.discrete import WeightsOnlyValues
from ...dialects.errors import UserError
from ...dialects.types import (
    Array,
    element_of,
    is_bool,
    is_float,
    is_half,
    is_unsigned,
    shape_of,
    tensor,
    tensor_type,
    to_numpy,
)
from ...dialects.weights_only import depends_on_weights_only, is_source
from ..graph_node import GraphNode
from ..onnx_to_graph.regions import BodyBuilder
from .text import HloBlock, HloOp
from .tokens import Place

Results: TypeAlias = "SSAValue | Sequence[SSAValue]"
Converter: TypeAlias = "Callable[[HloNode], Results]"
Converters: TypeAlias = "Callable[[HloOp], Converter | None]"

# Values of more elements are not computed during the import.
MAX_KNOWN = 1 << 16
# One that depends on more ops is not, either.
MAX_STEPS = 64

_GRAPH_OF_BOOL = {
    "add": "or", "max": "or", "or": "or", "mul": "and", "min": "and", "and": "and", "xor": "xor",
}  # fmt: skip
_ONNX = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min",
    "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater",
    "greater_equal": "GreaterOrEqual", "and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor",
}  # fmt: skip
COMPARISONS = ("equal", "less", "less_equal", "greater", "greater_equal")


class OpRefused(UserError):
    """An op that has no form in the graph dialect; `where` is its line."""


class HloScope:
    """The values of a block, by name, and of those around it."""

    def __init__(
        self,
        build: GraphBuilder,
        place: Place,
        converters: Converters,
        outer: HloScope | None = None,
        body: BodyBuilder | None = None,
    ) -> None:
        self.build, self.place, self.converters = build, place, converters
        self.outer, self.body = outer, body
        self.values: dict[str, SSAValue] = {}
        self.makers: dict[str, HloOp] = {}

    def inside(self, body: BodyBuilder) -> HloScope:
        """The scope of a body: what it reads from here is captured."""
        return HloScope(body.build, self.place, self.converters, self, body)

    def inner(self) -> HloScope:
        """The scope of a region whose ops stand here."""
        return HloScope(self.build, self.place, self.converters, self)

    def find(self, name: str) -> SSAValue:
        """The value of a name. Raises KeyError."""
        if name not in self.values:
            if self.outer is None:
                raise KeyError(name)
            found = self.outer.find(name)
            self.values[name] = found if self.body is None else self.body.capture(found)
        return self.values[name]

    def maker(self, name: str) -> HloOp | None:
        """The op that makes a value; None of an argument."""
        found = self.makers.get(name)
        return self.outer.maker(name) if found is None and self.outer is not None else found

    def node(self, op: HloOp, operands: Sequence[SSAValue]) -> HloNode:
        return HloNode(op, operands, self)

    def run(self, block: HloBlock, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """Convert a block on these arguments; returns what it returns.

        Raises:
            OpRefused: an op has no form in the graph dialect, or does not fit its operands.
        """
        names = [argument.name for argument in block.arguments]
        self.values.update(zip(names, arguments, strict=True))
        for op in block.ops[:-1]:
            self.convert(op)
        return [self._value(name, block.ops[-1]) for name in block.results]

    def convert(self, op: HloOp) -> None:
        """Append the graph ops of one op, and name its results."""
        check_time()
        operands = [self._value(name, op) for name in op.operands]
        converter = self.converters(op)
        assert converter is not None
        with self.build.at(op.location):
            try:
                found = converter(HloNode(op, operands, self))
            except OpRefused:
                raise
            except UserError as error:
                raise self._refusal(op, error.one_line()) from error
            except (IndexError, KeyError, ValueError) as error:
                raise self._refusal(
                    op, f"its attributes do not fit its operands ({error})"
                ) from error
        results = [found] if isinstance(found, SSAValue) else list(found)
        for name, value, type_ in zip(op.results, results, op.types, strict=True):
            if tensor_type(value) != type_:
                text = f"its type does not follow from its operands: {tensor_type(value)}"
                raise self._refusal(op, f"{text}, not {type_}")
            self.values[name] = value
            self.makers[name] = op

    def _value(self, name: str, op: HloOp) -> SSAValue:
        try:
            return self.find(name)
        except KeyError:
            raise self._refusal(op, f"'{name}' is not defined") from None

    def _refusal(self, op: HloOp, text: str) -> OpRefused:
        return OpRefused(f"{op.name}: {text}", where=self.place(op.position))


class HloNode(GraphNode):
    """One StableHLO op while it is converted; `scope` is where it stands."""

    def __init__(self, op: HloOp, operands: Sequence[SSAValue], scope: HloScope) -> None:
        super().__init__(scope.build, op.types)
        self.hlo, self.operands, self.scope = op, operands, scope

    def __getitem__(self, position: int) -> SSAValue:
        if position >= len(self.operands):
            raise self.refusal("an operand is missing")
        return self.operands[position]

    # --- attributes ---

    def attr(self, *names: str, default: Any = None) -> Any:
        """An attribute under one of its names: that of its own syntax, that of the generic one."""
        for name in names:
            if name in self.hlo.attributes:
                return self.hlo.attributes[name]
        return default

    def ints(self, *names: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of whole numbers. Raises UserError if it is missing and has no default."""
        found = self.attr(*names, default=default)
        if isinstance(found, np.ndarray):
            return [int(v) for v in found.ravel()]
        if not isinstance(found, list) or not all(isinstance(v, int) for v in found):
            raise self.refusal(f"attribute '{names[0]}' is not a list of whole numbers")
        return found

    def number(self, *names: str, default: int | None = None) -> int:
        """A whole number."""
        found = self.attr(*names, default=default)
        if not isinstance(found, int):
            raise self.refusal(f"attribute '{names[0]}' is not a whole number")
        return found

    def block(self, position: int = 0) -> HloBlock:
        """A region's block."""
        if position >= len(self.hlo.regions):
            raise self.refusal("a region is missing")
        return self.hlo.regions[position]

    # --- values ---

    def known(self, value: SSAValue) -> Array | None:
        """The data of a value that depends on constants alone; None of another, or a large one."""
        if math.prod(shape_of(value)) > MAX_KNOWN:
            return None
        if not _of_constants(value, {}):
            return None
        values = WeightsOnlyValues(self.build.weights, Arithmetic.COMPUTED)
        return np.asarray(values[value]).astype(to_numpy(element_of(value)))

    def number_of(self, value: SSAValue) -> float | int | bool | None:
        """The number that a known value has in each element."""
        found = self.known(value)
        if found is None or not found.size:
            return None
        first = found.ravel()[0]
        same = (found == first) | ((found != found) & (first != first))
        return first.item() if bool(np.all(same)) else None

    def binary(self, name: str, a: SSAValue, b: SSAValue) -> SSAValue:
        """A graph op of two operands of one type; without a sign in a wider type, of 64 bits as a
        node; booleans by their logic, and compared as numbers."""
        element = element_of(a)
        compared = name in COMPARISONS
        if is_bool(element) and not compared:
            if name not in _GRAPH_OF_BOOL:
                raise self.refusal(f"'{name}' of booleans")
            return self.op(_GRAPH_OF_BOOL[name], a, b)
        if is_bool(element):
            return self.op(name, self.op("cast", a, to=i32), self.op("cast", b, to=i32))
        bits = name in ("and", "or", "xor")
        wraps = name in ("add", "sub", "mul", "equal")
        if not bits and (not is_unsigned(element) or wraps or _width(element) < 64):
            if not is_unsigned(element):
                return self.op(name, a, b)
            found = self.op(name, self.cast(a, i64), self.cast(b, i64))
            return found if compared else self.cast(found, element)
        type_ = tensor(shape_of(a), i1 if compared else element)
        return self.onnx(_ONNX[name], [a, b], [type_])[0]

    def broadcast(self, x: SSAValue, shape: Sequence[int], dims: Sequence[int]) -> SSAValue:
        """Operand dim k becomes result dim `dims[k]`; no op if nothing changes."""
        if shape_of(x) == tuple(shape):
            return x
        return self.op("broadcast", x, shape=list(shape), dims=list(dims))

    def iota(self, size: int, element: Attribute, start: int = 0, step: int = 1) -> SSAValue:
        """The numbers start, start + step, ..."""
        found = self.op("iota", start=[start], size=[size], step=[step])
        return self.cast(found, element)

    def along(self, x: SSAValue, shape: Sequence[int], axis: int) -> SSAValue:
        """A list of numbers along one dim of a shape."""
        return self.broadcast(x, shape, [axis])


def composed(function: Callable[..., SSAValue]) -> Converter:
    """A converter of several steps on floats: half floats are rounded at the end."""

    def convert(n: HloNode) -> SSAValue:
        if not is_float(n.element):
            raise n.refusal("operands must be floats")
        wide = f32 if is_half(n.element) else n.element
        return n.cast(function(n, *(n.cast(x, wide) for x in n.operands)), n.element)

    return convert


def lowest(element: Attribute) -> float | int | bool:
    """The least number of a type."""
    return _bounds(element)[0]


def highest(element: Attribute) -> float | int | bool:
    """The greatest number of a type."""
    return _bounds(element)[1]


def onnx_number(element: Attribute) -> int:
    """ONNX's number of a type."""
    return int(onnx.helper.np_dtype_to_tensor_dtype(to_numpy(element)))


def _bounds(element: Attribute) -> tuple[Any, Any]:
    if is_float(element):
        return -math.inf, math.inf
    if is_bool(element):
        return False, True
    info = np.iinfo(to_numpy(element))
    return int(info.min), int(info.max)


def _width(element: Attribute) -> int:
    return 8 * to_numpy(element).itemsize


def _of_constants(value: SSAValue, found: dict[Operation, bool]) -> bool:
    """Whether a value depends on constants alone, by ops already judged and a few others."""
    op = value.owner
    if not isinstance(op, Operation) or len(found) > MAX_STEPS:
        return False
    if op not in found:
        found[op] = is_source(op) or (
            all(_of_constants(v, found) for v in op.operands)
            and depends_on_weights_only(op, set(op.operands))
        )
    return found[op]


__all__ = [
    "COMPARISONS",
    "Converter",
    "HloNode",
    "HloScope",
    "OpRefused",
    "Results",
    "composed",
    "highest",
    "lowest",
    "onnx_number",
]
