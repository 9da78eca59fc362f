"""Scalar expressions: what a scope computes at one point, as a value.

One table, `FUNCTIONS`, gives each scalar function its name in the text, its `arith`/`math` op for
floats and for integers, and its numpy meaning; printing, parsing, building regions and evaluating
all loop over it. Code generators key on the op classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation

from .errors import UserError
from .index import Index
from .types import Array, is_bool, is_float, reference_dtype

OpClass: TypeAlias = Any  # an xDSL op class built from its operands


@dataclass(frozen=True)
class Function:
    """One scalar function; `float_op`/`int_op` build the op from operands, None where undefined."""

    name: str
    arity: int
    numpy: Callable[..., Any]
    float_op: OpClass | None = None
    int_op: OpClass | None = None
    returns_bool: bool = False


def _compare(float_predicate: str, int_predicate: str) -> dict[str, Any]:
    return {
        "float_op": lambda a, b: arith.CmpfOp(a, b, float_predicate),
        "int_op": lambda a, b: arith.CmpiOp(a, b, int_predicate),
        "returns_bool": True,
    }


def _truncated_division(a: Any, b: Any) -> Any:
    if np.result_type(a, b).kind == "f":
        return np.divide(a, b)
    safe = np.where(b == 0, 1, b)
    return np.where(b == 0, 0, np.sign(a) * np.sign(safe) * (np.abs(a) // np.abs(safe)))


def _remainder(a: Any, b: Any) -> Any:
    """C's fmod: the sign of the dividend."""
    if np.result_type(a, b).kind == "f":
        return np.fmod(a, b)
    return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b)))


_erf = np.vectorize(math.erf, otypes=[np.float64])

_m = math_dialect
_FUNCTION_LIST: tuple[Function, ...] = (
    Function("add", 2, np.add, arith.AddfOp, arith.AddiOp),
    Function("sub", 2, np.subtract, arith.SubfOp, arith.SubiOp),
    Function("mul", 2, np.multiply, arith.MulfOp, arith.MuliOp),
    Function("div", 2, _truncated_division, arith.DivfOp, arith.DivSIOp),
    Function("rem", 2, _remainder, None, arith.RemSIOp),
    Function("max", 2, np.maximum, arith.MaximumfOp, arith.MaxSIOp),
    Function("min", 2, np.minimum, arith.MinimumfOp, arith.MinSIOp),
    Function("pow", 2, np.power, _m.PowFOp, _m.IPowIOp),
    Function("atan2", 2, np.arctan2, _m.Atan2Op),
    Function("neg", 1, np.negative, arith.NegfOp),
    Function("abs", 1, np.abs, _m.AbsFOp, _m.AbsIOp),
    Function("exp", 1, np.exp, _m.ExpOp),
    Function("log", 1, np.log, _m.LogOp),
    Function("sqrt", 1, np.sqrt, _m.SqrtOp),
    Function("rsqrt", 1, lambda x: 1 / np.sqrt(x), _m.RsqrtOp),
    Function("tanh", 1, np.tanh, _m.TanhOp),
    Function("erf", 1, _erf, _m.ErfOp),
    Function("floor", 1, np.floor, _m.FloorOp),
    Function("ceil", 1, np.ceil, _m.CeilOp),
    Function("roundeven", 1, np.round, _m.RoundEvenOp),
    Function("trunc", 1, np.trunc, _m.TruncOp),
    Function("sin", 1, np.sin, _m.SinOp),
    Function("cos", 1, np.cos, _m.CosOp),
    Function("tan", 1, np.tan, _m.TanOp),
    Function("asin", 1, np.arcsin, _m.AsinOp),
    Function("acos", 1, np.arccos, _m.AcosOp),
    Function("atan", 1, np.arctan, _m.AtanOp),
    Function("sinh", 1, np.sinh, _m.SinhOp),
    Function("cosh", 1, np.cosh, _m.CoshOp),
    Function("asinh", 1, np.arcsinh, _m.AsinhOp),
    Function("acosh", 1, np.arccosh, _m.AcoshOp),
    Function("atanh", 1, np.arctanh, _m.AtanhOp),
    Function("lt", 2, np.less, **_compare("olt", "slt")),
    Function("le", 2, np.less_equal, **_compare("ole", "sle")),
    Function("gt", 2, np.greater, **_compare("ogt", "sgt")),
    Function("ge", 2, np.greater_equal, **_compare("oge", "sge")),
    Function("eq", 2, np.equal, **_compare("oeq", "eq")),
    Function("ne", 2, np.not_equal, **_compare("une", "ne")),
    Function("and", 2, np.bitwise_and, None, arith.AndIOp),
    Function("or", 2, np.bitwise_or, None, arith.OrIOp),
    Function("xor", 2, np.bitwise_xor, None, arith.XOrIOp),
    Function("select", 3, np.where, arith.SelectOp, arith.SelectOp),
)
FUNCTIONS: dict[str, Function] = {f.name: f for f in _FUNCTION_LIST}

# Ops that carry a predicate are found by it, the others by class.
_BY_CLASS: dict[type[Operation], str] = {
    op: f.name
    for f in _FUNCTION_LIST
    for op in (f.float_op, f.int_op)
    if isinstance(op, type) and issubclass(op, Operation)
}
_FLOAT_PREDICATE = {1: "eq", 2: "gt", 3: "ge", 4: "lt", 5: "le", 13: "ne"}
_INT_PREDICATE = {0: "eq", 1: "ne", 2: "lt", 3: "le", 4: "gt", 5: "ge"}


