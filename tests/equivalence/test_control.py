"""Loops and branches: equal bodies are equal at every level, others are compared by running."""

from pathlib import Path

import pytest

import isoform
from isoform.compiler.targets.levels import lower_to, place
from isoform.passes.equivalence import compare

TEXT = """func.func @main(%n: tensor<i64>, %go: tensor<i1>, %x: tensor<4xf32>, %s: tensor<3x4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>) {
  %a = control.loop times %n carry(%x : tensor<4xf32>) with(%x : tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<4xf32>):
    %t = graph.add %h, %k : tensor<4xf32>
    %u = graph.tanh %t : tensor<4xf32>
    control.yield %u : tensor<4xf32>
  }
  %b, %rows = control.loop carry(%x : tensor<4xf32>) scan(%s : tensor<3x4xf32>)
      attributes {trips = 3 : i64, backward = array<i64: 1, 0>} -> tensor<4xf32>, tensor<3x4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %row: tensor<4xf32>):
    %t = graph.sub %h, %row : tensor<4xf32>
    control.yield %t, %h : tensor<4xf32>, tensor<4xf32>
  }
  %z = control.if %go with(%a, %b : tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):
    control.yield %p : tensor<4xf32>
  } else {
  ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):
    %t = graph.mul %p, %q : tensor<4xf32>
    control.yield %t : tensor<4xf32>
  }
  func.return %a, %z, %rows : tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>
}"""


def program(tmp_path: Path, text: str = TEXT) -> isoform.Program:
    path = tmp_path / "p.mlir"
    path.write_text(text)
    return isoform.load(path)


def test_lowered_bodies_are_equal(tmp_path: Path) -> None:
    source = program(tmp_path)
    for lowered in (lower_to(source, "algebra"), lower_to(source, "kernel"), place(source)):
        assert compare(source, lowered).kind == "equal"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("graph.add %h, %k", "graph.add %k, %h"),
        ("graph.mul %p, %q", "graph.mul %q, %p"),
    ],
)
def test_bodies_of_the_same_meaning_are_equal(tmp_path: Path, old: str, new: str) -> None:
    assert old in TEXT
    other = program(tmp_path, TEXT.replace(old, new))
    assert compare(program(tmp_path), other).kind == "equal"


@pytest.mark.parametrize(
    ("old", "new", "output"),
    [
        ("graph.tanh", "graph.relu", "a"),
        ("graph.sub %h, %row", "graph.sub %row, %h", "rows"),
        ("array<i64: 1, 0>", "array<i64: 0, 0>", "rows"),
        ("array<i64: 1, 0>", "array<i64: 1, 1>", "rows"),
        ("control.yield %p", "control.yield %q", "z"),
        ("with(%a, %b :", "with(%b, %a :", "z"),
        ("control.loop times %n carry", "control.loop times %n while %go carry", "a"),
    ],
)
def test_other_bodies_and_walks_are_told_apart_by_running(
    tmp_path: Path, old: str, new: str, output: str
) -> None:
    """Never by the expressions alone: what differs there may be equal."""
    assert old in TEXT
    found = compare(program(tmp_path), program(tmp_path, TEXT.replace(old, new)))
    assert found.kind == "different"
    assert found.difference is not None and found.difference.witness
