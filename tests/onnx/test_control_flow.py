"""If, Loop and Scan agree with onnxruntime, decided by constants or by data; none is endless."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.agreement import opaque_ops
from support.random_nodes.control import boolean, random_model, scalar, vector
from support.random_nodes.judge import difference, run_plain, wrong

import isoform
from isoform.compiler.frontends.program_file import read_program, save_mlir
from isoform.dialects import reference
from isoform.dialects.control import ControlOp
from isoform.dialects.errors import UserError
from isoform.dialects.weights_only import depends_on_weights_only
from isoform.lowering.graph_to_onnx.exporter import to_model
from isoform.lowering.onnx_to_graph import control_flow, import_onnx, load_dynamic, regions
from isoform.lowering.onnx_to_graph.control_flow import MAX_ITERATIONS, MAX_UNROLLED
from isoform.lowering.onnx_to_graph.importer import Importer
from isoform.lowering.onnx_to_graph.loading import load_model
from isoform.lowering.onnx_to_graph.values import NotConstant

X = np.array([0.5, 1.0, 2.0, -1.0], np.float32)


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model('<ir_version: 10, opset_import: ["" : 21]>\n' + text)


def control_ops(program: isoform.Program) -> list[str]:
    """The loops and branches, those in bodies too."""
    return [op.name for op in program.module.walk() if isinstance(op, ControlOp)]


# --- random models ---


@pytest.mark.parametrize("least", [regions.UNROLLED, 1])
def test_random_control_flow_means_what_onnxruntime_computes(
    least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with loops of known counts kept as loops."""
    monkeypatch.setattr(regions, "UNROLLED", least)
    kinds: set[str] = set()
    for seed in range(30):
        proto, feeds = random_model(seed)
        assert wrong(proto, feeds) == "", f"seed {seed}"
        program = import_onnx(proto)
        assert opaque_ops(program) == []
        kinds |= {"", *control_ops(program)}
    assert kinds == {"", "control.if", "control.loop"}


@pytest.mark.parametrize("least", [regions.UNROLLED, 1])
def test_compiled_control_flow_computes_what_onnxruntime_does(
    least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "UNROLLED", least)
    for seed in (40, 44, 127):
        assert wrong(*random_model(seed), compiled=True) == "", f"seed {seed}"


