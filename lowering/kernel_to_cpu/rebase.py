"""Kernels that differ only in the place of what they read are one kernel, called with offsets.

The steps of a recurrence read row 0, row 1, row 2 of what was made for all of them at once. With
the places in the code each step would be generated and compiled by itself.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import Rewriter

from ...dialects.graph import ConstantOp
from ...dialects.index import from_affine, range_of
from ...dialects.kernel import GemmOp, KernelOp, LoopsOp, layout_of, physical
from ...dialects.layout import LayoutAttr, with_layout
from ...dialects.schedule import tile_of
from ...dialects.scope_body import in_bounds
from ...dialects.types import Tensor, byte_width, tensor_type
from .kernel_call import Argument, KernelCall
from .runtime.execute import ALIGNMENT

# The first index of each dim that a kernel reads of an operand, by the operand's number.
_Places = dict[int, tuple[int, ...]]


@contextmanager
def at_zero(op: KernelOp) -> Generator[tuple[KernelOp, Mapping[SSAValue, int]]]:
    """The kernel with each operand read, and the result written, from index 0 on, and what that
    leaves out.

    It is a copy that goes when the context ends, or the kernel itself where nothing changes.

    Returns:
        The kernel, and by operand and result the elements from the start of its buffer to the new
        index 0.
    """
    places, result = _places(op), _result_place(op)
    if not places and not result:
        yield op, {}
        return
    copy = op.clone()
    for scope in copy.scopes:
        maps = list(scope.maps.data)
        for k, value in enumerate(scope.inputs):
            number = _number(copy, value)
            if number in places:
                maps[k] = _moved(maps[k], places[number])
        scope.properties["maps"] = ArrayAttr(maps)
    offsets: dict[SSAValue, int] = {op.result: result}
    if result:
        Rewriter.replace_value_with_new_type(copy.result, _from_zero(op.type))
    for number, place in places.items():
        strides = physical(tensor_type(op.inputs[number]))[0]
        offsets[op.inputs[number]] = sum(p * s for p, s in zip(place, strides, strict=True))
    try:
        yield copy, offsets
    finally:
        copy.erase()


def call_of(
    op: KernelOp, call: KernelCall, copy: KernelOp, offsets: Mapping[SSAValue, int]
) -> KernelCall:
    """The call of the kernel itself, made of a call of `at_zero`'s copy."""

    def moved(argument: Argument) -> Argument:
        value = op.result if argument.value is copy.result else argument.value
        shift = 0 if value is None else offsets.get(value, 0)
        return replace(argument, value=value, offset=argument.offset + shift)

    return replace(call, arguments=tuple(map(moved, call.arguments)))


def _places(op: KernelOp) -> _Places:
    """Where each operand is first read; those read from index 0 on, or beyond a bound, are left
    out."""
    if not isinstance(op, LoopsOp | GemmOp) or tile_of(op) is not None:
        return {}
    # The operands of the product itself have strides and offsets of their own, or are packed.
    kept = set(op.scopes[0].inputs) if isinstance(op, GemmOp) else set[SSAValue]()
    found: _Places = {}
    for number, argument in enumerate(op.body.block.args):
        literal = isinstance(op.inputs[number].owner, ConstantOp)  # a part of the code
        if literal or argument in kept or op.inputs.count(op.inputs[number]) > 1:
            continue
        place = _first_place(op, argument)
        if place is not None and any(place):
            found[number] = place
    return found


def _result_place(op: KernelOp) -> int:
    """Elements from the start of the result's buffer to where the kernel writes, if it is a part of
    a larger one; 0 also where that is not at the start of a cache line, which stores may need."""
    layout = layout_of(op.type)
    if not isinstance(op, LoopsOp) or tile_of(op) is not None or any(map(any, layout.halo)):
        return 0
    place = physical(op.type)[1]
    return place if place * byte_width(op.type.element_type) % ALIGNMENT == 0 else 0


def _from_zero(type_: Tensor) -> Tensor:
    """The type with all the room after its elements: the same strides."""
    layout = layout_of(type_)
    after = [low + high for low, high in layout.room]
    zeros = [0] * len(after)
    return with_layout(type_, LayoutAttr.of(layout.dims, zeros, zeros, zeros, after))


def _first_place(op: KernelOp, argument: SSAValue) -> tuple[int, ...] | None:
    lows: list[Sequence[int]] = []
    for scope in op.scopes:
        for read in scope.reads_of(argument):
            if not in_bounds(read, scope.extents):
                return None
            lows.append([range_of(index, scope.extents)[0] for index in read.index])
    return tuple(map(min, zip(*lows, strict=True))) if lows else None


def _number(op: KernelOp, value: SSAValue) -> int:
    arguments: list[SSAValue] = list(op.body.block.args)
    return arguments.index(value) if value in arguments else -1


def _moved(map_: AffineMapAttr, place: Sequence[int]) -> AffineMapAttr:
    moved = zip(map_.data.results, place, strict=True)
    results = tuple((from_affine(e) - p).to_affine() for e, p in moved)  # in its normal form
    return AffineMapAttr(AffineMap(map_.data.num_dims, map_.data.num_symbols, results))
