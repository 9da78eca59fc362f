"""bound-dims: the bounded program gives what the program gives at each size."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.bounding import compare

from isoform.compiler.frontends.program_file import program_of
from isoform.compiler.frontends.source import SourceText
from isoform.compiler.opt import main as opt
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.passes.bounding import rules
from isoform.passes.bounding.padding import NotBounded, PaddedOp

# Arguments, body (`%y` is the result), bounds, sizes. `[n, 4]` stands for the type of these dims.
PROGRAMS = {
    "sum": ("%x: [n, 4]", "%y = graph.reduce_sum %x {axes = [0]} : [1, 4]"),
    "product": ("%x: [3, n]", "%y = graph.reduce_prod %x {axes = [1], keep_dims = false} : [3]"),
    "least": ("%x: [3, n]", """%a = graph.abs %x : [3, n]
  %y = graph.reduce_min %a {axes = [1]} : [3, 1]"""),
    "mean": ("%x: [2, n, 3]", "%y = graph.reduce_mean %x {axes = [1, 2]} : [2, 1, 1]"),
    "mean-of-two": ("%x: [n, m]", "%y = graph.reduce_mean %x {axes = [0, 1]} : [1, 1]"),
    "mean-of-large-floats": (
        "%x: [n, 4]",
        """%c = graph.constant dense<4.0e4> : tensor<f16>
  %k = graph.broadcast %c {shape = [n, 4], dims = []} : f16[n, 4]
  %m = graph.reduce_mean %k {axes = [0]} : f16[1, 4]
  %y = graph.cast %m {to = f32} : [1, 4]""",
    ),
    "mean-of-large-integers": (
        "%x: [n, 4]",
        """%c = graph.constant dense<2000000000> : tensor<i32>
  %k = graph.broadcast %c {shape = [n, 4], dims = []} : i32[n, 4]
  %m = graph.reduce_mean %k {axes = [0]} : i32[1, 4]
  %y = graph.cast %m {to = f32} : [1, 4]""",
    ),
    "softmax": ("%x: [2, n]", "%y = graph.softmax %x {axis = 1} : [2, n]"),
    "log-softmax": ("%x: [n, m]", "%y = graph.log_softmax %x {axis = 1} : [n, m]"),
    "arg-max": ("%x: [2, n]", "%y = graph.arg_max %x {axis = 1} : i64[2, 1]"),
    "layer-norm": (
        "%x: [n, 4], %s: [4]",
        "%y = graph.layer_norm %x, %s {axis = 1} : [n, 4]",
    ),
    "rows": ("%x: [n, 4], %w: [4, 3]", "%y = graph.matmul %x, %w : [n, 3]"),
    "summed": (
        "%x: [3, n], %z: [n, 2]",
        """%a = graph.exp %x : [3, n]
  %b = graph.exp %z : [n, 2]
  %y = graph.matmul %a, %b : [3, 2]""",
    ),
    "turned": (
        "%x: [n, 3], %z: [2, n]",
        """%a = graph.log %x : [n, 3]
  %y = graph.matmul %a, %z {transpose_a = true, transpose_b = true} : [3, 2]""",
    ),
    "attention": (
        "%q: [2, m, 4], %k: [2, n, 4], %v: [2, n, 4]",
        """%s = graph.matmul %q, %k {transpose_b = true} : [2, m, n]
  %p = graph.softmax %s {axis = 2} : [2, m, n]
  %y = graph.matmul %p, %v : [2, m, 4]""",
    ),
    "appended": (
        "%x: [2, n, 3], %z: [2, 1, 3]",
        """%y = graph.concat %x, %z {axis = 1}
        : [2, n + 1, 3]""",
    ),
    "appended-garbage": (
        "%x: [2, n], %z: [2, 1]",
        """%a = graph.exp %x : [2, n]
  %b = graph.concat %a, %z {axis = 1} : [2, n + 1]
  %y = graph.reduce_sum %b {axes = [1]} : [2, 1]""",
    ),
    "joined": ("%x: [2, n], %z: [2, m]", "%y = graph.concat %x, %z {axis = 1} : [2, n + m]"),
    "joined-three": (
        "%x: [n, 2], %z: [3, 2]",
        "%y = graph.concat %x, %z, %x {axis = 0} : [2 * n + 3, 2]",
    ),
    "joined-elsewhere": ("%x: [2, n], %z: [3, n]", "%y = graph.concat %x, %z {axis = 0} : [5, n]"),
    "joined-last": ("%z: [2, 3], %x: [2, n]", "%y = graph.concat %z, %x {axis = 1} : [2, n + 3]"),
    "cut": (
        "%x: [n, 4]",
        """%y = graph.slice %x {starts = [1, 0], sizes = [n - 1, 2], steps = [1, 2]}
        : [n - 1, 2]""",
    ),
    "last": (
        "%x: [n, 4]",
        """%y = graph.slice %x {starts = [n - 1, 0], sizes = [1, 4], steps = [1, 1]}
        : [1, 4]""",
    ),
    "flipped": (
        "%x: [n, 2]",
        """%y = graph.slice %x {starts = [n - 1, 0], sizes = [n, 2], steps = [-1, 1]}
        : [n, 2]""",
    ),
    "every-second": (
        "%x: [2 * n]",
        "%y = graph.slice %x {starts = [0], sizes = [n], steps = [2]} : [n]",
    ),
    "table": (
        "%x: [16, 2]",
        """%y = graph.slice %x {starts = [0, 0], sizes = [n, 2], steps = [1, 1]}
        : [n, 2]""",
        "%z: [n]",
    ),
    "split": (
        "%x: [n, 4]",
        """%a, %b = graph.split %x {axis = 1, sizes = [1, 3]} : [n, 1], [n, 3]
  %y = graph.reduce_sum %b {axes = [0]} : [1, 3]""",
    ),
    "heads": (
        "%x: [1, n, 6]",
        """%a = graph.reshape %x {shape = [1, n, 2, 3]} : [1, n, 2, 3]
  %b = graph.transpose %a {perm = [0, 2, 1, 3]} : [1, 2, n, 3]
  %y = graph.reduce_sum %b {axes = [2]} : [1, 2, 1, 3]""",
    ),
    "heads-garbage": (
        "%x: [1, n, 6]",
        """%e = graph.exp %x : [1, n, 6]
  %a = graph.reshape %e {shape = [1, n, 2, 3]} : [1, n, 2, 3]
  %y = graph.reduce_sum %a {axes = [1]} : [1, 1, 2, 3]""",
    ),
    "moved-garbage": (
        "%x: [n, 4]",
        """%e = graph.exp %x : [n, 4]
  %t = graph.transpose %e {perm = [1, 0]} : [4, n]
  %b = graph.broadcast %t {shape = [2, 4, n], dims = [1, 2]} : [2, 4, n]
  %s = graph.slice %b {starts = [0, 1, 0], sizes = [2, 2, n], steps = [1, 1, 1]} : [2, 2, n]
  %p, %q = graph.split %s {axis = 0, sizes = [1, 1]} : [1, 2, n], [1, 2, n]
  %y = graph.reduce_sum %q {axes = [2]} : [1, 2, 1]""",
    ),
    "joined-garbage": (
        "%x: [2, n], %z: [3, n]",
        """%e = graph.exp %x : [2, n]
  %a = graph.concat %e, %z {axis = 0} : [5, n]
  %y = graph.reduce_sum %a {axes = [1]} : [5, 1]""",
    ),
    "flattened": ("%x: [n, 3]", "%y = graph.reshape %x {shape = [3 * n]} : [3 * n]"),
    "batch-joined": ("%x: [m, n, 3]", "%y = graph.reshape %x {shape = [m * n, 3]} : [m * n, 3]"),
    "batch-parted": (
        "%x: [m * n, 3], %z: [m, n]",
        "%y = graph.reshape %x {shape = [m, n, 3]} : [m, n, 3]",
    ),
    "joined-inside": ("%x: [2, n, 3]", "%y = graph.reshape %x {shape = [2, 3 * n]} : [2, 3 * n]"),
    "joined-batch": ("%x: [2, n, 3]", "%y = graph.reshape %x {shape = [2 * n, 3]} : [2 * n, 3]"),
    "repeated": (
        "%x: [2, 1]",
        """%y = graph.broadcast %x {shape = [2, n], dims = [0, 1]}
        : [2, n]""",
        "%z: [n]",
    ),
    "groups": (
        "%x: [2, n, 3]",
        """%a = graph.broadcast %x {shape = [2, 4, n, 3], dims = [0, 2, 3]} : [2, 4, n, 3]
  %y = graph.reshape %a {shape = [8, n, 3]} : [8, n, 3]""",
    ),
    "padded": (
        "%x: [n, 3]",
        """%a = graph.log %x : [n, 3]
  %y = graph.pad %a {pads = [2, 0, 1, 1], fill = 5.0} : [n + 3, 4]""",
    ),
    "image": (
        "%x: [1, 2, h, w], %k: [3, 2, 3, 3]",
        """%a = graph.exp %x : [1, 2, h, w]
  %y = graph.conv %a, %k {strides = [2, 1], pads = [1, 1, 1, 1], dilations = [1, 1]}
   : [1, 3, (h - 1) floordiv 2 + 1, w]""",
    ),
    "pool": (
        "%x: [1, 2, h]",
        """%a = graph.exp %x : [1, 2, h]
  %y = graph.max_pool %a {kernel = [3], strides = [1], pads = [1, 1], dilations = [1]}
   : [1, 2, h]""",
    ),
    "batch-of-images": (
        "%x: [n, 2, 4, 4], %k: [3, 2, 3, 3]",
        """%y = graph.conv %x, %k {strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]}
          : [n, 3, 4, 4]""",
    ),
    "positions": ("%x: [n]", "%y = graph.iota {start = [n - 1], size = [n], step = [-1]} : i64[n]"),
    "embedded": ("%x: [6, 2], %i: i64[n]", "%y = graph.gather %x, %i {axis = 0} : [n, 2]"),
    "taken": (
        "%x: [n, 2], %i: i64[3]",
        """%j = graph.neg %i : i64[3]
  %y = graph.gather %x, %j {axis = 0} : [3, 2]""",
    ),
    "whole-division": ("%x: i64[n]", """%c = graph.constant dense<1> : tensor<i64>
  %d = graph.broadcast %c {shape = [n], dims = []} : i64[n]
  %a = graph.add %x, %d : i64[n]
  %y = graph.div %a, %a : i64[n]"""),
}  # fmt: skip


def _type(found: re.Match[str]) -> str:
    element, dims = found.group(1) or "f32", [d.strip() for d in found.group(2).split(",") if d]
    shape = "".join(f"{d}x" if d.isdigit() else "?x" for d in dims)
    names = "" if all(d.isdigit() for d in dims) else f", #graph.dims<{', '.join(dims)}>"
    return f"tensor<{shape}{element}{names}>"


def program(given: str, body: str, unread: str = "") -> Program:
    """A program of the table; `unread` is an argument that gives a symbol."""
    lines = body.splitlines()
    result = lines[-1].rpartition(" : ")[2]
    arguments = ", ".join(filter(None, (given, unread)))
    guards = ", ".join(f'"{name} >= 1", "{name} <= 16"' for name in symbols(arguments))
    text = f"""func.func @main({arguments}) -> {result}
        attributes {{isoform.guards = [{guards}]}} {{
      {body}
      func.return %y : {result}
    }}"""
    text = re.sub(r"(i64|i32|i1|f16)?\[([^\]]*)\](?![^{\n]*\})", _type, text)
    return program_of(SourceText("program.mlir", text), Path("program.mlir"))


def symbols(arguments: str) -> list[str]:
    """The names in the dims of arguments."""
    return sorted(set(re.findall(r"\b[nmhw]\b", re.sub(r"%\w+", "", arguments))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_rows_that_count_are_as_without_padding(name: str) -> None:
    given, _, *more = PROGRAMS[name]
    bounds = {s: 7 - k for k, s in enumerate(symbols(" ".join((given, *more))))}
    assert compare(program(*PROGRAMS[name]), bounds) > 4


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("appended-garbage", "reduce_sum"), ("product", "reduce_prod"), ("least", "reduce_min"),
        ("mean", "reduce_mean"), ("softmax", "softmax"), ("summed", "matmul"), ("pool", "max_pool"),
        ("image", "conv"), ("padded", "pad"), ("taken", "gather"), ("positions", "iota"),
    ],
)  # fmt: skip
def test_a_rule_that_leaves_padding_is_found(
    name: str, op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison is not blind: without its rule the op reads padding."""
    monkeypatch.setitem(rules.RULES, op, PaddedOp.rebuilt)
    given, _, *more = PROGRAMS[name]
    bounds = dict.fromkeys(symbols(" ".join((given, *more))), 7)
    with pytest.raises((AssertionError, UserError)):
        compare(program(*PROGRAMS[name]), bounds)