@pytest.mark.parametrize("least", [regions.UNROLLED, 1])
def test_values_whose_size_data_decide_mean_what_onnxruntime_computes(
    least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within loops and branches, and through sequences and optionals."""
    monkeypatch.setattr(regions, "UNROLLED", least)
    for seed in range(30):
        proto, feeds = random_model(seed, sizes=True)
        assert wrong(proto, feeds) == "", f"seed {seed}"
    for seed in (67, 303):
        assert wrong(*random_model(seed, sizes=True), compiled=True) == "", f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [False, True])
@pytest.mark.parametrize("least", [regions.UNROLLED, 1])
def test_many_models_of_control_flow_agree(
    least: int, sizes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "UNROLLED", least)
    for seed in range(1000):
        assert wrong(*random_model(seed, sizes)) == "", f"seed {seed}"
    for seed in range(1000, 1500):
        assert wrong(*random_model(seed, sizes), compiled=True) == "", f"seed {seed}"


def test_control_flow_that_data_decide_comes_back_from_onnx_and_from_text(tmp_path: Any) -> None:
    """With what its subgraphs read from outside, whatever those values are called by then."""
    tried = 0
    for seed in range(30):
        proto, feeds = random_model(seed)
        program = import_onnx(proto)
        if not control_ops(program):
            continue
        tried += 1
        written = to_model(program)
        onnx.checker.check_model(written)
        given = {k: v for k, v in feeds.items() if k in program.inputs}
        wanted = next(iter(run_plain(proto, feeds).values()))
        found = next(iter(run_plain(written, given).values()))
        assert difference(found, wanted, 1e-4) == "", f"seed {seed}"
        save_mlir(program, tmp_path / "p.mlir")
        again = reference.run(read_program(tmp_path / "p.mlir"), given)
        assert difference(next(iter(again.values())), wanted, 1e-4, "reference") == ""
    assert tried >= 4


# --- If ---


def test_pure_branches_are_both_computed_and_selected() -> None:
    proto = model("""g (float[4] x, bool c) => (float[4] y) {
        y = If (c) <then_branch = t () => (float[4] a) { a = Add(x, x) },
                    else_branch = e () => (float[4] b) { b = Log(x) }>
    }""")
    assert opaque_ops(import_onnx(proto)) == []
    for c in (True, False):  # the other branch's NaN does not come through
        assert wrong(proto, {"x": X, "c": np.asarray(c)}) == ""


def test_a_branch_that_may_fail_runs_only_where_it_is_taken() -> None:
    """The position is out of range whenever the branch is not taken."""
    proto = model("""g (float[4] x, int64[2] k, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Gather(x, k) },
                    else_branch = e () => (float[2] b) { b = Cast<to = 1>(k) }>
    }""")
    assert opaque_ops(import_onnx(proto)) == []
    assert control_ops(import_onnx(proto)) == ["control.if"]
    assert wrong(proto, {"x": X, "k": np.array([3, 0]), "c": np.asarray(True)}) == ""
    assert wrong(proto, {"x": X, "k": np.array([7, 9]), "c": np.asarray(False)}, True) == ""


def test_branches_of_other_shapes_need_a_constant_condition() -> None:
    proto = model("""g (float[4] x, bool c) => (float[n] y) {
        y = If (c) <then_branch = t () => (float[4] a) { a = Neg(x) },
                    else_branch = e () => (float[8] b) { b = Concat<axis = 0>(x, x) }>
    }""")
    with pytest.raises(NotConstant, match=r"branches give other .*'c' must be a constant"):
        import_onnx(proto)


def test_finding_what_a_branch_reads_does_not_double_with_each_op(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each value is looked at once, though each is read twice."""
    asked: list[int] = []

    def count(op: Any, known: Any) -> bool:
        asked.append(1)
        assert len(asked) < 500
        return depends_on_weights_only(op, known)

    monkeypatch.setattr(regions, "depends_on_weights_only", count)
    doubled = " ".join(f"d{k + 1} = Add(d{k}, d{k})" for k in range(40))
    import_onnx(
        model(f"""g (float[4] x, bool c) => (float[4] y) {{
            d0 = Neg(x) {doubled}
            y = If (c) <then_branch = t () => (float[4] a) {{ a = Exp(d40) }},
                        else_branch = e () => (float[4] b) {{ b = Log(d40) }}>
        }}""")
    )
    assert asked


# --- Loop ---


def test_a_branch_that_is_wrong_for_these_shapes_is_left_out_where_a_given_value_says_so() -> None:
    branched = model("""g (float[4] x, int64 rate) => (float[2, 2] y) {
        known = Constant<value_int = 16000>()
        c = Equal(rate, known)
        y = If (c) <
            then_branch = t () => (float[2, 2] a) {
                s = Constant<value_ints = [2, 2]>()
                a = Reshape(x, s)
            },
            else_branch = e () => (float[2, 2] b) {
                s = Constant<value_ints = [2, 3]>()
                b = Reshape(x, s)
            }>
    }""")
    x = np.array([1.0, 2.0, 4.0, 8.0], np.float32)
    program = load_dynamic(load_model(branched), {})
    with isoform.compile(program, threads=1) as session:
        np.testing.assert_array_equal(session(x=x, rate=np.array(16000))["y"], x.reshape(2, 2))
        with pytest.raises(UserError, match=r"Reshape|reshape"):
            session(x=x, rate=np.array(8000))
    with pytest.raises(UserError, match=r"its else_branch cannot run .*the condition 'c' must be"):
        _ = program.module


def loop(nodes: str, count: str, first: str, outputs: str = "float[4] r") -> onnx.ModelProto:
    named = ", ".join(f"y{k}" for k in range(outputs.count("float")))
    declared = ", ".join(f"float[n{k}] y{k}" for k in range(outputs.count("float")))
    return model(f"""g (float[4] x) => ({declared})
        <int64 four = {{4}}, int64 zero = {{0}}, int64 far = {{1000000}}, bool yes = {{1}},
         float bound = {{100.0}}> {{
        {named} = Loop({count}, {first}, x) <body = b (int64 i, bool on, float[4] s) =>
            (bool go, {outputs}) {{ {nodes} }}>
    }}""")


HOST_ONLY = 'ai.onnx.ml.Normalizer<norm = "L2">'
UNTIL = "r = Add(s, s) q = ReduceSum<keepdims = 0>(r) go = Less(q, bound)"


