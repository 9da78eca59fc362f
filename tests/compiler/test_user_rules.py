"""`isoform optimize --rules FILE`: a user's rewrites take part, verified first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isoform.compiler.cli import main

PROGRAM = """
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %m = graph.min %a, %b : tensor<64x64xf32>
  %s = graph.max %a, %m : tensor<64x64xf32>
  func.return %s : tensor<64x64xf32>
}
"""
ABSORBS = "rule max-absorbs [proved-by-z3; bits]: max(?a, min(?a, ?b)) => ?a"


def optimize(tmp_path: Path, rules: str, *more: str) -> int:
    """Run the command on the program with a file of these rules; its report is at report.json."""
    (tmp_path / "net.mlir").write_text(PROGRAM)
    (tmp_path / "my.rules").write_text(rules)
    given = ["--target", "h100", "--rules", str(tmp_path / "my.rules"), *more]
    report = ["--report", str(tmp_path / "report.json"), "-o", str(tmp_path / "out.mlir")]
    return main(["optimize", str(tmp_path / "net.mlir"), *given, *report])


@pytest.mark.parametrize("strategy", ["saturate", "substitute"])
def test_a_users_rule_is_applied_and_reported(tmp_path: Path, strategy: str) -> None:
    assert optimize(tmp_path, ABSORBS, "--allow-unproved", "--strategy", strategy) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    found = [entry for entry in report["rewrites"] if entry["rule"] == "max-absorbs"]
    assert [entry["proof"] for entry in found] == ["checked"]
    assert "graph.max" not in (tmp_path / "out.mlir").read_text()
    assert "kernel." not in (tmp_path / "out.mlir").read_text()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (ABSORBS, "rule 'max-absorbs' is not proved (--allow-unproved"),
        ("rule max-of-min: max(?a, min(?a, ?b)) => ?b", "rule 'max-of-min' does not hold"),
        (
            "rule add-commutes: add(?a, ?b) => add(?b, ?a)",
            "a rule of the package has the name 'add-commutes'",
        ),
        ("rule open: max(?a, ?a) => ?b", "does not bind ?b on its left"),
    ],
)
def test_a_rule_that_may_not_take_part_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rules: str, message: str
) -> None:
    assert optimize(tmp_path, rules) == 1
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out.mlir").exists()
