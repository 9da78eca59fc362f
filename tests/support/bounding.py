"""Compare a program bound by `bound-dims` with the same program at each size."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.dialects.specialize import specialize
from isoform.dialects.types import Array, is_float, to_numpy
from isoform.passes.bounding.bound_dims import bound

Numbers = Mapping[str, int]


def bounded(program: Program, bounds: Numbers, numbers: Numbers | None = None) -> Program:
    """The program at the bounds."""
    found = program.clone()
    found.weights = found.weights.apart()
    bound(found.module, bounds, numbers or {}, found.weights)
    return found


def at(program: Program, sizes: Numbers) -> Program:
    """The program at fixed sizes."""
    found = program.clone()
    found.weights = found.weights.apart()
    specialize(found.module, sizes, found.weights)
    return found


def drawn(program: Program, seed: int) -> dict[str, Array]:
    """Inputs: normal floats, small whole numbers."""
    draw = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for name, type_ in program.inputs.items():
        dtype, shape = to_numpy(type_.element_type), type_.get_shape()
        whole = draw.integers(0, 2, shape)
        array = draw.standard_normal(shape) if is_float(type_.element_type) else whole
        found[name] = np.asarray(array).astype(dtype)
    return found


def padded(array: Array, shape: Sequence[int]) -> Array:
    """An array with zeros behind its rows."""
    found = np.zeros(shape, array.dtype)
    found[tuple(slice(n) for n in array.shape)] = array
    return found


def compare(
    program: Program, bounds: Numbers, numbers: Numbers | None = None, **options: Any
) -> int:
    """Compare all sizes from 1 to the bounds, at most 12; how many were compared.

    Options:
        runner: runs a program on inputs; the reference if it is left out.
        least: the least size of each symbol.
    """
    numbers, runner = numbers or {}, options.get("runner", run)
    static = bounded(program, bounds, numbers)
    ranges = [range(options.get("least", 1), n + 1) for n in bounds.values()]
    every = list(itertools.product(*ranges))
    for sizes in every[:: max(1, len(every) // 12)]:
        given = dict(zip(bounds, sizes, strict=True))
        exact = at(program, given | dict(numbers))
        inputs = drawn(exact, len(every))
        wanted = run(exact, inputs)
        shapes = {name: type_.get_shape() for name, type_ in static.inputs.items()}
        feeds = {name: padded(array, shapes[name]) for name, array in inputs.items()}
        feeds |= {f"size.{name}": np.asarray(n, np.int64) for name, n in given.items()}
        for name, found in runner(static, feeds).items():
            cut = found[tuple(slice(n) for n in wanted[name].shape)]
            np.testing.assert_allclose(cut, wanted[name], 1e-4, 1e-5, err_msg=f"{name} at {given}")
    return len(every)


__all__ = ["at", "bounded", "compare", "drawn", "padded"]
