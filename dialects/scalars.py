"""Scalar expressions: the value of a scope at one point.

One table, `FUNCTIONS`, gives each scalar function its name in the text, its `arith`/`math` op for
floats and for integers, and its numpy meaning. Printing, parsing, building regions and evaluating
all use it. Code generators use the op classes as keys.
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

OpClass: TypeAlias = Any  # an xDSL op class built from its operands


@dataclass(frozen=True)
class Function:
    """One scalar function; `float_op`/`int_op` build the op from operands, None where undefined."""

    name: str
    arity: int  # number of operands
    numpy: Callable[..., Any]  # its meaning
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
    down = a // safe  # without magnitudes: the least integer has none
    return np.where(b == 0, 0, down + ((down * safe != a) & ((a < 0) != (safe < 0))))


def _power(a: Any, b: Any) -> Any:
    """Integer power through float64, as the C library does: truncated, saturated past 64 bits."""
    if np.result_type(a, b).kind == "f":
        return np.power(a, b)
    wide = np.power(np.asarray(a, np.float64), np.asarray(b, np.float64))
    most = np.iinfo(np.int64)
    inside = np.where((wide >= most.max) | (wide <= most.min), 0.0, wide).astype(np.int64)
    return np.where(wide >= most.max, most.max, np.where(wide <= most.min, most.min, inside))


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
    Function("pow", 2, _power, _m.PowFOp, _m.IPowIOp),
    Function("atan2", 2, np.arctan2, _m.Atan2Op),
    Function("neg", 1, np.negative, arith.NegfOp),
    Function("abs", 1, np.abs, _m.AbsFOp, _m.AbsIOp),
    Function("exp", 1, np.exp, _m.ExpOp),
    Function("expm1", 1, np.expm1, _m.ExpM1Op),
    Function("log", 1, np.log, _m.LogOp),
    Function("log1p", 1, np.log1p, _m.Log1pOp),
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

# Ops with a predicate are looked up by it, the others by class.
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
    if (name := _BY_CLASS.get(type(op))) is not None:
        return name  # first, as asking for a class that an op is not of takes longer
    if isinstance(op, arith.CmpfOp):
        return _FLOAT_PREDICATE.get(op.predicate.value.data)
    if isinstance(op, arith.CmpiOp):
        return _INT_PREDICATE.get(op.predicate.value.data)
    return None


class Expr:
    """A scalar expression; Python operators build `Call`s."""

    _hash: int

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
    """`source[index]`; `outside` is the value where the index leaves the tensor's shape."""

    source: Any
    index: tuple[Index, ...]
    outside: float = 0.0


@dataclass(frozen=True, eq=False)
class Const(Expr):
    """A literal; it takes the type of its neighbours.

    Literals are equal as written: 0.0 is not -0.0, nan is nan.
    """

    value: float | int | bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


def _keep_hash(node: Expr, value: int) -> None:
    """Hash once, when built: expressions may be deep, and are often keys."""
    object.__setattr__(node, "_hash", value)


def _equal(left: object, right: object) -> bool:
    """Equality of calls and casts, with an explicit stack; compares each pair of nodes once."""
    stack, seen = [(left, right)], set[tuple[int, int]]()
    while stack:
        a, b = stack.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        seen.add((id(a), id(b)))
        match a, b:
            case Call(), Call() if a.function == b.function and len(a.args) == len(b.args):
                if hash(a) != hash(b):
                    return False
                stack.extend(zip(a.args, b.args, strict=True))
            case Cast(), Cast() if a.element == b.element:
                stack.append((a.arg, b.arg))
            case (Call() | Cast(), _) | (_, Call() | Cast()):
                return False
            case _:
                if a != b:
                    return False
    return True


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """A function of the table applied to arguments."""

    function: str
    args: tuple[Expr, ...]

    def __post_init__(self) -> None:
        _keep_hash(self, hash((self.function, self.args)))

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, (self.function, self.args)  # the hash differs from process to process


@dataclass(frozen=True, eq=False)
class Cast(Expr):
    """Conversion to an element type: to integers by truncation, to bool by `!= 0`."""

    element: Attribute
    arg: Expr

    def __post_init__(self) -> None:
        _keep_hash(self, hash((self.element, self.arg)))

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Cast, (self.element, self.arg)


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


def factors(expr: Expr) -> list[Read] | None:
    """The reads of a pure product; None for any other body."""
    match expr:
        case Read():
            return [expr]
        case Call("mul", (left, right)):
            a, b = factors(left), factors(right)
            return None if a is None or b is None else a + b
        case _:
            return None


def children(node: Expr) -> Sequence[Expr]:
    """The direct sub-expressions."""
    match node:
        case Call(_, args):
            return args
        case Cast(_, arg):
            return (arg,)
        case _:
            return ()


def postorder(expr: Expr) -> list[Expr]:
    """Distinct nodes, children first, left to right. Expressions may be deep and shared."""
    found: dict[Expr, None] = {}
    stack = [(expr, False)]
    while stack:
        node, ready = stack.pop()
        if node in found:
            continue
        parts = children(node)
        if ready or not parts:
            found[node] = None
        else:
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(parts))
    return list(found)


def reads_of(expr: Expr) -> list[Read]:
    """Distinct reads, in order of first occurrence."""
    return [node for node in postorder(expr) if isinstance(node, Read)]


def map_reads(expr: Expr, change: Callable[[Read], Expr]) -> Expr:
    """Replace every read; shared sub-expressions stay shared by equality."""
    images: dict[Expr, Expr] = {}
    for node in postorder(expr):
        match node:
            case Read():
                images[node] = change(node)
            case Call(function, args):
                images[node] = Call(function, tuple(images[a] for a in args))
            case Cast(element, arg):
                images[node] = Cast(element, images[arg])
            case _:
                images[node] = node
    return images[expr]


def size(expr: Expr) -> int:
    """Number of nodes of the tree (a shared part counts at each use)."""
    sizes: dict[Expr, int] = {}
    for node in postorder(expr):
        sizes[node] = 1 + sum(sizes[child] for child in children(node))
    return sizes[expr]


Types: TypeAlias = "dict[Expr, Attribute | None]"


def element_types(expr: Expr, of_read: Callable[[Read], Attribute]) -> Types:
    """Element type of each node; None for nodes with literals only.

    Raises:
        UserError: operands of a function disagree.
    """
    types: Types = {}
    for node in postorder(expr):
        match node:
            case Read():
                types[node] = of_read(node)
            case Cast(element, _):
                types[node] = element
            case Call(function, _) if FUNCTIONS[function].returns_bool:
                operand_type(node, types)
                types[node] = i1
            case Call():
                types[node] = operand_type(node, types)
            case _:
                types[node] = None
    return types


def operand_type(node: Call, types: Types) -> Attribute | None:
    """The element type that the (value) operands of a call share, None if all are literals."""
    values = node.args[1:] if node.function == "select" else node.args
    found = list(dict.fromkeys(t for a in values if (t := types[a]) is not None))
    if len(found) > 1:
        names = " and ".join(str(t) for t in found)
        raise UserError(f"operands of '{node.function}' have different element types: {names}")
    return found[0] if found else None
