"""Concrete inputs on which two programs differ, by the float64 reference meaning."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...dialects.arithmetic import Arithmetic
from ...dialects.errors import UserError
from ...dialects.graph import WeightOp
from ...dialects.program import Program
from ...dialects.reference import run
from ...dialects.types import Array, Tensor, is_bool, is_float, to_numpy
from ...dialects.weights import Weights
from .verdict import Difference

# Scales of the inputs tried, in order, each with the next seed: faults may hide beyond a clip, near
# zero, or where several relus are 0. Small programs are tried more often, for so many seconds;
# large ones less often.
SCALES = (1.0, 1.0, 8.0, 0.05, 200.0)
MOST_DRAWS, SECONDS, MOST_SECONDS = 50, 0.5, 8.0
# Functions that leave the range of float64 soon: large inputs then show rounding, not meaning.
STEEP = frozenset({"exp", "sinh", "cosh", "pow", "log", "tan", "reduce.prod"})
# A difference this small, relative to the largest value of the output, may be rounding.
TOLERANCE = 1e-7
# At one place, a difference counts where it is larger than this part of the values there, and so
# many times what small changes of all data do there in some runs; never below the last, at scale 1.
_LOCAL, _NOISY_TIMES, _NOISY_RUNS, _LEAST = 1e-3, 64.0, 2, 1e-9
# Constants of unknown origin may have been rounded on the way: by so many units of their last
# place. What that does in a run bounds what it does in another by so many times.
_MOST_UNITS, _ROUNDED_TIMES = 16.0, 8.0


@dataclass(frozen=True)
class Found:
    """A difference of one output on the inputs of `inputs_of(program, seed, scale)`."""

    output: int
    position: tuple[int, ...]
    values: tuple[float, float]
    positions: int
    elements: int
    scale: float
    seed: int

    def named(self, output: str) -> Difference:
        """As a verdict shows it."""
        return Difference(
            output,
            self.position,
            self.values,
            self.positions,
            self.elements,
            witness=True,
            seed=self.seed,
            scale=self.scale,
        )


def inputs_of(program: Program, seed: int, scale: float) -> dict[str, Array]:
    """Inputs drawn from their names and the seed: normal floats; integers; booleans."""
    return {name: draw(name, type_, seed, scale) for name, type_ in program.inputs.items()}


def draw(name: str, type_: Tensor, seed: int, scale: float) -> Array:
    """One tensor."""
    word = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
    rng = np.random.default_rng((seed, word))
    if is_bool(type_.element_type):
        return rng.integers(0, 2, type_.get_shape()) > 0
    if not is_float(type_.element_type):
        return _whole(rng, type_, seed, scale)
    drawn = rng.normal(size=type_.get_shape()) * scale
    return drawn.astype(to_numpy(type_.element_type)).astype(np.float64)  # inputs have their type


def _whole(rng: np.random.Generator, type_: Tensor, seed: int, scale: float) -> Array:
    """Integers: small ones, which index; in every third draw the whole range of their type."""
    info, shape = np.iinfo(to_numpy(type_.element_type)), type_.get_shape()
    if seed % 3 == 2:
        drawn = rng.integers(info.min, info.max, shape, info.dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.2, rng.choice(_ends(info), shape), drawn)
    return rng.integers(0, min(int(info.max), 2 if scale == 1.0 else 1 + int(max(scale, 2))), shape)


def _ends(info: np.iinfo[Any]) -> Array:
    """Where integers of a type turn over, and near 0."""
    values = {info.min, info.min + 1, -1, 0, 1, info.max - 1, info.max}
    return np.array(sorted(v for v in values if v >= info.min), info.dtype)


def find(
    a: Program,
    b: Program,
    order: list[int],
    seed: int,
    scale: float,
    tolerance: float,
    foreign: frozenset[str] = frozenset(),
) -> list[Found]:
    """The differences on one draw; `order[k]` is the output of `b` for output k of `a`.

    A difference counts if it is more than `tolerance` times the output's largest value, or more
    than rounding can make at its own place (`_beyond_noise`).

    Args:
        foreign: names of weights that may stand for others, rounded: what that explains counts not.

    Raises:
        UserError: the reference cannot run one of them.
    """
    pair = Pair(a, b, order, seed, scale)
    first, second = pair.values()
    found: list[Found] = []
    for k, (x, y) in enumerate(zip(first, second, strict=True)):
        wrong = differing(x, y, tolerance, unbounded=scale <= 1.0)
        if not wrong.any() and suspicious(x, y).any():
            wrong = suspicious(x, y) & pair.beyond_noise(k, x, y)
        if wrong.any() and foreign:
            wrong &= pair.beyond_folding(k, x, y, foreign)
        if wrong.any():
            place = tuple(int(axis) for axis in np.argwhere(wrong)[0])
            values = (float(x[place]), float(y[place]))
            found.append(Found(k, place, values, int(wrong.sum()), int(x.size), scale, seed))
    return found


@dataclass
class Pair:
    """Two programs on the inputs of one draw; absent weights are drawn as well."""

    a: Program
    b: Program
    order: Sequence[int]
    seed: int
    scale: float
    arithmetic: Arithmetic = Arithmetic.REAL
    noise: list[tuple[list[Array], list[Array]]] = field(
        default_factory=list[tuple[list[Array], list[Array]]]
    )
    folded: list[tuple[list[Array], list[Array]]] = field(
        default_factory=list[tuple[list[Array], list[Array]]]
    )

    def values(self) -> tuple[list[Array], list[Array]]:
        """The outputs of both, those of the second in the order of the first."""
        return self._run(lambda array, _: array)

    def _run(
        self, change: Callable[[Array, int], Array], only: frozenset[str] | None = None
    ) -> tuple[list[Array], list[Array]]:
        """Run both with inputs and weights changed, or weights of some names alone."""
        inputs = {
            name: change(array, k) if only is None else array
            for k, (name, array) in enumerate(inputs_of(self.a, self.seed, self.scale).items())
        }
        names = dict(zip(self.a.input_names, self.b.input_names, strict=False))
        renamed = {names[name]: array for name, array in inputs.items()}
        if set(self.b.input_names) == set(self.a.input_names):
            renamed = inputs
        first = with_weights(self.a, self.seed, self.b.weights)
        second = with_weights(self.b, self.seed, self.a.weights)
        first, second = _changed(first, change, only), _changed(second, change, only)
        one = list(run(first, inputs, self.arithmetic).values())
        two = list(run(second, renamed, self.arithmetic).values())
        return one, [two[k] for k in self.order]

    def beyond_noise(self, number: int, x: Array, y: Array) -> Array:
        """Where two values of an output differ by more than their data's rounding explains.

        What a relative change of 2^-20 in every input and weight does to a place bounds what
        rounding does there by far: where the values of an output have very different sizes, its
        largest one says nothing about the others.
        """
        if not self.noise:
            for k in range(_NOISY_RUNS):
                self.noise.append(self._run(lambda array, n, k=k: _moved(array, (self.seed, k, n))))
        spread: Array = np.zeros(x.shape)
        x, y = x.astype(np.float64), y.astype(np.float64)  # booleans have no differences
        with np.errstate(all="ignore"):
            for one, two in self.noise:
                moved = np.maximum(np.abs(one[number] - x), np.abs(two[number] - y))
                spread = np.maximum(spread, moved)
            far = np.abs(x - y) > np.maximum(_NOISY_TIMES * spread, _LEAST * self.scale)
        return far & np.isfinite(spread)

    def beyond_folding(self, number: int, x: Array, y: Array, foreign: frozenset[str]) -> Array:
        """Where two values of an output differ by more than rounded constants explain.

        The constants are moved by up to 16 units of their last place; the largest change that this
        makes anywhere in the output counts, eight times.
        """
        if x.dtype.kind != "f":
            return np.ones(x.shape, bool)
        if not self.folded:
            for k in range(_NOISY_RUNS):
                moved = partial(_rounded, seed=(self.seed, k))
                self.folded.append(self._run(moved, foreign))
        spread = 0.0
        with np.errstate(all="ignore"):
            for one, two in self.folded:
                for moved_, value in ((one[number], x), (two[number], y)):
                    change = np.abs(moved_ - value)
                    spread = max(spread, float(change[np.isfinite(change)].max(initial=0.0)))
            near = np.abs(x - y) <= _ROUNDED_TIMES * spread
        return ~near


def differing(x: Array, y: Array, tolerance: float, unbounded: bool = True) -> Array:
    """Where two values of one output differ by more than a part of the largest.

    Integers and booleans differ where they are not the same. Where `unbounded`, infinities and NaN
    must be the same as well; large inputs may overflow in one order of operations only.
    """
    if x.dtype.kind != "f":
        return x != y
    both = np.isfinite(x) & np.isfinite(y)
    sizes = (np.abs(np.where(both, v, 0.0)).max(initial=0.0) for v in (x, y))
    with np.errstate(invalid="ignore"):
        wrong = both & (np.abs(x - y) > tolerance * max(sizes))
    return wrong | (~both & ~same_special(x, y)) if unbounded else wrong


def same_special(x: Array, y: Array) -> Array:
    """Where both are NaN, or the same infinity."""
    return (np.isnan(x) & np.isnan(y)) | (x == y)


def suspicious(x: Array, y: Array, part: float = _LOCAL) -> Array:
    """Where two finite floats differ by more than a part of themselves."""
    if x.dtype.kind != "f":
        return np.zeros(x.shape, bool)
    with np.errstate(invalid="ignore"):
        far = np.abs(x - y) > part * np.maximum(np.abs(x), np.abs(y))
    return far & np.isfinite(x) & np.isfinite(y)


def _changed(
    program: Program, change: Callable[[Array, int], Array], only: frozenset[str] | None
) -> Program:
    """The program with each weight changed, numbered by its content: equal ones stay equal."""

    def changed(name: str) -> Array:
        array = program.weights[name]
        if only is not None and name not in only:
            return array
        return change(array, zlib.crc32(np.ascontiguousarray(array).view(np.uint8).data))

    names = {op.key for op in program.main.body.block.ops if isinstance(op, WeightOp)}
    store = Weights({name: (lambda name=name: changed(name)) for name in sorted(names)})
    return Program(program.module, store, program.source)


def _moved(array: Array, seed: tuple[int, ...]) -> Array:
    """Floats changed by a random part of themselves, up to 2^-20."""
    if array.dtype.kind in "iub":
        return array
    factor = 1.0 + np.random.default_rng(seed).uniform(-1.0, 1.0, array.shape) * 2.0**-20
    return np.asarray(array.astype(np.float64) * factor)


def _rounded(array: Array, number: int, seed: tuple[int, ...]) -> Array:
    """Floats moved by a few units of float32's last place, or of their own if that is less."""
    if array.dtype.kind != "f":
        return array
    unit = min(float(np.finfo(array.dtype).eps), 2.0**-23) * _MOST_UNITS
    part = np.random.default_rng((*seed, number)).uniform(-unit, unit, array.shape)
    return np.asarray(array.astype(np.float64) * (1.0 + part))


def with_weights(program: Program, seed: int, other: Weights | None = None) -> Program:
    """The program with absent weights taken from the other one, or drawn from their names."""
    missing: Mapping[str, Tensor] = {
        op.key: op.type
        for op in program.main.body.block.ops
        if isinstance(op, WeightOp) and op.key not in program.weights
    }
    if not missing:
        return program
    drawn: dict[str, Array] = {}
    for name, type_ in missing.items():
        given = other[name] if other is not None and name in other else None
        same = given is not None and given.shape == type_.get_shape()
        same = same and given is not None and given.dtype == to_numpy(type_.element_type)
        drawn[name] = given if same and given is not None else draw(name, type_, seed, 1.0)
    store = Weights({**{n: program.weights[n] for n in program.weights}, **drawn})
    return Program(program.module, store, program.source)


__all__ = ["SCALES", "Found", "UserError", "draw", "find", "inputs_of"]
