"""The 36 small programs of the expert bar, each with a rewrite that an expert sees.

    python tests/support/search_programs.py       writes tests/search/original/NAME.mlir anew

Weights are named and carry no data: whoever runs a program draws them by name. The programs that
an expert would write in their place stand in tests/search/expert/.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from isoform.compiler.frontends.program_file import module_text
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.files import write_whole
from isoform.dialects.program import Program
from isoform.dialects.types import Array, shape_of

ORIGINALS = Path(__file__).parents[1] / "search" / "original"

Build = Callable[[GraphBuilder], None]


def original(name: str) -> Program:
    """Build the program of that name."""
    b = GraphBuilder()
    PROGRAMS[name](b)
    return b.build(name)


def weight(b: GraphBuilder, name: str, *shape: int) -> SSAValue:
    """A weight of which only the name and the shape are known."""

    def data() -> Array:
        raise LookupError(f"weight '{name}' has no data")

    return b.weight(name, data, shape=shape, element=f32)


def conv(
    b: GraphBuilder, x: SSAValue, w: SSAValue, *bias: SSAValue, dilation: int = 1, groups: int = 1
) -> SSAValue:
    """A convolution of stride 1, padded to keep the size of its input."""
    taps = shape_of(w)[2:]
    rank = len(taps)
    pads = [(k - 1) * dilation // 2 for k in taps] * 2
    dilations = [dilation] * rank
    return b.conv(x, w, *bias, strides=[1] * rank, pads=pads, dilations=dilations, groups=groups)


# --- products -----------------------------------------------------------------------------------


def qkv3d(b: GraphBuilder) -> None:
    x = b.reshape(b.input("x", (2, 37, 96)), shape=[74, 96])
    for n in "qkv":
        b.output(n, b.reshape(b.matmul(x, weight(b, f"w{n}", 96, 96)), shape=[2, 37, 96]))


def qkv_bias(b: GraphBuilder) -> None:
    x = b.input("x", (74, 96))
    for n in "qkv":
        y = b.matmul(x, weight(b, f"w{n}", 96, 96))
        b.output(n, b.add(y, b.expand(weight(b, f"b{n}", 96), [74, 96])))


def qkv_gqa(b: GraphBuilder) -> None:
    """Grouped-query attention: a wide query, narrow key and value."""
    x = b.input("x", (33, 256))
    for n, width in (("q", 256), ("k", 64), ("v", 64)):
        b.output(n, b.matmul(x, weight(b, f"w{n}", width, 256), transpose_b=True))


def lora(b: GraphBuilder) -> None:
    x = b.input("x", (64, 512))
    y = b.matmul(x, weight(b, "w", 512, 512))
    z = b.matmul(b.matmul(x, weight(b, "a", 512, 16)), weight(b, "b", 16, 512))
    b.output("y", b.add(y, z))


def distr_sub(b: GraphBuilder) -> None:
    a = b.input("a", (256, 512))
    first = b.matmul(a, b.input("b", (512, 256)))
    b.output("y", b.sub(first, b.matmul(a, b.input("c", (512, 256)))))


def scale_mm(b: GraphBuilder) -> None:
    x = b.input("x", (64, 512))
    scale = b.expand(b.constant(0.125, f32), [64, 512])
    b.output("y", b.matmul(b.mul(x, scale), weight(b, "w", 512, 512)))


def lstm(b: GraphBuilder) -> None:
    x, h, c = (b.input(n, (1, 256)) for n in "xhc")
    gates: dict[str, SSAValue] = {}
    for n in "ifog":
        y = b.matmul(x, weight(b, f"wx{n}", 256, 256))
        y = b.add(y, b.matmul(h, weight(b, f"wh{n}", 256, 256)))
        y = b.add(y, b.expand(weight(b, f"b{n}", 256), [1, 256]))
        gates[n] = b.tanh(y) if n == "g" else b.sigmoid(y)
    c2 = b.add(b.mul(gates["f"], c), b.mul(gates["i"], gates["g"]))
    b.output("c2", c2)
    b.output("h2", b.mul(gates["o"], b.tanh(c2)))


def swiglu(b: GraphBuilder) -> None:
    x = b.input("x", (33, 256))
    u, v = (b.matmul(x, weight(b, n, 256, 512)) for n in ("wu", "wv"))
    gated = b.mul(b.mul(u, b.sigmoid(u)), v)
    b.output("y", b.matmul(gated, weight(b, "wo", 512, 256)))


def reduce_after_mm(b: GraphBuilder) -> None:
    y = b.matmul(b.input("a", (512, 512)), b.input("c", (512, 512)))
    b.output("y", b.reduce_sum(y, axes=[0]))


def slice_mm(b: GraphBuilder) -> None:
    y = b.matmul(b.input("a", (256, 512)), b.input("c", (512, 512)))
    b.output("y", b.slice(y, starts=[0, 0], sizes=[256, 8], steps=[1, 1]))


def lin_attn(b: GraphBuilder) -> None:
    """Attention without its softmax."""
    q, k, v = (b.input(n, (1024, 32)) for n in "qkv")
    b.output("y", b.matmul(b.matmul(q, k, transpose_b=True), v))


def matmul_rt(b: GraphBuilder) -> None:
    """A batch of products with one weight."""
    w = b.broadcast(weight(b, "w", 96, 128), shape=[8, 96, 128], dims=[1, 2])
    b.output("y", b.matmul(b.input("a", (8, 64, 96)), w))


# --- moves --------------------------------------------------------------------------------------


def inverse_transpose(b: GraphBuilder) -> None:
    y = b.relu(b.transpose(b.input("x", (4, 16, 16, 8)), perm=[0, 3, 1, 2]))
    b.output("y", b.transpose(y, perm=[0, 2, 3, 1]))


def slice_concat(b: GraphBuilder) -> None:
    x = b.input("x", (4, 64))
    halves = [b.slice(x, starts=[0, k], sizes=[4, 32], steps=[1, 1]) for k in (0, 32)]
    b.output("y", b.concat(*halves, axis=1))


# --- one convolution ----------------------------------------------------------------------------


def conv1d_dil4(b: GraphBuilder) -> None:
    b.output("y", conv(b, b.input("x", (1, 256, 101)), weight(b, "w", 256, 256, 3), dilation=4))


def conv2d_dil_group(b: GraphBuilder) -> None:
    x, w = b.input("x", (1, 256, 16, 16)), weight(b, "w", 256, 64, 3, 3)
    b.output("y", conv(b, x, w, dilation=2, groups=4))


def tconv_s3(b: GraphBuilder) -> None:
    x, w = b.input("x", (1, 256, 5, 5)), weight(b, "w", 256, 128, 3, 3)
    flags = {"strides": [3, 3], "pads": [0] * 4, "dilations": [1, 1], "output_padding": [0, 0]}
    b.output("y", b.conv_transpose(x, w, groups=1, **flags))


def m_batch3(b: GraphBuilder) -> None:
    b.output("y", conv(b, b.input("x", (6, 32, 7, 9)), weight(b, "w", 48, 32, 3, 3)))


def m_conv3d_dil(b: GraphBuilder) -> None:
    x, w = b.input("x", (1, 64, 8, 16, 16)), weight(b, "w", 64, 64, 3, 3, 3)
    b.output("y", conv(b, x, w, dilation=2))


def conv_then_stridedslice(b: GraphBuilder) -> None:
    y = conv(b, b.input("x", (1, 64, 28, 28)), weight(b, "w", 64, 64, 3, 3))
    b.output("y", b.slice(y, starts=[0] * 4, sizes=[1, 64, 14, 14], steps=[1, 1, 2, 2]))


# --- several convolutions -----------------------------------------------------------------------


def conv_conv1x1(b: GraphBuilder) -> None:
    y = conv(b, b.input("x", (1, 64, 28, 28)), weight(b, "w1", 256, 64, 1, 1))
    b.output("y", conv(b, y, weight(b, "w2", 64, 256, 1, 1)))


def repvgg(b: GraphBuilder) -> None:
    x = b.input("x", (1, 64, 28, 28))
    three = conv(b, x, weight(b, "w3", 64, 64, 3, 3), weight(b, "b3", 64))
    one = conv(b, x, weight(b, "w1", 64, 64, 1, 1), weight(b, "b1", 64))
    b.output("y", b.relu(b.add(b.add(three, one), x)))


def inception_branch(b: GraphBuilder) -> None:
    x = b.input("x", (1, 64, 17, 17))
    kinds = (("a", 1, 32), ("b", 3, 48), ("c", 5, 16))
    parts = [b.relu(conv(b, x, weight(b, f"w{n}", f, 64, k, k))) for n, k, f in kinds]
    b.output("y", b.concat(*parts, axis=1))


def aspp(b: GraphBuilder) -> None:
    """Three dilations of one input, as in DeepLab."""
    x = b.input("x", (1, 256, 33, 33))
    kinds = (("a", 6), ("b", 12), ("c", 18))
    parts = [b.relu(conv(b, x, weight(b, f"w{n}", 64, 256, 3, 3), dilation=d)) for n, d in kinds]
    b.output("y", b.concat(*parts, axis=1))


def fig3a(b: GraphBuilder) -> None:
    """EinNet's first example."""
    x = b.input("x", (1, 512, 7, 7))
    b.output("p", b.relu(conv(b, x, weight(b, "w3", 512, 512, 3, 3))))
    b.output("q", b.relu(conv(b, x, weight(b, "w1", 512, 512, 1, 1))))


