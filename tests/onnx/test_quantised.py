"""Quantised ops agree with onnxruntime on random settings, its own domain's too.

Where the specification fixes the result, results are the same bit for bit. onnxruntime computes
some ops of its domain in other steps: those may differ by one.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.random_nodes import contributed, quantised
from support.random_nodes.draw import Draw, Generator
from support.random_nodes.judge import disagreement, verdict

from isoform.dialects import reference
from isoform.lowering.onnx_to_graph import import_onnx


def failures(draw: Generator, way: str, seeds: range) -> list[str]:
    found = [(seed, verdict(draw(Draw(seed)), way)) for seed in seeds]
    assert "agrees" in {v for _, v in found}, found[0]
    return [f"seed {s}: {v}" for s, v in found if not v.startswith(("agrees", "no kernel"))]


@pytest.mark.parametrize("op", contributed.GENERATORS)
def test_a_contributed_op_computes_what_onnxruntime_does(op: str) -> None:
    draw = contributed.GENERATORS[op]
    assert failures(draw, "reference", range(6)) == []
    assert failures(draw, "compiled", range(6, 7)) == []


@pytest.mark.slow
@pytest.mark.parametrize("op", contributed.GENERATORS)
def test_many_contributed_ops_agree(op: str) -> None:
    draw = contributed.GENERATORS[op]
    assert failures(draw, "reference", range(300)) == []
    assert failures(draw, "compiled", range(20)) == []


def test_results_of_an_op_that_nothing_fixes_may_be_one_step_off() -> None:
    """And no more; those of an op that ONNX specifies may not."""
    want = {"y0": np.array([0, 7, 255], np.uint8)}
    off = {by: {"y0": np.array([by, 7, 255], np.uint8)} for by in (1, 2)}
    free = contributed.GENERATORS["QLinearMul"](Draw(0))
    assert not disagreement(free, off[1], want) and disagreement(free, off[2], want)
    assert disagreement(quantised.GENERATORS["QLinearConv"](Draw(0)), off[1], want)


@pytest.mark.parametrize("op", quantised.GENERATORS)
def test_a_compiled_op_is_the_same_bit_for_bit(op: str) -> None:
    for seed in range(2):
        assert verdict(quantised.GENERATORS[op](Draw(100 + seed)), "compiled") in ("agrees",)


def test_numbers_of_4_bits_are_inputs_and_results() -> None:
    import ml_dtypes
    import onnx

    import isoform

    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (uint4[5] x, float s) => (uint4[5] z, int4[5] c, float[5] y) {
        y = DequantizeLinear(x, s) z = QuantizeLinear <output_dtype = 21> (y, s)
        w = Neg(y) c = Cast <to = 22> (w)
    }"""
    program = import_onnx(onnx.parser.parse_model(text))
    x = np.array([0, 3, 9, 15, 8], ml_dtypes.uint4)
    for found in (
        reference.run(program, {"x": x, "s": np.array(0.5, np.float32)}),
        isoform.compile(program, threads=1, effort="quick")(x=x, s=np.array(0.5, np.float32)),
    ):
        assert np.array_equal(found["y"], [0, 1.5, 4.5, 7.5, 4])
        assert np.array_equal(np.asarray(found["z"]).astype(int), [0, 3, 9, 15, 8])
        # Rounded, ties to even: -1.5, -4.5, -7.5.
        assert np.array_equal(np.asarray(found["c"]).astype(int), [0, -2, -4, -8, -4])


def test_the_scale_says_how_a_quantiser_divides() -> None:
    """ONNX 23: "the type of `y_scale` determines the precision of the division"."""
    import onnx

    import isoform

    text = """<ir_version: 10, opset_import: ["" : 23]>
    g (float[400] x, float16[400] h, float s, float16 t) => (int8[400] y, int8[400] z)
        <int8 zero = {-3}> { y = QuantizeLinear(x, t, zero) z = QuantizeLinear(h, s, zero) }"""
    x = np.random.default_rng(7).normal(scale=30, size=400).astype(np.float32)
    h, s, t = x.astype(np.float16), np.float32(0.3), np.float16(0.3)
    session = isoform.compile(import_onnx(onnx.parser.parse_model(text)), threads=1, effort="quick")
    found = session(x=x, h=h, s=np.asarray(s), t=np.asarray(t))
    for name, quotient in (("y", h / t), ("z", h.astype(np.float32) / s)):
        wanted = np.clip(np.rint(quotient).astype(np.float32) - 3, -128, 127)
        assert np.array_equal(found[name], wanted), name


PRODUCTS = {op: draw for op, draw in contributed.PRODUCTS.items() if not draw(Draw(0)).domain}


@pytest.mark.parametrize("op", PRODUCTS)
def test_products_of_bytes_are_exact(op: str) -> None:
    """Of all signs and zero points, padded, in groups: onnxruntime's numbers, bit for bit."""
    assert failures(PRODUCTS[op], "compiled", range(6)) == []


@pytest.mark.slow
@pytest.mark.parametrize("op", PRODUCTS)
def test_many_products_of_bytes_are_exact(op: str) -> None:
    assert failures(PRODUCTS[op], "compiled", range(500)) == []
