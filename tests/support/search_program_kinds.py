"""Once more small programs of the expert bar: kinds of rewrites that the others leave out.

    python tests/support/search_program_kinds.py   writes tests/search/original/NAME.mlir anew

Low ranks beside convolutions, norms' gains, shared keys, parts with weights of their own, sums of
all entries, groups of several images, shuffles, batches taken apart, volumes and signals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from isoform.compiler.frontends.program_file import module_text
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.files import write_whole
from isoform.dialects.types import shape_of
from support.more_search_programs import along, linear, scalar, transposed
from support.search_programs import ORIGINALS, Build, conv, weight


def shared(b: GraphBuilder, x: SSAValue, w: SSAValue) -> SSAValue:
    """A batch of products with one weight."""
    batch, _, _ = shape_of(x)
    return b.matmul(x, b.broadcast(w, shape=[batch, *shape_of(w)], dims=[1, 2]))


def part(b: GraphBuilder, x: SSAValue, axis: int, start: int, size: int) -> SSAValue:
    """A slice along one dim."""
    sizes = list(shape_of(x))
    starts, steps = [0] * len(sizes), [1] * len(sizes)
    starts[axis], sizes[axis] = start, size
    return b.slice(x, starts=starts, sizes=sizes, steps=steps)


def swapped(b: GraphBuilder, x: SSAValue) -> SSAValue:
    """Matrices transposed."""
    rank = len(shape_of(x))
    return b.transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])


def total(b: GraphBuilder, values: Sequence[SSAValue]) -> SSAValue:
    """The sum of values."""
    first, *others = values
    for other in others:
        first = b.add(first, other)
    return first


# --- products -----------------------------------------------------------------------------------


def part_weights(b: GraphBuilder) -> None:
    """Each quarter of the columns has a weight of its own; the results stand side by side."""
    x = b.input("x", (60, 192))
    parts = [b.matmul(part(b, x, 1, 48 * k, 48), weight(b, f"w{k}", 48, 40)) for k in range(4)]
    b.output("y", b.concat(*parts, axis=1))


def sum_all(b: GraphBuilder) -> None:
    y = b.matmul(b.input("a", (200, 300)), b.input("c", (300, 150)))
    b.output("y", b.reduce_sum(y, axes=[0, 1], keep_dims=False))


def norm_gain_qkv(b: GraphBuilder) -> None:
    """A norm of rows with a gain, then three products."""
    x = b.input("x", (40, 96))
    mean = b.reduce_mean(b.mul(x, x), axes=[1], keep_dims=True)
    root = b.sqrt(b.add(mean, scalar(b, 1e-5, (40, 1))))
    x = b.div(x, b.broadcast(root, shape=[40, 96], dims=[0, 1]))
    x = b.mul(x, along(b, "g", (40, 96), 1))
    for n, width in (("q", 96), ("k", 32), ("v", 32)):
        b.output(n, b.matmul(x, weight(b, f"w{n}", 96, width)))


def mqa(b: GraphBuilder) -> None:
    """All heads share their keys."""
    q, k = b.input("q", (2, 8, 40, 32)), b.input("k", (2, 1, 40, 32))
    keys = b.broadcast(k, shape=[2, 8, 40, 32], dims=[0, 1, 2, 3])
    b.output("y", b.matmul(q, keys, transpose_b=True))


def shared_left_batch(b: GraphBuilder) -> None:
    x = b.input("x", (6, 40, 56))
    for n, width in (("p", 24), ("q", 48), ("r", 16)):
        b.output(n, b.matmul(x, b.input(f"w{n}", (6, 56, width))))


def rows_of_products(b: GraphBuilder) -> None:
    w = weight(b, "w", 80, 64)
    parts = [b.matmul(b.input(n, (rows, 80)), w) for n, rows in (("p", 30), ("q", 50), ("r", 20))]
    b.output("y", b.concat(*parts, axis=0))


def three_lefts(b: GraphBuilder) -> None:
    w = weight(b, "w", 120, 90)
    x, y, z = (b.matmul(b.input(n, (70, 120)), w) for n in "xyz")
    b.output("s", b.sub(b.add(x, y), z))


def two_values(b: GraphBuilder) -> None:
    """Attention of one query and keys, written twice."""
    q, k = b.input("q", (50, 32)), b.input("k", (60, 32))
    for n in "uv":
        p = b.softmax(b.matmul(q, k, transpose_b=True), axis=1)
        b.output(n, b.matmul(p, b.input(f"x{n}", (60, 40))))


def geglu3(b: GraphBuilder) -> None:
    """A gated layer of a batch, with biases and a shortcut."""
    x, shape = b.input("x", (3, 20, 64)), (3, 20, 160)
    u = b.add(shared(b, x, weight(b, "wu", 64, 160)), along(b, "bu", shape, 2))
    v = b.add(shared(b, x, weight(b, "wv", 64, 160)), along(b, "bv", shape, 2))
    h = b.erf(b.mul(u, scalar(b, 0.70710678, shape)))
    u = b.mul(b.mul(u, scalar(b, 0.5, shape)), b.add(h, scalar(b, 1.0, shape)))
    b.output("y", b.add(shared(b, b.mul(u, v), weight(b, "wo", 160, 64)), x))


def row_chain(b: GraphBuilder) -> None:
    m = b.matmul(b.input("a", (150, 170)), b.input("c", (170, 130)))
    m = b.matmul(m, b.input("d", (130, 90)))
    b.output("y", b.matmul(b.input("v", (1, 150)), m))


def value_out(b: GraphBuilder) -> None:
    """Values and the output's weight, with attention between them."""
    v = b.matmul(b.input("x", (64, 96)), weight(b, "wv", 96, 384))
    p = b.softmax(b.input("s", (64, 64)), axis=1)
    b.output("y", b.matmul(b.matmul(p, v), weight(b, "wo", 384, 96)))


