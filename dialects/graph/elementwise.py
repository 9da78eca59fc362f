"""Elementwise ops: equal shapes in, the same shape out. Broadcasting is `graph.broadcast`.

Each op is its scalar function; `as_scopes`, inference and checks come from the three bases.
Arithmetic ops take all floats and signed integers; float-only ones set `FLOAT_ONLY`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FloatAttr, TensorType, i1
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from ..scalars import Call, Const, Expr, call
from ..scope_builder import (
    ScopeBuilder,
    Source,
    cast,
    maximum,
    minimum,
    select,
    sigmoid,
    softplus,
)
from ..types import Tensor, dims_of, is_bool, is_float, is_unsigned, tensor, to_numpy
from .base import GraphOp


class ElementwiseOp(GraphOp):
    """All operands of one shape; the result has that shape and the last operand's element type."""

    result = result_def(TensorType)
    FLOAT_ONLY: ClassVar[bool] = False
    BOOL_ONLY: ClassVar[bool] = False
    RETURNS_BOOL: ClassVar[bool] = False

    def scalar(self, *args: Expr) -> Expr:
        """The op at one point."""
        raise NotImplementedError(self.name)

    def result_element(self) -> Attribute:
        return i1 if self.RETURNS_BOOL else self.operand_type(len(self.operands) - 1).element_type

    def infer(self) -> Tensor:
        types = [self.operand_type(k) for k in range(len(self.operands))]
        shapes = [dims_of(t) for t in types]
        if any(shape != shapes[0] for shape in shapes):
            raise self.fail(
                "operands must have equal shapes",
                found=" and ".join(str(t) for t in types),
                hint="broadcast explicitly with graph.broadcast",
            )
        self._check_elements([t.element_type for t in types])
        return tensor(shapes[0], self.result_element())

    def _check_elements(self, elements: Sequence[Attribute]) -> None:
        if len(set(elements)) != 1:
            raise self.fail(
                "operands must have one element type", found=" and ".join(str(e) for e in elements)
            )
        element = elements[0]
        if self.BOOL_ONLY and not is_bool(element):
            raise self.fail_element("operands must be i1", element)
        if self.FLOAT_ONLY and not is_float(element):
            raise self.fail_element("operands must be floats", element)
        if not self.BOOL_ONLY and (is_unsigned(element) or is_bool(element)):
            raise self.fail_element("operands must be floats or signed integers", element)

    def as_scopes(self, build: ScopeBuilder, *operands: Source) -> Source:
        return build.pointwise(self.type, self.scalar(*(x.here() for x in operands)))


class UnaryOp(ElementwiseOp):
    """One operand."""

    x = operand_def(TensorType)


class BinaryOp(ElementwiseOp):
    """Two operands."""

    a = operand_def(TensorType)
    b = operand_def(TensorType)


def _unary(op_name: str, onnx: str, function: str, float_only: bool = True) -> type[UnaryOp]:
    """An op that is one function of the scalar table."""

    class Op(UnaryOp):
        name = f"graph.{op_name}"
        FLOAT_ONLY: ClassVar[bool] = float_only

        def scalar(self, *args: Expr) -> Expr:
            return call(function, *args)

    Op.__doc__ = f"{function}(x), elementwise. ONNX {onnx}."
    Op.__name__ = Op.__qualname__ = f"{op_name.title().replace('_', '')}Op"
    return irdl_op_definition(Op)


def _binary(op_name: str, onnx: str, function: str, **flags: bool) -> type[BinaryOp]:
    class Op(BinaryOp):
        name = f"graph.{op_name}"
        BOOL_ONLY: ClassVar[bool] = flags.get("bool_only", False)
        RETURNS_BOOL: ClassVar[bool] = flags.get("returns_bool", False)

        def scalar(self, *args: Expr) -> Expr:
            return call(function, *args)

    Op.__doc__ = f"{function}(a, b), elementwise. ONNX {onnx}."
    Op.__name__ = Op.__qualname__ = f"{op_name.title().replace('_', '')}Op"
    return irdl_op_definition(Op)