@pytest.mark.parametrize(("count", "first"), [('""', '""'), ('""', "yes"), ("far", '""')])
def test_a_loop_that_data_end_runs_until_they_do(count: str, first: str) -> None:
    """Importing runs none of it: on zeros it would not end."""
    proto = loop(UNTIL, count, first)
    assert opaque_ops(import_onnx(proto)) == []
    assert control_ops(import_onnx(proto)) == ["control.loop"]
    assert wrong(proto, {"x": X}) == ""
    assert wrong(proto, {"x": X}, compiled=True) == ""


@pytest.mark.parametrize("n", [0, 1, 3])
def test_what_no_iteration_changes_is_computed_once_before_the_loop(n: int) -> None:
    """The product is; its transposition is not by itself, nor what depends on a state."""
    proto = model("""g (int64 n, float[4] x, float[4,4] m) => (float[4] y, float[4] z) {
        y, z = Loop (n, , x, x) <body = b (int64 i, bool on, float[4] s, float[4] same)
                                 => (bool go, float[4] r, float[4] also) {
            go = Identity(on) also = Identity(same)
            t = Transpose<perm = [1, 0]>(m) p = MatMul(x, t) q = Neg(p)
            u = Add(s, q) v = MatMul(u, t) r = Tanh(v) }>
    }""")
    program = import_onnx(proto)
    (loop,) = (op for op in program.module.walk() if isinstance(op, ControlOp))
    inside = [op.name for op in loop.body.block.ops]
    assert "graph.neg" not in inside
    assert inside.count("graph.matmul") == 1
    outside = [op.name for op in program.main.body.block.ops]
    assert (outside.count("graph.matmul"), outside.count("graph.neg")) == (1, 1)
    feeds = {
        "n": np.asarray(n),
        "x": X,
        "m": np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4),
    }
    assert wrong(proto, feeds, compiled=True) == ""


def test_a_loop_of_no_iterations_gives_empty_scan_outputs() -> None:
    proto = loop("go = Identity(on) r = Neg(s) t = Abs(s)", "zero", '""', "float[4] r, float[4] t")
    assert wrong(proto, {"x": X}) == ""


def test_a_scan_output_of_iterations_that_nothing_bounds_is_refused() -> None:
    with pytest.raises(UserError, match=r"node 'y0' \(Loop\): a scan output has as many rows"):
        import_onnx(loop(UNTIL + " t = Abs(r)", '""', '""', "float[4] r, float[4] t"))


@pytest.mark.parametrize("first", [0.1, 1.0, 50.0])
def test_a_scan_output_has_a_row_for_each_iteration(first: float) -> None:
    """A condition ends it after four, three and one."""
    body = "r = Add(s, s) q = ReduceSum <keepdims = 0> (r) go = Less(q, bound) t = Neg(s)"
    proto = model(f"""g (float[4] x) => (float[4] y, float[n, 4] z, float w) <int64 six = {{6}},
        bool yes = {{1}}, float bound = {{30.0}}> {{
        y, z = Loop(six, yes, x) <body = b (int64 i, bool on, float[4] s) =>
            (bool go, float[4] r, float[4] t) {{ {body} }}>
        w = ReduceSum <keepdims = 0> (z) }}""")
    assert control_ops(import_onnx(proto)) == ["control.loop"]
    assert wrong(proto, {"x": np.abs(X) * np.float32(first)}, compiled=True) == ""


def test_what_a_body_captures_is_looked_at_once() -> None:
    """Each of these sums reads the one before twice: their paths double with each."""
    sums = "v0 = Add(x, x)" + "".join(f" v{k + 1} = Add(v{k}, v{k})" for k in range(299))
    proto = model(f"""g (float[4] x) => (float[4] y)
        <float nought = {{0}}, float[4] w = {{1, 1, 1, 1}}> {{
        {sums} s = ReduceSum<keepdims = 0>(x) c = Less(s, nought)
        y = If (c) <then_branch = t () => (float[4] a) {{ a = Add(v299, w) }},
                    else_branch = e () => (float[4] b) {{ b = Neg(x) }}>
    }}""")
    assert wrong(proto, {"x": X * np.float32(0)}) == ""


def test_a_loop_that_computes_nothing_is_none() -> None:
    proto = loop("go = Less(i, four) r = Identity(s)", '""', '""')
    assert control_ops(import_onnx(proto)) == []
    assert wrong(proto, {"x": X}, compiled=True) == ""


