"""Attention as one kernel: every form it is exported in, ragged shapes, NaN, infinities, masks."""

import random

import numpy as np
import pytest
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DictionaryAttr, IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from isoform.compiler import zoo
from isoform.compiler.api import parse
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.targets.levels import lower_to, place, run_passes
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import AttentionOp
from isoform.dialects.program import Program
from isoform.lowering.algebra_to_kernel.attention import match_attention, match_softmax
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.passes.equivalence import compare

ROWS = (8, 9, 15, 16, 17, 31, 33, 48, 49, 65)
KEYS = (2, 3, 7, 13, 14, 15, 16, 28, 29, 41, 130)
SIZES = (2, 3, 5, 8, 16, 17, 24, 33, 64)


def scalar(b: GraphBuilder, value: float, shape) -> SSAValue:
    return b.expand(b.constant(np.float32(value)), list(shape))


def softmax_by_hand(b: GraphBuilder, x: SSAValue, shape) -> SSAValue:
    """As exporters without a softmax write it: the exponentials are not computed once."""
    top = b.expand(b.reduce_max(x, axes=[3], keep_dims=True), shape)
    total = b.reduce_sum(b.exp(b.sub(x, top)), axes=[3], keep_dims=True)
    return b.div(b.exp(b.sub(x, top)), b.expand(total, shape))


def safe_softmax(b: GraphBuilder, x: SSAValue, shape) -> SSAValue:
    """As torch exports SDPA: 0 where everything is masked."""
    least = scalar(b, -np.inf, shape)
    seen = b.reduce_max(
        b.where(b.equal(x, least), scalar(b, 0, shape), scalar(b, 1, shape)),
        axes=[3],
        keep_dims=True,
    )
    none = b.equal(b.expand(seen, shape), scalar(b, 0, shape))
    return b.where(none, scalar(b, 0, shape), b.softmax(x, axis=3))


def attention(b: GraphBuilder, r: random.Random, name: str, sizes=None) -> SSAValue:
    """Scores, scale, mask, softmax, context in one of their forms."""
    batch, heads = r.choice((1, 1, 2)), r.choice((1, 2, 3))
    q, k, d, e = sizes or (r.choice(ROWS), r.choice(KEYS), r.choice(SIZES), r.choice(SIZES))
    shape = [batch, heads, q, k]

    def operand(which: str, rows: int, columns: int, *, shared: bool = False) -> SSAValue:
        if shared:  # one K or V for all heads
            x = b.input(name + which, (batch, 1, rows, columns))
            return b.expand(x, [batch, heads, rows, columns])
        if r.random() < 0.5:  # heads beside each other in a row, as a projection leaves them
            x = b.input(name + which, (batch, rows, heads * columns))
            split = b.reshape(x, shape=[batch, rows, heads, columns])
            return b.transpose(split, perm=[0, 2, 1, 3])
        return b.input(name + which, (batch, heads, rows, columns))

    left, shared = operand("q", q, d), r.random() < 0.2
    if r.random() < 0.3:
        left = b.mul(left, scalar(b, d**-0.5, [batch, heads, q, d]))
    right = b.transpose(operand("k", k, d, shared=shared), perm=[0, 1, 3, 2])
    x = b.matmul(left, right)
    x = r.choice((b.mul, b.div))(x, scalar(b, r.choice((0.5, 3.0)), shape))
    mask = r.choice(("none", "keys", "pairs", "where"))
    if mask == "keys":
        x = b.add(x, b.broadcast(b.input(f"{name}m", (batch, k)), shape=shape, dims=[0, 3]))
    elif mask == "pairs":
        x = b.add(x, b.broadcast(b.input(f"{name}m", (q, k)), shape=shape, dims=[2, 3]))
    elif mask == "where":
        keep = b.broadcast(b.input(f"{name}m", (batch, k)), shape=shape, dims=[0, 3])
        keep = b.less(keep, scalar(b, 0.7, shape))
        x = b.where(keep, x, scalar(b, -1e4, shape))
    rows = r.choice(("softmax", "softmax", "hand", "safe", "none"))
    if rows == "softmax":
        x = b.softmax(x, axis=3)
    elif rows != "none":
        x = (softmax_by_hand if rows == "hand" else safe_softmax)(b, x, shape)
    y = b.matmul(x, operand("v", k, e, shared=shared))
    if r.random() < 0.3:
        y = b.relu(y)
    return y if r.random() < 0.4 else joined(b, y, [batch, q, heads * e])


