"""Ops whose meaning or form changed: each form against onnxruntime."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import importer
from isoform.lowering.onnx_to_graph.loading import load_model

X = "float[2,3,4,5] x"
INTS = "{name} = Constant <value: tensor = int64[{n}] {{{values}}}> ()"


def ints(name: str, *values: int) -> str:
    return INTS.format(name=name, n=len(values), values=", ".join(map(str, values)))


def floats(name: str, *values: float) -> str:
    numbers = ", ".join(map(str, values))
    return f"{name} = Constant <value: tensor = float[{len(values)}] {{{numbers}}}> ()"


CASES = [
    (11, "y = Softmax <axis = 1> (x)"),
    (11, "y = Softmax <axis = -1> (x)"),
    (11, "y = Softmax (x)"),
    (9, "y = LogSoftmax <axis = 2> (x)"),
    (11, "y = Hardmax <axis = 2> (x)"),
    (13, "y = Softmax <axis = 1> (x)"),
    (13, "y = Softmax (x)"),
    (9, "y = Slice <starts = [1, 0], ends = [2, 100], axes = [1, 3]> (x)"),
    (9, "y = Slice <starts = [-2], ends = [-1], axes = [2]> (x)"),
    (10, f"{ints('s', 3, 4)} {ints('e', -9223372036854775807, 0)} {ints('a', 2, 3)}"
         f" {ints('t', -1, -2)} y = Slice (x, s, e, a, t)"),
    (11, "y = Squeeze <axes = [0]> (z) z = Unsqueeze <axes = [0, 3]> (x)"),
    (13, f"{ints('a', 0, -3)} z = Unsqueeze (x, a) {ints('b', 0)} y = Squeeze (z, b)"),
    (9, "y, z = Split <axis = 3, split = [2, 3]> (x)"),
    (11, "y, z = Split <axis = 2> (x)"),
    (13, f"{ints('s', 1, 4)} y, z = Split <axis = 3> (x, s)"),
    (18, "y, z = Split <axis = 3, num_outputs = 2> (x)"),
    (6, "y = Clip <min = -0.5, max = 0.25> (x)"),
    (9, "y = Clip <max = 0.25> (x)"),
    (11, f"{floats('m', -0.25)} l = Squeeze <axes = [0]> (m) y = Clip (x, l)"),
    (9, "y = Pad <pads = [0, 0, 1, 2, 0, 0, 0, 1], value = 1.5> (x)"),
    (9, 'y = Pad <mode = "reflect", pads = [0, 0, 1, 2, 0, 0, 0, 1]> (x)'),
    (11, f'{ints("p", 0, 0, 1, 3, 0, 0, 2, 1)} y = Pad <mode = "edge"> (x, p)'),
    (18, f'{ints("p", -1, 2, 0, 1)} {ints("a", 2, 3)} y = Pad <mode = "constant"> (x, p, , a)'),
    (19, f'{ints("p", 0, 0, 3, 6, 0, 0, 2, 1)} y = Pad <mode = "wrap"> (x, p)'),
    (9, "y = ReduceMean <axes = [1, -1], keepdims = 0> (x)"),
    (11, "y = ReduceSum <axes = [2]> (x)"),
    (11, "y = ReduceMax (x)"),
    (13, f"{ints('a', -1)} y = ReduceSum (x, a)"),
    (13, "y = ReduceSum <noop_with_empty_axes = 1> (x)"),
    (18, f"{ints('a', 1)} y = ReduceLogSumExp <keepdims = 0> (x, a)"),
    (7, "y = Dropout (x)"),
    (12, "y, m = Dropout (x)"),
    (7, 'y = Upsample <mode = "nearest", scales = [1.0, 1.0, 2.0, 3.0]> (x)'),
    (7, 'y = Upsample <mode = "linear", scales = [1.0, 1.0, 2.0, 2.0]> (x)'),
    (9, f'{floats("s", 1.0, 1.0, 2.0, 1.5)} y = Upsample <mode = "nearest"> (x, s)'),
    (10, f'{floats("s", 1.0, 1.0, 0.5, 2.0)} y = Resize <mode = "nearest"> (x, s)'),
    (10, f'{floats("s", 1.0, 1.0, 2.0, 2.0)} y = Resize <mode = "linear"> (x, s)'),
    (11, "r = Constant <value: tensor = float[0] {}> ()"
         f' {floats("s", 1.0, 1.0, 2.0, 2.0)} y = Resize <mode = "linear",'
         ' coordinate_transformation_mode = "align_corners"> (x, r, s)'),
    (13, f'{ints("s", 2, 3, 7, 9)} y = Resize <mode = "cubic"> (x, , , s)'),
    (13, f'{ints("s", 2, 3, 7, 3)} y = Resize <mode = "nearest", nearest_mode = "floor",'
         ' coordinate_transformation_mode = "asymmetric"> (x, , , s)'),
    (9, "y = Flatten <axis = 2> (x)"),
    (11, "y = Flatten <axis = -1> (x)"),
    (11, "y = DepthToSpace <blocksize = 1> (x)"),
    (9, "a = Transpose (x) y = MatMul (b, a) b = Transpose <perm = [3, 2, 0, 1]> (x)"),
    (9, "y = Selu (x)"),
    (9, "y = ArgMax <axis = 2, keepdims = 0> (x)"),
    (12, "y = ArgMin <axis = -1, select_last_index = 1> (x)"),
    (11, f"{ints('k', 1)} y = CumSum <exclusive = 1, reverse = 1> (x, k0) k0 = Squeeze (k)"),
    (9, "y = MaxPool <kernel_shape = [2, 2]> (x)"),
    (10, "y = MaxPool <kernel_shape = [2, 3], strides = [2, 2], pads = [1, 1, 0, 1],"
         " ceil_mode = 1> (x)"),
    (10, "y = AveragePool <kernel_shape = [2, 3], strides = [2, 2], pads = [1, 1, 0, 1]> (x)"),
    (9, 'y = AveragePool <kernel_shape = [3, 3], auto_pad = "SAME_LOWER", strides = [2, 2]> (x)'),
    (9, "y = LRN <size = 3, alpha = 0.5> (x)"),
    (9, "y = Concat <axis = -1> (x, x)"),
    (8, "y = Sum (x, x, x)"),
    (8, "y = Mean (x, x)"),
    (9, "y = PRelu (x, s) s = Neg (x)"),
    (9, f"{ints('s', 4, 2, 1, 1, 1)} y = Expand (x, s0) {ints('s0', 3, 1, 1, 1, 1)}"),
    (9, f"{ints('r', 1, 2, 1, 3)} y = Tile (x, r)"),
    (9, f"{ints('i', 2, -1, 0)} y = Gather <axis = 3> (x, i)"),
    (11, "y = Gemm <transB = 1, alpha = 0.5> (f, f) f = Flatten (x)"),
    (9, "y = GlobalMaxPool (x)"),
    (10, "y = ThresholdedRelu <alpha = 0.3> (x)"),
    (9, "y = Shrink <lambd = 0.3, bias = 0.1> (x)"),
    (16, "y = HardSwish (x)"),
    (20, 'y = Gelu <approximate = "tanh"> (x)'),
    (12, 'y = Einsum <equation = "nchw, nkhw -> nck"> (x, x)'),
    (12, 'y = Einsum <equation = "...ij -> ...ji"> (x)'),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "body"), CASES, ids=lambda v: str(v).replace(" ", ""))
def test_the_form_of_that_opset(opset: int, body: str) -> None:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g ({X}) => (y) {{ {body} }}'
    model = sorted_model(onnx.parser.parse_model(text))
    imported = importer.Importer(load_model(model))
    program = imported.program({})
    program.module.verify()
    assert all(o.kind != "opaque" for o in imported.outcomes)
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    (wanted,) = ort.InferenceSession(model.SerializeToString(), options).run(["y"], {"x": x})
    got = reference.run(program, {"x": x})["y"]
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


# --- opsets 1 to 5: the cases of opset 6 that come with onnx, written as they were then ---


def in_opset(model: onnx.ModelProto, version: int) -> tuple[onnx.ModelProto, set[str]]:
    """A model of opset 6 in an older form, and the ops that have another form there."""
    old, changed = onnx.ModelProto(), set[str]()
    old.CopyFrom(model)
    old.opset_import[0].version = version
    for node in old.graph.node:
        named = {a.name: a for a in node.attribute}
        if node.op_type == "Reshape" and version < 5:
            sizes = constant(old, node.input[1])
            del node.input[1]
            node.attribute.append(helper.make_attribute("shape", sizes))
        elif node.op_type == "Pad" and version < 2:
            named["pads"].name = "paddings"
        elif node.op_type == "Cast":
            name = onnx.TensorProto.DataType.Name(named["to"].i)
            named["to"].CopyFrom(helper.make_attribute("to", name))
        elif node.op_type == "Concat" and version < 4 and named["axis"].i == 1:
            node.attribute.remove(named["axis"])
        elif "consumed_inputs" in onnx.defs.get_schema(node.op_type, version).attributes:
            node.attribute.append(helper.make_attribute("consumed_inputs", [0] * len(node.input)))
        else:
            continue
        changed.add(node.op_type)
    return old, changed


def constant(model: onnx.ModelProto, name: str) -> list[int]:
    """What a node `Constant` or an initialiser of this name holds."""
    tensors = {t.name: t for t in model.graph.initializer}
    tensors |= {n.output[0]: n.attribute[0].t for n in model.graph.node if n.op_type == "Constant"}
    return [int(v) for v in numpy_helper.to_array(tensors[name])]


def test_the_cases_of_opset_6_in_older_forms() -> None:
    """With what they are to give; a case is run where it has an op that none before it had."""
    met = {1: set[str](), 4: set[str](), 5: set[str]()}
    cases = (
        c for kind in ("pytorch-operator", "pytorch-converted") for c in load_model_tests(kind=kind)
    )
    for case in cases:
        folder = Path(case.model_dir or "")
        proto = onnx.load(folder / "model.onnx")
        for version in met if proto.opset_import[0].version == 6 else ():
            old, changed = in_opset(proto, version)
            if changed <= met[version]:
                continue
            met[version] |= changed
            given, wanted = (arrays(folder, stem) for stem in ("input", "output"))
            program = importer.Importer(load_model(old)).program({})
            feeds = dict(zip((i.name for i in proto.graph.input), given, strict=False))
            found = reference.run(program, {k: v for k, v in feeds.items() if k in program.inputs})
            for output, array in zip(proto.graph.output, wanted, strict=True):
                np.testing.assert_allclose(found[output.name], array, rtol=1e-3, atol=1e-5)
    assert {"Pad", "Concat", "Clip", "BatchNormalization", "Selu"} <= met[1]
    assert len(met[5]) == 21


def arrays(folder: Path, stem: str) -> list[Any]:
    found = sorted(folder.glob(f"test_data_set_0/{stem}_*.pb"))
    return [numpy_helper.to_array(onnx.TensorProto.FromString(p.read_bytes())) for p in found]


OLD = [
    (1, "y = Selu (x)", lambda x: np.where(x > 0, x, 1.6732 * np.expm1(x)) * 1.0507),
    (2, "y = Dropout <is_test = 1, ratio = 0.9> (x)", lambda x: x),
    (4, "y = Reshape <shape = [0, -1]> (x)", lambda x: x.reshape(2, 60)),
    (1, "y = Pad <paddings = [0, 0, 1, 2, 0, 0, 0, 1], value = 1.5> (x)",
     lambda x: np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 1)], constant_values=1.5)),
    (1, "y = GlobalLpPool <p = 1.0> (x)", lambda x: np.abs(x).sum((2, 3), keepdims=True)),
    (3, "y = Concat (x, x)", lambda x: np.concatenate([x, x], 1)),
    (5, 'i = Cast <to = "INT32"> (x) y = Cast <to = "FLOAT"> (i)', np.trunc),
    (1, "y = Clip <max = 0.25, consumed_inputs = [0]> (x)", lambda x: np.minimum(x, 0.25)),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "body", "meaning"), OLD, ids=lambda v: str(v).split(" ")[0])
def test_what_onnxruntime_no_longer_runs(opset: int, body: str, meaning: Any) -> None:
    text = f'<ir_version: 3, opset_import: ["" : {opset}]> g ({X}) => (float[n] y) {{ {body} }}'
    program = importer.Importer(load_model(onnx.parser.parse_model(text))).program({})
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    np.testing.assert_allclose(reference.run(program, {"x": x})["y"], meaning(x), rtol=1e-6)


def sorted_model(model: onnx.ModelProto) -> onnx.ModelProto:
    """Nodes in order (the cases are written as they read best), the output's type left open."""
    defined = {"x", ""}
    waiting, ordered = list(model.graph.node), []
    while waiting:
        ready = next(n for n in waiting if all(i in defined for i in n.input))
        waiting.remove(ready)
        ordered.append(ready)
        defined.update(ready.output)
    del model.graph.node[:]
    model.graph.node.extend(ordered)
    element = onnx.TensorProto.INT64 if "Arg" in ordered[-1].op_type else onnx.TensorProto.FLOAT
    model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", element, None))
    return model


def test_a_model_of_a_later_ir_version_is_refused() -> None:
    text = (
        '<ir_version: {}, opset_import: ["" : 20]> g (float[2] x) => (float[2] y) {{ y = Relu(x) }}'
    )
    assert load_model(onnx.parser.parse_model(text.format(onnx.IR_VERSION))).opsets == {"": 20}
    with pytest.raises(UserError, match="IR version 99 is newer than onnx"):
        load_model(onnx.parser.parse_model(text.format(99)))
