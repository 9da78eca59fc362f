"""Programs that differ at single points are "different"; rounding at a tie is no difference."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.lowering.onnx_to_graph import import_onnx
from isoform.passes.equivalence import compare, witness
from isoform.passes.equivalence.witness import inputs_of

F, W = "float[3,4]", "int32[3,4]"
FF, II = "float[3,4] x, float[3,4] w", "int32[3,4] x, int32[3,4] w"
HEAD = '<ir_version: 10, opset_import: ["" : 20]> p'


def program(tmp_path: Path, signature: str, body: str) -> Program:
    """A graph of this body, in which `#2.5` is a constant of x's type."""
    words, constants = list[str](), list[str]()
    whole = signature.startswith("int32")
    for word in body.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split():
        if word.startswith("#"):
            name = f"c{len(constants)}"
            kind = "int32" if whole else "float"
            constants.append(f"{name} = Constant <value = {kind} {{{word[1:]}}}> ()")
            word = name
        words.append(word)
    inputs, result = signature.split(" -> ")
    text = f"{HEAD} ({inputs}) => ({result} y) {{ {' '.join([*constants, *words])} }}"
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return import_onnx(path)


DIFFERENT = [
    (f"{F} x -> bool[3,4]", "y = Greater(x, #0.3)", "y = GreaterOrEqual(x, #0.3)"),
    (f"{FF} -> bool[3,4]", "y = Greater(x, w)", "y = GreaterOrEqual(x, w)"),
    (f"{F} x -> {F}", "e = Equal(x, #77.25) y = Where(e, #1, x)", "y = Identity(x)"),
    (f"{F} x -> bool[3,4]", "y = Equal(x, #123456.5)", "y = Less(x, x)"),
    (f"{W} x -> bool[3,4]", "y = Equal(x, #123456)", "y = Equal(x, #123457)"),
    (f"{F} x -> {F}", "y = Round(x)", "a = Add(x, #0.5) y = Floor(a)"),
    (f"{F} x -> {F}", "y = Ceil(x)", "a = Floor(x) y = Add(a, #1)"),
    (
        f"{F} x -> int64[3,1]",
        "y = ArgMax <axis = 1> (x)",
        "y = ArgMax <axis = 1, select_last_index = 1> (x)",
    ),
    (
        f"{F} x -> int64[3,1]",
        "a = Mul(x, #2) y = ArgMin <axis = 1> (a)",
        "y = ArgMin <axis = 1, select_last_index = 1> (x)",
    ),
    (
        f"{F} x -> {F}",
        "a = Mul(x, #2) b = Add(a, #3) e = Equal(b, #10) y = Where(e, #0, x)",
        "y = Identity(x)",
    ),
    (f"{F} x -> bool[3,4]", "f = Floor(x) y = Equal(f, x)", "y = Less(x, x)"),
    (f"{FF} -> bool[3,4]", "y = Equal(x, w)", "y = Less(x, x)"),
    (f"{F} x -> {F}", "y = Sign(x)", "g = Less(x, #0) y = Where(g, #-1, #1)"),
    (f"{F} x -> bool[3,4]", "a = Exp(x) y = Equal(a, #1)", "y = Less(x, x)"),
    (f"{F} x -> bool[3,4]", "a = Abs(x) y = LessOrEqual(a, #4)", "a = Abs(x) y = Less(a, #4)"),
    (
        f"{F} x -> {F}",
        "y = ThresholdedRelu <alpha = 0.75> (x)",
        "g = Less(x, #0.75) y = Where(g, #0, x)",
    ),
    (
        f"{F} x -> {F}",
        "s = ReduceSum(x) e = Equal(s, #100) y = Where(e, #5, x)",
        "y = Identity(x)",
    ),
    (
        f"{FF} -> {F}",
        "g = Greater(x, w) y = Where(g, #2, #3)",
        "g = Less(x, w) y = Where(g, #3, #2)",
    ),
    (
        f"{F} x -> {F}",
        "y = Hardmax <axis = 1> (x)",
        "k = Constant <value = int64[1] {1}> () m = ReduceMax(x, k) e = Equal(x, m) "
        "y = Cast <to = 1> (e)",
    ),
    (f"{W} x -> {W}", "e = Equal(x, #-77) y = Where(e, #0, x)", "y = Identity(x)"),
]

