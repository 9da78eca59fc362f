"""A tiled product gives what its three kernels give, on any block of tiles and instruction set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.context import Context

from isoform.compiler.pipelines import LOWER_TO_KERNEL
from isoform.compiler.targets.levels import run_passes
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.kernel import GemmOp, TiledProductOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.products.transformed_product import BLOCK_TILES, block_tiles
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.lowering.kernel_to_cuda.build_program import cuda_program
from isoform.passes.convolution.winograd import Winograd
from isoform.passes.equivalence import compare
from isoform.passes.fusion.fuse_tiles import FuseTiles
from isoform.passes.plan_memory import PlanMemory

Sizes = tuple[int, int, int, int, int, int]
"""Channels, features, height, width, padding, batch."""

SHAPES: tuple[Sizes, ...] = (
    (5, 7, 6, 9, 1, 1),
    (16, 150, 7, 7, 1, 2),
    (33, 17, 9, 14, 0, 1),
    (3, 64, 21, 5, 2, 1),
)


# Channels, features, size, window, m, taps of a block, tiles.
WINDOWS: tuple[tuple[Any, ...], ...] = (
    (16, 40, (9, 14), (1, 7), 4, None, 5),
    (33, 17, (13, 6), (7, 1), 4, None, 14),
    (5, 70, (8, 8), (1, 3), 2, None, 3),
    (20, 16, (50,), (5,), 4, None, 4),
    (7, 9, (9, 7), (5, 3), 2, None, 2),
    (18, 21, (6, 15), (1, 11), 4, 4, 4),
    (6, 33, (15, 4), (7, 1), 2, 3, 7),
    (4, 5, (9, 9), (5, 5), 2, 3, 6),
)


def convolution(sizes: Sizes) -> Program:
    channels, features, height, width, pad, batch = sizes
    random = np.random.default_rng(3)
    b = GraphBuilder()
    x = b.input("x", (batch, channels, height, width))
    w = b.weight("w", random.standard_normal((features, channels, 3, 3)).astype(np.float32))
    bias = b.weight("b", random.standard_normal(features).astype(np.float32))
    geometry = {"strides": [1, 1], "pads": [pad] * 4, "dilations": [1, 1]}
    y = b.relu(b.conv(x, w, bias, **geometry))
    b.output("y", b.add(y, b.conv(x, w, **geometry)))
    return b.build()


def one_convolution(
    channels: int, features: int, size: tuple[int, ...], window: tuple[int, ...]
) -> Program:
    """A convolution as large as its data, and what follows."""
    random = np.random.default_rng(5)
    b = GraphBuilder()
    x = b.input("x", (2, channels, *size))
    w = b.weight("w", random.standard_normal((features, channels, *window)).astype(np.float32))
    bias = b.weight("b", random.standard_normal(features).astype(np.float32))
    pads = [*(n // 2 for n in window), *((n - 1) // 2 for n in window)]
    ones = [1] * len(window)
    b.output("y", b.relu(b.conv(x, w, bias, strides=ones, pads=pads, dilations=ones)))
    return b.build()


def lowered(program: Program, m: int, tiles: int | None, taps: int | None = None) -> Program:
    result = program.clone()
    for name in LOWER_TO_KERNEL:
        run_passes(result, name)
    Winograd(m, taps, tiles=tiles).apply(Context(), result.module)
    FuseTiles().apply(Context(), result.module)
    PlanMemory().apply(Context(), result.module)
    result.module.verify()
    kinds = [type(op) for op in result.main.body.block.ops]
    assert (TiledProductOp in kinds, GemmOp in kinds) == (tiles is not None, tiles is None)
    return result


def run(program: Program, x: np.ndarray, isa: Isa, threads: int = 1) -> np.ndarray:
    session = CpuSession(program, threads, isa)
    found = session.run({"x": x})["y"]
    session.close()
    return found


def draw(sizes: Sizes) -> np.ndarray:
    channels, _, height, width, _, batch = sizes
    shape = (batch, channels, height, width)
    return np.random.default_rng(4).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("m", "tiles"), [(2, 5), (4, 1), (4, 14)])
@pytest.mark.parametrize("sizes", SHAPES)
def test_it_gives_what_the_reference_gives(isa: Isa, sizes: Sizes, m: int, tiles: int) -> None:
    program = convolution(sizes)
    as_the_reference(program, lowered(program, m, tiles), isa)


@pytest.mark.parametrize("shape", WINDOWS)
def test_windows_in_any_number_of_dims_and_taps(isa: Isa, shape: tuple[Any, ...]) -> None:
    channels, features, size, window, m, taps, tiles = shape
    program = one_convolution(channels, features, size, window)
    as_the_reference(program, lowered(program, m, tiles, taps), isa)


def as_the_reference(program: Program, fused: Program, isa: Isa) -> None:
    (type_,) = program.inputs.values()
    x = np.random.default_rng(4).standard_normal(type_.get_shape()).astype(np.float32)
    expected = reference.run(program, {"x": x})["y"]
    np.testing.assert_allclose(reference.run(fused, {"x": x})["y"], expected, atol=1e-9)
    np.testing.assert_allclose(
        run(fused, x, isa), expected, rtol=0, atol=1e-5 * np.abs(expected).max()
    )


def test_nan_and_infinity_stay_within_their_tiles() -> None:
    sizes = (8, 40, 13, 13, 1, 1)
    program, x = convolution(sizes), draw(sizes)
    x[0, 3, 5, 6], x[0, 1, 12, 0] = np.nan, np.inf
    apart = run(lowered(program, 4, None), x, Isa.host())
    together = run(lowered(program, 4, 3), x, Isa.host())
    assert 0 < np.isnan(apart).sum() < apart.size
    np.testing.assert_array_equal(np.isnan(together), np.isnan(apart))


def test_two_threads_give_the_same_bits() -> None:
    sizes = (12, 20, 17, 18, 1, 2)
    x, fused = draw(sizes), lowered(convolution(sizes), 4, 4)
    np.testing.assert_array_equal(run(fused, x, Isa.host(), 2), run(fused, x, Isa.host()))


def test_the_equivalence_engine_proves_it() -> None:
    program = convolution((5, 7, 6, 9, 1, 1))
    assert compare(program, lowered(program, 4, 2)).kind == "equal"


@pytest.mark.parametrize(("window", "taps"), [((1, 7), None), ((11, 1), 4)])
def test_the_equivalence_engine_proves_windows(window: tuple[int, int], taps: int | None) -> None:
    program = one_convolution(5, 6, (7, 9), window)
    assert compare(program, lowered(program, 4, 3, taps)).kind == "equal"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_any_shape(seed: int) -> None:
    random = np.random.default_rng(seed)
    low, high = (2, 2, 3, 3, 0, 1), (70, 200, 24, 24, 3, 4)
    channels, features, height, width, pad, batch = map(int, random.integers(low, high))
    sizes = channels, features, height, width, pad, batch
    m, tiles = int(random.choice([2, 4])), int(random.integers(1, 40))
    program, x = convolution(sizes), draw(sizes)
    expected = reference.run(program, {"x": x})["y"]
    found = run(lowered(program, m, tiles), x, Isa.host())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_blocks_fit_a_cache_and_are_enough_for_threads() -> None:
    assert block_tiles(3136, 36, 64, 64) == block_tiles(196, 36, 256, 256) == BLOCK_TILES
    assert block_tiles(784, 36, 512, 512) == 0
    assert block_tiles(49, 36, 64, 64) == 0


def test_a_block_that_fits_no_stack_is_refused() -> None:
    with pytest.raises(UserError, match="too large"):
        CpuSession(lowered(convolution((300, 8, 40, 40, 1, 1)), 4, 100))


def test_cuda_says_that_it_has_no_code() -> None:
    with pytest.raises(UserError, match="tiled product"):
        cuda_program(lowered(convolution((5, 7, 6, 9, 1, 1)), 2, 2))
