"""Emit elementary functions for scalars and vectors.

exp, log, tanh, erf and sigmoid of f32 are polynomials after range reduction, inline and vectorised,
within 3 units in the last place (4 for tanh and erf), right at infinities and NaN, with gradual
underflow. sin and cos of f32 are polynomials in f64, within 0.6 units; vectors with an argument
beyond 2^27 go to the C library. f16 and bf16 go through f32. Everything else, and f64, calls the C
library lane by lane.

Source: the coefficients are weighted minimax fits (Lawson's iteration) made for this file with 40
digits, those of sin and cos are of FreeBSD's k_sinf.c and k_cosf.c; the range reductions are the
classical ones (Cody and Waite 1980).
"""

from collections.abc import Callable, Sequence

from . import avx512
from .emitter import Emitter
from .types import F32, F64, I32, I64, Type, Value, constant

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693359375, -0.00021219444005469057  # their sum is log 2 to 40 bits
_ROUND = 12582912.0  # 1.5 * 2**23: adding it leaves the nearest integer in the low bits
_HALF_SQRT = 0x3F3504F3  # the bits of sqrt(1/2)

# (exp(x) - 1 - x) / x^2 on |x| <= log(2) / 2
_EXP = (
    0.4999999403953552,
    0.16666515171527863,
    0.04166845604777336,
    0.008369418792426586,
    0.0013813144760206342,
)
# (log(1 + x) - x + x^2 / 2) / x^3 on sqrt(1/2) - 1 <= x <= sqrt(2) - 1
_LOG = (
    0.3333331346511841,
    -0.25000008940696716,
    0.2000211924314499,
    -0.1666799634695053,
    0.14219552278518677,
    -0.1240558922290802,
    0.11888162046670914,
    -0.11675652116537094,
    0.06746640801429749,
)
# (tanh(x) / x - 1) / x^2 in x^2, on |x| <= 0.625
_TANH = (
    -0.3333328366279602,
    0.13331490755081177,
    -0.05374349653720856,
    0.02065058797597885,
    -0.005717045161873102,
)
# erf(x) / x - 1 in x^2, on |x| <= 0.92
_ERF_SMALL = (
    0.12837916612625122,
    -0.37612634897232056,
    0.11283703148365021,
    -0.026859799399971962,
    0.005201960448175669,
    -0.0008152627851814032,
    8.409919973928481e-05,
)
# log(1 - erf(x)) on 0.9 <= x <= 4
_ERF_LARGE = (
    -0.00016644864808768034,
    -1.127797245979309,
    -0.6369760632514954,
    -0.10411367565393448,
    0.022315209731459618,
    -0.003065489698201418,
    0.00019821958267129958,
)

# (sin(x) / x - 1) / x^2 and (cos(x) - 1) / x^2 in x^2, on |x| <= pi / 4
_SIN = (
    -0.166666666416265235595,
    0.0083333293858894631756,
    -0.000198393348360966317347,
    0.0000027183114939898219064,
)
_COS = (
    -0.499999997251031003120,
    0.0416666233237390631894,
    -0.00138867637746099294692,
    0.0000243904487962774090654,
)
# pi / 2 in parts: the first two have 26 bits, so that their products with n are exact.
_HALF_PI = (1.5707963109016418, 1.5893254712295857e-08, 6.123233995736766e-17)
_TWO_OVER_PI = 0.6366197723675814
_ROUND_F64 = 6755399441055744.0  # 1.5 * 2**52
# Up to here n has 27 bits, and the reduction leaves more places than f32 has.
_LARGEST_ANGLE = 2.0**27

# LLVM knows some functions by name; the others are called lane by lane.
_INTRINSICS = frozenset(("exp", "log", "sin", "cos", "exp2", "log2", "log10"))
_TRIGONOMETRIC = ("tan", "asin", "acos", "atan", "atan2")
_HYPERBOLIC = ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")
_LIBM = frozenset((*_TRIGONOMETRIC, *_HYPERBOLIC, "erf", "expm1", "log1p"))


def exp(b: Emitter, x: Value) -> Value:
    """Compute e to the power `x`."""
    return _own(b, _exp, "exp", x)


def expm1(b: Emitter, x: Value) -> Value:
    """Compute e to the power `x`, less 1, to the last places of small results too."""
    return _own(b, _expm1, "expm1", x)


def log(b: Emitter, x: Value) -> Value:
    """Compute the natural logarithm; -inf at 0, NaN below."""
    return _own(b, _log, "log", x)


def log1p(b: Emitter, x: Value) -> Value:
    """Compute the natural logarithm of 1 + x, to the last places of small results too."""
    return _own(b, _log1p, "log1p", x)


def tanh(b: Emitter, x: Value) -> Value:
    """Compute the hyperbolic tangent."""
    return _own(b, _tanh, "tanh", x)


def erf(b: Emitter, x: Value) -> Value:
    """Compute the error function."""
    return _own(b, _erf, "erf", x)


def sin(b: Emitter, x: Value) -> Value:
    """Compute the sine of an angle in radians."""
    return _own(b, lambda b, x: _wave(b, x, "sin"), "sin", x)


