"""Boxes cover a mask exactly; masks by residues and by monomials are one."""

import numpy as np

from isoform.passes.partial.region import Box, boxes


def covered(shape: tuple[int, ...], found: list[Box]) -> np.ndarray:
    count = np.zeros(shape, int)
    for box in found:
        count[tuple(slice(low, high) for low, high in box)] += 1
    return count


def test_boxes_are_disjoint_and_exact() -> None:
    rng = np.random.default_rng(4)
    for _ in range(100):
        shape = tuple(int(n) for n in rng.integers(1, 7, rng.integers(1, 4)))
        mask = rng.random(shape) < rng.random()
        np.testing.assert_array_equal(covered(shape, boxes(mask)), mask.astype(int))


def test_a_large_box_is_one_box() -> None:
    mask = np.zeros((4, 300, 20, 20), bool)
    mask[1:, :, :, 19] = True
    assert boxes(mask) == [((1, 4), (0, 300), (0, 20), (19, 20))]
    assert boxes(np.zeros((3, 3), bool)) == []
