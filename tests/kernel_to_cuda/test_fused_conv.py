"""Bias, residual and relu behind a convolution are one step of cuDNN; anything else is not."""

from collections.abc import Callable

import numpy as np
import pytest
from support.conv_orders import GraphConvolution, in_order
from support.cuda_kernels import need_compiler
from xdsl.ir import SSAValue

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.lowering.kernel_to_cuda.print_cu_file import print_file
from isoform.lowering.kernel_to_cuda.program_data import ConvCall
from isoform.lowering.kernel_to_cuda.session import CudaSession
from isoform.testing.cuda_emulator.runtime import EmulatedRuntime

Behind = Callable[[GraphBuilder, SSAValue, SSAValue], SSAValue]
FUSED: dict[str, Behind] = {
    "relu": lambda b, y, x: b.relu(y),
    "residual, relu": lambda b, y, x: b.relu(b.add(y, x)),
    "residual first": lambda b, y, x: b.relu(b.add(x, y)),
}
APART: dict[str, Behind] = {
    "nothing": lambda b, y, x: y,
    "residual": lambda b, y, x: b.add(y, x),
    "a product": lambda b, y, x: b.relu(b.mul(y, x)),
    "two residuals": lambda b, y, x: b.relu(b.add(b.add(y, x), x)),
    "a function": lambda b, y, x: b.tanh(y),
    "relu, then more": lambda b, y, x: b.tanh(b.relu(y)),
}


def program(behind: Behind) -> Program:
    """A 3x3 convolution with a bias, and what is behind it."""
    rng = np.random.default_rng(3)
    b = GraphBuilder()
    x = b.input("x", (2, 5, 7, 6))
    w = b.weight("w", rng.standard_normal((5, 5, 3, 3)).astype("f"))
    bias = b.weight("bias", rng.standard_normal(5).astype("f"))
    b.output("y", behind(b, b.conv(x, w, bias, strides=[1, 1], pads=[1] * 4, dilations=[1, 1]), x))
    return b.build("conv")


@pytest.mark.parametrize("name", [*FUSED, *APART])
def test_the_result_is_that_of_the_graph(name: str) -> None:
    need_compiler()
    made = program({**FUSED, **APART}[name])
    printed = cuda_program(place(made, target="cuda"), libraries=("cudnn",))
    convolutions = [step for step in printed.steps if isinstance(step, ConvCall)]
    assert len(convolutions) == 1
    assert (convolutions[0].fused is not None) == (name in FUSED)
    assert (len(printed.steps) == 1) == (name in FUSED)  # nothing is copied
    inputs = draw_inputs(made, 1)
    found = CudaSession(printed, EmulatedRuntime()).run(inputs)["y"]
    np.testing.assert_allclose(found, reference.run(made, inputs)["y"], rtol=1e-4, atol=1e-4)


def test_the_printed_call_names_bias_and_residual() -> None:
    calls: dict[str, str] = {}
    for name in ("relu", "residual, relu"):
        placed = place(program(FUSED[name]), target="cuda")
        text = print_file(cuda_program(placed, libraries=("cudnn",)), "conv")
        calls[name] = text.partition("    convolve(")[2].partition(";")[0]
    arrays = {name: call.count("const_cast") for name, call in calls.items()}
    assert arrays == {"relu": 4, "residual, relu": 4}  # data, out, bias, and out or the residual
    out, last = (calls["relu"].split("const_cast<float *>(")[k] for k in (2, 4))
    assert out.partition(")")[0] == last.partition(")")[0]
    out, last = (calls["residual, relu"].split("const_cast<float *>(")[k] for k in (2, 4))
    assert out.partition(")")[0] != last.partition(")")[0]


@pytest.mark.parametrize("data", [(0, 2, 3, 1), (2, 0, 1, 3)])
def test_a_convolution_in_any_order_of_dims_is_one_step(data: tuple[int, ...]) -> None:
    need_compiler()
    conv = GraphConvolution((2, 5, 7, 6), (4, 5, 3, 3), properties={"pads": [1] * 4})
    made = in_order(conv, data, (2, 3, 1, 0), (0, 2, 3, 1), exchanged=data[0] != 0)
    printed = cuda_program(place(made, target="cuda"), libraries=("cudnn",))
    (step,) = (step for step in printed.steps if isinstance(step, ConvCall))
    assert step.fused is not None
    inputs = draw_inputs(made, 1)
    (found,) = CudaSession(printed, EmulatedRuntime()).run(inputs).values()
    (expected,) = reference.run(made, inputs).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
