"""Index expressions: the normal form means what was written, and ranges are exact."""

import copy
import operator
import pickle
import random

import numpy as np
import pytest

from isoform.dialects.index import (
    Index,
    flatten,
    from_affine,
    grid,
    is_chain,
    iterators,
    normalise,
    points,
    range_of,
    row_major_strides,
    unflatten,
)

BATCHES, MORE_BATCHES = 10, 90
EXPRESSIONS = 1000  # per batch: 10,000 by default, 100,000 in all


def random_case(rng: random.Random):
    """Extents, an expression as an Index, and its values on the grid, computed beside it."""
    extents = tuple(rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 12)) for _ in range(rng.randint(1, 3)))
    values = grid(extents, range(len(extents)))
    index, expected = random_tree(rng, values, rng.randint(1, 4))
    return extents, index, np.broadcast_to(expected, extents)


def random_tree(rng: random.Random, values, depth: int):
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.3:
            constant = rng.randint(-9, 9)
            return Index(constant), np.asarray(constant)
        k = rng.randrange(len(values))
        return Index.iterator(k), values[k]
    left, a = random_tree(rng, values, depth - 1)
    kind = rng.choice(("add", "sub", "mul", "floordiv", "mod"))
    if kind in ("add", "sub"):
        right, b = random_tree(rng, values, depth - 1)
    else:
        right = b = rng.randint(-4, 4) if kind == "mul" else rng.randint(1, 9)
    apply = getattr(operator, kind)
    return apply(left, right), apply(np.asarray(a), b)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_normal_form_and_range_agree_with_brute_force(batch: int) -> None:
    check_against_brute_force(batch)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES, BATCHES + MORE_BATCHES))
def test_one_hundred_thousand_normal_forms_agree_with_brute_force(batch: int) -> None:
    check_against_brute_force(batch)


def check_against_brute_force(batch: int) -> None:
    rng = random.Random(batch)
    for _ in range(EXPRESSIONS):
        extents, index, expected = random_case(rng)
        values = grid(extents, range(len(extents)))
        normal = normalise(index, extents)
        for form in (index, normal):
            np.testing.assert_array_equal(
                np.broadcast_to(form.evaluate(values), extents), expected, err_msg=f"{form}"
            )
        assert normalise(normal, extents) == normal, f"{normal} over {extents}"
        found = range_of(normal, extents)
        assert found == (expected.min(), expected.max()), f"{normal} over {extents}"


@pytest.mark.parametrize("batch", range(5))
def test_affine_expressions_round_trip(batch: int) -> None:
    rng = random.Random(100 + batch)
    for _ in range(EXPRESSIONS):
        extents, index, _ = random_case(rng)
        for form in (index, normalise(index, extents)):
            assert from_affine(form.to_affine()) == form


