"""What nobody reads is not computed, and what is read stays the same on every target."""

from collections.abc import Callable

import numpy as np
import pytest
from support.cuda_kernels import need_compiler

from isoform.compiler.targets.levels import place, priced
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.types import shape_of
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.session import CudaSession
from isoform.testing.cuda_emulator.runtime import EmulatedRuntime


def weight(b: GraphBuilder, *shape: int):
    return b.weight("w", np.random.default_rng(1).standard_normal(shape).astype(np.float32))


def columns(b: GraphBuilder) -> None:
    y = b.matmul(b.input("x", (9, 8)), weight(b, 8, 40))
    b.output("y", b.slice(y, starts=[1, 3], sizes=[4, 10], steps=[2, 1]))


def first_row_of_a_softmax(b: GraphBuilder) -> None:
    y = b.softmax(b.matmul(b.input("x", (9, 8)), weight(b, 8, 40)), axis=1)
    b.output("y", b.reshape(b.slice(y, starts=[2, 0], sizes=[1, 40], steps=[1, 1]), shape=[40]))


def inside_of_a_convolution(b: GraphBuilder) -> None:
    x, pads = b.input("x", (1, 3, 9, 10)), {"pads": [1, 1, 1, 1]}
    y = b.relu(b.conv(x, weight(b, 8, 3, 3, 3), strides=[1, 1], dilations=[1, 1], **pads))
    b.output("y", b.slice(y, starts=[0, 2, 3, 4], sizes=[1, 5, 4, 5], steps=[1, 1, 1, 1]))


def every_second_place_of_one(b: GraphBuilder) -> None:
    x, pads = b.input("x", (1, 3, 9, 10)), {"pads": [1, 1, 1, 1]}
    y = b.conv(x, weight(b, 8, 3, 3, 3), strides=[1, 1], dilations=[1, 1], **pads)
    b.output("y", b.slice(y, starts=[0, 0, 1, 0], sizes=[1, 8, 3, 5], steps=[1, 1, 2, 2]))


def inside_of_a_transposed_convolution(b: GraphBuilder) -> None:
    x, moves = b.input("x", (1, 3, 5, 6)), {"strides": [2, 2], "dilations": [1, 1]}
    y = b.conv_transpose(x, weight(b, 3, 4, 3, 3), pads=[1] * 4, output_padding=[0, 0], **moves)
    b.output("y", b.slice(y, starts=[0, 0, 2, 3], sizes=[1, 4, 5, 6], steps=[1, 1, 1, 1]))


CASES: dict[str, tuple[Callable[[GraphBuilder], None], tuple[int, ...]]] = {
    # name: program, and what its first kernel computes
    "columns": (columns, (4, 10)),
    "first row of a softmax": (first_row_of_a_softmax, (1, 40)),
    "inside of a convolution": (inside_of_a_convolution, (1, 8, 4, 5)),
    "every second place of one": (every_second_place_of_one, (1, 8, 5, 9)),
    # With another offset it would be no convolution.
    "inside of a transposed one": (inside_of_a_transposed_convolution, (1, 4, 9, 11)),
}


def build(name: str) -> tuple[Program, dict[str, np.ndarray]]:
    b = GraphBuilder()
    CASES[name][0](b)
    program = b.build()
    shape = program.inputs["x"].get_shape()
    return program, {"x": np.random.default_rng(2).standard_normal(shape).astype(np.float32)}


@pytest.mark.parametrize("name", CASES)
def test_a_product_computes_what_is_read(name: str) -> None:
    lowered = priced(build(name)[0], "h100")
    kernels = [op for op in lowered.main.body.block.ops if op.regions]
    assert shape_of(kernels[0].results[0]) == CASES[name][1]


@pytest.mark.parametrize("name", CASES)
def test_both_targets_compute_what_the_program_says(name: str) -> None:
    need_compiler()
    program, feeds = build(name)
    expected = reference.run(program, feeds)["y"]
    session = CpuSession(place(program))
    np.testing.assert_allclose(session.run(feeds)["y"], expected, rtol=1e-4, atol=1e-5)
    session.close()
    for libraries in ((), ("cublas", "cudnn")):
        printed = cuda_program(place(program, target="cuda"), libraries=libraries)
        found = CudaSession(printed, EmulatedRuntime()).run(feeds)["y"]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
