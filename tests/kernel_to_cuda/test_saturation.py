"""Floats become short integers on the device as they do elsewhere: what leaves the type is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.printed_cuda import difference
from xdsl.dialects.builtin import f32, i32

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.types import from_numpy


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16])
def test_a_quantiser_saturates(dtype: Any) -> None:
    b = GraphBuilder()
    x = b.input("x", (7, 9))
    wide = b.mul(x, b.expand(b.constant(np.float32(200)), (7, 9)))
    q = b.cast(b.round(wide), to=from_numpy(dtype))
    b.output("q", q)
    b.output("y", b.cast(b.cast(q, to=i32), to=f32))
    assert difference(b.build()) is None


def test_bytes_are_multiplied_in_32_bits() -> None:
    b = GraphBuilder()
    x = b.input("x", (8, 20), from_numpy(np.uint8))
    w = b.weight("w", np.full((20, 12), -128, np.int8))
    b.output("y", b.matmul(b.cast(x, to=i32), b.cast(w, to=i32)))
    assert difference(b.build()) is None
