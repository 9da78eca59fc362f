"""Reductions of the ends of their types, of infinities and of nothing; by the reference."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx

INF = np.inf
CASES = {
    "least-integer": (
        "g (int8[4] x) => (int64[1] y, int64[1] z) { y = ArgMin(x) z = ArgMax(x) }",
        np.array([5, -128, 127, -128], np.int8),
    ),
    "last-least-integer": (
        "g (int32[4] x) => (int64[1] y) { y = ArgMin<select_last_index = 1>(x) }",
        np.array([5, -(2**31), 127, -(2**31)], np.int32),
    ),
    "log-sum-of-infinities": (
        """g (float[2,4] x) => (float[1,4] y) {
            a = Constant<value = int64[1] {0}>()
            y = ReduceLogSumExp(x, a)
        }""",
        np.array([[-INF, INF, INF, 1], [-INF, 2, INF, -INF]], np.float32),
    ),
    "greatest-of-nothing": (
        """g (int8[0,2] x) => (int8[1,2] y, int8[1,2] z) {
            a = Constant<value = int64[1] {0}>()
            y = ReduceMax(x, a)
            z = ReduceMin(x, a)
        }""",
        np.zeros((0, 2), np.int8),
    ),
    "clipped-at-one-end": (
        """g (double[3] x) => (double[3] y, double[3] z) {
            size = Abs(x)
            three = ReduceMin<keepdims = 0>(size)
            y = Clip(x, three)
            z = Clip(x, , three)
        }""",
        np.array([-INF, INF, 3]),
    ),
    "bounds-that-no-double-is": (
        """g (int64[4] x) => (int64[4] y, int64[4] z, int64[6] p) {
            ends = Constant<value = int64[2] {1, 1}>()
            most = Constant<value = int64 {9223372036854775807}>()
            odd = Constant<value = int64 {9007199254740993}>()
            y = Clip(x, , most)
            z = Clip(x, odd, most)
            p = Pad(x, ends, most)
        }""",
        np.array([2**63 - 1, -(2**63), 2**53 + 2, 0]),
    ),
    "fill-that-no-double-is": (
        """g (uint64[2] x) => (uint64[3] y) {
            ends = Constant<value = int64[2] {0, 1}>()
            most = Constant<value = uint64 {18446744073709551615}>()
            y = Pad(x, ends, most)
        }""",
        np.array([1, 2**63], np.uint64),
    ),
    "first-of-nothing": (
        "g (float[0,3] x) => (float[0,3] y) { y = Hardmax<axis = 0>(x) }",
        np.zeros((0, 3), np.float32),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_onnxruntime(name: str) -> None:
    text, x = CASES[name]
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {text}')
    peer = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = reference.run(import_onnx(model), {"x": x})
    for info, wanted in zip(peer.get_outputs(), peer.run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(found[info.name], np.asarray(wanted), err_msg=info.name)


def test_a_dim_named_twice_is_no_permutation() -> None:
    text = "g (float[2,2] x) => (float[2,2] y) { y = Transpose<perm = [1, 1]>(x) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {text}')
    with pytest.raises(UserError, match=r"not a permutation of the dims: found \[1, 1\]"):
        import_onnx(model)
