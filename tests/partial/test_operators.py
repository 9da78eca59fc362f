"""Every operator is what onnx.reference and numpy say it is."""

import random

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from xdsl.dialects.builtin import Float32Type

from isoform.dialects.canonical_types import leaf
from isoform.dialects.types import Array
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.passes.partial import operators
from isoform.passes.partial.operators import Conv, Matmul, Multiply

F32 = Float32Type()
FIELD = Residues(draw_primes(2, 0), 0)


def agree(product: operators.ProductOperator, x: tuple[int, ...], w: tuple[int, ...]) -> bool:
    """Whether it takes the operands; checks its scope on small whole numbers against others."""
    shape = product.shape(x, w)
    if shape is None:
        return False
    rng = np.random.default_rng(len(x))
    left, right = (rng.integers(-9, 9, each).astype(np.float64) for each in (x, w))
    a, b = leaf(f"x{x}", x, F32), leaf(f"w{w}", w, F32)
    given = {a.token: np.stack([left, left]), b.token: np.stack([right, right])}
    made = product.build(a, b)
    assert made.shape == shape
    for lane in Evaluator(FIELD, given=given).value(made):
        np.testing.assert_array_equal(lane, independent(product, left, right), str(product))
    return True


def independent(product: operators.ProductOperator, x: Array, w: Array) -> Array:
    """The same by libraries that know nothing of scopes."""
    if isinstance(product, Matmul):
        return x @ w
    if isinstance(product, Multiply):
        return x * w
    assert isinstance(product, Conv)
    rank = x.ndim - 2
    pads = product.pads(w.shape[2:])
    node = onnx.helper.make_node(
        "Conv", ["x", "w"], ["y"], strides=[product.stride] * rank, group=product.groups,
        dilations=[product.dilation] * rank, pads=[*pads, *pads],
    )  # fmt: skip
    (found,) = list(ReferenceEvaluator(node).run(None, {"x": x, "w": w}))
    return np.asarray(found)


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
    a, b = leaf("a", first, F32), leaf("b", second, F32)
    evaluator = Evaluator(FIELD)
    made = operators.side_by_side_scope([a, b], dim)
    grown = np.pad(evaluator.value(a), [(0, 0)] * 3 + [(1, 1)] * 2)
    values = np.concatenate([grown, evaluator.value(b)], axis=dim + 1)
    assert made.shape == operators.side_by_side([first, second], dim) == values.shape[1:]
    np.testing.assert_array_equal(evaluator.value(made), values)


def test_kernels_that_cannot_be_in_the_middle_are_refused() -> None:
    assert operators.side_by_side([(2, 3, 2, 2), (2, 3, 3, 3)], 0) is None
    assert operators.side_by_side([(2, 3, 3, 3), (2, 4, 3, 3)], 0) is None
    unlike = [(2, 4, 3, 3), (3, 2, 1, 1)]
    placed = operators.Joined((6, 4, 3, 3), ((0, 0, 0, 0), (3, 0, 1, 1)))
    assert operators.joined(unlike, 0, blocks=True) == placed
    assert operators.joined([(2, 4), (2, 4)], 0, blocks=True) is None
