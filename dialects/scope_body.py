"""Scope bodies: conversion between a region of `arith`/`math` ops and a scalar expression.

`expr_to_body` shares equal sub-expressions, in order of first use. So building the region of an
expression read from a region gives the same region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType, f32, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from .errors import UserError
from .index import stays_inside
from .scalars import (
    FUNCTIONS,
    Call,
    Cast,
    Const,
    Expr,
    Read,
    call,
    element_types,
    function_of,
    operand_type,
)
from .types import element_of, is_bool, is_float, is_unsigned, shape_of

_CASTS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.UIToFPOp,
    arith.FPToSIOp,
    arith.FPToUIOp,
    arith.BitcastOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
)


def read_type(read: Read) -> Attribute:
    """Element type of a read whose source is an SSA value."""
    return element_of(read.source)


def in_bounds(read: Read, extents: Sequence[int]) -> bool:
    """Whether the read of an SSA value never leaves its tensor."""
    return stays_inside(read.index, shape_of(read.source), tuple(extents))


def expr_to_body(
    expr: Expr,
    reads: Sequence[Read],
    result: Attribute,
    terminator: Callable[[SSAValue], Operation],
) -> Region:
    """Build the region computing `expr`, with one block argument per read."""
    block = Block(arg_types=[read_type(read) for read in reads])
    writer = _Writer(block, expr, dict(zip(reads, block.args, strict=True)))
    value = writer.write(expr, result)
    if value.type != result:
        raise UserError("a scope's body has another type", expected=result, found=value.type)
    block.add_op(terminator(value))
    return Region(block)


Need: TypeAlias = "tuple[Expr, Attribute | None]"


class _Writer:
    """Emit an expression into a block, each distinct node once (a literal once per type)."""

    def __init__(self, block: Block, expr: Expr, values: Mapping[Read, SSAValue]):
        self.block = block
        self.types = element_types(expr, read_type)
        self.memo: dict[Need, SSAValue] = {(read, None): v for read, v in values.items()}

    def write(self, expr: Expr, expected: Attribute | None) -> SSAValue:
        """Emit with an explicit stack: expressions may be deep."""
        stack: list[Need] = [(expr, expected)]
        while stack:
            node, wanted = stack[-1]
            if _key(node, wanted) in self.memo:
                stack.pop()
                continue
            needs = self._needs(node, wanted)
            missing = [need for need in needs if _key(*need) not in self.memo]
            if missing:
                stack.extend(reversed(missing))
                continue
            values = [self.memo[_key(*need)] for need in needs]
            self.memo[_key(node, wanted)] = self._emit(node, wanted, values)
            stack.pop()
        return self.memo[_key(expr, expected)]

    def _needs(self, node: Expr, wanted: Attribute | None) -> list[Need]:
        match node:
            case Cast(element, arg):
                return [(arg, element)]
            case Call(function, args):
                operand = self._operand(node, wanted)
                types = [i1, operand, operand] if function == "select" else [operand] * len(args)
                return list(zip(args, types, strict=True))
            case _:
                return []

    def _operand(self, node: Call, wanted: Attribute | None) -> Attribute:
        found = operand_type(node, self.types)
        if found is None and not FUNCTIONS[node.function].returns_bool:
            found = wanted
        return f32 if found is None else found

    def _emit(self, node: Expr, wanted: Attribute | None, values: Sequence[SSAValue]) -> SSAValue:
        match node:
            case Const(value):
                return self._add(constant(value, f32 if wanted is None else wanted))
            case Cast(element, _):
                return self._convert(values[0], element)
            case Call(function, _):
                return self._call(function, self._operand(node, wanted), values)
            case _:
                raise UserError(f"a body reads something that is not an operand: {node}")

    def _call(self, function: str, operand: Attribute, values: Sequence[SSAValue]) -> SSAValue:
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
            if is_unsigned(source):  # literals have a sign
                source = IntegerType(_width(source))
                value = self._add(arith.BitcastOp(value, source))
            zero = self._add(constant(0, source))
            return self._call("ne", source, (value, zero))
        return self._add(_conversion(source, target)(value, target))

    def _add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]


def _key(node: Expr, wanted: Attribute | None) -> Need:
    """A bare literal is one value per type; anything else has its own type."""
    return node, wanted if isinstance(node, Const) else None


def _conversion(source: Attribute, target: Attribute) -> Callable[..., Operation]:
    if is_float(source) and is_float(target):
        wider = _width(target) > _width(source)
        return arith.ExtFOp if wider else arith.TruncFOp
    if is_float(target):
        return arith.UIToFPOp if _is_positive(source) else arith.SIToFPOp
    if is_float(source):
        return arith.FPToUIOp if is_unsigned(target) else arith.FPToSIOp
    if _width(target) == _width(source):
        return arith.BitcastOp  # the other signedness
    if _width(target) > _width(source):
        return arith.ExtUIOp if _is_positive(source) else arith.ExtSIOp
    return arith.TruncIOp


def _is_positive(element: Attribute) -> bool:
    return is_bool(element) or is_unsigned(element)


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
    """Read a body back. Raises VerifyException at an op that is not in the table."""
    memo: dict[SSAValue, Expr] = dict(zip(block.args, reads, strict=True))
    for op in block.ops:
        if op.results:
            memo[op.results[0]] = _read_op(op, memo)
    last = block.last_op
    assert last is not None
    return memo[last.operands[0]]


def verify_body(block: Block) -> None:
    """Check that a body is a scalar expression: table ops on arguments and earlier results.

    Raises:
        VerifyException: an op is not in the table, or reads a value from outside.
    """
    for op in block.ops:
        if any(
            value.owner is not block and value.owner.parent is not block for value in op.operands
        ):
            raise VerifyException(f"{op.name} in the body reads a value of outside")
        known = function_of(op) is not None or isinstance(op, (*_CASTS, arith.ConstantOp))
        if op is not block.last_op and not known:
            raise VerifyException(f"a body may not hold {op.name}")
        if isinstance(op, arith.ConstantOp) and not isinstance(op.value, FloatAttr | IntegerAttr):
            raise VerifyException("a body's constants are scalars")


def _read_op(op: Operation, memo: dict[SSAValue, Expr]) -> Expr:
    if (name := function_of(op)) is not None:
        return call(name, *(memo[value] for value in op.operands))
    if isinstance(op, arith.ConstantOp):
        return Const(_literal(op))
    if isinstance(op, _CASTS):
        return Cast(op.results[0].type, memo[op.operands[0]])
    raise VerifyException(f"a body may not hold {op.name}")


def _literal(op: arith.ConstantOp) -> float | int | bool:
    value = op.value
    if isinstance(value, FloatAttr):
        return value.value.data
    assert isinstance(value, IntegerAttr)
    return bool(value.value.data) if value.type == i1 else value.value.data
