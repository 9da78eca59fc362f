"""Scopes that random programs, or a search, met and that were compiled wrongly or not at all."""

import numpy as np
import pytest

from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.testing.random_programs import Agreement, random_inputs

ODD = {
    "a region where one read is absent, with bounds of its own inside it": """
func.func @main(%x: tensor<3x3x66x5xi64>, %y: tensor<3x1x5x5xi64>) -> tensor<6x4x1x14xi64> {
  %0 = algebra.scope (i0: 6, i1: 4, i2: 1, i3: 14)
      min(%x[0, i3, i0, 2 * i1 - 1] else -2.0, %y[0, i2, i0 + i1 + 2, i1]) : tensor<6x4x1x14xi64>
  func.return %0 : tensor<6x4x1x14xi64>
}
""",
    "a sum along the lanes that walks along another dim too": """
func.func @main(%x: tensor<12x13x65xf32>) -> tensor<12x12x32xf32> {
  %0 = algebra.scope (i0: 12, i1: 12, i2: 32) sum (k0: 2)
      %x[i1, i0 + k0, 2 * i2 + k0] : tensor<12x12x32xf32>
  func.return %0 : tensor<12x12x32xf32>
}
""",
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("scope", ODD)
def test_odd_scopes_compute_what_they_mean(isa: Isa, scope: str, threads: int) -> None:
    program = parse(ODD[scope])
    inputs = random_inputs(program, 7)
    expected = Agreement.of(program, inputs)
    session = CpuSession(place(program), threads, isa=isa)
    found = session.run(inputs)
    session.close()
    assert expected.difference(found) is None


@pytest.mark.parametrize("shape", [(1, 4, 1, 9), (4, 1, 9, 1), (1, 1, 4, 9)])
def test_what_moves_a_convolutions_dims_of_one_position_is_no_epilogue(
    isa: Isa, shape: tuple[int, ...]
) -> None:
    """The reshape keeps the convolution's order, but its positions lie in other dims."""
    b = GraphBuilder()
    weights = np.random.default_rng(0).normal(size=(4, 4, 3, 3)).astype(np.float32)
    geometry = {"strides": [1, 1], "dilations": [1, 1], "groups": 1}
    y = b.conv(b.input("x", (1, 4, 9, 3)), b.weight("w", weights), pads=[1, 0, 1, 0], **geometry)
    b.output("y", b.tanh(b.reshape(y, shape=list(shape))))
    program = b.build()
    inputs = random_inputs(program, 7)
    expected = Agreement.of(program, inputs)
    session = CpuSession(place(program), 1, isa=isa)
    found = session.run(inputs)
    session.close()
    assert expected.difference(found) is None
