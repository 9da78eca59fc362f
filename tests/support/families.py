"""Small programs of many kinds, each exercising one family of ops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.index import iterators
from isoform.dialects.program import Program
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import tensor

Build = Callable[[GraphBuilder], SSAValue]


def conv(b: GraphBuilder) -> SSAValue:
    x, w = b.input("x", (1, 3, 5, 5)), b.input("w", (4, 3, 3, 3))
    return b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])


def dilated_conv(b: GraphBuilder) -> SSAValue:
    x, w = b.input("x", (1, 2, 7, 7)), b.input("w", (3, 2, 3, 3))
    return b.conv(x, w, strides=[1, 1], pads=[2, 2, 2, 2], dilations=[2, 2])


def strided_conv(b: GraphBuilder) -> SSAValue:
    x, w, c = b.input("x", (2, 3, 6, 7)), b.input("w", (4, 3, 3, 2)), b.input("c", (4,))
    return b.conv(x, w, c, strides=[2, 1], pads=[1, 0, 1, 1], dilations=[1, 1])


def grouped_conv(b: GraphBuilder) -> SSAValue:
    x, w = b.input("x", (1, 4, 5, 5)), b.input("w", (6, 2, 3, 3))
    return b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], groups=2)


def depthwise_conv(b: GraphBuilder) -> SSAValue:
    x, w = b.input("x", (1, 4, 5, 5)), b.input("w", (4, 1, 3, 3))
    return b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], groups=4)


def transposed_conv(b: GraphBuilder) -> SSAValue:
    x, w = b.input("x", (1, 3, 4, 4)), b.input("w", (3, 2, 3, 3))
    return b.conv_transpose(
        x, w, strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1], output_padding=[1, 1]
    )


def max_pool(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (1, 2, 6, 6))
    return b.max_pool(x, kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1])


def avg_pool(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (1, 2, 5, 5))
    return b.avg_pool(x, kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1])


def matmul(b: GraphBuilder) -> SSAValue:
    return b.matmul(b.input("x", (4, 6)), b.input("y", (6, 5)))


def matmul_chain(b: GraphBuilder) -> SSAValue:
    x, y, z = b.input("x", (3, 4)), b.input("y", (4, 4)), b.input("z", (4, 3))
    return b.matmul(b.matmul(x, y), z)


def batched_matmul(b: GraphBuilder) -> SSAValue:
    x, y = b.input("x", (2, 3, 4)), b.input("y", (2, 5, 4))
    return b.matmul(x, y, transpose_b=True)


def band_matmul(b: GraphBuilder) -> SSAValue:
    """y[b, m, w] = sum over k of q[b, m, k] * t[b, m + 2 * w - 4, k]: a dilated band."""
    q, t = b.input("q", (2, 8, 3)), b.input("t", (2, 8, 3))
    build = ScopeBuilder()
    n, m, w, k = iterators(4)
    product = Source(q)[n, m, k] * Source(t)[n, m + w * 2 - 4, k]
    made = build.scope(tensor((2, 8, 5), f32), product, [3])
    b.append(build.ops[0])
    return made.value


def attention(b: GraphBuilder) -> SSAValue:
    q, k, v = (b.input(name, (2, 4, 3)) for name in "qkv")
    scores = b.matmul(q, k, transpose_b=True)
    scores = b.mul(scores, b.expand(b.constant(np.float32(0.5)), (2, 4, 4)))
    return b.matmul(b.softmax(scores, axis=2), v)


def softmax(b: GraphBuilder) -> SSAValue:
    return b.softmax(b.input("x", (3, 5)), axis=1)


def log_softmax(b: GraphBuilder) -> SSAValue:
    return b.log_softmax(b.input("x", (3, 4)), axis=0)


def layer_norm(b: GraphBuilder) -> SSAValue:
    return b.layer_norm(b.input("x", (3, 4)), b.input("s", (4,)), b.input("c", (4,)), axis=1)


def batch_norm(b: GraphBuilder) -> SSAValue:
    rest = [b.input(name, (3,)) for name in ("s", "c", "m")]
    variance = b.exp(b.input("v", (3,)))
    return b.batch_norm(b.input("x", (2, 3, 2, 2)), *rest, variance)


def instance_norm(b: GraphBuilder) -> SSAValue:
    return b.instance_norm(b.input("x", (2, 2, 3, 3)), b.input("s", (2,)), b.input("c", (2,)))


def lrn(b: GraphBuilder) -> SSAValue:
    return b.lrn(b.input("x", (1, 5, 2, 2)), size=3)


def reduce_mean(b: GraphBuilder) -> SSAValue:
    return b.reduce_mean(b.input("x", (3, 4, 5)), axes=[0, 2])


def reduce_max(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (3, 4, 4))
    return b.add(b.reduce_max(x, axes=[1]), b.reduce_min(x, axes=[1]))


def reduce_prod(b: GraphBuilder) -> SSAValue:
    return b.reduce_prod(b.input("x", (3, 3)), axes=[1])


def clipped(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (4, 4))
    return b.sub(b.clip(x, min=0.0, max=6.0), b.relu(x))


def gelu(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (3, 4))
    half = b.expand(b.constant(np.float32(0.5)), (3, 4))
    one = b.expand(b.constant(np.float32(1.0)), (3, 4))
    root = b.expand(b.constant(np.float32(2.0**0.5)), (3, 4))
    return b.mul(b.mul(x, half), b.add(b.erf(b.div(x, root)), one))


def silu(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (3, 4))
    return b.add(b.mul(x, b.sigmoid(x)), b.tanh(x))


def piecewise(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (3, 4))
    return b.add(b.leaky_relu(x, alpha=0.25), b.elu(b.neg(x), alpha=0.5))


def concat(b: GraphBuilder) -> SSAValue:
    x, y, z = b.input("x", (2, 2, 3)), b.input("y", (2, 3, 3)), b.input("z", (2, 2, 3))
    return b.concat(x, y, z, axis=1)


def sliced(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (6, 5))
    first, second = b.split(b.slice(x, starts=[4, 1], sizes=[4, 4], steps=[-1, 1]), 1, [2, 2])
    return b.mul(first, second)


def padded(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (3, 4))
    return b.add(b.pad(x, pads=[1, 0, 0, 2], fill=1.5), b.pad(x, pads=[0, 1, 1, 1]))


def reshaped(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (2, 6, 4))
    y = b.reshape(b.transpose(b.reshape(x, shape=[2, 3, 2, 4]), perm=[0, 2, 3, 1]), shape=[4, 12])
    return b.add(y, b.expand(b.input("c", (12,)), (4, 12)))


def selected(b: GraphBuilder) -> SSAValue:
    x, y = b.input("x", (3, 4)), b.input("y", (3, 4))
    condition = b.or_(b.less(x, y), b.not_(b.greater_equal(y, b.neg(x))))
    return b.where(condition, b.max(x, y), b.min(x, y))


def integers(b: GraphBuilder) -> SSAValue:
    x, y = b.input("x", (3, 4), i64), b.input("y", (3, 4), i64)
    total = b.add(b.mul(x, y), b.div(x, b.add(b.abs(y), b.expand(b.constant(np.int64(1)), (3, 4)))))
    return b.mul(b.cast(total, to=f32), b.cast(b.equal(x, y), to=f32))


def powers(b: GraphBuilder) -> SSAValue:
    x, y = b.input("x", (3, 4)), b.input("y", (3, 4))
    two = b.expand(b.constant(np.float32(2.0)), (3, 4))
    return b.div(b.pow(x, two), b.sqrt(b.add(b.abs(y), two)))


def gathered(b: GraphBuilder) -> SSAValue:
    x, at = b.input("x", (2, 4)), b.input("at", (3,), i64)
    return b.mul(b.gather(x, at, axis=0), b.gather(b.neg(x), at, axis=0))


def block(b: GraphBuilder) -> SSAValue:
    """conv, batch norm, relu, and a residual sum."""
    x, w = b.input("x", (1, 2, 4, 4)), b.weight("w", _drawn(2, 2, 3, 3))
    y = b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
    rest = [b.weight(name, _drawn(2)) for name in ("s", "c", "m")]
    y = b.batch_norm(y, *rest, b.weight("v", np.abs(_drawn(2)) + np.float32(0.5)))
    return b.add(b.relu(y), x)


def _drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


FAMILIES: dict[str, Build] = {
    f.__name__: f
    for f in (
        conv, dilated_conv, strided_conv, grouped_conv, depthwise_conv, transposed_conv,
        max_pool, avg_pool, matmul, matmul_chain, batched_matmul, band_matmul, attention,
        softmax, log_softmax, layer_norm, batch_norm, instance_norm, lrn, reduce_mean,
        reduce_max, reduce_prod, clipped, gelu, silu, piecewise, concat, sliced, padded,
        reshaped, selected, integers, powers, gathered, block,
    )
}  # fmt: skip


def program(name: str) -> Program:
    """One family's program, at the graph level (band_matmul: algebra)."""
    b = GraphBuilder()
    b.output("y", FAMILIES[name](b))
    return b.build()
