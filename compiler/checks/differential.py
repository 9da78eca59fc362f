"""Compare a program's results before and after a pass, on drawn inputs (`--check`).

The reference (numpy, float64) evaluates both programs on the same inputs and weights, drawn from a
seed by name. No weights file is needed, and a wrong pass is found whatever the weights are.
"""

import zlib
from collections.abc import Mapping

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from ...dialects.arithmetic import Arithmetic
from ...dialects.errors import UserError
from ...dialects.graph import WeightOp
from ...dialects.program import Program, expression_of
from ...dialects.reference import run
from ...dialects.types import Array, Tensor, is_bool, is_float, is_static
from ...dialects.weights import Weights
from ..pass_manager import AfterPass, PassRun

# Largest difference, relative to the output's largest value, between two orders of the same
# float64 sums; a wrong program differs by far more.
TOLERANCE = 1e-6


def differential_check(module: ModuleOp, seed: int = 0) -> AfterPass:
    """Evaluate `module` now; return a function that compares it with its state after a pass.

    Raises: UserError where the program has no @main with static shapes, or cannot be evaluated.
    """
    before = evaluate(module, seed)

    def check(run: PassRun, module: ModuleOp) -> None:
        if (difference := first_difference(before, evaluate(module, seed))) is not None:
            raise UserError(f"{difference} [after pass '{run.name}']", where="--check")

    return check


def evaluate(
    module: ModuleOp, seed: int = 0, weights: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Evaluate @main on inputs drawn from the seed and their names.

    Weights come from `weights` or are drawn. A constant made at compile time is evaluated as the
    expression it was made from, so its rounding makes no difference.

    Raises: UserError
    """
    given = {} if weights is None else weights
    found: dict[str, Array] = {}
    for op in module.walk():
        if isinstance(op, WeightOp):
            found[op.key] = _weight(op, seed, given)
    program = Program(module, Weights(found))
    inputs = {name: draw(name, type_, seed) for name, type_ in program.inputs.items()}
    return run(program, inputs, Arithmetic.REAL)


def _weight(op: WeightOp, seed: int, given: Mapping[str, Array]) -> Array:
    """A weight by its expression, or as given, or drawn."""
    if (text := expression_of(op)) is not None:
        from ...passes.equivalence.translate import parse_expression  # only where one was folded

        (value,) = evaluate(parse_expression(text, op.type), seed, given).values()
        return value
    return given[op.key] if op.key in given else draw(op.key, op.type, seed)


def draw(name: str, type_: Tensor, seed: int) -> Array:
    """Draw a tensor: normal floats, integers 0 and 1 (valid indices nearly everywhere), booleans.

    Floats of rank 0 and 1 are between 0.5 and 1.5, as scales and variances must be positive.
    """
    if not is_static(type_):
        raise UserError(f"'{name}' has no static shape", where="--check", found=type_)
    generator = np.random.default_rng((seed, zlib.crc32(name.encode())))
    shape = type_.get_shape()
    if is_bool(type_.element_type):
        return generator.integers(0, 2, shape) > 0
    if not is_float(type_.element_type):
        return generator.integers(0, 2, shape)
    return generator.normal(size=shape) if len(shape) > 1 else generator.uniform(0.5, 1.5, shape)


def first_difference(before: Mapping[str, Array], after: Mapping[str, Array]) -> str | None:
    """Describe the first output position where two evaluations differ, or return None.

    Outputs correspond by position: names that are only SSA names may change.
    """
    if len(before) != len(after):
        return f"there were {len(before)} outputs and there are {len(after)}"
    for (name, old), new in zip(before.items(), after.values(), strict=True):
        if old.shape != new.shape:
            return f"output '{name}' had shape {old.shape} and has {new.shape}"
        finite = np.abs(old[np.isfinite(old)])
        bound = TOLERANCE * float(finite.max(initial=0.0))
        wrong = ~np.isclose(new, old, rtol=0.0, atol=bound, equal_nan=True)
        if wrong.any():
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            return f"output '{name}' at {list(at)} was {old[at]:.9g} and is {new[at]:.9g}"
    return None
