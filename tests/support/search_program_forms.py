"""Still more small programs of the expert bar's kinds: forms that the others do not have.

    python tests/support/search_program_forms.py   writes tests/search/original/NAME.mlir anew

Repeated, padded and centred operands, scales of grouped and transposed convolutions, products
inside of concatenations, other layouts of sums of products, other ranks and activations.
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from isoform.compiler.frontends.program_file import module_text
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.files import write_whole
from isoform.dialects.graph import WeightOp
from isoform.dialects.program import Program
from isoform.dialects.types import shape_of
from isoform.dialects.weights import Weights
from support.more_search_programs import MORE, along, averaged, scalar, transposed
from support.search_program_copies import COPIES
from support.search_program_kinds import KINDS
from support.search_programs import ORIGINALS, PROGRAMS, Build, conv, weight


def shared(b: GraphBuilder, x: SSAValue, w: SSAValue) -> SSAValue:
    """A batch of products with one weight."""
    *batch, _, _ = shape_of(x)
    rank = len(batch) + 2
    return b.matmul(x, b.broadcast(w, shape=[*batch, *shape_of(w)], dims=[rank - 2, rank - 1]))


def repeated(b: GraphBuilder, x: SSAValue) -> SSAValue:
    """An image of twice the height and width."""
    n, c, h, w = shape_of(x)
    wide = b.broadcast(x, shape=[n, c, h, 2, w, 2], dims=[0, 1, 2, 4])
    return b.reshape(wide, shape=[n, c, 2 * h, 2 * w])


def centred(b: GraphBuilder, x: SSAValue) -> SSAValue:
    """Rows less their means."""
    shape = shape_of(x)
    means = b.reduce_mean(x, axes=[len(shape) - 1], keep_dims=True)
    return b.sub(x, b.broadcast(means, shape=shape, dims=list(range(len(shape)))))


# --- products -----------------------------------------------------------------------------------


def centred_rows(b: GraphBuilder) -> None:
    b.output("y", b.matmul(centred(b, b.input("x", (128, 192))), weight(b, "w", 192, 64)))


def centred_batch(b: GraphBuilder) -> None:
    b.output("y", shared(b, centred(b, b.input("x", (4, 60, 96))), weight(b, "w", 96, 64)))


def repeated_row(b: GraphBuilder) -> None:
    rows = b.broadcast(b.input("v", (256,)), shape=[200, 256], dims=[1])
    b.output("y", b.matmul(rows, weight(b, "w", 256, 96)))


def padded_columns(b: GraphBuilder) -> None:
    x = b.pad(b.input("x", (64, 200)), pads=[0, 0, 0, 56], fill=0.0)
    b.output("y", b.matmul(x, weight(b, "w", 256, 128)))


def concat_of_product(b: GraphBuilder) -> None:
    x, z = b.input("x", (70, 40)), b.input("z", (70, 90))
    both = b.concat(b.matmul(x, weight(b, "a", 40, 100)), z, axis=1)
    b.output("y", b.matmul(both, weight(b, "w", 190, 50)))


def parts_of_input(b: GraphBuilder) -> None:
    """Each third of the columns has a weight of its own."""
    x, y = b.input("x", (80, 300)), None
    for k in range(3):
        part = b.slice(x, starts=[0, 100 * k], sizes=[80, 100], steps=[1, 1])
        product = b.matmul(part, weight(b, f"w{k}", 100, 64))
        y = product if y is None else b.add(y, product)
    assert y is not None
    b.output("y", y)


def four_products(b: GraphBuilder) -> None:
    """The last three are taken off and added in turn."""
    x = b.input("x", (90, 150))
    first, *others = (b.matmul(x, weight(b, f"w{k}", 150, 60)) for k in range(4))
    for k, other in enumerate(others):
        first = b.add(first, other) if k % 2 else b.sub(first, other)
    b.output("y", first)


def signs_and_scales(b: GraphBuilder) -> None:
    x = b.input("x", (66, 100))
    y = b.neg(b.matmul(b.neg(x), weight(b, "w", 100, 80)))
    z = b.mul(scalar(b, 3.0, (66, 80)), b.matmul(x, weight(b, "v", 100, 80)))
    b.output("y", b.sub(y, z))


def chain4(b: GraphBuilder) -> None:
    """Four factors; the last is narrow."""
    y = b.input("a", (200, 150))
    for n, shape in (("c", (150, 170)), ("d", (170, 130)), ("v", (130, 3))):
        y = b.matmul(y, b.input(n, shape))
    b.output("y", y)


def gram(b: GraphBuilder) -> None:
    """A product of two wide products of one input; only the two weights meet in the middle."""
    x = b.input("x", (60, 40))
    first, second = (b.matmul(x, weight(b, n, 40, 300)) for n in "wv")
    b.output("y", b.matmul(first, second, transpose_b=True))


def lora_scaled(b: GraphBuilder) -> None:
    """Weights are transposed, the low rank is scaled."""
    x = b.reshape(b.input("x", (2, 50, 320)), shape=[100, 320])
    y = b.matmul(x, weight(b, "w", 160, 320), transpose_b=True)
    z = b.matmul(x, weight(b, "a", 8, 320), transpose_b=True)
    z = b.matmul(z, weight(b, "b", 160, 8), transpose_b=True)
    y = b.add(y, b.mul(scalar(b, 2.0, (100, 160)), z))
    b.output("y", b.reshape(y, shape=[2, 50, 160]))


def lin_attn4(b: GraphBuilder) -> None:
    """Heads of attention without softmax; the scores are divided."""
    q, k, v = (b.input(n, (2, 4, 512, 24)) for n in "qkv")
    scores = b.div(b.matmul(q, k, transpose_b=True), scalar(b, 5.0, (2, 4, 512, 512)))
    b.output("y", b.matmul(scores, v))


def mean_tokens(b: GraphBuilder) -> None:
    y = shared(b, b.input("x", (3, 50, 64)), weight(b, "w", 64, 96))
    y = b.add(y, along(b, "c", (3, 50, 96), 2))
    b.output("y", b.reduce_mean(y, axes=[1], keep_dims=False))


def einsum_mid(b: GraphBuilder) -> None:
    """bkm, bkn -> mbn, written as a sum of products."""
    shape = [40, 6, 50, 30]
    a = b.transpose(b.input("a", (6, 50, 40)), perm=[2, 0, 1])
    a = b.broadcast(a, shape=shape, dims=[0, 1, 2])
    c = b.broadcast(b.input("c", (6, 50, 30)), shape=shape, dims=[1, 2, 3])
    b.output("y", b.reduce_sum(b.mul(a, c), axes=[2], keep_dims=False))


def linear_of_columns(b: GraphBuilder) -> None:
    x = b.transpose(b.input("x", (70, 90)), perm=[1, 0])
    y = b.add(b.matmul(weight(b, "w", 48, 90), x), along(b, "c", (48, 70), 0))
    b.output("y", b.transpose(b.tanh(y), perm=[1, 0]))


def heads_and_back(b: GraphBuilder) -> None:
    """Heads are taken apart for an activation alone."""
    x = b.reshape(b.input("x", (2, 30, 96)), shape=[2, 30, 6, 16])
    y = b.mul(b.transpose(x, perm=[0, 2, 1, 3]), scalar(b, 0.5, (2, 6, 30, 16)))
    y = b.transpose(b.elu(y), perm=[0, 2, 1, 3])
    b.output("y", shared(b, b.reshape(y, shape=[2, 30, 96]), weight(b, "w", 96, 48)))


# --- convolutions -------------------------------------------------------------------------------


def silu_branches(b: GraphBuilder) -> None:
    x, parts = b.input("x", (2, 48, 15, 11)), list[SSAValue]()
    for n, filters in (("a", 24), ("b", 40)):
        y = conv(b, x, weight(b, f"w{n}", filters, 48, 1, 1))
        parts.append(b.mul(y, b.sigmoid(y)))
    b.output("y", b.concat(*parts, axis=1))


def repeated_image(b: GraphBuilder) -> None:
    x = repeated(b, b.input("x", (1, 128, 16, 16)))
    b.output("y", conv(b, x, weight(b, "w", 64, 128, 1, 1)))


def image_pool(b: GraphBuilder) -> None:
    """The branch of the whole image, as in DeepLab."""
    x = b.reduce_mean(b.input("x", (1, 128, 24, 24)), axes=[2, 3], keep_dims=True)
    x = b.broadcast(x, shape=[1, 128, 24, 24], dims=[0, 1, 2, 3])
    b.output("y", b.relu(conv(b, x, weight(b, "w", 64, 128, 1, 1), weight(b, "c", 64))))


def group_scale(b: GraphBuilder) -> None:
    shape = (1, 64, 22, 18)
    x = b.div(b.input("x", shape), along(b, "g", shape, 1))
    b.output("y", conv(b, x, weight(b, "w", 96, 16, 3, 3), groups=4))


def tconv_scale(b: GraphBuilder) -> None:
    shape = (1, 64, 12, 12)
    x = b.mul(b.input("x", shape), along(b, "g", shape, 1))
    y = transposed(b, x, weight(b, "w", 64, 32, 2, 2), 2)
    b.output("y", b.mul(y, along(b, "h", (1, 32, 24, 24), 1)))


def concat_of_convs(b: GraphBuilder) -> None:
    x, z = b.input("x", (1, 64, 18, 18)), b.input("z", (1, 48, 18, 18))
    parts = conv(b, x, weight(b, "a", 128, 64, 1, 1)), conv(b, z, weight(b, "c", 96, 48, 1, 1))
    b.output("y", conv(b, b.concat(*parts, axis=1), weight(b, "w", 32, 224, 1, 1)))


def pool_conv_mean(b: GraphBuilder) -> None:
    x = averaged(b, b.input("x", (1, 32, 24, 24)), 2, 2)
    y = conv(b, x, weight(b, "w", 256, 32, 1, 1))
    b.output("y", b.reduce_mean(y, axes=[2, 3], keep_dims=False))


def nhwc_pair(b: GraphBuilder) -> None:
    x = b.transpose(b.input("x", (1, 15, 21, 48)), perm=[0, 3, 1, 2])
    for n, filters in (("p", 32), ("q", 80)):
        w, c = weight(b, f"w{n}", filters, 48, 1, 1), weight(b, f"c{n}", filters)
        b.output(n, b.transpose(b.sigmoid(conv(b, x, w, c)), perm=[0, 2, 3, 1]))


def depthwise_pair(b: GraphBuilder) -> None:
    x = b.input("x", (1, 56, 19, 23))
    y = conv(b, x, weight(b, "w", 56, 1, 3, 3), groups=56)
    b.output("y", b.add(b.add(y, conv(b, x, weight(b, "v", 56, 1, 5, 5), groups=56)), x))


def one_kernel(b: GraphBuilder) -> None:
    """Two images, one kernel, as in a siamese network."""
    w, c = weight(b, "w", 48, 32, 3, 3), weight(b, "c", 48)
    for n in "pq":
        b.output(n, b.relu(conv(b, b.input(f"x{n}", (1, 32, 20, 20)), w, c)))


def strided_dilated(b: GraphBuilder) -> None:
    """Stride and dilation are one number: every other pixel is not read."""
    x, w = b.input("x", (1, 96, 26, 26)), weight(b, "w", 96, 96, 3, 3)
    b.output("y", b.conv(x, w, strides=[2, 2], pads=[2] * 4, dilations=[2, 2], groups=1))


FORMS: dict[str, Build] = {
    build.__name__: build
    for build in (
        *(centred_rows, centred_batch, repeated_row, padded_columns, concat_of_product),
        *(parts_of_input, four_products, signs_and_scales, chain4, gram, lora_scaled, lin_attn4),
        *(mean_tokens, einsum_mid, linear_of_columns, heads_and_back, silu_branches),
        *(repeated_image, image_pool, group_scale, tconv_scale, concat_of_convs, pool_conv_mean),
        *(nhwc_pair, depthwise_pair, one_kernel, strided_dilated),
    )
}


EVERY = PROGRAMS | MORE | FORMS | KINDS | COPIES


def built(name: str) -> Program:
    """Build a program of these, of the others or of the 36."""
    b = GraphBuilder()
    EVERY[name](b)
    return b.build(name)


def with_weights(program: Program) -> Program:
    """The program with weights drawn in order."""
    rng = np.random.default_rng(0)
    ops = [op for op in program.main.body.block.ops if isinstance(op, WeightOp)]
    shapes = {op.key: op.type.get_shape() for op in ops}
    arrays = {key: rng.standard_normal(shape, np.float32) for key, shape in shapes.items()}
    program.weights = Weights(arrays)
    return program


def main() -> None:
    """Write the text of every program of these."""
    for name in FORMS:
        write_whole(ORIGINALS / f"{name}.mlir", module_text(built(name).module))


if __name__ == "__main__":
    main()
