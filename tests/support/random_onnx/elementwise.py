"""Elementwise nodes of every dtype."""

from __future__ import annotations

import numpy as np
from onnx import helper

from support.random_onnx.case import Value
from support.random_onnx.grower import BOOL, FLOATS, INTEGERS, WIDE, Grower

UNARY = (
    "Abs", "Neg", "Exp", "Sin", "Cos", "Tanh", "Sigmoid", "Erf", "Relu", "Softplus", "Softsign",
    "Ceil", "Floor", "Round", "Sign", "Atan", "Asinh", "HardSwish", "Mish", "Identity", "Selu",
    "Sinh", "Cosh", "Tan", "Asin", "Acos", "Atanh", "Acosh",
)  # fmt: skip
BINARY = ("Add", "Add", "Mul", "Mul", "Sub", "Div", "Max", "Min", "Pow", "Mean", "Sum")
COMPARE = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")


def numeric(v: Value) -> bool:
    return v.dtype != BOOL


def floating(v: Value) -> bool:
    return v.is_float


def unary(g: Grower) -> None:
    x, op_type = g.pick(numeric), g.rng.choice(UNARY)
    # onnxruntime's Sign of NaN is 0 for float16 and NaN for others; nothing is specified.
    if x is not None and (op_type != "Sign" or not np.isnan(x.array.astype(np.float64)).any()):
        g.add(op_type, [x])


def guarded(g: Grower) -> None:
    """Ops with a domain, on values inside it."""
    x = g.pick(floating)
    if x is None:
        return
    magnitude = g.add("Abs", [x], keep=False)
    one = g.weight(np.asarray(g.rng.choice((0.5, 1.0, 2.0)), x.dtype))
    positive = magnitude and g.add("Add", [magnitude[0], one])
    if positive:
        g.add(g.rng.choice(("Log", "Sqrt", "Reciprocal")), [positive[0]])


def activation(g: Grower) -> None:
    x = g.pick(floating)
    if x is None:
        return
    kind = g.rng.choice(
        ("LeakyRelu", "Elu", "Celu", "HardSigmoid", "ThresholdedRelu", "Gelu", "Shrink", "PRelu")
    )
    a = round(g.rng.uniform(0.1, 1.5), 3)
    match kind:
        case "HardSigmoid":
            g.add(kind, [x], alpha=a / 5, beta=round(g.rng.uniform(0.2, 0.6), 3))
        case "ThresholdedRelu":
            # By the specification alpha is rounded to the operand's type, onnxruntime's is not.
            g.add(kind, [x], alpha=round(8 * a) / 8)
        case "Gelu":
            g.add(kind, [x], approximate=g.rng.choice(("none", "tanh")))
        case "Shrink":
            # onnxruntime computes float64 in float32 here.
            if x.dtype == np.float64:
                return
            g.add(kind, [x], lambd=a, bias=g.rng.choice((0.0, 0.25)))
        case "PRelu":
            g.add(kind, [x, g.source(g.broadcastable(x.shape), x.dtype)])
        case _:
            g.add(kind, [x], alpha=a)


def clip(g: Grower) -> None:
    x = g.pick(numeric)
    if x is None:
        return
    low, high = sorted(g.rng.sample(range(0 if x.dtype.kind == "u" else -3, 5), 2))
    ends = [g.weight(np.asarray(v, x.dtype)) if g.chance(0.8) else None for v in (low, high)]
    g.add("Clip", [x, *ends])


def partner(g: Grower, x: Value) -> Value:
    """Another operand of the same dtype that broadcasts with x."""
    other = g.pick(lambda v: v.dtype == x.dtype and _broadcast(v.shape, x.shape))
    return (
        other
        if other is not None and g.chance(0.6)
        else g.source(g.broadcastable(x.shape), x.dtype)
    )


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def binary(g: Grower) -> None:
    x = g.pick(numeric)
    if x is None:
        return
    pair = [x, partner(g, x)]
    if g.chance(0.4):
        pair.reverse()
    kind = g.rng.choice(BINARY)
    if kind == "Div" and not x.is_float and np.any(pair[1].array == 0):
        return
    g.add(kind, pair)


