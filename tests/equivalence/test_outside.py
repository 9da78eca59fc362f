"""Pairs as someone outside would try them: near misses in dtypes, integers, constants and nodes."""

import numpy as np
import onnx
import pytest

from isoform.dialects.program import Program
from isoform.lowering.onnx_to_graph.importer import import_onnx
from isoform.passes.equivalence import compare

RNG = np.random.default_rng(5)
LEVELS = RNG.integers(-127, 128, (8, 8)).astype(np.int8)
HALVES = RNG.normal(size=(8, 8)).astype(np.float16)
BIAS = RNG.normal(size=8).astype(np.float16)
HEAD = '<ir_version: 9, opset_import: ["" : 20]>\n'
FLOATS = "g (float[2,8] x) => (float[2,8] y)"
SHORT = "g (float16[2,8] x) => (float16[2,8] y)"
PRODUCT = "y = MatMul (x, w)"
LINE = "t = MatMul (x, w) y = Add (t, b)"


def at(position: int, other: float, array: np.ndarray) -> np.ndarray:
    """The array with one number multiplied."""
    factor = np.where(np.arange(array.size) == position, other, 1.0).reshape(array.shape)
    return (array * factor).astype(array.dtype)


def imported(signature: str, body: str, data: dict[str, np.ndarray]) -> Program:
    model = onnx.parser.parse_model(f"{HEAD}{signature} {{ {body} }}")
    tensors = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in data.items()]
    model.graph.initializer.extend(tensors)
    return import_onnx(model)


Side = tuple[str, dict[str, np.ndarray]]
DEQUANTISED = "w = DequantizeLinear (q, s) y = MatMul (x, w)"
STEP = np.float32(0.01)
LONG = LEVELS.astype(np.float32) * STEP
# What may be said of each pair.
PAIRS: dict[str, tuple[str, Side, Side, set[str]]] = {
    "a level of a quantised weight": (
        FLOATS,
        (DEQUANTISED, {"q": LEVELS, "s": np.asarray(STEP)}),
        (PRODUCT, {"w": LONG + STEP * (np.arange(64).reshape(8, 8) == 9)}),
        {"different"},
    ),
    "a quantised weight and its numbers": (
        FLOATS,
        (DEQUANTISED, {"q": LEVELS, "s": np.asarray(STEP)}),
        (PRODUCT, {"w": LONG}),
        {"equal", "equal-up-to-folding", "unknown"},
    ),
    "the bytes of a weight read unsigned": (
        FLOATS,
        ("w = Cast <to = 1> (q) y = MatMul (x, w)", {"q": LEVELS}),
        ("w = Cast <to = 1> (q) y = MatMul (x, w)", {"q": LEVELS.view(np.uint8)}),
        {"different"},
    ),
    "a weight rounded to float16": (
        FLOATS,
        (PRODUCT, {"w": LONG}),
        ("w = Cast <to = 1> (v) y = MatMul (x, w)", {"v": LONG.astype(np.float16)}),
        {"different"},
    ),
    "a float16 weight's sign": (
        SHORT,
        (PRODUCT, {"w": HALVES}),
        (PRODUCT, {"w": at(13, -1, HALVES)}),
        {"different"},
    ),
    "a float16 bias off by 5 in a hundred": (
        SHORT,
        (LINE, {"w": HALVES, "b": BIAS}),
        (LINE, {"w": HALVES, "b": at(3, 1.05, BIAS)}),
        {"different"},
    ),
    "float16 in float32 and back": (
        SHORT,
        ("y = Softmax (x)", {}),
        ("u = Cast <to = 1> (x) v = Softmax (u) y = Cast <to = 10> (v)", {}),
        {"equal", "unknown"},
    ),
    "the absolute value of the least int8": (
        "g (int8[4,5] x) => (float[4,5] y)",
        ("t = Abs (x) y = Cast <to = 1> (t)", {}),
        ("t = Cast <to = 1> (x) y = Abs (t)", {}),
        {"different"},
    ),
    "bits shifted out": (
        "g (uint8[4,5] x) => (uint8[4,5] y)",
        (
            'c = Constant <value = uint8 {2}> () t = BitShift <direction = "LEFT"> (x, c) '
            'y = BitShift <direction = "RIGHT"> (t, c)',
            {},
        ),
        ("y = Identity (x)", {}),
        {"different"},
    ),
    "0 and -0 divided by": (
        FLOATS,
        ("t = Mul (x, z) y = Div (o, t)", {"z": np.float32([0]), "o": np.float32([1])}),
        ("t = Mul (x, z) y = Div (o, t)", {"z": np.float32([-0.0]), "o": np.float32([1])}),
        {"different", "unknown"},
    ),
    "a maximum with NaN": (
        FLOATS,
        ("y = Max (x, n)", {"n": np.float32([np.nan])}),
        ("y = Identity (x)", {}),
        {"different", "unknown"},
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_gets_no_verdict_that_it_is_not_owed(name: str) -> None:
    signature, one, other, owed = PAIRS[name]
    first, second = (imported(signature, *side) for side in (one, other))
    for pair in ((first, second), (second, first)):
        verdict = compare(*pair, budget=300)
        assert verdict.kind in owed, verdict.text()
