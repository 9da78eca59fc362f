"""Which ops of a program round only numbers that come from their own half type.

A product of half floats is computed in float32 and rounded once: arithmetic inside a type, which
real arithmetic takes as exact. A cast of float32 data to a half float is a function instead. Which
of the two a cast is depends on what its operand was computed from, as for canonical expressions
(canonical_casts.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Attribute, Operation, SSAValue

from .arithmetic import Arithmetic
from .graph import WeightOp
from .types import element_of, holds, is_half, is_narrow_float

Origins = frozenset[Attribute]


def unrounded(ops: Iterable[Operation]) -> Mapping[Operation, Arithmetic]:
    """The ops of a block that are computed without rounding to a half type, with how."""
    origins: dict[SSAValue, Origins] = {}
    found: dict[Operation, Arithmetic] = {}
    for op in ops:
        made = frozenset[Attribute]().union(*(_of(v, origins) for v in op.operands))
        for half in sorted(filter(is_half, made), key=str):
            if all(holds(half, element) for element in made):
                found[op] = Arithmetic.unrounded(half)
        for result in op.results:
            origins[result] = _result(op, result, made)
    return found


def _of(value: SSAValue, origins: Mapping[SSAValue, Origins]) -> Origins:
    return origins[value] if value in origins else frozenset([element_of(value)])


def _result(op: Operation, result: SSAValue, made: Origins) -> Origins:
    """What a result is computed from; a narrow float counts as its own type."""
    element = element_of(result)
    own = is_narrow_float(element) or isinstance(op, WeightOp)
    return frozenset([element]) if own else made


__all__ = ["unrounded"]
