"""Every operator computes on values what it says as a scope."""

import random

import numpy as np
import pytest
from xdsl.dialects.builtin import Float32Type

from isoform.dialects.canonical_types import leaf
from isoform.passes.equivalence.field import Evaluator
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.passes.partial import operators
from isoform.passes.partial.operators import Conv, Matmul, Multiply

F32 = Float32Type()
FIELD = Residues(draw_primes(2, 0), 0)


def agree(product: operators.Product, x: tuple[int, ...], w: tuple[int, ...]) -> bool:
    """Whether both forms take the operands; checks that they then agree."""
    shape = product.shape(x, w)
    if shape is None:
        return False
    evaluator = Evaluator(FIELD)
    a, b = leaf(f"x{x}", x, F32), leaf(f"w{w}", w, F32)
    made = product.build(a, b)
    values = product.values(FIELD, evaluator.value(a), evaluator.value(b))
    assert made.shape == shape == values.shape[1:]
    same = FIELD.equal(values, evaluator.value(made))
    assert same.all(), (product, x, w)
    return True


def test_convolutions_agree() -> None:
    rng, taken = random.Random(2), 0
    for _ in range(200):
        groups, spatial = rng.choice([1, 2, 3]), rng.choice([1, 2])
        made = Conv(rng.randint(1, 3), rng.randint(1, 2), groups, rng.random() < 0.5)
        per_group, features = rng.randint(1, 3), groups * rng.randint(1, 2)
        x = (rng.randint(1, 3), per_group * groups, *(rng.randint(1, 7) for _ in range(spatial)))
        w = (features, per_group, *(rng.randint(1, 4) for _ in range(spatial)))
        taken += agree(made, x, w)
    assert taken > 60


def test_matmuls_agree() -> None:
    assert agree(Matmul(), (3, 4), (4, 5))
    assert agree(Matmul(), (2, 3, 4), (2, 4, 5))
    assert agree(Matmul(), (2, 3, 4), (4, 5))
    assert agree(Multiply(), (2, 3), (2, 3))
    assert not agree(Matmul(), (3, 4), (5, 4))
    assert not agree(Multiply(), (2, 3), (3, 2))


@pytest.mark.parametrize("dim", [0, 1])
def test_side_by_side_agrees_and_enlarges_in_the_middle(dim: int) -> None:
    first, second = (2, 3, 1, 1), (2, 3, 3, 3)
    evaluator = Evaluator(FIELD)
    a, b = leaf("a", first, F32), leaf("b", second, F32)
    values = operators.side_by_side_values([evaluator.value(a), evaluator.value(b)], dim)
    made = operators.side_by_side_scope([a, b], dim)
    assert made.shape == operators.side_by_side([first, second], dim) == values.shape[1:]
    np.testing.assert_array_equal(evaluator.value(made), values)


def test_kernels_that_cannot_be_in_the_middle_are_refused() -> None:
    assert operators.side_by_side([(2, 3, 2, 2), (2, 3, 3, 3)], 0) is None
    assert operators.side_by_side([(2, 3, 3, 3), (2, 4, 3, 3)], 0) is None
