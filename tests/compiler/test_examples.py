"""Every example does what its first lines say, by the commands that a reader types."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isoform.compiler import cli, opt
from isoform.compiler.plugin import using
from isoform.dialects.errors import UserError
from isoform.lowering.targets import known_targets

EXAMPLES = Path(__file__).parents[2] / "examples"
OUTER = """\
func.func @main(%a: tensor<4xf32>, %b: tensor<8xf32>, %c: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %y = algebra.scope (m: 4, n: 8) %a[m] * %b[n] : tensor<4x8xf32>
  %z = algebra.scope (m: 4, n: 16) sum (k: 8) %y[m, k] * %c[k, n] : tensor<4x16xf32>
  func.return %z : tensor<4x16xf32>
}
"""
LERP = """\
func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = demo.lerp %x, %y {weight = 0.25} : tensor<4x6xf32>
  %r = graph.relu %z : tensor<4x6xf32>
  func.return %r : tensor<4x6xf32>
}
"""
POLYNOMIAL = """\
func.func @main(%a: i32, %b: i32) -> i32 {
  %aa = ring.mul %a, %a : i32
  %ab = ring.mul %a, %b : i32
  %two = ring.add %ab, %ab : i32
  %bb = ring.mul %b, %b : i32
  %s = ring.add %aa, %two : i32
  %y = ring.add %s, %bb : i32
  func.return %y : i32
}
"""
RELUS = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  %z = graph.relu %y : tensor<4xf32>
  func.return %z : tensor<4xf32>
}
"""


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.chdir(tmp_path)
    for name, text in (("outer", OUTER), ("lerp", LERP), ("relus", RELUS)):
        Path(f"{name}.mlir").write_text(text)


def example(name: str) -> str:
    return str(EXAMPLES / name)


def test_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["relus.mlir", "--plugin", example("custom_pass.py"), "-p", "relu-once"]) == 0
    assert capsys.readouterr().out.count("graph.relu") == 1
    flags = ["--plugin", example("custom_pass.py"), "--pipeline", "relu-once"]
    # A modelled cost decides: measured, two programs that are one code differ by chance.
    flags += ["--target", "h100", "--budget", "3600"]
    assert cli.main(["optimize", "relus.mlir", "-o", "out.mlir", "--emit", "graph", *flags]) == 0
    assert Path("out.mlir").read_text().count("= graph.relu") == 1


def test_a_rule_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "verify", example("merge.rules"), "--count", "3"]) == 0
    assert "3 proved-by-z3" in capsys.readouterr().out
    flags = ["--rules", example("merge.rules"), "--target", "h100", "--budget", "3600"]
    assert cli.main(["optimize", "relus.mlir", *flags]) == 0


def test_an_op_with_meaning_and_lowering(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--plugin", example("custom_op.py")]
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((4, 6), np.float32) for _ in range(2))
    np.savez("in.npz", x=x, y=y)
    wanted = np.maximum(x + 0.25 * (y - x), 0)
    for how in (["--effort", "quick"], ["--reference"]):
        run = ["run", "lerp.mlir", "--inputs", "in.npz", "--output", "out.npz", *how, *flags]
        assert cli.main(run) == 0
        (found,) = np.load("out.npz").values()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    given = ["optimize", "lerp.mlir", "--target", "h100", "--budget", "3600", "-o", "fast.mlir"]
    assert cli.main([*given, *flags]) == 0
    assert cli.main(["verify", "lerp.mlir", "fast.mlir", *flags]) == 0
    assert "equal" in capsys.readouterr().out


