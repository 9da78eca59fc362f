"""What `compare` says of whole programs: kinds, reasons, levels, folding, functions, errors."""

import json

import numpy as np
import pytest
from support.families import FAMILIES, program
from xdsl.dialects.builtin import i64
from xdsl.rewriter import Rewriter

from isoform.compiler import zoo
from isoform.compiler.targets.levels import lower_to, run_passes
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.graph import ConstantOp, WeightOp
from isoform.dialects.program import Program
from isoform.dialects.weights import Weights
from isoform.passes.equivalence import Verdict, compare


def built(shapes, body, **inputs) -> Program:
    b = GraphBuilder()
    values = [b.input(f"x{k}", shape) for k, shape in enumerate(shapes)]
    b.output("y", body(b, *values))
    return b.build()


def full(b: GraphBuilder, value: float, shape) -> object:
    return b.expand(b.constant(np.float32(value)), shape)


# --- levels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("level", ("algebra", "kernel"))
def test_a_program_equals_its_lowered_form(name: str, level: str) -> None:
    a = program(name)
    verdict = compare(a, lower_to(a, level))
    assert verdict.kind == "equal", verdict.text()


def test_levels_may_be_mixed_in_one_program() -> None:
    a = program("block")
    mixed = a.clone()
    run_passes(mixed, "graph-to-algebra")
    assert compare(mixed, lower_to(a, "kernel")).kind == "equal"


# --- exact equalities that need a proof -----------------------------------------------------------