def transposed_product(b: GraphBuilder) -> None:
    a, c = b.input("a", (4, 60, 80)), b.input("c", (4, 80, 50))
    b.output("y", b.relu(swapped(b, b.matmul(swapped(b, c), swapped(b, a)))))


def head_outputs(b: GraphBuilder) -> None:
    """Each head has an output weight of its own; the results are added."""
    heads = list[SSAValue]()
    for k in range(3):
        p = b.softmax(b.input(f"s{k}", (40, 40)), axis=1)
        y = b.matmul(p, b.input(f"v{k}", (40, 32)))
        heads.append(b.matmul(y, weight(b, f"w{k}", 32, 72)))
    b.output("y", total(b, heads))


def outer(b: GraphBuilder) -> None:
    y = b.matmul(b.input("u", (200, 1)), b.input("v", (1, 150)))
    b.output("y", b.matmul(y, b.input("c", (150, 120))))


def weighted_mean(b: GraphBuilder) -> None:
    """A weighted sum of the rows of a product."""
    y = b.matmul(b.input("x", (90, 64)), weight(b, "w", 64, 110))
    s = b.broadcast(b.input("s", (90, 1)), shape=[90, 110], dims=[0, 1])
    b.output("y", b.reduce_sum(b.mul(y, s), axes=[0], keep_dims=True))


def bias_twice(b: GraphBuilder) -> None:
    y = linear(b, b.input("x", (70, 90)), "1", 60)
    y = b.add(y, along(b, "d", (70, 60), 1))
    b.output("y", b.mul(y, scalar(b, 3.0, (70, 60))))


def half_heads(b: GraphBuilder) -> None:
    """Three of eight heads are read."""
    y = b.matmul(b.input("x", (40, 64)), weight(b, "w", 64, 128))
    y = b.transpose(b.reshape(y, shape=[40, 8, 16]), perm=[1, 0, 2])
    b.output("y", part(b, y, 0, 0, 3))


def diff_of_products(b: GraphBuilder) -> None:
    """One left side, in one product as the transposed right."""
    a = b.input("a", (3, 40, 60))
    z = b.matmul(b.input("d", (3, 50, 60)), a, transpose_b=True)
    b.output("y", b.sub(b.matmul(a, b.input("c", (3, 60, 50))), swapped(b, z)))


def sunk_transposes5(b: GraphBuilder) -> None:
    perm = [0, 2, 1, 4, 3]
    x, z = (b.transpose(b.input(n, (2, 6, 10, 8, 12)), perm=perm) for n in "xz")
    y = b.mul(b.tanh(b.add(x, z)), scalar(b, 0.5, (2, 10, 6, 12, 8)))
    b.output("y", b.transpose(y, perm=perm))


# --- convolutions -------------------------------------------------------------------------------


def lora_conv(b: GraphBuilder) -> None:
    x = b.input("x", (1, 64, 20, 20))
    low = conv(b, conv(b, x, weight(b, "a", 8, 64, 3, 3)), weight(b, "u", 96, 8, 1, 1))
    b.output("y", b.add(conv(b, x, weight(b, "w", 96, 64, 3, 3)), low))


def pool_pw3d(b: GraphBuilder) -> None:
    y = conv(b, b.input("x", (1, 48, 8, 16, 16)), weight(b, "w", 64, 48, 1, 1, 1))
    flags: dict[str, Any] = {"strides": [2] * 3, "pads": [0] * 6, "dilations": [1] * 3}
    b.output("y", b.avg_pool(y, kernel=[2] * 3, count_include_pad=True, **flags))


def group_convs(b: GraphBuilder) -> None:
    """Groups of two images, side by side."""
    parts = [
        conv(b, b.input(n, (1, 32, 16, 16)), weight(b, f"w{n}", 32, 16, 3, 3), groups=2)
        for n in "xz"
    ]
    b.output("y", b.concat(*parts, axis=1))


def scaled_and_moved(b: GraphBuilder, x: SSAValue, name: str) -> SSAValue:
    """A batch norm, written out."""
    shape = shape_of(x)
    x = b.mul(x, along(b, f"g{name}", shape, 1))
    return b.add(x, along(b, f"o{name}", shape, 1))


