"""Searches look inside loops and branches."""

from pathlib import Path

import pytest

import isoform
from isoform.passes.equivalence import compare

LOOP = """func.func @main(%n: tensor<i64>, %x: tensor<64x64xf32>, %b: tensor<64x64xf32>,
    %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = control.loop times %n carry(%x : tensor<64x64xf32>)
      with(%b, %c : tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<64x64xf32>, %k: tensor<64x64xf32>, %l: tensor<64x64xf32>):
    %p = graph.matmul %h, %k : tensor<64x64xf32>
    %q = graph.matmul %h, %l : tensor<64x64xf32>
    %u = graph.add %p, %q : tensor<64x64xf32>
    %t = graph.tanh %u : tensor<64x64xf32>
    control.yield %t : tensor<64x64xf32>
  }
  func.return %y : tensor<64x64xf32>
}"""
BRANCH = """func.func @main(%go: tensor<i1>, %x: tensor<64x64xf32>, %b: tensor<64x64xf32>,
    %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = control.if %go with(%x, %b, %c : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>)
      -> tensor<64x64xf32> {
  ^bb0(%h: tensor<64x64xf32>, %k: tensor<64x64xf32>, %l: tensor<64x64xf32>):
    %p = graph.matmul %h, %k : tensor<64x64xf32>
    %q = graph.matmul %h, %l : tensor<64x64xf32>
    %u = graph.add %p, %q : tensor<64x64xf32>
    control.yield %u : tensor<64x64xf32>
  } else {
  ^bb0(%h: tensor<64x64xf32>, %k: tensor<64x64xf32>, %l: tensor<64x64xf32>):
    %p = graph.matmul %k, %h : tensor<64x64xf32>
    control.yield %p : tensor<64x64xf32>
  }
  func.return %y : tensor<64x64xf32>
}"""


@pytest.mark.parametrize("text", [LOOP, BRANCH])
def test_two_products_of_a_body_become_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text(text)
    program = isoform.load(tmp_path / "p.mlir")
    found = isoform.optimize(program, target="h100", strategy="saturate", budget=120)
    assert str(program.module).count("graph.matmul") - str(found.module).count("graph.matmul") == 1
    assert found.cost["after"] < found.cost["before"]
    assert compare(program, found).kind == "equal"


def test_a_sum_that_a_search_makes_of_captured_values_leaves_the_loop(tmp_path: Path) -> None:
    (tmp_path / "p.mlir").write_text(LOOP)
    program = isoform.load(tmp_path / "p.mlir")
    found = isoform.optimize(program, target="h100", strategy="saturate", budget=120)
    assert "graph.add" in [op.name for op in found.main.body.block.ops]