def cos(b: Emitter, x: Value) -> Value:
    """Compute the cosine of an angle in radians."""
    return _own(b, lambda b, x: _wave(b, x, "cos"), "cos", x)


def sigmoid(b: Emitter, x: Value) -> Value:
    """Compute 1 / (1 + exp(-x)); denormal results, below x = -88, may become 0.

    With AVX-512, of t = exp(-|x|) it is 1 / (1 + t) or t / (1 + t): no divisor overflows.
    """
    with b.flags(""):
        if avx512.has(x.type):
            below = exp(b, b.negate(b.unary("fabs", x)))
            above = avx512.reciprocal(b, b.add(below, 1.0))
            return b.select(b.compare("lt", x, 0.0), b.mul(below, above), above)
        return b.div(1.0, b.add(exp(b, b.negate(x)), 1.0))


def pow(b: Emitter, x: Value, y: Value) -> Value:
    """Compute `x` to the power `y`, as C's pow does; 2, 3 and 4 are multiplications."""
    if x.type.element not in (F32, F64):
        return b.cast(pow(b, b.cast(x, F32), b.cast(y, F32)), x.type.element)
    if y in (constant(x.type, n) for n in (2.0, 3.0, 4.0)):
        square = b.mul(x, x)
        if y == constant(x.type, 4.0):
            return b.mul(square, square)
        return square if y == constant(x.type, 2.0) else b.mul(square, x)
    return b.intrinsic(f"pow.{x.type.suffix}", x.type, [x, y])


def libm(b: Emitter, name: str, *args: Value) -> Value:
    """Call a function of the C library: `sin`, `cos`, `tan`, `asinh`, `atan2`, ...

    Raises: KeyError for a name that is not known here.
    """
    dtype = args[0].type
    if dtype.element not in (F32, F64):
        return b.cast(libm(b, name, *(b.cast(x, F32) for x in args)), dtype.element)
    if name in _INTRINSICS:
        return b.intrinsic(f"{name}.{dtype.suffix}", dtype, args)
    if name not in _LIBM:
        raise KeyError(name)
    symbol = name + ("f" if dtype.element == F32 else "")
    if not dtype.lanes:
        return b.call(symbol, dtype, args, declare=True)
    result = constant(dtype, 0)
    for lane in range(dtype.lanes):
        scalars = [b.extract(x, lane) for x in args]
        value = b.call(symbol, dtype.element, scalars, declare=True)
        result = b.insert(result, value, lane)
    return result


def _own(b: Emitter, emit: Callable[[Emitter, Value], Value], name: str, x: Value) -> Value:
    if x.type.element == F64:
        return libm(b, name, x)
    with b.flags(""):  # the range reductions rely on every rounding
        return b.cast(emit(b, b.cast(x, F32)), x.type.element)


