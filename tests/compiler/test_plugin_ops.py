"""An op from outside goes through everything: with scopes or numpy alone, of one result or two."""

import json
from pathlib import Path

import numpy as np
import pytest

from isoform.compiler.api import compile, optimize
from isoform.compiler.cli import main
from isoform.compiler.frontends.program_file import parse
from isoform.compiler.opt import main as opt
from isoform.compiler.plugin import using
from isoform.compiler.search.strategies import STRATEGIES
from isoform.dialects.program import Program
from isoform.testing.per_op import per_op

PLUGIN = str(Path(__file__).parents[1] / "support" / "plugin_ops.py")
TEXT = """\
func.func @main(%x: tensor<8x6xf32>, %y: tensor<8x6xf32>)
    -> (tensor<8x4xf32>, tensor<6xf32>, tensor<8x6xf32>) {
  %w = graph.constant dense<0.5> : tensor<6x4xf32>
  %r = graph.relu %x : tensor<8x6xf32>
  %z = mine.axpy %r, %y {alpha = 3.0} : tensor<8x6xf32>
  %sum, %twice = mine.both %z, %y : tensor<8x6xf32>, tensor<8x6xf32>
  %sorted = mine.sort_rows %sum : tensor<8x6xf32>
  %low, %high = mine.min_max %twice : tensor<6xf32>, tensor<6xf32>
  %m = graph.matmul %sorted, %w : tensor<8x4xf32>
  %spread = graph.sub %high, %low : tensor<6xf32>
  func.return %m, %spread, %twice : tensor<8x4xf32>, tensor<6xf32>, tensor<8x6xf32>
}
"""


def program() -> Program:
    with using([PLUGIN]):
        return parse(TEXT)


def values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.uniform(-1, 1, (8, 6)).astype(np.float32) for name in "xy"}


def wanted(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    z = 3.0 * np.maximum(x, 0) + y
    product = np.sort(z + y, axis=-1) @ np.full((6, 4), 0.5, np.float32)
    return [product, 2 * z.max(axis=0) - 2 * z.min(axis=0), 2 * z]


def agrees(made: Program) -> bool:
    given = values()
    found = compile(made, effort="quick")(**given)
    pairs = zip(found.values(), wanted(**given), strict=True)
    return all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in pairs)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.mlir").write_text(TEXT)
    return tmp_path


def test_it_compiles_to_what_it_means() -> None:
    assert agrees(program())


@pytest.mark.parametrize("target", ["cpu", "h100"])
@pytest.mark.parametrize("strategy", ["optimize", *(s.name for s in STRATEGIES)])
def test_every_strategy_takes_it(strategy: str, target: str) -> None:
    found = optimize(program(), target=target, strategy=strategy, budget=2)
    assert found.report["stop_reason"] in ("finished", "no gain found", "time", "steps")
    assert found.certificate["body"]["verdict"]["outputs"]
    assert agrees(found)


def test_its_kernels_are_measured_one_by_one() -> None:
    found = {row["algorithm"] for row in per_op(program(), 1, "quick")}
    assert {"mine.sort_rows", "mine.min_max"} <= found


@pytest.mark.parametrize("passes", ["canonicalize,cse,dce", "graph-to-algebra,algebra-to-kernel"])
def test_passes_take_it(folder: Path, passes: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt(["--plugin", PLUGIN, "p.mlir", "-p", passes, "--check"]) == 0
    assert "mine.min_max" in capsys.readouterr().out


def test_every_command_takes_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--plugin", PLUGIN]

    def isoform(*arguments: str) -> str:
        status = main([*arguments, *flags])
        printed = capsys.readouterr()
        assert status == 0, printed.err
        return printed.out

    assert "mine.axpy" in isoform("check", "p.mlir")
    isoform("import", "p.mlir", "-o", "q.mlir")
    isoform("optimize", "p.mlir", "-o", "o.mlir", "--budget", "2", "--effort", "quick",
            "--report", "r.json", "--certificate", "c.json")  # fmt: skip
    main(["explain", "r.json"])
    assert "equal" in isoform("verify", "p.mlir", "o.mlir")
    assert "equal" in isoform("verify", "c.json")
    isoform("bisect", "p.mlir", "o.mlir")
    np.savez("i.npz", **values())
    for file in ("p.mlir", "q.mlir", "o.mlir"):
        isoform("run", file, "--inputs", "i.npz", "--output", "out.npz", "--effort", "quick")
        found = list(np.load("out.npz").values())
        for a, b in zip(found, wanted(**values()), strict=True):
            assert np.allclose(a, b, rtol=1e-4, atol=1e-5)
    isoform("run", "p.mlir", "--reference")
    assert json.loads(isoform("bench", "p.mlir", "--seconds", "0.1", "--json"))


def test_without_the_plugin_and_as_onnx_it_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "p.mlir"]) == 1
    assert "unknown dialect 'mine'" in capsys.readouterr().err
    flags = ["--budget", "1", "--effort", "quick", "--plugin", PLUGIN]
    assert main(["optimize", "p.mlir", "-o", "p.onnx", *flags]) == 1
    assert "has no ONNX form" in capsys.readouterr().err
    assert not (folder / "p.onnx").exists()
