"""ONNX models imported with symbols for dims, against the same models imported for numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import onnxruntime
import pytest
from support.random_onnx.model import random_model
from support.symbolic_onnx import Shapes, cases, symbolic, with_symbols

from isoform.compiler.api import compile
from isoform.compiler.checks.verify_module import verify_module
from isoform.dialects import extent_math
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.dialects.shape_guards import GUARDS, shape_env
from isoform.dialects.specialize import sizes_of_shapes, specialize
from isoform.dialects.types import to_numpy
from isoform.lowering.onnx_to_graph.importer import imported
from isoform.lowering.onnx_to_graph.loading import OnnxModel, load_model

# The wheel computes what its cases expect with overflows and divisions by 0.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# By default every so many of the wheel's cases; the slow test takes all.
STEP = 12


def parsed(text: str) -> OnnxModel:
    return load_model(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}'))


def guards(program: Program) -> list[str]:
    found = program.main.attributes[GUARDS]
    return [guard.data for guard in found]  # pyright: ignore


def bound(program: Program, shapes: Shapes) -> Program:
    found = program.clone()
    given = {name: shapes[name] for name in found.input_names}
    specialize(found.module, sizes_of_shapes(found.main, found.input_names, given), found.weights)
    verify_module(found.module)
    return found


def steps(program: Program) -> list[tuple[str, ...]]:
    """Ops and types of results, without the data."""
    return [
        (op.name, *(str(result.type) for result in op.results))
        for op in program.main.walk()
        if op.name not in ("graph.constant", "graph.weight")
    ]


ATTENTION = """g (int64[batch,seq] ids, float[batch,1,1,seq] mask, float[50,8] table,
float[64,8] places, float[8,8] w) => (float[batch,seq,8] y)
<int64[1] two = {2}, int64 zero = {0}, int64 one = {1}, int64[1] axis0 = {0}> {
    shape = Shape(ids)
    b = Gather(shape, zero)
    n = Gather(shape, one)
    range = Range(zero, n, one)
    x0 = Gather(table, ids)
    p = Gather(places, range)
    x = Add(x0, p)
    q = MatMul(x, w)
    b1 = Unsqueeze(b, axis0)
    n1 = Unsqueeze(n, axis0)
    four = Constant<value_ints = [4]>()
    split = Concat<axis = 0>(b1, n1, two, four)
    heads0 = Reshape(q, split)
    heads = Transpose<perm = [0, 2, 1, 3]>(heads0)
    other = Transpose<perm = [0, 1, 3, 2]>(heads)
    scores0 = MatMul(heads, other)
    scores = Add(scores0, mask)
    probs = Softmax<axis = -1>(scores)
    mixed = MatMul(probs, heads)
    back = Transpose<perm = [0, 2, 1, 3]>(mixed)
    eight = Constant<value_ints = [8]>()
    whole = Concat<axis = 0>(b1, n1, eight)
    y = Reshape(back, whole)
}"""


def test_a_transformer_block_is_for_every_batch_and_length() -> None:
    """Each guard is one that ONNX asks for: a 0 in a shape copies a dim."""
    model = parsed(ATTENTION)
    weights: Shapes = {"table": (50, 8), "places": (64, 8), "w": (8, 8)}
    program = symbolic(model, {"ids": (2, 16), "mask": (2, 1, 1, 16), **weights})
    assert set(guards(program)) == {"batch != 0", "seq != 0"}
    for batch, seq in [(2, 16), (3, 17), (7, 64)]:
        shapes = {"ids": (batch, seq), "mask": (batch, 1, 1, seq), **weights}
        assert steps(bound(program, shapes)) == steps(imported(model, shapes)[0])
    shapes = {"ids": (1, 1), "mask": (1, 1, 1, 1), **weights}  # a gather of one row is a slice
    assert_equal_values(bound(program, shapes), imported(model, shapes)[0])
    with pytest.raises(UserError, match="expected batch != 0, found batch=0"):
        bound(program, {"ids": (0, 16), "mask": (0, 1, 1, 16), **weights})


CONVOLUTIONS = """g (float[n,3,h,w] x, float[8,3,3,3] k) => (float[n,8] y) {
    a = Conv<strides = [2, 2], pads = [1, 1, 1, 1], kernel_shape = [3, 3]>(x, k)
    b = MaxPool<kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1>(a)
    c = GlobalAveragePool(b)
    y = Flatten(c)
}"""


def test_an_enlarged_picture_is_one_of_every_size() -> None:
    model = parsed(
        "g (float[n,3,h,w] x) => (float[n,3,a,b] y) <float[4] s = {1.0, 1.0, 2.0, 3.0}> "
        '{ y = Resize<mode = "nearest">(x, , s) }'
    )
    program = symbolic(model, {"x": (2, 3, 4, 5)})
    assert not [guard for guard in guards(program) if "==" in guard]
    for shape in [(1, 3, 7, 7), (2, 3, 1, 30)]:
        static, _ = imported(model, {"x": shape})
        assert_equal_values(bound(program, {"x": shape}), static)


def test_images_of_every_size() -> None:
    model = parsed(CONVOLUTIONS)
    program = symbolic(model, {"x": (2, 3, 32, 33), "k": (8, 3, 3, 3)})
    assert not [guard for guard in guards(program) if "==" in guard]
    for n, h, w in [(1, 17, 18), (5, 32, 64), (2, 101, 7)]:
        shapes = {"x": (n, 3, h, w), "k": (8, 3, 3, 3)}
        assert steps(bound(program, shapes)) == steps(imported(model, shapes)[0])


TABLES = {
    "a part of a table": """g (float[batch, seq] x) => (float[batch, seq] y)
        <int64[1, 9] table = {4, 2, 0, 8, 6, 1, 3, 5, 7}, int64[1] zero = {0}, int64[1] one = {1}> {
        shape = Shape(x)
        seq = Slice(shape, one, two)
        places = Slice(table, zero, seq, one)
        all = Expand(places, shape)
        floats = Cast<to = 1>(all)
        y = Add(x, floats) }""",
    "a size as a number": """g (float[batch, seq] x) => (float[batch, seq] y)
        <int64[1] one = {1}, int64 first = {0}, int64 step = {1}> {
        shape = Shape(x)
        seq = Slice(shape, one, two)
        end = Squeeze(seq)
        places = Range(first, end, step)
        all = Mul(places, seq)
        floats = Cast<to = 1>(all)
        y = Add(x, floats) }""",
}


@pytest.mark.parametrize("name", TABLES)
def test_data_with_sizes_are_no_numbers(name: str) -> None:
    text = TABLES[name].replace("int64[1] one = {1}", "int64[1] one = {1}, int64[1] two = {2}")
    model = parsed(text)
    program = symbolic(model, {"x": (3, 5)})
    assert not [guard for guard in guards(program) if guard.startswith(("batch ==", "seq =="))]
    for shape in ((3, 5), (2, 8), (7, 4)):
        x = np.random.default_rng(0).standard_normal(shape, np.float32)
        (found,) = compile(bound(program, {"x": shape})).run(None, {"x": x})
        peer = onnxruntime.InferenceSession(model.proto.SerializeToString())
        np.testing.assert_allclose(found, np.asarray(peer.run(None, {"x": x})[0]), rtol=1e-6)


def test_what_needs_a_number_says_where() -> None:
    """A matrix of the transform is data: its length is a number, and the guard says so."""
    model = parsed("g (float[n,m,1] x) => (float[n,m,2] y) { y = DFT<axis = 1>(x) }")
    program = symbolic(model, {"x": (2, 8, 1)})
    assert "m == 8" in guards(program)
    assert not any(guard.startswith("n ==") for guard in guards(program))
    bound(program, {"x": (5, 8, 1)})
    with pytest.raises(UserError, match="expected m == 8, found m=9"):
        bound(program, {"x": (5, 9, 1)})


def test_names_of_dims_that_are_expressions_or_no_names() -> None:
    model = parsed(
        "g (float[past,2] a, float[total,2] b) => (float[k,2] y) { y = Concat<axis = 0>(a, b) }"
    )
    graph = model.proto.graph
    graph.input[1].type.tensor_type.shape.dim[0].dim_param = "past + now"
    for name, param in (("c", "2 x"), ("d", "?"), ("e", "now")):
        graph.input.append(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [param, 2])
        )
        graph.node[0].input.append(name)
    shapes = {"a": (3, 2), "b": (5, 2), "c": (7, 2), "d": (1, 2), "e": (2, 2)}
    program = symbolic(model, shapes)
    types = [str(type_) for type_ in program.inputs.values()]
    assert types[0] == "tensor<?x2xf32, #graph.dims<past, 2>>"
    assert types[1] == "tensor<?x2xf32, #graph.dims<now + past, 2>>"
    assert types[2] == "tensor<?x2xf32, #graph.dims<dim2_2_x, 2>>"
    assert types[3] == "tensor<?x2xf32, #graph.dims<d_dim0, 2>>"
    assert guards(program) == []
    with pytest.raises(UserError, match="a dim of input 'b' has another size"):
        bound(program, shapes | {"b": (6, 2)})


def compare(proto: onnx.ModelProto, shapes: Shapes) -> int:
    """Compare at the example and at sizes one, two and four larger; how often that was possible."""
    try:
        imported(load_model(proto), shapes)
    except (UserError, ValueError):
        return 0
    model, compared = with_symbols(proto), 0
    program = symbolic(model, shapes)
    sizes = sizes_of_shapes(program.main, program.input_names, shapes)
    for more in (0, 1, 2, 4):
        larger = larger_by(more, sizes, shapes)
        if shape_env(program.main).broken({name: n + more for name, n in sizes.items()}):
            continue
        try:
            static, _ = imported(model, larger)
        except UserError:
            continue
        found = bound(program, larger)
        # Where its number is known, more is computed at import; then the values are compared.
        if steps(found) != steps(static):
            assert_equal_values(found, static)
        compared += 1
    return compared


def assert_equal_values(a: Program, b: Program) -> None:
    """By the reference, on inputs that are valid as indices, too; none where both refuse them."""
    draw = np.random.default_rng(0)
    feeds = {
        name: draw.integers(0, 2, type_.get_shape()).astype(to_numpy(type_.element_type))
        for name, type_ in a.inputs.items()
    }
    try:
        wanted = compile(b, target="reference")(**feeds)
    except UserError:
        return
    found = compile(a, target="reference")(**feeds)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def larger_by(more: int, sizes: Mapping[str, int], shapes: Shapes) -> Shapes:
    return {
        name: tuple(sizes[f"s{n}"] + more if n > 1 else n for n in shape)
        for name, shape in shapes.items()
    }


def test_node_cases_with_symbols_are_those_with_numbers() -> None:
    compared = sum(compare(proto, shapes) for _, proto, shapes in list(cases())[::STEP])
    assert compared > 150


@pytest.mark.slow
@pytest.mark.parametrize("part", range(STEP))
def test_all_node_cases_with_symbols_are_those_with_numbers(part: int) -> None:
    assert sum(compare(proto, shapes) for _, proto, shapes in list(cases())[part::STEP]) > 100


@pytest.mark.parametrize("seed", range(8))
def test_random_models_with_symbols_are_those_with_numbers(seed: int) -> None:
    case = random_model(seed)
    shapes: Shapes = {name: array.shape for name, array in case.inputs.items()}
    assert compare(case.model, shapes)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_random_models_with_symbols_are_those_with_numbers(part: int) -> None:
    for seed in range(100 * part, 100 * part + 100):
        case = random_model(seed)
        compare(case.model, {name: array.shape for name, array in case.inputs.items()})


def test_a_wrong_floor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison is not blind: a floor rounded the wrong way gives other types."""

    value = extent_math.value_at

    def wrong(expr: object, sizes: Mapping[str, int]) -> int:
        found = value(expr, sizes)  # pyright: ignore
        return found + 1 if "FloorDivision" in str(expr) else found

    monkeypatch.setattr(extent_math, "value_at", wrong)
    model = parsed(CONVOLUTIONS)
    program = symbolic(model, {"x": (2, 3, 32, 33), "k": (8, 3, 3, 3)})
    with pytest.raises(UserError, match="result types do not follow"):
        bound(program, {"x": (1, 3, 17, 18), "k": (8, 3, 3, 3)})
