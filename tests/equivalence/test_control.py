"""Loops and branches: equal bodies are equal at every level, others are compared by running."""

from pathlib import Path

import pytest

import isoform
from isoform.compiler.targets.levels import lower_to, place
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.loops import unrolled

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


# --- loops that are written in another way ---

ROWS = """func.func @main(%x: tensor<1x4xf32>, %s: tensor<6x1x4xf32>)
      -> (tensor<1x4xf32>, tensor<6x1x4xf32>) {
  %b, %rows = control.loop carry(%x : tensor<1x4xf32>) scan(%s : tensor<6x1x4xf32>)
      with(%x : tensor<1x4xf32>) attributes {trips = 6 : i64, backward = array<i64: 1, 0>}
      -> tensor<1x4xf32>, tensor<6x1x4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<1x4xf32>, %row: tensor<1x4xf32>, %k: tensor<1x4xf32>):
    %w = graph.weight @w : tensor<4x4xf32>
    %p = graph.matmul %h, %w : tensor<1x4xf32>
    %t = graph.sub %p, %row : tensor<1x4xf32>
    %u = graph.tanh %t : tensor<1x4xf32>
    control.yield %u, %h : tensor<1x4xf32>, tensor<1x4xf32>
  }
  func.return %b, %rows : tensor<1x4xf32>, tensor<6x1x4xf32>
}"""


def test_a_loop_is_equal_to_its_iterations_at_every_level(tmp_path: Path) -> None:
    source = program(tmp_path, ROWS)
    written_out = unrolled(source)
    assert "control.loop" not in str(written_out.module)
    for other in (written_out, lower_to(written_out, "kernel")):
        assert compare(source, other).kind == "equal"
    assert compare(lower_to(source, "algebra"), written_out).kind == "equal"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("graph.sub %p, %row", "graph.sub %row, %p"),
        ("array<i64: 1, 0>", "array<i64: 0, 0>"),
        ("control.yield %u, %h", "control.yield %u, %u"),
        ("graph.matmul %h, %w", "graph.matmul %k, %w"),
    ],
)
def test_a_loop_is_told_from_the_iterations_of_another(tmp_path: Path, old: str, new: str) -> None:
    written_out = unrolled(program(tmp_path, ROWS))
    assert old in ROWS
    assert compare(program(tmp_path, ROWS.replace(old, new)), written_out).kind == "different"


COUNTED = """func.func @main(%n: tensor<i64>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %b = control.loop times %n carry(%x : tensor<4xf32>) with(%x: tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %k: tensor<4xf32>):
    %p = graph.mul %h, %k : tensor<4xf32>
    %q = graph.mul %h, %h : tensor<4xf32>
    %u = graph.add %p, %q : tensor<4xf32>
    control.yield %u : tensor<4xf32>
  }
  func.return %b : tensor<4xf32>
}"""


@pytest.mark.parametrize(
    ("op", "other", "kind"), [("add", "mul", "equal"), ("sub", "mul", "different")]
)
def test_loops_that_data_count_are_equal_if_their_bodies_are(
    tmp_path: Path, op: str, other: str, kind: str
) -> None:
    """h * k + h * h is h * (h + k): no expressions of one form."""
    changed = COUNTED.replace("graph.mul %h, %k", f"graph.{op} %h, %k")
    changed = changed.replace("    %q = graph.mul %h, %h : tensor<4xf32>\n", "")
    changed = changed.replace("graph.add %p, %q", f"graph.{other} %h, %p")
    assert compare(program(tmp_path, COUNTED), program(tmp_path, changed)).kind == kind


def test_bodies_that_are_equal_for_some_values_alone_do_not_prove_their_loops(
    tmp_path: Path,
) -> None:
    """The first iteration gives the same: h is k then. The second does not."""
    changed = COUNTED.replace("graph.mul %h, %h", "graph.mul %h, %k")
    assert compare(program(tmp_path, COUNTED), program(tmp_path, changed)).kind != "equal"


def test_what_is_computed_before_a_loop_or_in_it_makes_no_difference(tmp_path: Path) -> None:
    inside = COUNTED.replace("graph.mul %h, %k", "graph.mul %h, %v").replace(
        "    %p =", "    %v = graph.exp %k : tensor<4xf32>\n    %p ="
    )
    before = COUNTED.replace("with(%x:", "with(%v:").replace(
        "  %b = control", "  %v = graph.exp %x : tensor<4xf32>\n  %b = control"
    )
    wrong = before.replace("graph.exp", "graph.tanh")
    source = program(tmp_path, inside)
    assert compare(source, program(tmp_path, before)).kind == "equal"
    assert compare(source, program(tmp_path, wrong)).kind == "different"
