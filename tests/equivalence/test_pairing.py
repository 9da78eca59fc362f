"""How values and weights of two programs find each other: layouts, pieces, known positions."""

from fractions import Fraction

import numpy as np
import pytest
from support.expressions import output

from isoform.compiler.targets.levels import lower_to
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.canonical_scope import (
    Guard,
    add,
    apply,
    constant,
    factor,
    leaf,
    multiply,
    scope,
)
from isoform.dialects.canonical_scope import Read as CanonicalRead
from isoform.dialects.canonical_scope import numbers as literals
from isoform.dialects.index import iterators
from isoform.dialects.program import Program
from isoform.dialects.types import f32
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.dependencies import Dependencies
from isoform.passes.equivalence.joined_weights import OtherWeight, as_expression
from isoform.passes.equivalence.layout_search import layout, positions_of
from isoform.passes.equivalence.sampler import Sampler

Shape = tuple[int, ...]


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("seed", range(60))
def test_a_layout_is_found_whatever_dims_were_swapped_split_or_joined(seed: int) -> None:
    """Also where half of the elements are 0, as after a relu."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rng.integers(1, 6, rng.integers(1, 5)))
    x = np.maximum(x, 0) if seed % 3 == 0 else x
    y = np.ascontiguousarray(x.transpose(rng.permutation(x.ndim)))
    y = y.reshape(-1, y.shape[-1]) if seed % 2 else y
    for wanted, found in ((x, y), (y, x)):
        digits = layout(wanted, found, 1e-12)
        assert digits is not None
        np.testing.assert_array_equal(found.reshape(-1)[positions_of(digits)], wanted.reshape(-1))


def test_values_that_differ_or_lie_in_no_layout_are_none() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 6))
    off = x.copy()
    off[2, 3] += 1e-6
    assert layout(x, off, 1e-9) is None
    assert layout(x, rng.permutation(x.reshape(-1)).reshape(x.shape), 1e-9) is None


@pytest.mark.parametrize("seed", range(20))
def test_a_weight_joined_cut_or_swapped_is_an_expression_with_its_very_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [numbers(rng, 4, int(n)) for n in rng.integers(2, 5, 3)]
    others = [OtherWeight(leaf(f"w{k}", a.shape, f32), a) for k, a in enumerate(arrays)]
    made = [
        np.concatenate([arrays[k] for k in rng.permutation(3)], axis=1),
        arrays[1][1:, :2],
        arrays[2].T,
        np.concatenate([a.T for a in arrays], axis=0),
        arrays[0][None, 2:, None, :],
    ][seed % 5]
    found = as_expression(made, others, leaf("like", made.shape, f32))
    assert found is not None
    given = {o.source.token: (lambda a=o.data: a) for o in others}
    np.testing.assert_array_equal(Sampler({}, given).value(found), made)
    made = made.copy()
    made.flat[-1] = np.nextafter(made.flat[-1], np.float32(9))
    assert as_expression(made, others, leaf("like", made.shape, f32)) is None


def heads(merged: bool, *, fault: str = "") -> Program:
    """Two products side by side, read as heads; or one product with both weights joined."""
    rng = np.random.default_rng(3)
    q, k = numbers(rng, 16, 12), numbers(rng, 16, 12)
    b = GraphBuilder()
    x = b.input("x", (5, 16))
    if merged:
        if fault == "weight":
            k[3, 4] = np.nextafter(k[3, 4], np.float32(9))
        joined = b.weight("joined", np.concatenate([q, k], axis=1))
        parts = b.split(b.matmul(x, joined), axis=1, sizes=[12, 12])
        parts = parts[::-1] if fault == "order" else parts
    else:
        parts = [b.matmul(x, b.weight(name, w)) for name, w in (("q", q), ("k", k))]
    split = [b.reshape(p, shape=[5, 3, 4]) for p in parts]
    first, second = (b.transpose(b.relu(p), perm=[1, 0, 2]) for p in split)
    b.output("y", b.matmul(first, second, transpose_b=True))
    return b.build()


def test_joined_weights_are_proved_without_an_assumption() -> None:
    for first, second in ((False, True), (True, False)):
        verdict = compare(heads(first), heads(second))
        assert verdict.kind == "equal" and not verdict.assumptions, verdict.text()


@pytest.mark.parametrize("fault", ["weight", "order"])
def test_joined_weights_with_a_fault_are_not_equal(fault: str) -> None:
    assert compare(heads(False), heads(True, fault=fault)).kind != "equal"


def taken(positions: list[int], by_gather: bool) -> Program:
    b = GraphBuilder()
    x = b.input("x", (2, 9, 3))
    if by_gather:
        index = b.weight("places", np.array(positions, np.int64))
        y = b.gather(x, index, axis=1)
    else:
        y = b.slice(x, starts=[0, 1, 0], sizes=[2, 4, 3], steps=[1, 2, 1])
    b.output("y", b.relu(y))
    return b.build()


@pytest.mark.parametrize(
    ("positions", "same"), [([1, 3, 5, 7], True), ([-8, 3, -4, 7], True), ([1, 3, 5, 6], False)]
)
def test_a_gather_at_known_positions_is_a_slice(positions: list[int], same: bool) -> None:
    verdict = compare(taken(positions, by_gather=True), taken(positions, by_gather=False))
    assert (verdict.kind == "equal") == same, verdict.text()


@pytest.mark.parametrize(("wanted", "found"), [((6,), (1,)), ((2, 3), (3,)), ((0,), (0,))])
def test_as_many_elements_and_at_least_one(wanted: tuple[int, ...], found: tuple[int, ...]) -> None:
    """Ones that broadcast to the others are not a layout of them."""
    assert layout(np.ones(wanted), np.ones(found), 1e-12) is None


def test_literals_and_what_is_never_read_are_no_dependencies() -> None:
    x, y = (leaf(n, (4,), f32) for n in "xy")
    i = iterators(1)
    literal = literals([Fraction(n) for n in range(4)], (4,), f32)
    parts = [
        factor(CanonicalRead(s, (i[0] + at,), 0.0), (4,))
        for s, at in ((x, 0), (literal, 0), (y, 4))
    ]
    found = Dependencies().of(scope((4,), f32, add(*parts)))
    assert found == {x.token}
    shifted = add(parts[0], factor(CanonicalRead(y, (i[0] + 3,), 0.0), (4,)))
    assert Dependencies().of(scope((4,), f32, shifted)) == {x.token, y.token}
    middle = scope((4,), f32, add(apply("exp", [parts[0]], (4,)), constant(1)))
    above = scope((4,), f32, factor(CanonicalRead(middle, tuple(i), 0.0), (4,)))
    for top in (above, middle):
        assert Dependencies().of(top) == {x.token}
    root = scope(
        (4,), f32, apply("exp", [factor(CanonicalRead(middle, tuple(i), 0.0), (4,))], (4,))
    )
    assert Dependencies(frozenset({middle.token})).of(root) == {middle.token}


@pytest.mark.parametrize(("first", "depends"), [(-4, False), (-3, True), (0, True), (3, False)])
def test_what_a_guard_leaves_out_everywhere_is_no_dependency(first: int, depends: bool) -> None:
    """A guard of 3 positions, at i + first for i below 4."""
    (i,) = iterators(1)
    y = factor(CanonicalRead(leaf("y", (9,), f32), (i,), 0.0), (4,))
    guarded = multiply(factor(Guard(i + first, 3), (4,)), y, (4,))
    found = Dependencies()._expression(guarded, ((0, 3),))
    assert bool([*found]) == depends


def test_a_reshape_back_is_the_value_itself() -> None:
    def reshaped(*shapes: list[int]) -> Program:
        b = GraphBuilder()
        y = b.exp(b.input("x", (4, 6)))
        for shape in shapes:
            y = b.reshape(y, shape=shape)
        b.output("y", y)
        return lower_to(b.build(), "kernel")

    plain, back = (output(p) for p in (reshaped(), reshaped([24], [4, 6])))
    assert back is plain
    assert output(reshaped([24])) is not plain
