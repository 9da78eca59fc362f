"""Inputs drawn from their names and a seed, which a verdict names."""

from __future__ import annotations

import hashlib
import math
from typing import Any, TypeAlias

import numpy as np

from ...dialects.program import Program
from ...dialects.types import Array, Tensor, is_bool, is_float, tensor, to_numpy

# Sizes of the blocks over which draws that are added are one number.
_BLOCKS = (1, 4, 16)
# Seeds, and how many times the draw of each is added.
Steps: TypeAlias = "tuple[tuple[int, float], ...]"
# The few numbers that an input consists of; empty for other draws (points.py).
Pool: TypeAlias = "tuple[int | float, ...]"


def inputs_of(
    program: Program, seed: int, scale: float, steps: Steps = (), pool: Pool = ()
) -> dict[str, Array]:
    """Inputs drawn from their names and the seed: normal floats; integers; booleans.

    Args:
        steps: if any, floats are the sum of the draws of these seeds at scale 1, each so many
            times, in their own type. A draw may be one number over blocks of positions.
        pool: if any, numbers are taken from it.
    """
    if pool:
        return {name: _of_pool(name, t, seed, pool) for name, t in program.inputs.items()}
    if not steps:
        return {name: draw(name, type_, seed, scale) for name, type_ in program.inputs.items()}
    return {name: _summed(name, t, seed, steps) for name, t in program.inputs.items()}


def _summed(name: str, type_: Tensor, seed: int, steps: Steps) -> Array:
    if not is_float(type_.element_type):
        return draw(name, type_, seed, 1.0)
    total = np.zeros(type_.get_shape())
    for number, part in steps:
        total += part * _blocks(name, type_, number)
    return total.astype(to_numpy(type_.element_type)).astype(np.float64)


def _of_pool(name: str, type_: Tensor, seed: int, pool: Pool) -> Array:
    """Numbers of the pool that suit the type.

    By the seed: all in turn, two of them, the same everywhere and in all inputs, or one beside 0.
    """
    usable = _usable(type_, pool)
    if usable is None:
        return draw(name, type_, seed, 1.0)
    kind, turn = seed % 4, seed // 4
    rng, number = _generator(name, seed), usable[turn % len(usable)]
    size = math.prod(type_.get_shape())
    if kind == 0:
        order = _generator(name, 0).permutation(len(usable))
        drawn = usable[order[(turn + np.arange(size)) % len(usable)]]
    elif kind == 1:
        drawn = rng.choice(np.random.default_rng(seed).choice(usable, 2), size)
    else:
        drawn = np.full(size, number if kind == 2 else 0, usable.dtype)
        if kind == 3 and size:
            drawn[rng.integers(size)] = number
    return drawn.reshape(type_.get_shape())


def _usable(type_: Tensor, pool: Pool) -> Array | None:
    """The different numbers that a type can hold, as the reference holds them; None if none."""
    if is_bool(type_.element_type):
        return None
    dtype = to_numpy(type_.element_type)
    if is_float(type_.element_type):
        with np.errstate(over="ignore"):
            rounded = np.array(pool, np.float64).astype(dtype).astype(np.float64)
        found = dict.fromkeys(n for n in rounded.tolist() if math.isfinite(n))
        return np.array(list(found), np.float64) if found else None
    info = np.iinfo(dtype)
    whole = dict.fromkeys(int(n) for n in pool if n == int(n) and info.min <= n <= info.max)
    return np.array(list(whole), dtype) if whole else None


def _generator(name: str, seed: int) -> np.random.Generator:
    word = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng((seed, word))


def draw(name: str, type_: Tensor, seed: int, scale: float) -> Array:
    """One tensor."""
    rng = _generator(name, seed)
    if is_bool(type_.element_type):
        return rng.integers(0, 2, type_.get_shape()) > 0
    if not is_float(type_.element_type):
        return _whole(rng, type_, seed, scale)
    drawn = rng.normal(size=type_.get_shape()) * scale
    return drawn.astype(to_numpy(type_.element_type)).astype(np.float64)  # inputs have their type


def _blocks(name: str, type_: Tensor, seed: int) -> Array:
    """A normal draw, constant over blocks of its last two dims; the seed chooses their size.

    Pools and strides keep such values.
    """
    shape, block = type_.get_shape(), _BLOCKS[seed % len(_BLOCKS)]
    if len(shape) < 3 or block == 1:
        return draw(name, type_, seed, 1.0)
    coarse = [*shape[:-2], *(-(-n // block) for n in shape[-2:])]
    drawn = draw(name, tensor(coarse, type_.element_type), seed, 1.0)
    wide = np.repeat(np.repeat(drawn, block, -1), block, -2)
    return wide[..., : shape[-2], : shape[-1]]


def _whole(rng: np.random.Generator, type_: Tensor, seed: int, scale: float) -> Array:
    """Integers: small ones, usable as indices; every third draw covers the type's whole range."""
    info, shape = np.iinfo(to_numpy(type_.element_type)), type_.get_shape()
    if seed % 3 == 2:
        drawn = rng.integers(info.min, info.max, shape, info.dtype, endpoint=True)
        return np.where(rng.random(shape) < 0.2, rng.choice(_ends(info), shape), drawn)
    return rng.integers(0, min(int(info.max), 2 if scale == 1.0 else 1 + int(max(scale, 2))), shape)


def _ends(info: np.iinfo[Any]) -> Array:
    """Integers where a type wraps around, and near 0."""
    values = {info.min, info.min + 1, -1, 0, 1, info.max - 1, info.max}
    return np.array(sorted(v for v in values if v >= info.min), info.dtype)


__all__ = ["Pool", "Steps", "draw", "inputs_of"]
