"""What runs on finished accumulators: residuals with halos, batch-dependent values, odd shapes."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.ir import SSAValue

from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.types import shape_of
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.testing.random_programs import Agreement, random_inputs

DATA = np.random.default_rng(5)
Make = Callable[[GraphBuilder], SSAValue]


def weight(b: GraphBuilder, name: str, *shape: int) -> SSAValue:
    return b.weight(name, DATA.normal(size=shape).astype(np.float32))


def conv(b: GraphBuilder, x: SSAValue, name: str, features: int, **properties) -> SSAValue:
    """A 3-tap convolution that keeps the positions, groups as told."""
    rank = len(shape_of(x)) - 2
    groups = properties.get("groups", 1)
    w = weight(b, name, features, shape_of(x)[1] // groups, *([3] * rank))
    same = {"strides": [1] * rank, "pads": [1] * 2 * rank, "dilations": [1] * rank}
    return b.conv(x, w, **same | properties)


def residual(b: GraphBuilder) -> SSAValue:
    """The convolved operand (with its halo) is added to the result, twice in a row."""
    x = b.input("x", (2, 5, 7, 6))
    y = b.relu(b.add(conv(b, x, "w", 5), x))
    return b.relu(b.add(conv(b, y, "v", 5), y))


def residual_of_other_layout(b: GraphBuilder) -> SSAValue:
    x, r = b.input("x", (1, 4, 6, 6)), b.input("r", (6, 6, 1, 8))
    return b.sub(b.transpose(r, perm=[2, 3, 0, 1]), conv(b, x, "w", 8))


def per_image_scale(b: GraphBuilder) -> SSAValue:
    x, s = b.input("x", (3, 4, 5, 5)), b.input("s", (3,))
    y = conv(b, x, "w", 6)
    return b.mul(y, b.broadcast(s, shape=list(shape_of(y)), dims=[0]))


def places_matter(b: GraphBuilder) -> SSAValue:
    """The epilogue reads a value that depends on the position alone, mirrored."""
    x, m = b.input("x", (2, 3, 5, 6)), b.input("m", (5, 6))
    y = conv(b, x, "w", 4)
    mirrored = b.slice(m, starts=[4, 5], sizes=[5, 6], steps=[-1, -1])
    return b.add(y, b.broadcast(mirrored, shape=list(shape_of(y)), dims=[2, 3]))


def depthwise(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (2, 19, 6, 5))
    return b.clip(b.add(conv(b, x, "w", 19, groups=19), x), min=0.0, max=6.0)


def grouped(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (1, 6, 7, 7))
    return b.sigmoid(conv(b, x, "w", 9, groups=3, dilations=[2, 1], pads=[2, 0, 2, 3]))


def one_channel(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (1, 1, 9))
    return b.relu(b.add(conv(b, x, "w", 1), x))


def three_dims(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (1, 2, 4, 5, 3))
    return b.relu(conv(b, conv(b, x, "w", 4), "v", 3, strides=[2, 1, 2]))


def transposed_without_taps(b: GraphBuilder) -> SSAValue:
    """Stride 3, one tap: two positions of three get the epilogue alone."""
    x, r = b.input("x", (2, 3, 4)), b.input("r", (2, 5, 12))
    w = weight(b, "w", 3, 5, 1)
    y = b.conv_transpose(x, w, strides=[3], pads=[0, 0], dilations=[1], output_padding=[2])
    return b.add(b.exp(b.tanh(y)), r)


def transposed_then_conv(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (1, 6, 5, 4))
    w = weight(b, "w", 6, 4, 4, 3)
    options = {"strides": [2, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    y = b.relu(b.conv_transpose(x, w, **options, output_padding=[1, 0]))
    return conv(b, y, "v", 3)


def joined(b: GraphBuilder) -> SSAValue:
    """Two results side by side in one buffer, with a halo for who reads them."""
    x = b.input("x", (1, 4, 6, 6))
    parts = [b.relu(conv(b, x, f"w{k}", 8 + k)) for k in range(2)]
    return conv(b, b.concat(*parts, axis=1), "v", 5)


def merged_rows(b: GraphBuilder) -> SSAValue:
    """Rows (a, m) are one range; the epilogue depends on both."""
    x, s = b.input("x", (2, 3, 4)), b.input("s", (2, 3))
    w = weight(b, "w", 4, 5)
    y = b.matmul(b.reshape(x, shape=[6, 4]), w)
    y = b.reshape(y, shape=[2, 3, 5])
    return b.relu(b.mul(y, b.broadcast(s, shape=[2, 3, 5], dims=[0, 1])))


def batched_product(b: GraphBuilder) -> SSAValue:
    """Attention scores: scale and mask per batch, keys transposed."""
    q, k, m = b.input("q", (2, 3, 5, 4)), b.input("k", (2, 3, 7, 4)), b.input("m", (2, 7))
    scores = b.matmul(q, k, transpose_b=True)
    shape = list(shape_of(scores))
    return b.softmax(b.add(scores, b.broadcast(m, shape=shape, dims=[0, 3])), axis=3)


def row_vector(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (1, 33))
    return b.relu(b.matmul(x, weight(b, "w", 33, 17)))


def column_vector(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (19, 33))
    return b.add(b.matmul(x, weight(b, "w", 33, 1)), b.input("r", (19, 1)))


def same_operand(b: GraphBuilder) -> SSAValue:
    x = b.input("x", (6, 8))
    return b.add(b.matmul(x, x, transpose_b=True), b.matmul(x, x, transpose_b=True))


CASES: dict[str, Make] = {
    make.__name__: make
    for make in (
        residual, residual_of_other_layout, per_image_scale, places_matter, depthwise, grouped,
        one_channel, three_dims, transposed_without_taps, transposed_then_conv, joined,
        merged_rows, batched_product, row_vector, column_vector, same_operand,
    )
}  # fmt: skip


@pytest.mark.parametrize("isa", [isa.name for isa in runnable()])
@pytest.mark.parametrize("name", CASES)
def test_templates_and_what_follows_them(name: str, isa: str) -> None:
    b = GraphBuilder()
    b.output("y", CASES[name](b))
    program = b.build()
    inputs = random_inputs(program, 1)
    agreement = Agreement.of(program, inputs)
    session = CpuSession(place(program), threads=2, isa=Isa.named(isa))
    difference = agreement.difference(session.run(inputs))
    session.close()
    assert difference is None, str(difference)
    assert agreement.compared == agreement.total
