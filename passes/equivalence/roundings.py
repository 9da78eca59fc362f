"""What rounding explains: of constants, of literals, by the float type that holds them.

A constant that was computed and stored in a float type is up to `most_ulps` ulp from its exact
value. Such errors are independent: along a path through `n` of them their squares add up. Where
both programs store constants in half floats, exact values that differ by that much may be the same
function; float32 leaves a wide margin.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from ...dialects.algebra import ScopeOp
from ...dialects.graph import ConstantOp, WeightOp
from ...dialects.program import Program
from ...dialects.scalars import Const, postorder
from ...dialects.types import Array, element_of, is_float, is_half, to_numpy
from ...dialects.weights import Weights
from ...dialects.weights_only import weights_only
from .verdict import MAX_HALF_ULPS, MAX_ULPS

# A difference this small, relative to the largest value of the output, may be float64's rounding.
TOLERANCE = 1e-7
# Below this it may be that of literals in float32, or of constants of unknown origin. In half
# floats it may be more; past the last nothing is the same.
_LOOSE, _LOOSEST = 1e-4, 0.25
# Drawn values nearer than this may be equal except for such constants.
_NEAR = 1e-5
# A part of itself by which each number is changed, to see what rounding does at a position.
_CHANGED = 2.0**-20
# Constants of unknown origin may have been rounded on the way: by so many units of their last
# place. The effect counts more than once (`PairRun.beyond_folding`), so of half floats by one.
_MAX_UNITS, _MAX_HALF_UNITS = 16.0, 1.0
# Random numbers drawn for one array: a prime, so that its rows differ.
_MAX_DRAWN = 65521

# Changes an array, told a number that belongs to its content, and what `Foreign` says of it.
Change: TypeAlias = "Callable[[Array, int, Array | None], Array]"
# Weights of unknown origin by name: by how large a part of itself each element may have been
# changed, 0 where it is known; None for all, by its type.
Foreign: TypeAlias = "Mapping[str, Array | None]"


@dataclass(frozen=True)
class Nearness:
    """Limits up to which two exact values may be equal.

    Attributes:
        part: of the output's largest value.
        noise: the change of all data that bounds, many times, what is noise at one position.
    """

    part: float = TOLERANCE
    noise: float = _CHANGED


EXACT = Nearness()


@dataclass(frozen=True)
class Roundings:
    """What rounding may do to two programs.

    Attributes:
        limits: of differences that rounded constants or literals explain.
        one: the effect of one rounded constant, relative to what it multiplies.
        near: how near drawn values may be, relative to the largest, where constants were rounded.
        half: whether both programs compute in one half type.
        literals: whether half floats hold literals of full length that only one program has.
    """

    limits: Nearness
    one: float
    near: float
    half: bool
    literals: bool

    @staticmethod
    def of(a: Program, b: Program) -> Roundings:
        common = _halves(a) & _halves(b)
        coarsest = max(sorted(common, key=str), key=unit, default=f32)
        if not is_half(coarsest):
            return Roundings(
                Nearness(_LOOSE), MAX_ULPS * unit(f32), _NEAR, half=False, literals=False
            )
        one = MAX_HALF_ULPS * unit(coarsest)
        loose = min(_LOOSEST, one * math.sqrt(max(_met(a), _met(b), 1)))
        literals = _long_literals(a, coarsest) != _long_literals(b, coarsest)
        return Roundings(Nearness(loose, one), one, loose, half=True, literals=literals)


def unit(element: Attribute) -> float:
    """The largest ulp of a number, relative to it."""
    return float(ml_dtypes.finfo(to_numpy(element)).eps)


def most_ulps(dtype: np.dtype[Any]) -> float:
    """The ulps by which a constant may differ from what it was computed from."""
    return MAX_HALF_ULPS if _is_short(dtype) else MAX_ULPS


def _is_short(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is a float of fewer digits than float32."""
    if dtype.kind in "biu":
        return False
    return ml_dtypes.finfo(dtype).nmant < ml_dtypes.finfo(np.float32).nmant


