"""Convolutions in any order of their dims: one kernel.conv, the values of the scopes."""

import itertools
import random
import re

import numpy as np
import pytest
from support.conv_orders import GraphConvolution, in_order

import isoform
from isoform.compiler.frontends.program_file import parse
from isoform.compiler.pipelines import LOWER_TO_KERNEL
from isoform.compiler.targets.levels import place, run_passes
from isoform.dialects.kernel import ConvOp
from isoform.dialects.program import Program
from isoform.lowering.kernel_to_cpu.constants import Constants
from isoform.lowering.kernel_to_cpu.isa import Isa
from isoform.lowering.kernel_to_cpu.products.contraction import lower_conv
from isoform.passes.convolution.winograd import WinogradForm, applies

CASES = {
    "plain": GraphConvolution((2, 5, 7, 9), (6, 5, 3, 3), properties={"pads": [1, 1, 1, 1]}),
    "one image and feature": GraphConvolution((1, 4, 7, 6), (1, 4, 3, 2)),
    "one channel": GraphConvolution((1, 1, 7, 6), (8, 1, 3, 3)),
    "a window as high as the image": GraphConvolution((1, 4, 3, 9), (8, 4, 3, 3)),
    "strided, dilated": GraphConvolution(
        (1, 5, 13, 12),
        (7, 5, 3, 2),
        properties={"strides": [2, 1], "dilations": [1, 3], "pads": [1, 0, 2, 1]},
    ),
    "strided, one tap": GraphConvolution(
        (2, 8, 9, 9), (8, 8, 1, 1), properties={"strides": [2, 2]}
    ),
    "depthwise": GraphConvolution(
        (1, 20, 8, 8), (20, 1, 3, 3), properties={"groups": 20, "pads": [1, 1, 1, 1]}
    ),
    "grouped": GraphConvolution(
        (1, 8, 8, 8), (12, 4, 3, 3), properties={"groups": 2, "pads": [1, 1, 1, 1]}
    ),
    "a line": GraphConvolution((2, 4, 20), (6, 4, 5), properties={"pads": [2, 2]}),
    "a volume": GraphConvolution((1, 3, 5, 6, 7), (4, 3, 3, 2, 3), properties={"pads": [1] * 6}),
    "transposed": GraphConvolution(
        (1, 6, 5, 4),
        (6, 5, 4, 3),
        "conv_transpose",
        {"strides": [2, 1], "pads": [1, 1, 1, 1], "output_padding": [0, 0]},
    ),
}
CHANNELS_LAST = "channels last"


def orders(conv: GraphConvolution, seed: int) -> list[tuple[int, ...]]:
    """Orders of data, weights and result."""
    draw = random.Random(seed)
    data, weights = range(len(conv.x)), range(len(conv.w))
    return [tuple(draw.sample(list(dims), len(dims))) for dims in (data, weights, data)]


def check(program: Program, winograd: str = "") -> None:
    """One convolution is all that computes, and the result is that of the scopes in float64."""
    x = np.random.default_rng(3).standard_normal(program.inputs["x"].get_shape())
    inputs = {"x": x.astype(np.float32)}
    (expected,) = isoform.compile(program, target="reference")(**inputs).values()
    lowered = program.clone()
    run_passes(lowered, ",".join(LOWER_TO_KERNEL))
    kinds = [op for op in lowered.main.body.block.ops if isinstance(op, ConvOp)]
    assert len(kinds) == 1 and len(kinds[0].scopes) == 2
    if winograd:
        assert applies(kinds[0], WinogradForm(2))
        run_passes(lowered, winograd)
    (found,) = isoform.compile(lowered, effort="quick", threads=1)(**inputs).values()
    np.testing.assert_allclose(found, expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_dims_is_a_convolution(name: str, seed: int) -> None:
    conv = CASES[name]
    check(in_order(conv, *orders(conv, seed), exchanged=bool(seed % 2)))


@pytest.mark.parametrize("name", CASES)
def test_channels_last_is_a_convolution(name: str) -> None:
    conv = CASES[name]
    rank = len(conv.x)
    last = (0, *range(2, rank), 1)
    for weights in ((*range(2, rank), 1, 0), last):
        check(in_order(conv, last, weights, last))


def test_all_orders_of_a_small_image() -> None:
    """Only the match: each order of data and result is found, with the same parameters."""
    from isoform.dialects.algebra import ScopeOp
    from isoform.lowering.algebra_to_kernel.match import match_conv

    conv = CASES["strided, dilated"]
    for data, out in itertools.product(itertools.permutations(range(4)), repeat=2):
        program = in_order(conv, data, range(4), out)
        scope = next(op for op in program.main.body.block.ops if isinstance(op, ScopeOp))
        found = match_conv(scope)
        assert found is not None, (data, out)
        inside, outside = ([o.index(k) for k in range(4)] for o in (data, out))
        assert (found.images, found.features, found.channels) == (1, 7, 5)
        given = dict(zip(found.data_order[2:], found.strides, strict=True))
        assert [given[d] for d in inside[2:]] == [2, 1]
        assert set(found.out_order[:2]) == set(outside[:2])


@pytest.mark.parametrize("passes", ["winograd{m=2}", "winograd{m=4 tiles=4},fuse-tiles"])
@pytest.mark.parametrize("seed", range(3))
def test_winograd_in_any_order(seed: int, passes: str) -> None:
    conv = GraphConvolution((1, 18, 10, 11), (20, 18, 3, 3), properties={"pads": [1, 1, 1, 1]})
    last = (0, 2, 3, 1)
    given = orders(conv, seed) if seed else [last, (0, 1, 2, 3), last]
    check(in_order(conv, *given), passes)


def test_channels_last_runs_the_kernel_that_channels_first_runs() -> None:
    """So it takes the same time, but for the copies at the ends, which are the simpler ones."""
    conv, first, last = CASES["strided, dilated"], (0, 1, 2, 3), (0, 2, 3, 1)
    texts: list[str] = []
    for order in (first, last):
        placed = place(in_order(conv, order, order, order), target="cpu")
        (op,) = (op for op in placed.main.body.block.ops if isinstance(op, ConvOp))
        (call,) = lower_conv(op, Constants(placed), Isa.host())
        texts.append(call.code.ir)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", CASES)
def test_the_contraction_in_the_text_is_what_is_read_back(name: str) -> None:
    """Text with the attribute and text without it give the same kernel."""
    conv = CASES[name]
    lowered = in_order(conv, *orders(conv, 5), exchanged=True)
    run_passes(lowered, ",".join(LOWER_TO_KERNEL))
    text = str(lowered.module)
    without = re.sub(r"\} contraction <(?:[^<>]|->)*> :", "} :", text)
    assert text != without
    for given in (text, without):
        assert str(parse(given).module) == text
