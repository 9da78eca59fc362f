"""Random elementwise ops: arithmetic, functions in their domain, comparisons, casts, booleans."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from ...dialects.types import (
    element_of,
    is_bool,
    is_float,
    is_signed_int,
    is_unsigned,
    shape_of,
    to_numpy,
)
from .grower import Grower, is_arithmetic

ANY_FLOAT = (
    *("neg", "abs", "relu", "tanh", "sigmoid", "erf", "sin", "cos", "atan", "asinh", "sign"),
    "softplus",
)
STEPS = ("floor", "ceil", "round")
BOUNDED = ("exp", "tan", "asin", "acos", "sinh", "cosh", "atanh")
POSITIVE = ("log", "sqrt", "reciprocal")
BINARY = ("add", "sub", "mul", "max", "min")
COMPARISONS = ("equal", "less", "less_equal", "greater", "greater_equal")


def unary(g: Grower) -> SSAValue:
    """A function of one float, with an argument that is nearly always in its domain."""
    x = g.float()
    kind = g.rng.random()
    if kind < 0.55:
        return g.b.op(g.rng.choice(ANY_FLOAT), x)
    if kind < 0.65:
        return g.b.op(g.rng.choice(STEPS), x)
    if kind < 0.8:
        name = g.rng.choice(BOUNDED)
        return g.b.op(name, x if name == "exp" and g.chance(0.2) else g.bounded(x))
    if kind < 0.95:
        return g.b.op(g.rng.choice(POSITIVE), g.positive(x))
    return g.b.acosh(g.positive(x, 1.5))


def activation(g: Grower) -> SSAValue:
    """An op with literal parameters."""
    x = g.float()
    match g.rng.randrange(5):
        case 0:
            return g.b.leaky_relu(x, alpha=g.rng.choice((2.0**-7, 0.25)))
        case 1:
            return g.b.elu(x, alpha=g.rng.choice((1.0, 0.5)))
        case 2:
            return g.b.hard_sigmoid(x)
        case 3:
            low = g.rng.choice((float("-inf"), -0.75, 0.0))
            return g.b.clip(x, min=low, max=g.rng.choice((float("inf"), 0.5, 6.0)))
        case _:
            return g.b.mul(x, g.b.sigmoid(x))


def binary(g: Grower) -> SSAValue:
    """Arithmetic on two floats."""
    x = g.float()
    y = g.partner(x)
    kind = g.rng.random()
    if kind < 0.8:
        a, b = (x, y) if g.chance(0.5) else (y, x)
        return g.b.op(g.rng.choice(BINARY), a, b)
    if kind < 0.93:
        return g.b.div(x, g.positive(y))
    return g.b.pow(g.positive(x), g.bounded(y))


def integer(g: Grower) -> SSAValue:
    """Arithmetic on integers, which is exact: any difference is a bug."""
    x = g.any(lambda v: is_signed_int(element_of(v)))
    if not is_signed_int(element_of(x)):
        return g.b.neg(x) if is_float(element_of(x)) else x
    y = g.partner(x)
    match g.rng.randrange(8):
        case 0:
            return g.b.op(g.rng.choice(("neg", "abs", "sign", "relu")), x)
        case 1:
            return g.b.div(x, y)
        case 2:
            return g.b.pow(x, g.constant_like(x, g.rng.randint(0, 2)))
        case 3:
            return g.b.clip(x, min=-2.0, max=3.0)
        case _:
            return g.b.op(g.rng.choice(BINARY), x, y)


def compare(g: Grower) -> SSAValue:
    """A comparison, or is_nan."""
    x = g.any(is_arithmetic)
    if not is_arithmetic(x):
        return x
    if is_float(element_of(x)) and g.chance(0.1):
        return g.b.is_nan(x)
    return g.b.op(g.rng.choice(COMPARISONS), x, g.partner(x))


def boolean(g: Grower) -> SSAValue:
    """Logic on booleans."""
    x = g.pick(lambda v: is_bool(element_of(v)))
    if x is None:
        x = compare(g)
    if not is_bool(element_of(x)):
        x = g.b.cast(x, to=i1) if not is_unsigned(element_of(x)) else g.fresh([2, 3], i1)
    if g.chance(0.3):
        return g.b.not_(x)
    return g.b.op(g.rng.choice(("and", "or", "xor")), x, g.partner(x))


def where(g: Grower) -> SSAValue:
    """A choice between two values of any type."""
    a = g.any()
    shape = shape_of(a)
    condition = g.pick(lambda v: is_bool(element_of(v)) and shape_of(v) == shape)
    if condition is None:
        condition = g.fresh(shape, i1)
    return g.b.where(condition, a, g.partner(a))


def cast(g: Grower) -> SSAValue:
    """A conversion; floats are scaled first, so that not all integers are 0."""
    x = g.any(lambda v: not is_unsigned(element_of(v)))
    if is_unsigned(element_of(x)):
        return x
    targets = [e for e in (*g.floats, *g.others) if not is_unsigned(e)]
    target = g.rng.choice(targets)
    if is_float(element_of(x)) and not is_float(target):
        x = g.b.mul(g.bounded(x), g.constant_like(x, 5.0))
    return g.b.cast(x, to=target)


def special(g: Grower) -> SSAValue:
    """A constant that arithmetic does not make: an extreme of its type, a negative zero."""
    element = g.element()
    dtype = to_numpy(element)
    if is_float(element):
        numbers = [0.0, 1.0, -1.0, 1e-3, 100.0]
    else:
        numbers = [0, 1]
    return g.literal(
        np.asarray(g.rng.choice(numbers)).astype(dtype).reshape([1] * g.rng.randint(0, 2))
    )
