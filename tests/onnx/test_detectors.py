"""What detectors do with the boxes they keep: as many as the data say."""

from typing import Any

import numpy as np
import onnx
import pytest
from support.random_nodes.judge import difference, run_plain

import isoform
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx

KEPT = "m = Greater(s, th) q = NonZero(m) k = Squeeze(q, z) bb = Gather(b, k) ss = Gather(s, k)"
TAILS = {
    "suppressed": ("float[n,4]", """b1 = Unsqueeze(bb, z) s1 = Unsqueeze(ss, zo)
        c = NonMaxSuppression(b1, s1, hundred, iou) i = Gather<axis = 1>(c, two)
        j = Slice(i, z, ten) y = Gather(bb, j)"""),
    "moved by their class": ("float[n,4]", """p = Pad(bb, front) g = ReduceMax<keepdims = 0>(p)
        f = Cast<to = 1>(k) o = Mul(f, g) u = Unsqueeze(o, one) y = Add(bb, u)"""),
    "the best ten": ("float[n,4]", """h = Shape(ss) c = Concat<axis = 0>(h, ten) r = ReduceMin(c)
        v, i = TopK(ss, r) y = Gather(bb, i)"""),
    "numbered": ("float[n]", """h = Shape(ss) n = Squeeze(h, z) a = Range(naught, n, single)
        f = Cast<to = 1>(a) y = Mul(ss, f)"""),
    "put back": ("float[30]", "e = Exp(ss) y = ScatterElements<axis = 0>(s, k, e)"),
    "none": ("float[n,4]", """c = Size(ss) e = Equal(c, naught)
        y = If (e) <then_branch = t () => (float[l,4] a) { a = Slice(b, z, ten) },
                    else_branch = f () => (float[o,4] d) { d = Mul(bb, th) }>"""),
    "areas": ("float[n]", """x1, y1, x2, y2 = Split<num_outputs = 4, axis = 1>(bb) w = Sub(x2, x1)
        h = Sub(y2, y1) a = Mul(w, h) y = Squeeze(a, one)"""),
    "with scores": ("float[n,5]", "u = Unsqueeze(ss, one) y = Concat<axis = 1>(bb, u)"),
    "with others": ("float[n,4]", "t = Slice(b, z, ten) y = Concat<axis = 0>(bb, t)"),
    "corners": ("float[n,2,2]", """h = Shape<end = 1>(bb) c = Constant<value_ints = [2, 2]>()
        d = Concat<axis = 0>(h, c) y = Reshape(bb, d)"""),
    "labels": ("float[n,4]", """a = ArgMax<axis = 1, keepdims = 0>(bb)
        d = Constant<value_int = 4>() v = Constant<value_floats = [0.0, 1.0]>()
        y = OneHot(a, d, v)"""),
    "regions": ("float[n,3]", """h = Shape(ss) i = Expand(naught, h)
        a = RoiAlign<output_height = 3, output_width = 3, sampling_ratio = 2>(x, bb, i)
        ws = Constant<value_ints = [3, 2, 3, 3]>() w = ConstantOfShape<value = float[1] {0.3}>(ws)
        c = Conv(a, w) r = Relu(c) f = Flatten(r) y = Softmax<axis = 1>(f)"""),
    "chosen again": ("int64[1,n]", "t = Constant<value_float = 0.8>() c = Greater(ss, t) "
                     "y = NonZero(c)"),
}  # fmt: skip
NUMBERS = """<float th = {0.6}, int64[1] z = {0}, int64[1] one = {1}, int64[2] zo = {0, 1},
    int64[1] ten = {10}, int64[1] hundred = {100}, float[1] iou = {0.5}, int64 two = {2},
    int64 naught = {0}, int64 single = {1}, int64[4] front = {1, 0, 0, 0}>"""


def parsed(kind: str, nodes: str) -> onnx.ModelProto:
    inputs = "float[30, 4] b, float[30] s, float[1, 2, 8, 8] x"
    text = f"g ({inputs}) => ({kind} y) {NUMBERS} {{ {KEPT} {nodes} }}"
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {text}')


def drawn(seed: int) -> dict[str, Any]:
    """Boxes of a positive size; with seed 0 none is kept."""
    rng = np.random.default_rng(seed)
    boxes = rng.random((30, 4), np.float32) * 5
    boxes[:, 2:] += boxes[:, :2]
    scores = rng.random(30, np.float32) * bool(seed)
    return {"b": boxes, "s": scores, "x": rng.random((1, 2, 8, 8), np.float32)}


@pytest.mark.parametrize("name", TAILS)
def test_boxes_that_are_kept_are_worked_with(name: str) -> None:
    model = parsed(*TAILS[name])
    program = import_onnx(model)
    session = isoform.compile(program, threads=1, effort="quick")
    for seed in range(3):
        feeds = drawn(seed)
        given = {k: v for k, v in feeds.items() if k in program.inputs}
        wanted = run_plain(model, feeds)["y"]
        assert difference(session(**given)["y"], wanted, 1e-5) == "", f"seed {seed}"


def test_pairs_of_boxes_are_one_line() -> None:
    """Data decide two dims of them."""
    nodes = "u = Unsqueeze(ss, one) v = Unsqueeze(ss, z) y = Mul(u, v)"
    with pytest.raises(UserError, match="as many rows as the data say") as error:
        import_onnx(parsed("float[n,m]", nodes))
    assert "\n" not in str(error.value)
