"""Which outputs of a program are written where the caller gets them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container

from xdsl.ir import OpResult, SSAValue

from ...dialects.control import ControlOp
from ...dialects.kernel import CallOp, JoinOp, KernelOp, ViewOp, layout_of, logical
from ...dialects.program import Program, return_of
from ...dialects.types import element_count, tensor_type


def handed_out(program: Program, known: Container[SSAValue]) -> dict[OpResult, str]:
    """The results that have a buffer of their own outside the arena, each with the output it is.

    An output is copied instead if it is an input or a constant, has a layout other than its plain
    one, is a part of a larger buffer, or if an output before it has the same buffer.

    Args:
        known: values that are constants.
    """
    found: dict[OpResult, str] = {}
    times = Counter(program.output_names)
    values = return_of(program.module).arguments
    for name, value in zip(program.output_names, values, strict=True):
        root = _buffer(value)
        if root is None or root in known or root in found or times[name] > 1:
            continue
        found[root] = name
    return found


def _buffer(value: SSAValue) -> OpResult | None:
    """The result whose buffer holds exactly a value's elements in their order; None without one."""
    count = element_count(tensor_type(value))
    while isinstance(value.owner, ViewOp) and _is_plain(value):
        value = value.owner.source
    if not isinstance(value, OpResult) or not isinstance(value.op, KernelOp | CallOp | ControlOp):
        return None
    # A result that is joined is written into a part of the joined buffer.
    joined = any(isinstance(use.operation, JoinOp) for use in value.uses)
    whole = _is_plain(value) and element_count(tensor_type(value)) == count
    return value if whole and not joined else None


def _is_plain(value: SSAValue) -> bool:
    type_ = tensor_type(value)
    return layout_of(type_) == layout_of(logical(type_)) and element_count(type_) > 0
