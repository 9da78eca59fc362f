"""Exact values by the ops' own scopes: the same as the reference on small whole numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.passes.substitution.exact import FIELD, PRIME, constant, plan

WINDOW = {"dilations": (1, 1), "pads": (1, 1, 1, 1), "strides": (2, 1)}
CASES: list[tuple[str, Mapping[str, Any], tuple[tuple[int, ...], ...]]] = [
    ("add", {}, ((2, 3), (2, 3))),
    ("sub", {}, ((2, 3), (2, 3))),
    ("matmul", {"transpose_a": True}, ((2, 3, 2), (2, 3, 4))),
    ("conv", {**WINDOW, "groups": 2}, ((1, 4, 4, 3), (6, 2, 3, 3))),
    ("concat", {"axis": 1}, ((2, 3), (2, 1))),
    ("split", {"axis": 1, "sizes": (1, 2)}, ((2, 3),)),
    ("transpose", {"perm": (1, 0)}, ((2, 3),)),
    ("pad", {"pads": (0, 1, 1, 0)}, ((2, 3),)),
    ("broadcast", {"dims": (), "shape": (2, 2)}, ((),)),
]


@pytest.mark.parametrize(("op", "attributes", "shapes"), CASES, ids=lambda c: str(c)[:20])
def test_an_op_has_the_values_of_the_reference(
    op: str, attributes: Mapping[str, Any], shapes: tuple[tuple[int, ...], ...]
) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape) for shape in shapes]
    compiled = plan(op, tuple(sorted(attributes.items())), shapes)
    assert compiled is not None
    found = compiled.run([a[None].astype(np.float64) for a in arrays])
    builder = GraphBuilder()
    inputs = [builder.input(f"x{k}", a.shape) for k, a in enumerate(arrays)]
    first = builder.op(op, *inputs, results=len(found), **attributes)
    for k, value in enumerate(first.owner.results):  # pyright: ignore
        builder.output(f"y{k}", value)
    expected = reference.run(builder.build(), {f"x{k}": a for k, a in enumerate(arrays)})
    for k, value in enumerate(found):
        assert value.shape == (1, *compiled.shapes[k])
        assert np.array_equal(value[0], expected[f"y{k}"])


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