def _halves(program: Program) -> frozenset[Attribute]:
    """The half types of its values."""
    block = program.main.body.block
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    return frozenset(e for e in map(element_of, values) if is_half(e))


def _met(program: Program) -> int:
    """The most ops with float constants on a path from an input to an output."""
    ops = list(program.main.body.block.ops)
    known = weights_only(ops)
    met: dict[SSAValue, int] = {}
    for op in ops:
        if op.results and op.results[0] in known:
            continue
        constants = any(v in known and is_float(element_of(v)) for v in op.operands)
        before = max((met.get(v, 0) for v in op.operands), default=0)
        met.update(dict.fromkeys(op.results, before + constants))
    return max(met.values(), default=0)


def _long_literals(program: Program, element: Attribute) -> frozenset[float]:
    """Its literals that use all but two bits of a half float: these were rounded."""
    digits = ml_dtypes.finfo(to_numpy(element)).nmant - 1
    return frozenset(
        value
        for array in numbers(program, weights=False)
        if array.dtype.kind not in "iub"
        for value in np.unique(array.astype(np.float64)).tolist()
        if math.isfinite(value) and not math.ldexp(math.frexp(value)[0], digits).is_integer()
    )


def numbers(program: Program, weights: bool) -> Iterator[Array]:
    """The literals of a program, at any depth, and its weights if wanted."""
    for op in program.module.walk():
        if isinstance(op, ConstantOp):
            yield op.array()
        elif isinstance(op, ScopeOp):
            literals = [n.value for n in postorder(op.expr()) if isinstance(n, Const)]
            yield np.array([v for v in literals if isinstance(v, float)], np.float64)
        elif isinstance(op, WeightOp) and weights and op.key in program.weights:
            yield program.weights[op.key]


# --- what rounding does in a run ------------------------------------------------------------------


def changed(program: Program, change: Change, only: Foreign | None) -> Program:
    """The program with each weight changed, numbered by its content: equal ones stay equal."""

    def made(name: str) -> Array:
        array = program.weights[name]
        if only is not None and name not in only:
            return array
        parts = None if only is None else only[name]
        number = zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data)
        return change(array, number, parts)

    names = {op.key for op in program.main.body.block.ops if isinstance(op, WeightOp)}
    store = Weights({name: (lambda name=name: made(name)) for name in sorted(names)})
    return Program(program.module, store, program.source)


def moved(array: Array, number: int, _: Array | None, seed: tuple[int, ...], noise: float) -> Array:
    """Floats changed by a random part of themselves, up to `noise`."""
    if array.dtype.kind in "iub":
        return array
    factor = 1.0 + _drawn(array, (*seed, number)) * noise
    return np.asarray(array.astype(np.float64) * factor)


def rounded(array: Array, number: int, parts: Array | None, seed: tuple[int, ...]) -> Array:
    """Floats changed by a few ulps.

    Args:
        parts: the relative change of each number.
    """
    if array.dtype.kind in "iub":
        return array
    if parts is None or parts.shape != array.shape:
        parts = np.full(array.shape, doubt(array))
    by = _drawn(array, (*seed, number))
    return np.asarray(array.astype(np.float64) * (1.0 + parts * by))


def doubt(array: Array) -> float:
    """The relative error that a number of unknown origin may have."""
    units = _MAX_HALF_UNITS if _is_short(array.dtype) else _MAX_UNITS
    return units * float(ml_dtypes.finfo(array.dtype).eps)


def _drawn(array: Array, seed: tuple[int, ...]) -> Array:
    """Numbers between -1 and 1; large arrays repeat some thousands of them."""
    some = np.random.default_rng(seed).uniform(-1.0, 1.0, min(array.size, _MAX_DRAWN))
    return np.resize(some, array.shape)


__all__ = [
    "EXACT",
    "TOLERANCE",
    "Foreign",
    "Nearness",
    "Roundings",
    "changed",
    "doubt",
    "most_ulps",
    "moved",
    "numbers",
    "rounded",
    "unit",
]
