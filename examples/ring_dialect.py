"""A dialect isoform does not know, saturated by its own rules (ring.rules):

    isoform-opt polynomial.mlir --plugin ring_dialect.py \\
        -p 'graph-saturate{dialect=ring rules="ring.rules" op-costs="ring.mul=4","ring.square=3"}'

Nothing but the op definitions is needed: their operands, attributes and type constraints say how
e-nodes look and what types rules give.
"""

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Dialect
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure


@irdl_op_definition
class AddOp(IRDLOperation):
    """a + b in a commutative ring."""

    name = "ring.add"
    T: ClassVar = VarConstraint("T", AnyAttr())
    a = operand_def(T)
    b = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b attr-dict `:` type($result)"


@irdl_op_definition
class MulOp(IRDLOperation):
    """a * b."""

    name = "ring.mul"
    T: ClassVar = VarConstraint("T", AnyAttr())
    a = operand_def(T)
    b = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b attr-dict `:` type($result)"


@irdl_op_definition
class SquareOp(IRDLOperation):
    """x * x."""

    name = "ring.square"
    T: ClassVar = VarConstraint("T", AnyAttr())
    x = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict `:` type($result)"


@irdl_op_definition
class ScaleOp(IRDLOperation):
    """x added to itself, `factor` times in all."""

    name = "ring.scale"
    T: ClassVar = VarConstraint("T", AnyAttr())
    x = operand_def(T)
    factor = prop_def(IntegerAttr)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$x `by` $factor `->` type($result) attr-dict"


DIALECTS = [Dialect("ring", [AddOp, MulOp, SquareOp, ScaleOp])]