S = (4, 4)
PROVED = {
    "associativity": (
        [S, S, S],
        lambda b, x, y, z: b.matmul(b.matmul(x, y), z),
        lambda b, x, y, z: b.matmul(x, b.matmul(y, z)),
    ),
    "distribution": (
        [S, S, S],
        lambda b, x, y, z: b.matmul(x, b.add(y, z)),
        lambda b, x, y, z: b.add(b.matmul(x, z), b.matmul(x, y)),
    ),
    "transposition": (
        [S, S],
        lambda b, x, y: b.transpose(b.matmul(x, y), perm=[1, 0]),
        lambda b, x, y: b.matmul(y, x, transpose_a=True, transpose_b=True),
    ),
    "relu of a permutation": (
        [S],
        lambda b, x: b.relu(b.transpose(x, perm=[1, 0])),
        lambda b, x: b.transpose(b.relu(x), perm=[1, 0]),
    ),
    "relu of padding": (
        [S],
        lambda b, x: b.relu(b.pad(x, pads=[1, 1, 0, 0])),
        lambda b, x: b.pad(b.relu(x), pads=[1, 1, 0, 0]),
    ),
    "a batch as rows": (
        [(2, 3, 4), (4, 5)],
        lambda b, x, w: b.reshape(
            b.relu(b.matmul(b.reshape(x, shape=[6, 4]), w)), shape=[2, 3, 5]
        ),
        lambda b, x, w: b.relu(b.matmul(x, b.expand(w, (2, 4, 5)))),
    ),
    "concatenated weights": (
        [(3, 4), (4, 2), (4, 3)],
        lambda b, x, v, w: b.concat(b.matmul(x, v), b.matmul(x, w), axis=1),
        lambda b, x, v, w: b.matmul(x, b.concat(v, w, axis=1)),
    ),
    "a 1x1 convolution is a product": (
        [(1, 3, 4, 4), (5, 3, 1, 1)],
        lambda b, x, w: b.conv(x, w, strides=[1, 1], pads=[0] * 4, dilations=[1, 1]),
        lambda b, x, w: b.reshape(
            b.matmul(b.reshape(w, shape=[5, 3]), b.reshape(x, shape=[3, 16])), shape=[1, 5, 4, 4]
        ),
    ),
    "softmax of a transpose": (
        [S],
        lambda b, x: b.softmax(b.transpose(x, perm=[1, 0]), axis=1),
        lambda b, x: b.transpose(b.softmax(x, axis=0), perm=[1, 0]),
    ),
    "max in two steps": (
        [(2, 6)],
        lambda b, x: b.max(b.max(x, b.neg(x)), x),
        lambda b, x: b.max(b.neg(x), x),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_equal_programs_are_equal(name: str) -> None:
    shapes, one, two = PROVED[name]
    verdict = compare(built(shapes, one), built(shapes, two))
    assert verdict.kind == "equal", verdict.text()
    assert verdict.error_bound <= 1e-12


def winograd(m: int, fault: float = 0.0) -> tuple[Program, Program]:
    """A convolution, and its Winograd form F(m x m, 3 x 3), a number of one matrix changed."""
    b = GraphBuilder()
    drawn = np.random.default_rng(0).normal(size=(24, 20, 3, 3)).astype(np.float32)
    x, w = b.input("x", (1, 20, 6, 7)), b.weight("w", drawn)
    b.output("y", b.relu(b.conv(x, w, strides=[1, 1], pads=[1] * 4, dilations=[1, 1])))
    a = b.build()
    other = a.clone()
    run_passes(
        other,
        f"graph-to-algebra,algebra-to-kernel,fuse-kernels,assign-layouts,winograd{{m={m}}}",
    )
    if fault:
        first = next(op for op in other.main.body.block.ops if isinstance(op, ConstantOp))
        array = first.array()
        array.flat[-1] += fault
        Rewriter.replace_op(first, ConstantOp(array, first.type.element_type))
    return a, other


@pytest.mark.parametrize("m", [2, 4])
def test_a_winograd_convolution_is_a_convolution(m: int) -> None:
    verdict = compare(*winograd(m))
    assert verdict.kind == "equal", verdict.text()
    assert verdict.error_bound <= 1e-12
    assert any("field, shrunk" in method for method, _ in verdict.methods)
    assert compare(*winograd(m, 0.25)).kind == "different"


# --- functions ------------------------------------------------------------------------------------


def gelu_by_product(b: GraphBuilder, x) -> object:
    inner = b.erf(b.mul(x, full(b, 0.7071067811865476, S)))
    return b.mul(b.mul(full(b, 0.5, S), b.add(full(b, 1.0, S), inner)), x)


def gelu_by_quotient(b: GraphBuilder, x) -> object:
    inner = b.erf(b.div(x, full(b, 1.4142135623730951, S)))
    return b.mul(b.mul(x, b.add(inner, full(b, 1.0, S))), full(b, 0.5, S))


BY_FUNCTIONS = {
    "erf-GELU": (gelu_by_product, gelu_by_quotient, "rounded-literal"),
    "softmax without its maximum": (
        lambda b, x: b.softmax(x, axis=1),
        lambda b, x: b.div(b.exp(x), b.expand(b.reduce_sum(b.exp(x), axes=[1]), S)),
        "exp-of-sum",
    ),
    "tanh by the logistic function": (
        lambda b, x: b.tanh(x),
        lambda b, x: b.sub(b.mul(b.sigmoid(b.add(x, x)), full(b, 2.0, S)), full(b, 1.0, S)),
        "tanh-by-exp",
    ),
    "the mean by a product": (
        lambda b, x: b.reduce_mean(b.concat(x, x, x, axis=1), axes=[1]),
        lambda b, x: b.mul(
            b.reduce_sum(b.concat(x, x, x, axis=1), axes=[1]),
            b.expand(b.constant(np.float32(1 / 12)), (4, 1)),
        ),
        "rounded-literal",
    ),
    "sqrt as a power": (
        lambda b, x: b.sqrt(x),
        lambda b, x: b.pow(x, full(b, 0.5, S)),
        "power-of-half",
    ),
    "an odd function": (lambda b, x: b.neg(b.erf(x)), lambda b, x: b.erf(b.neg(x)), "odd-function"),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_FUNCTIONS)
def test_identities_of_functions_are_named(name: str) -> None:
    one, two, identity = BY_FUNCTIONS[name]
    verdict = compare(built([S], one), built([S], two))
    assert verdict.kind == "equal-up-to-functions", verdict.text()
    assert identity in {a.name for a in verdict.assumptions}
    assert identity in verdict.text()


def test_silu_is_a_product_by_definition() -> None:
    one = built([S], lambda b, x: b.mul(x, b.sigmoid(x)))
    two = built(
        [S],
        lambda b, x: b.div(x, b.add(b.exp(b.neg(x)), full(b, 1.0, S))),
    )
    assert compare(one, two).kind == "equal"


def test_the_tanh_approximation_of_gelu_is_not_gelu() -> None:
    def approximate(b: GraphBuilder, x) -> object:
        cubic = b.add(x, b.mul(full(b, 0.044715, S), b.mul(x, b.mul(x, x))))
        inner = b.tanh(b.mul(full(b, 0.7978845608, S), cubic))
        return b.mul(b.mul(full(b, 0.5, S), x), b.add(full(b, 1.0, S), inner))

    assert compare(built([S], gelu_by_product), built([S], approximate)).kind == "different"


# --- folding --------------------------------------------------------------------------------------


def folded(p: Program) -> Program:
    better = p.clone()
    run_passes(better, "fold-batch-norm,canonicalize,cse,fold-constants,canonicalize,dce")
    return better


def test_folded_weights_stand_for_their_expressions() -> None:
    a = program("block")
    verdict = compare(a, folded(a))
    assert verdict.kind == "equal-up-to-folding", verdict.text()
    assert verdict.folded and verdict.largest_ulps <= 0.5
    assert "graph.weight @w" in verdict.folded[0].expression


def test_a_folded_program_equals_itself_without_folding() -> None:
    a = folded(program("block"))
    assert compare(a, a.clone()).kind == "equal"


def test_a_folded_weight_that_is_not_its_expression_is_not_trusted() -> None:
    a = program("block")
    better = folded(a)
    name = next(
        op.key
        for op in better.main.body.block.ops
        if isinstance(op, WeightOp) and op.key.startswith("folded")
    )
    spoiled = np.array(better.weights[name])
    spoiled.flat[1] *= np.float32(1.001)
    store = {n: better.weights[n] for n in better.weights} | {name: spoiled}
    verdict = compare(a, Program(better.module, Weights(store)))
    assert verdict.kind in ("different", "unknown")
    assert not verdict.is_equal


def test_an_expression_over_weights_that_are_missing_is_taken_as_data() -> None:
    a = program("block")
    better = folded(a)
    kept = {n: better.weights[n] for n in better.weights if n.startswith("folded")}
    bare = Program(a.module, Weights({}))
    verdict = compare(bare, Program(better.module, Weights(kept)))
    assert verdict.kind == "unknown" or not verdict.is_equal


def anonymous(p: Program, factor: float = 1.0) -> Program:
    """A folded program as another tool would leave it: data, renamed, without expressions."""
    copy, store = p.clone(), dict[str, np.ndarray]()
    for k, op in enumerate(list(copy.main.body.block.ops)):
        if isinstance(op, WeightOp):
            data = np.array(p.weights[op.key])
            if op.key.startswith("folded"):
                data.flat[0] *= np.float32(factor)
            new = WeightOp(f"w{k}", op.type)
            store[new.key] = data
            Rewriter.replace_op(op, new)
    return Program(copy.module, Weights(store))


def test_constants_folded_elsewhere_are_recognised_by_their_values() -> None:
    a = program("block")
    verdict = compare(a, anonymous(folded(a)))
    assert verdict.kind == "equal-up-to-folding", verdict.text()
    assert [x.name for x in verdict.assumptions] == ["inferred-folding"]
    assert {c.expression for c in verdict.folded} == {""}
    assert 0 < verdict.largest_ulps <= 8


@pytest.mark.parametrize(
    ("factor", "kind"),
    [
        (1.01, "different"),
        (1 + 2.0**-14, "different"),
        (1 + 2.0**-19, "unknown"),
    ],
)
def test_constants_of_other_values_are_not_recognised(factor: float, kind: str) -> None:
    """512 units of the last place are not rounding; what 16 explain is still no equality."""
    a = program("block")
    verdict = compare(a, anonymous(folded(a), factor))
    assert verdict.kind == kind, verdict.text()


def test_weights_are_known_by_content_not_by_name() -> None:
    def network(name: str, seed: int) -> Program:
        b = GraphBuilder()
        w = np.random.default_rng(seed).normal(size=(4, 4)).astype(np.float32)
        b.output("y", b.matmul(b.input("x", (4, 4)), b.weight(name, w)))
        return b.build()

    assert compare(network("v", 0), network("w", 0)).kind == "equal"
    assert compare(network("w", 0), network("w", 1)).kind == "different"


def test_without_data_weights_are_known_by_name() -> None:
    a = program("block")
    b = Program(a.module.clone())
    verdict = compare(a, b)
    assert verdict.kind == "equal"
    assert "weights-by-name" in {x.name for x in verdict.assumptions}


# --- calls, random nodes, unknown -----------------------------------------------------------------


def test_a_call_is_itself_and_nothing_else() -> None:
    def lookup(axis: int, flip: bool) -> Program:
        b = GraphBuilder()
        x, at = b.input("x", (4, 4)), b.input("at", (4,), i64)
        y = b.transpose(x, perm=[1, 0]) if flip else x
        b.output("y", b.gather(y, at, axis=axis))
        return b.build()

    assert compare(lookup(0, False), lookup(0, False)).kind == "equal"
    assert compare(lookup(0, False), lookup(1, False)).kind == "different"
    twice = built([S], lambda b, x: b.transpose(b.transpose(x, perm=[1, 0]), perm=[1, 0]))
    assert compare(twice, built([S], lambda b, x: b.mul(x, full(b, 1.0, S)))).kind == "equal"


def test_what_is_equal_for_reasons_unknown_to_it_is_unknown() -> None:
    one = built([S], lambda b, x: b.add(b.mul(b.sin(x), b.sin(x)), b.mul(b.cos(x), b.cos(x))))
    two = built([S], lambda b, x: b.add(b.sub(x, x), full(b, 1.0, S)))
    verdict = compare(one, two)
    assert verdict.kind == "unknown"
    assert "no input was found" in verdict.reason


def test_past_its_budget_it_says_so() -> None:
    one = built([(64, 64)], lambda b, x: b.softmax(b.matmul(b.exp(x), x), axis=1))
    two = built([(64, 64)], lambda b, x: b.softmax(b.matmul(b.exp(x), b.neg(x)), axis=1))
    verdict = compare(one, two, budget=0.0)
    assert verdict.kind in ("unknown", "different")
    if verdict.kind == "unknown":
        assert "budget" in verdict.reason


# --- several outputs, signatures ------------------------------------------------------------------


def two_outputs(swap: bool, order: bool) -> Program:
    b = GraphBuilder()
    x = b.input("x", (3, 3))
    first, second = b.exp(x), b.tanh(b.exp(x))
    pair = [("p", second if swap else first), ("q", first if swap else second)]
    for name, value in reversed(pair) if order else pair:
        b.output(name, value)
    return b.build()


def test_outputs_correspond_by_name() -> None:
    assert compare(two_outputs(False, False), two_outputs(False, True)).kind == "equal"
    verdict = compare(two_outputs(False, False), two_outputs(True, False))
    assert verdict.kind == "different"
    assert verdict.difference is not None and verdict.difference.output == "p"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (built([(4, 5)], lambda b, x: b.relu(x)), "x0"),
        (built([S, S], lambda b, x, y: b.add(x, y)), "inputs"),
    ],
)
def test_programs_of_different_signatures_are_refused_in_one_line(other, message: str) -> None:
    with pytest.raises(UserError) as caught:
        compare(built([S], lambda b, x: b.relu(x)), other)
    text = caught.value.one_line()
    assert message in text and "\n" not in text


