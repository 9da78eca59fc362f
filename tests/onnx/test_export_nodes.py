"""What the exporter writes is what a good exporter writes: which nodes, and nothing copied."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from support.seeded import read_fixture
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import SSAValue

from isoform.compiler.commands.inputs import draw_inputs
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program, named, return_of
from isoform.dialects.types import shape_of
from isoform.lowering.graph_to_onnx.exporter import to_model
from isoform.lowering.onnx_to_graph import import_onnx

FIXTURES = Path(__file__).parent.parent / "fixtures"
TOKENS = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), (2, 16))


def counts(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """By onnxruntime with all its optimisations on."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(found) for found in session.run(None, feeds)]


# --- models as torch exports them, read and written again ---

# Ops whose number must not change on the way, whichever exporter wrote the model.
WORK = ("Conv", "Gemm", "MatMul", "LayerNormalization", "Softmax", "Gelu", "Erf", "Tanh", "Relu",
        "MaxPool", "IsNaN", "Transpose")  # fmt: skip
# Written as Reshape; so is what a Gather at one known position leaves of its dim.
RESHAPES = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Gather")
MODELS: dict[str, dict[str, tuple[int, ...]]] = {
    "bert-tiny": TOKENS,
    "resnet18": {"image": (1, 3, 64, 64)},
    "vit-tiny": {"image": (1, 3, 32, 32)},
}


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("name", MODELS)
def test_a_round_trip_is_near_the_original(name: str, exporter: str) -> None:
    original = read_fixture(FIXTURES / f"{name}-{exporter}.onnx.gz")
    program = import_onnx(original, MODELS[name])
    written = to_model(program)
    onnx.checker.check_model(written, full_check=True)
    before, after = counts(original), counts(written)
    assert {op: after[op] for op in WORK} == {op: before[op] for op in WORK}
    assert after["Expand"] == 0
    assert after["Split"] >= before["Split"], "three reads of one part each are a Split, too"
    # Shapes are computed at import; apart from that, a few nodes are written otherwise.
    assert after["Add"] <= before["Add"] + 1
    assert after["Mul"] <= before["Mul"] + 1
    assert after["Reshape"] <= sum(before[op] for op in RESHAPES)
    again = counts(to_model(import_onnx(written)))
    assert {op: again[op] for op in (*WORK, "Expand")} == {
        op: after[op] for op in (*WORK, "Expand")
    }


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("name", MODELS)
def test_weights_are_written_once_and_by_their_names(name: str, exporter: str) -> None:
    original = read_fixture(FIXTURES / f"{name}-{exporter}.onnx.gz")
    written = to_model(import_onnx(original, MODELS[name]))
    given, kept = (
        Counter((t.name, tuple(t.dims)) for t in m.graph.initializer if is_weight(t))
        for m in (original, written)
    )
    assert kept <= given
    assert set(kept.values()) == {1}


def is_weight(proto: TensorProto) -> bool:
    return proto.data_type == TensorProto.FLOAT and len(proto.dims) > 1


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_written_computes_what_was_read(name: str, exporter: str) -> None:
    original = read_fixture(FIXTURES / f"{name}-{exporter}.onnx.gz")
    program = import_onnx(original, MODELS[name])
    feeds = draw_inputs(program, 0)
    for a, b in zip(run(original, feeds), run(to_model(program), feeds), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5 * np.abs(a).max())


# --- single groups ---


def linear(rows: Sequence[int], transposed: bool = False) -> Program:
    """x [*rows, 5] by a matrix, plus a bias."""
    b = GraphBuilder()
    x = b.input("x", (*rows, 5))
    w = b.weight("w", np.arange(35, dtype=np.float32).reshape((7, 5) if transposed else (5, 7)))
    bias = b.weight("bias", np.arange(7, dtype=np.float32))
    whole = b.expand(w, (*rows[:-1], *shape_of(w)))
    y = b.matmul(x, whole, transpose_b=transposed)
    b.output("y", b.add(y, b.expand(bias, shape_of(y))))
    return b.build()


def test_a_weight_that_meets_a_batch_is_not_repeated() -> None:
    """One product of [197, 1, 5] by [5, 7], not 197 of [1, 5] by copies of it."""
    model = to_model(linear((197, 1)))
    assert counts(model) == {"MatMul": 1, "Add": 1}
    assert {t.name: tuple(t.dims) for t in model.graph.initializer} == {"w": (5, 7), "bias": (7,)}
    assert list(model.graph.node[0].input) == ["x", "w"]


def test_a_transposed_weight_of_a_batch_is_transposed_once_as_a_matrix() -> None:
    model = to_model(linear((4, 3), transposed=True))
    assert counts(model) == {"Transpose": 1, "MatMul": 1, "Add": 1}
    assert list(model.graph.node[0].attribute[0].ints) == [1, 0]


