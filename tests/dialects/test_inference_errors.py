"""Bad operands and properties are refused when the op is built, with a message that says why.

`test_every_failure_has_a_case` reads the sources: each `self.fail` needs a case here.
"""

import ast
import inspect
import re

import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, StringAttr, f32, f64, i1, i32, i64

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.graph import contraction, data, elementwise, pooling, reduction, shaping
from isoform.dialects.types import tensor

UI8 = IntegerType(8, Signedness.UNSIGNED)


def conv(**changes):
    return {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]} | changes


def convt(**changes):
    return conv(output_padding=[0, 0]) | changes


def pool(**changes):
    return conv(kernel=[2, 2]) | changes


IMAGE, PLANE, MATRIX, ROW = (1, 4, 5, 5), (1, 1, 4, 4), (2, 3), (4,)
CUBE = (2, 3, 5)
X, W = [IMAGE, (6, 4, 3, 3)], [IMAGE, (4, 6, 3, 3)]
SLICE = {"starts": [0, 0], "sizes": [1, 1], "steps": [1, 1]}
CASES = [
    # op, operands as shapes (f32) or (shape, element), properties, message
    ("relu", [], {}, "operand 'x' is missing"),
    ("relu", [ROW, ROW], {}, "too many operands"),
    ("leaky_relu", [ROW], {"alpa": 1.0}, "there is no property 'alpa' (did you mean 'alpha'?)"),
    ("relu", [ROW], {"alpha": 1.0}, "there is no property 'alpha' (it has none)"),
    ("softmax", [MATRIX], {}, "property 'axis' is missing"),
    ("softmax", [MATRIX], {"axis": 0.5}, "property 'axis' is of another kind: expected Integer"),
    ("transpose", [MATRIX], {"perm": [1.5, 0.0]}, "property 'perm' needs whole numbers"),
    ("split", [MATRIX], {"axis": 1, "sizes": [1, 2]}, "wrong number of results: expected 2"),
    ("broadcast", [()], {"shape": [-2], "dims": []}, "an extent would be negative"),
    # elementwise
    ("add", [ROW, (3,)], {}, "operands must have equal shapes: found tensor<4xf32> and tensor<3x"),
    ("add", [ROW, (ROW, f64)], {}, "operands must have one element type: found f32 and f64"),
    ("and", [ROW, ROW], {}, "operands must be i1: found f32"),
    ("exp", [(ROW, i32)], {}, "operands must be floats: found i32"),
    ("add", [(ROW, UI8), (ROW, UI8)], {}, "operands must be floats or signed integers: found ui8"),
    ("neg", [(ROW, i1)], {}, "operands must be floats or signed integers: found i1"),
    ("cast", [ROW], {"to": StringAttr("f32")}, "has no numpy counterpart"),
    ("where", [ROW, ROW, ROW], {}, "a boolean condition and two operands of one type"),
    ("where", [(ROW, i1), ROW, (ROW, i64)], {}, "a boolean condition and two operands of one type"),
    # contractions
    ("matmul", [MATRIX, ROW], {}, "operands need one rank of at least 2 and equal batch dims"),
    ("matmul", [(2, 2, 3), (3, 3, 2)], {}, "operands need one rank of at least 2 and equal batch"),
    ("matmul", [MATRIX, ((3, 2), f64)], {}, "operands need one element type"),
    ("matmul", [MATRIX, MATRIX], {}, "inner dims differ: expected 3, found 2"),
    ("conv", [MATRIX, MATRIX], conv(), "x and w need one rank of at least 3"),
    ("conv", [IMAGE, ()], conv(), "x and w need one rank of at least 3"),
    ("conv", X, conv(strides=[1]), "'strides' needs 2 numbers: found [1]"),
    ("conv", X, conv(pads=[0, 0]), "'pads' needs 4 numbers"),
    ("conv", X, conv(dilations=[0, 1]), "strides and dilations are at least 1"),
    ("conv", X, conv(groups=0), "'groups' is at least 1: found 0"),
    ("conv", [IMAGE, ((6, 4, 3, 3), f64)], conv(), "x and w need one element type"),
    ("conv", [*X, (5,)], conv(), "bias needs one number per output channel: expected tensor<6x"),
    ("conv", [*X, (6,), (6,)], conv(), "too many operands: expected at most 3, found 4"),
    ("conv", X, conv(groups=2), "channels do not fit 2 groups: expected 8, found 4"),
    ("conv", [IMAGE, (6, 4, 6, 3)], conv(), "the kernel is larger than the padded image in dim 0"),
    ("g2bmm", [CUBE, MATRIX], {"width": 1}, "operands need one type of rank 3"),
    ("g2bmm", [CUBE, CUBE], {"width": -1}, "'width' is at least 0 and 'dilation' at least 1"),
    ("gbmm", [CUBE, MATRIX], {}, "operands need rank 3"),
    ("gbmm", [CUBE, (2, 5, 4)], {}, "batch, rows or element types differ"),
    ("gbmm", [(2, 3, 4), CUBE], {}, "a band has an odd number of columns"),
    ("resample", [MATRIX, MATRIX], {"axis": 2}, "axis 2 is not in [0, 2)"),
    ("resample", [MATRIX, CUBE], {"axis": 0}, "weights need rank 2 and the operand's element"),
    ("resample", [MATRIX, MATRIX], {"axis": 0, "per": 0}, "'step' and 'per' are at least 1"),
    ("gbmm", [CUBE, CUBE], {"dilation": 0}, "'dilation' is at least 1: found 0"),
    ("conv_transpose", [IMAGE, (3, 6, 3, 3)], convt(), "w needs one row per input channel"),
    ("conv_transpose", W, convt(groups=3), "channels do not fit 3 groups"),
    ("conv_transpose", W, convt(output_padding=[0]), "'output_padding' needs 2 numbers"),
    ("conv_transpose", W, convt(pads=[4, 0, 4, 0]), "the pads leave no output"),
    # pools
    ("max_pool", [MATRIX], pool(), "an operand of rank at least 3 is needed"),
    ("max_pool", [IMAGE], pool(kernel=[2]), "'kernel' needs 2 numbers: found [2]"),
    ("max_pool", [IMAGE], pool(strides=[0, 1]), "'strides' is at least 1: found [0, 1]"),
    ("max_pool", [IMAGE], pool(kernel=[6, 2]), "the window is larger than the padded image"),
    ("max_pool", [(IMAGE, UI8)], pool(), "operands must be floats or signed integers"),
    ("avg_pool", [(IMAGE, i32)], pool(), "averages are taken of floats"),
    # reductions and normalisations
    ("reduce_sum", [MATRIX], {"axes": [1, 0]}, "axes must be sorted, distinct and in [0, 2)"),
    ("reduce_sum", [MATRIX], {"axes": [2]}, "axes must be sorted, distinct and in [0, 2)"),
    ("reduce_max", [(MATRIX, i1)], {"axes": [0]}, "operands must be floats or signed integers"),
    ("softmax", [MATRIX], {"axis": 2}, "axis 2 does not fit a float tensor"),
    ("layer_norm", [MATRIX, (3,)], {"axis": 2}, "axis 2 does not fit a float tensor"),
    ("layer_norm", [MATRIX, (2,)], {"axis": 1}, "scale and bias have the normalised dims' shape"),
    ("instance_norm", [MATRIX, (3,), (3,)], {}, "a float tensor of rank at least 3 is needed"),
    ("instance_norm", [IMAGE, (4,), (5,)], {}, "scale and bias are per channel"),
    ("batch_norm", [ROW] * 5, {}, "a float tensor of rank at least 2 is needed"),
    ("batch_norm", [IMAGE, *[(4,)] * 3, (5,)], {}, "statistics are per channel"),
    ("lrn", [IMAGE], {"size": 0}, "a float tensor of rank at least 2 and a size of at least 1"),
    # shapes
    ("reshape", [MATRIX], {"shape": [-1]}, "extents are at least 0: found [-1]"),
    ("reshape", [MATRIX], {"shape": [5]}, "the element counts differ"),
    ("transpose", [MATRIX], {"perm": [0, 0]}, "'perm' is not a permutation of the dims"),
    ("broadcast", [MATRIX], {"shape": [2, 3], "dims": [1, 0]}, "'dims' needs one increasing entry"),
    ("broadcast", [MATRIX], {"shape": [4, 3], "dims": [0, 1]}, "operand dim 0 does not broadcast"),
    ("broadcast", [ROW], {"shape": [4], "dims": [1]}, "operand dim 0 does not broadcast to [4]"),
    ("concat", [], {"axis": 0}, "at least one operand is needed"),
    ("concat", [MATRIX], {"axis": 2}, "axis 2 is not in [0, 2)"),
    ("concat", [MATRIX, (2, 3, 1)], {"axis": 1}, "operands differ beside the axis"),
    ("concat", [MATRIX, (3, 3)], {"axis": 1}, "operands differ beside the axis"),
    ("slice", [MATRIX], SLICE | {"steps": [1]}, "one start, size and step per dim are needed"),
    ("slice", [MATRIX], SLICE | {"sizes": [1, 4]}, "the slice leaves dim 1 of extent 3"),
    ("slice", [MATRIX], SLICE | {"sizes": [2, 1], "steps": [-1, 1]}, "the slice leaves dim 0"),
    ("split", [MATRIX], {"axis": 1, "sizes": [4]}, "sizes [4] do not make up dim 1"),
    ("split", [MATRIX], {"axis": 1, "sizes": [4, -1]}, "sizes [4, -1] do not make up dim 1"),
    ("pad", [MATRIX], {"pads": [1, 1]}, "4 pads are needed"),
    ("pad", [MATRIX], {"pads": [-2, 0, -1, 0]}, "the pads crop more than there is"),
    # data
    ("gather", [MATRIX, (ROW, i64)], {"axis": 2}, "axis 2 is not in [0, 2)"),
    ("gather", [MATRIX, ROW], {"axis": 0}, "indices are i32 or i64"),
    ("arg_max", [MATRIX], {"axis": 2}, "axis 2 is not in [0, 2), or empty"),
    ("iota", [], {"size": [2, 3]}, "'size' is a list of one number"),
]  # fmt: skip


