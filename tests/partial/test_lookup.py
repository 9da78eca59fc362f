"""What a lookup finds is fitted as digits, around what it cannot find."""

import random

import numpy as np

from isoform.dialects.index import Index, iterators
from isoform.passes.partial.lookup import digits, fit, inverse, positions


def test_digits_are_recovered_from_values() -> None:
    rng, (x,) = random.Random(3), iterators(1)
    for _ in range(200):
        size, d, e = rng.randint(2, 40), rng.randint(2, 6), rng.randint(2, 4)
        index = (x % d) * rng.randint(1, 9) + (x // d % e) * rng.randint(0, 30)
        index = index + (x // d // e) * rng.randint(0, 99)
        table = [float(index.evaluate([k])) for k in range(size)]
        found = digits(table, x)
        assert found is not None
        assert [found.evaluate([k]) for k in range(size)] == table


def test_positions_that_are_not_known_do_not_matter() -> None:
    """Tiles of ten rows, each of which knows only its inner six."""
    n, h = iterators(2)
    index = [n * 4 + h // 10, h % 10]
    grids = list(np.indices((3, 38)))
    found = np.stack([np.broadcast_to(e.evaluate(grids), (3, 38)).astype(float) for e in index])
    inner = (grids[1] % 10 >= 2) & (grids[1] % 10 < 8) | (grids[1] < 2)
    found[:, ~inner] = np.nan
    fitted = fit(found)
    assert fitted is not None
    for one, other in zip(fitted, index, strict=True):
        np.testing.assert_array_equal(one.evaluate(grids), other.evaluate(grids))


def test_what_are_no_digits_is_refused() -> None:
    values = np.array([[0.0, 3.0, 1.0, 7.0, 2.0, 5.0, 9.0, 4.0]])
    found = fit(values)
    assert found is None or (np.asarray(found[0].evaluate([np.arange(8)])) == values[0]).all()


def test_the_inverse_says_which_result_a_position_is_for() -> None:
    n, h = iterators(2)
    index = [h % 2 + 2 * n, h // 2]
    back = inverse(index, (3, 8), (6, 4))
    assert back is not None
    at, _ = positions(index, (3, 8), (6, 4))
    for found, own in zip(back, np.indices((3, 8)), strict=True):
        np.testing.assert_array_equal(
            np.asarray(found.evaluate(list(np.indices((6, 4)))))[tuple(at)], own
        )
    assert inverse([Index(0), h], (3, 8), (1, 8)) is None
