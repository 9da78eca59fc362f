"""Evaluate weights-only values, once, when a program is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...dialects.arithmetic import Arithmetic
from ...dialects.discrete import WeightsOnlyValues
from ...dialects.graph import ConstantOp, WeightOp
from ...dialects.program import Program
from ...dialects.types import Array, tensor_type, to_numpy
from ..algebra_to_kernel.constant import constant_values


class Constants(dict[SSAValue, Array]):
    """Weights-only values, evaluated on first use, each op rounded to its own type."""

    def __init__(self, program: Program):
        super().__init__()
        self.known = constant_values(program.module)
        self._weights = program.weights

    def get(self, key: SSAValue, default: Any = None) -> Any:  # type: ignore[override]
        return self[key] if key in self.known else default

    def __missing__(self, value: SSAValue) -> Array:
        op = value.owner
        assert isinstance(op, Operation)
        match op:
            case WeightOp():
                array = self._weights[op.key]
            case ConstantOp():
                array = op.array()
            case _:
                array = self._evaluate(value).astype(to_numpy(tensor_type(value).element_type))
        self[value] = np.asarray(array, order="C")  # unlike ascontiguousarray, keeps rank 0
        return self[value]

    def _evaluate(self, value: SSAValue) -> Array:
        """Evaluate every weights-only op that it depends on."""
        return WeightsOnlyValues(self._weights, Arithmetic.COMPUTED)[value]