@pytest.mark.parametrize("transposed", [False, True])
def test_a_bias_of_a_matrix_product_is_inside_gemm(transposed: bool) -> None:
    model = to_model(linear((4,), transposed))
    (node,) = model.graph.node
    assert node.op_type == "Gemm"
    assert list(node.input) == ["x", "w", "bias"]
    assert {a.name: a.i for a in node.attribute} == {"transA": 0, "transB": int(transposed)}


@pytest.mark.parametrize("op", ["conv", "conv_transpose"])
@pytest.mark.parametrize("shape", [(6,), (6, 1, 1), (1, 6, 1, 1)])
def test_a_bias_of_a_convolution_is_inside_it(op: str, shape: tuple[int, ...]) -> None:
    b = GraphBuilder()
    window: dict[str, Any] = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    more: dict[str, Any] = {"output_padding": [0, 0]} if op == "conv_transpose" else {}
    x, w = b.input("x", (2, 6, 5, 5)), b.weight("w", np.ones((6, 6, 3, 3), np.float32))
    with b.at("here"):
        y = b.op(op, x, w, **window, **more)
    bias = b.weight("bias", np.arange(6, dtype=np.float32).reshape(shape))
    dims = [1] if len(shape) == 1 else list(range(4 - len(shape), 4))
    b.output("y", b.add(b.broadcast(bias, shape=list(shape_of(y)), dims=dims), y))
    model = agree(b.build())
    assert model.graph.node[-1].name == "here"
    assert len(model.graph.node[-1].input) == 3
    assert counts(model)["Add"] == 0


def test_a_residual_is_added_after_the_product() -> None:
    b = GraphBuilder()
    x, z = b.input("x", (4, 5)), b.input("z", (4, 7))
    b.output("y", b.add(b.matmul(x, b.weight("w", np.ones((5, 7), np.float32))), z))
    assert counts(to_model(b.build())) == {"MatMul": 1, "Add": 1}


def test_a_product_that_others_read_keeps_its_bias_outside() -> None:
    b = GraphBuilder()
    y = b.matmul(b.input("x", (4, 5)), b.weight("w", np.ones((5, 7), np.float32)))
    b.output("y", b.add(y, b.expand(b.weight("c", np.ones(7, np.float32)), (4, 7))))
    b.output("z", b.relu(y))
    assert counts(agree(b.build())) == {"MatMul": 1, "Add": 1, "Relu": 1}


WHOLE = [
    ("Gelu", 20, {}), ("Gelu", 20, {"approximate": "tanh"}), ("HardSwish", 14, {}),
    ("Mish", 18, {}), ("Selu", 14, {}), ("Softplus", 14, {}), ("Softsign", 14, {}),
]  # fmt: skip


def single(op_type: str, opset: int, shapes: Sequence[Sequence[int]], **attributes: Any):
    names = [f"x{k}" for k in range(len(shapes))]
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info(n, kind, s) for n, s in zip(names, shapes, strict=True)],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


@pytest.mark.parametrize(("op_type", "opset", "attributes"), WHOLE)
def test_what_the_importer_composes_is_written_whole(
    op_type: str, opset: int, attributes: dict[str, Any]
) -> None:
    program = import_onnx(single(op_type, opset, [(2, 3)], **attributes))
    (node,) = to_model(program).graph.node
    assert node.op_type == op_type
    assert {a.name: helper.get_attribute_value(a) for a in node.attribute} == {
        k: str(v).encode() for k, v in attributes.items()
    }
    agree(program)


@pytest.mark.parametrize("slope", [(3,), (3, 1), (1,), (2, 3, 4)])
def test_a_prelu_is_written_whole_and_its_slope_is_not_expanded(slope: tuple[int, ...]) -> None:
    program = import_onnx(single("PRelu", 16, [(2, 3, 4), slope if slope != (3,) else (4,)]))
    (node,) = to_model(program).graph.node
    assert (node.op_type, list(node.input)) == ("PRelu", ["x0", "x1"])
    agree(program)


@pytest.mark.parametrize("op", ["graph.erf", "graph.add"])
def test_a_gelu_whose_inner_values_are_read_is_not_written_whole(op: str) -> None:
    program = import_onnx(single("Gelu", 20, [(2, 3)]))
    (inner,) = [o for o in program.main.body.block.ops if o.name == op]
    main, last = program.main, return_of(program.module)
    last.operands = [*last.operands, inner.results[0]]
    main.properties["function_type"] = FunctionType.from_lists(
        [a.type for a in main.body.block.args], [v.type for v in last.operands]
    )
    main.properties["res_attrs"] = named(["y", "inner"])
    program.module.verify()
    assert counts(agree(program))["Gelu"] == 0


