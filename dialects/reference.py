"""The reference meaning of a program: its ops in order (op_reference.py).

Discrete constants are as computed, even where the arithmetic is exact (discrete.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from .arithmetic import Arithmetic
from .discrete import discrete_constants
from .errors import UserError
from .half_casts import unrounded
from .op_reference import EXACT, evaluate_op
from .program import Program
from .types import Array

Values = dict[SSAValue, Array]
# A function that gives the results of an op: see `evaluate_op`.
Evaluate: TypeAlias = (
    "Callable[[Operation, Sequence[Array], Mapping[str, Array], Arithmetic], Sequence[Array]]"
)


def run(
    program: Program,
    inputs: Mapping[str, Array],
    arithmetic: Arithmetic = EXACT,
    known: Mapping[SSAValue, Array] | None = None,
    evaluate: Evaluate | None = None,
) -> dict[str, Array]:
    """Evaluate a program. Inputs by name, any numeric dtype; results in reference dtypes.

    Args:
        known: values that are not computed again, including all discrete constants; for inputs,
            values derived from them.
        evaluate: used instead of `evaluate_op`, for example one that memoises.

    Raises:
        UserError: an input is missing or has another shape; an op cannot be evaluated.
    """
    values: Values = {}
    given = {} if known is None else known
    defaults = program.defaults
    for (name, type_), arg in zip(
        program.inputs.items(), program.main.body.block.args, strict=True
    ):
        if name not in inputs and name not in defaults:
            raise UserError(f"input '{name}' is missing")
        array = np.asarray(inputs[name] if name in inputs else program.weights[defaults[name]])
        if array.shape != type_.get_shape():
            raise UserError(
                f"input '{name}' has another shape", expected=type_.get_shape(), found=array.shape
            )
        values[arg] = given[arg] if arg in given else arithmetic.tensor(array, type_.element_type)
    ops = program.main.body.block.ops
    if known is None:
        exact = arithmetic is not Arithmetic.COMPUTED
        known = discrete_constants(ops, program.weights) if exact else {}
    outputs = run_block(ops, values, program.weights, arithmetic, known, evaluate)
    return dict(zip(program.output_names, outputs, strict=True))


def run_block(
    ops: Any,
    values: Values,
    weights: Mapping[str, Array],
    arithmetic: Arithmetic = EXACT,
    known: Mapping[SSAValue, Array] | None = None,
    evaluate: Evaluate | None = None,
) -> list[Array]:
    """Evaluate ops in order; the operands of the terminator are the results.

    Values are dropped after their last use, so memory holds only live values.

    Args:
        known: results that are not computed again.
        evaluate: used instead of `evaluate_op`.
    """
    evaluate = evaluate_op if evaluate is None else evaluate
    known = {} if known is None else known
    ops = list(ops)
    last_use = {operand: k for k, op in enumerate(ops) for operand in op.operands}
    inside = unrounded(ops) if arithmetic is Arithmetic.REAL else {}
    for k, op in enumerate(ops):
        if isinstance(op, ReturnOp) or op.name.endswith(".yield"):
            return [values[v] for v in op.operands]
        if op.results and op.results[0] in known:
            results: Sequence[Array] = [known[v] for v in op.results]
        else:
            how = inside.get(op, arithmetic)
            results = evaluate(op, [values[v] for v in op.operands], weights, how)
        for value, array in zip(op.results, results, strict=True):
            values[value] = array
        for operand in op.operands:
            if last_use[operand] == k:
                values.pop(operand, None)
    raise UserError("a block has no terminator")


__all__ = ["run", "run_block"]
