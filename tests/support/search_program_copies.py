"""Small programs of the expert bar: what is repeated, laid out otherwise, or the same everywhere.

    python tests/support/search_program_copies.py   writes tests/search/original/NAME.mlir anew

Channels last in one to three dims, copies side by side or in turn, parts that are a broadcast.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from isoform.compiler.frontends.program_file import module_text
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.files import write_whole
from isoform.dialects.types import shape_of
from support.more_search_programs import along, scalar
from support.search_program_kinds import part
from support.search_programs import ORIGINALS, Build, conv, weight


def channels_last(
    b: GraphBuilder, x: SSAValue, between: Callable[[SSAValue], SSAValue]
) -> SSAValue:
    """What comes of an image whose channels are moved to the front, and back."""
    rank = len(shape_of(x))
    y = between(b.transpose(x, perm=[0, rank - 1, *range(1, rank - 1)]))
    return b.transpose(y, perm=[0, *range(2, rank), 1])


def hard_swish(b: GraphBuilder, x: SSAValue) -> SSAValue:
    shape = shape_of(x)
    y = b.max(b.add(x, scalar(b, 3.0, shape)), scalar(b, 0.0, shape))
    y = b.mul(scalar(b, 1 / 6, shape), b.min(y, scalar(b, 6.0, shape)))
    return b.mul(x, y)


def leaky(b: GraphBuilder, x: SSAValue) -> SSAValue:
    return b.max(x, b.mul(x, scalar(b, 0.1, shape_of(x))))


def hard_swish1d(b: GraphBuilder) -> None:
    x = b.input("x", (2, 77, 40))
    w, c = weight(b, "w", 72, 40, 1), weight(b, "c", 72)
    b.output("y", channels_last(b, x, lambda y: hard_swish(b, conv(b, y, w, c))))


def two_pointwise(b: GraphBuilder) -> None:
    """Two layers of a network whose images have their channels last."""
    w, c = weight(b, "w", 96, 32, 1, 1), weight(b, "c", 96)
    v, d = weight(b, "v", 40, 96, 1, 1), weight(b, "d", 40)

    def layers(x: SSAValue) -> SSAValue:
        return conv(b, leaky(b, conv(b, x, w, c)), v, d)

    b.output("y", channels_last(b, b.input("x", (2, 12, 10, 32)), layers))


def columns_are_tokens(b: GraphBuilder) -> None:
    x = b.transpose(b.input("x", (3, 50, 40)), perm=[0, 2, 1])
    w, c = weight(b, "w", 64, 40), weight(b, "c", 64)
    y = b.matmul(b.broadcast(w, shape=[3, 64, 40], dims=[1, 2]), x)
    y = b.elu(b.add(y, b.broadcast(c, shape=[3, 64, 50], dims=[1])))
    b.output("y", b.transpose(y, perm=[0, 2, 1]))


def repeated_channels(b: GraphBuilder) -> None:
    """Each channel three times."""
    x = b.broadcast(b.input("x", (1, 32, 18, 18)), shape=[1, 32, 3, 18, 18], dims=[0, 1, 3, 4])
    b.output("y", conv(b, b.reshape(x, shape=[1, 96, 18, 18]), weight(b, "w", 48, 96, 3, 3)))


def tiled_columns(b: GraphBuilder) -> None:
    x = b.input("x", (50, 32))
    b.output("y", b.matmul(b.concat(x, x, x, x, axis=1), weight(b, "w", 128, 40)))


def tiled_heads(b: GraphBuilder) -> None:
    """Two keys for six queries, side by side three times."""
    q, k = b.input("q", (1, 6, 48, 32)), b.input("k", (1, 2, 48, 32))
    b.output("y", b.matmul(q, b.concat(k, k, k, axis=1), transpose_b=True))


def context(b: GraphBuilder) -> None:
    """The mean of an image beside it, at each pixel."""
    x, shape = b.input("x", (1, 48, 20, 20)), [1, 48, 20, 20]
    mean = b.reduce_mean(x, axes=[2, 3], keep_dims=True)
    x = b.concat(x, b.broadcast(mean, shape=shape, dims=[0, 1, 2, 3]), axis=1)
    b.output("y", b.relu(conv(b, x, weight(b, "w", 64, 96, 1, 1), weight(b, "c", 64))))


def context1d(b: GraphBuilder) -> None:
    x, shape = b.input("x", (2, 40, 64)), [2, 40, 64]
    most = b.broadcast(b.reduce_max(x, axes=[2], keep_dims=True), shape=shape, dims=[0, 1, 2])
    w, c = weight(b, "w", 48, 80, 1), weight(b, "c", 48)
    b.output("y", b.relu(conv(b, b.concat(most, x, axis=1), w, c)))


def pyramid(b: GraphBuilder) -> None:
    """An enlarged image and one of its size, as in a feature pyramid."""
    x, z = b.input("x", (1, 96, 10, 10)), b.input("z", (1, 48, 20, 20))
    x = b.broadcast(x, shape=[1, 96, 10, 2, 10, 2], dims=[0, 1, 2, 4])
    x = b.reshape(x, shape=[1, 96, 20, 20])
    y = conv(b, x, weight(b, "w", 64, 96, 1, 1), weight(b, "c", 64))
    b.output("y", b.add(y, conv(b, z, weight(b, "v", 64, 48, 1, 1), weight(b, "d", 64))))


def rolled_columns(b: GraphBuilder) -> None:
    """Columns that changed places before a product."""
    x = b.input("x", (64, 96))
    parts = [part(b, x, 1, 32, 64), part(b, x, 1, 0, 32)]
    b.output("y", b.matmul(b.concat(*parts, axis=1), weight(b, "w", 96, 80)))


def scaled_mean(b: GraphBuilder) -> None:
    """The means of images whose channels are scaled."""
    x = b.mul(b.input("x", (4, 64, 28, 28)), along(b, "s", (4, 64, 28, 28), 1))
    y = b.reduce_mean(x, axes=[2, 3], keep_dims=False)
    b.output("y", b.matmul(y, weight(b, "w", 64, 32)))


COPIES: dict[str, Build] = {
    build.__name__: build
    for build in (
        *(hard_swish1d, two_pointwise, columns_are_tokens, repeated_channels, tiled_columns),
        *(tiled_heads, context, context1d, pyramid, rolled_columns, scaled_mean),
    )
}


def main() -> None:
    """Write the text of every program of these."""
    for name, build in COPIES.items():
        b = GraphBuilder()
        build(b)
        write_whole(ORIGINALS / f"{name}.mlir", module_text(b.build(name).module))


if __name__ == "__main__":
    main()
