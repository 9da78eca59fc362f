"""Mutants of the papers' operators are found, their masks are right, their corrections equal."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects.builtin import Float32Type

from isoform.dialects import reference
from isoform.dialects.canonical_scope import collect
from isoform.dialects.canonical_types import Leaf, Read, Scope, leaf, scope
from isoform.dialects.index import Index, iterators
from isoform.dialects.program import Program
from isoform.passes.derivation.body import build
from isoform.passes.derivation.lift import leaves_of, program_of_scope
from isoform.passes.derivation.replace import scopes_of
from isoform.passes.equivalence.prove import Prover
from isoform.passes.partial.correct import correct
from isoform.passes.partial.generate import Generator, Mutant, Options
from isoform.passes.partial.operators import gathered
from isoform.passes.partial.region import boxes, symbolic_mask
from isoform.passes.partial.search import search_mutants
from isoform.testing.derivation_cases import conv

F32 = Float32Type()
FEW = Options(depth=3, seconds=600, strides=(1,), dilations=(1,), groups=(1,), gaps=())
SEAM = conv((4, 2, 6, 6), 2, (3, 3))


def mutants(root: Scope, options: Options) -> tuple[Generator, list[Mutant]]:
    generator = Generator([root], options)
    return generator, list(generator.run())


def test_batch_into_width_is_wrong_at_the_seams_only() -> None:
    """PET, Figure 1: mask exactly the two columns at each seam."""
    root = conv((2, 3, 8, 8), 4, (3, 3))
    generator, found = mutants(root, FEW)
    folded = [m for m in found if m.build(generator.same).shape == (1, 4, 8, 16) and m.depth == 3]
    major = [m for m in folded if "major" in m.text[0]]
    assert major
    expected = np.zeros((2, 4, 8, 8), bool)
    expected[0, :, :, 7] = expected[1, :, :, 0] = True
    for mutant in major:
        np.testing.assert_array_equal(mutant.masks[0], expected)
        assert len(boxes(mutant.masks[0])) == 2


def test_rows_merged_with_a_gap_are_exact() -> None:
    root = conv((2, 3, 7, 15), 4, (3, 3))
    _, found = mutants(root, replace(FEW, gaps=(1,)))
    exact = [m for m in found if m.exact and "gap 1" in m.text[0]]
    assert any("move d0 mod 2 into d3 major gap 1" in m.text[0] for m in exact)


def test_a_dilated_convolution_becomes_a_regular_one() -> None:
    """PET, Figure 3, at an even size: exact; the channels are shrunk and grown again."""
    root = conv((1, 512, 14, 14), 256, (3, 3), dilation=2)
    options = Options(seconds=600, strides=(1,), groups=(1,), gaps=())
    found = search_mutants([root], options, lambda scope: 1.0, most=8)
    regular = [c for c in found.candidates if "dilation 1" in c.mutant.text[2]]
    assert regular
    assert regular[0].mutant.exact
    assert regular[0].methods[0].startswith("symbolic")


def test_time_that_ends_during_proofs_is_said() -> None:
    root = conv((1, 3, 9, 9), 4, (3, 3), stride=2)
    found = search_mutants([root], replace(FEW, depth=2, seconds=0.0), lambda scope: 1.0)
    assert (found.candidates, found.count.stopped) == ((), "time")


def test_a_strided_convolution_is_a_part_of_a_regular_one() -> None:
    root = conv((1, 3, 9, 9), 4, (3, 3), stride=2)
    _, found = mutants(root, replace(FEW, depth=2))
    assert any(m.exact and "stride 1" in m.text[2] for m in found)


def test_an_image_becomes_tiles_in_the_batch() -> None:
    """PET, Table 3: [1, 48, 38, 38] as [16, 48, 10, 10], padded; more than half is then wrong."""
    root = conv((1, 2, 38, 38), 2, (5, 5))
    generator = Generator([root], replace(FEW, depth=4, most_wrong=0.6))
    tiles = (m for m in generator.run() if m.build(generator.same).shape == (16, 2, 10, 10))
    mutant = next(tiles)
    assert 0.5 < mutant.wrong < 0.6
    made, (index,), (mask,) = mutant.build(generator.same), mutant.index, mutant.masks
    assert Prover().prove(root, correct(root, made, index, mask).result).equal


def test_average_pooling_becomes_a_convolution() -> None:
    n, c, h, w, r, s = iterators(6)
    x = leaf("x", (1, 4, 6, 6), F32)
    root = build((1, 4, 5, 5), (2, 2), [Read(x, (n, c, h + r, w + s))], F32, Fraction(1, 4))
    _, found = mutants(root, replace(FEW, groups=(1, 4)))
    exact = {m.text[1] for m in found if m.exact}
    assert {"averaging weights 2", "averaging weights 2 depthwise"} <= exact


def test_two_convolutions_become_a_grouped_one() -> None:
    """PET, Figure 10: by padding the smaller kernel, and by giving the input twice."""
    x = leaf("x", (1, 4, 5, 5), F32)
    roots = [over(x, "a", 3), over(x, "b", 1)]
    generator = Generator(roots, Options(seconds=600, strides=(1,), dilations=(1,), gaps=()))
    found = [m for m in generator.run() if m.exact]
    assert any("(input 0) beside (input 0)" in m.text[0] and "groups 2" in m.text[2] for m in found)
    assert any("beside" not in m.text[0] and "groups 1" in m.text[2] for m in found)


@pytest.mark.parametrize("size", [(5,), (5, 5), (3, 3, 3)], ids=["1-D", "2-D", "3-D"])
def test_convolutions_of_unlike_extents_become_a_grouped_one(size: tuple[int, ...]) -> None:
    """PET, Figure 10, of two images: other channels, filters and taps; each has a block."""
    first = filtered(leaf("x", (1, 4, *size), F32), "a", 3, 3)
    second = filtered(leaf("z", (1, 2, *size), F32), "b", 2, 1)
    options = Options(seconds=600, strides=(1,), dilations=(1,), groups=(2,), gaps=())
    generator = Generator([first, second], options)
    exact = [m for m in generator.run() if m.exact]
    found = [m for m in exact if all("in blocks" in text for text in m.text[:2])]
    assert found
    for mutant in found:
        made, pairs = mutant.build(generator.same), zip(mutant.index, mutant.masks, strict=True)
        for root, (index, mask) in zip((first, second), pairs, strict=True):
            assert Prover().prove(root, correct(root, made, index, mask).result).equal


@pytest.mark.parametrize("rank", [1])
def test_a_dilated_convolution_of_a_signal_or_volume_becomes_a_regular_one(rank: int) -> None:
    x, k = leaf("x", (1, 2, *[4] * rank), F32), leaf("k", (2, 2, *[3] * rank), F32)
    n, f, *rest = iterators(3 + 2 * rank)
    at, (c, *taps) = rest[:rank], rest[rank:]
    moved = [e + t * 2 - 2 for e, t in zip(at, taps, strict=True)]
    root = build(
        (1, 2, *[4] * rank),
        (2, *[3] * rank),
        [Read(x, (n, c, *moved)), Read(k, (f, c, *taps))],
        F32,
    )
    _, found = mutants(root, replace(FEW, depth=2 + rank, gaps=()))
    exact = [m for m in found if m.exact]
    assert any("dilation 1" in m.text[2] and str(m.text[0]).count("move") == rank for m in exact)


def filtered(x: Leaf, name: str, features: int, taps: int) -> Scope:
    """A convolution of an image of any rank, padded to its size."""
    _, channels, *size = x.shape
    k = leaf(name, (features, channels, *(taps for _ in size)), F32)
    n, f, *rest = iterators(3 + 2 * len(size))
    at, (c, *window) = rest[: len(size)], rest[len(size) :]
    moved = [e + t - (taps - 1) // 2 for e, t in zip(at, window, strict=True)]
    factors = Read(x, (n, c, *moved)), Read(k, (f, c, *window))
    return build((1, features, *size), (channels, *(taps for _ in size)), factors, F32)


def test_programs_that_share_an_input_are_searched_at_few_channels_and_proved_at_all() -> None:
    """As the group convolution of PET, Table 3: 1x1 convolutions become one with all features."""
    x = leaf("x", (1, 64, 6, 6), F32)
    roots = [plain(x, f"k{k}", features) for k, features in enumerate((24, 20, 24))]
    options = Options(depth=3, seconds=600, strides=(1,), dilations=(1,), groups=(1, 3), gaps=())
    found = search_mutants(roots, options, lambda scopes: float(len(scopes)), most=4)
    assert found.unproved == 0
    merged = next(
        c for c in found.candidates if "input 1) beside (input 2) beside" in c.mutant.text[1]
    )
    assert [r.shape for r in merged.results] == [r.shape for r in roots]
    assert len(scopes_of(merged.results)) == len(roots) + 2  # the kernels, the product, its parts


def plain(x: Leaf, name: str, features: int) -> Scope:
    n, f, h, w, c = iterators(5)
    k = leaf(name, (features, 64, 1, 1), F32)
    factors = Read(x, (n, c, h, w)), Read(k, (f, c, Index(0), Index(0)))
    return build((1, features, 6, 6), (64,), factors, F32)


def over(x: Leaf, name: str, taps: int) -> Scope:
    """A convolution of an image, padded to its size."""
    n, f, h, w, c, r, s = iterators(7)
    images, channels, *size = x.shape
    k = leaf(name, (3, channels, taps, taps), F32)
    up = (taps - 1) // 2
    factors = Read(x, (n, c, h + r - up, w + s - up)), Read(k, (f, c, r, s))
    return build((images, 3, *size), (channels, taps, taps), factors, F32)


@pytest.mark.parametrize("shared", [True, False])
def test_matrix_products_of_a_batch_become_one(shared: bool) -> None:
    b, m, n, k = iterators(4)
    x = leaf("x", (3, 4, 5), F32)
    w = leaf("w", (5, 6) if shared else (3, 5, 6), F32)
    at = (k, n) if shared else (b, k, n)
    root = build((3, 4, 6), (5,), [Read(x, (b, m, k)), Read(w, at)], F32)
    generator, found = mutants(root, FEW)
    folded = {m.build(generator.same).shape for m in found if m.exact}
    assert ((1, 12, 6) in folded) == shared


def test_a_product_of_a_transposed_matrix_is_one_of_its_transpose() -> None:
    """Also at the few rows and columns that it is searched at, and proved at all."""
    m, n, k = iterators(3)
    x, w = leaf("x", (24, 40), F32), leaf("w", (24, 20), F32)
    root = build((40, 20), (24,), [Read(x, (k, m)), Read(w, (k, n))], F32)
    found = search_mutants([root], FEW, lambda _: 1.0).candidates
    assert {c.mutant.text[2] for c in found if c.mutant.exact} == {"matmul"}
    assert any("swap d0 d1" in c.mutant.name for c in found)


@pytest.mark.parametrize("count", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_masks_are_the_same_by_residues_by_monomials_and_as_found(count: int) -> None:
    generator, found = mutants(SEAM, replace(FEW, gaps=(1, 2), depth=4))
    wrong = [m for m in found if not m.exact]
    assert len(wrong) > count
    step = len(wrong) // count
    for mutant in wrong[::step][:count]:
        made = gathered(mutant.build(generator.same), mutant.index[0], SEAM.shape)
        np.testing.assert_array_equal(generator.masks(mutant)[0], mutant.masks[0])
        np.testing.assert_array_equal(symbolic_mask(SEAM, made), mutant.masks[0])


@pytest.mark.parametrize("count", [12, pytest.param(200, marks=pytest.mark.slow)])
def test_corrected_programs_are_equal_and_one_box_less_is_not(count: int) -> None:
    generator, found = mutants(SEAM, replace(FEW, gaps=(1, 2), depth=4))
    wrong = [m for m in found if not m.exact]
    for mutant in wrong[:: len(wrong) // count][:count]:
        made, (index,), (mask,) = mutant.build(generator.same), mutant.index, mutant.masks
        assert Prover().prove(SEAM, correct(SEAM, made, index, mask).result).equal
        less = mask.copy()
        low = [side[0] for side in boxes(mask)[0]]
        less[tuple(low)] = False
        assert Prover().prove(SEAM, correct(SEAM, made, index, less).result).equal is False


@pytest.mark.parametrize("images", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_each_output_of_a_mutant_of_several_has_its_own_mask_and_correction(images: int) -> None:
    x = leaf("x", (images, 2, 4, 4), F32)
    roots = [over(x, "a", 3), over(x, "b", 1)]
    generator = Generator(roots, replace(FEW, depth=4, most_wrong=0.6))
    wrong = [m for m in generator.run() if not m.exact]
    assert any(m.masks[0].any() != m.masks[1].any() for m in wrong)
    for mutant in wrong:
        made = mutant.build(generator.same)
        again = generator.masks(mutant)
        for root, index, mask, own in zip(roots, mutant.index, mutant.masks, again, strict=True):
            np.testing.assert_array_equal(mask, own)
            monomials = symbolic_mask(root, gathered(made, index, root.shape))
            np.testing.assert_array_equal(mask, monomials)
            assert Prover().prove(root, correct(root, made, index, mask).result).equal


def test_a_sum_of_two_convolutions_is_one_of_images_side_by_side() -> None:
    """A program of three operators: two convolutions and their sum."""
    parts = [over(leaf(f"x{k}", (1, 2, 5, 5), F32), f"k{k}", 3) for k in range(2)]
    root = scope(parts[0].shape, F32, collect([t for part in parts for t in part.expr.terms]))
    _, found = mutants(root, replace(FEW, depth=4))
    exact = {m.text for m in found if m.exact}
    assert any("along d1" in text[0] and "along d1" in text[1] for text in exact)


def test_what_a_mutant_has_in_the_mask_is_never_read() -> None:
    """The mutant's wrong positions are NaN; the result is what it was."""
    generator, found = mutants(SEAM, FEW)
    wrong = [m for m in found if not m.exact]
    assert wrong
    for mutant in itertools.islice(wrong, 6):
        made, (index,), (mask,) = mutant.build(generator.same), mutant.index, mutant.masks
        given = leaf("mutant", made.shape, F32)
        result = correct(SEAM, given, index, mask).result
        inputs = {s: np.random.default_rng(5).random(s.shape) for s in leaves_of(SEAM)}
        expected = run(SEAM, inputs)
        values = run(made, inputs)
        grids = np.indices(SEAM.shape)
        at = [np.broadcast_to(e.evaluate(list(grids)), SEAM.shape)[mask] for e in index]
        inside = np.all([(a >= 0) & (a < n) for a, n in zip(at, made.shape, strict=True)], axis=0)
        values[tuple(a[inside] for a in at)] = np.nan
        np.testing.assert_allclose(run(result, {**inputs, given: values}), expected, rtol=1e-6)


def run(root: Scope, inputs: dict[Leaf, np.ndarray]) -> np.ndarray:
    program = Program(program_of_scope(root))
    feeds = zip(program.inputs, leaves_of(root), strict=True)
    values = {name: inputs[source].astype(np.float32) for name, source in feeds}
    (result,) = reference.run(program, values).values()
    return np.array(result)