# Equal over the reals, or where real arithmetic does not say; rounding decides on many points.
SAME = [
    (f"{FF} -> bool[3,4]", "y = Greater(x, w)", "y = Less(w, x)"),
    (f"{F} x -> {F}", "e = Equal(x, #77.25) y = Where(e, #77.25, x)", "y = Identity(x)"),
    (f"{F} x -> bool[3,4]", "y = GreaterOrEqual(x, #0.3)", "l = Less(x, #0.3) y = Not(l)"),
    (f"{F} x -> {F}", "y = Floor(x)", "n = Neg(x) c = Ceil(n) y = Neg(c)"),
    (f"{F} x -> int64[3,1]", "y = ArgMax <axis = 1> (x)", "n = Neg(x) y = ArgMin <axis = 1> (n)"),
    (f"{F} x -> {F}", "y = Relu(x)", "g = Greater(x, #0) y = Where(g, x, #0)"),
    (f"{F} x -> {F}", "y = Relu(x)", "y = LeakyRelu <alpha = 0.0> (x)"),
    (
        f"{F} x -> bool[3,4]",
        "n = Neg(x) a = Exp(x) b = Exp(n) m = Mul(a, b) y = GreaterOrEqual(m, #1)",
        "y = LessOrEqual(x, x)",
    ),
    (
        f"{F} x -> bool[1,1]",
        "n = Neg(x) a = Exp(x) b = Exp(n) m = Mul(a, b) k = ReduceMax(m) y = Greater(k, #1)",
        "k = ReduceMax(x) y = Less(k, k)",
    ),
    (
        f"{FF} -> bool[3,4]",
        "a = Exp(x) b = Exp(w) m = Mul(a, b) s = Add(x, w) e = Exp(s) y = Greater(m, e)",
        "y = Less(x, x)",
    ),
    (
        f"{F} x -> {F}",
        "a = Mul(x, #0.1) y = Floor(a)",
        "a = Div(x, #-10) c = Ceil(a) y = Neg(c)",
    ),
    (
        f"{F} x -> {F}",
        "a = Abs(x) s = Sqrt(a) m = Mul(s, s) y = Floor(m)",
        "a = Abs(x) y = Floor(a)",
    ),
    (
        f"{F} x -> {F}",
        "a = Sin(x) b = Cos(x) c = Mul(a, a) d = Mul(b, b) s = Add(c, d) y = Floor(s)",
        "z = Sub(x, x) y = Add(z, #1)",
    ),
    (f"{F} x -> bool[3,4]", "d = Div(#1, x) y = Equal(d, d)", "y = LessOrEqual(x, x)"),
    (f"{F} x -> {F}", "a = Exp(x) l = Log(a) y = Floor(l)", "y = Floor(x)"),
    (f"{F} x -> {F}", "y = Abs(x)", "n = Neg(x) y = Max(x, n)"),
    (f"{F} x -> {F}", "a = Sign(x) y = Mul(a, x)", "y = Abs(x)"),
    (f"{W} x -> {W}", "a = Abs(x) y = Mul(a, a)", "y = Mul(x, x)"),
    (
        f"{II} -> {W}",
        "a = Max(x, w) b = Min(x, w) y = Add(a, b)",
        "y = Add(x, w)",
    ),
    (f"{F} x -> {F}", "y = Clip(x, #-1, #1)", "a = Max(x, #-1) y = Min(a, #1)"),
]


@pytest.fixture(autouse=True)
def few_normal_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "MAX_DRAWS", 6)


@pytest.mark.parametrize(("signature", "one", "other"), DIFFERENT)
def test_programs_that_differ_at_points_alone_are_different(
    tmp_path: Path, signature: str, one: str, other: str
) -> None:
    a, b = (program(tmp_path, signature, body) for body in (one, other))
    found = compare(a, b, seed=3).difference
    assert found is not None
    assert found.witness
    drawn = inputs_of(a, found.seed, found.scale, found.steps, found.pool)
    values = [run(p, drawn)["y"] for p in (a, b)]
    assert tuple(float(v[found.position]) for v in values) == found.values
    assert found.values[0] != found.values[1]
    assert found.positions == np.count_nonzero(values[0] != values[1])


@pytest.mark.parametrize(("signature", "one", "other"), SAME)
def test_what_rounding_or_no_meaning_decides_is_no_difference(
    tmp_path: Path, signature: str, one: str, other: str
) -> None:
    a, b = (program(tmp_path, signature, body) for body in (one, other))
    assert compare(a, b, seed=3).kind != "different"
