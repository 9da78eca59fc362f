"""Results whose size depends on data: computed into as many rows as can be, cut at the end."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import isoform
from isoform.compiler import api, cli
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx

NUMBERS = "z = Constant <value: tensor = float[1] {0.0}> ()"
BOXES = """
    most = Constant <value: tensor = int64[1] {5}> ()
    overlap = Constant <value: tensor = float[1] {0.3}> ()
    least = Constant <value: tensor = float[1] {0.1}> ()
    k = NonMaxSuppression <center_point_box = CENTER> (b, s, most, overlap, least)"""
MODELS = {
    "positions": "g (float[4, 5] x) => (int64[2, n] y) { r = Relu(x) y = NonZero(r) }",
    "positions of a vector": "g (float[9] x) => (int64[n, 1] y) "
    "{ r = Relu(x) p = NonZero(r) y = Transpose(p) }",
    "rows": f"g (float[6, 5] x, float[6] c) => (float[n, 5] y) {{ {NUMBERS} m = Greater(c, z) "
    "t = Compress <axis = 0> (x, m) y = Exp(t) }",
    "columns": f"g (float[6, 5] x, float[5] c) => (float[6, n] y) {{ {NUMBERS} m = Greater(c, z) "
    "y = Compress <axis = 1> (x, m) }",
    "elements": f"g (float[6, 5] x, float[7] c) => (float[n] y) {{ {NUMBERS} m = Greater(c, z) "
    "y = Compress(x, m) }",
    "boxes": "g (float[2, 30, 4] b, float[2, 3, 30] s) => (int64[n, 3] k) {" + BOXES + "}",
    "chosen boxes": "g (float[1, 30, 4] b, float[1, 2, 30] s) => (float[n, 4] y) {"
    + BOXES
    + """ two = Constant <value_int = 2> () i = Gather <axis = 1> (k, two)
    first = Constant <value: tensor = int64[1] {0}> () one = Squeeze(b, first)
    y = Gather <axis = 0> (one, i) }""",
    "values": "g (int64[20] x) => (int64[n] y, int64[n] f, int64[20] i, int64[n] c) "
    "{ z = Neg(x) y, f, i, c = Unique <sorted = 1> (z) }",
    "values as they come": "g (int64[20] x) => (int64[n] y, int64[20] i) "
    '{ y, "", i = Unique <sorted = 0> (x) }',
    "a product of rows": f"g (float[6, 8] x, float[6] c, float[8, 3] w) => (float[n, 3] y, "
    f"float[n] s) {{ {NUMBERS} m = Greater(c, z) p = NonZero(m) t = Transpose(p) "
    "r = GatherND(x, t) d = MatMul(r, w) y = Softmax <axis = 1> (d) "
    "s = ReduceMax <axes = [1], keepdims = 0> (y) }",
}


def parsed(text: str) -> onnx.ModelProto:
    text = text.replace("CENTER", "0").replace('""', "unused")
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')


def drawn(session: Any, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def one(info: Any) -> Any:
        if info.type == "tensor(float)":
            return rng.standard_normal(info.shape).astype(np.float32)
        return rng.integers(0, 5, info.shape)

    return {info.name: one(info) for info in session.get_inputs()}


@pytest.mark.parametrize("name", MODELS)
def test_rows_are_those_of_onnxruntime(name: str) -> None:
    model = parsed(MODELS[name])
    theirs = ort.InferenceSession(model.SerializeToString())
    program = import_onnx(model)
    session = isoform.compile(program, threads=1, effort="quick")
    for seed in range(5):
        feeds = drawn(theirs, seed)
        if seed == 4:  # nothing is left
            feeds = {n: -np.abs(a) if a.dtype.kind == "f" else a for n, a in feeds.items()}
        wanted: Any = theirs.run(None, feeds)
        meant = list(program.cut(reference.run(program, feeds)).values())
        for found in (session.run(None, feeds), meant):
            for got, want in zip(found, wanted, strict=True):
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("classes", [0, 2])
@pytest.mark.parametrize("boxes", [0, 3])
def test_no_boxes_or_classes_give_no_rows(boxes: int, classes: int) -> None:
    text = f"g (float[1, {boxes}, 4] b, float[1, {classes}, {boxes}] s) => (int64[n, 3] k) {{"
    session = isoform.compile(import_onnx(parsed(text + BOXES + "}")), threads=1, effort="quick")
    feeds = {"b": np.zeros((1, boxes, 4)), "s": np.ones((1, classes, boxes))}
    found = session(**{name: a.astype(np.float32) for name, a in feeds.items()})["k"]
    assert found.tolist() == [[0, c, k] for c in range(classes) for k in range(boxes)]


def test_unique_holds_one_nan_after_all_numbers() -> None:
    # docs/onnx-disagreements.md: onnxruntime drops it
    text = """g (float[2, 4] x) => (float[n] y, int64[n] f, int64[8] i, int64[n] c)
    { y, f, i, c = Unique (x) }"""
    session = isoform.compile(import_onnx(parsed(text)), threads=1, effort="quick")
    x = np.array([[np.nan, 1, 0, np.nan], [np.inf, 1, -np.inf, 0]], np.float32)
    wanted = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for got, want in zip(session(x=x).values(), wanted, strict=True):
        np.testing.assert_array_equal(got, want.ravel())


@pytest.mark.parametrize("shape", [[0], [0, 3]])
def test_nothing_of_nothing_is_gathered(shape: list[int]) -> None:
    text = f"g (float{shape} x, int64[0, 2] i) => (float[a, b] y) {{ y = Gather(x, i) }}"
    model = parsed(text if len(shape) == 1 else text.replace("[a, b]", "[a, b, c]"))
    session = isoform.compile(import_onnx(model), threads=1, effort="quick")
    found = session(x=np.zeros(shape, np.float32), i=np.zeros((0, 2), np.int64))["y"]
    assert found.shape == (0, 2, *shape[1:])


def test_boxes_by_their_centres() -> None:
    model = parsed(MODELS["boxes"])
    node = next(n for n in model.graph.node if n.op_type == "NonMaxSuppression")
    node.attribute[0].i = 1
    theirs = ort.InferenceSession(model.SerializeToString())
    session = isoform.compile(import_onnx(model), threads=1, effort="quick")
    for seed in range(3):
        feeds = {n: np.abs(a) for n, a in drawn(theirs, seed).items()}
        wanted: Any = theirs.run(None, feeds)
        np.testing.assert_array_equal(session.run(None, feeds)[0], wanted[0])


def test_a_session_says_which_size_depends_on_data() -> None:
    session = isoform.compile(import_onnx(parsed(MODELS["positions"])), effort="quick")
    assert [str(o) for o in session.outputs] == ["y: int64[2, ?]"]
    with pytest.raises(UserError, match="depends on data"):
        x = np.ones((4, 5), np.float32)
        session.run(None, {"x": x}, out={"y": np.zeros((2, 20), np.int64)})


@pytest.mark.parametrize("op", ["Unique(f)", 'Einsum <equation = "ij->i"> (f)', "Trilu(f)"])
def test_what_does_not_go_row_by_row_is_one_line(op: str) -> None:
    text = f"""g (float[5, 4] b) => (y) {{ o = Constant <value: tensor = int64[1] {{0}}> ()
        r = Relu(b) k = NonZero(r) f = Cast <to = 1> (k) y = {op} }}"""
    with pytest.raises(UserError, match=r"as many rows as the data say \(at most 20\)") as error:
        import_onnx(parsed(text))
    assert "\n" not in str(error.value)
    assert "may not" in str(error.value)


def test_a_program_with_such_results_is_saved_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(parsed(MODELS["positions"]), tmp_path / "m.onnx")
    assert cli.main(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.mlir")]) == 0
    outputs: list[str] = []
    for file in ("m.onnx", "m.mlir"):
        capsys.readouterr()
        assert cli.main(["run", str(tmp_path / file), "--seed", "1"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    with pytest.raises(UserError, match="size depends on data"):
        api.save(import_onnx(parsed(MODELS["positions"])), tmp_path / "n.onnx")


def test_a_saved_session_cuts_too(tmp_path: Path) -> None:
    session = isoform.compile(import_onnx(parsed(MODELS["positions"])), threads=1, effort="quick")
    session.save(tmp_path / "saved")
    opened = isoform.open(tmp_path / "saved", threads=1)
    x = np.eye(4, 5, dtype=np.float32)
    assert [str(o) for o in opened.outputs] == [str(o) for o in session.outputs]
    np.testing.assert_array_equal(opened(x=x)["y"], np.stack(np.nonzero(x)))


def test_a_wrong_count_is_noticed() -> None:
    program = import_onnx(parsed(MODELS["positions"]))
    x = np.ones((4, 5), np.float32)
    outputs = reference.run(program, {"x": x})
    outputs["y.count"] = outputs["y.count"] - 1
    assert program.cut(outputs)["y"].shape == (2, 19)


def test_a_session_decodes_images_of_any_size(tmp_path: Path) -> None:
    pil = pytest.importorskip("PIL.Image")
    text = "g (uint8[n] b) => (uint8[h, w, c] y) { y = ImageDecoder(b) }"
    onnx.save(
        onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {text}'),
        tmp_path / "decoder.onnx",
    )
    program = isoform.load(tmp_path / "decoder.onnx")
    with isoform.compile(program, threads=1, effort="quick") as session:
        for rows in (5, 9):
            image = np.random.default_rng(rows).integers(0, 255, (rows, 4, 3), np.uint8)
            pil.fromarray(image).save(tmp_path / "image.png")
            encoded = np.fromfile(tmp_path / "image.png", np.uint8)
            assert np.array_equal(session(b=encoded)["y"], image)
        with pytest.raises(UserError, match="cannot identify image") as error:
            session(b=np.zeros(4, np.uint8))
    assert "\n" not in str(error.value)
