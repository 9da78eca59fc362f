"""Data for random programs: inputs, and weights that a program names without having them."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from ...compiler.commands.inputs import index_bound
from ...dialects.graph import WeightOp
from ...dialects.program import Program
from ...dialects.types import Array, Tensor, is_bool, is_float, is_unsigned, to_numpy
from ...dialects.weights import Weights

# Inputs and weights of one seed come from different streams of numbers.
INPUT_STREAM, WEIGHT_STREAM = 0x1F, 0x2F
# The values that `special` puts into float inputs.
SPECIAL = (float("inf"), float("-inf"), float("nan"))


def random_inputs(program: Program, seed: int, *, special: float = 0.0) -> dict[str, Array]:
    """One array per input: normal floats, small integers, indices in range.

    Args:
        special: probability of an infinity or NaN instead of a float.
    """
    generator = np.random.default_rng((seed, INPUT_STREAM))
    args = program.main.body.block.args
    return {
        name: _draw(generator, type_, arg, special)
        for (name, type_), arg in zip(program.inputs.items(), args, strict=True)
    }


def _draw(generator: np.random.Generator, type_: Tensor, arg: SSAValue, special: float) -> Array:
    shape, element = type_.get_shape(), type_.element_type
    dtype = to_numpy(element)
    if is_float(element):
        drawn = np.asarray(generator.normal(size=shape))
        if special:
            odd = generator.random(shape) < special
            drawn = np.where(odd, generator.choice(SPECIAL, shape), drawn)
        return drawn.astype(dtype)
    if is_bool(element):
        return np.asarray(generator.integers(0, 2, shape) > 0)
    if is_unsigned(element):
        return np.asarray(generator.integers(0, 10, shape)).astype(dtype)
    # Grower calls the inputs it makes for a gather `index...`; other integers are small.
    name = arg.name_hint or ""
    bound = index_bound(arg) if name.startswith("index") else 5
    return np.asarray(generator.integers(-bound, bound, shape)).astype(dtype)


def random_weights(program: Program, seed: int) -> Weights:
    """An array for every weight that the program names."""
    generator = np.random.default_rng((seed, WEIGHT_STREAM))
    found: dict[str, Array] = {}
    for op in program.module.walk():
        if isinstance(op, WeightOp) and op.key not in found:
            found[op.key] = _draw(generator, op.type, op.result, 0.0)
    return Weights(found)
