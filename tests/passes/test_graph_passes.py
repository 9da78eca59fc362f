"""Graph passes keep what programs mean: reference before == reference after, on random graphs."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import SSAValue

from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.search.optimizer import GRAPH_REWRITES
from isoform.compiler.targets.levels import run_passes
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.types import shape_of
from isoform.passes.fold_batch_norm import FoldBatchNorm
from isoform.passes.fold_constants import FoldConstants

Rng = np.random.Generator


def transpose(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    return b.transpose(x, perm=[int(k) for k in rng.permutation(len(shape_of(x)))])


def reshape(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    shape = list(shape_of(x))
    k = int(rng.integers(0, len(shape) - 1)) if len(shape) > 1 else 0
    merged = [*shape[:k], int(np.prod(shape[k : k + 2])), *shape[k + 2 :]]
    return b.reshape(x, shape=merged if rng.random() < 0.5 else [*shape[:k], 1, *shape[k:]])


def broadcast(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    shape = shape_of(x)
    lead = [] if len(shape) > 4 else [int(rng.integers(1, 3))]
    wider = [2 if n == 1 and rng.random() < 0.3 else n for n in shape]
    return b.broadcast(x, shape=lead + wider, dims=[len(lead) + k for k in range(len(shape))])


def slice_(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    shape = shape_of(x)
    starts, sizes, steps = [], [], []
    for n in shape:
        if rng.random() < 0.4:
            part = (0, n, 1)
        elif rng.random() < 0.5:
            part = (n - 1, -(-n // 2), -2)
        else:
            part = (int(rng.integers(0, n)), 1, 1)
        for values, value in zip((starts, sizes, steps), part, strict=True):
            values.append(value)
    return b.slice(x, starts=starts, sizes=sizes, steps=steps)


def pad(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    rank = len(shape_of(x))
    pads = [int(n) for n in rng.integers(0, 2, 2 * rank)] if rng.random() < 0.5 else [0] * 2 * rank
    return b.pad(x, pads=pads, fill=float(rng.integers(0, 2)))


def split_and_join(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    shape = shape_of(x)
    axis = int(rng.integers(0, len(shape)))
    first = int(rng.integers(0, shape[axis] + 1))
    parts = b.split(x, axis, [first, shape[axis] - first])
    return b.concat(*(parts if rng.random() < 0.5 else parts[::-1]), axis=axis)


def clip(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    low, high = sorted(rng.normal(size=2))
    return b.clip(x, min=float(low), max=float(high)) if rng.random() < 0.8 else b.clip(x)


def literal(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    value = b.constant(np.full(shape_of(x), rng.integers(0, 2), np.float32))
    return [b.add, b.mul, b.sub][rng.integers(0, 3)](x, value)


def weight(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    name = f"w{len(b.weights)}"
    value = b.weight(name, rng.normal(size=shape_of(x)).astype(np.float32))
    return b.add(x, b.neg(b.mul(value, value)))


def convolution(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    """conv or conv_transpose and batch norm, on x reshaped to four dims."""
    count = int(np.prod(shape_of(x)))
    y = b.reshape(x, shape=[1, 2 if count % 2 == 0 else 1, count // (2 - count % 2), 1])
    if rng.random() < 0.3:
        y = b.pad(y, pads=[0, 0, 1, 1, 0, 0, 1, 0])
    c, k = shape_of(y)[1], len(b.weights)
    transposed, groups = rng.random() < 0.5, int(rng.choice([1, c]))
    f = 2 * groups
    shape = [c, f // groups, 2, 1] if transposed else [f, c // groups, 1, 1]
    w = b.weight(f"w{k}", rng.normal(size=shape).astype(np.float32))
    operands = [y, w]
    if rng.random() < 0.5:
        operands.append(b.weight(f"b{k}", rng.normal(size=f).astype(np.float32)))
    common = {"strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "groups": groups}
    if transposed:
        z = b.conv_transpose(*operands, output_padding=[0, 0], **common)
    else:
        z = b.conv(*operands, **common)
    return batch_norm(b, z, rng, k)


def product(b: GraphBuilder, x: SSAValue, rng: Rng) -> SSAValue:
    """matmul by a weight, either way round, and batch norm."""
    count = int(np.prod(shape_of(x)))
    y, k = b.reshape(x, shape=[1, count]), len(b.weights)
    swapped = rng.random() < 0.5
    w = b.weight(f"w{k}", rng.normal(size=[3, count] if swapped else [count, 3]).astype(np.float32))
    return batch_norm(b, b.matmul(y, b.transpose(w, perm=[1, 0]) if swapped else w), rng, k)


def batch_norm(b: GraphBuilder, x: SSAValue, rng: Rng, k: int) -> SSAValue:
    c = shape_of(x)[1]
    parts = [b.weight(f"p{k}.{j}", rng.uniform(0.5, 2, c).astype(np.float32)) for j in range(4)]
    return b.batch_norm(x, *parts)


STEPS: tuple[Callable[[GraphBuilder, SSAValue, Rng], SSAValue], ...] = (
    transpose,
    reshape,
    broadcast,
    slice_,
    pad,
    split_and_join,
    clip,
    literal,
    weight,
    convolution,
    product,
    lambda b, x, rng: b.relu(b.relu(x)),
    lambda b, x, rng: b.neg(b.neg(x)),
    lambda b, x, rng: b.abs(b.abs(x)),
    lambda b, x, rng: b.reduce_sum(x, axes=[k for k, n in enumerate(shape_of(x)) if n == 1]),
)


def random_program(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    b = GraphBuilder()
    values = [b.input("x", (2, 3))]
    for _ in range(int(rng.integers(2, 10))):
        x = values[rng.integers(max(0, len(values) - 2), len(values))]
        if np.prod(shape_of(x)) <= 4096:
            values.append(STEPS[rng.integers(0, len(STEPS))](b, x, rng))
    for k, value in enumerate(values[-2:]):
        b.output(f"y{k}", value)
    return b.build()


def assert_same(before: Program, after: Program, tolerance: float) -> None:
    feeds = draw_inputs(before, 1)
    expected, found = reference.run(before, feeds), reference.run(after, feeds)
    assert list(found) == list(expected)
    for name in expected:
        np.testing.assert_allclose(
            found[name],
            expected[name],
            rtol=tolerance,
            atol=tolerance * np.abs(expected[name]).max(initial=1),
        )


@pytest.mark.parametrize(
    ("passes", "tolerance"),
    [
        ("canonicalize", 1e-12),
        ("fold-batch-norm", 1e-6),  # epsilon is a float32 literal
        ("fold-constants", 1e-5),  # weights are rounded once to float32
        ("infer-shapes", 0.0),
        (",".join(GRAPH_REWRITES), 1e-5),
    ],
)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_passes_keep_the_meaning(passes: str, tolerance: float, seed: int) -> None:
    before = random_program(seed)
    after = before.clone()
    run_passes(after, passes)
    assert_same(before, after, tolerance)


@given(seed=st.integers(0, 1 << 30))
@settings(max_examples=40, deadline=None)
def test_rewriting_twice_changes_nothing_more(seed: int) -> None:
    once = random_program(seed)
    run_passes(once, ",".join(GRAPH_REWRITES))
    twice = once.clone()
    run_passes(twice, ",".join(GRAPH_REWRITES))
    assert str(twice.module) == str(once.module)


def test_folding_computes_no_weight_until_it_is_read() -> None:
    b = GraphBuilder()
    drawn: list[str] = []

    def draw() -> np.ndarray:
        drawn.append("w")
        return np.ones((2, 2), np.float32)

    x, w = b.input("x", (2, 2)), b.weight("w", draw, (2, 2), b.input("z", (1,)).type.element_type)
    b.output("y", b.add(x, b.neg(w)))
    program = b.build()
    run_passes(program, (FoldConstants(),))
    assert drawn == []
    (name,) = [name for name in program.weights if name.startswith("folded.")]
    assert (program.weights[name] == -1).all()


def test_folded_weights_keep_their_expression() -> None:
    b = GraphBuilder()
    w = b.weight("w", np.ones((2, 2), np.float32))
    b.output("y", b.add(b.input("x", (2, 2)), b.neg(w)))
    program = b.build()
    run_passes(program, (FoldConstants(),))
    text = str(program.module)
    assert "%0 = graph.weight @w : tensor<2x2xf32>; %1 = graph.neg %0 : tensor<2x2xf32>" in text


def test_fold_batch_norm_says_so_on_the_op() -> None:
    program = random_program(0)
    rng, b = np.random.default_rng(0), GraphBuilder()
    b.output("y", convolution(b, b.input("x", (4, 4)), rng))
    program = b.build()
    run_passes(program, (FoldBatchNorm(),))
    names = [op.name for op in program.main.body.block.ops]
    assert "graph.batch_norm" not in names
    assert 'isoform.rules = ["fold-batch-norm"]' in str(program.module)
