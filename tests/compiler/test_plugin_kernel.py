"""A library kernel of a plug-in is one entry: it is chosen, priced, and it runs."""

from pathlib import Path

import numpy as np

from isoform.compiler.api import compile
from isoform.compiler.frontends.program_file import parse
from isoform.compiler.plugin import using
from isoform.compiler.targets.levels import lower_to, run_passes
from isoform.lowering.algebra_to_kernel.table import library_kernels

PLUGIN = str(Path(__file__).parents[2] / "examples" / "custom_kernel.py")
TEXT = """\
func.func @main(%a: tensor<4xf32>, %b: tensor<8xf32>, %c: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %y = algebra.scope (m: 4, n: 8) %a[m] * %b[n] : tensor<4x8xf32>
  %z = algebra.scope (m: 4, n: 16) sum (k: 8) %y[m, k] * %c[k, n] : tensor<4x16xf32>
  func.return %z : tensor<4x16xf32>
}
"""


def test_a_library_kernel_is_one_entry_of_a_plug_in() -> None:
    before = len(library_kernels())
    with using([PLUGIN]):
        assert len(library_kernels()) == before + 1
        program = parse(TEXT)
        lowered = lower_to(program, "kernel")
        names = [op.name for op in lowered.main.body.block.ops]
        assert names == ["demo.outer", "kernel.gemm", "func.return"]
        a, b, c = (np.random.default_rng(k).random(s).astype("f") for k, s in enumerate(SHAPES))
        (found,) = compile(lowered, effort="quick", threads=1)(a=a, b=b, c=c).values()
    assert len(library_kernels()) == before
    np.testing.assert_allclose(found, np.outer(a, b) @ c, rtol=1e-5)


def test_searches_know_it_by_its_groups() -> None:
    with using([PLUGIN]):
        program = parse(TEXT)
        run_passes(program, 'algebra-apply-rule{rule=match at="y" kernel="outer"}')
        assert [op.name for op in program.main.body.block.ops].count("algebra.scope") == 2


SHAPES = ((4,), (8,), (8, 16))
