"""Concrete inputs on which two programs differ, by the float64 reference meaning."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...dialects.errors import UserError
from ...dialects.graph import WeightOp
from ...dialects.program import Program
from ...dialects.reference import run
from ...dialects.types import Array, Tensor, is_bool, is_float
from ...dialects.weights import Weights

# Scales of the inputs tried, in order, each with the next seed: faults may hide beyond a clip, near
# zero, or where several relus are 0. Small programs are tried more often, for so many seconds;
# large ones less often.
SCALES = (1.0, 1.0, 8.0, 0.05, 200.0)
MOST_DRAWS, SECONDS, MOST_SECONDS = 50, 0.5, 8.0
# Functions that leave the range of float64 soon: large inputs then show rounding, not meaning.
STEEP = frozenset({"exp", "sinh", "cosh", "pow", "log", "tan", "reduce.prod"})
# A difference this small, relative to the largest value of the output, may be rounding.
TOLERANCE = 1e-7


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


def inputs_of(program: Program, seed: int, scale: float) -> dict[str, Array]:
    """Inputs drawn from their names and the seed: normal floats; small integers; booleans."""
    return {name: draw(name, type_, seed, scale) for name, type_ in program.inputs.items()}


def draw(name: str, type_: Tensor, seed: int, scale: float) -> Array:
    """One tensor."""
    word = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
    rng = np.random.default_rng((seed, word))
    if is_bool(type_.element_type):
        return rng.integers(0, 2, type_.get_shape()) > 0
    if not is_float(type_.element_type):
        return rng.integers(0, 2 if scale == 1.0 else 1 + int(max(scale, 2)), type_.get_shape())
    return rng.normal(size=type_.get_shape()) * scale


def find(
    a: Program, b: Program, order: list[int], seed: int, scale: float, tolerance: float
) -> list[Found]:
    """The differences on one draw; `order[k]` is the output of `b` for output k of `a`.

    A difference counts if it is more than `tolerance` times the output's largest value.

    Raises:
        UserError: the reference cannot run one of them.
    """
    inputs = inputs_of(a, seed, scale)
    first = list(run(with_weights(a, seed), inputs).values())
    names = dict(zip(a.input_names, b.input_names, strict=False))
    renamed = {names[name]: array for name, array in inputs.items()}
    if set(b.input_names) == set(a.input_names):
        renamed = inputs
    second = list(run(with_weights(b, seed), renamed).values())
    found: list[Found] = []
    for k, array in enumerate(first):
        difference = _difference(k, array, second[order[k]], (scale, seed), tolerance)
        if difference is not None:
            found.append(difference)
    return found


def _difference(
    number: int, a: Array, b: Array, drawn: tuple[float, int], tolerance: float
) -> Found | None:
    if not a.size:
        return None
    x, y = a.astype(np.float64), b.astype(np.float64)
    both = np.isfinite(x) & np.isfinite(y)
    largest = float(np.abs(np.where(both, x, 0.0)).max())
    largest = max(largest, float(np.abs(np.where(both, y, 0.0)).max()))
    with np.errstate(invalid="ignore"):
        wrong = both & (np.abs(x - y) > tolerance * largest)
    if drawn[0] <= 1.0:  # larger inputs may overflow in one order of operations and not in another
        wrong |= np.isfinite(x) ^ np.isfinite(y)
    if not wrong.any():
        return None
    place = tuple(int(k) for k in np.argwhere(wrong)[0])
    values = (float(x[place]), float(y[place]))
    return Found(number, place, values, int(wrong.sum()), int(a.size), *drawn)


def with_weights(program: Program, seed: int) -> Program:
    """The program with absent weights drawn from their names."""
    missing: Mapping[str, Tensor] = {
        op.key: op.type
        for op in program.main.body.block.ops
        if isinstance(op, WeightOp) and op.key not in program.weights
    }
    if not missing:
        return program
    drawn = {name: draw(name, type_, seed, 1.0) for name, type_ in missing.items()}
    store = Weights({**{n: program.weights[n] for n in program.weights}, **drawn})
    return Program(program.module, store, program.source)


__all__ = ["SCALES", "Found", "UserError", "draw", "find", "inputs_of"]
