"""Loops and branches run inside the one native call, and give what the reference does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoform
from isoform.compiler.commands.inputs import draw_inputs
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.dialects.weights import Weights

ROWS = np.random.default_rng(0)


def program(tmp_path: Path, text: str) -> isoform.Program:
    path = tmp_path / "p.mlir"
    path.write_text(text)
    return isoform.load(path)


def check(found: isoform.Program, **feeds: Any) -> dict[str, Any]:
    """Run compiled and, a second time, from the store; both agree with the reference."""
    given = {name: np.asarray(array) for name, array in feeds.items()}
    wanted = reference.run(found, given)
    for _ in range(2):
        with isoform.compile(found, threads=2) as session:
            for times in (1, 2):  # buffers are used again
                outputs = session(**given)
                assert session.runner.native_calls == times
                for name, array in wanted.items():
                    np.testing.assert_allclose(outputs[name], array, rtol=2e-5, atol=2e-6)
    return outputs


def vector(size: int = 4) -> np.ndarray:
    return ROWS.standard_normal(size).astype(np.float32)


COUNTED = """func.func @main(%n: tensor<i64>, %go: tensor<i1>, %x: tensor<5xf32>)
      -> (tensor<5xf32>, tensor<5xf32>) {
  %a, %b = control.loop times %n while %go carry(%x, %x : tensor<5xf32>, tensor<5xf32>)
      with(%x : tensor<5xf32>) -> tensor<5xf32>, tensor<5xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<5xf32>, %g: tensor<5xf32>, %k: tensor<5xf32>):
    %s = graph.add %h, %k : tensor<5xf32>
    %t = graph.tanh %s : tensor<5xf32>
    control.yield %g, %t : tensor<5xf32>, tensor<5xf32>
  }
  func.return %a, %b : tensor<5xf32>, tensor<5xf32>
}"""


@pytest.mark.parametrize("n", [-3, 0, 1, 2, 5, 8])
def test_a_count_at_run_time(tmp_path: Path, n: int) -> None:
    """Carried values change places, so one of them is only ever copied."""
    found = program(tmp_path, COUNTED)
    check(found, n=n, go=True, x=vector(5))
    check(found, n=n, go=False, x=vector(5))


@pytest.mark.parametrize("bound", [-1e9, 3.0, 1e9])
def test_a_condition_at_run_time_ends_a_loop_at_any_parity(tmp_path: Path, bound: float) -> None:
    found = program(
        tmp_path,
        """func.func @main(%n: tensor<i64>, %bound: tensor<f32>, %x: tensor<4xf32>)
      -> tensor<4xf32> {
  %y = control.loop times %n carry(%x : tensor<4xf32>) with(%bound : tensor<f32>)
      attributes {conditional} -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %most: tensor<f32>):
    %t = graph.add %h, %h : tensor<4xf32>
    %s = graph.reduce_sum %t {axes = [0], keep_dims = false} : tensor<f32>
    %on = graph.less %s, %most : tensor<i1>
    control.yield %on, %t : tensor<i1>, tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}""",
    )
    for n in range(5):
        check(found, n=n, bound=np.float32(bound), x=np.abs(vector()))


@pytest.mark.parametrize("width", [5, 16])
@pytest.mark.parametrize("backward", ["0, 0, 0", "1, 0, 1", "0, 1, 0"])
def test_rows_are_read_and_written_in_place(tmp_path: Path, width: int, backward: str) -> None:
    """Rows of 64 bytes are written by their kernel, others are copied; so is a constant one."""
    row, rows = f"tensor<{width}xf32>", f"tensor<7x{width}xf32>"
    found = program(
        tmp_path,
        f"""func.func @main(%x: {row}, %s: {rows}) -> ({row}, {rows}, {rows}) {{
  %a, %b, %c = control.loop carry(%x : {row}) scan(%s : {rows})
      attributes {{trips = 7 : i64, backward = array<i64: {backward}>}} -> {row}, {rows}, {rows} {{
  ^bb0(%i: tensor<i64>, %h: {row}, %r: {row}):
    %t = graph.add %h, %r : {row}
    %u = graph.tanh %t : {row}
    %one = graph.constant dense<1.0> : {row}
    control.yield %u, %u, %one : {row}, {row}, {row}
  }}
  func.return %a, %b, %c : {row}, {rows}, {rows}
}}""",
    )
    check(found, x=vector(width), s=ROWS.standard_normal((7, width)).astype(np.float32))


NESTED = """func.func @main(%n: tensor<i64>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %y = control.loop carry(%x : tensor<4xf32>) with(%n : tensor<i64>) attributes {trips = 3 : i64}
      -> tensor<4xf32> {
  ^bb0(%i: tensor<i64>, %h: tensor<4xf32>, %m: tensor<i64>):
    %k = graph.add %m, %i : tensor<i64>
    %z = control.loop times %k carry(%h : tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%j: tensor<i64>, %g: tensor<4xf32>):
      %t = graph.cos %g : tensor<4xf32>
      control.yield %t : tensor<4xf32>
    }
    %odd = graph.less %i, %m : tensor<i1>
    %w = control.if %odd with(%z, %h : tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):
      control.yield %q : tensor<4xf32>
    } else {
    ^bb0(%p: tensor<4xf32>, %q: tensor<4xf32>):
      %t = graph.sub %p, %q : tensor<4xf32>
      control.yield %t : tensor<4xf32>
    }
    control.yield %w : tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}"""


@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_loop_and_a_branch_in_a_loop(tmp_path: Path, n: int) -> None:
    check(program(tmp_path, NESTED), n=n, x=vector())


def test_a_convolution_in_a_body_finds_its_halo_zero(tmp_path: Path) -> None:
    """The body's memory is used again after each iteration, and shared with the program's."""
    image = "tensor<1x3x6x6xf32>"
    kernels = ROWS.standard_normal((3, 3, 3, 3)).astype(np.float32) / 5
    text = f"""func.func @main(%n: tensor<i64>, %x: {image}) -> {image} {{
  %y = control.loop times %n carry(%x : {image}) -> {image} {{
  ^bb0(%i: tensor<i64>, %h: {image}):
    %w = graph.weight @w : tensor<3x3x3x3xf32>
    %c = graph.conv %h, %w {{strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1}}
      : {image}
    %r = graph.relu %c : {image}
    %d = graph.conv %r, %w {{strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1], groups = 1}}
      : {image}
    control.yield %d : {image}
  }}
  func.return %y : {image}
}}"""
    found = isoform.Program(program(tmp_path, text).module, Weights({"w": kernels}))
    check(found, n=3, x=ROWS.standard_normal((1, 3, 6, 6)).astype(np.float32))


GATHERED = """func.func @main(%go: tensor<i1>, %k: tensor<2xi64>, %x: tensor<4xf32>)
      -> tensor<2xf32> {
  %y = control.if %go with(%k, %x : tensor<2xi64>, tensor<4xf32>) -> tensor<2xf32> {
  ^bb0(%i: tensor<2xi64>, %t: tensor<4xf32>):
    %r = graph.gather %t, %i {axis = 0} : tensor<2xf32>
    control.yield %r : tensor<2xf32>
  } else {
  ^bb0(%i: tensor<2xi64>, %t: tensor<4xf32>):
    %r = graph.constant dense<0.0> : tensor<2xf32>
    control.yield %r : tensor<2xf32>
  }
  func.return %y : tensor<2xf32>
}"""


def test_an_invalid_index_in_a_branch_is_told_where_it_is_taken(tmp_path: Path) -> None:
    found = program(tmp_path, GATHERED)
    check(found, go=True, k=[1, 3], x=vector())
    check(found, go=False, k=[7, 9], x=vector())
    for _ in range(2):
        with isoform.compile(found) as session, pytest.raises(UserError, match="out of range"):
            session(go=np.asarray(True), k=np.array([7, 9]), x=vector())


def test_a_saved_loop_runs_without_the_compiler(tmp_path: Path) -> None:
    found = program(tmp_path, COUNTED)
    x = vector(5)
    with isoform.compile(found) as session:
        wanted = session(n=np.asarray(3), go=np.asarray(True), x=x)
        key = session.save(tmp_path / "saved")
    with isoform.open(tmp_path / "saved", sha256=key) as opened:
        again = opened(n=np.asarray(3), go=np.asarray(True), x=x)
    assert all(np.array_equal(again[name], wanted[name]) for name in wanted)


def test_inputs_are_drawn_for_what_bodies_do_with_them(tmp_path: Path) -> None:
    """A count is small but more than 1 somewhere, an index is inside what it selects from."""
    counts = {int(draw_inputs(program(tmp_path, COUNTED), seed)["n"]) for seed in range(8)}
    assert max(counts) in range(2, 16)
    drawn = [draw_inputs(program(tmp_path, GATHERED), seed)["k"] for seed in range(8)]
    assert {int(k) for array in drawn for k in array} <= set(range(4))
    assert any((array > 1).any() for array in drawn)
