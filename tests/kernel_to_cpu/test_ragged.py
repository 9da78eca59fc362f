"""Every kind of kernel on shapes that fit nothing, against the reference."""

import random

import numpy as np
import pytest
from support.ragged import KINDS

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import place
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable
from isoform.lowering.kernel_to_cpu.session import CpuSession

SHAPES = 500
GROUP = 25  # shapes in one program, to compile them together


def check(kind, seed: int, count: int, isa: Isa) -> None:
    """Compare `count` shapes with the reference, as outputs of one program."""
    r, b = random.Random(seed), GraphBuilder()
    for k in range(count):
        b.output(f"y{k}", kind(b, r, f"v{k}_"))
    program = b.build()
    inputs = draw_inputs(program, seed)
    session = CpuSession(place(program), threads=1 + seed % 2, isa=isa)
    found, expected = session.run(inputs), reference.run(program, inputs)
    session.close()
    for name, wanted in expected.items():
        atol = 2e-5 * max(1.0, float(np.abs(wanted).max(initial=0.0)))
        got = found[name].astype(wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=atol, err_msg=name)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_few_ragged_shapes(kind):
    check(kind, 0, 8, Isa.host())


@pytest.mark.slow
@pytest.mark.parametrize("isa", [isa.name for isa in runnable()])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_five_hundred_ragged_shapes(kind, isa):
    """On the best instruction set; a fifth of them on the lower ones."""
    shapes = SHAPES if isa == runnable()[-1].name else SHAPES // 5
    for seed in range(1, 1 + shapes // GROUP):
        check(kind, seed, GROUP, Isa.named(isa))