# --- the verdict as data --------------------------------------------------------------------------


def strip(verdict: Verdict) -> dict:
    found = verdict.as_json()
    del found["seconds"]
    return found


@pytest.mark.parametrize("name", ("attention", "block"))
def test_equal_arguments_give_equal_verdicts(name: str) -> None:
    a, b = program(name), lower_to(program(name), "kernel")
    assert strip(compare(a, b, seed=3)) == strip(compare(a, b, seed=3))


def test_a_verdict_is_json() -> None:
    different = compare(program("matmul"), program("matmul").clone())
    text = json.dumps(different.as_json(), allow_nan=False)
    assert json.loads(text)["kind"] == "equal"
    shifted = built([S], lambda b, x: b.add(x, full(b, 1.0, S)))
    found = json.loads(json.dumps(compare(shifted, built([S], lambda b, x: b.neg(x))).as_json()))
    assert found["difference"]["elements"] == 16
    assert len(found["difference"]["values"]) == 2


# --- whole models ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "sizes"), [("resnet18", {"image": 32}), ("squeezenet", {"image": 64})]
)
def test_a_small_model_equals_its_optimised_form(name: str, sizes: dict[str, int]) -> None:
    a = zoo.build(name, **sizes)
    b = lower_to(folded(a), "kernel")
    verdict = compare(a, b)
    assert verdict.is_equal, verdict.text()
    assert verdict.error_bound <= 1e-12


def test_a_swapped_filter_is_found_and_named() -> None:
    a = zoo.build("resnet18", image=32)
    name = "layer2.0.conv1.weight"
    swapped = np.array(a.weights[name])
    swapped[[0, 1]] = swapped[[1, 0]]
    store = {n: a.weights[n] for n in a.weights} | {name: swapped}
    verdict = compare(a, Program(a.module.clone(), Weights(store)))
    assert verdict.kind == "different"
    assert verdict.difference is not None and "layer2.0.conv1" in verdict.difference.inside


@pytest.mark.parametrize("kind", ["literal", "weight"])
@pytest.mark.parametrize("size", [1e4, 1e9])
def test_a_clip_far_out_shows_on_inputs_beyond_it(size: float, kind: str) -> None:
    def clipped(b: GraphBuilder, x):
        if kind == "literal":
            return b.min(x, full(b, size, S))
        return b.min(x, b.weight("limit", np.full(S, size, np.float32)))

    verdict = compare(built([S], clipped), built([S], lambda b, x: x))
    assert verdict.kind == "different", verdict.text()
    assert verdict.difference is not None and verdict.difference.scale > size
