"""Reductions, normalisations, shape changes and data-dependent ops against onnx.reference."""

import numpy as np
import pytest


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape)


REDUCTIONS = {
    "reduce_sum": ("ReduceSum", np.sum),
    "reduce_max": ("ReduceMax", np.max),
    "reduce_min": ("ReduceMin", np.min),
    "reduce_prod": ("ReduceProd", np.prod),
    "reduce_mean": ("ReduceMean", np.mean),
}
AXES = [((3, 4, 5), [1]), ((3, 4, 5), [0, 2]), ((3, 4), [0, 1]), ((2, 1, 3), []), ((4,), [0])]


@pytest.mark.parametrize("keep_dims", [True, False])
@pytest.mark.parametrize(("shape", "axes"), AXES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, shape, axes, keep_dims, graph_op, onnx_op) -> None:
    x, (onnx_name, function) = draw(*shape), REDUCTIONS[name]
    (found,) = graph_op(name, x, axes=axes, keep_dims=keep_dims)
    np.testing.assert_allclose(found, function(x, axis=tuple(axes), keepdims=keep_dims), atol=1e-12)
    attributes = {"keepdims": int(keep_dims), "noop_with_empty_axes": 1}
    (expected,) = onnx_op(onnx_name, x, np.array(axes, np.int64), **attributes)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["reduce_sum", "reduce_max", "reduce_prod", "reduce_mean"])
def test_reductions_propagate_nan_and_infinities(name: str, graph_op) -> None:
    x = np.array([[1.0, np.nan], [np.inf, 2.0], [np.inf, -np.inf]])
    with np.errstate(all="ignore"):
        expected = REDUCTIONS[name][1](x, axis=1, keepdims=True)
    np.testing.assert_array_equal(graph_op(name, x, axes=[1])[0], expected)


def test_reductions_of_integers_are_exact(graph_op) -> None:
    x = np.array([[2**53, 1, 1], [-3, -5, 1]])
    assert graph_op("reduce_sum", x, axes=[1])[0].tolist() == [[2**53 + 2], [-7]]
    assert graph_op("reduce_max", x, axes=[1])[0].tolist() == [[2**53], [1]]
    assert graph_op("reduce_mean", x, axes=[1])[0].tolist()[1] == [-2]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 4), 1), ((2, 3, 4), 0), ((2, 3, 4), 1), ((5,), 0)]
)
def test_softmax(name: str, shape, axis, graph_op, onnx_op) -> None:
    x = draw(*shape) * 50
    onnx_name = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}[name]
    (expected,) = onnx_op(onnx_name, x, axis=axis)
    np.testing.assert_allclose(graph_op(name, x, axis=axis)[0], expected, atol=1e-12)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("shape", "axis"), [((3, 4), 1), ((2, 3, 4), 1), ((2, 3, 4), 2)])
def test_layer_norm(shape, axis, bias, graph_op, onnx_op) -> None:
    operands = [draw(*shape), draw(*shape[axis:], 1)[..., 0], draw(*shape[axis:], 2)[..., 1]]
    operands = operands[: 3 if bias else 2]
    (found,) = graph_op("layer_norm", *operands, axis=axis, epsilon=1e-3)
    (expected,) = onnx_op("LayerNormalization", *operands, axis=axis, epsilon=1e-3)
    np.testing.assert_allclose(found, expected, atol=1e-6)  # ONNX computes in float32


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (1, 2, 3, 2, 2)])
def test_instance_norm(shape, graph_op, onnx_op) -> None:
    operands = [draw(*shape), draw(shape[1]), draw(shape[1], 2)[:, 1]]
    (found,) = graph_op("instance_norm", *operands, epsilon=1e-3)
    (expected,) = onnx_op("InstanceNormalization", *operands, epsilon=1e-3)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5)])
def test_batch_norm(shape, graph_op, onnx_op) -> None:
    operands = [draw(*shape), *(draw(shape[1], k)[:, 0] for k in range(1, 4))]
    operands.append(np.abs(draw(shape[1], 9)[:, 0]))
    (found,) = graph_op("batch_norm", *operands, epsilon=1e-3)
    (expected,) = onnx_op("BatchNormalization", *operands, epsilon=1e-3)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
