"""What generated rules alone find on the papers' models, made small: found, cheaper, and equal."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from isoform.compiler import api, zoo
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.peers.timing import difference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.graph.contraction import ConvOp, MatmulOp
from isoform.dialects.graph.pooling import AvgPoolOp
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.equivalence import compare
from isoform.passes.search_result import Limits
from isoform.passes.substitution.search import SubstitutionSettings, search

BERT: dict[str, Any] = {"sequence": 16, "layers": 1, "hidden": 64, "heads": 4}
NASNET: dict[str, Any] = {"image": 32, "channels": 16, "cells": 1}


def found(
    name: str, target: str, programs: int, layouts: bool = True, **sizes: Any
) -> tuple[Program, Program, Counter[str]]:
    """A model, the best that the default rules lead to, and the rules used; checked."""
    program = api.improve(zoo.build(name, **sizes))
    costs = Costs(target_named(target))
    settings = SubstitutionSettings((), 1.05, programs, layouts=layouts)
    result = search(program, costs, Limits(120.0), settings=settings)
    assert result.stop_reason != "time"
    assert all(applied.proof != "checked" for applied in result.applied)
    assert compare(program, result.program).is_equal
    if result.applied:
        assert costs.program(result.program).seconds < costs.program(program).seconds
    return program, result.program, Counter(applied.rule for applied in result.applied)


def count(program: Program, op: type) -> int:
    return sum(isinstance(o, op) for o in program.main.body.block.ops)


@pytest.mark.parametrize("name", ["tensat-bert", "bert-base"])
def test_three_products_of_one_operand_become_one(name: str) -> None:
    sizes: dict[str, Any] = {**BERT, "vocabulary": 64} if name == "bert-base" else BERT
    before, after, used = found(name, "h100", 40, **sizes)
    assert used["matmul-and-matmul-to-split-matmul-concat"] >= 2
    assert count(after, MatmulOp) <= count(before, MatmulOp) - 2


def test_without_layouts_no_product_of_bert_is_merged() -> None:
    """Its weights stand the other way round: the gain comes of both searched jointly."""
    _, _, used = found("tensat-bert", "h100", 40, layouts=False, **BERT)
    assert not used


CELL = ("avg-pool-to-conv-pool-kernel", "add-conv-conv-to-conv-add")


def test_two_pools_and_a_sum_become_one_depthwise_convolution() -> None:
    """And two convolutions of two images and a sum one, of both: NasNet-A has all of this."""
    build = GraphBuilder()
    x, y = (build.input(name, (1, 128, 28, 28)) for name in "xy")
    draw = np.random.default_rng(0).random
    v, w = (build.weight(name, draw((128, 128, 1, 1), np.float32)) for name in "vw")
    window = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    pools = [build.avg_pool(x, kernel=[3, 3], count_include_pad=True, **window) for _ in range(2)]
    build.output("pooled", build.relu(build.add(*pools)))
    window["pads"] = [0, 0, 0, 0]
    build.output(
        "mixed", build.relu(build.add(build.conv(x, v, **window), build.conv(y, w, **window)))
    )
    program = build.build()
    result = search(program, Costs(target_named("h100")), Limits(60.0))
    used = {applied.rule for applied in result.applied}
    assert {*CELL, "add-conv-conv-to-conv-concat-concat"} <= used
    assert count(result.program, AvgPoolOp) == 0 and count(result.program, ConvOp) == 2
    assert compare(program, result.program).is_equal  # under a relu: 1/9 is exact


@pytest.mark.slow
def test_pools_and_convolutions_of_nasnet_are_merged() -> None:
    before, after, used = found("nasnet-a", "h100", 60, **NASNET)
    assert all(used[rule] for rule in CELL)
    assert count(after, AvgPoolOp) < count(before, AvgPoolOp)
    assert count(after, ConvOp) < count(before, ConvOp)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("target", "groups"), [("cpu", 16), ("h100", 32)])
def test_groups_are_merged_where_the_target_says_so(target: str, groups: int, bias: bool) -> None:
    """ResNeXt's first 3x3: a cpu has no good kernels for four channels a group; of eight it has."""
    build = GraphBuilder()
    x = build.input("x", (1, 128, 56, 56))
    draw = np.random.default_rng(0).random
    w = build.weight("w", draw((128, 4, 3, 3), np.float32))
    window = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    more = [build.weight("b", draw((128,), np.float32))] if bias else []
    build.output("y", build.relu(build.conv(x, w, *more, groups=32, **window)))
    program = build.build()
    costs = Costs(target_named(target))
    result = search(program, costs, Limits(60.0), settings=SubstitutionSettings((), 1.05, 60))
    (conv,) = [op for op in result.program.main.body.block.ops if isinstance(op, ConvOp)]
    assert conv.value("groups") == groups
    assert compare(program, result.program).is_equal


def test_convolutions_of_one_image_with_biases_become_one() -> None:
    """As in Inception-v3, where batch norms have become biases."""
    build = GraphBuilder()
    x = build.input("x", (1, 64, 35, 35))
    draw = np.random.default_rng(0).random
    window = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
    for k in range(2):
        w = build.weight(f"w{k}", draw((64, 64, 1, 1), np.float32))
        b = build.weight(f"b{k}", draw((64,), np.float32))
        build.output(f"y{k}", build.relu(build.conv(x, w, b, **window)))
    program = build.build()
    costs = Costs(target_named("h100"))
    result = search(program, costs, Limits(60.0), settings=SubstitutionSettings((), 1.05, 60))
    assert count(result.program, ConvOp) == 1
    assert compare(program, result.program).is_equal


@pytest.mark.parametrize(
    ("name", "sizes"), [("tensat-bert", BERT), ("nasrnn", {"steps": 1, "width": 32})]
)
def test_what_is_found_runs_as_onnx(name: str, sizes: dict[str, Any], tmp_path: Path) -> None:
    before, after, used = found(name, "h100", 40, **sizes)
    assert used
    feeds, outputs = draw_inputs(before, 0), list[Any]()
    for k, program in enumerate((before, after)):
        api.save(program, tmp_path / f"{k}.onnx")
        onnx.checker.check_model(str(tmp_path / f"{k}.onnx"), full_check=True)
        session = onnxruntime.InferenceSession(tmp_path / f"{k}.onnx")
        outputs.append(session.run(before.output_names, feeds))
    assert difference(outputs[1], outputs[0]) < 1e-5
