"""A transpose moves elements of every dtype to the bit, whatever part of a vector a dim fills."""

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.ir import Attribute

from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.types import to_numpy
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.session import CpuSession

SHAPES = [(5, 2), (2, 5), (3, 5), (5, 3), (6, 2), (7, 3), (9, 4), (17, 33), (40, 9), (64, 4)]


@pytest.mark.parametrize("element", [bf16, f16, f32, f64, i1, i8, i32, i64], ids=str)
def test_of_a_batch(element: Attribute, isa: Isa) -> None:
    b = GraphBuilder()
    inputs = {}
    rng = np.random.default_rng(0)
    for rows, columns in SHAPES:
        name = f"x{rows}x{columns}"
        inputs[name] = rng.integers(-100, 100, (2, rows, columns)).astype(to_numpy(element))
        x = b.input(name, (2, rows, columns), element)
        b.output(f"y{name}", b.transpose(x, perm=[0, 2, 1]))
    found = CpuSession(place(b.build()), 1, isa=isa).run(inputs)
    for name, x in inputs.items():
        np.testing.assert_array_equal(np.asarray(found[f"y{name}"]), x.swapaxes(1, 2))
