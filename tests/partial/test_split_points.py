"""PET's own test: few positions, right masks where its theorem holds, and where it does not."""

from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import Float32Type

from isoform.dialects.canonical_scope import add
from isoform.dialects.canonical_types import Read, Scope, leaf, scope
from isoform.dialects.index import Index, iterators
from isoform.passes.derivation.body import build
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.prove import Prover
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.passes.partial.correct import correct
from isoform.passes.partial.generate import Generator, Options
from isoform.passes.partial.operators import gathered
from isoform.passes.partial.region import field_mask
from isoform.passes.partial.search import search_mutants
from isoform.passes.partial.split_points import mask_by_split_points, split_points, values_at
from isoform.testing.derivation_cases import conv

F32 = Float32Type()
X = leaf("x", (8,), F32)
SEAM = conv((4, 2, 6, 6), 2, (3, 3))
FEW = Options(depth=4, seconds=600, strides=(1,), dilations=(1,), groups=(1,), gaps=(1,))


def evaluator() -> Evaluator:
    return Evaluator(Residues(draw_primes(2, 0), 0))


def two(*at: int, step: tuple[int, int]) -> Scope:
    """X[at[0] + step[0] * v] + X[at[1] + step[1] * v] for v = 0 .. 3."""
    (v,) = iterators(1)
    reads = [build((4,), (), [Read(X, (v * s + a,))], F32) for a, s in zip(at, step, strict=True)]
    return scope((4,), F32, add(*(r.expr for r in reads)))


def test_a_convolution_is_split_at_its_padding() -> None:
    assert split_points(conv((1, 2, 8, 9), 3, (3, 5)).expr, (1, 3, 8, 9)) == [
        [0],
        [0],
        [0, 1, 7],
        [0, 1, 2, 7, 8],
    ]


def test_a_reshape_is_split_where_its_digits_step() -> None:
    (v,) = iterators(1)
    image = leaf("m", (3, 4), F32)
    flat = build((12,), (), [Read(image, (v // 4, v % 4))], F32)
    assert split_points(flat.expr, (12,)) == [[0, 4, 8]]


def test_values_at_positions_are_those_of_the_whole() -> None:
    made, rng = evaluator(), np.random.default_rng(3)
    at = np.stack([rng.integers(0, n, 50) for n in SEAM.shape])
    expected = made.value(SEAM)[(slice(None), *at)]
    np.testing.assert_array_equal(values_at(SEAM.expr, SEAM.shape, at, made), expected)


@pytest.mark.parametrize("count", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_masks_of_mutants_are_those_of_every_position(count: int) -> None:
    generator = Generator([SEAM], replace(FEW, gaps=(1, 2)))
    wrong = [m for m in generator.run() if not m.exact]
    tested = everywhere = 0
    for mutant in wrong[:: len(wrong) // count][:count]:
        made = gathered(mutant.build(generator.same), mutant.index[0], SEAM.shape)
        found = mask_by_split_points(SEAM, made, evaluator())
        np.testing.assert_array_equal(found.mask, mutant.masks[0])
        tested, everywhere = tested + found.positions, everywhere + found.mask.size
    assert tested < everywhere / 2


@pytest.mark.parametrize("dim", [0, 1])
def test_a_step_along_each_dim_is_compared(dim: int) -> None:
    """The first position of the only box agrees; one step along one dim does not."""
    image = leaf("m", (3, 4), F32)
    here = iterators(2)
    fixed = tuple(Index(0) if k == dim else e for k, e in enumerate(here))
    program, mutant = (build((3, 4), (), [Read(image, at)], F32) for at in (tuple(here), fixed))
    found = mask_by_split_points(program, mutant, evaluator())
    assert (found.boxes, found.positions, found.mask.all()) == (1, 3, True)


def test_sums_of_index_maps_deceive_it_and_the_proof_does_not() -> None:
    """X[v + 3] + X[4 - v] and X[3] + X[4] agree at v = 0 and 1, the positions tested, alone."""
    program, mutant = two(3, 4, step=(1, -1)), two(3, 4, step=(0, 0))
    found = mask_by_split_points(program, mutant, evaluator())
    assert not found.mask.any()
    np.testing.assert_array_equal(
        field_mask(program, mutant, evaluator()), [False, False, True, True]
    )
    trusted = correct(program, mutant, iterators(1), found.mask).result
    assert Prover().prove(program, trusted).equal is False


def test_the_generator_finds_the_same_with_it() -> None:
    """Masks are compared above; here, that the option reaches them and what it finds is proved."""
    root = conv((2, 2, 6, 6), 2, (3, 3))
    options = replace(FEW, depth=3)
    every = search_mutants([root], options, lambda s: 1.0, most=8)
    few = search_mutants([root], replace(options, test="split-points"), lambda s: 1.0, most=8)
    assert few.unproved == every.unproved == 0
    assert [c.mutant.text for c in few.candidates] == [c.mutant.text for c in every.candidates]
