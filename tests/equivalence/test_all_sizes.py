"""Programs with symbolic dims: equality at every size, and what is wrong at some sizes only."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

from isoform.compiler.frontends.models import load
from isoform.compiler.frontends.program_family import family_of
from isoform.compiler.frontends.program_file import program_of
from isoform.compiler.frontends.source import SourceText
from isoform.compiler.frontends.symbolic_program import SymbolicProgram
from isoform.dialects.errors import UserError
from isoform.passes.equivalence import all_sizes
from isoform.passes.equivalence.all_sizes import ProgramFamily, compare_at_all_sizes
from isoform.passes.equivalence.prove import Proof
from isoform.passes.equivalence.verdict import Verdict


def dims(text: str) -> str:
    """`f32<b, n + 1>` as a tensor type."""
    parts = [part.strip() for part in text.split(",")]
    shape = "x".join(part if part.isdigit() else "?" for part in parts)
    static = all(part.isdigit() for part in parts)
    return f"tensor<{shape}xf32{'' if static else f', #graph.dims<{text}>'}>"


def typed(text: str) -> str:
    return re.sub(r"f32<([^<>]*)>", lambda m: dims(m[1]), text)


def program(inputs: str, result: str, lines: str, guards: tuple[str, ...] = ()) -> str:
    """A program's text from `x: f32<b, n>`, `f32<b, n>` and its ops; the last result is `%y`."""
    given = ", ".join(f"%{part.strip()}" for part in inputs.split(";"))
    quoted = ", ".join(f'"{guard}"' for guard in guards)
    head = f"func.func @main({given}) -> {result}\n  attributes {{isoform.guards = [{quoted}]}} {{"
    return typed(f"{head}\n{lines}\n  func.return %y : {result}\n}}\n")


def family(text: str) -> ProgramFamily:
    read = program_of(SourceText("text.mlir", text), Path("text.mlir"))
    return family_of(SymbolicProgram(read))


def asking(inputs: str, result: str, lines: str, guards: tuple[str, ...]) -> tuple[str, ...]:
    """The guards with those that ops ask for."""
    while True:
        try:
            family(program(inputs, result, lines, guards))
        except UserError as error:
            found = re.search(r'add "([^"]+)"', str(error))
            if found is None:
                raise
            guards = (*guards, found[1])
        else:
            return guards


def compared(
    inputs: str, result: str, one: str, other: str, guards: tuple[str, ...] = ()
) -> Verdict:
    guards = asking(inputs, result, other, asking(inputs, result, one, guards))
    pair = [family(program(inputs, result, lines, guards)) for lines in (one, other)]
    return compare_at_all_sizes(*pair, seed=5)


def said(verdict: Verdict) -> str:
    assert verdict.sizes is not None
    return f"{verdict.text()}\n{verdict.sizes.text()}"


WINDOW = "strides = [1, 1], pads = [1, 1, 1, 1], dilations = [1, 1]"
POOL = "kernel = [2, 1], strides = [2, 1], dilations = [1, 1]"
HALF = "f32<b, 2, (n + 1) floordiv 2, m>"
IDENTITY = "%y = graph.relu %x : f32<b, n>"


def moved(e: str) -> str:
    """A relu of an image moved by `e` columns: the same where that is 0."""
    return f"""
  %p = graph.pad %x {{pads = [0, {e}, 0, 0]}} : f32<b, n + {e}>
  %s = graph.slice %p {{starts = [0, 0], sizes = [b, n], steps = [1, 1]}} : f32<b, n>
  %y = graph.relu %s : f32<b, n>"""


