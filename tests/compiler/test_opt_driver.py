"""`isoform-opt` where mlir-opt's users look: nesting, IR dumps, reproducers, weights, help."""

import re
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import isoform
from isoform.compiler.commands.diagnostics import caret
from isoform.compiler.opt import main

FOO = """\
func.func @foo(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func @bar(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.exp %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
CALLS = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @helper(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @helper(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
NORM = """\
builtin.module attributes {isoform.weights = "w.safetensors"} {
  func.func @main(%x: tensor<2x3xf32>) -> tensor<2x4xf32> {
    %w = graph.weight @w : tensor<4x3xf32>
    %t = graph.transpose %w {perm = [1, 0]} : tensor<3x4xf32>
    %y = graph.matmul %x, %t : tensor<2x4xf32> loc("layer.0")
    func.return %y : tensor<2x4xf32>
  }
}
"""
PLUGIN = """\
from dataclasses import dataclass
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Breaks(ModulePass):
    \"\"\"Fail.\"\"\"
    name = "breaks"
    def apply(self, ctx, op):
        raise ValueError("broken")

PASSES = [Breaks]
"""
CYCLE = """\
from dataclasses import dataclass
from xdsl.dialects.arith import AddiOp, SubiOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker
from xdsl.pattern_rewriter import RewritePattern

class There(RewritePattern):
    def match_and_rewrite(self, op, rewriter):
        if isinstance(op, AddiOp):
            rewriter.replace(op, SubiOp(op.lhs, op.rhs))

class Back(RewritePattern):
    def match_and_rewrite(self, op, rewriter):
        if isinstance(op, SubiOp):
            rewriter.replace(op, AddiOp(op.lhs, op.rhs))

@dataclass(frozen=True)
class Cycle(ModulePass):
    \"\"\"Never end.\"\"\"
    name = "cycle"
    def apply(self, ctx, op):
        PatternRewriteWalker(GreedyRewritePatternApplier([There(), Back()])).rewrite_module(op)

PASSES = [Cycle]
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("foo.mlir").write_text(FOO)
    Path("calls.mlir").write_text(CALLS)
    Path("norm.mlir").write_text(NORM)
    Path("breaks.py").write_text(PLUGIN)
    save_file({"w": np.arange(12, dtype=np.float32).reshape(4, 3)}, "w.safetensors")


def printed(capsys: Capture, *arguments: str) -> tuple[str, str]:
    assert main(arguments) == 0, capsys.readouterr().err
    return capsys.readouterr()


@pytest.mark.parametrize(
    "pipeline",
    [
        "graph-to-algebra",
        "cse,graph-to-algebra",
        "func.func(graph-to-algebra)",
        "builtin.module(cse, func.func(cse,graph-to-algebra), canonicalize)",
    ],
)
def test_passes_run_on_functions_of_any_name_and_on_all(capsys: Capture, pipeline: str) -> None:
    out, _ = printed(capsys, "foo.mlir", "-p", pipeline)
    assert "graph." not in out
    assert out.count("algebra.scope") == 2
    assert re.findall(r"func.func @(\w+)", out) == ["foo", "bar"]