def test_operands_that_do_not_agree_are_refused_in_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("bad.mlir").write_text(LERP.replace("%y: tensor<4x6", "%y: tensor<4x7"))
    assert cli.main(["run", "bad.mlir", "--plugin", example("custom_op.py")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "tensor<4x6" in line or "operands must agree" in line


def test_a_dialect_and_its_lowering(capsys: pytest.CaptureFixture[str]) -> None:
    Path("square.mlir").write_text(RELUS.replace("graph.relu", "demo.square"))
    flags = ["--plugin", example("custom_dialect.py")]
    assert opt.main(["square.mlir", "-p", "demo-to-graph", *flags]) == 0
    assert capsys.readouterr().out.count("graph.mul") == 2


def test_a_library_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--plugin", example("custom_kernel.py")]
    assert opt.main(["outer.mlir", "-p", "algebra-to-kernel", *flags]) == 0
    assert "demo.outer" in capsys.readouterr().out


def test_rules_over_a_dialect_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    Path("polynomial.mlir").write_text(POLYNOMIAL)
    rules = f'rules="{example("ring.rules")}"'
    saturate = f'graph-saturate{{dialect=ring {rules} op-costs="ring.mul=4","ring.square=3"}}'
    assert (
        opt.main(["polynomial.mlir", "--plugin", example("ring_dialect.py"), "-p", saturate]) == 0
    )
    out = capsys.readouterr().out
    assert "ring.square" in out and "ring.mul" not in out


def test_a_frontend() -> None:
    run = subprocess.run(
        [sys.executable, example("frontend.py")], capture_output=True, text=True, check=True
    )
    assert "graph.matmul" in run.stdout


def test_a_target_with_a_library_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--plugin", example("custom_target.py")]
    assert opt.main(["outer.mlir", "-p", "algebra-to-kernel", "-t", "dsp", *flags]) == 0
    lines = ["y = dsp_outer(a, b)", "z = kernel_gemm(y, c)", "return z"]
    assert capsys.readouterr().out.splitlines() == lines
    given = ["optimize", "outer.mlir", "--target", "dsp", "--budget", "3600", "--report", "r.json"]
    assert cli.main([*given, *flags]) == 0
    report = json.loads(Path("r.json").read_text())
    assert report["target"] == "dsp" and report["cost"]["kind"] == "modelled"
    ops = [node["op"] for node in report["levels"]["kernel"]["before"]["nodes"]]
    assert "dsp.outer" in ops
    assert cli.main(["view", "outer.mlir", "--target", "dsp", "-o", "page.html", *flags]) == 0


def test_a_machine_is_known_while_its_plug_in_is_in_use() -> None:
    with using([example("custom_target.py")]):
        assert "dsp" in known_targets()
    assert "dsp" not in known_targets()
    Path("twice.py").write_text("from isoform.lowering.targets import CPU\nMACHINES = [CPU]\n")
    with pytest.raises(UserError, match="already a target 'cpu'"), using(["twice.py"]):
        pass
    Path("wrong.py").write_text("MACHINES = [3]\n")
    with pytest.raises(UserError, match="MACHINES holds 3"), using(["wrong.py"]):
        pass


def test_a_search(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it finds is kept where it is proved to compute the same, and refused where it is not."""
    Path("chain.mlir").write_text(
        "func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x1xf32>)"
        " -> tensor<64x1xf32> {\n  %p = graph.matmul %a, %b : tensor<64x64xf32>\n"
        "  %y = graph.matmul %p, %c : tensor<64x1xf32>\n  func.return %y : tensor<64x1xf32>\n}\n"
    )
    flags = ["--strategy", "reorder", "--target", "h100", "--budget", "5", "--emit", "graph"]
    command = ["optimize", "chain.mlir", "-o", "out.mlir", *flags]
    assert cli.main([*command, "--plugin", example("custom_search.py")]) == 0
    assert "graph.matmul %b, %c" in Path("out.mlir").read_text()
    text = Path(example("custom_search.py")).read_text()
    Path("wrong.py").write_text(text.replace("MatmulOp(inner.b, op.b)", "MatmulOp(inner.a, op.b)"))
    Path("out.mlir").unlink()
    capsys.readouterr()
    assert cli.main([*command, "--plugin", "wrong.py"]) == 1
    assert "expected a program that is proved to compute the same" in capsys.readouterr().err
    assert not Path("out.mlir").exists()
    assert cli.main([*command]) == 1, "the plug-in is gone"
