"""Emit what bodies of scopes have none of: integer ops that read no sign, shifts, remainders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation

from ....dialects.nest_computed import RemainderOp
from .access import memory_type
from .emitter import Emitter
from .types import Type, Value, constant

Emit = Callable[[Emitter, Operation, Sequence[Value]], Value]


def _divide(b: Emitter, op: Operation, args: Sequence[Value]) -> Value:
    """Without sign; x / 0 is 0."""
    return _nonzero(b, args, lambda x, y: b.div(x, y, signed=False))


def _remainder(b: Emitter, op: Operation, args: Sequence[Value]) -> Value:
    return _nonzero(b, args, lambda x, y: b.rem(x, y, signed=False))


def _nonzero(b: Emitter, args: Sequence[Value], made: Callable[[Value, Value], Value]) -> Value:
    x, y = args
    zero = b.compare("eq", y, 0)
    return b.select(zero, constant(x.type, 0), made(x, b.select(zero, constant(y.type, 1), y)))


def _shift(name: str, beyond: Callable[[Type], int]) -> Emit:
    """A shift; by all bits or more it gives 0, or the sign."""

    def emit(b: Emitter, op: Operation, args: Sequence[Value]) -> Value:
        x, y = args
        far = b.compare("ge", y, x.type.bits, signed=False)
        by = b.select(far, constant(y.type, beyond(x.type)), y)
        shifted = b.logic(name, x, by)
        return shifted if name == "ashr" else b.select(far, constant(x.type, 0), shifted)

    return emit


_ORDERS = ("eq", "ne", "lt", "le", "gt", "ge", "lt", "le", "gt", "ge")  # arith's predicates


def _compare(b: Emitter, op: Operation, args: Sequence[Value]) -> Value:
    assert isinstance(op, arith.CmpiOp)
    predicate = op.predicate.value.data
    return b.compare(_ORDERS[predicate], *args, signed=predicate < 6)


def _to_unsigned(b: Emitter, op: Operation, args: Sequence[Value]) -> Value:
    return b.cast(args[0], memory_type(op.results[0].type), signed=False)


UNSIGNED: dict[type[Operation], Emit] = {
    arith.DivUIOp: _divide,
    arith.RemUIOp: _remainder,
    arith.MaxUIOp: lambda b, op, args: b.maximum(*args, signed=False),
    arith.MinUIOp: lambda b, op, args: b.minimum(*args, signed=False),
    arith.ShLIOp: _shift("shl", lambda type_: 0),
    arith.ShRUIOp: _shift("lshr", lambda type_: 0),
    arith.ShRSIOp: _shift("ashr", lambda type_: type_.bits - 1),
    arith.CmpiOp: _compare,
    arith.FPToUIOp: _to_unsigned,
    RemainderOp: lambda b, op, args: b.rem(*args),
}
