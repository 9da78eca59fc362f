"""Carried values that gain or lose rows: decoders that append, filters."""

import numpy as np
import onnx
import pytest
from support.random_nodes.judge import difference, run_plain

import isoform
from isoform.dialects.errors import UserError
from isoform.lowering.onnx_to_graph import import_onnx

X = np.array([0.5, 1, 2, -1], np.float32)
COUNT = "p = Greater(x, o) q = Cast<to = 7>(p) n = ReduceSum<keepdims = 0>(q)"
APPEND = """z = ReduceSum<keepdims = 1>(s) t = Concat<axis = 0>(s, z) a = Abs(z)
    l = Squeeze(a, zero)"""
LOOPS = {
    "frames until a sum": """y, w = Loop(six, "", none, x) <body = b (int64 i, bool c,
        float[a, 4] f, float[4] s) => (bool d, float[k, 4] t, float[4] u) { u = Add(s, s)
        v = Unsqueeze(u, zero) t = Concat<axis = 0>(f, v) m = ReduceSum<keepdims = 0>(u)
        d = Less(m, limit) }>""",
    "as often as computed": COUNT
    + """ y = Loop(n, "", x) <body = b (int64 i, bool c, float[a] s)
        => (bool d, float[k] t) { d = Identity(c) t = Concat<axis = 0>(s, one) }>""",
    "what is read is what was appended": f"""y = Loop(six, "", x) <body = b (int64 i, bool c,
        float[a] s) => (bool d, float[k] t) {{ {APPEND} d = Less(l, limit) }}>""",
    "beside a scan output": f"""y, r = Loop(six, "", x) <body = b (int64 i, bool c, float[a] s)
        => (bool d, float[k] t, float e) {{ {APPEND} d = Less(l, limit) e = Neg(l) }}>""",
    "a filter": """y = Loop(two, "", x) <body = b (int64 i, bool c, float[a] s)
        => (bool d, float[k] t) { d = Identity(c) m = ReduceSum<keepdims = 0>(s) g = Neg(m)
        h = Greater(s, g) t = Compress(s, h) }>""",
    "a counter that the condition ends": f"""y, r = Loop("", yes, x, naught) <body = b (int64 i,
        bool c, float[a] s, int64 j) => (bool d, float[k] t, int64 next) {{ {APPEND}
        next = Add(j, single) g = Less(l, limit) e = Less(next, six)
        d = If (g) <then_branch = u () => (bool e0) {{ e0 = Identity(e) }},
                    else_branch = v () => (bool no)
            {{ no = Constant<value = bool {{0}}>() }}> }}>""",
}


def parsed(nodes: str) -> onnx.ModelProto:
    kind = "float[n, 4]" if nodes.startswith("y, w") else "float[n]"
    text = f"""g (float[4] x) => ({kind} y) <float o = {{0}}, int64 six = {{6}}, int64 two = {{2}},
        float limit = {{30}}, float[1] one = {{1.5}}, int64[1] zero = {{0}}, bool yes = {{1}},
        float[0, 4] none = {{}}, int64 naught = {{0}}, int64 single = {{1}}> {{ {nodes} }}"""
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')


@pytest.mark.parametrize("name", LOOPS)
def test_a_carried_value_has_the_rows_that_the_iterations_give_it(name: str) -> None:
    model = parsed(LOOPS[name])
    session = isoform.compile(import_onnx(model), threads=1, effort="quick")
    for scale in (1, -1, 0, 3):
        feeds = {"x": X * np.float32(scale)}
        wanted = run_plain(model, feeds)["y"]
        assert difference(session(**feeds)["y"], wanted, 1e-5) == "", scale


def test_a_value_that_doubles_is_refused_in_one_line() -> None:
    nodes = f"""{COUNT} y = Loop(n, "", x) <body = b (int64 i, bool c, float[a] s)
        => (bool d, float[k] t) {{ d = Identity(c) t = Concat<axis = 0>(s, s) }}>"""
    with pytest.raises(UserError, match="grows by more rows in each iteration") as error:
        import_onnx(parsed(nodes))
    assert "\n" not in str(error.value)


def test_a_value_that_grows_without_a_bound_is_refused_in_one_line() -> None:
    nodes = f"""y = Loop("", yes, x) <body = b (int64 i, bool c, float[a] s)
        => (bool d, float[k] t) {{ {APPEND} d = Less(l, limit) }}>"""
    with pytest.raises(UserError, match="'s' has another type after an iteration") as error:
        import_onnx(parsed(nodes))
    assert "\n" not in str(error.value)
