"""Templates: which scopes are products and convolutions, and with which parameters."""

import pytest
from xdsl.dialects.builtin import f32

from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import lower_to
from isoform.dialects.algebra import ScopeOp
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.contraction_attr import ContractionAttr, ConvParameters
from isoform.lowering.algebra_to_kernel.attention import match_attention, scattered
from isoform.lowering.algebra_to_kernel.match import (
    GemmMatch,
    match_conv,
    match_gemm,
)
from isoform.lowering.graph_to_algebra import lower
from isoform.testing.random_programs import random_scope_program

SHAPES = "%x: tensor<{}>, %w: tensor<{}>"


def scope(text: str, x: str, w: str) -> ScopeOp:
    """The one scope of a function of %x and %w."""
    arguments = SHAPES.format(x, w)
    program = parse(f"func.func @main({arguments}) {{\n  %y = {text}\n  func.return\n}}")
    (found,) = (op for op in program.main.body.block.ops if isinstance(op, ScopeOp))
    return found


def gemm(text: str, x: str, w: str) -> GemmMatch | None:
    return match_gemm(scope(text, x, w))


def conv_of(op: str, x: tuple, w: tuple, **properties) -> ConvParameters | None:
    """The match of the scope that a graph convolution lowers to."""
    b = GraphBuilder()
    value = b.op(op, b.input("x", x, f32), b.input("w", w, f32), **properties)
    b.output("y", value)
    program = b.build()
    lower(value.owner)
    return match_conv(next(o for o in program.main.body.block.ops if isinstance(o, ScopeOp)))


# --- products -----------------------------------------------------------------------------------


def test_a_plain_product() -> None:
    text = "algebra.scope (m: 4, n: 8) sum (k: 16) %x[m, k] * %w[k, n] : tensor<4x8xf32>"
    found = gemm(text, "4x16xf32", "16x8xf32")
    assert found is not None and found.batch == ()
    assert (found.m.extent, found.n.extent, found.k.extent) == (4, 8, 16)
    assert (found.m.a, found.k.a, found.k.b, found.n.b, found.m.out) == (16, 1, 8, 1, 8)


def test_transposed_operands_are_strides() -> None:
    text = "algebra.scope (m: 4, n: 8) sum (k: 16) %x[k, m] * %w[n, k] : tensor<4x8xf32>"
    found = gemm(text, "16x4xf32", "8x16xf32")
    assert found is not None
    assert (found.m.a, found.k.a, found.k.b, found.n.b) == (1, 4, 1, 16)


def test_the_operand_of_the_columns_is_b_whichever_comes_first() -> None:
    text = "algebra.scope (m: 4, n: 8) sum (k: 16) %w[k, n] * %x[m, k] : tensor<4x8xf32>"
    found = gemm(text, "4x16xf32", "16x8xf32")
    assert found is not None and found.n.b == 1 and found.m.a == 16


def test_adjacent_rows_merge_and_apart_ones_are_a_batch() -> None:
    merged = (
        "algebra.scope (a: 2, m: 3, n: 8) sum (k: 4) %x[a, m, k] * %w[k, n] : tensor<2x3x8xf32>"
    )
    found = gemm(merged, "2x3x4xf32", "4x8xf32")
    assert found is not None and found.m.extent == 6 and found.m.iterators == (0, 1)
    apart = "algebra.scope (a: 2, m: 3, n: 8) sum (k: 4) %x[a, m, k] * %w[k, n] : tensor<2x3x8xf32>"
    found = gemm(apart, "2x5x4xf32", "4x8xf32")
    assert found is not None and found.m.iterators == (1,) and found.shares
    assert [(axis.extent, axis.a, axis.b) for axis in found.batch] == [(2, 20, 0)]


def test_pixels_of_several_images_are_a_batch() -> None:
    """A 1x1 convolution in NCHW: columns (n, h, w) are a range only for one image."""
    text = "algebra.scope (n: {0}, f: 8, h: 5, w: 5) sum (c: 4) %x[n, c, h, w] * %w[f, c] : {1}"
    found = gemm(text.format(2, "tensor<2x8x5x5xf32>"), "2x4x5x5xf32", "8x4xf32")
    assert found is not None and found.n.iterators == (2, 3)
    assert [(axis.extent, axis.a, axis.b) for axis in found.batch] == [(2, 0, 100)]
    found = gemm(text.format(1, "tensor<1x8x5x5xf32>"), "1x4x5x5xf32", "8x4xf32")
    assert found is not None and (found.m.extent, found.n.extent, found.k.b) == (8, 25, 25)


