"""Random ops of a seed are constants, the numbers of numpy's RandomState; others draw anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import isoform
from isoform.dialects.errors import UserError
from isoform.dialects.graph import OpaqueOp
from isoform.lowering.onnx_to_graph import import_onnx

X = np.random.default_rng(0).standard_normal((40, 25)).astype(np.float32)


def model(node: onnx.NodeProto, *inputs: tuple[str, int, list[int]]) -> onnx.ModelProto:
    made = [helper.make_tensor_value_info(*entry) for entry in inputs]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "g", made, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def opaque(proto: onnx.ModelProto) -> bool:
    return any(isinstance(op, OpaqueOp) for op in import_onnx(proto).main.body.block.ops)


def run(proto: onnx.ModelProto, **feeds: Any) -> list[np.ndarray]:
    """The results of one session, which runs twice."""
    program = import_onnx(proto)
    with isoform.compile(program, threads=1, effort="quick") as session:
        first, second = session(**feeds), session(**feeds)
    for name, array in first.items():
        assert np.array_equal(array, second[name])
    return list(first.values())


SHAPED = {"RandomNormal": {"mean": 0.5, "scale": 2.0}, "RandomUniform": {"low": -1.0, "high": 3.0}}


@pytest.mark.parametrize("op", SHAPED)
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_a_seed_decides_the_numbers(op: str, dtype: int) -> None:
    for seed, shape in ((3.0, [4, 5]), (7.9, [300]), (0.0, [1, 1, 2])):
        node = helper.make_node(op, [], ["y"], shape=shape, seed=seed, dtype=dtype, **SHAPED[op])
        proto = model(node)
        results: Any = ReferenceEvaluator(proto).run(None, {})
        assert not opaque(proto)
        assert np.array_equal(run(proto)[0], results[0])


@pytest.mark.parametrize("op", SHAPED)
def test_the_shape_of_another_tensor(op: str) -> None:
    node = helper.make_node(f"{op}Like", ["x"], ["y"], seed=5.0, **SHAPED[op])
    shaped = helper.make_node(op, [], ["y"], seed=5.0, shape=X.shape, **SHAPED[op])
    found = run(model(node, ("x", 1, [*X.shape])), x=X)[0]
    assert np.array_equal(found, run(model(shaped))[0])


def test_without_a_seed_each_run_draws_anew() -> None:
    proto = model(helper.make_node("RandomUniform", [], ["y"], shape=[50]))
    assert opaque(proto)
    with isoform.compile(import_onnx(proto), threads=1, effort="quick") as session:
        assert not np.array_equal(session()["y"], session()["y"])


def test_a_seed_that_is_none_is_refused() -> None:
    node = helper.make_node("RandomUniform", [], ["y"], shape=[2], seed=-1.0)
    with pytest.raises(UserError, match="no such seed"):
        import_onnx(model(node))


def test_bernoulli_compares_with_the_uniform_numbers() -> None:
    p = np.abs(X) % 1
    node = helper.make_node("Bernoulli", ["x"], ["y"], seed=4.0, dtype=TensorProto.INT32)
    proto = model(node, ("x", 1, [*p.shape]))
    assert not opaque(proto)
    drawn = np.random.RandomState(4).rand(*p.shape).astype(np.float32)
    assert np.array_equal(run(proto, x=p)[0], (drawn < p).astype(np.int32))


def test_multinomial_draws_each_class_as_often_as_it_should() -> None:
    shares = np.array([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]], np.float32)
    with np.errstate(divide="ignore"):
        x = np.log(shares) + 3
    node = helper.make_node("Multinomial", ["x"], ["y"], seed=1.0, sample_size=4000)
    (y,) = run(model(node, ("x", 1, [2, 3])), x=x)
    assert y.dtype == np.int32 and y.shape == (2, 4000)
    for row, wanted in zip(y, shares, strict=True):
        assert np.allclose(np.bincount(row, minlength=3) / 4000, wanted, atol=0.03)
    assert not (y[1] == 2).any()


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("ratio", [0.0, 0.3, 0.9])
def test_dropout_in_training(known: bool, ratio: float) -> None:
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y", "mask"], seed=9)
    scalars = (("r", TensorProto.FLOAT, []), ("t", TensorProto.BOOL, []))
    proto = model(node, ("x", 1, [*X.shape]), *scalars)
    feeds = {"r": np.array(ratio, np.float32), "t": np.array(True)}
    if known:
        proto.graph.initializer.extend(onnx.numpy_helper.from_array(a, n) for n, a in feeds.items())
        del proto.graph.input[1:]
        feeds = {}
    kept = np.random.RandomState(9).rand(*X.shape) >= np.float32(ratio)
    y, mask = run(proto, x=X, **feeds)
    assert np.array_equal(mask, kept)
    np.testing.assert_allclose(y, kept * X / (1 - ratio), rtol=1e-6)
    if not known:
        y, mask = run(proto, x=X, r=feeds["r"], t=np.array(False))
        assert np.array_equal(y, X) and mask.all()
