"""What follows a result whose size data decide: sums over it, its size, places in it."""

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from support.random_nodes.judge import difference, run_plain

import isoform
from isoform.compiler.commands.check import check_model
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx, load_dynamic
from isoform.lowering.onnx_to_graph.loading import load_model

KEPT = "a = Relu(x) q = NonZero(a) t = Transpose(q) v = GatherND(x, t)"
COUNT = """m = Greater(x, nought) c = Cast <to = 7> (m) k0 = ReduceSum <keepdims = 0> (c)
    k = Reshape(k0, one)"""
# The result `y` and its type, by name; some need rows, or the number of elements above 0 (`k`).
OF_ROWS = {
    "sum": ("float", "y = ReduceSum <keepdims = 0> (v)"),
    "maximum": ("float", "p = Pad(v, front) y = ReduceMax <keepdims = 0> (p)"),
    "mean": ("float", "p = Pad(v, front) y = ReduceMean <keepdims = 0> (p)"),
    "product": ("float[1]", "y = ReduceProd(v)"),
    "position": ("int64", "p = Pad(v, front) y = ArgMin <keepdims = 0> (p)"),
    "softmax": ("float[n]", "y = Softmax <axis = 0> (v)"),
    "running sum": ("float[n]", "y = CumSum <reverse = 1> (v, naught)"),
    "product of columns": ("float[1,1]", "o = Constant <value_ints = [1, -1]> () r = Reshape(v, o)"
                           "l = Transpose(r) y = MatMul(r, l)"),
    "twice": ("float[n]", "y = Concat <axis = 0> (v, v)"),
    "behind others": ("float[n]", "y = Concat <axis = 0> (weights, v, weights, v)"),
    "scattered": ("float[1,5]", "w = Exp(v) y = ScatterND(x, t, w)"),
    "greatest": ("float[n]", "p = Pad(v, front) y, i = TopK(p, one)"),
    "all sorted": ("float[n]", "s = Shape(v) y, i = TopK(v, s)"),
    "size": ("int64", "y = Size(q)"),
    "shape": ("int64[2]", "y = Shape(q)"),
    "as many": ("float[n]", "s = Shape(v) y = Expand(weight, s)"),
    "the last": ("float", "p = Pad(v, front) y = Gather(p, minus)"),
    "moved places": ("float[n]", "r = Gather <axis = 1> (t, single) i = Add(r, four) "
                     "y = Gather(weights, i)"),
    "from the end": ("float[n]", "y = Slice(v, minus2, far, naughts)"),
    "backward": ("float[n]", "y = Slice(v, minus1, minusfar, naughts, minus1)"),
    "the first": ("float[n]", "y = Slice(v, naughts, two)"),
    "padded to eight": ("float[n]", "s = Shape(v) e = Sub(eight, s) p = Concat <axis = 0> "
                        "(naughts, e) u = Pad(v, p) y = Exp(u)"),
    "chosen twice": ("float[n]", "b = Greater(v, single_half) y = Compress <axis = 0> (v, b)"),
    "flat": ("int64[n]", "y = Reshape(t, minus1)"),
    "read twice": ("float[n]", "q2 = NonZero(a) t2 = Transpose(q2) v2 = GatherND(a, t2) "
                   "y = Add(v, v2)"),
    "all of them": ("float[n]", "w = Slice(v, naughts, far, naughts) y = Add(v, w)"),
    "two at most": ("float[n]", "s = Shape(v) c = Concat <axis = 0> (two, s) m = ReduceMin(c) "
                    "u, i = TopK(v, m) y = Slice(u, naughts, far)"),
    "written to": ("float[n]", "z = Mul(v, v) b = Greater(v, single_half) i = NonZero(b) "
                   "j = Squeeze(i, naughts) w = Compress(v, b) l = Size(v) f = Sub(j, l) "
                   "z2 = ScatterElements <axis = 0> (z, f, w) y = Neg(z2)"),
    "written to by tuples": ("float[n]", "z = Mul(v, v) b = Greater(v, single_half) "
                             "i = NonZero(b) j = Transpose(i) w = Compress(v, b) "
                             'y = ScatterND <reduction = "add"> (z, j, w)'),
    "columns written to": ("float[n,2]", "c = Concat <axis = 0> (minus1, one) u = Reshape(v, c) "
                           "z = Concat <axis = 1> (u, u) l = Cast <to = 7> (u) "
                           "o = Sub(l, l) n = Neg(u) "
                           "y = ScatterElements <axis = 1> (z, o, n)"),
    "a dim or -1": ("float[n,2]", "c = Concat <axis = 0> (minus1, one) u = Reshape(v, c) "
                    "s = Shape(v) f = Concat <axis = 0> (s, two) t2 = Mul(two, minus1) "
                    "h = Concat <axis = 0> (minus1, minus1) e = Equal(f, h) "
                    "o = Concat <axis = 0> (one, one) g = Where(e, o, f) y = Expand(u, g)"),
    "a centre": ("float[n]", "u = ReduceMean(v) y = Sub(v, u)"),
}  # fmt: skip
OF_COUNTS = {
    "greatest of them": ("float[1,n]", "y, i = TopK(x, k)"),
    "range": ("int64[n]", "y = Range(naught, k0, single)"),
    "range down": ("int64[n]", "y = Range(k0, minusone, minustwo)"),
    "range of floats": ("float[n]",
                        "h = ReduceMax <keepdims = 0> (x) t = Constant <value_float = 2.9> () "
                        "q = Clip(h, nought, t) y = Range(nought, q, single_half)"),
    "range of floats down": ("float[n]",
                             "h = Cast <to = 1> (k0) f = Constant <value_float = -1.5> () "
                             "y = Range(h, single_half, f)"),
    "first": ("float[1,n]", "y = Slice(x, naughts, k, one)"),
    "counted after a scatter": ("float[1,n]", "i = NonZero(m) t = Transpose(i) v = GatherND(x, t) "
                                "u = Neg(v) w = ScatterND(x, t, u) l = Less(w, nought) "
                                "d = Cast <to = 7> (l) e0 = ReduceSum <keepdims = 0> (d) "
                                "e = Reshape(e0, one) y = Slice(x, naughts, e, one)"),
    "others": ("float[1,n]", "y = Slice(x, k, far, one)"),
    "window": ("float[1,n]", "e = Add(k, two) y = Slice(x, k, e, one)"),
    "expanded": ("float[n,5]", "s = Concat <axis = 0> (k, five) y = Expand(x, s)"),
    "zeros": ("float[n]", "y = ConstantOfShape(k)"),
    "repeated": ("float[n,5]", "s = Concat <axis = 0> (k, one) y = Tile(x, s)"),
    "padded": ("float[1,n]", "p = Concat <axis = 0> (naughts, k, naughts, one) y = Pad(x, p)"),
    "reshaped": ("float[5,1]", "z = Sub(k, k) o = Add(z, one) s = Concat <axis = 0> (five, o) "
                 "y = Reshape(x, s)"),
}  # fmt: skip
NUMBERS = """<float nought = {0}, int64[1] one = {1}, int64[1] naughts = {0}, int64 naught = {0},
    int64 single = {1}, int64 four = {4}, int64[1] two = {2}, int64[1] eight = {8},
    int64[1] five = {5}, int64[1] far = {99}, int64[1] minusfar = {-99}, int64[1] minus1 = {-1},
    int64[1] minus2 = {-2}, int64 minus = {-1}, int64 minusone = {-1}, int64 minustwo = {-2},
    float[1] weight = {2.5}, float[9] weights = {0, 1, 2, 3, 4, 5, 6, 7, 8},
    int64[2] front = {1, 0}, float single_half = {0.7}>"""
