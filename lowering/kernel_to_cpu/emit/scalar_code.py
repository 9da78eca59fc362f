"""Emit a scope's scalar body: one emitter call per `arith`/`math` op, scalars and vectors alike.

A body is computed as it is written, each op rounded by itself: no fast-math flag stands on it. A
sum over iterators is a contraction; there the product that is added may be rounded once with its
addition (fma), and the order of the additions is the generator's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ....dialects.errors import UserError
from ....dialects.kernel import FAST_MATH
from ....dialects.scalars import function_of
from ....dialects.types import integer_range, is_storage
from . import avx512, mathlib
from .access import compute_type, narrowed, rounded
from .emitter import Emitter
from .types import F64, I1, I32, I64, Type, Value, constant
from .unsigned import UNSIGNED

Emit = Callable[[Emitter, Sequence[Value]], Value]

# Of a sum's additions, and of the product that each adds. LLVM contracts where both allow it. No
# `reassoc`: the generator orders the additions, and LLVM would cancel what bodies put in.
ALLOW_CONTRACT = "nsz contract"
# Of everything in a kernel that `fast-math` marked.
FAST = "nsz contract reassoc"
# Which of two zeros of either sign is greater, IEEE 754 leaves open: it costs instructions to say.
_EXTREME = "nsz"

_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def _divide(b: Emitter, args: Sequence[Value]) -> Value:
    """Integers never trap: x / 0 is 0, x / -1 is -x."""
    x, y = args
    if x.type.is_float:
        scalar = b.scalar_of(y) if avx512.has(x.type) else None
        return b.div(x, y) if scalar is None else avx512.divided(b, x, scalar)
    zero, minus = b.compare("eq", y, 0), b.compare("eq", y, -1)
    quotient = b.div(x, b.select(b.logic("or", zero, minus), constant(y.type, 1), y))
    return b.select(zero, constant(x.type, 0), b.select(minus, b.negate(x), quotient))


def _remainder(b: Emitter, args: Sequence[Value]) -> Value:
    x, y = args
    if x.type.is_float:
        return b.rem(x, y)
    trivial = b.logic("or", b.compare("eq", y, 0), b.compare("eq", y, -1))
    return b.select(
        trivial, constant(x.type, 0), b.rem(x, b.select(trivial, constant(y.type, 1), y))
    )


def _absolute(b: Emitter, args: Sequence[Value]) -> Value:
    (x,) = args
    return b.unary("fabs", x) if x.type.is_float else b.maximum(x, b.negate(x))


def _power(b: Emitter, args: Sequence[Value]) -> Value:
    x, y = args
    if x.type.is_float:
        return mathlib.pow(b, x, y)
    wide = mathlib.pow(b, b.cast(x, F64), b.cast(y, F64))
    return b.cast(b.cast(wide, I64), x.type.element)  # wraps at its own width


def _extreme(name: str) -> Emit:
    def emit(b: Emitter, args: Sequence[Value]) -> Value:
        with b.flags(_EXTREME):
            return b.maximum(*args) if name == "maximum" else b.minimum(*args)

    return emit


def _intrinsic(name: str) -> Emit:
    return lambda b, args: b.unary(name, args[0])


def _libm(name: str) -> Emit:
    return lambda b, args: mathlib.libm(b, name, *args)


# One line per scalar function of dialects/scalars.py; a test checks that none is missing.
EMIT: dict[str, Emit] = {
    "add": lambda b, a: b.logic("xor", *a) if a[0].type.element == I1 else b.add(*a),
    "sub": lambda b, a: b.sub(*a),
    "mul": lambda b, a: b.mul(*a),
    "div": _divide,
    "rem": _remainder,
    "max": _extreme("maximum"),
    "min": _extreme("minimum"),
    "pow": _power,
    "neg": lambda b, a: b.negate(a[0]),
    "abs": _absolute,
    "exp": lambda b, a: mathlib.exp(b, a[0]),
    "expm1": lambda b, a: mathlib.expm1(b, a[0]),
    "log": lambda b, a: mathlib.log(b, a[0]),
    "log1p": lambda b, a: mathlib.log1p(b, a[0]),
    "tanh": lambda b, a: mathlib.tanh(b, a[0]),
    "erf": lambda b, a: mathlib.erf(b, a[0]),
    "sqrt": _intrinsic("sqrt"),
    "rsqrt": lambda b, a: b.div(constant(a[0].type, 1.0), b.unary("sqrt", a[0])),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "roundeven": _intrinsic("roundeven"),
    "sin": lambda b, a: mathlib.sin(b, a[0]),
    "cos": lambda b, a: mathlib.cos(b, a[0]),
    **{name: _libm(name) for name in ("tan", "asin", "acos", "atan", "atan2")},
    **{name: _libm(name) for name in ("sinh", "cosh", "asinh", "acosh", "atanh")},
    **{name: (lambda b, a, n=name: b.compare(n, *a)) for name in _COMPARISONS},
    "and": lambda b, a: b.logic("and", *a),
    "or": lambda b, a: b.logic("or", *a),
    "xor": lambda b, a: b.logic("xor", *a),
    "select": lambda b, a: b.select(*a),
}


def emit_body(
    b: Emitter, block: Block, arguments: Sequence[Value], lanes: int, *, summed: bool = False
) -> Value:
    """Emit the body on its arguments' values (all with `lanes` lanes, in compute types).

    Args:
        summed: a sum over iterators adds the result: its last op may contract with the addition.
    """
    values: dict[SSAValue, Value] = dict(zip(block.args, arguments, strict=True))
    last = block.last_op
    assert last is not None
    result = last.operands[0]
    written = FAST if _is_fast(block) else ""
    for op in block.ops:
        if op.results:
            with b.flags(
                written or ALLOW_CONTRACT if summed and op.results[0] is result else written
            ):
                values[op.results[0]] = emit_op(b, op, values, lanes)
    return values[result]


def _is_fast(block: Block) -> bool:
    """Whether the body is of a kernel that the `fast-math` pass marked."""
    scope = block.parent_op()
    kernel = None if scope is None else scope.parent_op()
    return kernel is not None and FAST_MATH in kernel.attributes


def emit_op(b: Emitter, op: Operation, values: Mapping[SSAValue, Value], lanes: int) -> Value:
    """Emit one op of a body on its operands' values, all with `lanes` lanes."""
    target = compute_type(op.results[0].type)
    if isinstance(op, arith.ConstantOp):
        return constant(target.vector(lanes), _literal(op))
    args = [values[v] for v in op.operands]
    name = function_of(op)
    if name is not None:
        return EMIT[name](b, args)
    element = op.results[0].type
    if isinstance(op, arith.FPToUIOp | arith.FPToSIOp):
        return _saturated(b, args[0], element, signed=isinstance(op, arith.FPToSIOp))
    if type(op) in UNSIGNED:
        return UNSIGNED[type(op)](b, op, args)
    if len(args) == 1:  # every other op of a body is a cast
        signed = not isinstance(op, arith.ExtUIOp | arith.UIToFPOp)
        value = narrowed(b, args[0], op.operands[0].type, signed=signed)
        return rounded(b, narrowed(b, b.cast(value, target, signed=signed), element), element)
    raise UserError(f"no CPU code for {op.name}")


