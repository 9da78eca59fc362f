"""Sparse initialisers and constants are the dense tensors that they stand for."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.dialects.types import Array
from isoform.lowering.onnx_to_graph import import_onnx, sparse

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


def sparse_tensor(values: Array, indices: object, dims: list[int]) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(values, "w"),
        numpy_helper.from_array(np.array(indices, np.int64), "at"),
        dims,
    )


def product(
    held: onnx.SparseTensorProto | None, nodes: list[onnx.NodeProto] | None = None
) -> onnx.ModelProto:
    """y = x @ w with a sparse initialiser w, or of the nodes given."""
    graph = helper.make_graph(
        nodes or [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [2, 3])],
        [helper.make_tensor_value_info("y", 1, None)],
        sparse_initializer=[held] if held is not None else [],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


VALUES = np.array([1.5, -2.0, 3.0], np.float32)
FLAT = sparse_tensor(VALUES, [1, 5, 10], [3, 4])
PLACES = sparse_tensor(VALUES, [[0, 1], [1, 1], [2, 2]], [3, 4])
NONE = sparse_tensor(VALUES[:0], np.zeros(0, np.int64), [3, 4])


def as_constant() -> onnx.ModelProto:
    constant = helper.make_node("Constant", [], ["w"], sparse_value=FLAT)
    return product(None, [constant, helper.make_node("MatMul", ["x", "w"], ["y"])])


def in_a_branch() -> onnx.ModelProto:
    """A branch has a sparse initialiser of its own."""
    out = [helper.make_tensor_value_info("r", 1, [2, 4])]
    then = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["r"])],
        "then",
        [],
        out,
        sparse_initializer=[PLACES],
    )
    other = helper.make_graph(
        [helper.make_node("Concat", ["x", "q"], ["r"], axis=1)], "else", [], out
    )
    other.initializer.append(numpy_helper.from_array(X[:, :1], "q"))
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["c"], to=9),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    return product(None, nodes)


@pytest.mark.parametrize(
    "model",
    [product(FLAT), product(PLACES), product(NONE), as_constant(), in_a_branch()],
    ids=["flat", "by-dim", "of-nothing", "constant", "in-a-branch"],
)
def test_it_is_the_dense_tensor(model: onnx.ModelProto) -> None:
    before = model.SerializeToString()
    (wanted,) = ort.InferenceSession(before).run(None, {"x": X})
    np.testing.assert_array_equal(reference.run(import_onnx(model), {"x": X})["y"], wanted)
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    ("values", "indices", "dims", "message"),
    [
        ([1, 2], [0, 3], [3], "indices do not fit"),
        ([1, 2], [-1, 2], [3], "indices do not fit"),
        ([1], [[1, 1, 1]], [2, 2], "indices do not fit"),
        ([1, 2], [1], [3], "an index for each value"),
        ([1], [1], [sparse.MAX_BYTES], "too large"),
        ([1], [1], [-3], "negative dim"),
    ],
)
def test_a_broken_one_is_refused(
    values: list[int], indices: object, dims: list[int], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        import_onnx(product(sparse_tensor(np.array(values, np.float32), indices, dims)))