def test_rows_of_a_loop_that_data_end_go_to_onnx_and_back() -> None:
    proto = loop(UNTIL + " t = Abs(r)", "four", '""', "float[4] r, float[4] t")
    del proto.graph.output[:]
    proto.graph.node.append(helper.make_node("ReduceSum", ["y1"], ["sum"], keepdims=0))
    proto.graph.output.append(helper.make_tensor_value_info("sum", 1, []))
    written = to_model(import_onnx(proto))
    wanted, found = (run_plain(m, {"x": np.abs(X) * 9})["sum"] for m in (proto, written))
    assert difference(found, wanted, 1e-6) == ""


COUNTED = """m = Greater(x, nought) c = Cast<to = 7>(m) n = ReduceSum<keepdims = 0>(c)"""


@pytest.mark.parametrize("sign", [1, -1, 0])
def test_a_scan_output_has_as_many_rows_as_computed(sign: int) -> None:
    proto = model(f"""g (float[4] x) => (float[4] y, float[k, 4] z) <float nought = {{0}}> {{
        {COUNTED} y, z = Loop(n, "", x) <body = b (int64 i, bool on, float[4] s) =>
            (bool go, float[4] r, float[4] t) {{ go = Identity(on) r = Tanh(s) t = Neg(s) }}>
    }}""")
    assert wrong(proto, {"x": X * np.float32(sign)}, compiled=True) == ""


@pytest.mark.parametrize("sign", [1, -1, 0])
def test_a_body_reads_rows_that_data_count(sign: int) -> None:
    proto = model(f"""g (float[4] x) => (float y) <float nought = {{0}}> {{
        {COUNTED} q = Compress(x, m) y = Loop(n, "", nought) <body = b (int64 i, bool on, float s)
            => (bool go, float r) {{ go = Identity(on) p = Gather(q, i) e = Exp(q)
                t = ReduceSum<keepdims = 0>(e) u = Mul(p, t) r = Add(s, u) }}>
    }}""")
    assert wrong(proto, {"x": X * np.float32(sign)}, compiled=True) == ""


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("branch", ["Concat <axis = 0> (x, w)", "Gather(x, one)", "Compress(x, m)"])
def test_branches_that_differ_in_one_dim_give_as_many_rows_as_the_taken_one(
    branch: str, sign: int
) -> None:
    """The condition is computed; that of an input is fixed by a session."""
    proto = model(f"""g (float[4] x) => (float[n] y, float z) <float nought = {{0}},
        float[2] w = {{1, 2}}, int64[1] one = {{1}}> {{
        m = Greater(x, nought) s = ReduceSum <keepdims = 0> (x) c = Greater(s, nought)
        y = If (c) <then_branch = t () => (float[4] a) {{ a = Exp(x) }},
                    else_branch = e () => (float[k] b) {{ b = {branch} }}>
        z = ReduceSum <keepdims = 0> (y) }}""")
    assert opaque_ops(import_onnx(proto)) == []
    assert wrong(proto, {"x": X * np.float32(sign)}, compiled=True) == ""


def test_a_value_whose_shape_the_iterations_change_is_refused() -> None:
    nodes = "r = Concat<axis = 0>(s, s) q = ReduceSum<keepdims = 0>(r) go = Less(q, bound)"
    with pytest.raises(UserError, match="grows by more rows in each iteration"):
        import_onnx(loop(nodes, "four", '""', "float[8] r"))


@pytest.mark.parametrize(
    "nodes", ["go = Identity(on) r = Neg(s)", "go = Constant<value = bool {1}>() r = Neg(s)"]
)
def test_a_loop_that_cannot_end_is_refused_after_a_bounded_number_of_steps(nodes: str) -> None:
    importer = Importer(load_model(loop(nodes, '""', '""')))
    with pytest.raises(UserError, match="has not ended after 4096 iterations") as error:
        importer.program({})
    assert "\n" not in str(error.value)
    assert importer.visited[0] <= 2 * MAX_ITERATIONS + 2


