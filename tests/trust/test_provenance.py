"""Constants made at compile time keep what they were made from, in IR text and in ONNX."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.small_network import network

from isoform.compiler import api
from isoform.compiler.targets.levels import lower_to, run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program, add_pipeline, expression_of, pipeline_of
from isoform.passes.equivalence import compare

FOLD = "fold-batch-norm,fold-constants,dce"


def folded(program: Program, passes: str = FOLD) -> Program:
    result = program.clone()
    run_passes(result, passes)
    return result


def expressions(program: Program) -> list[str]:
    found = [expression_of(op) for op in program.main.body.block.ops]
    return [text for text in found if text is not None]


@pytest.mark.parametrize("level", ["graph", "algebra", "kernel"])
@pytest.mark.parametrize("name", ["r.mlir", "r.onnx"])
def test_expressions_survive_files_and_levels(tmp_path: Path, name: str, level: str) -> None:
    if name == "r.onnx" and level != "graph":
        pytest.skip("an .onnx holds the graph level only")
    source, path = network(), tmp_path / name
    result = lower_to(folded(source), level)
    api.save(result, path)
    again = api.load(path)
    assert sorted(expressions(again)) == sorted(expressions(result))
    assert len(expressions(again)) == 3
    assert compare(source, again).kind == "equal-up-to-folding"


def test_the_expression_is_over_the_weights_of_the_program_as_it_came() -> None:
    b = GraphBuilder()
    x = b.input("x", (2, 20))
    w = b.weight("w", np.linspace(0.1, 1.0, 40, dtype=np.float32).reshape(2, 20))
    b.output("y", b.exp(b.add(x, b.sqrt(w))))
    source = b.build()
    once = folded(source, "fold-constants")
    ops = list(once.main.body.block.ops)
    from xdsl.rewriter import InsertPoint, Rewriter

    from isoform.dialects.graph.elementwise import NegOp
    from isoform.passes.equivalence.weight_identities import WeightIdentities

    weight = next(op for op in ops if op.name == "graph.weight")
    negated = NegOp(weight.results[0])
    Rewriter.insert_op(negated, InsertPoint.after(weight))
    weight.results[0].replace_uses_with_if(
        negated.results[0], lambda use: use.operation is not negated
    )
    twice = folded(once, "fold-constants,dce")
    (text,) = expressions(twice)
    assert "folded." not in text
    assert "@w" in text
    assert text.index("graph.sqrt") < text.index("graph.neg")
    checked = WeightIdentities(source, twice)
    assert checked.wrong == {}


def test_a_literal_made_of_literals_keeps_its_expression(tmp_path: Path) -> None:
    b = GraphBuilder()
    x = b.input("x", (3,))
    b.output("y", b.mul(x, b.sqrt(b.constant(np.array([2.0, 3.0, 5.0], np.float32)))))
    source = b.build()
    result = folded(source, "fold-constants,dce")
    assert len(expressions(result)) == 1
    for name in ("r.mlir", "r.onnx"):
        api.save(result, tmp_path / name)
        again = api.load(tmp_path / name)
        verdict = compare(source, again)
        assert verdict.kind == "equal-up-to-folding"
        assert verdict.largest_ulps == 0.0  # recomputed as it was computed


def test_a_small_folded_weight_is_not_computed_with_on_import(tmp_path: Path) -> None:
    """The importer evaluates what it knows; then the expression would be lost."""
    b = GraphBuilder()
    x = b.input("x", (2, 3))
    w = b.weight("w", np.array([2.0, 3.0, 5.0], np.float32))
    b.output("y", b.add(x, b.expand(b.reshape(b.sqrt(w), shape=[1, 3]), (2, 3))))
    source = b.build()
    result = folded(source, "fold-constants,dce")
    api.save(result, tmp_path / "r.onnx")
    again = api.load(tmp_path / "r.onnx")
    assert len(expressions(again)) == 1
    assert compare(source, again).kind == "equal-up-to-folding"


def test_a_constant_that_is_not_what_it_says_is_no_equality(tmp_path: Path) -> None:
    source = network()
    path = tmp_path / "r.onnx"
    api.save(folded(source), path)
    model = onnx.load(path)
    largest = max(model.graph.initializer, key=lambda t: len(t.raw_data))
    array = onnx.numpy_helper.to_array(largest).copy()
    array.flat[7] *= np.float32(1.00001)
    largest.CopyFrom(onnx.numpy_helper.from_array(array, largest.name))
    onnx.save(model, path)
    tampered = api.load(path)
    verdict = compare(source, tampered)
    assert not verdict.is_equal
    assert largest.name in verdict.reason or verdict.kind == "different"
    assert not compare(folded(source), tampered).is_equal
    assert not compare(tampered, folded(source)).is_equal


def test_unreadable_metadata_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "r.onnx"
    api.save(network(), path)
    model = onnx.load(path)
    model.metadata_props.add(key="isoform.expressions", value="[" * 100000)
    onnx.save(model, path)
    assert expressions(api.load(path)) == []


def test_the_pipeline_stays_with_the_program(tmp_path: Path) -> None:
    program = network()
    add_pipeline(program.module, "cse")
    add_pipeline(program.module, "")
    add_pipeline(program.module, "dce")
    for name in ("p.mlir", "p.onnx"):
        api.save(program, tmp_path / name)
        assert pipeline_of(api.load(tmp_path / name).module) == "cse,dce"
    assert pipeline_of(network().module) == ""
