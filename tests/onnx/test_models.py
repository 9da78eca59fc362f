"""Whole models: the nine light ones of the onnx wheel, and BERT as torch exports it."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import isoform
from isoform.compiler.commands.check import check_model
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.dialects.graph import WeightOp
from isoform.dialects.kernel import LoopsOp
from isoform.dialects.program import where
from isoform.dialects.scalars import Call, Const, postorder
from isoform.lowering.onnx_to_graph import import_onnx

LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


def test_the_light_models_are_there() -> None:
    assert len(LIGHT) == 9


@pytest.mark.parametrize("path", LIGHT, ids=lambda p: p.stem)
def test_a_light_model_has_no_opaque_op(path: Path) -> None:
    check = check_model(path)
    assert check.ok
    assert check.totals["opaque"] == 0
    program = import_onnx(path)
    program.module.verify()
    assert program.weights
    model = onnx.load(path)
    weights = {i.name for i in model.graph.initializer}
    assert list(program.inputs) == [i.name for i in model.graph.input if i.name not in weights]
    assert list(program.outputs) == [o.name for o in model.graph.output]


@pytest.mark.slow
def test_squeezenet_agrees_with_onnxruntime() -> None:
    path = next(p for p in LIGHT if "squeezenet" in p.stem)
    program = import_onnx(path)
    ((name, type_),) = program.inputs.items()
    x = np.random.default_rng(0).random(type_.get_shape(), dtype=np.float32)
    (wanted,) = ort.InferenceSession(path).run(None, {name: x})
    (got,) = reference.run(program, {name: x}).values()
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


# --- BERT: dynamic axes, shapes computed at run time, decomposed attention ---


def self_attention(heads: int, size: int) -> list[str]:
    """The nodes torch exports for one attention layer, with their shape computations."""
    lines = [
        "b0 = Shape(h0)", "b = Gather<axis = 0>(b0, zero)",
        "t0 = Shape(h0)", "t = Gather<axis = 0>(t0, one)",
        "bu = Unsqueeze(b, axes0)", "tu = Unsqueeze(t, axes0)",
        "split = Concat<axis = 0>(bu, tu, heads, depth)", "merge = Concat<axis = 0>(bu, tu, width)",
    ]  # fmt: skip
    for name in "qkv":
        lines += [
            f"{name}0 = MatMul(h0, w{name})",
            f"{name}1 = Add({name}0, bias{name})",
            f"{name}2 = Reshape({name}1, split)",
            f"{name}3 = Transpose<perm = [0, {'2, 3, 1' if name == 'k' else '2, 1, 3'}]>({name}2)",
        ]
    return [
        *lines,
        "s0 = MatMul(q3, k3)",
        "s1 = Div(s0, root)",
        "s2 = Add(s1, bias)",
        "s3 = Softmax<axis = -1>(s2)",
        "c0 = MatMul(s3, v3)",
        "c1 = Transpose<perm = [0, 2, 1, 3]>(c0)",
        "c2 = Reshape(c1, merge)",
        "a0 = Add(c2, h0)",
    ]


def bert(heads: int = 2, depth: int = 4, vocabulary: int = 11) -> onnx.ModelProto:
    size = heads * depth
    norm = """m0 = ReduceMean<axes = [-1]>(a0)  d = Sub(a0, m0)  sq = Pow(d, two)
        var = ReduceMean<axes = [-1]>(sq)  ve = Add(var, epsilon)  sd = Sqrt(ve)  n0 = Div(d, sd)
        n1 = Mul(n0, gamma)  n2 = Add(n1, beta)"""
    feed = """f0 = MatMul(n2, w1)  e0 = Div(f0, root2)  e1 = Erf(e0)  e2 = Add(e1, unit)
        e3 = Mul(f0, e2)  e4 = Mul(e3, half)  y = MatMul(e4, w2)"""
    mask = """u0 = Unsqueeze(mask, axes12)  u1 = Cast<to = 1>(u0)  u2 = Sub(unit, u1)
        bias = Mul(u2, lowest)"""
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    bert (int64[batch, seq] ids, int64[batch, seq] mask) => (float[batch, seq, {size}] y) {{
        p0 = Shape(ids)  p1 = Slice(p0, axes1, axes2, axes0)  p2 = Squeeze(p1, axes0)
        p3 = Range(zero, p2, one)  pos = Gather(positions, p3)  tok = Gather(words, ids)
        h0 = Add(tok, pos)
        {mask}
        {" ".join(self_attention(heads, size))}
        {norm}
        {feed}
    }}"""
    proto = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)

    def add(name: str, value: object) -> None:
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))

    shapes = {
        "words": (vocabulary, size),
        "positions": (16, size),
        "w1": (size, 32),
        "w2": (32, size),
    }
    shapes |= {f"w{n}": (size, size) for n in "qkv"} | {f"bias{n}": (size,) for n in "qkv"}
    shapes |= {"gamma": (size,), "beta": (size,)}
    for name, shape in shapes.items():
        add(name, rng.standard_normal(shape).astype(np.float32))
    numbers = {"two": 2, "epsilon": 1e-12, "unit": 1, "half": 0.5, "lowest": -1e4}
    numbers |= {"root": depth**0.5, "root2": 2**0.5}
    for name, number in numbers.items():
        add(name, np.float32(number))
    integers = {"zero": 0, "one": 1, "axes0": [0], "axes1": [1], "axes2": [2], "axes12": [1, 2]}
    integers |= {"heads": [heads], "depth": [depth], "width": [size]}
    for name, number in integers.items():
        add(name, np.asarray(number, np.int64))
    return proto


