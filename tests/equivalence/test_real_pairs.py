"""Programs as exporters and optimisers write them: scripts/verify_pairs.py's kinds, in small.

`transformer` has two forms of one block: as torch traces it; and as onnxruntime's extended
optimiser and scaled_dot_product_attention write it.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.passes.equivalence import compare

LENGTH, WIDTH, HEADS = 6, 8, 2
EACH = WIDTH // HEADS


def weights(changes: Mapping[str, Any]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    shapes = {f"w{p}": (WIDTH, WIDTH) for p in "qkvo"} | {f"b{p}": (WIDTH,) for p in "qkvo"}
    shapes |= {"up": (WIDTH, 16), "bup": (16,), "down": (16, WIDTH)}
    shapes |= {f"n{k}": (WIDTH,) for k in range(4)}
    made = {n: rng.normal(size=s).astype(np.float32) / 2 for n, s in shapes.items()}
    for name, change in changes.items():
        made[name] = change(made[name].copy()).astype(np.float32)
    return made


def transformer(
    merged: bool, *, causal: bool = False, scale: float = 1.0, shift: int = 1, **changes: Any
) -> Program:
    """A block before norms: `merged` joins the weights of q, k and v, splits the scale, adds masks.

    Each side rounds its own scale to float32, so that they differ in the last place.
    """
    w, b = weights(changes), GraphBuilder()
    x = b.input("x", (LENGTH, WIDTH))
    norm = b.layer_norm(x, b.weight("n0", w["n0"]), b.weight("n1", w["n1"]), axis=1, epsilon=1e-5)
    if merged:
        joined = [np.concatenate([w[f"{p}{k}"] for k in "qkv"], axis=-1) for p in "wb"]
        product = plus(b, b.matmul(norm, b.weight("w", joined[0])), b.weight("b", joined[1]))
        parts = b.split(product, axis=1, sizes=[WIDTH] * 3)
    else:
        parts = [
            plus(b, b.matmul(norm, b.weight(f"w{p}", w[f"w{p}"])), b.weight(f"b{p}", w[f"b{p}"]))
            for p in "qkv"
        ]
    q, k, v = (
        b.transpose(b.reshape(p, shape=[LENGTH, HEADS, EACH]), perm=[1, 0, 2]) for p in parts
    )
    y = b.matmul(b.softmax(scores(b, q, k, merged, causal, scale, shift), axis=2), v)
    y = b.reshape(b.transpose(y, perm=[1, 0, 2]), shape=[LENGTH, WIDTH])
    x = b.add(x, plus(b, b.matmul(y, b.weight("wo", w["wo"])), b.weight("bo", w["bo"])))
    norm = b.layer_norm(x, b.weight("n2", w["n2"]), b.weight("n3", w["n3"]), axis=1, epsilon=1e-5)
    up = plus(b, b.matmul(norm, b.weight("up", w["up"])), b.weight("bup", w["bup"]))
    b.output("y", b.add(x, b.matmul(gelu(b, up, merged), b.weight("down", w["down"]))))
    return b.build()


def scores(
    b: GraphBuilder, q: Any, k: Any, merged: bool, causal: bool, scale: float, shift: int
) -> Any:
    hidden = np.triu(np.ones((LENGTH, LENGTH), bool), shift)
    if merged:
        root = np.float32(math.sqrt(np.float32(scale / math.sqrt(EACH + 1))))
        q, k = (b.mul(part, spread(b, b.constant(root), part)) for part in (q, k))
        made = b.matmul(q, k, transpose_b=True)
        mask = np.where(hidden, -np.inf, 0.0).astype(np.float32)
        return plus(b, made, b.weight("mask", mask)) if causal else made
    made = b.matmul(q, k, transpose_b=True)
    made = b.div(made, spread(b, b.constant(np.float32(math.sqrt(EACH + 1))), made))
    lowest = spread(b, b.constant(np.float32(-np.inf)), made)
    mask = spread(b, b.weight("hidden", hidden), made)
    return b.where(mask, lowest, made) if causal else made


def gelu(b: GraphBuilder, x: Any, merged: bool) -> Any:
    half, one, root = (
        spread(b, b.constant(np.float32(v)), x)
        for v in (0.5, 1.0, math.sqrt(0.5) if merged else math.sqrt(2.0))
    )
    if merged:
        return b.mul(b.mul(x, half), b.add(b.erf(b.mul(x, root)), one))
    return b.mul(b.mul(x, b.add(b.erf(b.div(x, root)), one)), half)


def test_a_transformer_block_is_what_an_optimiser_makes_of_it() -> None:
    for first, second in ((False, True), (True, False)):
        verdict = compare(transformer(first), transformer(second))
        assert verdict.is_equal, verdict.text()
        assert {a.name for a in verdict.assumptions} <= {"rounded-literal", "inferred-folding"}


def plus(b: GraphBuilder, x: Any, y: Any) -> Any:
    return b.add(x, spread(b, y, x))


def spread(b: GraphBuilder, y: Any, like: Any) -> Any:
    shape = like.type.get_shape()
    own = y.type.get_shape()
    axes = list(range(len(shape) - len(own), len(shape)))
    return b.broadcast(y, shape=list(shape), dims=axes)


@pytest.mark.parametrize("merged", [False, True])
def test_an_infinite_mask_is_added_or_chosen(merged: bool) -> None:
    first, second = (transformer(m, causal=True) for m in (merged, not merged))
    verdict = compare(first, second)
    assert verdict.is_equal, verdict.text()
    assert "infinite-mask" in {a.name for a in verdict.assumptions}
    assert compare(first, transformer(not merged, causal=True, shift=2)).kind == "different"


def off_by(position: int) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        array.flat[position] += 1e-4
        return array

    return change


FAULTS: dict[str, dict[str, Any]] = {
    "bias off by 1e-4": {"bup": off_by(3)},
    "weight off by 1e-4": {"wk": off_by(9)},
    "square weight transposed": {"wo": np.transpose},
    "scale": {"scale": 1.001},
    "heads exchanged": {"wv": lambda a: np.roll(a, EACH, axis=1)},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_it_is_a_difference_with_its_position(fault: str) -> None:
    verdict = compare(transformer(False), transformer(True, **FAULTS[fault]))
    assert verdict.kind == "different", verdict.text()
    assert verdict.difference is not None and verdict.difference.inside


def test_rounded_constants_alone_are_no_difference() -> None:
    """Each weight moved by a few units of its last place: nothing is known, and nothing claimed."""
    rng = np.random.default_rng(0)

    def moved(array: np.ndarray) -> np.ndarray:
        return array * (1 + rng.integers(-20, 21, array.shape) * 2.0**-24)

    verdict = compare(transformer(False), transformer(True, wk=moved, up=moved))
    assert verdict.kind != "different", verdict.text()


def halved(to_half: bool) -> Program:
    from isoform.dialects.types import f16, f32

    b = GraphBuilder()
    x = b.input("x", (4, 8))
    w = np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32)
    x = b.cast(x, to=f16) if to_half else x
    y = b.matmul(x, b.weight("w", w.astype(np.float16) if to_half else w))
    b.output("y", b.cast(y, to=f32) if to_half else y)
    return b.build()


def test_float16_is_different_and_the_words_say_so() -> None:
    for first, second, which in ((False, True, "second"), (True, False, "first")):
        verdict = compare(halved(first), halved(second))
        assert verdict.kind == "different"
        assert f"the {which} program computes in float16" in verdict.text()
