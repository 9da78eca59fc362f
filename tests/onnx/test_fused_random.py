"""Fused ops of onnxruntime's domain on random settings, and what is refused of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.random_nodes import fused
from support.random_nodes.draw import Draw, Sample
from support.random_nodes.judge import by_reference, verdict

from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx, regions
from isoform.lowering.onnx_to_graph.fused import FUSED
from isoform.lowering.onnx_to_graph.fused_few_bits import unpacked

DOMAIN = fused.DOMAIN


def failures(op: str, seeds: range) -> list[str]:
    samples = ((seed, fused.GENERATORS[op](Draw(seed))) for seed in seeds)
    found = ((seed, sample, verdict(sample, "reference")) for seed, sample in samples)
    good = ("agrees", "no kernel")
    return [f"{seed}: {text} {sample}" for seed, sample, text in found if not text.startswith(good)]


@pytest.mark.parametrize("op", fused.GENERATORS)
def test_a_fused_op_agrees_with_onnxruntime(op: str) -> None:
    assert failures(op, range(1000, 1012)) == []


@pytest.mark.slow
@pytest.mark.parametrize("op", fused.GENERATORS)
def test_a_fused_op_agrees_with_onnxruntime_on_2000_settings(op: str) -> None:
    assert failures(op, range(3000, 5000)) == []


@pytest.mark.parametrize("op", fused.GENERATORS)
def test_a_compiled_op_agrees(op: str) -> None:
    for seed in (2, 4):
        assert verdict(fused.GENERATORS[op](Draw(seed)), "compiled") == "agrees"


def test_steps_of_an_lstm_of_bytes_are_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "UNROLLED", 1)
    for seed in range(20, 32):
        sample = fused.GENERATORS["DynamicQuantizeLSTM"](Draw(seed))
        assert str(import_onnx(sample.model()).module).count("control.loop") >= 1
        assert verdict(sample, "compiled" if seed % 4 == 0 else "reference") == "agrees", seed


def test_an_order_of_groups_goes_with_zero_points_too() -> None:
    """onnxruntime 1.32 drops them there."""
    d = Draw(5)
    k, n, blocks = 32, 3, 2
    packed = d.rng.integers(0, 255, (n, blocks, 8), "uint8", endpoint=True)
    zeros, scales = d.rng.integers(0, 255, (n,), "uint8"), d.array("float32", [n * blocks])
    order, x = d.rng.integers(0, blocks, k).astype(np.int32), d.array("float32", [2, k])
    sample = Sample("MatMulNBits", [x, packed, scales, zeros, order],
                    {"K": k, "N": n, "bits": 4, "block_size": 16}, 1,
                    constants=[1, 2, 3, 4], domain=DOMAIN)  # fmt: skip
    whole = unpacked(packed, 4).reshape(n, k).astype(np.float64)
    points, by = unpacked(zeros[:, None], 4)[:, order], scales.reshape(n, blocks)[:, order]
    np.testing.assert_allclose(by_reference(sample)["y0"], x @ ((whole - points) * by).T, rtol=1e-5)


def test_packed_queries_keys_and_values_are_taken_apart() -> None:
    """onnxruntime has no CPU kernel for this form."""
    d, heads, size = Draw(3), 2, 3
    parts = [d.array("float32", [2, 4, heads, size]) for _ in range(3)]
    apart = Sample("MultiHeadAttention", [p.reshape(2, 4, -1) for p in parts],
                   {"num_heads": heads}, 1, domain=DOMAIN)  # fmt: skip
    packed = Sample("MultiHeadAttention", [np.stack(parts, 3), None, None],
                    {"num_heads": heads}, 1, domain=DOMAIN)  # fmt: skip
    assert verdict(apart, "reference") == "agrees"
    np.testing.assert_allclose(by_reference(packed)["y0"], by_reference(apart)["y0"], rtol=1e-6)


def changed(op: str, seed: int, attributes: dict[str, Any], **inputs: Any) -> Sample:
    sample = fused.GENERATORS[op](Draw(seed))
    operands = [*sample.inputs, *[None] * (17 - len(sample.inputs))]
    for name, value in inputs.items():
        operands[int(name.removeprefix("x"))] = value
    given = {**sample.attributes, **attributes}
    return Sample(op, operands, given, 1, sample.outputs, sample.constants, DOMAIN)


ONES = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (changed("GroupQueryAttention", 0, {}, x11=ONES), "sinks"),
        (changed("GroupQueryAttention", 0, {}, x12=ONES), "a quantised cache"),
        (changed("GroupQueryAttention", 0, {"smooth_softmax": 1}), "'smooth_softmax' is not"),
        (changed("GroupQueryAttention", 0, {}, x6=np.asarray(99, np.int32)), "longer than the"),
        (changed("MultiHeadAttention", 0, {}, x8=np.ones(1, np.int32)), "a shared buffer"),
        (changed("MultiHeadAttention", 0, {}, x4=np.ones(77, np.int32)), "a mask of this shape"),
        (changed("Attention", 0, {"do_rotary": 1}), "rotation"),
        (changed("DynamicQuantizeLSTM", 0, {}, x4=np.ones(3, np.int32)), "lengths"),
        (changed("DynamicQuantizeLSTM", 0, {"activations": ["Elu"] * 6}), "other activations"),
        (changed("DynamicQuantizeLSTM", 0, {"direction": "up"}), "direction is forward"),
        (changed("RotaryEmbedding", 0, {"is_packed_batching": 1}), "packed batches"),
    ],
)
def test_what_is_not_supported_is_one_line(sample: Sample, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        import_onnx(sample.model())
    assert "\n" not in str(error.value)


def test_every_fused_op_stands_in_the_table() -> None:
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "onnxruntime-ops.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    listed = {name.strip().strip("`") for row in rows for name in row.split(",")}
    assert FUSED.keys() <= listed, FUSED.keys() - listed
