"""What rules can open, and what they leave alone."""

import math

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp, f32

from isoform.dialects.algebra import ScopeOp
from isoform.dialects.scope_builder import Source, const
from isoform.dialects.types import tensor
from isoform.passes.derivation.lift import Lift, body_of_op


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_body_with_a_number_that_is_none_is_no_sum_of_products(value: float) -> None:
    """The mean of no elements is such a body."""
    x = Source(test.TestOp(result_types=[tensor([4], f32)]).results[0])
    lift = Lift(ModuleOp([]), positional=True)
    assert body_of_op(ScopeOp(tensor([4], f32), x.here() * const(value)), lift) is None
    assert body_of_op(ScopeOp(tensor([4], f32), x.here() * const(2.0)), lift) is not None