def test_lrn(size: int, graph_op) -> None:
    """By the specification: onnx.reference 1.23 leaves out all channels past the batch's extent."""
    x = draw(2, 6, 3, 3)
    (found,) = graph_op("lrn", x, size=size, alpha=0.5, beta=0.75, bias=2.0)
    for c in range(6):
        low, high = max(0, c - (size - 1) // 2), min(5, c + size // 2)
        squares = (x[:, low : high + 1] ** 2).sum(axis=1)
        expected = x[:, c] / (2.0 + 0.5 / size * squares) ** 0.75
        np.testing.assert_allclose(found[:, c], expected, atol=1e-12)


RESHAPES = [
    ((2, 3, 4), (4, 6)),
    ((6,), (2, 3)),
    ((2, 3), (6,)),
    ((1,), ()),
    ((), (1, 1)),
    ((4, 6), (3, 2, 4)),
    ((5, 1, 7), (7, 5)),
    ((0, 3), (3, 0)),
    ((2, 8, 3), (4, 4, 3)),
]


@pytest.mark.parametrize(("shape", "to"), RESHAPES)
def test_reshape(shape, to, graph_op) -> None:
    x = draw(*shape)
    np.testing.assert_array_equal(graph_op("reshape", x, shape=to)[0], x.reshape(to))


@pytest.mark.parametrize(
    ("shape", "perm"),
    [((2, 3), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((), ()), ((2, 3, 4, 5), (0, 2, 3, 1))],
)
def test_transpose(shape, perm, graph_op) -> None:
    x = draw(*shape)
    np.testing.assert_array_equal(graph_op("transpose", x, perm=perm)[0], x.transpose(perm))


BROADCASTS = [
    ((3,), (2, 3), (1,)),
    ((3,), (3, 2), (0,)),
    ((2, 1, 4), (2, 3, 4), (0, 1, 2)),
    ((), (2, 3), ()),
    ((1, 1), (4, 2, 3), (0, 2)),
]


@pytest.mark.parametrize(("shape", "to", "dims"), BROADCASTS)
def test_broadcast(shape, to, dims, graph_op) -> None:
    x = draw(*shape)
    (found,) = graph_op("broadcast", x, shape=to, dims=dims)
    placed = [shape[dims.index(k)] if k in dims else 1 for k in range(len(to))]
    np.testing.assert_array_equal(found, np.broadcast_to(x.reshape(placed), to))


CONCATS = [
    ([(2, 3), (2, 1), (2, 4)], 1),
    ([(1, 2, 2), (3, 2, 2)], 0),
    ([(2, 3)], 0),
    ([(0, 2), (3, 2)], 0),
]


@pytest.mark.parametrize(("shapes", "axis"), CONCATS)
def test_concat(shapes, axis, graph_op) -> None:
    parts = [draw(*shape) for shape in shapes]
    np.testing.assert_array_equal(
        graph_op("concat", *parts, axis=axis)[0], np.concatenate(parts, axis)
    )


def test_concat_keeps_special_values_apart(graph_op) -> None:
    parts = [np.array([np.nan, -0.0]), np.array([np.inf, 1.0])]
    found = graph_op("concat", *parts, axis=0)[0]
    np.testing.assert_array_equal(found, np.concatenate(parts))
    assert np.signbit(found[1])
    flags = [np.array([True, False]), np.array([False, True])]
    assert graph_op("concat", *flags, axis=0)[0].tolist() == [True, False, False, True]


SLICES = [
    # shape, starts, sizes, steps, the same in numpy
    ((6,), (1,), (3,), (2,), np.s_[1:7:2]),
    ((6,), (5,), (6,), (-1,), np.s_[::-1]),
    ((6, 5), (4, 0), (2, 3), (-3, 2), np.s_[4::-3, ::2]),
    ((4, 4), (0, 3), (0, 1), (1, 1), np.s_[0:0, 3:4]),
]


@pytest.mark.parametrize(("shape", "starts", "sizes", "steps", "same"), SLICES)
def test_slice(shape, starts, sizes, steps, same, graph_op) -> None:
    x = draw(*shape)
    (found,) = graph_op("slice", x, starts=starts, sizes=sizes, steps=steps)
    np.testing.assert_array_equal(found, x[same])


@pytest.mark.parametrize(("axis", "sizes"), [(0, (1, 3)), (1, (2, 2, 2)), (1, (6,)), (1, (0, 6))])
def test_split(axis, sizes, graph_op) -> None:
    x = draw(4, 6)
    found = graph_op("split", x, axis=axis, sizes=sizes, results=len(sizes))
    expected = np.split(x, np.cumsum(sizes)[:-1], axis)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("fill", [0.0, -2.5, -np.inf])
@pytest.mark.parametrize(
    ("shape", "pads"), [((3,), (2, 1)), ((2, 3), (0, 1, 2, 0)), ((2, 3), (1, 0, 0, 0))]
)
def test_pad(shape, pads, fill, graph_op, onnx_op) -> None:
    x = draw(*shape)
    (expected,) = onnx_op("Pad", x, np.array(pads), np.array(fill))
    np.testing.assert_array_equal(graph_op("pad", x, pads=pads, fill=fill)[0], expected)


def test_negative_pads_crop(graph_op) -> None:
    x = draw(4, 5)
    found = graph_op("pad", x, pads=[-1, 1, 0, -2])[0]
    np.testing.assert_array_equal(found, np.pad(x, ((0, 0), (1, 0)))[1:, :-2])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("indices", [[2, 0, -1], [[0, 1], [1, -2]], 1, []])
def test_gather(axis, indices, graph_op, onnx_op) -> None:
    x, at = draw(3, 4), np.array(indices, np.int64)
    (expected,) = onnx_op("Gather", x, at, axis=axis)
    np.testing.assert_array_equal(graph_op("gather", x, at, axis=axis)[0], expected)


def test_arg_max_takes_the_first_of_equals(graph_op) -> None:
    x = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]])
    assert graph_op("arg_max", x, axis=1)[0].tolist() == [[1], [0]]