def _saturated(b: Emitter, x: Value, element: Attribute, *, signed: bool) -> Value:
    """A float as an integer; what leaves the type becomes its least or greatest number, NaN 0.

    Short integers are cut as floats, which hold their ends: LLVM's saturation takes many times the
    instructions.
    """
    target = compute_type(element)
    if target.bits > 16 and not is_storage(element):
        return b.cast(x, target, signed=signed)
    low, high = integer_range(element)
    if low:  # a comparison with NaN fails, so the least number would come of it
        x = b.select(b.compare("eq", x, x), x, 0.0)
    x = b.select(b.compare("gt", x, float(low)), x, float(low))
    x = b.select(b.compare("lt", x, float(high)), x, float(high))
    wide = I32.vector(x.type.lanes)
    return b.cast(b.op(wide, f"fptosi {x} to {wide}"), target)


def _literal(op: arith.ConstantOp) -> float:
    assert isinstance(op.value, FloatAttr | IntegerAttr)
    return op.value.value.data


def identity(reduction: str, dtype: Type) -> Value:
    """What a reduction starts from, in every lane."""
    if reduction in ("sum", "prod"):
        return constant(dtype, 0 if reduction == "sum" else 1)
    if dtype.is_float:
        return constant(dtype, float("-inf") if reduction == "max" else float("inf"))
    least = -(1 << (dtype.bits - 1))
    return constant(dtype, least if reduction == "max" else -least - 1)


def combine(b: Emitter, reduction: str, total: Value, value: Value) -> Value:
    """One step of a reduction."""
    if reduction in ("max", "min"):
        return EMIT[reduction](b, (total, value))
    with b.flags(ALLOW_CONTRACT):
        return b.add(total, value) if reduction == "sum" else b.mul(total, value)


HORIZONTAL = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
