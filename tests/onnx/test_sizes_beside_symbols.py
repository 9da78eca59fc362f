"""Models with dynamic dims whose data decide sizes: they are imported for each shape."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.random_nodes.judge import difference, run_plain

import isoform

KEPT = "a = Relu(x) q = NonZero(a) t = Transpose(q) v = GatherND(x, t)"
POSITIVE = "m = Greater(x, nought) c = Cast<to = 7>(m) n = ReduceSum<keepdims = 0>(c)"
MODELS = {
    "sum": ("float", f"{KEPT} y = ReduceSum<keepdims = 0>(v)"),
    "sorted": ("float[k]", f"{KEPT} s = Shape(v) l = Min(s, two) y, i = TopK(v, l)"),
    "scattered": ("float[N, 4]", f"{KEPT} e = Exp(v) y = ScatterND(x, t, e)"),
    "range": ("int64[k]", f"{POSITIVE} y = Range(naught, n, single)"),
    "slice": ("float[k, 4]", f"{POSITIVE} e = Reshape(n, one) y = Slice(x, naughts, e, naughts)"),
    "rows": (
        "float[k, N, 4]",
        POSITIVE
        + """ s, y = Loop(n, "", x) <body = b (int64 i, bool on, float[N, 4] s0) =>
        (bool go, float[N, 4] r, float[N, 4] u) { go = Identity(on) r = Tanh(s0) u = Neg(r) }>""",
    ),
    "scanned": (  # 9 and 15 steps: a loop, which has no number of steps that is a symbol
        "float[k, 4]",
        """w = Concat<axis = 0>(x, x, x) s = ReduceMax<keepdims = 0>(x, naughts)
        l, y = Scan <num_scan_inputs = 1, body = b (float[4] s0, float[4] r) =>
        (float[4] s1, float[4] u) { s1 = Add(s0, r) u = Tanh(s1) }>(s, w)""",
    ),
    "recurrent": (
        "float[k, 1, p, 1]",
        """w = Concat<axis = 0>(x, x, x) u = Unsqueeze(w, two)
        y = RNN <hidden_size = 1> (u, h, h)""",
    ),
    "branches": (
        "float[k, 4]",
        """s = ReduceSum<keepdims = 0>(x) c = Less(s, nought)
        y = If (c) <then_branch = t0 () => (float[p, 4] e) { e = Concat<axis = 0>(x, x) },
                    else_branch = f0 () => (float[q0, 4] o) { o = Exp(x) }>""",
    ),
}
NUMBERS = """<float nought = {0}, int64 naught = {0}, int64 single = {1}, int64[1] one = {1},
    int64[1] two = {2}, int64[1] naughts = {0}, float[1, 1, 1] h = {0.5}>"""


@pytest.mark.parametrize("name", MODELS)
def test_each_shape_is_right(name: str, tmp_path: Path) -> None:
    kind, nodes = MODELS[name]
    text = f"g (float[N, 4] x) => ({kind} y) {NUMBERS} {{ {nodes} }}"
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    onnx.save(model, tmp_path / "m.onnx")
    session = isoform.compile(isoform.load(tmp_path / "m.onnx"), threads=1, effort="quick")
    for rows in (3, 5):
        for seed in range(2):
            rng = np.random.default_rng(seed)
            feeds: dict[str, Any] = {"x": rng.standard_normal((rows, 4)).astype(np.float32)}
            wanted = run_plain(model, feeds)["y"]
            assert difference(session(**feeds)["y"], wanted, 1e-5) == "", (rows, seed)
