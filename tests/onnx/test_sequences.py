"""Sequences and optionals as inputs and outputs of a model: a tensor for each entry."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import isoform
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx
from isoform.lowering.onnx_to_graph.import_survey import Survey
from isoform.lowering.onnx_to_graph.loading import load_model


def model(text: str, opset: int = 17) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')


PAIRS = """g (seq(float[n, 2]) x, float[2] z) => (seq(float[m, 2]) y, int64 count) {
    y = SequenceMap(x, z) <body = b (float[n, 2] p, float[2] q) => (float[n, 2] r)
        { r = Mul(p, q) }>
    count = SequenceLength(x)
}"""


def test_each_tensor_of_a_sequence_is_an_input_and_an_output() -> None:
    program = import_onnx(model(PAIRS), {"x.0": [3, 2], "x.1": [1, 2]})
    assert list(program.inputs) == ["x.0", "x.1", "z"]
    assert list(program.output_names) == ["y.0", "y.1", "count"]
    rng = np.random.default_rng(0)
    a, b, z = (rng.standard_normal(s).astype(np.float32) for s in ((3, 2), (1, 2), (2,)))
    with isoform.compile(program, threads=1, effort="quick") as session:
        found = session(**{"x.0": a, "x.1": b, "z": z})
    assert np.array_equal(found["y.0"], a * z) and np.array_equal(found["y.1"], b * z)
    assert found["count"] == 2


def test_a_length_alone_is_enough_where_shapes_are_declared() -> None:
    proto = model("""g (seq(float[2]) x) => (float[k] y) <int64 last = {-1}>
        { a = SequenceErase(x, last) y = ConcatFromSequence<axis = 0>(a) }""")
    program = import_onnx(proto, {"x": [3]})
    assert list(program.inputs) == ["x.0", "x.1", "x.2"]
    with pytest.raises(UserError, match="the sequence is empty"):
        import_onnx(proto, {"x": [1]})
    with pytest.raises(UserError, match="outside the sequence"):
        import_onnx(proto, {"x": [0]})


def test_an_optional_input_is_there() -> None:
    proto = model("""g (optional(float[2]) x, optional(seq(float[2])) s)
        => (float[2] y, bool has, optional(seq(float[2])) t)
        { y = OptionalGetElement(x) has = OptionalHasElement(s) t = Identity(s) }""")
    program = import_onnx(proto, {"s": [1]})
    assert list(program.inputs) == ["x", "s.0"]
    assert list(program.output_names) == ["y", "has", "t.0"]


def test_a_condition_of_data_selects_between_sequences_of_one_length() -> None:
    text = """g (bool c, float[2] x) => (seq(float[2]) y) {{
        y = If(c) <then_branch = t () => (seq(float[2]) a) {{ a = SequenceConstruct(x, x) }},
                   else_branch = e () => (seq(float[2]) b) {{ n = Neg(x) {other} }}>
    }}"""
    program = import_onnx(model(text.format(other="b = SequenceConstruct(n, x)")))
    x = np.array([1, -2], np.float32)
    with isoform.compile(program, threads=1, effort="quick") as session:
        for condition, first in ((True, x), (False, -x)):
            found = session(c=np.array(condition), x=x)
            assert np.array_equal(found["y.0"], first) and np.array_equal(found["y.1"], x)
    with pytest.raises(UserError, match="'c' must be a constant"):
        import_onnx(model(text.format(other="b = SequenceConstruct(n)")))


def test_names_that_meet_and_wrong_declarations_are_refused() -> None:
    meeting = 'g (seq(float[2]) x, float[2] "x.0") => (float[2] y) { y = Neg("x.0") }'
    proto = model(meeting.replace('"x.0"', "w"))
    proto.graph.input[1].name = proto.graph.node[0].input[0] = "x.0"
    with pytest.raises(UserError, match=r"two inputs are named 'x\.0'"):
        import_onnx(proto, {"x": [1]})
    with pytest.raises(UserError, match="declared as a sequence, and is a tensor"):
        import_onnx(model("g (float[2] x) => (seq(float[2]) y) { y = Neg(x) }"))


def test_a_survey_reads_sequences_too() -> None:
    survey = Survey(load_model(model(PAIRS)))
    survey.survey({"x": [2]})
    assert survey.flags == ["--shape x.0=1,2", "--shape x.1=1,2"]
    assert not survey.problems
    blind = Survey(load_model(model(PAIRS)))
    blind.survey({})
    assert "its length must be known" in blind.problems[0]


# --- Scan of opset 8 ------------------------------------------------------------------------------

SCAN = """g (float[B, K] s, float[B, T, K] x, float[B, T, M] w) => (float[B, K] r, float[B, T, K] y,
    float[B, T, N] z) {{
    r, y, z = Scan("", s, x, w) <num_scan_inputs = 2, directions = [{directions}],
        body = b (float[K] h, float[K] p, float[M] q) => (float[K] n, float[K] a, float[N] c) {{
            f = Mul(h, p) n = Add(f, p) a = Neg(h) c = Concat<axis = 0>(p, q) }}>
}}"""


@pytest.mark.parametrize("directions", ["0, 0", "1, 0", "0, 1", "1, 1"])
def test_a_batched_scan_agrees_with_onnxruntime(directions: str) -> None:
    text = SCAN.format(directions=directions)
    for name, size in {"B": 3, "T": 4, "K": 2, "M": 1, "N": 3}.items():
        text = text.replace(f"[{name},", f"[{size},").replace(f", {name}]", f", {size}]")
        text = text.replace(f", {name},", f", {size},").replace(f"float[{name}]", f"float[{size}]")
    proto, rng = model(text, 8), np.random.default_rng(0)
    shapes = {"s": (3, 2), "x": (3, 4, 2), "w": (3, 4, 1)}
    feeds: dict[str, Any] = {
        k: rng.standard_normal(n).astype(np.float32) for k, n in shapes.items()
    }
    runtime = onnxruntime.InferenceSession(proto.SerializeToString())
    wanted: Any = runtime.run(None, feeds)
    with isoform.compile(import_onnx(proto), threads=1, effort="quick") as session:
        found = session(**feeds)
    for name, array in zip("ryz", wanted, strict=True):
        np.testing.assert_allclose(found[name], array, rtol=1e-6)
