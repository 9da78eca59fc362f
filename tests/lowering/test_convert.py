"""algebra-to-kernel: what is a view, what a call, what loops."""

import numpy as np
import pytest
from onnx import helper
from xdsl.context import Context
from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue

from isoform.compiler.targets.levels import lower_to
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.graph import OpaqueOp
from isoform.dialects.kernel import ConvOp, LoopsOp, ViewOp, layout_of
from isoform.dialects.types import tensor, tensor_type
from isoform.lowering.algebra_to_kernel.constant import constant_values
from isoform.passes.assign_layouts import AssignLayouts


def kernels(body) -> list[str]:
    """The kernel ops that a graph of one input x of (4, 6) becomes, without inputs and weights."""
    b = GraphBuilder()
    b.output("y", body(b, b.input("x", (4, 6))))
    block = lower_to(b.build(), "kernel").main.body.block
    return [op.name for op in block.ops if op.results and op.operands]


def cut(b: GraphBuilder, x: SSAValue) -> SSAValue:
    return b.slice(x, starts=[0, 0], sizes=[2, 6], steps=[1, 1])


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (lambda b, x: b.reshape(x, shape=[24]), [ViewOp.name]),
        (lambda b, x: b.reshape(x, shape=[2, 3, 4]), [ViewOp.name]),
        (lambda b, x: b.reshape(x, shape=[4, 1, 6]), [ViewOp.name]),
        (lambda b, x: b.transpose(x, perm=[1, 0]), [LoopsOp.name]),
        (cut, [LoopsOp.name]),
        (lambda b, x: b.cast(x, to=f64), [LoopsOp.name]),
        (lambda b, x: b.add(x, x), [LoopsOp.name]),
    ],
    ids=["flat", "three dims", "a dim of one", "transposed", "cut", "another type", "a sum"],
)
def test_what_keeps_every_element_in_its_place_is_a_view(body, expected) -> None:
    assert kernels(body) == expected


def test_what_weights_literals_and_ones_make_is_constant_and_opaque_calls_are_not() -> None:
    b = GraphBuilder()
    x, w = b.input("x", (2, 2)), b.weight("w", np.ones((2, 2), np.float32))
    one = b.constant(np.ones((2, 2), np.float32))
    made = b.transpose(b.add(w, one), perm=[1, 0])
    node = helper.make_node("RandomNormalLike", ["w"], ["r"])
    drawn = OpaqueOp("RandomNormalLike", [w], node.SerializeToString(), ["=20"], [tensor((2, 2))])
    b.block.add_op(drawn)
    values = [x, w, one, made, drawn.outputs[0], b.add(drawn.outputs[0], w), b.add(x, made)]
    b.output("y", b.add(values[-1], values[-2]))
    found = constant_values(b.build().module)
    assert [v in found for v in values] == [False, True, True, True, False, False, False]


@pytest.mark.parametrize(
    ("filters", "packed"),
    [
        (lambda b, w, x: w, True),
        (lambda b, w, x: b.transpose(w, perm=[1, 0, 2, 3]), True),
        (lambda b, w, x: b.mul(b.add(w, w), w), True),
        (lambda b, w, x: x, False),
        (lambda b, w, x: b.add(x, w), False),
    ],
    ids=["a weight", "a weight transposed", "weights", "an input", "made of an input"],
)
def test_filters_are_packed_where_they_are_constant_and_else_copied_features_last(
    filters, packed
) -> None:
    b = GraphBuilder()
    x, given = b.input("x", (1, 16, 8, 8)), b.input("f", (16, 16, 3, 3))
    w = b.weight("w", np.ones((16, 16, 3, 3), np.float32))
    y = b.conv(
        x, filters(b, w, given), strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1], groups=1
    )
    b.output("y", y)
    program = lower_to(b.build(), "kernel")
    AssignLayouts().apply(Context(), program.module)
    (conv,) = (op for op in program.main.body.block.ops if isinstance(op, ConvOp))
    layout = layout_of(tensor_type(conv.outer(conv.parameters.weights)))
    assert layout.dims == ((0, 1, 2, 3) if packed else (2, 3, 1, 0))


@pytest.mark.parametrize("given", [False, True])
def test_a_transposed_convolution_by_filters_that_are_data_is_loops(given) -> None:
    b = GraphBuilder()
    x, w = b.input("x", (1, 16, 8, 8)), b.weight("w", np.ones((16, 16, 3, 3), np.float32))
    filters = b.input("f", (16, 16, 3, 3)) if given else w
    geometry = {"strides": [2, 2], "pads": [1] * 4, "dilations": [1, 1], "output_padding": [0, 0]}
    b.output("y", b.conv_transpose(x, filters, **geometry))
    ops = lower_to(b.build(), "kernel").main.body.block.ops
    assert any(isinstance(op, ConvOp) for op in ops) != given