def literal(g: Grower) -> None:
    """Arithmetic with one number: identities, roundings, scalings."""
    x = g.pick(floating)
    if x is None:
        return
    number = g.rng.choice((0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 0.1, 1e-3, 100.0, 1e-7))
    operand = g.weight(np.asarray(number, x.dtype).reshape(g.rng.choice(((), (1,)))))
    kind = g.rng.choice(("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"))
    pair = [x, operand] if g.chance(0.7) else [operand, x]
    y = g.add(kind, pair)
    if y and g.chance(0.3):  # and back
        g.add({"Add": "Sub", "Sub": "Add", "Mul": "Div"}.get(kind, "Mul"), [y[0], operand])


def mod(g: Grower) -> None:
    x = g.pick(numeric)
    if x is None:
        return
    y = partner(g, x)
    if x.is_float or not np.any(y.array == 0):
        g.add("Mod", [x, y], fmod=1 if x.is_float or g.chance(0.3) else 0)


def bits(g: Grower) -> None:
    x = g.pick(lambda v: v.dtype in INTEGERS or v.dtype in WIDE)
    if x is None:
        return
    if x.dtype.kind == "u" and g.chance(0.4):
        by = g.weight(g.numpy.integers(0, 5, g.broadcastable(x.shape)).astype(x.dtype))
        g.add("BitShift", [x, by], direction=g.rng.choice(("LEFT", "RIGHT")))
    elif g.chance(0.2):
        g.add("BitwiseNot", [x])
    else:
        g.add(g.rng.choice(("BitwiseAnd", "BitwiseOr", "BitwiseXor")), [x, partner(g, x)])


def compare(g: Grower) -> None:
    x = g.pick()
    if x is not None:
        g.add(g.rng.choice(COMPARE), [x, partner(g, x)])


def logic(g: Grower) -> None:
    x = g.pick(lambda v: v.dtype == BOOL)
    if x is None:
        return
    if g.chance(0.3):
        g.add("Not", [x])
    else:
        g.add(g.rng.choice(("And", "Or", "Xor")), [x, partner(g, x)])


def where(g: Grower) -> None:
    condition = g.pick(lambda v: v.dtype == BOOL)
    x = g.pick(lambda v: condition is not None and _broadcast(v.shape, condition.shape))
    if condition is not None and x is not None:
        pair = [x, partner(g, x)]
        if g.chance(0.5):
            pair.reverse()
        g.add("Where", [condition, *pair])


def tests(g: Grower) -> None:
    x = g.pick(floating)
    if x is not None:
        g.add(g.rng.choice(("IsNaN", "IsInf")), [x])


def cast(g: Grower) -> None:
    x = g.pick()
    if x is None:
        return
    to = g.rng.choice((*FLOATS, *FLOATS, *INTEGERS, *WIDE, BOOL))
    if x.is_float and to.kind in "iu":
        # Out of range the result is not specified.
        info = np.iinfo(to)
        wide = x.array.astype(np.float64)
        if not np.all((wide > info.min) & (wide < info.max)):
            return
    g.add("Cast", [x], to=helper.np_dtype_to_tensor_dtype(to))


def cast_through(g: Grower) -> None:
    """To a narrower float and back: rounds."""
    x = g.pick(lambda v: v.is_float and v.dtype != np.float16)
    if x is not None:
        narrow = g.rng.choice((10, 16, 16))  # FLOAT16, BFLOAT16
        back = helper.np_dtype_to_tensor_dtype(x.dtype)
        g.through(x, "Cast", {"to": narrow}, {"to": back})


FAMILIES = {
    unary: 9, guarded: 3, activation: 4, clip: 2, binary: 10, literal: 5, mod: 1, bits: 2,
    compare: 3, logic: 2, where: 3, tests: 1, cast: 5, cast_through: 1,
}  # fmt: skip
