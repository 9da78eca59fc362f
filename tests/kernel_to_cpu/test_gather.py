"""Single elements at positions that are data are gathered a vector at a time."""

import numpy as np
import pytest
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute

from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.types import from_numpy
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.session import CpuSession

DTYPES = ["float32", "float64", "float16", "int64", "int32", "int8", "uint8", "bool"]
COUNTS = [1, 7, 16, 17, 511, 512, 513, 1100]


def session(
    isa: Isa, dtype: str, shape: tuple[int, ...], count: int, index: Attribute
) -> CpuSession:
    b = GraphBuilder()
    x = b.input("x", shape, from_numpy(np.dtype(dtype)))
    b.output("y", b.gather(x, b.input("i", (count,), index), axis=len(shape) - 1))
    return CpuSession(place(b.build()), threads=2, isa=isa)


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_along_the_last_axis(isa: Isa, dtype: str) -> None:
    draw = np.random.default_rng(0)
    for count in COUNTS:
        size = int(draw.integers(1, 300))
        shape = ((5, size), (size,))[count % 2]
        x = draw.integers(0, 100, shape).astype(dtype)
        element, kind = ((i32, np.int32), (i64, np.int64))[count % 3 == 0]
        i = draw.integers(-size, size, count).astype(kind)
        found = session(isa, dtype, shape, count, element).run({"x": x, "i": i})["y"]
        np.testing.assert_array_equal(found, np.take(x, i, axis=-1))


@pytest.mark.parametrize("at", [0, 15, 16, 512, 520])
@pytest.mark.parametrize("wrong", [-9, 8, 1 << 40, -(1 << 40)])
def test_an_index_out_of_range_is_an_error_wherever_it_stands(
    isa: Isa, at: int, wrong: int
) -> None:
    made = session(isa, "float32", (3, 8), 521, i64)
    x, i = np.ones((3, 8), np.float32), np.full(521, -8)
    assert made.run({"x": x, "i": i})["y"].all()
    i[at] = wrong
    with pytest.raises(UserError, match=f"index {wrong} at .*{at}.* is out of range"):
        made.run({"x": x, "i": i})