def m_fig10b(b: GraphBuilder) -> None:
    """Two inputs and unlike numbers of filters: PET's Fig. 10b."""
    first = conv(b, b.input("x1", (1, 96, 17, 17)), weight(b, "wa", 64, 96, 1, 1))
    second = conv(b, b.input("x2", (1, 96, 17, 17)), weight(b, "wb", 40, 96, 1, 1))
    b.output("p", first)
    b.output("q", second)


def shared(
    x: Sequence[int], *kernels: tuple[str, str, tuple[int, ...]], dilation: int = 1
) -> Build:
    """Convolutions of one input, each with its output, weight and shape."""

    def build(b: GraphBuilder) -> None:
        value = b.input("x", x)
        for output, name, shape in kernels:
            b.output(output, conv(b, value, weight(b, name, *shape), dilation=dilation))

    return build


_SAME_2D = (("a", "wa", (64, 64, 3, 3)), ("b", "wb", (64, 64, 3, 3)))
_SAME_3D = (("a", "wa", (32, 32, 3, 3, 3)), ("b", "wb", (32, 32, 3, 3, 3)))

PROGRAMS: dict[str, Build] = {
    "qkv3d": qkv3d,
    "qkv_bias": qkv_bias,
    "qkv_gqa": qkv_gqa,
    "lora": lora,
    "distr_sub": distr_sub,
    "scale_mm": scale_mm,
    "lstm": lstm,
    "swiglu": swiglu,
    "reduce_after_mm": reduce_after_mm,
    "slice_mm": slice_mm,
    "lin_attn": lin_attn,
    "matmul_rt": matmul_rt,
    "inverse_transpose": inverse_transpose,
    "slice_concat": slice_concat,
    "conv1d_dil4": conv1d_dil4,
    "conv2d_dil_group": conv2d_dil_group,
    "tconv_s3": tconv_s3,
    "m_batch3": m_batch3,
    "m_dil1d": conv1d_dil4,
    "m_conv3d_dil": m_conv3d_dil,
    "conv_then_stridedslice": conv_then_stridedslice,
    "conv_conv1x1": conv_conv1x1,
    "repvgg": repvgg,
    "inception_branch": inception_branch,
    "aspp": aspp,
    "fig3a": fig3a,
    "m_fig10b": m_fig10b,
    "conv1d_shared": shared((1, 64, 100), ("a", "wa", (64, 64, 3)), ("b", "wb", (64, 64, 3))),
    "conv2d_shared_same": shared((1, 64, 14, 14), *_SAME_2D),
    "conv2d_shared_dil": shared((1, 64, 14, 14), *_SAME_2D, dilation=2),
    "conv3d_shared": shared((1, 32, 8, 14, 14), *_SAME_3D),
    "pair_1d": shared((1, 256, 64), ("a", "wa", (256, 256, 3)), ("b", "wb", (256, 256, 5))),
    "k13": shared((1, 256, 64), ("p", "wa", (256, 256, 3)), ("q", "wb", (256, 256, 1))),
    "gcn_like": shared(
        (1, 256, 16, 16), ("p", "wa", (64, 256, 1, 7)), ("q", "wb", (64, 256, 7, 1))
    ),
    "k3353": shared((1, 128, 8, 8), ("p", "wa", (64, 128, 3, 3)), ("q", "wb", (64, 128, 5, 5))),
    "m_fig10a": shared((1, 96, 17, 17), ("p", "wa", (64, 96, 3, 3)), ("q", "wb", (40, 96, 3, 3))),
}


def main() -> None:
    """Write the text of every program."""
    ORIGINALS.mkdir(exist_ok=True)
    for name in PROGRAMS:
        write_whole(ORIGINALS / f"{name}.mlir", module_text(original(name).module))


if __name__ == "__main__":
    main()
