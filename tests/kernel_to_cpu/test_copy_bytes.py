"""A panel of bytes copied when the program runs is what `Numbers.panel` packs beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest

from isoform.lowering.kernel_to_cpu.emit.emitter import Emitter
from isoform.lowering.kernel_to_cpu.emit.types import I8, I32, Index, Value
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.products.blocks import Panel
from isoform.lowering.kernel_to_cpu.products.copy_bytes import copy_bytes
from isoform.lowering.kernel_to_cpu.products.numbers import Numbers, Step


def copied(
    strides: tuple[int, int],
    panel: Panel,
    lanes: int,
    depth: int,
    numbers: Numbers,
    b: Emitter,
    pointers: Sequence[Value],
    *_: Index,
) -> None:
    source, target = pointers
    copy_bytes(b, source, target, strides, panel, lanes, depth, numbers)


@pytest.mark.parametrize("step", ["multiply", "bytes", "pairs"])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_copied_panel_is_the_packed_one(
    isa: Isa, run_body: Callable[..., None], step: Step, signed: bool, turned: bool
) -> None:
    numbers = Numbers(I8, I8, I32, I32, signed=signed, step=step)
    rng = np.random.default_rng(1)
    lanes = isa.lanes(I32)
    for depth, columns in ((1, 3), (4, 2 * lanes), (23, lanes + 1), (66, lanes)):
        matrix = rng.integers(-128, 128, (depth, columns)).astype(np.int8)
        given = np.ascontiguousarray(matrix.T if turned else matrix)
        strides = (1, depth) if turned else (columns, 1)
        panel = Panel(1, -(-columns // lanes), columns, 1)
        width = panel.vectors * lanes
        found = np.full((numbers.rows(depth), width), 7, np.int32)

        run_body(isa, partial(copied, strides, panel, lanes, depth, numbers), given, found)
        filled = np.pad(matrix, ((0, 0), (0, width - columns)))
        np.testing.assert_array_equal(found, numbers.panel(filled[None]))
