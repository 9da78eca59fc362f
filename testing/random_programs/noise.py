"""Evaluate a program as a target might: every operation slightly off, values in their dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute

from ...dialects import op_reference
from ...dialects.arithmetic import Arithmetic
from ...dialects.program import Program
from ...dialects.scalars import Call
from ...dialects.types import (
    Array,
    Tensor,
    element_of,
    is_bool,
    is_float,
    reference_dtype,
    tensor_type,
    to_numpy,
)

# Units in the last place by which a result may be off; functions such as tanh get a few more.
ULPS = 2.0
# Functions that return bits of their operands.
_EXACT = frozenset(("neg", "abs", "max", "min", "select", "floor", "ceil", "trunc", "roundeven"))


def unit(element: Attribute) -> float:
    """The relative spacing of a float type."""
    match element:
        case Float32Type():
            return float(np.finfo(np.float32).eps)
        case Float16Type():
            return float(np.finfo(np.float16).eps)
        case BFloat16Type():
            return float(ml_dtypes.finfo(ml_dtypes.bfloat16).eps)
        case _:
            return float(np.finfo(np.float64).eps)


def noisy_run(
    program: Program, inputs: Mapping[str, Array], seed: int, sign: float = 1.0
) -> list[Array]:
    """Results of an algebra-level program, in the outputs' order, off by rounding-like noise.

    Args:
        sign: 1 or -1; with the same seed, the other sign moves every value the other way.
    """
    noise = _Noise(np.random.default_rng((seed, 0x3F)), sign)
    args = program.main.body.block.args
    values: op_reference.Values = {}
    for (name, type_), arg in zip(program.inputs.items(), args, strict=True):
        values[arg] = np.asarray(inputs[name]).astype(reference_dtype(type_.element_type))
    for op in program.main.body.block.ops:
        if isinstance(op, ReturnOp):
            return [values[v] for v in op.operands]
        operands = [noise.off(values[v], element_of(v)) for v in op.operands]
        made = op_reference.evaluate_op(op, operands, program.weights, noise)
        for result, array in zip(op.results, made, strict=True):
            values[result] = _rounded(array, tensor_type(result))
    raise AssertionError("a program ends with func.return")


def _rounded(array: Array, type_: Tensor) -> Array:
    """Convert to the dtype and back: overflow shows, and integers wrap."""
    if is_bool(type_.element_type):
        return array
    with np.errstate(all="ignore"):
        return array.astype(to_numpy(type_.element_type)).astype(array.dtype)


class _Noise(Arithmetic):
    """Exact arithmetic with noise from one generator, added to products before they are summed."""

    contracts = False

    def __init__(self, generator: np.random.Generator, sign: float):
        self.generator = generator
        self.sign = sign

    def off(self, array: Array, element: Attribute) -> Array:
        """Floats moved by up to a few units in the last place."""
        if not is_float(element) or array.dtype.kind != "f":
            return array
        step = self.sign * self.generator.choice((-ULPS, -0.5, 0.5, ULPS), array.shape)
        with np.errstate(all="ignore"):
            return array * (1.0 + unit(element) * step)

    def call(self, node: Call, args: Sequence[Array], operand: Attribute | None) -> Array:
        """The function, slightly off if it computes."""
        result = super().call(node, args, operand)
        if operand is None or node.function in _EXACT:
            return result
        return self.off(result, operand)