def function_of(op: Operation) -> str | None:
    """The table name of an `arith`/`math` op, None if it is not in the table."""
    if isinstance(op, arith.CmpfOp):
        return _FLOAT_PREDICATE.get(op.predicate.value.data)
    if isinstance(op, arith.CmpiOp):
        return _INT_PREDICATE.get(op.predicate.value.data)
    return _BY_CLASS.get(type(op))


class Expr:
    """A scalar expression; Python operators build `Call`s."""

    def __add__(self, other: Scalar) -> Expr:
        return call("add", self, other)

    def __radd__(self, other: Scalar) -> Expr:
        return call("add", other, self)

    def __sub__(self, other: Scalar) -> Expr:
        return call("sub", self, other)

    def __rsub__(self, other: Scalar) -> Expr:
        return call("sub", other, self)

    def __mul__(self, other: Scalar) -> Expr:
        return call("mul", self, other)

    def __rmul__(self, other: Scalar) -> Expr:
        return call("mul", other, self)

    def __truediv__(self, other: Scalar) -> Expr:
        return call("div", self, other)

    def __rtruediv__(self, other: Scalar) -> Expr:
        return call("div", other, self)

    def __neg__(self) -> Expr:
        return call("neg", self)


Scalar: TypeAlias = "Expr | float | int | bool"


@dataclass(frozen=True)
class Read(Expr):
    """`source[index]`; `outside` is its value where the index leaves the tensor's shape."""

    source: Any
    index: tuple[Index, ...]
    outside: float = 0.0


@dataclass(frozen=True)
class Const(Expr):
    """A literal; takes the type of what it is combined with."""

    value: float | int | bool


@dataclass(frozen=True)
class Call(Expr):
    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Cast(Expr):
    """Conversion to an element type: to integers by truncation, to bool by `!= 0`."""

    element: Attribute
    arg: Expr


def call(function: str, *args: Scalar) -> Expr:
    """Apply a table function, checking its arity."""
    known = FUNCTIONS.get(function)
    if known is None:
        raise UserError(f"unknown scalar function '{function}'")
    if len(args) != known.arity:
        raise UserError(
            f"'{function}' has another number of arguments", expected=known.arity, found=len(args)
        )
    return Call(function, tuple(a if isinstance(a, Expr) else Const(a) for a in args))


def reads_of(expr: Expr) -> list[Read]:
    """Distinct reads, in order of first occurrence."""
    found: dict[Read, None] = {}
    stack = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, Read):
            found.setdefault(node)
        stack.extend(reversed(children(node)))
    return list(found)


def children(node: Expr) -> Sequence[Expr]:
    match node:
        case Call(_, args):
            return args
        case Cast(_, arg):
            return (arg,)
        case _:
            return ()


def map_reads(expr: Expr, change: Callable[[Read], Expr]) -> Expr:
    """Replace every read; shared sub-expressions stay shared by equality."""
    match expr:
        case Read():
            return change(expr)
        case Call(function, args):
            return Call(function, tuple(map_reads(a, change) for a in args))
        case Cast(element, arg):
            return Cast(element, map_reads(arg, change))
        case _:
            return expr


def size(expr: Expr) -> int:
    """Number of nodes of the tree."""
    return 1 + sum(size(child) for child in children(expr))


def element_type(expr: Expr, of_read: Callable[[Read], Attribute]) -> Attribute | None:
    """Element type, None for a bare literal. Raises UserError where operands disagree."""
    match expr:
        case Read():
            return of_read(expr)
        case Cast(element, _):
            return element
        case Call(function, args):
            operand = _common_type(function, args, of_read)
            return i1 if FUNCTIONS[function].returns_bool else operand
        case _:
            return None


def _common_type(
    function: str, args: Sequence[Expr], of_read: Callable[[Read], Attribute]
) -> Attribute | None:
    values = args[1:] if function == "select" else args
    found = {t: None for a in values if (t := element_type(a, of_read)) is not None}
    if len(found) > 1:
        names = " and ".join(str(t) for t in found)
        raise UserError(f"operands of '{function}' have different element types: {names}")
    return next(iter(found), None)


def operand_type(
    expr: Call, expected: Attribute | None, of_read: Callable[[Read], Attribute]
) -> Attribute | None:
    """The element type an operation's (value) operands share."""
    common = _common_type(expr.function, expr.args, of_read)
    return common if common is not None or FUNCTIONS[expr.function].returns_bool else expected


def evaluate(
    expr: Expr, read: Callable[[Read], Array], of_read: Callable[[Read], Attribute]
) -> Array:
    """Value in reference arithmetic: float64, int64, bool; reads give broadcastable arrays."""
    memo: dict[Expr, Array] = {}

    def walk(node: Expr) -> Array:
        if node not in memo:
            memo[node] = compute(node)
        return memo[node]

    def compute(node: Expr) -> Array:
        match node:
            case Read():
                return read(node)
            case Const(value):
                return np.asarray(value)
            case Cast(element, arg):
                return cast_reference(walk(arg), element)
            case Call(function, args):
                return np.asarray(FUNCTIONS[function].numpy(*(walk(a) for a in args)))
            case _:
                raise TypeError(f"not a scalar expression: {node}")

    with np.errstate(all="ignore"):
        return walk(expr)


def cast_reference(value: Array, element: Attribute) -> Array:
    """Convert in reference arithmetic; NaN and infinities to integers give 0, as is usual on CPUs."""
    if is_bool(element):
        return value != 0
    target = reference_dtype(element)
    if value.dtype.kind == "f" and not is_float(element):
        value = np.where(np.isfinite(value), value, 0)
        return np.trunc(value).astype(target)
    return value.astype(target)
