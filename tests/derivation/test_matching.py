"""Operator matching modulo layout: what BLAS may be given where it stands, and what it may not."""

import numpy as np
import pytest
from xdsl.dialects.builtin import f32

from isoform.dialects.canonical_types import Guard, Leaf, Read, Scope, leaf
from isoform.dialects.index import Index, flatten, iterators, row_major_strides
from isoform.lowering.algebra_to_kernel.table import Match, matches
from isoform.passes.derivation.body import build
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.replace import scopes_of
from isoform.passes.derivation.search import DerivationSettings, Searcher
from isoform.testing.derivation_cases import all_cases, conv


def tensor(name: str, *shape: int) -> Leaf:
    return leaf(name, shape, f32, label=name)


def found(scope: Scope, name: str = "gemm") -> list[Match]:
    return [m for m in matches(scope) if m.kernel.name == name]


def product(left: Read, right: Read, shape: list[int], sums: list[int]) -> Scope:
    return build(shape, sums, [left, right], f32)


def test_a_transposed_operand_stays_where_it_is() -> None:
    m, n, k = iterators(3)
    a, b = tensor("a", 5, 4), tensor("b", 6, 5)
    (match, *_) = found(product(Read(a, (k, m)), Read(b, (n, k)), [4, 6], [5]))
    assert match.direct == (True, True)


def test_overlapping_rows_are_refused_for_their_leading_dimension() -> None:
    """im2col of a line as a view has rows that overlap: ld 1 < extent 3."""
    m, n, k = iterators(3)
    x, w = tensor("x", 10), tensor("w", 3, 2)
    (match, *_) = found(product(Read(x, (m + k,)), Read(w, (k, n)), [8, 2], [3]))
    assert sorted(match.direct) == [False, True]


def test_a_stride_on_both_sides_is_refused() -> None:
    m, n, k = iterators(3)
    a, b = tensor("a", 8, 10), tensor("b", 5, 6)
    (match, *_) = found(product(Read(a, (m * 2, k * 2)), Read(b, (k, n)), [4, 6], [5]))
    assert sorted(match.direct) == [False, True]


def test_a_read_past_the_edge_needs_a_copy() -> None:
    m, n, k = iterators(3)
    a, b = tensor("a", 4, 5), tensor("b", 5, 6)
    (match, *_) = found(product(Read(a, (m - 1, k)), Read(b, (k, n)), [5, 6], [5]))
    assert sorted(match.direct) == [False, True]


def test_images_before_channels_use_batch_stride_zero() -> None:
    """1x1 convolution, channels before pixels: several images are a batch of the data only."""
    scope = conv((4, 16, 7, 7), 8, (1, 1))
    peeled = [m for m in found(scope) if m.batch is not None]
    assert [m.direct for m in peeled] == [(True, True)]
    assert scope.shape[peeled[0].batch] == 4
    assert all(m.batch is None for m in found(conv((1, 16, 7, 7), 8, (1, 1))))


def test_orders_of_k_must_agree() -> None:
    m, n, k, j = iterators(4)
    a, b = tensor("a", 4, 5, 3), tensor("b", 3, 5, 6)
    scope = build([4, 6], [5, 3], [Read(a, (m, k, j)), Read(b, (j, k, n))], f32)
    assert sorted(found(scope)[0].direct) == [False, True]


def test_a_guard_over_both_operands_is_no_contraction() -> None:
    m, n, k = iterators(3)
    a, b = tensor("a", 4, 5), tensor("b", 5, 6)
    factors = [Read(a, (m, k)), Read(b, (k, n)), Guard(m + n - 3, 4)]
    assert matches(build([4, 6], [5], factors, f32)) == []


def test_an_iterator_in_no_group_is_no_contraction() -> None:
    m, k, j = iterators(3)
    a, b = tensor("a", 4, 5, 3), tensor("b", 5)
    assert matches(build([4], [5, 3], [Read(a, (m, k, j)), Read(b, (k,))], f32)) == []