FLAT = "graph.reshape %x {shape = [b * n, 8]} : f32<b * n, 8>"
EQUAL = {
    "sum of products": (
        "x: f32<n, 8>; v: f32<8, 8>; w: f32<8, 8>",
        "f32<n, 8>",
        """%p = graph.matmul %x, %v : f32<n, 8>
  %q = graph.matmul %x, %w : f32<n, 8>
  %y = graph.add %p, %q : f32<n, 8>""",
        """%p = graph.add %v, %w : f32<8, 8>
  %y = graph.matmul %x, %p : f32<n, 8>""",
    ),
    "order of products": (
        "x: f32<n, 8>; k: f32<n, 8>; v: f32<n, 8>",
        "f32<n, 8>",
        """%t = graph.transpose %k {perm = [1, 0]} : f32<8, n>
  %s = graph.matmul %x, %t : f32<n, n>
  %y = graph.matmul %s, %v : f32<n, 8>""",
        """%t = graph.transpose %k {perm = [1, 0]} : f32<8, n>
  %s = graph.matmul %t, %v : f32<8, 8>
  %y = graph.matmul %x, %s : f32<n, 8>""",
    ),
    "flat rows": (
        "x: f32<b, n, 8>; w: f32<8, 4>",
        "f32<b, n, 4>",
        f"""%f = {FLAT}
  %p = graph.matmul %f, %w : f32<b * n, 4>
  %y = graph.reshape %p {{shape = [b, n, 4]}} : f32<b, n, 4>""",
        f"""%f = {FLAT}
  %p = graph.matmul %f, %w : f32<b * n, 4>
  %r = graph.reshape %p {{shape = [b, n, 2, 2]}} : f32<b, n, 2, 2>
  %y = graph.reshape %r {{shape = [b, n, 4]}} : f32<b, n, 4>""",
    ),
    "attention": (
        "x: f32<b, n, 8>; k: f32<b, n, 8>; v: f32<b, n, 8>; c: f32<8>",
        "f32<b, n, 8>",
        """%d = graph.broadcast %c {shape = [b, n, 8], dims = [2]} : f32<b, n, 8>
  %j = graph.mul %k, %d : f32<b, n, 8>
  %t = graph.transpose %j {perm = [0, 2, 1]} : f32<b, 8, n>
  %s = graph.matmul %x, %t : f32<b, n, n>
  %p = graph.softmax %s {axis = 2} : f32<b, n, n>
  %y = graph.matmul %p, %v : f32<b, n, 8>""",
        """%t = graph.transpose %k {perm = [0, 2, 1]} : f32<b, 8, n>
  %d = graph.broadcast %c {shape = [b, n, 8], dims = [2]} : f32<b, n, 8>
  %m = graph.mul %x, %d : f32<b, n, 8>
  %s = graph.matmul %m, %t : f32<b, n, n>
  %p = graph.softmax %s {axis = 2} : f32<b, n, n>
  %y = graph.matmul %p, %v : f32<b, n, 8>""",
    ),
    "windows": (
        "x: f32<2, 3, n, 5>; v: f32<4, 3, 3, 3>; w: f32<4, 3, 3, 3>",
        "f32<2, 4, n, 5>",
        f"""%p = graph.conv %x, %v {{{WINDOW}}} : f32<2, 4, n, 5>
  %q = graph.conv %x, %w {{{WINDOW}}} : f32<2, 4, n, 5>
  %y = graph.add %p, %q : f32<2, 4, n, 5>""",
        f"""%p = graph.add %v, %w : f32<4, 3, 3, 3>
  %y = graph.conv %x, %p {{{WINDOW}}} : f32<2, 4, n, 5>""",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_at_every_size(name: str) -> None:
    verdict = compared(*EQUAL[name])
    assert verdict.is_equal, said(verdict)
    assert ": proved (compared at " in said(verdict)
    assert "every size" in verdict.text()


# Sizes at which a relu of the image moved by an expression is another than the relu.
MOVES = {
    "n mod 2": "odd n",
    "n mod 3": "",
    "(n + 1) mod 2": "",
    "n mod 2 * (b mod 2)": "",
    "(b * n) mod 2": "",
    "(b + n) mod 4": "",
    "(n mod 8 + 7) floordiv 8": "all but multiples of 8",
    "1 - (n mod 8 + 7) floordiv 8": "multiples of 8",
    "1 - (n mod 4 + 3) floordiv 4": "multiples of 4",
    "1 - (b mod 16 + 15) floordiv 16": "multiples of 16",
    "(n mod 8) floordiv 7": "n = 7 mod 8",
    "n floordiv 8": "n >= 8",
    "n floordiv 16": "n >= 16",
    "b floordiv 13": "",
    "(n + 5) floordiv 16": "n >= 11",
    "1 floordiv n": "n = 1",
    "1 floordiv b": "b = 1",
    "2 floordiv n - 2 * (1 floordiv n)": "n = 2",
    "2 floordiv b - 2 * (1 floordiv b)": "b = 2",
    "3 floordiv n - (2 floordiv n)": "n = 1, n = 3",
    "1 floordiv (b * n)": "b = n = 1",
    "1 floordiv (b + n - 1)": "b = n = 1",
    "b floordiv n": "n <= b",
}


@pytest.mark.parametrize("e", MOVES)
def test_wrong_at_some_sizes(e: str) -> None:
    guards = ("b >= 1", "n >= 1", f"{e} >= 0")
    verdict = compared("x: f32<b, n>", "f32<b, n>", IDENTITY, moved(f"({e})"), guards)
    assert verdict.kind == "different", said(verdict)


def beside(columns: int) -> str:
    """A relu of an image and what is that many columns before: 0 in a smaller image."""
    return f"""
  %p = graph.pad %x {{pads = [0, {columns}, 0, 0]}} : f32<b, n + {columns}>
  %s = graph.slice %p {{starts = [0, 0], sizes = [b, n], steps = [1, 1]}} : f32<b, n>
  %t = graph.add %x, %s : f32<b, n>
  %y = graph.relu %t : f32<b, n>"""


def in_steps(columns: int, steps: int) -> str:
    """As `beside`, each step on its own: none reaches as far as all of them."""
    lines, last = [], "x"
    for k in range(steps):
        lines.append(f"%p{k} = graph.pad %{last} {{pads = [0, {columns}, 0, 0]}}")
        lines[-1] += f" : f32<b, n + {columns}>"
        lines.append(f"%s{k} = graph.slice %p{k} {{starts = [0, 0], sizes = [b, n],")
        lines[-1] += " steps = [1, 1]} : f32<b, n>"
        last = f"s{k}"
    lines.append(f"%t = graph.add %x, %{last} : f32<b, n>")
    return "\n".join([*lines, "%y = graph.relu %t : f32<b, n>"])


WRONG = {
    "50 columns away": ("x: f32<b, n>", "f32<b, n>", IDENTITY, beside(50)),
    # Farther than any size drawn before it is known how far scopes reach.
    "300 columns away": ("x: f32<b, n>", "f32<b, n>", IDENTITY, beside(300)),
    "a mean of four": (
        "x: f32<n, 8>",
        "f32<1, 8>",
        "%y = graph.reduce_mean %x {axes = [0]} : f32<1, 8>",
        """%s = graph.reduce_sum %x {axes = [0]} : f32<1, 8>
  %c = graph.constant dense<0.25> : f32<1, 8>
  %y = graph.mul %s, %c : f32<1, 8>""",
    ),
    "rows read as columns": (
        "x: f32<b, n>",
        "f32<n, b>",
        "%y = graph.transpose %x {perm = [1, 0]} : f32<n, b>",
        "%y = graph.reshape %x {shape = [n, b]} : f32<n, b>",
    ),
    "a batch of one": (
        "x: f32<b, 8>",
        "f32<b, 8>",
        "%y = graph.relu %x : f32<b, 8>",
        """%s = graph.slice %x {starts = [0, 0], sizes = [1, 8], steps = [1, 1]} : f32<1, 8>
  %r = graph.reshape %s {shape = [8]} : f32<8>
  %t = graph.broadcast %r {shape = [b, 8], dims = [1]} : f32<b, 8>
  %y = graph.relu %t : f32<b, 8>""",
    ),
    "halves of a pool": (
        "x: f32<b, 2, n, m>",
        "f32<b, 2, (n + 1) floordiv 2, m>",
        f"""%y = graph.max_pool %x {{{POOL}, pads = [0, 0, 1, 0]}} : {HALF}""",
        f"""%p = graph.pad %x {{pads = [0, 0, 0, 0, 0, 0, 1, 0]}} : f32<b, 2, n + 1, m>
  %y = graph.max_pool %p {{{POOL}, pads = [0, 0, 0, 0]}} : {HALF}""",
    ),
    "the first rows twice": (
        "x: f32<b, n>",
        "f32<2 * b, n>",
        "%y = graph.concat %x, %x {axis = 0} : f32<2 * b, n>",
        """%r = graph.reshape %x {shape = [b, 1, n]} : f32<b, 1, n>
  %c = graph.concat %r, %r {axis = 1} : f32<b, 2, n>
  %y = graph.reshape %c {shape = [2 * b, n]} : f32<2 * b, n>""",
    ),
    "a softmax of the other dim": (
        "x: f32<n, n>",
        "f32<n, n>",
        "%y = graph.softmax %x {axis = 0} : f32<n, n>",
        "%y = graph.softmax %x {axis = 1} : f32<n, n>",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_different(name: str) -> None:
    verdict = compared(*WRONG[name])
    assert verdict.kind == "different", said(verdict)
    assert " at " in verdict.text().split(":")[0]


def test_what_reaches_far_in_steps_is_not_called_equal() -> None:
    """They differ from 301 columns on, and no size drawn first is so large."""
    verdict = compared("x: f32<b, n>", "f32<b, n>", IDENTITY, in_steps(100, 3))
    assert not verdict.is_equal, said(verdict)


def opened(method: str, *statements: tuple[str, ...]) -> list[int]:
    """The proofs that need opening, of one proof at each of several sizes."""
    draws = [
        all_sizes._Draw({}, [Proof(True, method, statements=said)], {}, {})  # pyright: ignore[reportPrivateUsage]
        for said in statements
    ]
    return all_sizes._need_opening(draws)  # pyright: ignore[reportPrivateUsage]


def test_a_mean_of_means() -> None:
    """The coefficient 1 / (b * n) is another at each size; both sides have it."""
    verdict = compared(
        "x: f32<b, n>",
        "f32<1, 1>",
        "%y = graph.reduce_mean %x {axes = [0, 1]} : f32<1, 1>",
        """%r = graph.reduce_mean %x {axes = [1]} : f32<b, 1>
  %y = graph.reduce_mean %r {axes = [0]} : f32<1, 1>""",
        ("b >= 1", "n >= 1"),
    )
    assert verdict.kind == "equal", said(verdict)


def test_proofs_that_state_the_same_are_one() -> None:
    assert opened("field, full", ("a",), ("a",)) == []
    assert opened("field, full", ("a", "c"), ("b", "c")) == [0]
    assert opened("symbolic", ("a",), ("b",)) == [0]  # one form at each size
    for method, *statements in (
        ("field, full", ("a",), ("b",)),
        ("field, full", ("a", "c"), ("b", "d")),
        ("symbolic, full", ("a", "c"), ("b", "d")),
        ("symbolic", ("a", "c"), ("b",)),
        ("coefficients", (), ()),
    ):
        with pytest.raises(Exception, match="depends on the size"):
            opened(method, *statements)


ONNX = """g (float[batch, 4] x) => (float[batch, 4] y)
    <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{
    shape = Shape(x)
    batch = Slice(shape, zero, one)
    is_one = Equal(batch, one)
    factor = Where(is_one, {factor}, one)
    number = Cast<to = 1>(factor)
    y = Mul(x, number)
}}"""


def onnx_family(folder: Path, factor: str) -> ProgramFamily:
    text = f'<ir_version: 8, opset_import: ["" : 18]> {ONNX.format(factor=factor)}'
    path = folder / f"{factor}.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return family_of(load(path))


@pytest.mark.parametrize("factor, kind", [("one", "equal"), ("two", "different")])
def test_sizes_that_are_another_import(tmp_path: Path, factor: str, kind: str) -> None:
    """The import at other sizes has the guard that the batch is not 1."""
    pair = onnx_family(tmp_path, "one"), onnx_family(tmp_path, factor)
    assert not pair[1].holds({"batch": 1}) and pair[1].holds({"batch": 2})
    verdict = compare_at_all_sizes(*pair, seed=5)
    assert verdict.kind == kind, said(verdict)
    assert ("Different at batch=1: " in said(verdict)) == (kind == "different")
    if kind == "equal":
        assert verdict.sizes is not None and not verdict.sizes.guards