EMPTY = [
    # op, operand shapes, properties, result
    ("reduce_sum", [(2, 0)], {"axes": [1], "keep_dims": False}, np.zeros(2)),
    ("reduce_prod", [(2, 0)], {"axes": [1], "keep_dims": False}, np.ones(2)),
    ("reduce_max", [(2, 0)], {"axes": [1], "keep_dims": False}, np.full(2, -np.inf)),
    ("reduce_min", [(2, 0)], {"axes": [1], "keep_dims": False}, np.full(2, np.inf)),
    ("reduce_mean", [(2, 0)], {"axes": [1], "keep_dims": False}, np.full(2, np.nan)),
    ("reduce_sum", [(0, 3)], {"axes": [1]}, np.zeros((0, 1))),
    ("softmax", [(2, 0)], {"axis": 1}, np.zeros((2, 0))),
    ("layer_norm", [(2, 0), (0,)], {"axis": 1}, np.zeros((2, 0))),
    ("layer_norm", [(0, 3), (3,)], {"axis": 1}, np.zeros((0, 3))),
    ("instance_norm", [(2, 1, 0), (1,), (1,)], {}, np.zeros((2, 1, 0))),
    ("batch_norm", [(0, 2), (2,), (2,), (2,), (2,)], {}, np.zeros((0, 2))),
    ("lrn", [(1, 0, 2)], {"size": 3}, np.zeros((1, 0, 2))),
    ("concat", [(0, 2), (0, 2)], {"axis": 0}, np.zeros((0, 2))),
    ("pad", [(0,)], {"pads": [1, 1], "fill": 2.0}, np.full(2, 2.0)),
    ("broadcast", [(1, 2)], {"shape": [0, 2], "dims": [0, 1]}, np.zeros((0, 2))),
]


@pytest.mark.parametrize(("name", "shapes", "properties", "expected"), EMPTY)
def test_extents_of_0(name: str, shapes, properties, expected, graph_op) -> None:
    (found,) = graph_op(name, *(np.ones(shape) for shape in shapes), **properties)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
