"""Run both programs before a verdict that exact arithmetic alone does not justify.

Equality over the reals says too little about the programs' floats in three cases: a folded constant
differs from its expression's value, terms had to cancel, or a literal is infinite, -0.0, huge or
tiny. Such a verdict needs runs that agree: in exact arithmetic, and as computed, with each op in
its own type.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.algebra import ScopeOp
from ...dialects.arithmetic import Arithmetic
from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, WeightOp
from ...dialects.program import Program
from ...dialects.scalars import Call, Const, postorder
from ...dialects.types import Array, element_of, is_float, is_half
from . import witness
from .roundings import Roundings, numbers, unit
from .verdict import Difference

# Scales of the drawn inputs, the least number of runs, and seconds after which none is started.
SCALES = witness.SCALES[:4]
LEAST = 2
SECONDS = 5.0
# Allowed difference of outputs, relative to the largest value, by the narrowest float type.
HALF, SINGLE, DOUBLE = 2.0**-4, 2.0**-10, 2.0**-24
# Beyond this, or below its reciprocal, products of literals soon leave the range of float32.
_HUGE = 2.0**64
# All literal factors of a program together may scale by this many powers of two without a check.
_FAR, _FAR_HALF = 100.0, 12.0
# In weights up to this size, signs of zero and magnitudes are checked, not only infinities.
_FEW = 4096


@dataclass(frozen=True)
class RunEvidence:
    """The outcome of running two programs.

    Attributes:
        runs: how many inputs were run.
        different: a difference in exact arithmetic.
        reason: why nothing is claimed; empty if the runs agree.
    """

    runs: int = 0
    different: Difference | None = None
    reason: str = ""


def agree(
    program_pair: witness.ProgramPair, seed: int, deadline: float, folded: Roundings | None
) -> RunEvidence:
    """Run both programs, exactly and as computed, on several drawn inputs.

    Args:
        folded: what rounding may do, where the programs differ in rounded constants alone. A
            larger difference is not one of functions; then nothing is claimed.
    """
    limits = witness.EXACT if folded is None else folded.limits
    started, runs, fault = time.monotonic(), 0, "no input was found that both can be run on"
    for k in range(2 * len(SCALES)):
        now = time.monotonic()
        if runs >= len(SCALES) or (runs >= LEAST and now - started > SECONDS):
            break
        if now > deadline:
            return RunEvidence(runs, reason="the time budget is spent before both were run")
        scale = SCALES[k % len(SCALES)]
        try:
            found = witness.find(program_pair, seed + k, scale, limits)
            if found:
                different = found[0].named(program_pair.a.output_names[found[0].output])
                return RunEvidence(runs, different) if folded is None else _by_folding(different)
            fault = _as_computed(program_pair, seed + k, scale)
        except UserError:  # these inputs do not suit it, or the reference cannot run it at all
            continue
        if fault:
            return RunEvidence(runs, reason=fault)
        runs += 1
    return RunEvidence(runs, reason="" if runs else f"it needs runs that agree, and {fault}")


def _by_folding(found: Difference) -> RunEvidence:
    """The outcome where only the rounding of constants differs."""
    x, y = found.values
    return RunEvidence(
        reason=f"equal but for the rounding of constants, which changes output '{found.output}' at "
        f"{list(found.position)} from {x:.9g} to {y:.9g}, on inputs drawn with seed {found.seed}, "
        f"scale {found.scale:g}"
    )


def _as_computed(program_pair: witness.ProgramPair, seed: int, scale: float) -> str:
    """The first difference beyond rounding of runs as computed; empty if there is none."""
    pair = witness.PairRun(program_pair, seed, scale, arithmetic=Arithmetic.COMPUTED)
    first, second = pair.values()
    allowed = _allowed((program_pair.a, program_pair.b))
    halves = filter(is_half, _float_types((program_pair.a, program_pair.b)))
    noise = max(map(unit, halves), default=witness.EXACT.noise)
    for k, (x, y) in enumerate(zip(first, second, strict=True)):
        wrong = witness.differing(x, y, allowed, unbounded=scale <= 1.0)
        doubtful = witness.suspicious(x, y, 4 * allowed)
        if not wrong.any() and doubtful.any():
            wrong = pair.beyond_noise(k, x, y, doubtful, noise)
        if wrong.any():
            position = tuple(int(axis) for axis in np.argwhere(wrong)[0])
            name = program_pair.a.output_names[k]
            return (
                "equal over exact arithmetic, but run as computed, each op in its own type, output "
                f"'{name}' at {list(position)} is {x[position]:.9g} against {y[position]:.9g}, "
                f"on inputs drawn with seed {seed}, scale {scale:g}"
            )
    return ""


def _allowed(programs: Sequence[Program]) -> float:
    """The tolerance for the narrowest float type that a program computes in."""
    types = _float_types(programs)
    if any(map(is_half, types)):
        return HALF
    return DOUBLE if any(isinstance(t, Float64Type) for t in types) else SINGLE


def _float_types(programs: Sequence[Program]) -> set[Attribute]:
    return {
        element
        for program in programs
        for op in program.main.body.block.ops
        for element in map(element_of, op.results)
        if is_float(element)
    }


# --- literals that real arithmetic does not describe
# -----------------------------------------------


def is_special(program: Program, weights: bool) -> bool:
    """Whether a literal (or a weight, if wanted) is infinite, NaN, -0.0, huge or tiny.

    Also whether the product of all literal factors might leave the range of the float types used.
    """
    if any(_special(array) for array in numbers(program, weights)):
        return True
    powers = sum(_power(value, program) for value in _factors(program))
    return powers > (_FAR_HALF if _allowed((program,)) == HALF else _FAR)


def _factors(program: Program) -> Iterator[SSAValue | float]:
    """The factors and divisors of products."""
    for op in program.module.walk():
        if op.name in ("graph.mul", "graph.div"):
            yield from op.operands
        elif isinstance(op, ScopeOp):
            for node in postorder(op.expr()):
                if isinstance(node, Call) and node.function in ("mul", "div"):
                    yield from (a.value for a in node.args if isinstance(a, Const))


def _power(value: SSAValue | float, program: Program) -> float:
    """By how many powers of two a literal scales at most; 0 for anything else."""
    array: Array | None = None
    if isinstance(value, SSAValue):
        owner = value.owner
        while isinstance(owner, Operation) and len(owner.operands) == 1:
            owner = owner.operands[0].owner  # through broadcasts, reshapes, casts
        if isinstance(owner, ConstantOp):
            array = owner.array()
        elif isinstance(owner, WeightOp) and owner.key in program.weights:
            few = math.prod(owner.type.get_shape()) <= _FEW
            array = program.weights[owner.key] if few else None
    else:
        array = np.asarray(value)
    if array is None or array.dtype.kind in "iub" or not 0 < array.size <= _FEW:
        return 0.0
    sizes = np.abs(array[array != 0].astype(np.float64))
    return float(np.abs(np.log2(sizes)).max(initial=0.0)) if np.isfinite(sizes).all() else 0.0


def _special(array: Array) -> bool:
    if array.dtype.kind in "iub" or not array.size:
        return False
    if array.size > _FEW:
        return not bool(np.isfinite(array).all())
    values = array.astype(np.float64)
    sizes = np.abs(values)
    if not np.isfinite(values).all() or bool(((values == 0) & np.signbit(values)).any()):
        return True
    return bool(((sizes >= _HUGE) | ((sizes > 0) & (sizes <= 1 / _HUGE))).any())


__all__ = ["RunEvidence", "agree", "is_special"]
