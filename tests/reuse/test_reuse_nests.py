"""Nests come from kernels; pairs and bridges are as many as the paper's and our recount's."""

from __future__ import annotations

import numpy as np
import pytest

from isoform.compiler.pipelines import LOWER_TO_KERNEL
from isoform.compiler.targets.levels import run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.passes.reuse import OperatorNest, bridges, can_reuse, nests_of, reuse_pairs
from isoform.testing import operator_sets
from isoform.testing.operator_sets import conv2d, zoo_nests


def counts(nests: list[OperatorNest]) -> tuple[int, int, int, int, int]:
    """Nests, pairs, bridges of one hop, of all hops, pairs with those of one hop."""
    one, every = bridges(nests), bridges(nests, hops=None)
    pairs = len(reuse_pairs(nests)), len(reuse_pairs([*nests, *one]))
    return len(nests), pairs[0], len(one), len(every), pairs[1]


def test_resnet50_has_the_papers_44_bridges_and_five_more() -> None:
    assert counts(operator_sets.resnet50()) == (20, 24, 44, 49, 1240)


def test_resnet50_at_two_batch_sizes() -> None:
    nests = operator_sets.resnet50() + operator_sets.resnet50(16)
    assert counts(nests) == (40, 112, 88, 98, 3848)


def test_mobilenet_v2_has_the_papers_81_and_121_bridges() -> None:
    nests = operator_sets.mobilenet_v2()
    found = [[n for n in bridges(nests, hops) if n.kind == "conv2d"] for hops in (1, None)]
    assert counts(nests)[:4] == (30, 44, 81, 121)
    assert [len(part) for part in found] == [70, 110]


def test_bert_base_goes_from_4_pairs_to_24() -> None:
    assert counts(operator_sets.bert()) == (5, 4, 3, 4, 24)


def test_berts_of_two_sizes_batches_and_lengths() -> None:
    assert counts(operator_sets.berts()) == (36, 328, 17, 18, 988)


def test_the_zoos_resnet50_strides_its_3x3_and_counts_otherwise() -> None:
    nests = [nest for nest in zoo_nests("resnet50") if nest.kind == "conv2d"]
    assert counts(nests)[:4] == (23, 26, 51, 56)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dcgan", "transposed-conv2d [1, 512, 4, 4 | 100, 4, 4]"),
        ("resnet3d18", "conv3d [1, 64, 16, 56, 56 | 3, 3, 7, 7]"),
        ("resnext50", "grouped-conv2d [1, 32, 4, 56, 56 | 4, 3, 3]"),
        ("mobilenet-v2", "depthwise-conv2d [1, 32, 112, 112 | 3, 3]"),
    ],
)
def test_zoo_models_give_nests_of_each_kind(name: str, text: str) -> None:
    assert text in [nest.text for nest in zoo_nests(name)]


def test_equal_layers_are_one_nest_and_counted() -> None:
    b = GraphBuilder()
    x = b.input("x", (1, 8, 6, 6))
    for k in range(3):
        w = b.weight(f"w{k}", np.full((8, 8, 3, 3), k + 1, np.float32))
        x = b.relu(b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1]))
    b.output("y", x)
    program = b.build()
    for name in LOWER_TO_KERNEL:
        run_passes(program, name)
    assert nests_of(program) == {conv2d((1, 8, 6, 6), 8, 3): 3}


def test_what_differs_in_stride_alone_may_reuse_both_ways() -> None:
    a, b = conv2d((1, 8, 6, 6), 8, 3), conv2d((1, 8, 6, 6), 8, 3, stride=2)
    assert can_reuse(a, b)
    assert can_reuse(b, a)
    assert not can_reuse(a, a)


def test_kinds_and_sketches_are_kept_apart() -> None:
    wide, deep = conv2d((1, 1000, 1, 1), 960, 1), conv2d((1, 1000, 1, 1), 1280, 1)
    assert deep.sketches == ("multi-level-tile", "cross-thread-reduction")
    assert not can_reuse(wide, deep)
    assert not can_reuse(wide, OperatorNest("conv1d", wide.sketches, wide.space, wide.reduction))


def test_a_family_that_differs_in_one_extent_is_a_chain_without_bridges() -> None:
    family = [
        OperatorNest("matmul", ("multi-level-tile",), (1, n, 768), (768,)) for n in (32, 64, 128)
    ]
    assert len(reuse_pairs(family)) == 6
    assert bridges(family, hops=None) == []
