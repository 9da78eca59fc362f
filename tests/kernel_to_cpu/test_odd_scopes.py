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
    "totals of totals, the inner ones in several chains": """
func.func @main(%x: tensor<1x1x1x6x2xf64>) -> tensor<1x1x1x1x2xf64> {
  %0 = algebra.scope (i0: 1, i1: 1, i2: 1, i3: 1, i4: 2) max (k0: 3, k1: 4, k2: 4)
      %x[i0, i1, i2 + k0 - 2, 2 * i3 + 2 * k1, i4 + k2 - 1] else -inf : tensor<1x1x1x1x2xf64>
  func.return %0 : tensor<1x1x1x1x2xf64>
}
""",
    "points that take turns, with sums along no memory": """
func.func @main(%x: tensor<3x3xf64>) -> tensor<2xf64> {
  %0 = algebra.ones : tensor<1x3x3xf64>
  %1 = algebra.scope (i0: 2) sum (k0: 3, k1: 4, k2: 3) %0[k0 - 1, k1 - 1, i0 + k2] : tensor<2xf64>
  %2 = algebra.scope (i0: 2) sum (k0: 3, k1: 3) %x[k0, i0 + k1] : tensor<2xf64>
  %3 = algebra.scope (i0: 2) %2[i0] / %1[i0] : tensor<2xf64>
  func.return %3 : tensor<2xf64>
}
""",
    "a sum of one half float": """
func.func @main(%x: tensor<1xf16>) -> tensor<f16> {
  %0 = algebra.scope () sum (k0: 1) %x[k0] : tensor<f16>
  func.return %0 : tensor<f16>
}
""",
    "a row of two, read in vectors of four": """
func.func @main(%x: tensor<2xf32>, %y: tensor<f32>, %z: tensor<5x3xi1>) -> tensor<6x1xf32> {
  %0 = algebra.scope (i0: 6, i1: 2) sum (k0: 3) min(%y[], %x[i1]) : tensor<6x2xf32>
  %1 = algebra.scope (i0: 6, i1: 1) max (k0: 1, k1: 3)
      max(%0[i0, k1 - 2 * (k1 floordiv 2)], f32(%z[i0, k1])) - 0.5 : tensor<6x1xf32>
  func.return %1 : tensor<6x1xf32>
}
""",
    "a sum in the epilogue of a product": """
func.func @main(%x: tensor<3x4xf32>, %w: tensor<4x5xf32>, %z: tensor<3x5x7xf32>)
    -> tensor<3x5xf32> {
  %0 = kernel.gemm (%a = %x, %b = %w, %c = %z) {
    %1 = algebra.scope (m: 3, n: 5) sum (k: 4) %a[m, k] * %b[k, n] : tensor<3x5xf32>
    %2 = algebra.scope (m: 3, n: 5) sum (k: 7) %c[m, n, k] + %1[m, n] : tensor<3x5xf32>
    kernel.yield %2 : tensor<3x5xf32>
  } : tensor<3x5xf32>
  func.return %0 : tensor<3x5xf32>
}
""",
    "a row that is read outside, its zeros and others": """
func.func @main(%x: tensor<5x20xf32>) -> tensor<5x23xf32> {
  %0 = algebra.scope (i0: 5) sum (k0: 20) %x[i0, k0] : tensor<5xf32>
  %1 = algebra.scope (i0: 5, i1: 20) %x[i0, i1] / %0[i0] : tensor<5x20xf32>
  %2 = algebra.scope (i0: 5, i1: 23)
      %1[i0, i1 - 2] + %1[i0, 21 - i1] else 2.0 + %1[i0, 3 * i1] + %1[i0, i1 floordiv 2]
      : tensor<5x23xf32>
  func.return %2 : tensor<5x23xf32>
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