def test_a_gelu_of_other_numbers_is_no_gelu() -> None:
    b = GraphBuilder()
    x = b.input("x", (2, 3))

    def number(value: float) -> SSAValue:
        return b.expand(b.constant(np.float32(value)), (2, 3))

    bell = b.erf(b.mul(x, number(0.7)))
    b.output("y", b.mul(b.mul(x, number(0.5)), b.add(bell, number(1.0))))
    assert counts(agree(b.build()))["Gelu"] == 0


def test_an_opaque_node_keeps_its_opset_and_gelu_is_composed_beside_it() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,5] x) => (float[2,2] v, int64[2,2] i) {
        k = Constant <value: tensor = int64[1] {2}> ()
        half = Constant <value: tensor = float {0.5}> ()
        root = Constant <value: tensor = float {0.70710678}> ()
        one = Constant <value: tensor = float {1.0}> ()
        a = Mul(x, root)
        b = Erf(a)
        c = Add(b, one)
        d = Mul(x, half)
        e = Mul(d, c)
        v, i = TopK <axis = 1> (e, k)
    }"""
    program = import_onnx(onnx.parser.parse_model(text))
    model = to_model(program)
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 18)]
    assert counts(model)["Gelu"] == 0


def test_slices_that_take_a_value_apart_are_a_split() -> None:
    b = GraphBuilder()
    x = b.input("x", (6, 2))
    parts = {0: 1, 1: 3, 4: 2}
    for start in (4, 0, 1):
        size = [parts[start], 2]
        b.output(f"y{start}", b.slice(x, starts=[start, 0], sizes=size, steps=[1, 1]))
    model = agree(b.build())
    (node,) = model.graph.node
    assert (node.op_type, list(node.output)) == ("Split", ["y0", "y1", "y4"])


@pytest.mark.parametrize("second", [(1, 3), (3, 3), (1, 4), (2, 4)])
def test_slices_with_gaps_or_overlaps_stay_slices(second: tuple[int, int]) -> None:
    b = GraphBuilder()
    x = b.input("x", (6, 2))
    for k, (start, size) in enumerate([(0, 2), second]):
        b.output(f"y{k}", b.slice(x, starts=[start, 0], sizes=[size, 2], steps=[1, 1]))
    found = counts(agree(b.build()))
    assert found == ({"Split": 1} if second == (2, 4) else {"Slice": 2})


def test_a_broadcast_that_only_others_need_is_written_once() -> None:
    b = GraphBuilder()
    x, row = b.input("x", (4, 3)), b.input("row", (3,))
    whole = b.expand(row, (4, 3))
    b.output("y", b.concat(whole, b.add(x, whole), whole, axis=0))
    b.output("z", whole)
    assert counts(agree(b.build())) == {"Expand": 1, "Add": 1, "Concat": 1}


# --- random groups ---


def agree(program: Program) -> onnx.ModelProto:
    """The checker passes, and onnxruntime computes what the program means. Returns the model."""
    model = to_model(program)
    onnx.checker.check_model(model, full_check=True)
    feeds = draw_inputs(program, 0)
    wanted = reference.run(program, feeds)
    for found, exact in zip(run(model, feeds), wanted.values(), strict=True):
        assert found.shape == exact.shape
        scale = float(np.abs(exact).max(initial=1.0))
        np.testing.assert_allclose(found, exact, rtol=1e-4, atol=2e-5 * scale)
    again = reference.run(import_onnx(model), feeds)
    for name, exact in wanted.items():
        scale = float(np.abs(exact).max(initial=1.0))
        np.testing.assert_allclose(again[name], exact, rtol=1e-6, atol=1e-6 * scale)
    return model


class Draw:
    """A program of products, convolutions, biases, activations and odd broadcasts."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.b = GraphBuilder()
        self.count = 0

    def tensor(self, shape: Sequence[int]) -> SSAValue:
        """An input or a weight."""
        self.count += 1
        name = f"t{self.count}"
        if self.rng.random() < 0.5:
            return self.b.input(name, shape)
        data = np.random.default_rng(self.count).standard_normal(shape).astype(np.float32)
        return self.b.weight(name, data)

    def spread(self, shape: Sequence[int]) -> SSAValue:
        """A tensor broadcast to a shape, along dims of any kind, in one step or two."""
        kept = [k for k in range(len(shape)) if self.rng.random() < 0.6]
        own = [shape[k] if self.rng.random() < 0.7 else 1 for k in kept]
        x = self.tensor(own)
        if kept and self.rng.random() < 0.3:
            x = self.b.broadcast(x, shape=[shape[k] for k in kept], dims=list(range(len(kept))))
        if len(kept) == len(shape) and list(shape_of(x)) == list(shape):
            return x
        return self.b.broadcast(x, shape=list(shape), dims=kept)

    def matrix(self, batch: Sequence[int], rows: int, columns: int) -> tuple[SSAValue, bool]:
        """A batch of matrices, perhaps one for all, perhaps transposed."""
        flag = self.rng.random() < 0.4
        shape = [columns, rows] if flag else [rows, columns]
        own = self.rng.choice([[], batch, [1] * len(batch), batch[-1:]])
        if self.rng.random() < 0.15:  # within the matrices, which MatMul does not broadcast
            return self.spread([*batch, *shape]), flag
        x = self.tensor([*own, *shape])
        if flag and len(own) and self.rng.random() < 0.5:
            perm = [*range(len(own)), len(own) + 1, len(own)]
            x = self.b.transpose(self.b.transpose(x, perm=perm), perm=perm)
        return self.b.expand(x, [*batch, *shape]), flag

    def product(self) -> SSAValue:
        batch = [self.rng.choice([1, 2, 3]) for _ in range(self.rng.choice([0, 0, 1, 2]))]
        m, k, n = (self.rng.randint(1, 5) for _ in range(3))
        (a, left), (w, right) = self.matrix(batch, m, k), self.matrix(batch, k, n)
        return self.b.matmul(a, w, transpose_a=left, transpose_b=right)

    def convolution(self) -> SSAValue:
        spatial, c, f = self.rng.choice([1, 2]), self.rng.randint(1, 3), self.rng.randint(1, 3)
        x = self.tensor([self.rng.randint(1, 2), c, *[5] * spatial])
        window = {"strides": [1] * spatial, "dilations": [1] * spatial, "pads": [1] * 2 * spatial}
        if self.rng.random() < 0.6:
            return self.b.conv(x, self.tensor([f, c, *[3] * spatial]), **window)
        w = self.tensor([c, f, *[3] * spatial])
        return self.b.conv_transpose(x, w, output_padding=[0] * spatial, **window)

    def biased(self, x: SSAValue) -> SSAValue:
        pair = [x, self.spread(shape_of(x))]
        self.rng.shuffle(pair)
        return self.b.add(*pair)

    def elementwise(self, x: SSAValue) -> SSAValue:
        op = self.rng.choice(["add", "sub", "mul", "max", "min", "both", "where", "softplus"])
        y = self.spread(shape_of(x))
        match op:
            case "both":
                return self.b.mul(self.b.add(y, self.spread(shape_of(x))), x)
            case "where":
                return self.b.where(self.b.less(x, y), self.spread(shape_of(x)), x)
            case "softplus":
                one = self.b.expand(self.b.constant(np.float32(1)), shape_of(x))
                tail = self.b.log(self.b.add(self.b.exp(self.b.neg(self.b.abs(x))), one))
                return self.b.add(self.b.relu(x), tail)
            case _:
                return self.b.op(op, x, y)

    def mean(self, x: SSAValue) -> SSAValue:
        axes = [k for k in range(len(shape_of(x))) if k > 1 or self.rng.random() < 0.3]
        return self.b.reduce_mean(x, axes=axes, keep_dims=self.rng.random() < 0.5)

    def parts(self, x: SSAValue) -> SSAValue:
        axis = self.rng.randrange(len(shape_of(x)))
        size = shape_of(x)[axis]
        cut = self.rng.randint(0, size)
        found: list[SSAValue] = []
        for start, count in ((0, cut), (cut, size - cut)):
            starts, sizes = [0] * len(shape_of(x)), list(shape_of(x))
            starts[axis], sizes[axis] = start, count
            found.append(self.b.slice(x, starts=starts, sizes=sizes, steps=[1] * len(sizes)))
        self.rng.shuffle(found)
        return self.b.concat(*found, axis=axis)

    def program(self) -> Program:
        x = self.rng.choice([self.product, self.convolution])()
        steps: list[Callable[[SSAValue], SSAValue]] = [self.biased, self.elementwise, self.biased]
        for step in self.rng.choices([*steps, self.parts, self.mean], k=self.rng.randint(1, 5)):
            y = step(x)
            if self.rng.random() < 0.1:
                self.b.output(f"y{self.count}", x)
                self.count += 1
            x = y if shape_of(y) else x
        self.b.output("last", x)
        return self.b.build()


@pytest.mark.parametrize("chunk", range(4))
def test_random_groups_agree_with_onnxruntime(chunk: int) -> None:
    for seed in range(25 * chunk, 25 * chunk + 25):
        agree(Draw(seed).program())


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(40))
def test_many_random_groups_agree_with_onnxruntime(chunk: int) -> None:
    for seed in range(1000 + 50 * chunk, 1000 + 50 * chunk + 50):
        agree(Draw(seed).program())
