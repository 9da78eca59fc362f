"""Scope bodies: a region of `arith`/`math` ops and a scalar expression, one and the same thing.

`expr_to_body` shares equal sub-expressions, in order of first use, so that building the region of
an expression read from a region gives the same region.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, f32, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from .errors import UserError
from .scalars import (
    FUNCTIONS,
    Call,
    Cast,
    Const,
    Expr,
    Read,
    call,
    function_of,
    operand_type,
)
from .types import element_of, is_bool, is_float

_CASTS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
)


def read_type(read: Read) -> Attribute:
    """Element type of a read whose source is an SSA value."""
    return element_of(read.source)


def expr_to_body(
    expr: Expr,
    reads: Sequence[Read],
    result: Attribute,
    terminator: Callable[[SSAValue], Operation],
) -> Region:
    """Build the region computing `expr`, with one block argument per read."""
    block = Block(arg_types=[read_type(read) for read in reads])
    writer = _Writer(block, dict(zip(reads, block.args, strict=True)))
    value = writer.write(expr, result)
    if value.type != result:
        raise UserError("a scope's body has another type", expected=result, found=value.type)
    block.add_op(terminator(value))
    return Region(block)


class _Writer:
    """Emit an expression into a block, each distinct (expression, type) once."""

    def __init__(self, block: Block, values: dict[Read, SSAValue]):
        self.block = block
        self.memo: dict[tuple[Expr, Attribute | None], SSAValue] = {
            (read, None): value for read, value in values.items()
        }

    def write(self, expr: Expr, expected: Attribute | None) -> SSAValue:
        key = (expr, expected if isinstance(expr, Const) else None)
        if key not in self.memo:
            self.memo[key] = self._emit(expr, expected)
        return self.memo[key]

    def _emit(self, expr: Expr, expected: Attribute | None) -> SSAValue:
        match expr:
            case Const(value):
                return self._add(constant(value, expected if expected is not None else f32))
            case Cast(element, arg):
                source = self.write(arg, element)
                return self._convert(source, element)
            case Call(function, args):
                return self._call(expr, function, args, expected)
            case _:
                raise UserError(f"a body reads something that is no operand: {expr}")

    def _call(
        self, expr: Call, function: str, args: Sequence[Expr], expected: Attribute | None
    ) -> SSAValue:
        operand = operand_type(expr, expected, read_type)
        if operand is None:
            operand = f32
        wanted = [i1, operand, operand] if function == "select" else [operand] * len(args)
        values = [self.write(a, t) for a, t in zip(args, wanted, strict=True)]
        if function == "neg" and not is_float(operand):
            zero = self._add(constant(0, operand))
            return self._add(arith.SubiOp(zero, values[0]))
        known = FUNCTIONS[function]
        build = known.float_op if is_float(operand) else known.int_op
        if build is None:
            raise UserError(f"'{function}' is not defined for element type {operand}")
        return self._add(build(*values))

    def _convert(self, value: SSAValue, target: Attribute) -> SSAValue:
        source = value.type
        if source == target:
            return value
        if is_bool(target):
            zero = self._add(constant(0, source))
            compare = FUNCTIONS["ne"]
            return self._add((compare.float_op if is_float(source) else compare.int_op)(value, zero))
        return self._add(_conversion(source, target)(value, target))

    def _add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]


def _conversion(source: Attribute, target: Attribute) -> Callable[..., Operation]:
    if is_float(source) and is_float(target):
        wider = _width(target) > _width(source)
        return arith.ExtFOp if wider else arith.TruncFOp
    if is_float(target):
        return arith.UIToFPOp if is_bool(source) else arith.SIToFPOp
    if is_float(source):
        return arith.FPToSIOp
    if _width(target) > _width(source):
        return arith.ExtUIOp if is_bool(source) else arith.ExtSIOp
    return arith.TruncIOp


def _width(element: Attribute) -> int:
    if isinstance(element, IntegerType):
        return element.width.data
    width = getattr(element, "bitwidth", None)
    assert isinstance(width, int)
    return width


def constant(value: float | int | bool, element: Attribute) -> arith.ConstantOp:
    """An `arith.constant` of the element type."""
    if is_float(element):
        return arith.ConstantOp(FloatAttr(float(value), element))  # pyright: ignore
    assert isinstance(element, IntegerType)
    return arith.ConstantOp(IntegerAttr(int(value), element))


def body_to_expr(block: Block, reads: Sequence[Read]) -> Expr:
    """Read a body back. Raises VerifyException at an op that is in no table."""
    memo: dict[SSAValue, Expr] = dict(zip(block.args, reads, strict=True))
    for op in block.ops:
        if op.results:
            memo[op.results[0]] = _read_op(op, memo)
    last = block.last_op
    assert last is not None
    return memo[last.operands[0]]


def _read_op(op: Operation, memo: dict[SSAValue, Expr]) -> Expr:
    if isinstance(op, arith.ConstantOp):
        return Const(_literal(op))
    if isinstance(op, _CASTS):
        return Cast(op.results[0].type, memo[op.operands[0]])
    name = function_of(op)
    if name is None:
        raise VerifyException(f"algebra.scope: a body may not hold {op.name}")
    return call(name, *(memo[value] for value in op.operands))


def _literal(op: arith.ConstantOp) -> float | int | bool:
    value = op.value
    if isinstance(value, FloatAttr):
        return value.value.data
    assert isinstance(value, IntegerAttr)
    return bool(value.value.data) if value.type == i1 else value.value.data