@pytest.mark.parametrize(("name", "fault"), [("joined", "concat"), ("appended-garbage", "zeros")])
def test_a_fault_in_what_moves_is_found(
    name: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if fault == "concat":
        monkeypatch.setitem(rules.RULES, "concat", PaddedOp.rebuilt)
    else:  # exp leaves no zeros
        monkeypatch.setattr(rules, "_KEEP_ZERO", ("exp",))
    bounds = dict.fromkeys(symbols(PROGRAMS[name][0]), 7)
    with pytest.raises((AssertionError, UserError)):
        compare(program(*PROGRAMS[name]), bounds)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ('"n<=0"', "the guard n >= 1 does not hold"),
        ('"n<=17"', "the guard n <= 16 does not hold"),
        ('"m<=3"', "no symbolic dim 'm'"), ('"n"', "'n' gives no size and no bound"),
    ],
)  # fmt: skip
def test_bounds_that_do_not_fit_are_one_line(
    dims: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(str(program(*PROGRAMS["sum"]).module))
    assert opt([str(path), "-p", f"bound-dims{{dims={dims}}}"]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_what_may_be_larger_than_at_the_bound_is_refused() -> None:
    body = "%y = graph.slice %x {starts = [0], sizes = [20 - n], steps = [1]} : [20 - n]"
    with pytest.raises(NotBounded, match="20 - n may be larger"):
        compare(program("%x: [20]", body, "%z: [n]"), {"n": 7})