def test_a_new_kernel_joins_by_one_entry() -> None:
    from isoform.lowering.algebra_to_kernel.table import ANY, LibraryKernel

    rank_one = LibraryKernel("outer", {"batch": (0, 0), "m": ANY, "n": ANY, "k": (0, 0)})
    m, n = iterators(2)
    scope = build([4, 6], [], [Read(tensor("a", 4), (m,)), Read(tensor("b", 6), (n,))], f32)
    assert [x.kernel.name for x in matches(scope, (rank_one,))] == ["outer"]


CASES = {c.name: c for c in all_cases()}


@pytest.mark.parametrize("name", ["conv3x3", "transposed-delta", "conv1x1", "gcn-lines"])
def test_direct_products_are_what_strided_views_give(name: str) -> None:
    """Every direct gemm match of the states runs through real views of the operands' buffers."""
    states = Searcher(ScopePrices(), DerivationSettings(depth=2)).search(CASES[name].small).states
    scopes = sorted({s for x in states for s in scopes_of(x.roots)}, key=lambda s: s.token)
    ran = 0
    for scope in scopes:
        for match in matches(scope):
            if match.kernel.window is None and all(match.direct):
                check_views(match)
                ran += 1
    assert ran > 0


def check_views(match: Match) -> None:
    """Multiply strided views, and compare with the sum itself."""
    contraction = match.contraction
    rng = np.random.default_rng(3)
    order = [*match.order, *match.groups["k"]]
    letters = {k: chr(ord("a") + n) for n, k in enumerate(order)}
    views, names, values = [], [], []
    for position in (0, 1):
        read = contraction.operands[position].read
        data = rng.integers(-4, 5, read.source.shape).astype(np.float64)
        flat = flatten(read.index, row_major_strides(read.source.shape))
        own = [k for k in order if flat.coefficient(k) != 0]
        shape = [contraction.extents[k] for k in own]
        strides = [flat.coefficient(k) * data.itemsize for k in own]
        start = data.reshape(-1)[flat.constant :]
        views.append(np.lib.stride_tricks.as_strided(start, shape, strides, writeable=False))
        names.append("".join(letters[k] for k in own))
        values.append((read, data))
    out = "".join(letters[k] for k in match.order)
    got = np.einsum(f"{names[0]},{names[1]}->{out}", *views)
    assert np.array_equal(got, summed(match, values))


def summed(match: Match, values: list) -> np.ndarray:
    """The contraction by its definition, output iterators in the match's order."""
    contraction = match.contraction
    axes = [*match.order, *match.groups["k"]]
    grid: list = [0] * len(contraction.extents)
    for axis, k in enumerate(axes):
        shape = [1] * len(axes)
        shape[axis] = contraction.extents[k]
        grid[k] = np.arange(contraction.extents[k]).reshape(shape)
    total = np.ones([contraction.extents[k] for k in axes])
    for read, data in values:
        at = tuple(np.asarray(Index.of(e).evaluate(grid)) for e in read.index)
        total = total * data[at]
    return total.sum(axis=tuple(range(len(match.order), len(axes))))


def test_results_of_kernels_have_the_order_of_their_windows() -> None:
    """Of a convolution images, features, positions; of band products the outer iterators last."""
    (match, *_) = found(conv((2, 16, 7, 7), 8, (3, 3)), "conv")
    assert match.order == (0, 1, 2, 3) and match.in_order
    h, w, n, f, c, r, s = iterators(7)
    x, k = tensor("x", 7, 7, 2, 16), tensor("k", 3, 3, 16, 8)
    last = build(
        [5, 5, 2, 8], [16, 3, 3], [Read(x, (h + r, w + s, n, c)), Read(k, (r, s, c, f))], f32
    )
    (match, *_) = found(last, "conv")
    assert match.order == (2, 3, 0, 1) and not match.in_order
