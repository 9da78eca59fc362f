"""Convert half precision by integers, for processors that have no instruction for it.

LLVM then calls the compiler runtime by name, which a Python process does not carry.
"""

from .emitter import Emitter
from .module import Module
from .types import F16, F32, I16, I32, Value

NAMES = ("__extendhfsf2", "__truncsfhf2")

_INFINITY = 0x7F800000  # the bits of f32 infinity
_TOO_LARGE = (127 + 16) << 23  # from here on f16 is infinite
_SMALLEST_NORMAL = (127 - 14) << 23
_DENORMAL_UNIT = ((127 - 15) + (23 - 10) + 1) << 23  # adding it aligns the f16 denormals' unit


def support() -> str:
    """Print a module that defines the two conversions.

    Source: the compiler runtime's names and meaning; rounding is to nearest, ties to even.
    """
    module = Module()
    with module.function(NAMES[0], [F16], linkage="") as b:
        b.result = _extend(b, b.parameters[0])
    with module.function(NAMES[1], [F32], linkage="") as b:
        b.result = _truncate(b, b.parameters[0])
    return module.text()


def _extend(b: Emitter, x: Value) -> Value:
    bits = b.cast(b.bitcast(x, I16), I32, signed=False)
    body = b.logic("shl", b.logic("and", bits, 0x7FFF), 13)
    scaled = b.bitcast(b.mul(b.bitcast(body, F32), 2.0**112), I32)
    special = b.logic("or", body, _INFINITY)
    magnitude = b.select(b.compare("ge", body, 0x0F800000), special, scaled)
    sign = b.logic("shl", b.logic("and", bits, 0x8000), 16)
    return b.bitcast(b.logic("or", magnitude, sign), F32)


def _truncate(b: Emitter, x: Value) -> Value:
    bits = b.bitcast(x, I32)
    body = b.logic("and", bits, 0x7FFFFFFF)
    special = b.select(b.compare("gt", body, _INFINITY), 0x7E00, b.value(0x7C00, I32))
    aligned = b.add(b.bitcast(body, F32), b.bitcast(b.value(_DENORMAL_UNIT, I32), F32))
    denormal = b.sub(b.bitcast(aligned, I32), _DENORMAL_UNIT)
    odd = b.logic("and", b.logic("lshr", body, 13), 1)
    rebased = b.add(b.add(body, 0xFFF - ((127 - 15) << 23)), odd)
    normal = b.logic("lshr", rebased, 13)
    finite = b.select(b.compare("lt", body, _SMALLEST_NORMAL), denormal, normal)
    magnitude = b.select(b.compare("ge", body, _TOO_LARGE), special, finite)
    sign = b.logic("and", b.logic("lshr", bits, 16), 0x8000)
    return b.bitcast(b.cast(b.logic("or", magnitude, sign), I16), F16)