def nested(depth: int) -> onnx.ModelProto:
    """Loops within loops, each ended by data."""

    def body(level: int) -> onnx.GraphProto:
        state = f"s{level}"
        inner = helper.make_node("Add", [state, state], [f"r{level}"])
        if level:
            names = ["n", "", state]
            inner = helper.make_node("Loop", names, [f"r{level}"], body=body(level - 1))
        nodes = [
            inner,
            helper.make_node("ReduceSum", [f"r{level}"], [f"q{level}"], keepdims=0),
            helper.make_node("Less", [f"q{level}", "bound"], [f"c{level}"]),
        ]
        inputs = [scalar(f"i{level}"), boolean(f"g{level}"), vector(state)]
        return helper.make_graph(nodes, "b", inputs, [boolean(f"c{level}"), vector(f"r{level}")])

    weights = [
        numpy_helper.from_array(np.asarray(3, np.int64), "n"),
        numpy_helper.from_array(np.asarray(100, np.float32), "bound"),
    ]
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body(depth))
    graph = helper.make_graph([node], "g", [vector("x")], [vector("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_importing_loops_within_loops_does_not_double_with_each() -> None:
    counts: list[int] = []
    for depth in (4, 8):
        importer = Importer(load_model(nested(depth)))
        importer.program({})
        counts.append(importer.visited[0])
    assert counts[1] < 5 * counts[0], "quadratic, not exponential"
    assert wrong(nested(4), {"x": X}) == ""


def test_a_loop_that_would_make_too_many_nodes_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_flow, "MAX_UNROLLED", 20)
    proto = loop("go = Identity(on) r = Neg(s) t = Abs(s)", "four", "yes", "float[4] r, float[4] t")
    assert control_ops(import_onnx(proto)) == []
    monkeypatch.setattr(control_flow, "MAX_UNROLLED", 5)
    assert control_ops(import_onnx(proto)) == ["control.loop"]
    assert wrong(proto, {"x": X}) == ""
    assert MAX_UNROLLED > 1000


def test_a_body_with_a_node_that_only_the_host_runs_is_opaque() -> None:
    proto = loop(f"t = {HOST_ONLY}(s) " + UNTIL.replace("Add(s, s)", "Add(s, t)"), "far", '""')
    proto.opset_import.add(domain="ai.onnx.ml", version=3)
    assert (opaque_ops(import_onnx(proto)), control_ops(import_onnx(proto))) == (["Loop"], [])
    assert wrong(proto, {"x": X}, compiled=True) == ""


def test_a_loop_that_calls_what_cannot_be_run_is_refused_in_one_line() -> None:
    half = UNTIL.replace("Add(s, s)", "com.microsoft.BiasGelu(s, s)")
    proto = loop(half, "four", '""')
    proto.opset_import.add(domain="com.microsoft", version=1)
    assert opaque_ops(import_onnx(proto)) == [], "native code does not need onnx.reference"
    proto = loop(f"t = {HOST_ONLY}(s) {half.replace('(s, s)', '(s, t)')}", "four", '""')
    proto.opset_import.add(domain="com.microsoft", version=1)
    proto.opset_import.add(domain="ai.onnx.ml", version=3)
    with pytest.raises(UserError, match="its subgraph cannot be run") as error:
        import_onnx(proto)
    assert "\n" not in str(error.value)


def test_a_long_loop_whose_body_has_no_form_as_one_is_unrolled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the iteration decides what is read, its number has to be known."""
    monkeypatch.setattr(regions, "UNROLLED", 2)
    nodes = "n = Add(i, one) l = Range(i, n, one) p = Gather(s, l) r = Add(s, p) go = Identity(on)"
    proto = loop(nodes, "four", '""')
    proto.graph.initializer.append(numpy_helper.from_array(np.asarray(1), "one"))
    assert control_ops(import_onnx(proto)) == []
    assert wrong(proto, {"x": X}) == ""


@pytest.mark.parametrize("axes", [(0, 0), (1, 1)])
def test_a_long_scan_is_a_loop(axes: tuple[int, int]) -> None:
    """Along any axes and in any direction; its program is as long as that of a longer one."""

    def scan(steps: int) -> onnx.ModelProto:
        shape = [4, 4]
        shape[axes[0]] = steps
        return model(f"""g (float[4] x, float[{shape[0]},{shape[1]}] z)
                => (float[4] y, float[n,m] w) {{
            y, w = Scan<num_scan_inputs = 1, scan_input_axes = [{axes[0]}],
                        scan_output_axes = [{axes[1]}], scan_input_directions = [1],
                        scan_output_directions = [1],
                        body = b (float[4] s, float[4] r) => (float[4] t, float[4] o)
                               {{ a = Add(s, r) t = Tanh(a) o = Mul(t, x) }}> (x, z)
        }}""")

    sizes: list[int] = []
    for steps in (regions.UNROLLED, 100):
        proto = scan(steps)
        shape = [4, 4]
        shape[axes[0]] = steps
        feeds = {"x": X, "z": np.linspace(-1, 1, 4 * steps, dtype=np.float32).reshape(shape)}
        assert control_ops(import_onnx(proto)) == ["control.loop"]
        assert wrong(proto, feeds, compiled=True) == ""
        sizes.append(len(list(import_onnx(proto).module.walk())))
    assert sizes[0] == sizes[1]


# --- sequences ---

SEQUENCES = {
    "construct": "s = SequenceConstruct(x, z) y = ConcatFromSequence<axis = 0>(s)",
    "stack": "s = SequenceConstruct(x, z, x) y = ConcatFromSequence<axis = 1, new_axis = 1>(s)",
    "at": "s = SequenceConstruct(x, z) y = SequenceAt(s, one)",
    "at the end": "s = SequenceConstruct(x, z) y = SequenceAt(s, minus)",
    "insert": """s = SequenceConstruct(x) t = SequenceInsert(s, z, zero)
        y = ConcatFromSequence<axis = 0>(t)""",
    "append to empty": """e = SequenceEmpty<dtype = 1>() s = SequenceInsert(e, z)
        t = SequenceInsert(s, x) y = ConcatFromSequence<axis = 0>(t)""",
    "erase": """s = SequenceConstruct(x, z, x) t = SequenceErase(s, zero) u = SequenceErase(t)
        y = ConcatFromSequence<axis = 0>(u)""",
    "length": "s = SequenceConstruct(x, z) y = SequenceLength(s)",
    "split in ones": """s = SplitToSequence<axis = 1, keepdims = 0>(x)
        y = ConcatFromSequence<axis = 0>(s)""",
    "split evenly": "s = SplitToSequence<axis = 1>(x, two) y = SequenceAt(s, one)",
    "split unevenly": "s = SplitToSequence<axis = 1>(x, parts) y = SequenceAt(s, minus)",
    "hand on": "s = SequenceConstruct(x, z) t = Identity(s) y = SequenceAt(t, zero)",
    "by a loop": """e = SequenceEmpty<dtype = 1>()
        s = Loop(two, "", e) <body = b (int64 i, bool on, seq(float[4, 3]) q) =>
            (bool go, seq(float[4, 3]) r) { go = Identity(on) r = SequenceInsert(q, x) }>
        y = ConcatFromSequence<axis = 0>(s)""",
    "map": """s = SequenceConstruct(x, z)
        t = SequenceMap(s, x) <body = b (float[4, 3] p, float[4, 3] q) => (float[4, 3] r)
            { r = Sub(p, q) }>
        y = ConcatFromSequence<axis = 0>(t)""",
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_resolved_at_import(name: str) -> None:
    ranks = {"stack": "a, b, c", "split in ones": "a"}
    kind = "int64" if name == "length" else f"float[{ranks.get(name, 'a, b')}]"
    proto = model(f"""g (float[4, 3] x, float[4, 3] z) => ({kind} y)
        <int64 zero = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64 minus = {{-1}},
         int64[2] parts = {{1, 2}}> {{ {SEQUENCES[name]} }}""")
    program = import_onnx(proto)
    assert opaque_ops(program) == []
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert wrong(proto, {"x": x, "z": -x}) == ""


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("y = SequenceConstruct(x, x)", "'.*' is a sequence, a tensor is needed"),
        ("s = SequenceConstruct(x) y = SequenceAt(s, k)", "position 'k' must be a constant"),
        ("s = SequenceConstruct(x) y = SequenceAt(s, two)", "position is outside the sequence"),
        ("s = SequenceConstruct(x) y = Neg(s)", "is a sequence, a tensor is needed"),
        ("y = SequenceLength(x)", "operand 0 is not a sequence"),
    ],
)
def test_sequences_that_data_decide_are_refused(nodes: str, message: str) -> None:
    proto = model(f"g (float[4] x, int64 k) => (float[n] y) <int64 two = {{2}}> {{ {nodes} }}")
    with pytest.raises(UserError, match=message) as error:
        import_onnx(proto)
    assert "\n" not in str(error.value)


def test_optionals_are_decided_at_import() -> None:
    proto = model("""g (float[4] x) => (float[4] y, bool has, bool none) {
        o = Optional(x) has = OptionalHasElement(o) y = OptionalGetElement(o)
        e = Optional<type = float[4]>() none = OptionalHasElement(e)
    }""")
    found = reference.run(import_onnx(proto), {"x": X})
    np.testing.assert_array_equal(found["y"], X)
    assert (found["has"], found["none"]) == (True, False)