AbsOp = _unary("abs", "Abs", "abs", float_only=False)
NegOp = _unary("neg", "Neg", "neg", float_only=False)
ExpOp = _unary("exp", "Exp", "exp")
LogOp = _unary("log", "Log", "log")
SqrtOp = _unary("sqrt", "Sqrt", "sqrt")
TanhOp = _unary("tanh", "Tanh", "tanh")
ErfOp = _unary("erf", "Erf", "erf")
FloorOp = _unary("floor", "Floor", "floor")
CeilOp = _unary("ceil", "Ceil", "ceil")
RoundOp = _unary("round", "Round", "roundeven")
SinOp = _unary("sin", "Sin", "sin")
CosOp = _unary("cos", "Cos", "cos")
TanOp = _unary("tan", "Tan", "tan")
AsinOp = _unary("asin", "Asin", "asin")
AcosOp = _unary("acos", "Acos", "acos")
AtanOp = _unary("atan", "Atan", "atan")
SinhOp = _unary("sinh", "Sinh", "sinh")
CoshOp = _unary("cosh", "Cosh", "cosh")
AsinhOp = _unary("asinh", "Asinh", "asinh")
AcoshOp = _unary("acosh", "Acosh", "acosh")
AtanhOp = _unary("atanh", "Atanh", "atanh")

AddOp = _binary("add", "Add", "add")
SubOp = _binary("sub", "Sub", "sub")
MulOp = _binary("mul", "Mul", "mul")
DivOp = _binary("div", "Div", "div")
MaxOp = _binary("max", "Max", "max")
MinOp = _binary("min", "Min", "min")
PowOp = _binary("pow", "Pow", "pow")
EqualOp = _binary("equal", "Equal", "eq", returns_bool=True)
LessOp = _binary("less", "Less", "lt", returns_bool=True)
LessEqualOp = _binary("less_equal", "LessOrEqual", "le", returns_bool=True)
GreaterOp = _binary("greater", "Greater", "gt", returns_bool=True)
GreaterEqualOp = _binary("greater_equal", "GreaterOrEqual", "ge", returns_bool=True)
AndOp = _binary("and", "And", "and", bool_only=True)
OrOp = _binary("or", "Or", "or", bool_only=True)
XorOp = _binary("xor", "Xor", "xor", bool_only=True)


@irdl_op_definition
class ReluOp(UnaryOp):
    """max(x, 0), NaN kept. ONNX Relu."""

    name = "graph.relu"

    def scalar(self, *args: Expr) -> Expr:
        return maximum(args[0], 0)


@irdl_op_definition
class SigmoidOp(UnaryOp):
    """1 / (1 + exp(-x)). ONNX Sigmoid."""

    name = "graph.sigmoid"
    FLOAT_ONLY: ClassVar[bool] = True

    def scalar(self, *args: Expr) -> Expr:
        return sigmoid(args[0])


@irdl_op_definition
class SoftplusOp(UnaryOp):
    """log(1 + exp(x)). ONNX Softplus."""

    name = "graph.softplus"
    FLOAT_ONLY: ClassVar[bool] = True

    def scalar(self, *args: Expr) -> Expr:
        return softplus(args[0])


@irdl_op_definition
class ReciprocalOp(UnaryOp):
    """1 / x. ONNX Reciprocal."""

    name = "graph.reciprocal"
    FLOAT_ONLY: ClassVar[bool] = True

    def scalar(self, *args: Expr) -> Expr:
        return 1.0 / args[0]


@irdl_op_definition
class LeakyReluOp(UnaryOp):
    """x where x >= 0, alpha * x elsewhere. ONNX LeakyRelu."""

    name = "graph.leaky_relu"
    alpha = prop_def(FloatAttr)
    FLOAT_ONLY: ClassVar[bool] = True
    DEFAULTS: ClassVar = {"alpha": 0.01}

    def scalar(self, *args: Expr) -> Expr:
        return select(call("lt", args[0], 0.0), self.value("alpha") * args[0], args[0])


@irdl_op_definition
class EluOp(UnaryOp):
    """x where x >= 0, alpha * (exp(x) - 1) elsewhere. ONNX Elu."""

    name = "graph.elu"
    alpha = prop_def(FloatAttr)
    FLOAT_ONLY: ClassVar[bool] = True
    DEFAULTS: ClassVar = {"alpha": 1.0}

    def scalar(self, *args: Expr) -> Expr:
        return select(
            call("lt", args[0], 0.0), self.value("alpha") * call("expm1", args[0]), args[0]
        )


