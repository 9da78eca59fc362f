"""Emit arithmetic, comparisons and conversions on scalars and vectors.

Integers that Python knows fold at emission, so an address is only computed as far as it varies.
Integer arithmetic wraps.
"""

import operator
from typing import overload

from .flow import Flow
from .types import BF16, F16, F32, F64, I1, I16, I32, I64, Index, Operand, Type, Value, constant

_FOLD = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
_ORDER = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge", "eq": "eq", "ne": "ne"}


class ArithmeticEmitter(Flow):
    """Compute: floats and integers share names; a number takes the other operand's type."""

    @overload
    def add(self, x: int, y: int) -> int: ...
    @overload
    def add(self, x: Value, y: Operand) -> Value: ...
    @overload
    def add(self, x: Operand, y: Value) -> Value: ...
    @overload
    def add(self, x: Index, y: Index) -> Index: ...
    def add(self, x: Operand, y: Operand) -> Operand:
        """Add; `(x + 3) + (y + 4)` becomes `(x + y) + 7`."""
        if isinstance(x, int) and isinstance(y, Value):
            x, y = y, x
        if isinstance(x, Value) and x.type == I64 and isinstance(y, int):
            base, offset = self._sums.get(x.text, (x, 0))
            total = offset + y
            if total == 0:
                return base
            result = self.op(I64, f"add {base}, {total}")
            self._sums[result.text] = base, total
            return result
        if isinstance(x, Value) and isinstance(y, Value) and x.type == y.type == I64:
            (left, offset), (right, more) = (self._sums.get(v.text, (v, 0)) for v in (x, y))
            if offset or more:
                return self.add(self.op(I64, f"add {left}, {right.text}"), offset + more)
        return self._binary("add", "fadd", x, y)

    @overload
    def sub(self, x: int, y: int) -> int: ...
    @overload
    def sub(self, x: Value, y: Operand) -> Value: ...
    @overload
    def sub(self, x: Operand, y: Value) -> Value: ...
    @overload
    def sub(self, x: Index, y: Index) -> Index: ...
    def sub(self, x: Operand, y: Operand) -> Operand:
        """Subtract."""
        if isinstance(x, Value) and x.type == I64 and isinstance(y, int):
            return self.add(x, -y)
        return self._binary("sub", "fsub", x, y)

    @overload
    def mul(self, x: int, y: int) -> int: ...
    @overload
    def mul(self, x: Value, y: Operand) -> Value: ...
    @overload
    def mul(self, x: Operand, y: Value) -> Value: ...
    @overload
    def mul(self, x: Index, y: Index) -> Index: ...
    def mul(self, x: Operand, y: Operand) -> Operand:
        """Multiply; `(x + 3) * 4` becomes `x * 4 + 12`."""
        if isinstance(x, int) and isinstance(y, Value):
            x, y = y, x
        if isinstance(x, Value) and x.type == I64 and isinstance(y, int):
            if y in (0, 1):
                return x if y else constant(I64, 0)
            base, offset = self._sums.get(x.text, (x, 0))
            return self.add(self.op(I64, f"mul {base}, {y}"), offset * y)
        return self._binary("mul", "fmul", x, y)

    def div(self, x: Operand, y: Operand, *, signed: bool = True) -> Value:
        """Divide; integers round towards zero."""
        return self._typed("sdiv" if signed else "udiv", "fdiv", x, y)

    def rem(self, x: Operand, y: Operand, *, signed: bool = True) -> Value:
        """Give the remainder, which has the sign of `x`."""
        return self._typed("srem" if signed else "urem", "frem", x, y)

    def split(self, index: Index, size: int) -> tuple[Index, Index]:
        """Split a non-negative index into quotient and remainder by `size`."""
        if isinstance(index, int):
            return divmod(index, size)
        if size == 1:
            return index, 0
        return self.div(index, size, signed=False), self.rem(index, size, signed=False)

    def linear(self, *terms: tuple[Index, int]) -> Index:
        """Sum index times stride over `terms`."""
        total: Index = 0
        for index, stride in terms:
            if stride == 0:
                continue
            total = self.add(total, self.mul(index, stride))
        return total

    def logic(self, name: str, x: Operand, y: Operand) -> Value:
        """Apply `and`, `or`, `xor`, `shl`, `lshr` or `ashr`."""
        return self._typed(name, "", x, y)

    def negate(self, x: Value) -> Value:
        """Change the sign."""
        return self.op(x.type, f"fneg {x}") if x.type.is_float else self.sub(0, x)

    def fma(self, x: Value, y: Operand, z: Operand) -> Value:
        """Multiply and add, rounding once where the hardware can at no cost, else twice."""
        args = [x, self.value(y, x.type), self.value(z, x.type)]
        return self.intrinsic(f"fmuladd.{x.type.suffix}", x.type, args)

    def unary(self, name: str, x: Value) -> Value:
        """Apply a one-operand float intrinsic: `sqrt`, `fabs`, `floor`, `ceil`, `roundeven`."""
        return self.intrinsic(f"{name}.{x.type.suffix}", x.type, [x], flags=self._flag_text(x.type))

    def maximum(self, x: Operand, y: Operand, *, signed: bool = True) -> Value:
        """Take the larger; NaN if either is."""
        return self._extreme("maximum", "smax" if signed else "umax", x, y)

    def minimum(self, x: Operand, y: Operand, *, signed: bool = True) -> Value:
        """Take the smaller; NaN if either is."""
        return self._extreme("minimum", "smin" if signed else "umin", x, y)

    def maxnum(self, x: Operand, y: Operand) -> Value:
        """Take the larger; a NaN loses to a number."""
        return self._extreme("maxnum", "smax", x, y)

    def minnum(self, x: Operand, y: Operand) -> Value:
        """Take the smaller; a NaN loses to a number."""
        return self._extreme("minnum", "smin", x, y)

    def compare(self, order: str, x: Operand, y: Operand, *, signed: bool = True) -> Value:
        """Compare by `lt`, `le`, `gt`, `ge`, `eq` or `ne`; with NaN only `ne` holds."""
        x, y = self._pair(x, y)
        result = I1.vector(x.type.lanes)
        if x.type.is_float:
            return self.op(result, f"fcmp {'une' if order == 'ne' else 'o' + order} {x}, {y.text}")
        name = _ORDER[order]
        name = "u" + name[1:] if name[0] == "s" and not signed else name
        return self.op(result, f"icmp {name} {x}, {y.text}")

    def select(self, condition: Value, x: Operand, y: Operand) -> Value:
        """Take `x` where `condition` holds, else `y`."""
        x, y = self._pair(x, y)
        return self.op(x.type, f"select {condition}, {x}, {y}")

    def _pair(self, x: Operand, y: Operand) -> tuple[Value, Value]:
        dtype = x.type if isinstance(x, Value) else y.type if isinstance(y, Value) else I64
        x, y = self.value(x, dtype), self.value(y, dtype)
        assert x.type == y.type, (x, y)
        return x, y

    def _flag_text(self, dtype: Type) -> str:
        return self._flags if dtype.is_float else ""

    def _typed(self, integer: str, floating: str, x: Operand, y: Operand) -> Value:
        x, y = self._pair(x, y)
        name = floating if x.type.is_float else integer
        return self.op(x.type, f"{name} {self._flag_text(x.type)}{x}, {y.text}")

    def _binary(self, integer: str, floating: str, x: Operand, y: Operand) -> Operand:
        if isinstance(x, int) and isinstance(y, int):
            return _FOLD[integer](x, y)
        return self._typed(integer, floating, x, y)

    def _extreme(self, floating: str, integer: str, x: Operand, y: Operand) -> Value:
        x, y = self._pair(x, y)
        name = floating if x.type.is_float else integer
        flags = self._flag_text(x.type)
        return self.intrinsic(f"{name}.{x.type.suffix}", x.type, [x, y], flags=flags)

    def bitcast(self, x: Value, dtype: Type) -> Value:
        """Read the same bits as another type."""
        return self.op(dtype, f"bitcast {x} to {dtype}")

    def cast(self, x: Value, dtype: Type, *, signed: bool = True) -> Value:
        """Convert numbers to the scalar type `dtype`, keeping lanes.

        Floats that no integer can hold saturate (NaN gives 0); to i1 means "is not zero".
        `signed` says how integers on either side are read; an i1 is 0 or 1.
        """
        source, target = x.type, dtype.vector(x.type.lanes)
        if source == target:
            return x
        if dtype == I1:
            return self.compare("ne", x, 0)
        signed = signed and source.element != I1
        if source.is_float and dtype.is_float:
            return self._cast_float(x, target)
        if source.is_float:
            name = f"fpto{'si' if signed else 'ui'}.sat.{target.suffix}.{source.suffix}"
            return self.intrinsic(name, target, [x])
        if dtype.is_float:
            if dtype == BF16:
                return self._cast_float(self.cast(x, F32, signed=signed), target)
            return self.op(target, f"{'si' if signed else 'ui'}tofp {x} to {target}")
        widens = "sext" if signed else "zext"
        return self.op(target, f"{widens if dtype.bits > source.bits else 'trunc'} {x} to {target}")

    def _cast_float(self, x: Value, target: Type) -> Value:
        if target.scalar == "bfloat":
            return self._round_bfloat(self.cast(x, F32), target)
        ends = {x.type.element, target.element}
        if ends in ({BF16, F16}, {BF16, F64}, {F16, F64}):  # no instruction; F32 on the way
            return self.cast(self.cast(x, F32), target.element)
        name = "fpext" if target.bits > x.type.bits else "fptrunc"
        return self.op(target, f"{name} {x} to {target}")

    def _round_bfloat(self, x: Value, target: Type) -> Value:
        return self.bitcast(self.bfloat_bits(x), target)

    def bfloat_bits(self, x: Value) -> Value:
        """Round floats to nearest-even bfloats, as the i16 that hold them.

        By integers: the instruction flushes denormals, or is missing.
        """
        bits = self.bitcast(x, I32.vector(x.type.lanes))
        odd = self.logic("and", self.logic("lshr", bits, 16), 1)
        rounded = self.logic("lshr", self.add(self.add(bits, odd), 0x7FFF), 16)
        quiet = self.logic("or", self.logic("lshr", bits, 16), 0x40)
        return self.cast(self.select(self.compare("ne", x, x), quiet, rounded), I16)

    def from_bfloat_bits(self, x: Value) -> Value:
        """Floats from the i16 that hold bfloats."""
        bits = self.logic("shl", self.cast(x, I32, signed=False), 16)
        return self.bitcast(bits, F32.vector(x.type.lanes))
