"""Elementwise ops on every dtype, their wrapping and their corners included."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from support.random_nodes.draw import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    UNSIGNED,
    Draw,
    Generator,
    Sample,
)


def two_shapes(d: Draw) -> tuple[list[int], list[int]]:
    """Shapes that broadcast together."""
    full = d.shape(0, 3)
    cut = d.int(0, len(full)) if d.flag(0.3) else 0
    return full, [1 if d.flag(0.2) else n for n in full[cut:]]


def unary(op_type: str, dtypes: tuple[str, ...], first: int = 7, **ranges: float) -> Generator:
    def draw(d: Draw) -> Sample:
        return Sample(
            op_type, [d.array(d.pick(dtypes), d.shape(), **ranges)], {}, d.opset(op_type, first)
        )

    return draw


def binary(
    op_type: str, dtypes: tuple[str, ...], first: int = 7, extreme: bool = True, zeros: bool = True
) -> Generator:
    def draw(d: Draw) -> Sample:
        dtype = d.pick(dtypes)
        shapes = two_shapes(d)
        wide = extreme and dtype not in ("bool", *FLOATS) and d.flag(0.3)
        a, b = (d.extreme(dtype, s) if wide else d.array(dtype, s) for s in shapes)
        if not zeros:
            b = np.where(b == 0, np.ones_like(b), b)
            if np.dtype(dtype).kind == "i":  # the least number by -1 has no result
                b = np.where(b == -1, np.ones_like(b), b)
        return Sample(op_type, [a, b], {}, d.opset(op_type, first))

    return draw


def variadic(op_type: str, dtypes: tuple[str, ...]) -> Generator:
    def draw(d: Draw) -> Sample:
        dtype, (full, other) = d.pick(dtypes), two_shapes(d)
        shapes = [full, other, full][: d.int(1, 3)]
        return Sample(op_type, [d.array(dtype, s) for s in shapes], {}, d.opset(op_type, 8))

    return draw


def mod(d: Draw) -> Sample:
    dtype = d.pick(NUMBERS)
    a, b = (d.array(dtype, s, -9, 9) for s in two_shapes(d))
    b = np.where(np.abs(b) < 0.1, np.ones_like(b), b)
    fmod = dtype in FLOATS or d.flag()
    return Sample("Mod", [a, b], {"fmod": 1} if fmod else {}, d.opset("Mod"))


def power(d: Draw) -> Sample:
    base, exponent = (
        d.pick(("float32", "float64", "int32", "int64")),
        d.pick(("float32", "float64", "int32", "int64")),
    )
    a, b = two_shapes(d)
    low = 0.1 if base in FLOATS else 0
    return Sample("Pow", [d.array(base, a, low, 3), d.array(exponent, b, 0, 3)], {}, d.int(12, 23))


def bit_shift(d: Draw) -> Sample:
    dtype, (a, b) = d.pick(UNSIGNED), two_shapes(d)
    direction = d.pick(["LEFT", "RIGHT"])
    bits = np.dtype(dtype).itemsize * 8
    return Sample(
        "BitShift",
        [d.extreme(dtype, a), d.array(dtype, b, 0, bits - 1)],
        {"direction": direction},
        d.opset("BitShift"),
    )


def cast(d: Draw) -> Sample:
    """In range: what a cast does to numbers out of range is left open."""
    source, target = d.pick((*NUMBERS, "bool")), d.pick((*NUMBERS, "bool"))
    low, high = (-100.0, 100.0) if target not in UNSIGNED else (0.0, 100.0)
    wide = source in INTEGERS and target in INTEGERS
    x = d.extreme(source, d.shape()) if wide else d.array(source, d.shape(), low, high)
    like = d.array(target, d.shape())
    if d.flag(0.2):
        return Sample("CastLike", [x, like], {}, d.opset("CastLike"))
    number = helper.np_dtype_to_tensor_dtype(like.dtype)
    return Sample("Cast", [x], {"to": number}, d.opset("Cast"))


def clip(d: Draw) -> Sample:
    dtype = d.pick(("float32", "float64", "int8", "uint8", "int32", "uint32", "int64", "uint64"))
    x = d.extreme(dtype, d.shape()) if d.flag(0.3) else d.array(dtype, d.shape(), -9, 9)
    low = d.array(dtype, [], -3, 1) if d.flag(0.8) else None
    high = d.array(dtype, [], -1, 4) if d.flag(0.8) else None
    constants = [k for k, v in ((1, low), (2, high)) if v is not None and d.flag()]
    return Sample("Clip", [x, low, high], {}, d.int(12, 23), constants=constants)


def clip_old(d: Draw) -> Sample:
    given: dict[str, Any] = {}
    if d.flag(0.8):
        given["min"] = d.float(-2, 0)
    if d.flag(0.8):
        given["max"] = d.float(0, 2)
    return Sample("Clip", [d.array("float32", d.shape())], given, d.int(7, 10))


def where(d: Draw) -> Sample:
    dtype, (a, b) = d.pick((*NUMBERS, "bool")), two_shapes(d)
    return Sample(
        "Where", [d.array("bool", a), d.array(dtype, b), d.array(dtype, a)], {}, d.opset("Where")
    )


def prelu(d: Draw) -> Sample:
    dtype, a = d.pick((*FLOATS, "int32", "uint32", "int64", "uint64")), d.shape(1, 4)
    slope = [1 if d.flag(0.4) else n for n in a[d.int(0, len(a) - 1) :]]
    return Sample("PRelu", [d.array(dtype, a), d.array(dtype, slope)], {}, d.opset("PRelu"))


def is_inf(d: Draw) -> Sample:
    x = d.array(d.pick(("float32", "float64")), d.shape())
    x = np.where(
        d.rng.random(x.shape) < 0.4, d.rng.choice([np.inf, -np.inf, np.nan], x.shape), x
    ).astype(x.dtype)
    given = {k: d.int(0, 1) for k in ("detect_negative", "detect_positive") if d.flag()}
    return Sample("IsInf", [x], given, d.opset("IsInf"))


def with_numbers(op_type: str, *names: str, dtypes: tuple[str, ...] = ("float32",)) -> Generator:
    def draw(d: Draw) -> Sample:
        given = {n: d.float(0.1, 1.5) for n in names if d.flag(0.7)}
        return Sample(op_type, [d.array(d.pick(dtypes), d.shape(1))], given, d.opset(op_type))

    return draw


def swish(d: Draw) -> Sample:
    given = {"alpha": d.float(0.3, 1.5)} if d.flag() else {}
    return Sample("Swish", [d.array("float32", d.shape())], given, 24)


_ARITHMETIC = (*FLOATS, *INTEGERS)
_ORDERED = (*FLOATS, *INTEGERS)
GENERATORS: dict[str, Generator] = {
    **{op: binary(op, _ARITHMETIC) for op in ("Add", "Sub", "Mul")},
    "Div": binary("Div", _ARITHMETIC, zeros=False),
    **{op: variadic(op, _ARITHMETIC) for op in ("Max", "Min")},
    **{op: variadic(op, FLOATS) for op in ("Sum", "Mean")},
    **{op: binary(op, _ORDERED) for op in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual")},
    "Equal": binary("Equal", (*_ORDERED, "bool")),
    **{op: binary(op, ("bool",)) for op in ("And", "Or", "Xor")},
    **{op: binary(op, INTEGERS) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")},
    "BitwiseNot": unary("BitwiseNot", INTEGERS),
    "BitShift": bit_shift,
    "Mod": mod,
    "Pow": power,
    "Cast": cast,
    "Clip": clip,
    "Clip-old": clip_old,
    "Where": where,
    "PRelu": prelu,
    "IsInf": is_inf,
    **{op: unary(op, _ARITHMETIC) for op in ("Abs", "Sign")},
    "Neg": unary("Neg", (*FLOATS, *SIGNED)),
    "Relu": unary("Relu", (*FLOATS, *SIGNED)),
    **{
        op: unary(op, ("float32", "float64", "float16"))
        for op in (
            "Ceil",
            "Floor",
            "Round",
            "Exp",
            "Sigmoid",
            "Tanh",
            "Erf",
            "Sin",
            "Cos",
            "IsNaN",
            "Softplus",
            "Softsign",
            "HardSwish",
            "Mish",
        )
    },
    **{op: unary(op, ("float32",), low=0.1, high=3) for op in ("Sqrt", "Reciprocal", "Log")},
    "Not": unary("Not", ("bool",)),
    "Identity": unary("Identity", (*NUMBERS, "bool")),
    **{op: unary(op, ("float32",), low=-1, high=1) for op in ("Acos", "Asin", "Atan", "Atanh")},
    **{op: unary(op, ("float32",)) for op in ("Asinh", "Cosh", "Sinh", "Tan")},
    "Acosh": unary("Acosh", ("float32",), low=1, high=3),
    "Swish": swish,
    "Elu": with_numbers("Elu", "alpha"),
    "Celu": with_numbers("Celu", "alpha"),
    "Selu": with_numbers("Selu", "alpha", "gamma"),
    "LeakyRelu": with_numbers("LeakyRelu", "alpha"),
    "ThresholdedRelu": with_numbers("ThresholdedRelu", "alpha"),
    "HardSigmoid": with_numbers("HardSigmoid", "alpha", "beta"),
    "Shrink": with_numbers("Shrink", "lambd", "bias", dtypes=NUMBERS),
}