def _polynomial(b: Emitter, x: Value, coefficients: Sequence[float]) -> Value:
    """Evaluate coefficients[i] * x^i by Horner's rule."""
    total = constant(x.type, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = b.fma(total, x, coefficient)
    return total


def _integers(x: Value) -> Type:
    return I32.vector(x.type.lanes)


def _clamp(b: Emitter, x: Value, low: float, high: float) -> Value:
    """Bound `x`, letting NaN through."""
    x = b.select(b.compare("gt", x, high), high, x)
    return b.select(b.compare("lt", x, low), low, x)


def _exp(b: Emitter, x: Value) -> Value:
    """Write x = n log 2 + r, and scale the polynomial in r by 2^n in two steps.

    One step could not reach the denormals at one end and infinity at the other.
    """
    x = _clamp(b, x, -104.0, 89.0)
    if avx512.has(x.type):
        power, series = _split(b, x)
        return avx512.scaled(b, b.add(series, 1.0), b.sub(power, _ROUND))
    count, series = _reduced(b, x)
    half = b.logic("ashr", count, 1)
    scaled = b.mul(b.add(series, 1.0), _power_of_two(b, half, x.type))
    return b.mul(scaled, _power_of_two(b, b.sub(count, half), x.type))


def _split(b: Emitter, x: Value) -> tuple[Value, Value]:
    """The integer n of x = n log 2 + r, in the low bits of a float, and exp(r) - 1."""
    shifted = b.fma(x, _LOG2_E, _ROUND)
    n = b.sub(shifted, _ROUND)
    r = b.fma(n, -_LN2_LOW, b.fma(n, -_LN2_HIGH, x))
    return shifted, b.fma(b.mul(r, r), _polynomial(b, r, _EXP), r)


def _reduced(b: Emitter, x: Value) -> tuple[Value, Value]:
    """The integer n of x = n log 2 + r, and exp(r) - 1."""
    shifted, series = _split(b, x)
    zero = b.bitcast(constant(x.type, _ROUND), _integers(x))
    return b.sub(b.bitcast(shifted, _integers(x)), zero), series


def _expm1(b: Emitter, x: Value) -> Value:
    """Of exp(x) = 2^n (1 + s) take 2^n s + (2^n - 1); beyond 30 the 1 is below the last place."""
    count, series = _reduced(b, _clamp(b, x, -30.0, 30.0))
    power = _power_of_two(b, count, x.type)
    result = b.fma(power, series, b.sub(power, 1.0))
    result = b.select(b.compare("gt", x, 30.0), _exp(b, x), result)
    return b.select(b.compare("eq", x, 0.0), x, result)  # the sign of zero


def _power_of_two(b: Emitter, n: Value, dtype: Type) -> Value:
    return b.bitcast(b.logic("shl", b.add(n, 127), 23), dtype)


def _log(b: Emitter, x: Value) -> Value:
    """Write x = 2^n (1 + f) with 1 + f between sqrt(1/2) and sqrt(2)."""
    small = b.compare("lt", x, 2.0**-126)
    scaled = b.select(small, b.mul(x, 2.0**23), x)
    bits = b.sub(b.bitcast(scaled, _integers(x)), _HALF_SQRT)
    n = b.cast(b.logic("ashr", bits, 23), F32)
    n = b.sub(n, b.select(small, b.value(23.0, x.type), 0.0))
    mantissa = b.add(b.logic("and", bits, 0x7FFFFF), _HALF_SQRT)
    f = b.sub(b.bitcast(mantissa, x.type), 1.0)
    square = b.mul(f, f)
    tail = b.fma(n, _LN2_LOW, b.mul(b.mul(square, f), _polynomial(b, f, _LOG)))
    result = b.fma(n, _LN2_HIGH, b.add(b.fma(square, -0.5, tail), f))
    result = b.select(b.compare("lt", x, float("inf")), result, x)  # inf and NaN are their own
    result = b.select(b.compare("eq", x, 0.0), float("-inf"), result)
    return b.select(b.compare("lt", x, 0.0), float("nan"), result)


def _log1p(b: Emitter, x: Value) -> Value:
    """Correct log(1 + x) by what rounding 1 + x lost, as Kahan does: x / ((1 + x) - 1)."""
    whole = b.add(x, 1.0)
    result = b.mul(_log(b, whole), b.div(x, b.sub(whole, 1.0)))
    result = b.select(b.compare("eq", whole, 1.0), x, result)
    return b.select(b.compare("lt", whole, float("inf")), result, _log(b, whole))


def _tanh(b: Emitter, x: Value) -> Value:
    """Use a polynomial near 0, and 1 - 2 / (exp(2 |x|) + 1) with the sign of x elsewhere."""
    size = b.unary("fabs", x)
    square = b.mul(x, x)
    near = b.fma(b.mul(square, x), _polynomial(b, square, _TANH), x)
    far = b.sub(1.0, b.div(2.0, b.add(_exp(b, b.add(size, size)), 1.0)))
    return b.select(b.compare("lt", size, 0.625), near, _with_sign(b, far, x))


def _erf(b: Emitter, x: Value) -> Value:
    """Use a polynomial near 0, and 1 - exp(polynomial) with the sign of x elsewhere."""
    size = b.unary("fabs", x)
    square = b.mul(x, x)
    near = b.fma(x, _polynomial(b, square, _ERF_SMALL), x)
    bounded = _clamp(b, size, 0.0, 4.0)
    far = b.sub(1.0, _exp(b, _polynomial(b, bounded, _ERF_LARGE)))
    return b.select(b.compare("lt", size, 0.92), near, _with_sign(b, far, x))


def _wave(b: Emitter, x: Value, name: str) -> Value:
    small = b.compare("lt", b.unary("fabs", x), _LARGEST_ANGLE)
    every = b.reduce("and", small) if x.type.lanes else small
    near, far = lambda: [_near_wave(b, x, name)], lambda: [libm(b, name, x)]
    return b.if_else(every, near, far)[0]


def _near_wave(b: Emitter, x: Value, name: str) -> Value:
    """Write x = n pi / 2 + r; the lowest bits of n tell which polynomial in r, and its sign."""
    wide = b.cast(x, F64)
    shifted = b.fma(wide, _TWO_OVER_PI, _ROUND_F64)
    n = b.sub(shifted, _ROUND_F64)
    r = wide
    for part in _HALF_PI:
        r = b.fma(n, -part, r)
    square = b.mul(r, r)
    sine = b.mul(r, b.fma(square, _polynomial(b, square, _SIN), 1.0))
    cosine = b.fma(square, _polynomial(b, square, _COS), 1.0)
    quarter = b.bitcast(shifted, I64.vector(x.type.lanes))
    quarter = b.add(quarter, 1) if name == "cos" else quarter
    is_odd = b.compare("ne", b.logic("and", quarter, 1), 0)
    is_negative = b.compare("ne", b.logic("and", quarter, 2), 0)
    result = b.select(is_odd, cosine, sine)
    return b.cast(b.select(is_negative, b.negate(result), result), F32)


def _with_sign(b: Emitter, size: Value, x: Value) -> Value:
    return b.intrinsic(f"copysign.{x.type.suffix}", x.type, [size, x])