def test_batches_keep_their_strides() -> None:
    text = (
        "algebra.scope (a: 2, b: 3, m: 4, n: 5) sum (k: 6) %x[a, b, m, k] * %w[b, a, k, n] "
        ": tensor<2x3x4x5xf32>"
    )
    found = gemm(text, "2x3x4x6xf32", "3x2x6x5xf32")
    assert found is not None
    assert [(axis.extent, axis.a, axis.b) for axis in found.batch] == [(2, 72, 30), (3, 24, 60)]


def test_sliced_operands_have_offsets() -> None:
    text = (
        "algebra.scope (m: 4, n: 8) sum (k: 16) %x[m + 1, k] * %w[k + 2, n + 3] : tensor<4x8xf32>"
    )
    found = gemm(text, "6x16xf32", "20x12xf32")
    assert found is not None and (found.a_offset, found.b_offset) == (16, 2 * 12 + 3)


NO_PRODUCTS = {
    "another reduction": "max (k: 16) %x[m, k] * %w[k, n]",
    "no sum": "%x[m, 0] * %w[0, n]",
    "no product": "sum (k: 16) %x[m, k] + %w[k, n]",
    "an operand is left": "sum (k: 16) %x[m, k - 1] * %w[k, n]",
    "a sum over one operand alone": "sum (k: 16, j: 2) %x[m, k] * %w[k, n]",
    "a floor": "sum (k: 16) %x[m floordiv 2, k] * %w[k, n]",
    "rows that go backwards": "sum (k: 16) %x[-m + 3, k] * %w[k, n]",
    "one operand twice as a factor": "sum (k: 16) %x[m, k] * %x[m, k] * %w[k, n]",
}


@pytest.mark.parametrize("text", NO_PRODUCTS.values(), ids=NO_PRODUCTS)
def test_what_is_no_product(text: str) -> None:
    full = f"algebra.scope (m: 4, n: 8) {text} : tensor<4x8xf32>"
    assert gemm(full, "4x16xf32", "16x8xf32") is None


def test_products_of_floats_of_32_and_64_bits() -> None:
    text = "algebra.scope (m: 4, n: 8) sum (k: 16) %x[m, k] * %w[k, n] : tensor<4x8x{}>"
    for kind, is_product in (("f32", True), ("f64", True), ("f16", False), ("i64", False)):
        found = gemm(text.format(kind), f"4x16x{kind}", f"16x8x{kind}")
        assert (found is not None) == is_product, kind


def test_a_match_never_reads_outside_its_operands() -> None:
    """Whatever random scopes match, every address lies in the operand."""
    for seed in range(150):
        for op in random_scope_program(seed).main.body.block.ops:
            found = match_gemm(op) if isinstance(op, ScopeOp) else None
            if found is None:
                continue
            for side, read, first in (
                ("a", found.a, found.a_offset),
                ("b", found.b, found.b_offset),
            ):
                axes = (*found.batch, found.m, found.n, found.k)
                last = first + sum((axis.extent - 1) * getattr(axis, side) for axis in axes)
                size = 1
                for n in read.source.type.get_shape():
                    size *= n
                assert 0 <= first <= last < size


# --- convolutions -------------------------------------------------------------------------------


def test_a_convolution_with_everything() -> None:
    found = conv_of(
        "conv",
        (2, 6, 9, 11),
        (4, 3, 3, 2),
        strides=[2, 1],
        pads=[1, 0, 2, 1],
        dilations=[1, 3],
        groups=2,
    )
    assert found is not None and not found.transposed
    assert (found.groups, found.channels_per_group, found.kernel) == (2, 3, (3, 2))
    assert (found.strides, found.dilations, found.pads) == ((2, 1), (1, 3), (1, 0))
    assert found.filter_dims == ("f", "c", 0, 1)


def test_depthwise_convolutions_have_one_channel_a_group() -> None:
    found = conv_of("conv", (1, 4, 8), (4, 1, 3), strides=[1], pads=[1, 1], dilations=[1], groups=4)
    assert found is not None
    assert (found.groups, found.channels_per_group) == (4, 1)


