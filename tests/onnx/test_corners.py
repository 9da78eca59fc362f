"""Corners of single ops, where a rule is easily applied one step too early or too late."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from isoform.dialects import reference
from isoform.dialects.types import Array
from isoform.lowering.onnx_to_graph import import_onnx

RNG = np.random.default_rng(0)


def model(text: str, opset: int) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {text}')


# Negative pads crop first: a torus is that of what they leave.
PAD = """(float[5,6] x) => (float[M,N] y) {{
    p = Constant<value = int64[4] {{{pads}}}>()
    y = Pad<mode = "{mode}">(x, p)
}}"""
# What is asked for beyond the whole result stands at its end, whatever the mode.
TRANSPOSED = """(float[1,2,4,4] x, float[2,1,3,3] w) => (float[M,N,O,P] y) {{
    y = ConvTranspose<output_shape = [10, 8], strides = [2, 2], auto_pad = "{mode}">(x, w)
}}"""
NORM = """(double[2,4,6] x, double[4,6] s) => (double[2,4,6] y, float[2,1,1] m, float[2,1,1] d) {
    y, m, d = LayerNormalization<axis = 1>(x, s)
}"""
CASES: dict[str, tuple[str, int]] = {
    **{
        f"pad-{mode}-{pads}": (PAD.format(mode=mode, pads=pads), 19)
        for mode in ("edge", "wrap")
        for pads in ("-1,3,2,-2", "2,-3,-2,4", "-3,-2,5,0")
    },
    **{
        f"transposed-{mode}": (TRANSPOSED.format(mode=mode), 11)
        for mode in ("NOTSET", "SAME_UPPER", "SAME_LOWER")
    },
    "mean-of-doubles-is-float": (NORM, 17),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_onnxruntime(name: str) -> None:
    built = model(*CASES[name])
    peer = ort.InferenceSession(built.SerializeToString())
    feeds = {
        i.name: RNG.standard_normal(i.shape).astype(np.float32 if "float" in i.type else np.float64)
        for i in peer.get_inputs()
    }
    program = import_onnx(built)
    found = reference.run(program, feeds)
    for info, wanted in zip(peer.get_outputs(), peer.run(None, feeds), strict=True):
        assert "f32" in str(program.outputs[info.name].element_type) or "double" in info.type
        np.testing.assert_allclose(found[info.name], np.asarray(wanted), rtol=1e-5, atol=1e-6)


def test_a_group_norm_of_doubles_normalises_in_float32() -> None:
    """So `stash_type` says; 1e9 and 1e9 + 1 are one number there."""
    text = """(double[1,2,2] x, double[2] s, double[2] b) => (double[1,2,2] y) {
        y = GroupNormalization<num_groups = 2%s>(x, s, b)
    }"""
    feeds: dict[str, Array] = {"x": np.array([[[1e9, 1e9 + 1], [0.0, 2.0]]])}
    feeds |= {"s": np.ones(2), "b": np.zeros(2)}
    single = reference.run(import_onnx(model(text % "", 21)), feeds)["y"]
    wide = reference.run(import_onnx(model(text % ", stash_type = 11", 21)), feeds)["y"]
    np.testing.assert_allclose(single[0], [[0, 0], [-1, 1]], atol=1e-4)
    np.testing.assert_allclose(wide[0], [[-1, 1], [-1, 1]], atol=1e-4)


@pytest.mark.parametrize("given", ["fed", "known"])
def test_a_cast_to_few_bits_rounds_to_even_and_wraps(given: str) -> None:
    """As ONNX's page on integers of 4 bits says; a cast to wider ones truncates."""
    numbers = [0.4, 0.6, 1.5, 2.5, -1.7, 7.6, -9.0]
    constant = (
        f"x = Constant<value = float[7] {{{str(numbers)[1:-1]}}}>()" if given == "known" else ""
    )
    text = f"""({"" if constant else "float[7] x"}) => (int8[7] y, int8[7] z, int8[7] w) {{
        {constant}
        few = Cast<to = 22>(x)
        y = Cast<to = 3>(few)
        like = CastLike(x, few)
        z = Cast<to = 3>(like)
        w = Cast<to = 3>(x)
    }}"""
    feeds = {} if constant else {"x": np.array(numbers, np.float32)}
    found = reference.run(import_onnx(model(text, 21)), feeds)
    assert found["y"].tolist() == found["z"].tolist() == [0, 1, 2, 2, -2, -8, 7]
    assert found["w"].tolist() == [0, 0, 1, 2, -1, 7, -9]
