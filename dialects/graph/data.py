"""Sources of tensors (weights, constants), and ops whose meaning depends on data or on ONNX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from ..index_range import check_range
from ..program import where
from ..types import Array, Tensor, dims_of, is_float, tensor, tensor_type, to_numpy
from ..xdsl_repairs import install as repair_dense_literals
from .base import GraphOp, ints_def

repair_dense_literals()


@irdl_op_definition
class WeightOp(IRDLOperation):
    """A tensor of the weight store, by name: data never appears in the IR text."""

    name = "graph.weight"
    symbol = prop_def(SymbolRefAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$symbol attr-dict `:` type($result)"

    def __init__(self, symbol: str, result_type: Tensor):
        super().__init__(properties={"symbol": SymbolRefAttr(symbol)}, result_types=[result_type])

    @property
    def key(self) -> str:
        """Name in the weight store."""
        return self.symbol.root_reference.data

    @property
    def type(self) -> Tensor:
        return tensor_type(self.result)


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A small literal tensor, in the text."""

    name = "graph.constant"
    data = prop_def(DenseIntOrFPElementsAttr)
    result = result_def(TensorType)
    traits = traits_def(Pure(), ConstantLike())

    def __init__(self, array: Array, element: Attribute):
        type_ = tensor(array.shape, element)
        flat = np.ascontiguousarray(array, dtype=to_numpy(element)).ravel()
        if is_float(element):
            data = DenseIntOrFPElementsAttr.from_list(type_, [float(v) for v in flat])  # pyright: ignore
        else:
            data = DenseIntOrFPElementsAttr.from_list(type_, [int(v) for v in flat])  # pyright: ignore
        super().__init__(properties={"data": data}, result_types=[type_])

    @property
    def type(self) -> Tensor:
        return tensor_type(self.result)

    def verify_(self) -> None:
        if self.data.get_type() != self.result.type:
            raise VerifyException("the literal's type is not the result's type")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.data)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ConstantOp:
        position = parser.pos
        data = parser.parse_attribute()
        if not isinstance(data, DenseIntOrFPElementsAttr):
            parser.raise_error(
                "graph.constant needs a `dense<...> : tensor<...>` literal", position, parser.pos
            )
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls.create(properties={"data": data}, result_types=[data.get_type()])
        op.attributes |= {} if attributes is None else attributes.data
        return op

    def array(self) -> Array:
        """The literal as a numpy array of its own dtype and shape."""
        values = list(self.data.get_values())
        return np.array(values, dtype=to_numpy(self.type.element_type)).reshape(dims_of(self.type))


@irdl_op_definition
class GatherOp(GraphOp):
    """Slices of `x` along `axis` at integer positions: x[.., indices, ..]. ONNX Gather.

    Negative indices count from the end. An index outside [-size, size) is an error when the
    program runs. Not a tensor expression: reads depend on data.
    """

    name = "graph.gather"
    MOVES: ClassVar[bool] = True
    x = operand_def(TensorType)
    indices = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"axis": 0}

    def infer(self) -> Tensor:
        x, indices, axis = self.operand_type(0), self.operand_type(1), self.value("axis")
        shape = dims_of(x)
        if not 0 <= axis < len(shape):
            raise self.fail(f"axis {axis} is not in [0, {len(shape)})")
        if str(indices.element_type) not in ("i32", "i64"):
            raise self.fail("indices are i32 or i64", found=indices)
        return tensor([*shape[:axis], *dims_of(indices), *shape[axis + 1 :]], x.element_type)

    def reference(self, *operands: Array) -> Sequence[Array]:
        x, indices = operands
        size, axis = x.shape[self.value("axis")], self.value("axis")
        check_range(indices, size, where(self))
        return [np.take(x, indices % size if size else indices, axis=axis)]


@irdl_op_definition
class IotaOp(GraphOp):
    """The whole numbers `start + step * i`, i in [0, size), each a list of one. ONNX Range."""

    name = "graph.iota"
    start = ints_def()
    size = ints_def()
    step = ints_def()
    result = result_def(TensorType)
    DEFAULTS: ClassVar = {"start": [0], "step": [1]}

    def infer(self) -> Tensor:
        from xdsl.dialects.builtin import i64

        for name in ("start", "size", "step"):
            if len(self.ints(name)) != 1:
                raise self.fail(f"'{name}' is a list of one number", found=list(self.ints(name)))
        return tensor(self.ints("size"), i64)

    def reference(self, *operands: Array) -> Sequence[Array]:
        (start,), (size,), (step,) = (self.ints(name) for name in ("start", "size", "step"))
        return [start + step * np.arange(size, dtype=np.int64)]


@irdl_op_definition
class ArgMaxOp(GraphOp):
    """Position of the (first) maximum along `axis`, extent 1 kept. ONNX ArgMax."""

    name = "graph.arg_max"
    x = operand_def(TensorType)
    axis = prop_def(IntegerAttr)
    result = result_def(TensorType)

    def infer(self) -> Tensor:
        from xdsl.dialects.builtin import i64

        x, axis = self.operand_type(0), self.value("axis")
        shape = dims_of(x)
        if not 0 <= axis < len(shape) or shape[axis] == 0:
            raise self.fail(f"axis {axis} is not in [0, {len(shape)}), or empty", found=x)
        return tensor([*shape[:axis], 1, *shape[axis + 1 :]], i64)

    def reference(self, *operands: Array) -> Sequence[Array]:
        return [np.argmax(operands[0], axis=self.value("axis"), keepdims=True)]


@irdl_op_definition
class OpaqueOp(IRDLOperation):
    """An ONNX node kept unchanged: run by onnx.reference, never rewritten, always reported.

    `node` is the serialised NodeProto in hexadecimal, `opset` its "domain=version" list. Operands
    are the node's own, then what its subgraphs read from outside (`opaque.outer_names`).
    """

    name = "graph.opaque"
    inputs = var_operand_def(TensorType)
    op_type = prop_def(StringAttr)
    node = prop_def(StringAttr)
    opset = prop_def(ArrayAttr[StringAttr])
    outputs = var_result_def(TensorType)
    assembly_format = (
        "$op_type `(` $inputs `)` `node` $node `opset` $opset attr-dict `:` "
        "functional-type($inputs, $outputs)"
    )

    def __init__(
        self,
        op_type: str,
        inputs: Sequence[SSAValue],
        node: bytes,
        opset: Sequence[str],
        result_types: Sequence[Tensor],
    ):
        super().__init__(
            operands=[inputs],
            properties={
                "op_type": StringAttr(op_type),
                "node": StringAttr(node.hex()),
                "opset": ArrayAttr(StringAttr(entry) for entry in opset),
            },
            result_types=[result_types],
        )

    def verify_(self) -> None:
        if re.fullmatch(r"([0-9a-f]{2})*", self.node.data) is None:
            raise VerifyException("the node is not written in hexadecimal")
        if bad := [e.data for e in self.opset if re.fullmatch(r"[^=]*=\d+", e.data) is None]:
            raise VerifyException(f"opset entries read 'domain=version', found '{bad[0]}'")


DATA_OPS = (WeightOp, ConstantOp, GatherOp, IotaOp, ArgMaxOp, OpaqueOp)
