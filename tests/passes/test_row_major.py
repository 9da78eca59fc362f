"""Convolutions between row-major tensors stay so where copies would cost more than they gain."""

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.ir import SSAValue

import isoform
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import lower_to
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program

RNG = np.random.default_rng(3)


def conv(
    b: GraphBuilder, x: SSAValue, features: int, taps: int, *, groups: int = 1, stride: int = 1
) -> SSAValue:
    """A convolution with bias and relu."""
    channels = x.type.get_shape()[1]  # pyright: ignore
    shape = (features, channels // groups, taps, taps)
    name = f"w{len(b.block.ops)}"
    w = b.weight(name, (RNG.standard_normal(shape) / taps).astype(np.float32))
    bias = b.weight(f"{name}b", RNG.standard_normal(features).astype(np.float32))
    pads, ones = [taps // 2] * 4, [1, 1]
    y = b.conv(x, w, bias, strides=[stride] * 2, pads=pads, dilations=ones, groups=groups)
    return b.relu(y)


def program(shape: tuple[int, ...], body: Callable[[GraphBuilder, SSAValue], SSAValue]) -> Program:
    b = GraphBuilder()
    b.output("y", body(b, b.input("x", shape)))
    return b.build()


def kernels(given: Program) -> list[str]:
    block = lower_to(given, "kernel").main.body.block
    return [op.name.removeprefix("kernel.") for op in block.ops if op.name.startswith("kernel.")]


WIDE, NARROW = (1, 24, 20, 20), (1, 24, 7, 7)
CASES = {
    "depthwise": (WIDE, lambda b, x: conv(b, x, 24, 3, groups=24), ["loops"]),
    "strides": ((2, 9, 33, 31), lambda b, x: conv(b, x, 9, 5, groups=9, stride=2), ["loops"]),
    "one tap": (WIDE, lambda b, x: conv(b, x, 40, 1), ["gemm"]),
    "images": ((3, 5, 20, 23), lambda b, x: conv(b, x, 7, 1), ["gemm"]),
    "one feature": ((1, 5, 20, 23), lambda b, x: conv(b, x, 1, 1), ["gemm"]),
    "a residual": (WIDE, lambda b, x: b.add(conv(b, x, 24, 1), x), ["gemm", "loops"]),
    "narrow": (NARROW, lambda b, x: conv(b, x, 24, 3, groups=24), ["loops", "conv", "loops"]),
    "few pixels": (NARROW, lambda b, x: conv(b, x, 40, 1), ["loops", "conv", "loops"]),
    "many taps": (WIDE, lambda b, x: conv(b, x, 24, 9, groups=24), ["loops", "conv", "loops"]),
    "several taps": (WIDE, lambda b, x: conv(b, x, 24, 3), ["loops", "conv", "loops"]),
    "convolved": (
        WIDE,
        lambda b, x: conv(b, b.exp(conv(b, x, 24, 3, groups=24)), 8, 3),
        ["loops", "conv", "conv", "loops"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_convolution_stays_row_major_where_nothing_is_convolved_around_it(name: str) -> None:
    shape, body, expected = CASES[name]
    given = program(shape, body)
    assert kernels(given) == expected
    inputs = draw_inputs(given, 0)
    session = isoform.compile(given, threads=2, effort="quick")
    wanted = reference.run(given, inputs)["y"]
    np.testing.assert_allclose(session(**inputs)["y"], wanted, rtol=1e-4, atol=2e-5)
