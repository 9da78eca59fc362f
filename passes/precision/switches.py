"""A program that computes each product both ways, and takes what an input says."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, FunctionType, i1
from xdsl.ir import SSAValue

from ...dialects.program import Program, keep_names, named
from ...dialects.types import shape_of, tensor
from .products import KINDS, OpsBefore, Product, products

SWITCHES = "precision.lowered"


def with_switches(program: Program, to: str) -> Program:
    """A copy with one input more, `SWITCHES`: for each product whether its precision is lowered.

    One compilation then serves every set of products. `products` gives their order.

    Shapes: the input is i1, of as many elements as there are products.
    """
    made = program.clone()
    keep_names(made)
    found = products(made.module, to)
    main, block = made.main, made.main.body.block
    switches = block.insert_arg(tensor([len(found)], i1), len(block.args))
    outputs = list(main.function_type.outputs)
    main.function_type = FunctionType.from_lists([a.type for a in block.args], outputs)
    given = () if main.arg_attrs is None else main.arg_attrs.data
    main.arg_attrs = ArrayAttr([*given, *named([SWITCHES])])
    for number, op in enumerate(found):
        _switch(op, switches, number, to)
    return made


def _switch(op: Product, switches: SSAValue, number: int, to: str) -> None:
    """Take the product or its lowered form, by one of the switches."""
    assert op.next_op is not None  # a return is the last
    low, build = KINDS[to](op), OpsBefore(op.next_op)
    one = build.slice(switches, starts=[number], sizes=[1], steps=[1])
    readers = list(op.result.uses)
    value = build.where(build.expand(one, shape_of(op.result)), low, op.result)
    for use in readers:
        use.operation.operands[use.index] = value


__all__ = ["SWITCHES", "with_switches"]