def conv_bn_chain(b: GraphBuilder) -> None:
    y = conv(b, b.input("x", (1, 32, 22, 22)), weight(b, "w", 64, 32, 3, 3))
    y = scaled_and_moved(b, y, "1")
    y = conv(b, y, weight(b, "v", 48, 64, 1, 1), weight(b, "c", 48))
    b.output("y", b.relu(scaled_and_moved(b, y, "2")))


def resid1d(b: GraphBuilder) -> None:
    x = b.input("x", (2, 64, 70))
    b.output("y", b.add(x, conv(b, x, weight(b, "w", 64, 64, 3), weight(b, "c", 64))))


def whole_kernel(b: GraphBuilder) -> None:
    """A kernel as large as the image."""
    w, c = weight(b, "w", 64, 32, 5, 5), weight(b, "c", 64)
    flags = {"strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1]}
    b.output("y", b.conv(b.input("x", (8, 32, 5, 5)), w, c, groups=1, **flags))


def split_batch(b: GraphBuilder) -> None:
    """The images of a batch one by one."""
    x, w, c = b.input("x", (4, 24, 18, 18)), weight(b, "w", 40, 24, 3, 3), weight(b, "c", 40)
    images = [b.relu(conv(b, part(b, x, 0, k, 1), w, c)) for k in range(4)]
    b.output("y", b.concat(*images, axis=0))


def tconv_pw(b: GraphBuilder) -> None:
    y = transposed(b, b.input("x", (1, 48, 14, 14)), weight(b, "w", 48, 96, 2, 2), 2)
    b.output("y", conv(b, y, weight(b, "v", 24, 96, 1, 1), weight(b, "c", 24)))


def se_block(b: GraphBuilder) -> None:
    """Gates of an image's channels."""
    x, shape = b.input("x", (1, 64, 16, 16)), [1, 64, 16, 16]
    y = b.reduce_mean(x, axes=[2, 3], keep_dims=True)
    y = b.relu(conv(b, y, weight(b, "w", 16, 64, 1, 1), weight(b, "c", 16)))
    y = b.sigmoid(conv(b, y, weight(b, "v", 64, 16, 1, 1), weight(b, "d", 64)))
    x = b.mul(x, b.broadcast(y, shape=shape, dims=[0, 1, 2, 3]))
    b.output("y", conv(b, x, weight(b, "u", 96, 64, 1, 1)))


def pool_of_parts(b: GraphBuilder) -> None:
    flags: dict[str, Any] = {"kernel": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    flags |= {"dilations": [1, 1]}
    sizes = (("p", 16), ("q", 48))
    parts = [b.max_pool(b.input(n, (1, c, 20, 20)), **flags) for n, c in sizes]
    b.output("y", b.relu(b.concat(*parts, axis=1)))


def shuffle(b: GraphBuilder) -> None:
    """Channels are shuffled before a pointwise convolution."""
    x = b.reshape(b.input("x", (1, 48, 14, 14)), shape=[1, 4, 12, 14, 14])
    x = b.reshape(b.transpose(x, perm=[0, 2, 1, 3, 4]), shape=[1, 48, 14, 14])
    b.output("y", conv(b, x, weight(b, "w", 64, 48, 1, 1)))


def conv3d_pw_pair(b: GraphBuilder) -> None:
    x = b.input("x", (1, 24, 6, 12, 12))
    for n, filters in (("p", 16), ("q", 40)):
        w, c = weight(b, f"w{n}", filters, 24, 1, 1, 1), weight(b, f"c{n}", filters)
        b.output(n, b.sigmoid(conv(b, x, w, c)))


def conv_first_channels(b: GraphBuilder) -> None:
    """Of 64 channels 24 are read."""
    x = b.input("x", (1, 48, 18, 18))
    y = b.relu(conv(b, x, weight(b, "w", 64, 48, 3, 3), weight(b, "c", 64)))
    first, _ = b.split(y, 1, [24, 40])
    b.output("y", conv(b, first, weight(b, "v", 32, 24, 1, 1)))


KINDS: dict[str, Build] = {
    build.__name__: build
    for build in (
        *(part_weights, sum_all, norm_gain_qkv, mqa, shared_left_batch, rows_of_products),
        *(three_lefts, two_values, geglu3, row_chain, value_out, transposed_product),
        *(head_outputs, outer, weighted_mean, bias_twice, half_heads),
        *(diff_of_products, sunk_transposes5, lora_conv, pool_pw3d, group_convs, conv_bn_chain),
        *(resid1d, whole_kernel, split_batch, tconv_pw, se_block, pool_of_parts, shuffle),
        *(conv3d_pw_pair, conv_first_channels),
    )
}


def main() -> None:
    """Write the text of every program of these."""
    for name, build in KINDS.items():
        b = GraphBuilder()
        build(b)
        write_whole(ORIGINALS / f"{name}.mlir", module_text(b.build(name).module))


if __name__ == "__main__":
    main()
