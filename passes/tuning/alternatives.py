"""Alternative implementations of a kernel: each rewrites it and returns the ops that replace it."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...dialects.floats import BITS, ROUNDING, Floats, Label
from ...dialects.kernel import ConvOp, KernelOp
from ...dialects.schedule import Schedule
from ...lowering.code_generator import CodeGenerator
from ..convolution.transposed_product import RULE, TransposedProduct, as_product, is_transposed
from ..convolution.winograd import (
    Winograd,
    WinogradForm,
    applies,
    is_square,
    longest_window,
    rewrite,
    sizes_of,
)

DIRECT = "direct"
EFFORTS = ("quick", "default", "max")
# Smaller convolutions take microseconds, too little to be worth measuring.
LEAST_MACS = 1 << 20
# Forms of Winograd. Windows too long for these are summed by blocks of four taps. Windows of two
# taps have a form of their own: four points as F(2, 3), which errs little.
WHOLE = (WinogradForm(2), WinogradForm(4))
OF_TWO = (WinogradForm(3),)
BY_FOUR = (WinogradForm(4, 4),)


@dataclass(frozen=True)
class Alternative:
    """One implementation of a kernel.

    `floats` is relative to the direct implementation. A `spare` one is measured only if the
    inexact ones that are not spare err too much.
    """

    name: str
    apply: Callable[[KernelOp], Sequence[Operation]]
    floats: Floats
    spare: bool = False

    @property
    def exact(self) -> bool:
        """Whether it rounds exactly as the direct implementation."""
        return self.floats.label is Label.BITS


def alternatives(
    op: KernelOp, constants: Container[SSAValue], generator: CodeGenerator, effort: str
) -> list[Alternative]:
    """The implementations to compare for an op, the direct one first.

    Args:
        constants: values that are known at compile time.
        effort: "quick" compares nothing, "default" algorithms, "max" algorithms and schedules.
    """
    found = [Alternative(DIRECT, lambda op: [op], BITS)]
    if effort == "quick":
        return found
    if isinstance(op, ConvOp) and work_of(op) >= LEAST_MACS:
        constant = op.outer(op.parameters.weights) in constants
        found += _winograd(op, generator, effort, as_one=constant)
    if isinstance(op, ConvOp) and _few_features(op, generator) and work_of(op) >= LEAST_MACS:
        found.append(Alternative(RULE, _as_product, TransposedProduct.floats))
    if effort == "max":
        space = generator.space(op, constants)
        found += [] if space is None else map(scheduled, space.shortlist[1:])
    return found


def work_of(op: KernelOp) -> int:
    """Multiplications of the direct implementation."""
    return math.prod(op.scopes[0].extents)


def _winograd(
    op: ConvOp, generator: CodeGenerator, effort: str, *, as_one: bool
) -> list[Alternative]:
    """The forms of Winograd that apply: as three kernels, the largest (or all) also as one.

    One kernel reads packed weights, which are constant.
    """
    known = OF_TWO if longest_window(op) == 2 else WHOLE
    whole = [form for form in known if applies(op, form)]
    forms = whole or [form for form in BY_FOUR if applies(op, form)]
    # For windows of one dim or more than three taps the smaller form was never faster.
    spare = forms[:-1] if effort == "default" and not is_square(op, 3) else []
    found = [_form(form, None, spare=form in spare) for form in forms]
    merged = forms if effort == "max" else forms[-1:]
    blocks = [(form, _block(op, form, generator)) for form in merged if as_one]
    return found + [_form(form, tiles) for form, tiles in blocks if tiles]


def _form(form: WinogradForm, tiles: int | None, *, spare: bool = False) -> Alternative:
    """Winograd, as one kernel if `tiles` gives the number of tiles at a time."""

    def apply(op: KernelOp) -> Sequence[Operation]:
        assert isinstance(op, ConvOp)
        return rewrite(op, form, tiles)

    name = form.name + ("" if tiles is None else "-blocks")
    return Alternative(name, apply, Winograd.floats, spare)


def _few_features(op: ConvOp, generator: CodeGenerator) -> bool:
    """Whether a transposed convolution leaves lanes of its vectors empty."""
    return is_transposed(op) and op.parameters.features < generator.lanes


def _as_product(op: KernelOp) -> Sequence[Operation]:
    assert isinstance(op, ConvOp)
    return as_product(op)


def _block(op: ConvOp, form: WinogradForm, generator: CodeGenerator) -> int:
    """How many tiles of a form are worked on at a time; 0 if too few fit a cache, or of groups."""
    if op.parameters.groups > 1:
        return 0
    return generator.block_tiles(*sizes_of(op, form), op.parameters.features)


def scheduled(schedule: Schedule) -> Alternative:
    """The direct implementation, run by a schedule: its sums may be taken in another order."""

    def apply(op: KernelOp) -> Sequence[Operation]:
        schedule.put_on(op)
        return [op]

    return Alternative(f"{DIRECT} {schedule.text}", apply, ROUNDING)


def named(
    name: str, op: KernelOp, constants: Container[SSAValue], generator: CodeGenerator
) -> Alternative | None:
    """The alternative that a cost file names, if the op (still) has it."""
    found = alternatives(op, constants, generator, "max")
    return next((a for a in found if a.name == name), None)