@irdl_op_definition
class HardSigmoidOp(UnaryOp):
    """max(0, min(1, alpha * x + beta)). ONNX HardSigmoid."""

    name = "graph.hard_sigmoid"
    alpha = prop_def(FloatAttr)
    beta = prop_def(FloatAttr)
    FLOAT_ONLY: ClassVar[bool] = True
    DEFAULTS: ClassVar = {"alpha": 0.2, "beta": 0.5}

    def scalar(self, *args: Expr) -> Expr:
        return maximum(0.0, minimum(1.0, self.value("alpha") * args[0] + self.value("beta")))


@irdl_op_definition
class ClipOp(UnaryOp):
    """min(max(x, min), max) with literal bounds. ONNX Clip, Relu6."""

    name = "graph.clip"
    min = prop_def(FloatAttr)
    max = prop_def(FloatAttr)
    DEFAULTS: ClassVar = {"min": float("-inf"), "max": float("inf")}

    def scalar(self, *args: Expr) -> Expr:
        low, high = self.value("min"), self.value("max")
        x = args[0] if low == float("-inf") else maximum(args[0], low)
        return x if high == float("inf") else minimum(x, high)


@irdl_op_definition
class NotOp(UnaryOp):
    """Logical not. ONNX Not."""

    name = "graph.not"
    BOOL_ONLY: ClassVar[bool] = True

    def scalar(self, *args: Expr) -> Expr:
        return Call("xor", (args[0], Const(True)))


@irdl_op_definition
class IsNanOp(UnaryOp):
    """x != x. ONNX IsNaN."""

    name = "graph.is_nan"
    FLOAT_ONLY: ClassVar[bool] = True
    RETURNS_BOOL: ClassVar[bool] = True

    def scalar(self, *args: Expr) -> Expr:
        return call("ne", args[0], args[0])


@irdl_op_definition
class SignOp(UnaryOp):
    """-1, 0 or 1; NaN stays NaN. ONNX Sign."""

    name = "graph.sign"

    def scalar(self, *args: Expr) -> Expr:
        return select(
            call("gt", args[0], 0), 1, select(call("lt", args[0], 0), -1, call("abs", args[0]))
        )


@irdl_op_definition
class CastOp(ElementwiseOp):
    """Convert the element type: floats to integers truncate and saturate, NaN gives 0. ONNX Cast.

    To a narrower float it rounds, and overflows to infinity (to NaN in a type without, as Cast with
    saturate 0; small_floats.py has those of 8 and 4 bits). Integers wrap. Unsigned integers,
    integers of 2 and 4 bits and floats of 8 and 4 bits are data: this op and those that move data
    take them.
    """

    name = "graph.cast"
    MOVES: ClassVar[bool] = True
    x = operand_def(TensorType)
    to = prop_def(Attribute)

    def infer(self) -> Tensor:
        source, target = self.operand_type(0), self.value("to")
        to_numpy(target)  # raises if the target is not an element type
        return tensor(dims_of(source), target)

    def scalar(self, *args: Expr) -> Expr:
        return cast(self.value("to"), args[0])


@irdl_op_definition
class WhereOp(ElementwiseOp):
    """a where condition, b elsewhere. ONNX Where."""

    name = "graph.where"
    MOVES: ClassVar[bool] = True
    condition = operand_def(TensorType)
    a = operand_def(TensorType)
    b = operand_def(TensorType)

    def _check_elements(self, elements: Sequence[Attribute]) -> None:
        if not is_bool(elements[0]) or elements[1] != elements[2]:
            raise self.fail(
                "a boolean condition and two operands of one type are needed",
                found=" and ".join(str(e) for e in elements),
            )

    def scalar(self, *args: Expr) -> Expr:
        return select(*args)


ELEMENTWISE_OPS = tuple(
    op
    for op in list(globals().values())
    if isinstance(op, type) and issubclass(op, GraphOp) and "name" in op.__dict__
)