@pytest.mark.parametrize("batch", range(5))
def test_substitution_is_composition(batch: int) -> None:
    rng = random.Random(200 + batch)
    for _ in range(EXPRESSIONS // 2):
        extents, index, _ = random_case(rng)
        values = grid((5, 4), (0, 1))
        images = [random_tree(rng, values, 2)[0] for _ in extents]
        composed = index.substitute(images).evaluate(values)
        expected = index.evaluate([image.evaluate(values) for image in images])
        np.testing.assert_array_equal(*np.broadcast_arrays(composed, expected))


x, y, z = iterators(3)
SIMPLIFICATIONS = [
    # expression, extents of x, y, z, text of its normal form
    (4 * (x // 4) + x % 4, (12, 1, 1), "d0"),
    ((x * 4 + y) // 4, (3, 4, 1), "d0"),
    ((x * 4 + y) % 4, (3, 4, 1), "d1"),
    ((x * 4 + y) % 4, (3, 5, 1), "d1 - 4 * (d1 floordiv 4)"),
    (x // 2 // 3, (99, 1, 1), "d0 floordiv 6"),
    (x // 8, (8, 1, 1), "0"),
    ((x + 8) // 8, (8, 1, 1), "1"),
    ((6 * x + 2) // 4, (9, 1, 1), "(3 * d0 + 1) floordiv 2"),
    (x % 1, (9, 1, 1), "0"),
    (x + y, (1, 4, 1), "d1"),
    ((x * 6 + y * 2 + z) // 6, (5, 3, 2), "d0"),
    ((x * 6 + y * 2 + z) % 6 // 2, (5, 3, 2), "d1"),
    (-x // 2, (4, 1, 1), "(-d0) floordiv 2"),
    (2 * ((x + 1) // 2) - 1, (9, 1, 1), "2 * ((d0 + 1) floordiv 2) - 1"),
]


@pytest.mark.parametrize(("index", "extents", "text"), SIMPLIFICATIONS, ids=lambda v: str(v))
def test_known_simplifications(index: Index, extents: tuple[int, ...], text: str) -> None:
    normal = normalise(index, extents)
    assert str(normal) == text
    values = grid(extents, range(3))
    np.testing.assert_array_equal(
        *np.broadcast_arrays(normal.evaluate(values), index.evaluate(values))
    )


def test_the_order_in_which_terms_were_added_does_not_matter() -> None:
    terms = [x * 3, y // 2, z % 5, Index(7), (x + y) // 4 * -2]
    sums = []
    for seed in range(20):
        shuffled = random.Random(seed).sample(terms, len(terms))
        sums.append(sum(shuffled, Index(0)))
    assert len(set(sums)) == 1


@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 1, 3), (2, 3, 4, 5)])
def test_flatten_and_unflatten_are_inverse(shape: tuple[int, ...]) -> None:
    here = iterators(len(shape))
    flat = flatten(here, row_major_strides(shape))
    assert [normalise(e, shape) for e in unflatten(flat, shape)] == [
        normalise(e, shape) for e in here
    ]
    addresses = [flat.evaluate(point) for point in points(shape)]
    assert addresses == list(range(len(addresses)))


def test_the_range_of_many_points_is_still_sound() -> None:
    extents = (4096, 4096)
    index = (x * 3 + y) // 7 - x // 5
    low, high = range_of(index, extents)
    assert low <= -819 + 0 and high >= (4095 * 3 + 4095) // 7 - 819


@pytest.mark.parametrize("divisor", [0, -1])
def test_division_needs_a_positive_divisor(divisor: int) -> None:
    with pytest.raises(ValueError, match="positive divisor"):
        x // divisor


def test_chains_walk_one_strided_range() -> None:
    assert is_chain([12, 4, 1], [2, 3, 4])
    assert not is_chain([12, 3, 1], [2, 3, 4])


@pytest.mark.parametrize(
    ("index", "extents", "expected"),
    [
        (4 * (x // 4) + x % 4, (10**7, 1, 1), (0, 10**7 - 1)),
        (5 * (x // 3) - y // 7, (10**6, 10**6, 1), (-142857, 1666665)),
        (x // 3 + (y + z) // 5, (10**6, 999, 10**6), (0, 333333 + 200199)),
        ((x + 10**6 * y) // 10**5 - z // 2, (10**6, 10**6, 5), (-2, 9999999)),
    ],
)
def test_ranges_of_large_boxes_are_exact(index, extents, expected) -> None:
    """Parts that share no iterator add up; a floor alone is monotone: nothing is tabulated."""
    assert range_of(normalise(index, extents), extents) == expected


def test_equal_expressions_are_one_object() -> None:
    assert x + y is y + x
    assert (x + 3) // 2 is (3 + x) // 2
    assert pickle.loads(pickle.dumps((x + 3) // 2)) is (x + 3) // 2
    assert copy.deepcopy(x * 2 + y % 3) is x * 2 + y % 3


def test_an_expression_that_is_there_keeps_its_fields_and_its_place_in_memory():
    x = Index.iterator(0)
    assert Index.iterator(0) is x and Index.iterator(1) is not x
    again = Index(0, x.terms)
    assert again is x and (again.constant, again.terms) == (0, ((0, 1),))
    assert x + 0 is x and Index(3) + x is x + 3
    assert normalise(x + 2, (4,)) is x + 2 and normalise(x + 2, (1,)) is Index(2)
