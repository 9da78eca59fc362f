"""Which literals no law of real numbers knows: programs with such are run."""

import math

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.passes.equivalence.run_check import is_special


def program(*factors: float, element=f32, divided: bool = False, weight: bool = False) -> Program:
    """x times each factor, or divided by it."""
    b = GraphBuilder()
    y = b.input("x", (2,), element)
    dtype = np.float16 if element == f16 else np.float32
    for k, value in enumerate(factors):
        array = np.full((2,), value, dtype)
        given = b.weight(f"w{k}", array) if weight else b.constant(array)
        y = b.div(y, given) if divided else b.mul(y, given)
    b.output("y", y)
    return b.build()


@pytest.mark.parametrize(
    ("value", "special"),
    [
        (1.0, False),
        (0.0, False),
        (-0.0, True),
        (math.inf, True),
        (-math.inf, True),
        (math.nan, True),
        (2.0**64, True),
        (2.0**63, False),
        (-(2.0**64), True),
        (2.0**-64, True),
        (2.0**-63, False),
    ],
)
def test_a_literal_and_a_weight_if_wanted(value: float, special: bool) -> None:
    assert is_special(program(value), weights=False) == special
    assert is_special(program(value, weight=True), weights=True) == special
    assert not is_special(program(0.5, weight=True), weights=False)


def test_signs_and_magnitudes_of_large_weights_are_not_looked_at() -> None:
    def large(value: float) -> Program:
        b = GraphBuilder()
        array = np.ones((4097,), np.float32)
        array[7] = value
        b.output("y", b.add(b.input("x", (4097,)), b.weight("w", array)))
        return b.build()

    found = [is_special(large(v), weights=True) for v in (1.0, -0.0, 2.0**70, math.inf, math.nan)]
    assert found == [False, False, False, True, True]


@pytest.mark.parametrize("divided", [False, True])
def test_factors_that_together_leave_the_range(divided: bool) -> None:
    def special(*factors: float, element=f32) -> bool:
        return is_special(program(*factors, element=element, divided=divided), weights=False)

    assert not special(2.0**50, 2.0**50)
    assert special(2.0**50, 2.0**51)
    assert special(2.0**-60, 2.0**-41)
    assert not special(2.0**6, 2.0**6, element=f16)
    assert special(2.0**6, 2.0**7, element=f16)
    assert not special(0.0, 0.0)