def joined(b: GraphBuilder, y: SSAValue, shape) -> SSAValue:
    return b.reshape(b.transpose(y, perm=[0, 2, 1, 3]), shape=shape)


def kernels(program: Program) -> list[AttentionOp]:
    return [op for op in program.main.body.block.ops if isinstance(op, AttentionOp)]


def lowered(program: Program) -> Program:
    """At the kernel level, attention fused."""
    fused = lower_to(program, "kernel")
    run_passes(fused, "fuse-attention")
    return fused


def schedule(program: Program, **values: int) -> None:
    for op in kernels(program):
        numbers = {name: IntegerAttr(n, i64) for name, n in values.items()}
        op.properties["schedule"] = DictionaryAttr(numbers)


def run(program: Program, inputs, isa: Isa, threads: int = 1):
    session = CpuSession(program, threads, isa)
    found = session.run(inputs)
    session.close()
    return found


def check(seed: int, count: int, isa: Isa, **values: int) -> None:
    r, b = random.Random(seed), GraphBuilder()
    for n in range(count):
        b.output(f"y{n}", attention(b, r, f"v{n}_"))
    program = b.build()
    inputs = draw_inputs(program, seed)
    placed = place(program)
    assert len(kernels(placed)) == count
    schedule(placed, **values)
    expected = reference.run(program, inputs)
    for name, found in run(placed, inputs, isa, 1 + seed % 2).items():
        wanted = expected[name]
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * scale, err_msg=name)


def test_every_form_on_ragged_shapes(isa) -> None:
    check(1, 8, isa)


def test_blocks_of_keys_and_other_widths_give_the_same(isa) -> None:
    check(2, 4, isa, keys=5, vectors=1)
    check(3, 4, isa, keys=16, vectors=2)


@pytest.mark.slow
@pytest.mark.parametrize("isa", [isa.name for isa in runnable()])
def test_three_hundred_ragged_shapes(isa) -> None:
    for seed in range(10, 25):
        values = {"keys": 1 + seed % 9 * 4} if seed % 2 else {}
        check(seed, 20, Isa.named(isa), **values, vectors=1 + seed % 3)


# --- NaN, infinities, masks ----------------------------------------------------------------------


def masked(sizes=(20, 19, 8, 16)) -> Program:
    q, k, d, e = sizes
    b = GraphBuilder()
    s = b.matmul(b.input("q", (q, d)), b.transpose(b.input("k", (k, d)), perm=[1, 0]))
    p = b.softmax(b.add(s, b.input("m", (q, k))), axis=1)
    b.output("y", b.matmul(p, b.input("v", (k, e))))
    return b.build()


