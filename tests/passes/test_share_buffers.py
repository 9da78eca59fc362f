"""Parts of buffers are read in place: no kernel copies them, every target reads the right ones."""

from collections.abc import Callable

import numpy as np
import pytest
from support.cuda_kernels import need_compiler
from xdsl.ir import SSAValue

from isoform.compiler.targets.levels import place, priced
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import ViewOp
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.dialects.types import shape_of
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.session import CudaSession
from isoform.lowering.targets import TARGETS
from isoform.passes.cost.costs import Costs
from isoform.testing.cuda_emulator.runtime import EmulatedRuntime

CONV = {"strides": [1, 1], "dilations": [1, 1]}


def weight(b: GraphBuilder, name: str, *shape: int):
    values = np.random.default_rng(len(name)).standard_normal(shape)
    return b.weight(name, values.astype(np.float32))


def columns(b: GraphBuilder) -> None:
    """Columns of a product: outputs, one of them under another shape, and one a relu reads."""
    y = b.matmul(b.input("x", (6, 5)), weight(b, "w", 5, 12))
    p, q, r = b.split(y, axis=1, sizes=[3, 4, 5])
    b.output("p", p)
    b.output("q", b.reshape(q, shape=[2, 3, 4]))
    b.output("r", b.relu(r))


def heads(b: GraphBuilder) -> None:
    """Columns that products read, one transposed."""
    y = b.matmul(b.input("x", (6, 5)), weight(b, "w", 5, 16))
    p, q = b.split(y, axis=1, sizes=[8, 8])
    b.output("scores", b.matmul(p, b.transpose(q, perm=[1, 0])))


def channels(b: GraphBuilder) -> None:
    """Channels of a convolution: an output, and one that a padded convolution reads."""
    x = b.input("x", (1, 3, 7, 6))
    y = b.conv(x, weight(b, "w", 12, 3, 3, 3), pads=[1, 1, 1, 1], **CONV)
    p, q = b.split(y, axis=1, sizes=[8, 4])
    b.output("p", p)
    b.output("q", b.conv(q, weight(b, "v", 8, 4, 3, 3), pads=[1, 1, 1, 1], **CONV))


def of_an_input(b: GraphBuilder) -> None:
    """A part of an input is an output; another one is joined with a part of a sum."""
    x = b.input("x", (4, 10))
    b.output("p", b.slice(x, starts=[1, 3], sizes=[2, 5], steps=[1, 1]))
    y = b.add(x, x)
    q = b.slice(y, starts=[0, 0], sizes=[4, 6], steps=[1, 1])
    r = b.slice(x, starts=[0, 2], sizes=[4, 4], steps=[1, 1])
    b.output("q", b.concat(q, r, axis=1))


def biased(b: GraphBuilder) -> None:
    """Columns with a bias each, which is one bias of the product."""
    y = b.matmul(b.input("x", (6, 5)), weight(b, "w", 5, 12))
    for name, part in zip("pq", b.split(y, axis=1, sizes=[4, 8]), strict=True):
        (columns,) = shape_of(part)[1:]
        bias = weight(b, "bias" + name * columns, columns)
        b.output(name, b.relu(b.add(part, b.broadcast(bias, shape=shape_of(part), dims=[1]))))


def filters(b: GraphBuilder) -> None:
    """Operands of convolutions that lie in larger buffers: behind others, and with gaps."""

    def part(name: str, shape: tuple[int, ...], axis: int, first: int, size: int):
        starts, sizes = [0] * len(shape), list(shape)
        starts[axis], sizes[axis] = first, size
        return b.slice(b.input(name, shape), starts=starts, sizes=sizes, steps=[1] * len(shape))

    def conv(x: SSAValue, w: SSAValue, groups: int) -> SSAValue:
        ones = [1, 1]
        return b.conv(x, w, strides=ones, pads=[0] * 4, dilations=ones, groups=groups)

    b.output("p", b.matmul(b.input("a", (1, 2, 1, 1)), part("v", (1, 6, 1, 1), 1, 4, 2)))
    b.output("q", conv(b.input("x", (1, 1, 4, 4)), part("f", (1, 1, 2, 5), 3, 2, 2), 1))
    image, apart = part("y", (1, 4, 1, 3), 3, 1, 1), part("g", (4, 1, 1, 3), 3, 1, 1)
    b.output("r", conv(image, apart, 4))
    b.output("s", conv(image, weight(b, "w", 4, 1, 1, 1), 4))


def turned(b: GraphBuilder) -> None:
    """A transpose is copied."""
    b.output("p", b.transpose(b.input("x", (4, 10)), perm=[1, 0]))


def with_steps(b: GraphBuilder) -> None:
    """Every second column of an input is in no place of its own: it is copied."""
    x = b.input("x", (4, 10))
    b.output("p", b.slice(x, starts=[0, 1], sizes=[4, 5], steps=[1, 2]))


CASES: dict[str, tuple[Callable[[GraphBuilder], None], int, int]] = {
    # name: program, kernels on a GPU, views on a GPU
    "columns": (columns, 2, 2),
    "heads": (heads, 2, 0),
    "channels": (channels, 2, 2),
    "of an input": (of_an_input, 2, 2),
    "biased": (biased, 1, 2),
    "filters": (filters, 6, 1),
    "turned": (turned, 1, 0),
    "with steps": (with_steps, 1, 0),
}


def build(name: str) -> Program:
    b = GraphBuilder()
    CASES[name][0](b)
    return b.build()


def drawn(program: Program) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        name: rng.standard_normal(type_.get_shape()).astype(np.float32)
        for name, type_ in program.inputs.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_only_what_must_be_computed_is_a_kernel(name: str) -> None:
    lowered = priced(build(name), "h100")
    ops = list(lowered.main.body.block.ops)
    kernels = [op for op, _ in Costs(TARGETS["h100"]).breakdown(lowered)]
    views = [op for op in ops if isinstance(op, ViewOp)]
    assert (len(kernels), len(views)) == CASES[name][1:], lowered.module


@pytest.mark.parametrize("name", CASES)
def test_the_cpu_reads_the_right_places(name: str) -> None:
    program = build(name)
    feeds, session = drawn(program), CpuSession(place(program))
    expected = run(program, feeds)
    for key, array in session.run(feeds).items():
        np.testing.assert_allclose(array, expected[key], rtol=1e-4, atol=1e-5)
    session.close()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("libraries", [(), ("cublas", "cudnn")])
def test_a_gpu_reads_the_right_places(name: str, libraries: tuple[str, ...]) -> None:
    need_compiler()
    program = build(name)
    feeds, expected = drawn(program), run(program, drawn(program))
    printed = cuda_program(place(program, target="cuda"), libraries=libraries)
    found = CudaSession(printed, EmulatedRuntime(workers=1)).run(feeds)
    for key, array in found.items():
        np.testing.assert_allclose(array, expected[key], rtol=1e-4, atol=1e-5)
