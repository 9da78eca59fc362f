"""integer-products: every law is proved on the programs it makes, exactly, zero points and all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import SSAValue

from isoform.compiler import api
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place, run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.graph import WeightOp
from isoform.dialects.graph.contraction import ConvOp, MatmulOp
from isoform.dialects.graph.elementwise import CastOp
from isoform.dialects.program import Program
from isoform.dialects.types import element_of, from_numpy, shape_of
from isoform.passes.equivalence import compare

BYTES = (np.uint8, np.int8)


def whole(b: GraphBuilder, value: SSAValue, zero: int | None) -> SSAValue:
    """Bytes in 32 bits, minus a zero point."""
    wide = b.cast(value, to=i32)
    if zero is None:
        return wide
    return b.sub(wide, b.expand(b.constant(np.asarray(zero, np.int32)), shape_of(wide)))


def weights(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def conv(data: Any, kinds: Any, zeros: tuple[int | None, int | None], **given: Any) -> Program:
    rng, groups, b = np.random.default_rng(1), given.get("groups", 1), GraphBuilder()
    x = b.input("x", (2, 4, 5, 6), from_numpy(data))
    w = b.weight("w", weights(rng, kinds, (6, 4 // groups, 3, 2)))
    setting: dict[str, Any] = {
        "strides": [1, 2],
        "pads": [1, 0, 1, 1],
        "dilations": [1, 1],
        **given,
    }
    b.output("y", b.conv(whole(b, x, zeros[0]), whole(b, w, zeros[1]), **setting))
    return b.build()


def matmul(data: Any, kinds: Any, zeros: tuple[int | None, int | None], **flags: Any) -> Program:
    rng, b = np.random.default_rng(2), GraphBuilder()
    x = b.input("x", (5, 7) if not flags.get("transpose_a") else (7, 5), from_numpy(data))
    w = b.weight("w", weights(rng, kinds, (3, 7) if flags.get("transpose_b") else (7, 3)))
    b.output("y", b.matmul(whole(b, x, zeros[0]), whole(b, w, zeros[1]), **flags))
    return b.build()


def rewritten(program: Program) -> Program:
    result = program.clone()
    run_passes(result, "integer-products,dce")
    return result


@pytest.mark.parametrize("data", BYTES)
@pytest.mark.parametrize("kinds", BYTES)
@pytest.mark.parametrize("zeros", [(None, None), (7, None), (None, 9), (100, 121)])
def test_zero_points_leave_products_exactly(
    data: Any, kinds: Any, zeros: tuple[int | None, int | None]
) -> None:
    programs = [
        conv(data, kinds, zeros),
        conv(data, kinds, zeros, groups=2, pads=[0] * 4),
        matmul(data, kinds, zeros),
        matmul(data, kinds, zeros, transpose_a=True, transpose_b=True),
    ]
    for program in programs:
        found = compare(program, rewritten(program), seed=1)
        assert found.is_equal, found


@pytest.mark.parametrize("make", [conv, matmul])
@pytest.mark.parametrize("kinds", BYTES)
def test_weights_stay_bytes_when_constants_are_folded(make: Any, kinds: Any) -> None:
    """Else their kernel is the plain loops, and they take four times the memory."""
    program = api.improve(make(np.uint8, kinds, (3, 119)))
    products = [op for op in program.main.body.block.ops if isinstance(op, ConvOp | MatmulOp)]
    cast = products[0].operands[1].owner  # others sum the data
    assert isinstance(cast, CastOp) and isinstance(cast.x.owner, WeightOp)
    assert element_of(cast.x) == i8
    assert compare(make(np.uint8, kinds, (3, 119)), program, seed=1).is_equal
    names = [op.name for op in place(program, CpuOptions(1)).main.body.block.ops]
    assert {"kernel.conv", "kernel.gemm"} & set(names)


def test_a_dequantised_product_is_the_scaled_product_of_bytes() -> None:
    b, rng = GraphBuilder(), np.random.default_rng(3)
    x = b.input("x", (4, 8), from_numpy(np.uint8))
    w = b.weight("w", weights(rng, np.int8, (8, 6)))
    scale = b.weight("t", rng.uniform(0.1, 1, 6).astype(np.float32))
    left = b.mul(b.cast(whole(b, x, 5), to=f32), b.expand(b.constant(np.float32(0.5)), (4, 8)))
    right = b.mul(b.cast(whole(b, w, None), to=f32), b.expand(scale, (8, 6)))
    y = b.matmul(left, right)
    b.output("y", b.div(y, b.expand(b.constant(np.float32(0.25)), (4, 6))))
    program = b.build()
    made = rewritten(program)
    names = [op.name for op in made.main.body.block.ops]
    assert "graph.matmul" in names
    product = next(op for op in made.main.body.block.ops if op.name == "graph.matmul")
    assert shape_of(product.results[0]) == (4, 6)
    assert "i32" in str(product.results[0].type)
    assert compare(program, made, seed=1).is_equal


@pytest.mark.parametrize(("dim", "element"), [(0, "i32"), (1, "f32")])
def test_scales_follow_weights_that_are_moved(dim: int, element: str) -> None:
    """Transposed, repeated for a batch: those of columns leave the sum, those of terms do not."""
    b, rng = GraphBuilder(), np.random.default_rng(4)
    x = b.input("x", (2, 4, 8), from_numpy(np.uint8))
    w = b.weight("w", weights(rng, np.int8, (6, 8)))
    scale = b.weight("t", rng.uniform(0.1, 1, (6, 8)[dim]).astype(np.float32))
    scale = b.reshape(scale, shape=[(6, 1), (1, 8)][dim])
    left = b.mul(b.cast(whole(b, x, 5), to=f32), b.expand(b.constant(np.float32(0.5)), (2, 4, 8)))
    right = b.transpose(
        b.mul(b.cast(whole(b, w, None), to=f32), b.expand(scale, (6, 8))), perm=[1, 0]
    )
    b.output("y", b.matmul(left, b.expand(right, (2, 8, 6))))
    program = b.build()
    made = rewritten(program)
    product = next(op for op in made.main.body.block.ops if op.name == "graph.matmul")
    assert f"x{element}>" in str(product.results[0].type)
    assert compare(program, made, seed=1).is_equal


def test_a_wrong_zero_point_is_noticed() -> None:
    """The comparison is of every integer: one step of a zero point is a difference."""
    right = matmul(np.uint8, np.int8, (7, None))
    wrong = matmul(np.uint8, np.int8, (8, None))
    assert not compare(right, rewritten(wrong), seed=1).is_equal


def test_sums_past_32_bits_stay_floats() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 1 << 16), from_numpy(np.uint8))
    w = b.weight("w", np.full((1 << 16, 2), 127, np.int8))
    one = b.constant(np.float32(1))
    left = b.mul(b.cast(whole(b, x, None), to=f32), b.expand(one, (1, 1 << 16)))
    right = b.mul(b.cast(whole(b, w, None), to=f32), b.expand(one, (1 << 16, 2)))
    b.output("y", b.matmul(left, right))
    made = rewritten(b.build())
    product = next(op for op in made.main.body.block.ops if op.name == "graph.matmul")
    assert "f32" in str(product.results[0].type)


def test_a_single_tap_of_bytes_over_many_pixels_is_exact() -> None:
    """It is no product with the image on the right, which is unsigned: that gave wrong sums."""
    b, rng = GraphBuilder(), np.random.default_rng(5)
    x = b.input("x", (1, 16, 4, 2100), from_numpy(np.uint8))
    kernel = weights(rng, np.int8, (1, 16, 1, 1))
    window: dict[str, Any] = {"strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1]}
    b.output("y", b.conv(whole(b, x, None), whole(b, b.weight("w", kernel), None), **window))
    given = rng.integers(0, 256, (1, 16, 4, 2100), np.uint8)
    found = api.compile(b.build(), threads=1, effort="quick")(x=given)["y"]
    want = np.einsum("nchw,fc->nfhw", given.astype(np.int64), kernel[:, :, 0, 0].astype(np.int64))
    assert np.array_equal(found, want)