def test_bert_with_dynamic_axes_needs_one_flag() -> None:
    with pytest.raises(UserError, match="add --shape ids=1,1\\)"):
        import_onnx(bert())


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (2, 7), (3, 16)])
def test_bert_agrees_with_onnxruntime_and_folds_its_shapes(batch: int, length: int) -> None:
    proto = bert()
    program = import_onnx(proto, {"ids": [batch, length]})
    program.module.verify()
    rng = np.random.default_rng(1)
    feeds = {
        "ids": rng.integers(0, 11, (batch, length)),
        "mask": (rng.random((batch, length)) < 0.8).astype(np.int64),
    }
    (wanted,) = ort.InferenceSession(proto.SerializeToString()).run(None, feeds)
    got = reference.run(program, feeds)["y"]
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
    check = check_model(proto, {"ids": [batch, length]})
    assert check.totals["opaque"] == check.totals["unsupported"] == 0
    assert check.totals["folded"] >= 12
    used = {op.name for op in program.main.body.block.ops}
    assert not used & {"graph.concat", "graph.opaque"}


def test_every_op_knows_the_node_it_came_from() -> None:
    node = helper.make_node("Gemm", ["x", "w", "c"], ["y"], name="fc/Gemm:1", alpha=2.0)
    infos = [helper.make_tensor_value_info(n, 1, s) for n, s in (("x", [2, 3]), ("y", [2, 4]))]
    weights = [
        numpy_helper.from_array(np.ones(shape, np.float32), name)
        for name, shape in (("w", (3, 4)), ("c", (4,)))
    ]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], weights)
    program = import_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    made = [op for op in program.main.body.block.ops if op.results]
    assert len(made) > 3
    assert all("'fc/Gemm:1'" in where(op) for op in made if not isinstance(op, WeightOp))
    assert made[-1].results[0].name_hint == "y"


@pytest.mark.parametrize("op", ["NonZero", "Compress", "Unique"])
def test_weights_decide_shapes(op: str, tmp_path: Path) -> None:
    """However many floats an initialiser has, what has no shape without them reads them."""
    weights = np.arange(60, dtype=np.float32).reshape(6, 10) % 3
    inputs = {"NonZero": ["w"], "Compress": ["w", "keep"], "Unique": ["w"]}[op]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["found"], **({"axis": 1} if op == "Compress" else {})),
         helper.make_node("Cast", ["found"], ["c"], to=TensorProto.FLOAT),
         helper.make_node("ReduceSum", ["c"], ["s"], keepdims=0),
         helper.make_node("Add", ["x", "s"], ["y"])],
        op,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(weights, "w"),
         numpy_helper.from_array(np.arange(10) % 2 == 0, "keep")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "m.onnx")
    found = isoform.compile(isoform.load(tmp_path / "m.onnx"), effort="quick")
    wanted = {
        "NonZero": np.stack(np.nonzero(weights)).sum(),
        "Compress": weights[:, ::2].sum(),
        "Unique": np.unique(weights).sum(),
    }[op]
    x = np.asarray([1.0, 2.0], np.float32)
    assert found(x=x)["y"].tolist() == (x + wanted).tolist()


def test_an_exponent_of_the_file_is_a_number_in_kernels() -> None:
    """An initialiser or a constant: libm's pow is forty times as slow as a product."""
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[4,8] x) => (float[4,8] y) {
            three = Constant<value_float = 3.0>()
            a = Pow(x, two)  b = Pow(x, three)  y = Add(a, b)
        }""")
    proto.graph.initializer.append(numpy_helper.from_array(np.array([2], np.int64), "two"))
    placed = place(import_onnx(proto), CpuOptions(1))
    (kernel,) = [op for op in placed.main.body.block.ops if isinstance(op, LoopsOp)]
    parts = [e for scope in kernel.scopes for e in postorder(scope.expr()) if isinstance(e, Call)]
    assert {e.args[1] for e in parts if e.function == "pow"} == {Const(2.0), Const(3.0)}
