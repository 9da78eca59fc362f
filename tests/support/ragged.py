"""Every kind of kernel on shapes that fit nothing: primes, ones, one more or less than a vector."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import SSAValue

from isoform.dialects.builder import GraphBuilder

SIZES = (1, 2, 3, 5, 7, 8, 9, 13, 15, 16, 17, 19, 23, 31, 32, 33)
LARGE = (47, 49, 63, 65, 97, 129)
RNG = np.random.default_rng(5)


def weight(b: GraphBuilder, name: str, *shape: int) -> SSAValue:
    data = RNG.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))
    return b.weight(name, data.astype(np.float32))


def gemm(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    m, n, k = r.choice(SIZES + LARGE), r.choice(SIZES + LARGE), r.choice(SIZES + LARGE)
    constant = r.random() < 0.6
    right = weight(b, f"{name}w", k, n) if constant else b.input(f"{name}b", (k, n))
    y = b.matmul(b.input(f"{name}a", (m, k)), right)
    return b.relu(b.add(y, weight(b, f"{name}c", m, n))) if r.random() < 0.5 else y


def far_operands(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    """Products of a transposed left operand, or of a right one that no near cache holds."""
    m, n, k = r.choice((257, 300, 513)), r.choice(SIZES + LARGE), r.choice((63, 64, 97, 130, 600))
    if r.random() < 0.6:
        left = b.transpose(b.input(f"{name}a", (k, m)), perm=[1, 0])
    else:
        k, n = 600, r.choice((450, 513))
        left = b.input(f"{name}a", (r.choice(LARGE), k))
    constant = r.random() < 0.4
    right = weight(b, f"{name}w", k, n) if constant else b.input(f"{name}b", (k, n))
    return b.matmul(left, right)


def batched(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    batch, m, n, k = r.choice(SIZES[:8]), r.choice(SIZES), r.choice(SIZES), r.choice(SIZES)
    left, right = b.input(f"{name}a", (batch, m, k)), b.input(f"{name}b", (batch, n, k))
    return b.matmul(left, b.transpose(right, perm=[0, 2, 1]))


def convolution(
    b: GraphBuilder, r: random.Random, name: str, *, depthwise: bool = False, given: bool = False
) -> SSAValue:
    """A convolution; `given` filters are an input."""
    rank = r.choice((1, 2, 2, 2, 3))
    groups = r.choice(SIZES[:10]) if depthwise else r.choice((1, 1, 2, 3))
    width = 1 if depthwise else r.choice(SIZES[:9])
    channels, features = groups * width, groups * (1 if depthwise else r.choice(SIZES[:11]))
    kernel = [r.choice((1, 2, 3, 3, 5)) for _ in range(rank)]
    geometry: dict[str, Any] = {
        "strides": [r.choice((1, 1, 2, 3)) for _ in range(rank)],
        "dilations": [r.choice((1, 1, 2)) for _ in range(rank)],
        "pads": [r.choice((0, 1, 2)) for _ in range(2 * rank)],
    }
    least = [(k - 1) * d + 1 for k, d in zip(kernel, geometry["dilations"], strict=True)]
    size = [n + r.choice(SIZES[: 12 if rank < 3 else 5]) for n in least]
    x = b.input(f"{name}x", (r.choice((1, 1, 2)), channels, *size))
    shape = (features, channels // groups, *kernel)
    w = b.input(f"{name}w", shape) if given else weight(b, f"{name}w", *shape)
    y = b.conv(x, w, weight(b, f"{name}b", features), groups=groups, **geometry)
    return b.relu(y) if r.random() < 0.5 else y


def depthwise(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    return convolution(b, r, name, depthwise=True)


def given_filters(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    return convolution(b, r, name, depthwise=r.random() < 0.3, given=True)


def transposed_groups(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    """Transposed convolutions of groups, some of one channel each."""
    rank, groups = r.choice((1, 2, 2, 3)), r.choice((1, 2, 3, 5, 16, 17))
    depthwise = r.random() < 0.4
    channels, features = (1, 1) if depthwise else (r.choice(SIZES[:6]), r.choice(SIZES[:8]))
    kernel = [r.choice((1, 2, 3, 4)) for _ in range(rank)]
    strides = [r.choice((1, 2, 2, 3)) for _ in range(rank)]
    shape = (r.choice((1, 2)), groups * channels, *(r.choice(SIZES[:8]) + 2 for _ in range(rank)))
    return b.conv_transpose(
        b.input(f"{name}x", shape),
        weight(b, f"{name}w", groups * channels, features, *kernel),
        strides=strides,
        dilations=[r.choice((1, 1, 2)) for _ in range(rank)],
        pads=[r.choice((0, 1)) for _ in range(2 * rank)],
        groups=groups,
        output_padding=[r.choice((0, s - 1)) for s in strides],
    )


def tensor(b: GraphBuilder, r: random.Random, name: str, rank: int) -> SSAValue:
    return b.input(
        f"{name}x", tuple(r.choice(SIZES[: 12 if rank > 2 else 16]) for _ in range(rank))
    )


def elementwise(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    x = tensor(b, r, name, r.choice((1, 2, 3, 4)))
    return b.mul(b.tanh(x), b.sigmoid(b.add(x, x)))


def permuted(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    rank = r.choice((2, 3, 4))
    order = r.sample(range(rank), rank)
    return b.transpose(b.exp(tensor(b, r, name, rank)), perm=order)


def reduced(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    rank = r.choice((2, 3, 4))
    axes = sorted(r.sample(range(rank), r.randint(1, rank)))
    kind = r.choice((b.reduce_sum, b.reduce_mean, b.reduce_max, b.reduce_min))
    return kind(tensor(b, r, name, rank), axes=axes, keep_dims=r.random() < 0.5)


def softmax(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    rank = r.choice((2, 3))
    return b.softmax(tensor(b, r, name, rank), axis=r.randrange(rank))


def normalised(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    rows, features = r.choice(SIZES), r.choice((*SIZES[1:], *LARGE))
    scale, bias = weight(b, f"{name}s", features), weight(b, f"{name}b", features)
    x = b.input(f"{name}x", (rows, features))
    return b.layer_norm(x, scale, bias, axis=1, epsilon=1e-5)


def pooled(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    rank = r.choice((1, 2, 2, 2, 3))
    kernel = [r.choice((1, 2, 3, 4)) for _ in range(rank)]
    size = [k + r.choice(SIZES[: 12 if rank < 3 else 6]) for k in kernel]
    x = b.input(f"{name}x", (r.choice((1, 2)), r.choice(SIZES), *size))
    steps = [r.choice((1, 2, 3, 9)) for _ in range(rank)]
    pads = [r.choice((0, 0, k // 2)) for k in kernel] * 2
    kind = r.choice((b.max_pool, b.avg_pool))
    return kind(x, kernel=kernel, strides=steps, pads=pads, dilations=[1] * rank)


def turned(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    """Elementwise work on what lies in two orders, with short and with long dims."""
    rank = r.choice((2, 3, 4))
    shape = [r.choice((2, 3, 4, *SIZES[3:], *(LARGE if rank < 4 else ()))) for _ in range(rank)]
    order = r.sample(range(rank), rank)
    x = b.transpose(b.input(f"{name}x", shape), perm=order)
    y = b.input(f"{name}y", [shape[k] for k in order])
    return b.relu(b.add(b.mul(x, x), y)) if r.random() < 0.7 else b.neg(x)


def long_sum(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    shape = [r.choice((2, 7, 129, 257, 300, 521)), r.choice((3, 8, 16, 130, 259, 600))]
    axes = r.choice(([0], [1], [0, 1]))
    # A sum of all, 300,000 numbers of both signs, is not as near 0 in float32 as in float64.
    sums = (b.reduce_sum,) if len(axes) == 1 else ()
    kind = r.choice((*sums, b.reduce_mean, b.reduce_max, b.reduce_min))
    return kind(b.input(f"{name}x", shape), axes=axes, keep_dims=r.random() < 0.5)


def strided(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    """Every so many elements, forwards or backwards."""
    rank = r.choice((1, 2, 3))
    sizes = [r.choice(SIZES[:12]) for _ in range(rank)]
    steps = [r.choice((1, 2, 3, 4, 8, 11, -1, -2, -5)) for _ in range(rank)]
    reach = [(n - 1) * abs(k) + 1 for n, k in zip(sizes, steps, strict=True)]
    before = [r.choice((0, 1, 3)) for _ in range(rank)]
    x = b.input(f"{name}x", [f + n + r.choice((0, 2)) for f, n in zip(before, reach, strict=True)])
    starts = [f if k > 0 else f + n - 1 for f, n, k in zip(before, reach, steps, strict=True)]
    return b.exp(b.slice(x, starts=starts, sizes=sizes, steps=steps))


def enlarged(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    """Every element several times, as the nearest mode of Resize has it, or the whole so often."""
    rows, columns = r.choice(SIZES), r.choice(SIZES)
    high, wide = r.choice((1, 2, 3)), r.choice((2, 3, 4, 8))
    x = b.input(f"{name}x", (rows, columns))
    shape, dims = [rows, high, columns, wide], [0, 2]
    if r.random() < 0.3:
        shape, dims = [high, rows, wide, columns], [1, 3]
    y = b.broadcast(x, shape=shape, dims=dims)
    return b.relu(b.reshape(y, shape=[rows * high, columns * wide]))


def resampled(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    """Sums over windows along some dims, one after another, of what may lie channels last."""
    shape = [1, r.choice(SIZES), *(r.choice(SIZES + LARGE) for _ in range(r.choice((1, 2, 2))))]
    x = b.input(f"{name}x", shape)
    if r.random() < 0.5:
        ones = [1] * (len(shape) - 2)
        geometry: dict[str, Any] = {
            "strides": ones,
            "dilations": ones,
            "pads": [0] * (2 * len(ones)),
        }
        x = b.conv(x, weight(b, f"{name}c", shape[1], shape[1], *ones), **geometry)
    for axis in r.sample(range(2, len(shape)), r.randint(1, len(shape) - 2)):
        taps, step, per = (
            r.choice((1, 2, 2, 3, 4)),
            r.choice((1, 1, 2, 3, 7)),
            r.choice((1, 2, 3, 9)),
        )
        out = max(1, shape[axis] * per // step)
        w = weight(b, f"{name}w{axis}", taps, out)
        x = b.resample(x, w, axis=axis, step=step, shift=r.choice((0, -1, -4, 2)), per=per)
    return b.relu(x) if r.random() < 0.5 else x


def joined(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    rank = r.choice((1, 2, 3))
    shape, axis = [r.choice(SIZES) for _ in range(rank)], r.randrange(rank)
    parts = [
        b.input(f"{name}{k}", [*shape[:axis], r.choice(SIZES), *shape[axis + 1 :]])
        for k in range(r.choice((2, 3)))
    ]
    y = b.concat(*parts, axis=axis)
    pads = [r.choice((0, 1, 3)) for _ in range(2 * rank)]
    return b.pad(y, pads=pads, fill=r.choice((0.0, 1.5))) if r.random() < 0.6 else y


def halves(b: GraphBuilder, r: random.Random, name: str) -> SSAValue:
    """Half floats, in two orders: computed in float32."""
    element = r.choice((f16, bf16))
    shape = [r.choice((2, 3, *SIZES[3:])) for _ in range(2)]
    x = b.transpose(b.input(f"{name}x", shape, element), perm=[1, 0])
    return b.cast(b.neg(x), to=r.choice((f32, element)))


KINDS: tuple[Callable[[GraphBuilder, random.Random, str], SSAValue], ...] = (
    gemm,
    far_operands,
    batched,
    convolution,
    depthwise,
    given_filters,
    transposed_groups,
    elementwise,
    permuted,
    reduced,
    softmax,
    normalised,
    pooled,
    turned,
    long_sum,
    strided,
    enlarged,
    resampled,
    joined,
    halves,
)
