"""Scalars of a nest with Python's operators: each op is put where the nest is being written."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, f32, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.nest_access import scalar_type
from ...dialects.nest_computed import RemainderOp
from ...dialects.scalars import FUNCTIONS
from ...dialects.types import is_float, is_unsigned

Number: TypeAlias = "Scalar | int | float | bool"

_PREDICATES = {"eq": 0, "ne": 1, "lt": 6, "le": 7, "gt": 8, "ge": 9}
_UNSIGNED: dict[str, Any] = {
    "div": arith.DivUIOp,
    "rem": arith.RemUIOp,
    "max": arith.MaxUIOp,
    "min": arith.MinUIOp,
}


class Writing(Protocol):
    """Where ops are put, as code.py implements it."""

    def add(self, op: Operation) -> None:
        """Put an op at the end."""
        ...

    def number(self, number: int | float | bool, element: Attribute = i64) -> Scalar:
        """A literal."""
        ...

    def select(self, condition: Scalar, yes: Scalar, no: Number) -> Scalar:
        """One of two values."""
        ...


class Scalar:
    """A value of an element type; `ui8` and the like choose the ops that read no sign."""

    def __init__(self, code: Writing, value: SSAValue, element: Attribute):
        self.code, self.value, self.element = code, value, element

    def call(self, name: str, *others: Number) -> Scalar:
        """A function of dialects/scalars.py of this and other values of its type."""
        args = [self, *(self.like(other) for other in others)]
        values = [a.value for a in args]
        function = FUNCTIONS[name]
        if is_unsigned(self.element) and name in _UNSIGNED:
            op = _UNSIGNED[name](*values)
        elif is_unsigned(self.element) and name in _PREDICATES:
            op: Operation = arith.CmpiOp(values[0], values[1], _PREDICATES[name])
        else:
            made = function.float_op if is_float(self.element) else function.int_op
            assert made is not None, (name, self.element)
            op = made(*values)
        return self._made(op, i1 if function.returns_bool else self.element)

    def like(self, other: Number) -> Scalar:
        """A number as a value of this type."""
        if isinstance(other, Scalar):
            return other
        return self.code.number(other, self.element)

    def _made(self, op: Operation, element: Attribute) -> Scalar:
        self.code.add(op)
        return Scalar(self.code, op.results[0], element)

    def remainder(self, other: Number) -> Scalar:
        """C's remainder, with the sign of this."""
        if not is_float(self.element):
            return self.call("rem", other)
        return self._made(RemainderOp(self.value, self.like(other).value), self.element)

    def _back(self, name: str, other: Number) -> Scalar:
        return self.like(other).call(name, self)

    def __add__(self, other: Number) -> Scalar:
        return self.call("add", other)

    def __radd__(self, other: Number) -> Scalar:
        return self.call("add", other)

    def __sub__(self, other: Number) -> Scalar:
        return self.call("sub", other)

    def __rsub__(self, other: Number) -> Scalar:
        return self._back("sub", other)

    def __mul__(self, other: Number) -> Scalar:
        return self.call("mul", other)

    def __rmul__(self, other: Number) -> Scalar:
        return self.call("mul", other)

    def __truediv__(self, other: Number) -> Scalar:
        return self.call("div", other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return self._back("div", other)

    def __floordiv__(self, other: Number) -> Scalar:
        """The quotient of positions, which are not negative."""
        return self._made(arith.DivUIOp(self.value, self.like(other).value), self.element)

    def __mod__(self, other: Number) -> Scalar:
        """The remainder of positions, which are not negative."""
        return self._made(arith.RemUIOp(self.value, self.like(other).value), self.element)

    def __neg__(self) -> Scalar:
        return self.call("neg") if is_float(self.element) else self._back("sub", 0)

    def __and__(self, other: Number) -> Scalar:
        return self.call("and", other)

    def __or__(self, other: Number) -> Scalar:
        return self.call("or", other)

    def __xor__(self, other: Number) -> Scalar:
        return self.call("xor", other)

    def __invert__(self) -> Scalar:
        return self.call("xor", True if self.element == i1 else -1)

    def __lshift__(self, other: Number) -> Scalar:
        return self._made(arith.ShLIOp(self.value, self.like(other).value), self.element)

    def __rshift__(self, other: Number) -> Scalar:
        """Zeros from the left for an unsigned type, else copies of the sign."""
        cls = arith.ShRUIOp if is_unsigned(self.element) else arith.ShRSIOp
        return self._made(cls(self.value, self.like(other).value), self.element)

    def __lt__(self, other: Number) -> Scalar:
        return self.call("lt", other)

    def __le__(self, other: Number) -> Scalar:
        return self.call("le", other)

    def __gt__(self, other: Number) -> Scalar:
        return self.call("gt", other)

    def __ge__(self, other: Number) -> Scalar:
        return self.call("ge", other)

    def equals(self, other: Number) -> Scalar:
        return self.call("eq", other)

    def differs(self, other: Number) -> Scalar:
        return self.call("ne", other)

    def is_nan(self) -> Scalar:
        """Whether it is no number; an integer always is one."""
        return self.call("ne", self) if is_float(self.element) else self.code.number(False, i1)

    def to(self, element: Attribute) -> Scalar:
        """The value converted: floats truncate and saturate, integers wrap, a bool is `!= 0`."""
        source = self.element
        if element == source:
            return self
        if element == i1:
            return self.differs(0)
        if is_float(source) and is_float(element):
            if _bits(source) == _bits(element):
                return self.to(f32).to(element)
            wider = _bits(element) > _bits(source)
            cls: Any = arith.ExtFOp if wider else arith.TruncFOp
            return self._made(cls(self.value, element), element)
        target = scalar_type(element)
        if is_float(source):
            cls = arith.FPToUIOp if is_unsigned(element) else arith.FPToSIOp
        elif is_float(element):
            plain = source == i1 or is_unsigned(source)
            cls = arith.UIToFPOp if plain else arith.SIToFPOp
        elif _bits(element) == _bits(source):
            return Scalar(self.code, self.value, element)
        elif _bits(element) < _bits(source):
            cls = arith.TruncIOp
        else:
            cls = arith.ExtUIOp if source == i1 or is_unsigned(source) else arith.ExtSIOp
        return self._made(cls(self.value, target), element)

    def place(self) -> Scalar:
        """The value as an i64, as addresses are."""
        return self.to(i64)


def _bits(element: Attribute) -> int:
    return element.width.data if isinstance(element, IntegerType) else element.bitwidth  # pyright: ignore


def constant(number: int | float | bool, element: Attribute) -> arith.ConstantOp:
    """A literal of an element type."""
    type_ = scalar_type(element)
    if is_float(element):
        return arith.ConstantOp(FloatAttr(float(number), type_))  # pyright: ignore
    return arith.ConstantOp(IntegerAttr(int(number), type_, truncate_bits=True))  # pyright: ignore