def refusal(name: str, operands, properties) -> str:
    b = GraphBuilder()
    values = []
    for k, operand in enumerate(operands):
        shape, element = (
            operand if len(operand) == 2 and isinstance(operand[0], tuple) else (operand, f32)
        )
        values.append(b.input(f"x{k}", shape, element))
    with pytest.raises(UserError) as error:
        b.op(name, *values, **properties)
    return str(error.value)


@pytest.mark.parametrize(("name", "operands", "properties", "message"), CASES)
def test_bad_operands_are_refused(name: str, operands, properties, message: str) -> None:
    text = refusal(name, operands, properties)
    assert message in text
    assert text.startswith(f"graph.{name}: ") or "numpy counterpart" in text
    assert "\n" not in text


def test_every_failure_has_a_case() -> None:
    families = (elementwise, contraction, pooling, reduction, shaping, data)
    known = [refusal(name, operands, properties) for name, operands, properties, _ in CASES]
    uncovered = []
    for module in families:
        for pattern in failures(inspect.getsource(module)):
            if not any(re.search(pattern, text) for text in known):
                uncovered.append(pattern)
    assert not uncovered


def failures(source: str) -> list[str]:
    """A pattern for the message of every `self.fail(...)`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self.fail":
            message = node.args[0]
            parts = message.values if isinstance(message, ast.JoinedStr) else [message]
            texts = [re.escape(p.value) if isinstance(p, ast.Constant) else ".*" for p in parts]
            found.append("".join(texts))
    return found


def test_gather_refuses_an_index_outside(graph_op) -> None:
    import numpy as np

    with pytest.raises(UserError, match=r"index 3 at \[0\] is out of range: expected -3 to 2"):
        graph_op("gather", np.ones((3, 2)), np.array([3]), axis=0)


def test_the_builder_refuses_what_it_cannot_build() -> None:
    b = GraphBuilder()
    x = b.input("x", (2, 3))
    cases = [
        (lambda: b.input("x", (2,)), "two inputs are named 'x'"),
        (lambda: b.input("y", (2, -1)), "input 'y': extents are at least 0"),
        (lambda: b.op("relo", x), "the graph dialect has no op 'relo' (did you mean 'relu'?)"),
        (lambda: b.weight("w", lambda: None), "weight 'w': a thunk needs shape and element type"),
        (lambda: b.expand(x, (3, 3)), "graph.broadcast: operand dim 0 does not broadcast"),
        (
            lambda: b.broadcast_together(x, b.input("z", (4,))),
            "shapes do not broadcast: (2, 3), (4",
        ),
        (lambda: b.build(), "the program has no output"),
    ]
    for attempt, message in cases:
        with pytest.raises(UserError) as error:
            attempt()
        assert message in str(error.value)
    with pytest.raises(AttributeError, match="no op 'relo'"):
        b.relo(x)


def test_types_in_the_text_must_be_the_inferred_ones(parse) -> None:
    with pytest.raises(Exception, match="result types do not follow from the operands") as error:
        parse(
            "func.func @f(%x: tensor<2xf32>) {\n%y = graph.relu %x : tensor<3xf32>\nfunc.return\n}"
        )
    assert "expected tensor<2xf32>, found tensor<3xf32>" in str(error.value)
    assert tensor([2]) != tensor([3])