def test_an_xdsl_pass_nested_in_functions_runs_on_each(capsys: Capture) -> None:
    Path("twice.mlir").write_text(
        "func.func @f(%x: i32) -> i32 {\n  %y = arith.addi %x, %x : i32\n"
        "  %z = arith.addi %x, %x : i32\n  %r = arith.muli %y, %z : i32\n"
        "  func.return %r : i32\n}\n"
    )
    out, _ = printed(capsys, "twice.mlir", "-p", "func.func(cse)")
    assert out.count("arith.addi") == 1 and "@f" in out


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("func.fun(cse)", "passes cannot be nested in 'func.fun'"),
        ("func.func(cse", "'(' is not closed"),
        ("cse)", "malformed pipeline at column 4 of 'cse)': unexpected ')'"),
        ("func.func(cse)x", "unexpected text after 'func.func(...)'"),
        ("func.func(builtin.module(cse))", "builtin.module(...) stands outside only"),
        ("func.func(czse)", "unknown pass 'czse' (did you mean 'cse'?)"),
    ],
)
def test_wrong_nesting_is_one_line(capsys: Capture, pipeline: str, message: str) -> None:
    assert main(["foo.mlir", "-p", pipeline]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_pass_that_was_checked_on_main_is_checked_on_every_function(capsys: Capture) -> None:
    out, err = printed(capsys, "foo.mlir", "-p", "graph-to-algebra", "--check", "--explain")
    assert err.count("check after graph-to-algebra") == 2
    assert "algebra.scope" in out


def test_calls_are_inlined_when_a_program_is_read(capsys: Capture) -> None:
    x = np.array([-1, 2, -3, 4], np.float32)
    found = isoform.compile(isoform.load("calls.mlir"))(x=x)["y"]
    assert found.tolist() == [0, 2, 0, 4]


@pytest.mark.parametrize("out", ["sub/out", "out"])
def test_folded_weights_are_written_beside_the_output(capsys: Capture, out: str) -> None:
    Path("sub").mkdir()
    printed(capsys, "norm.mlir", "-p", "fold-constants", "-o", f"{out}.mlir")
    stored = load_file(f"{out}.safetensors")
    assert [a.shape for a in stored.values()] == [(3, 4)]
    x = np.ones((2, 3), np.float32)
    before = isoform.compile(isoform.load("norm.mlir"))(x=x)["y"]
    after = isoform.compile(isoform.load(f"{out}.mlir"))(x=x)["y"]
    assert np.array_equal(before, after)


def test_in_the_same_folder_unchanged_weights_stay_where_they_are(capsys: Capture) -> None:
    printed(capsys, "norm.mlir", "-p", "cse", "-o", "out.mlir")
    assert 'isoform.weights = "w.safetensors"' in Path("out.mlir").read_text()
    assert not Path("out.safetensors").exists()


def test_weights_may_be_given(capsys: Capture) -> None:
    Path("other").mkdir()
    Path("w.safetensors").rename("other/v.safetensors")
    flags = ["--weights", "other/v.safetensors", "-o", "out.mlir"]
    printed(capsys, "norm.mlir", "-p", "fold-constants", *flags)
    assert len(load_file("out.safetensors")) == 1
    assert main(["norm.mlir", "--weights", "none.safetensors"]) == 1
    assert "the weights file is missing" in capsys.readouterr().err


def test_known_locations_are_kept_unless_told_otherwise(capsys: Capture) -> None:
    out, _ = printed(capsys, "norm.mlir", "-p", "graph-to-algebra")
    assert out.count('loc("layer.0")') == 1
    assert "loc(unknown)" not in out
    assert "loc(" not in printed(capsys, "norm.mlir", "--no-locations")[0]
    assert "loc(unknown)" in printed(capsys, "norm.mlir", "--print-debuginfo")[0]


def test_ir_is_printed_around_chosen_passes_and_on_change(capsys: Capture) -> None:
    flags = ["-p", "cse,graph-to-algebra,canonicalize"]
    _, err = printed(capsys, "foo.mlir", *flags, "--print-ir-before=cse,canonicalize")
    assert re.findall("IR Dump (.*) //-", err) == ["Before cse", "Before canonicalize"]
    _, err = printed(capsys, "foo.mlir", *flags, "--mlir-print-ir-after-change")
    assert re.findall("IR Dump (.*) //-", err) == ["After graph-to-algebra"]
    _, err = printed(capsys, "foo.mlir", *flags, "--print-ir-after-all")
    assert err.count("IR Dump After") == 3
    printed(capsys, "foo.mlir", *flags, "--print-ir-after-all", "--print-ir-tree-dir", "dumps")
    assert sorted(p.name for p in Path("dumps").iterdir()) == [
        "0_after_cse.mlir", "1_after_graph-to-algebra.mlir", "2_after_canonicalize.mlir",
    ]  # fmt: skip
    assert main(["foo.mlir", "-p", "cse", "--print-ir-after=canonicalize"]) == 2
    assert "the pipeline has no pass 'canonicalize'" in capsys.readouterr().err


@pytest.mark.parametrize("local", [False, True])
def test_a_reproducer_replays(capsys: Capture, local: bool) -> None:
    flags = ["--plugin", "breaks.py", "--reproducer", "crash.mlir", "--print-ir-after-failure"]
    flags += ["--local-reproducer"] if local else []
    assert main(["foo.mlir", "-p", "cse,graph-to-algebra,breaks", *flags]) == 1
    assert "IR Dump After breaks Failed" in capsys.readouterr().err
    text = Path("crash.mlir").read_text()
    assert ("graph.relu" in text) != local
    assert ("func.func(graph-to-algebra)" in text) != local
    assert main(["crash.mlir", "--plugin", "breaks.py", "--run-reproducer"]) == 1
    assert "ValueError: broken" in capsys.readouterr().err
    assert main(["crash.mlir", "--run-reproducer"]) == 1
    assert "its first line is the command, with its plug-ins" in capsys.readouterr().err
    assert main(["foo.mlir", "--run-reproducer"]) == 1
    assert "no crash reproducer" in capsys.readouterr().err


def test_times_are_a_tree(capsys: Capture) -> None:
    _, err = printed(capsys, "foo.mlir", "-p", "cse,graph-to-algebra", "--mlir-timing")
    names = [line[21:] for line in err.splitlines()[6:]]
    assert names == [
        "Parser", "'builtin.module' Pipeline", "  cse", "  'func.func' Pipeline",
        "    graph-to-algebra", "  (V) Verifier and reports", "Output", "Rest", "Total",
    ]  # fmt: skip


def test_the_pipeline_is_dumped_with_its_nesting(capsys: Capture) -> None:
    _, err = printed(capsys, "foo.mlir", "-p", "cse,graph-to-algebra", "--dump-pass-pipeline")
    assert err == "Pass Manager: builtin.module(cse,func.func(graph-to-algebra))\n"
    nested = "builtin.module(cse,func.func(infer-shapes,graph-to-algebra),canonicalize)"
    _, err = printed(capsys, "foo.mlir", "-p", nested, "--dump-pass-pipeline")
    assert f"Pass Manager: {nested}" in err


def test_all_faults_of_a_module_are_told(capsys: Capture) -> None:
    bad = "".join(f"  %{n} = graph.add %x, %w : tensor<4xf32>\n" for n in "abc")
    Path("bad.mlir").write_text(
        f"func.func @main(%x: tensor<4xf32>, %w: tensor<5xf32>) {{\n{bad}  func.return\n}}\n"
    )
    assert main(["bad.mlir"]) == 1
    err = capsys.readouterr().err
    assert [line.split(":")[2] for line in err.splitlines()] == ["2", "3", "4"]


def test_the_source_line_and_a_caret_are_shown_on_demand(capsys: Capture) -> None:
    Path("bad.mlir").write_text("func.func @main() {\n  \tgraph.nonsense\n}\n")
    assert main(["bad.mlir", "--show-source"]) == 1
    assert capsys.readouterr().err.splitlines()[1:] == ["  \tgraph.nonsense", "  \t^"]
    assert caret("m.mlir:2:3", {"m.mlir": "a\nbcd\n"}) == "bcd\n  ^"
    assert caret("m.mlir", {}) == caret(None, {}) == caret("none.mlir:1:1", {}) == ""


def test_dialects_and_operations_are_described(capsys: Capture) -> None:
    assert printed(capsys, "--list-dialects")[0].splitlines()[1] == "  graph"
    whole, _ = printed(capsys, "--help-dialect", "graph")
    assert "  graph.conv(x, w, bias?) {strides, pads, dilations, groups = 1} -> result\n" in whole
    assert "ONNX Conv" in printed(capsys, "--help-dialect", "graph.conv")[0]
    assert main(["--help-dialect", "grph"]) == 1
    assert "unknown dialect 'grph' (did you mean 'graph'?)" in capsys.readouterr().err
    assert main(["--help-dialect", "graph.cnv"]) == 1
    assert "unknown operation 'graph.cnv' (did you mean 'graph.conv'?)" in capsys.readouterr().err


def test_a_newer_version_of_the_ir_is_refused_before_its_ops(capsys: Capture) -> None:
    isoform.save(isoform.load("calls.mlir"), "saved.mlir")
    text = Path("saved.mlir").read_text()
    assert "isoform.ir_version = 1 : i64" in text
    newer = text.replace("ir_version = 1", "ir_version = 2").replace("graph.relu", "graph.new")
    Path("newer.mlir").write_text(newer)
    assert main(["newer.mlir"]) == 1
    assert "a newer isoform wrote this: expected IR version 1 or older, found 2" in (
        capsys.readouterr().err
    )
    with pytest.raises(isoform.UserError, match="a newer isoform"):
        isoform.load("newer.mlir")


def test_what_is_printed_is_read_again(capsys: Capture) -> None:
    printed(capsys, "norm.mlir", "-p", "graph-to-algebra", "--verify-roundtrip")


def test_patterns_that_undo_each_other_are_stopped_soon(capsys: Capture) -> None:
    Path("cycle.py").write_text(CYCLE)
    Path("add.mlir").write_text(
        "func.func @f(%x: i32) -> i32 {\n  %y = arith.addi %x, %x : i32\n"
        "  func.return %y : i32\n}\n"
    )
    started = time.process_time()
    assert main(["add.mlir", "--plugin", "cycle.py", "-p", "cycle"]) == 1
    err = capsys.readouterr().err
    assert "the module is again what it was 2 rewrites before (two patterns undo each other)" in err
    assert time.process_time() - started < 2
