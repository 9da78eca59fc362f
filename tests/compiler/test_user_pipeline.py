"""`isoform optimize --pipeline PASSES`: a user's passes run before the searches, checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import isoform
from isoform.compiler.cli import main
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.verdict import Verdict

PROGRAM = """
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m = graph.mul %a, %b : tensor<8x8xf32>
  %s = graph.add %m, %a : tensor<8x8xf32>
  func.return %s : tensor<8x8xf32>
}
"""
PLUGIN = '''
from dataclasses import dataclass
from xdsl.passes import ModulePass
from isoform.dialects.graph import OPS
from xdsl.rewriter import Rewriter

NAMED = {op.name: op for op in OPS}

def replaced(module, name, new, order):
    for op in list(module.walk()):
        if op.name == name:
            operands = [op.operands[k] for k in order]
            made = NAMED[new].create(operands=operands, result_types=[op.results[0].type])
            Rewriter.replace_op(op, made)

@dataclass(frozen=True)
class TurnRound(ModulePass):
    """The operands of a product, the other way round."""
    name = "turn-round"
    def apply(self, ctx, op):
        replaced(op, "graph.mul", "graph.mul", (1, 0))

@dataclass(frozen=True)
class Wrong(ModulePass):
    """A difference in place of a sum."""
    name = "wrong"
    def apply(self, ctx, op):
        replaced(op, "graph.add", "graph.sub", (0, 1))

PASSES = [TurnRound, Wrong]
'''


def optimize(tmp_path: Path, pipeline: str, *more: str) -> int:
    """Run the command with a plug-in of two passes; its report is at report.json."""
    (tmp_path / "net.mlir").write_text(PROGRAM)
    (tmp_path / "own.py").write_text(PLUGIN)
    own = ["--plugin", str(tmp_path / "own.py"), "--pipeline", pipeline, *more]
    report = ["--report", str(tmp_path / "report.json"), "-o", str(tmp_path / "out.mlir")]
    target = ["--target", "h100", "--emit", "graph"]
    return main(["optimize", str(tmp_path / "net.mlir"), *target, *own, *report])


def test_a_users_pass_runs_first_and_is_reported(tmp_path: Path) -> None:
    assert optimize(tmp_path, "turn-round") == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passes"][0]["name"] == "turn-round"
    text = (tmp_path / "out.mlir").read_text()
    assert 'isoform.pipeline = "turn-round' in text and "graph.mul %b, %a" in text


def test_lowering_by_hand_is_searched_below_the_graph(tmp_path: Path) -> None:
    program = isoform.load(_written(tmp_path))
    found = isoform.optimize(program, "h100", pipeline="graph-to-algebra", level="algebra")
    assert compare(program, found).is_equal
    rejected = {entry["reason"] for entry in found.report["rejected"]}
    assert "the program is at the algebra level already" in rejected


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("wrong", "--pipeline 'wrong' makes a program that computes something else"),
        ("turn-around", "unknown pass 'turn-around'"),
        ("turn-round{by=2}", "by"),
    ],
)
def test_a_wrong_pass_is_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pipeline: str, message: str
) -> None:
    assert optimize(tmp_path, pipeline, "--allow-unproved") == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out.mlir").exists()


def test_what_is_undecided_needs_a_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from isoform.compiler.search import user_passes

    def undecided(*programs: isoform.Program, budget: float) -> Verdict:
        found = compare(*programs, budget=budget)
        return replace(found, kind="unknown", reason="the time was spent")

    monkeypatch.setattr(user_passes, "compare", undecided)
    assert optimize(tmp_path, "turn-round") == 1
    assert "--allow-unproved takes it" in capsys.readouterr().err
    assert optimize(tmp_path, "turn-round", "--allow-unproved") == 0


def _written(tmp_path: Path) -> Path:
    path = tmp_path / "net.mlir"
    path.write_text(PROGRAM)
    return path