@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_convolutions_match_with_their_guard(groups: int) -> None:
    found = conv_of(
        "conv_transpose",
        (1, 4, 5, 5),
        (4, 3, 4, 3),
        strides=[2, 1],
        pads=[1, 0, 1, 0],
        dilations=[1, 1],
        groups=groups,
        output_padding=[0, 0],
    )
    if groups == 1:
        assert found is not None and found.transposed
        assert (found.strides, found.kernel, found.filter_dims) == (
            (2, 1),
            (4, 3),
            ("c", "f", 0, 1),
        )
    else:
        assert found is None or found.groups == 2


def test_a_transposed_convolution_without_its_guard_is_none() -> None:
    text = (
        "algebra.scope (n: 1, f: 2, w: 9) sum (c: 3, s: 3) "
        "%x[n, c, (w - s) floordiv 2] * %w[c, f, s] : tensor<1x2x9xf32>"
    )
    assert match_conv(scope(text, "1x3x4xf32", "3x2x3xf32")) is None


OTHER_VALUE_OUTSIDE = "sum (c: 3, r: 3, s: 3) %x[n, c, h + r - 1, w + s] else 1.0 * %w[f, c, r, s]"
NO_CONVOLUTIONS = {
    "images reversed": "sum (c: 3, r: 3, s: 3) %x[-n + 1, c, h + r, w + s] * %w[f, c, r, s]",
    "one tap for two dims": "sum (c: 3, r: 3) %x[n, c, h + r, w + r] * %w[f, c, r, 0]",
    "weights vary over places": "sum (c: 3, s: 3) %x[n, c, h, w + s] * %w[f, c, h floordiv 2, s]",
    "another value outside": OTHER_VALUE_OUTSIDE,
    "some channels only": "sum (c: 2, r: 3, s: 3) %x[n, c, h + r, w + s] * %w[f, c, r, s]",
    "some taps only": "sum (c: 3, r: 2, s: 3) %x[n, c, h + r, w + s] * %w[f, c, r, s]",
    "a sum over nothing": "sum (c: 3, r: 3, s: 3, z: 2) %x[n, c, h + r, w + s] * %w[f, c, r, s]",
    "a tap the weights lack": "sum (c: 3, r: 3, s: 3) %x[n, c, h + r, w + s] * %w[f, c, r, 0]",
    "another reduction": "prod (c: 3, r: 3, s: 3) %x[n, c, h + r, w + s] * %w[f, c, r, s]",
}


@pytest.mark.parametrize("text", NO_CONVOLUTIONS.values(), ids=NO_CONVOLUTIONS)
def test_what_is_no_convolution(text: str) -> None:
    full = f"algebra.scope (n: 2, f: 2, h: 4, w: 4) {text} : tensor<2x2x4x4xf32>"
    assert match_conv(scope(full, "2x3x6x6xf32", "2x3x3x3xf32")) is None


def test_the_plain_form_of_the_above_is_one() -> None:
    text = "sum (c: 3, r: 3, s: 3) %x[n, c, h + r, w + s] * %w[f, c, r, s]"
    full = f"algebra.scope (n: 2, f: 2, h: 4, w: 4) {text} : tensor<2x2x4x4xf32>"
    assert match_conv(scope(full, "2x3x6x6xf32", "2x3x3x3xf32")) is not None


def test_scopes_of_one_form_share_their_contraction_and_others_do_not() -> None:
    """What is remembered is found by the whole form: a body or map of another kind is another."""
    text = "algebra.scope (m: 4, n: 8) sum (k: 16) %x[m, k] {0} %w[{1}] : tensor<4x8xf32>"
    one = ContractionAttr.of(scope(text.format("*", "k, n"), "4x16xf32", "16x8xf32"))
    assert one is ContractionAttr.of(scope(text.format("*", "k, n"), "4x16xf32", "16x8xf32"))
    assert ContractionAttr.of(scope(text.format("+", "k, n"), "4x16xf32", "16x8xf32")) is None
    shifted = ContractionAttr.of(scope(text.format("*", "k, 0"), "4x16xf32", "16x8xf32"))
    assert shifted is None


