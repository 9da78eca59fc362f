"""Exact values by the ops' own scopes: what numpy and onnx.reference compute of whole numbers."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from isoform import GraphBuilder
from isoform.compiler.checks.differential import evaluate
from isoform.dialects.types import Array
from isoform.passes.rules.constants import write_constant
from isoform.passes.rules.exact import FIELD, PRIME, constant, plan

WINDOW = {"dilations": (1, 1), "pads": (1, 1, 1, 1), "strides": (2, 1)}
Case: TypeAlias = "tuple[str, Mapping[str, Any], tuple[tuple[int, ...], ...], Callable[..., Any]]"
CASES: list[Case] = [
    ("add", {}, ((2, 3), (2, 3)), np.add),
    ("sub", {}, ((2, 3), (2, 3)), np.subtract),
    ("neg", {}, ((2, 3),), np.negative),
    (
        "matmul",
        {"transpose_a": True},
        ((2, 3, 2), (2, 3, 4)),
        lambda a, b: a.swapaxes(1, 2) @ b,
    ),
    (
        "conv",
        {**WINDOW, "groups": 2},
        ((1, 4, 4, 3), (6, 2, 3, 3)),
        lambda x, w: by_onnx("Conv", x, w, **WINDOW, group=2),
    ),
    ("concat", {"axis": 1}, ((2, 3), (2, 1)), lambda a, b: np.concatenate([a, b], 1)),
    ("split", {"axis": 1, "sizes": (1, 2)}, ((2, 3),), lambda a: (a[:, :1], a[:, 1:])),
    ("transpose", {"perm": (1, 0)}, ((2, 3),), np.transpose),
    ("pad", {"pads": (0, 1, 1, 0)}, ((2, 3),), lambda a: np.pad(a, ((0, 1), (1, 0)))),
    ("broadcast", {"dims": (), "shape": (2, 2)}, ((),), lambda a: np.broadcast_to(a, (2, 2))),
]


def by_onnx(op: str, *arrays: Array, **attributes: Any) -> Array:
    names = [f"x{k}" for k in range(len(arrays))]
    node = onnx.helper.make_node(op, names, ["y"], **attributes)
    (found,) = list(ReferenceEvaluator(node).run(None, dict(zip(names, arrays, strict=True))))
    return np.asarray(found)


@pytest.mark.parametrize(
    ("op", "attributes", "shapes", "independent"), CASES, ids=lambda c: str(c)[:20]
)
def test_an_op_has_the_values_of_numpy_and_onnx(
    op: str,
    attributes: Mapping[str, Any],
    shapes: tuple[tuple[int, ...], ...],
    independent: Callable[..., Any],
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype(np.float64) for shape in shapes]
    compiled = plan(op, tuple(sorted(attributes.items())), shapes)
    assert compiled is not None
    found = compiled.run([a[None] for a in arrays])
    expected = independent(*arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(found) == len(expected)
    for k, (value, wanted) in enumerate(zip(found, expected, strict=True)):
        assert value.shape == (1, *compiled.shapes[k])
        assert np.array_equal(value[0], wanted)


def test_an_average_is_a_convolution_by_shares() -> None:
    x = np.arange(18.0).reshape(1, 1, 2, 3, 3)
    window = {"dilations": (1, 1), "pads": (1, 1, 1, 1), "strides": (1, 1)}
    pool = {**window, "kernel": (3, 3), "count_include_pad": True}
    made = constant("pool_kernel", (("channels", 2), ("kernel", (3, 3))))
    average = plan("avg_pool", tuple(sorted(pool.items())), ((1, 2, 3, 3),))
    assert made is not None and average is not None
    weights = made.shape[1:]
    conv = plan("conv", tuple(sorted({**window, "groups": 2}.items())), ((1, 2, 3, 3), weights))
    assert conv is not None
    assert np.array_equal(average.run([x])[0], conv.run([x, made])[0])


def test_relu_keeps_its_laws_and_is_not_linear() -> None:
    rng = np.random.default_rng(1)
    a, b = (FIELD.reduce(rng.integers(0, PRIME, (1, 8, 8)).astype(float)) for _ in range(2))
    relu = plan("relu", (), ((8, 8),))
    assert relu is not None
    once = relu.run([a])[0]
    assert np.array_equal(relu.run([once])[0], once)
    assert 10 < (once == 0).sum() < 54
    both = relu.run([FIELD.reduce(a + b)])[0]
    assert not FIELD.equal(both, once + relu.run([b])[0]).all()


def test_what_inference_refuses_has_no_value() -> None:
    assert plan("add", (), ((2, 2), (3, 3))) is None


@pytest.mark.parametrize("size", [1, 2, 32, 33, 50])
def test_an_identity_matrix_is_one_however_it_is_written(size: int) -> None:
    build = GraphBuilder()
    made = write_constant(
        "identity_matrix",
        {"size": size},
        lambda array: build.constant(array.astype(np.float32)),
        lambda op, attributes, operands: getattr(build, op)(*operands, **attributes),
    )
    build.output("y", made)
    (found,) = evaluate(build.build().module).values()
    assert (found == np.eye(size)).all()