X = np.array([[3, -1, 2, 0.5, -2]], np.float32)


def parsed(kind: str, nodes: str) -> onnx.ModelProto:
    text = f"g (float[1, 5] x) => ({kind} y) {NUMBERS} {{ {nodes} }}"
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')


def differences(model: onnx.ModelProto) -> list[str]:
    """Of the compiled program and the reference, where the number of rows is 0 to 5."""
    program = import_onnx(model)
    session = isoform.compile(program, threads=1, effort="quick")
    found: list[str] = []
    for x in (X, -X, np.abs(X), -np.abs(X)):
        wanted: Any = run_plain(model, {"x": x})["y"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            meant = program.cut(reference.run(program, {"x": x}))["y"]
        found.append(difference(session(x=x)["y"], wanted, 1e-5))
        found.append(difference(np.asarray(meant), wanted, 1e-5, "reference"))
    return list(filter(None, found))


@pytest.mark.parametrize("name", OF_ROWS)
def test_rows_that_data_count_are_computed_with(name: str) -> None:
    kind, nodes = OF_ROWS[name]
    assert differences(parsed(kind, f"{KEPT} {nodes}")) == []


@pytest.mark.parametrize("name", OF_COUNTS)
def test_results_are_as_large_as_computed_numbers_say(name: str) -> None:
    kind, nodes = OF_COUNTS[name]
    assert differences(parsed(kind, f"{COUNT} {nodes}")) == []


def test_a_comparison_that_holds_for_all_numbers_does_not_hold_for_nan() -> None:
    nodes = """most = Constant <value_float = 9.0> () a = Clip(x, nought, most)
        b = GreaterOrEqual(a, nought) c = Cast <to = 7> (b)
        n0 = ReduceSum <keepdims = 0> (c) n = Reshape(n0, one) y = Slice(x, naughts, n, one)"""
    proto, x = parsed("float[1,n]", nodes), X.copy()
    x[0, 2] = np.nan
    program = import_onnx(proto)
    for given in (X, x):
        found = program.cut(reference.run(program, {"x": given}))["y"]
        wanted: Any = run_plain(proto, {"x": given})["y"]
        assert difference(np.asarray(found), wanted, 1e-5, "reference") == ""


FED = {
    "a range of floats": (
        "float a, float b, float c", "float[n]", "y = Range(a, b, c)",
        [{"a": 0, "b": 2.5, "c": 0.5}, {"a": 3, "b": -1, "c": -0.75}, {"a": 3, "b": 1, "c": 1}],
    ),
    "non-zeros of an input": (
        "float[4] a", "int64[1,n]", "y = NonZero(a)", [{"a": [0, 0, 0, 0]}, {"a": [1, 0, -2, 0]}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FED)
def test_inputs_of_floats_decide_sizes_in_a_session(name: str) -> None:
    inputs, kind, nodes, feeds = FED[name]
    text = f'<ir_version: 10, opset_import: ["" : 21]> g ({inputs}) => ({kind} y) {{ {nodes} }}'
    proto = onnx.parser.parse_model(text)
    with isoform.compile(load_dynamic(load_model(proto), {}), threads=1, effort="quick") as session:
        for feed in feeds:
            given = {k: np.asarray(v, np.float32) for k, v in feed.items()}
            wanted: Any = run_plain(proto, given)["y"]
            assert difference(session(**given)["y"], wanted, 1e-6) == ""


def test_a_place_beyond_the_rows_is_one_line() -> None:
    """The row is there, but it is padding."""
    program = import_onnx(parsed("float", f"{KEPT} y = Gather(v, four)"))
    session = isoform.compile(program, threads=1, effort="quick")
    assert session(x=np.abs(X))["y"] == 2
    with pytest.raises(UserError, match="is out of range") as error:
        session(x=X)
    assert "\n" not in str(error.value)


def test_a_place_to_write_to_beyond_the_rows_is_one_line() -> None:
    """What comes from padding goes behind the last row; what the model writes there may not."""
    text = f"""{KEPT} b = Greater(v, single_half) i = NonZero(b) j = Squeeze(i, naughts)
        w = Compress(v, b) o = Sub(j, j) l = Add(o, five)
        y = ScatterElements <axis = 0> (v, l, w)"""
    session = isoform.compile(import_onnx(parsed("float[n]", text)), threads=1, effort="quick")
    for x in (X, np.abs(X)):
        with pytest.raises(UserError, match="is out of range"):
            session(x=x)


BAGS = """g (float[9, 2] x, int64[4] starts) => (float[m, 2] y)
    <int64[1] nine = {9}, int64 zero = {0}, int64 one = {1}, int64[1] front = {0},
     int64[1] minus = {-1}, int64 three = {3}, bool on = {1}, float[1, 2] none = {-1, -2}> {
    ends = Concat <axis = 0> (starts, nine)
    made = SequenceEmpty()
    last, rows = Loop("", on, zero, made) <body = b (int64 k, bool c, int64 j, seq(float[n, 2]) s)
        => (bool d, int64 next, seq(float[n, 2]) t) {
        a = Reshape(j, minus) b = Add(a, one) e = Add(b, one)
        start = Slice(ends, a, b) end = Slice(ends, b, e)
        same = Equal(start, end)
        row = If(same) <then_branch = p () => (float[1, 2] r) { r = Identity(none) },
            else_branch = q () => (float[1, 2] r2) {
                part = Slice(x, start, end) r2 = ReduceSum (part, front) }>
        t = SequenceInsert(s, row) next = Add(j, one) d = LessOrEqual(next, three) }>
    y = ConcatFromSequence <axis = 0> (rows)
}"""


def test_bags_between_places_that_an_input_gives_are_summed() -> None:
    """As torch exports EmbeddingBag: places of an inner graph, which name no input, are bounded."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18]> {BAGS}')
    model.graph.node[2].input[0] = ""
    program = import_onnx(model)
    assert check_model(model).totals["unsupported"] == 0
    session = isoform.compile(program, threads=1, effort="quick")
    x = np.random.default_rng(0).standard_normal((9, 2)).astype(np.float32)
    for starts in ([0, 2, 4, 8], [0, 0, 9, 9], [3, 3, 3, 3], [0, 7, 2, 5]):
        feeds = {"x": x, "starts": np.array(starts)}
        wanted = run_plain(model, feeds)["y"]
        np.testing.assert_allclose(session(**feeds)["y"], wanted, rtol=1e-5)
        np.testing.assert_allclose(reference.run(program, feeds)["y"], wanted, rtol=1e-5)


def test_a_size_that_nothing_bounds_is_one_line() -> None:
    nodes = "i = Cast <to = 7> (x) n = ReduceSum <keepdims = 0> (i) y = Range(naught, n, single)"
    with pytest.raises(UserError, match=r"nothing bounds a size .*Min of the size") as error:
        import_onnx(parsed("int64[n]", nodes))
    assert "\n" not in str(error.value)
    bounded = nodes.replace("y =", "l = Min(n, four) y =").replace("naught, n,", "naught, l,")
    assert differences(parsed("int64[n]", bounded)) == []


def test_two_dims_that_data_decide_are_one_line() -> None:
    with pytest.raises(UserError, match="data decide two of its dims") as error:
        import_onnx(parsed("float[n,m]", f"{COUNT} s = Concat <axis = 0> (k, k) y = Expand(x, s)"))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 2]])
@pytest.mark.parametrize("keep", [0, 1])
def test_other_dims_of_the_same_size_are_not_taken_for_the_padded_one(
    axes: list[int], keep: int
) -> None:
    """Of [3, n, 3], n at most 3, dims are told apart by their place, not by their size."""
    kinds = ", ".join("n" for _ in range(3 if keep else 3 - len(axes)))
    text = f"""g (float[3, 3, 3] x, float[3] c) => (float[{kinds}] y) <float z = {{0}}> {{
        m = Greater(c, z) r = Compress <axis = 1> (x, m)
        y = ReduceSum <axes = {axes}, keepdims = {keep}> (r) }}"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 12]> {text}')
    session = isoform.compile(import_onnx(model), threads=1, effort="quick")
    x = np.arange(27, dtype=np.float32).reshape(3, 3, 3)
    for c in ([1, 0, 1], [0, 0, 0], [1, 1, 1]):
        feeds = {"x": x, "c": np.array(c, np.float32)}
        assert difference(session(**feeds)["y"], run_plain(model, feeds)["y"], 1e-6) == ""