def test_a_product_needs_a_sum_and_no_guard() -> None:
    """Ones that are read at m - k leave products out, which no library kernel does."""
    sums = "algebra.scope (m: 4, n: 4) sum (k: 4) %x[m, k] * %w[k, n]"
    assert gemm(f"{sums} : tensor<4x4xf32>", "4x4xf32", "4x4xf32") is not None
    guarded = f"algebra.ones : tensor<4xf32>\n  %z = {sums} * %y[m - k] : tensor<4x4xf32>"
    assert gemm(guarded, "4x4xf32", "4x4xf32") is None
    outer = "algebra.scope (m: 4, n: 8) %x[m] * %w[n] : tensor<4x8xf32>"
    assert gemm(outer, "4xf32", "8xf32") is None


def test_iterators_of_extent_one_are_in_no_group() -> None:
    text = (
        "algebra.scope (z: 1, m: 4, n: 8) sum (k: 2, u: 1) "
        "%x[z, m, k] * %w[k + u, n] : tensor<1x4x8xf32>"
    )
    found = ContractionAttr.of(scope(text, "1x4x2xf32", "2x8xf32"))
    assert found is not None
    assert [found.group(name) for name in ("batch", "m", "n", "k")] == [(), (1,), (2,), (3,)]


@pytest.mark.parametrize("features", [1, 2, 3])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("images", [1, 2])
def test_convolutions_match_channels_last(features: int, channels: int, images: int) -> None:
    text = (
        f"algebra.scope (n: {images}, h: 5, w: 4, f: {features}) sum (r: 3, s: 2, c: {channels}) "
        f"%x[n, h + r - 1, w * 2 + s, c] * %w[r, s, c, f] : tensor<{images}x5x4x{features}xf32>"
    )
    found = match_conv(
        scope(text, f"{images}x5x8x{channels}xf32", f"3x2x{channels}x{features}xf32")
    )
    assert found is not None
    assert (found.strides, found.pads, found.kernel) == ((1, 2), (1, 0), (3, 2))
    assert (found.groups, found.channels_per_group) == (1, channels)


@pytest.mark.parametrize(
    ("read", "x", "expected"),
    [
        ("%x[i, j]", "2x3xf32", (3, 1)),
        ("%x[j, i]", "3x2xf32", (1, 3)),
        ("%x[i, 0, j]", "2x1x3xf32", (3, 0, 1)),
        ("%x[1 - i, j]", "2x3xf32", None),
        ("%x[i, 2 - j]", "2x3xf32", None),
        ("%x[i, j]", "2x4xf32", None),
        ("%x[i, j] * 2.0", "2x3xf32", (3, 1)),
        ("%x[i * 3 + j]", "6xf32", (1,)),
    ],
)
def test_a_copy_is_stored_by_strides(read: str, x: str, expected: tuple | None) -> None:
    made = scope(f"algebra.scope (i: 2, j: 3) {read} : tensor<2x3xf32>", x, "1xf32")
    assert scattered(made, made.reads()[0], (3, 1)) == expected


@pytest.mark.parametrize("image", ["n", "0"])
def test_a_convolution_whose_images_are_the_third_dim_matches(image: str) -> None:
    """One image: its position is 0, also in no index, after the rows and columns."""
    text = (
        "algebra.scope (h: 5, w: 4, n: 1, f: 3) sum (r: 3, s: 2, c: 6) "
        f"%x[h + r - 1, w + s, {image}, c] * %w[r, s, c, f] : tensor<5x4x1x3xf32>"
    )
    found = match_conv(scope(text, "5x6x1x6xf32", "3x2x6x3xf32"))
    assert found is not None and found.pads == (1, 0)


def test_a_loop_of_one_round_moves_nothing_in_attention() -> None:
    b = GraphBuilder()
    q, k, v = (
        b.input(name, (1, 2, *dims)) for name, *dims in (("q", 16, 8), ("k", 5, 8), ("v", 5, 6))
    )
    b.output("y", b.matmul(b.softmax(b.matmul(q, k, transpose_b=True), axis=3), v))
    program = lower_to(b.build(), "algebra")
    found = match_attention([op for op in program.module.walk() if isinstance(op, ScopeOp)])
    assert found is not None
    for flat in (found.left.flat, found.right.flat, found.values.flat, found.out):
        assert flat.constant == 0
