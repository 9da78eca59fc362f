"""More small programs of the expert bar's kinds, in other ranks, sizes and orders.

    python tests/support/more_search_programs.py   writes tests/search/original/NAME.mlir anew

They were written to attack the searches: at first `optimize` missed what an expert sees of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from isoform.compiler.frontends.program_file import module_text
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.files import write_whole
from isoform.dialects.types import shape_of
from support.search_programs import ORIGINALS, Build, conv, weight


def scalar(b: GraphBuilder, value: float, shape: Sequence[int]) -> SSAValue:
    """A literal, everywhere."""
    return b.expand(b.constant(value, f32), list(shape))


def along(b: GraphBuilder, name: str, shape: Sequence[int], dim: int) -> SSAValue:
    """A weight vector along one dim."""
    return b.broadcast(weight(b, name, shape[dim]), shape=list(shape), dims=[dim])


def linear(b: GraphBuilder, x: SSAValue, name: str, width: int) -> SSAValue:
    """A product with a weight, and a bias."""
    rows, columns = shape_of(x)
    y = b.matmul(x, weight(b, f"w{name}", columns, width))
    return b.add(y, along(b, f"b{name}", (rows, width), 1))


def transposed(b: GraphBuilder, x: SSAValue, w: SSAValue, stride: int) -> SSAValue:
    """A transposed convolution whose windows do not overlap."""
    flags = {"strides": [stride] * 2, "pads": [0] * 4, "dilations": [1, 1]}
    return b.conv_transpose(x, w, output_padding=[0, 0], groups=1, **flags)


# --- products -----------------------------------------------------------------------------------


def gru(b: GraphBuilder) -> None:
    x, h = b.input("x", (4, 192)), b.input("h", (4, 192))
    gates = [
        b.sigmoid(b.add(linear(b, x, n, 192), b.matmul(h, weight(b, f"u{n}", 192, 192))))
        for n in "rz"
    ]
    new = b.tanh(b.add(linear(b, x, "n", 192), b.mul(gates[0], linear(b, h, "h", 192))))
    rest = b.sub(scalar(b, 1.0, (4, 192)), gates[1])
    b.output("y", b.add(b.mul(rest, new), b.mul(gates[1], h)))


def qkv_scaled(b: GraphBuilder) -> None:
    """Batched, with biases, of unlike widths; the query is scaled."""
    x = b.input("x", (3, 29, 80))
    for n, width in (("q", 128), ("k", 32), ("v", 48)):
        w = b.broadcast(weight(b, f"w{n}", 80, width), shape=[3, 80, width], dims=[1, 2])
        y = b.add(b.matmul(x, w), along(b, f"b{n}", (3, 29, width), 2))
        b.output(n, b.mul(y, scalar(b, 0.25, (3, 29, width))) if n == "q" else y)


def gqa_repeat(b: GraphBuilder) -> None:
    """Keys are repeated for the four queries that share them."""
    q, k = b.input("q", (1, 8, 64, 32)), b.input("k", (1, 2, 64, 32))
    shape = [1, 2, 4, 64, 32]
    k = b.broadcast(b.reshape(k, shape=[1, 2, 1, 64, 32]), shape=shape, dims=list(range(5)))
    b.output("y", b.matmul(q, b.reshape(k, shape=[1, 8, 64, 32]), transpose_b=True))


def mlp2(b: GraphBuilder) -> None:
    """Two layers without a function between them."""
    b.output("y", linear(b, linear(b, b.input("x", (96, 256)), "1", 1024), "2", 256))


def subneg(b: GraphBuilder) -> None:
    a = b.input("a", (64, 256))
    first, second = (b.neg(b.matmul(a, weight(b, n, 256, 256))) for n in "wv")
    b.output("y", b.sub(first, second))


def rowscale(b: GraphBuilder) -> None:
    a, s = b.input("a", (256, 1024)), b.input("s", (256, 1))
    scaled = b.mul(a, b.broadcast(s, shape=[256, 1024], dims=[0, 1]))
    b.output("y", b.matmul(scaled, weight(b, "w", 1024, 32)))


def concat_self_mm(b: GraphBuilder) -> None:
    x = b.input("x", (64, 128))
    b.output("y", b.matmul(b.concat(x, x, axis=1), weight(b, "w", 256, 256)))


def ein_batch(b: GraphBuilder) -> None:
    """A batch of products, written as sums of products."""
    shape = [4, 32, 48, 40]
    a = b.broadcast(b.input("a", (4, 32, 48)), shape=shape, dims=[0, 1, 2])
    c = b.broadcast(b.input("c", (4, 48, 40)), shape=shape, dims=[0, 2, 3])
    b.output("y", b.reduce_sum(b.mul(a, c), axes=[2], keep_dims=False))


# --- moves --------------------------------------------------------------------------------------


def slices3(b: GraphBuilder) -> None:
    x = b.input("x", (4, 90, 16))
    thirds = [b.slice(x, starts=[0, k, 0], sizes=[4, 30, 16], steps=[1] * 3) for k in (0, 30, 60)]
    b.output("y", b.concat(*thirds, axis=1))


def split_relu(b: GraphBuilder) -> None:
    parts = b.split(b.input("x", (8, 96, 10)), 1, [32, 32, 32])
    b.output("y", b.concat(*(b.relu(part) for part in parts), axis=1))


def t_softmax(b: GraphBuilder) -> None:
    y = b.softmax(b.transpose(b.input("x", (4, 8, 64, 48)), perm=[0, 2, 1, 3]), axis=3)
    b.output("y", b.transpose(y, perm=[0, 2, 1, 3]))


# --- convolutions -------------------------------------------------------------------------------


def acnet(b: GraphBuilder) -> None:
    """A square kernel, a row and a column of one image, added."""
    x = b.input("x", (1, 64, 20, 20))
    shapes = (("a", 3, 3), ("b", 1, 3), ("c", 3, 1))
    first, *others = (conv(b, x, weight(b, f"w{n}", 64, 64, r, s)) for n, r, s in shapes)
    for other in others:
        first = b.add(first, other)
    b.output("y", b.relu(first))


def aspp1d(b: GraphBuilder) -> None:
    x = b.input("x", (1, 128, 90))
    parts = [b.relu(conv(b, x, weight(b, "w0", 32, 128, 1)))]
    for d in (2, 4, 8):
        parts.append(b.relu(conv(b, x, weight(b, f"w{d}", 32, 128, 3), dilation=d)))
    b.output("y", b.concat(*parts, axis=1))


def bn_before(b: GraphBuilder) -> None:
    """A batch norm, written out, before a pointwise convolution."""
    shape = (1, 64, 28, 28)
    x = b.mul(b.input("x", shape), along(b, "g", shape, 1))
    x = b.add(x, along(b, "o", shape, 1))
    b.output("y", conv(b, x, weight(b, "w", 96, 64, 1, 1), weight(b, "c", 96)))


def concat_self(b: GraphBuilder) -> None:
    x = b.input("x", (1, 48, 18, 18))
    b.output("y", conv(b, b.concat(x, x, axis=1), weight(b, "w", 64, 96, 3, 3)))


def conv_pw1d(b: GraphBuilder) -> None:
    """Both with biases; the second is not padded."""
    y = conv(b, b.input("x", (2, 32, 80)), weight(b, "w1", 128, 32, 1), weight(b, "b1", 128))
    w, c = weight(b, "w2", 32, 128, 3), weight(b, "b2", 32)
    b.output("y", b.conv(y, w, c, strides=[1], pads=[0, 0], dilations=[1], groups=1))


def mean_chan(b: GraphBuilder) -> None:
    y = conv(b, b.input("x", (1, 64, 20, 20)), weight(b, "w", 128, 64, 3, 3))
    b.output("y", b.reduce_mean(y, axes=[1], keep_dims=True))


def mean_width(b: GraphBuilder) -> None:
    y = conv(b, b.input("x", (2, 64, 24, 24)), weight(b, "w", 96, 64, 1, 1))
    b.output("y", b.reduce_mean(y, axes=[3], keep_dims=True))


def sum_conv(b: GraphBuilder) -> None:
    y = conv(b, b.input("x", (2, 64, 18, 18)), weight(b, "w", 128, 64, 1, 1))
    b.output("y", b.reduce_sum(y, axes=[2, 3], keep_dims=False))


def pw_stride(b: GraphBuilder) -> None:
    y = b.relu(conv(b, b.input("x", (2, 64, 28, 28)), weight(b, "w", 96, 64, 1, 1)))
    b.output("y", b.slice(y, starts=[0] * 4, sizes=[2, 96, 14, 14], steps=[1, 1, 2, 2]))


def tconv_pair(b: GraphBuilder) -> None:
    x = b.input("x", (1, 64, 10, 10))
    for n, filters in (("p", 32), ("q", 48)):
        b.output(n, transposed(b, x, weight(b, f"w{n}", 64, filters, 2, 2), 2))


# --- beside products and convolutions ------------------------------------------------------------


def sum_cols_bias(b: GraphBuilder) -> None:
    y = b.matmul(b.input("x", (70, 128)), weight(b, "w", 128, 200))
    y = b.add(y, along(b, "c", (70, 200), 1))
    b.output("y", b.reduce_sum(y, axes=[1], keep_dims=True))


def gqa_values(b: GraphBuilder) -> None:
    """Values are repeated for the three heads that share them, in a batch of two."""
    p, v = b.input("p", (2, 6, 40, 50)), b.input("v", (2, 2, 50, 32))
    shape = [2, 2, 3, 50, 32]
    v = b.broadcast(b.reshape(v, shape=[2, 2, 1, 50, 32]), shape=shape, dims=list(range(5)))
    b.output("y", b.matmul(p, b.reshape(v, shape=[2, 6, 50, 32])))


def nhwc_conv(b: GraphBuilder) -> None:
    """A pointwise convolution of an image whose channels are last."""
    x = b.transpose(b.input("x", (2, 14, 14, 64)), perm=[0, 3, 1, 2])
    y = b.relu(conv(b, x, weight(b, "w", 96, 64, 1, 1)))
    b.output("y", b.transpose(y, perm=[0, 2, 3, 1]))


def dw_scale(b: GraphBuilder) -> None:
    shape = (1, 48, 26, 26)
    x = b.mul(b.input("x", shape), along(b, "g", shape, 1))
    b.output("y", conv(b, x, weight(b, "w", 48, 1, 5, 5), groups=48))


def averaged(b: GraphBuilder, x: SSAValue, size: int, stride: int, pad: int = 0) -> SSAValue:
    """A square average pool; pads count."""
    window: dict[str, Any] = {"kernel": [size] * 2, "strides": [stride] * 2, "pads": [pad] * 4}
    return b.avg_pool(x, dilations=[1, 1], count_include_pad=True, **window)


def pool_pw(b: GraphBuilder) -> None:
    y = conv(b, b.input("x", (1, 128, 24, 24)), weight(b, "v", 32, 128, 1, 1))
    b.output("y", averaged(b, y, 3, 2, 1))


def avg_avg(b: GraphBuilder) -> None:
    b.output("y", averaged(b, averaged(b, b.input("x", (1, 64, 32, 32)), 2, 2), 2, 2))


MORE: dict[str, Build] = {
    "gru": gru,
    "qkv_scaled": qkv_scaled,
    "gqa_repeat": gqa_repeat,
    "mlp2": mlp2,
    "subneg": subneg,
    "rowscale": rowscale,
    "concat_self_mm": concat_self_mm,
    "ein_batch": ein_batch,
    "slices3": slices3,
    "split_relu": split_relu,
    "t_softmax": t_softmax,
    "acnet": acnet,
    "aspp1d": aspp1d,
    "bn_before": bn_before,
    "concat_self": concat_self,
    "conv_pw1d": conv_pw1d,
    "mean_chan": mean_chan,
    "mean_width": mean_width,
    "sum_conv": sum_conv,
    "pw_stride": pw_stride,
    "tconv_pair": tconv_pair,
    "sum_cols_bias": sum_cols_bias,
    "gqa_values": gqa_values,
    "nhwc_conv": nhwc_conv,
    "dw_scale": dw_scale,
    "pool_pw": pool_pw,
    "avg_avg": avg_avg,
}


def main() -> None:
    """Write the text of every program."""
    for name, build in MORE.items():
        b = GraphBuilder()
        build(b)
        write_whole(ORIGINALS / f"{name}.mlir", module_text(b.build(name).module))


if __name__ == "__main__":
    main()