@pytest.mark.parametrize("keys", (19, 6, 1))
@pytest.mark.parametrize("place_of_nan", ("m", "q", "k", "v"))
def test_nan_and_infinity_are_where_the_unfused_program_has_them(keys, place_of_nan, isa) -> None:
    program = masked()
    inputs = {name: x.copy() for name, x in draw_inputs(program, 4).items()}
    mask = inputs["m"]
    mask[3] = -np.inf  # no key at all: NaN
    mask[4, :7] = -np.inf  # none in the first blocks
    mask[5, 1:] = -np.inf
    mask[6, 8], mask[7, 2] = np.inf, -np.inf
    inputs[place_of_nan][9, 5], inputs[place_of_nan][11, 3] = np.nan, np.inf
    inputs["v"][18, 1] = -np.inf
    placed = place(program)
    schedule(placed, keys=keys)
    with np.errstate(all="ignore"):
        wanted = reference.run(program, inputs)["y"]
    assert np.isnan(wanted[3]).all()
    assert np.isfinite(wanted[4, 2]) == (place_of_nan != "k")  # a NaN key is one of every row
    found = run(placed, inputs, isa)["y"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_scores_of_any_size_do_not_overflow(isa) -> None:
    """Blocks of keys whose scores lie hundreds apart, rising and falling."""
    program = masked()
    inputs = draw_inputs(program, 5)
    inputs["m"] = (inputs["m"] * 300).astype(np.float32)
    inputs["m"][0], inputs["m"][1] = np.linspace(-900, 900, 19), np.linspace(900, -900, 19)
    placed = place(program)
    wanted = reference.run(program, inputs)["y"]
    for keys in (19, 4):
        schedule(placed, keys=keys)
        found = run(placed, inputs, isa)["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


# --- what is fused --------------------------------------------------------------------------------


def test_more_keys_than_a_block_has_room_for_are_fused_only_with_a_softmax() -> None:
    def count(*, softmax: bool) -> int:
        b = GraphBuilder()
        s = b.matmul(b.input("q", (8, 4)), b.input("k", (4, 5000)))
        b.output("y", b.matmul(b.softmax(s, axis=1) if softmax else s, b.input("v", (5000, 4))))
        return len(kernels(lowered(b.build())))

    assert (count(softmax=True), count(softmax=False)) == (1, 0)


def test_the_softmax_is_recognised_only_where_it_is_one() -> None:
    def softmax(body) -> bool:
        b = GraphBuilder()
        s = b.matmul(b.input("q", (16, 4)), b.input("k", (4, 24)))
        b.output("y", b.matmul(body(b, s), b.input("v", (24, 4))))
        (op,) = kernels(lowered(b.build()))
        found = match_attention(op.scopes)
        assert found is not None
        return match_softmax(found) is not None

    shape = [16, 24]

    def with_total_of(kind):
        def body(b: GraphBuilder, s: SSAValue) -> SSAValue:
            e = b.exp(b.sub(s, b.expand(b.reduce_max(s, axes=[1], keep_dims=True), shape)))
            return b.div(e, b.expand(kind(b)(e, axes=[1], keep_dims=True), shape))

        return body

    assert softmax(with_total_of(lambda b: b.reduce_sum))
    assert not softmax(with_total_of(lambda b: b.reduce_max))
    assert not softmax(lambda b, s: b.mul(b.softmax(s, axis=1), s))


def test_a_program_prints_and_parses() -> None:
    fused = lowered(masked())
    assert len(kernels(fused)) == 1
    assert str(parse(str(fused.module)).module) == str(fused.module)


# --- proofs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layers", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_bert_base_with_its_attention_fused_is_proved_equal(layers: int) -> None:
    program = zoo.build("bert-base", layers=layers)
    fused = lowered(program)
    assert len(kernels(fused)) == layers
    assert compare(program, fused, budget=600.0).kind == "equal"


def test_a_wrong_mask_inside_the_kernel_is_found() -> None:
    """A bug as a fusion might make it: the mask is read transposed."""
    program = masked((16, 16, 8, 8))
    fused = lowered(program)
    (op,) = kernels(fused)
    assert compare(program, fused).kind == "equal"
    (mask,) = (
        arg
        for arg, value in zip(op.body.block.args, op.inputs, strict=True)
        if value is fused.main.body.block.args[2]
    )
    (scope,) = (s for s in op.scopes if mask in s.inputs)
    maps = list(scope.maps.data)
    at = list(scope.inputs).index(mask)
    maps[at] = AffineMapAttr(AffineMap(2, 0, tuple(reversed(maps[at].data.results))))
    scope.properties["maps"] = ArrayAttr(maps)
    assert compare(program, fused).kind == "different"
