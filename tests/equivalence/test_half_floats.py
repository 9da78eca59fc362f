"""Half floats: what rounding explains is no difference, and a fault beside it is one."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import Attribute, SSAValue

from isoform.compiler.targets.levels import run_passes
from isoform.dialects.arithmetic import Arithmetic
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.dialects.types import to_numpy
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.roundings import Roundings

HALVES = [f16, bf16]
CONV = {"strides": [1, 1], "pads": [1] * 4, "dilations": [1, 1]}
CHANNELS, SIZE, EPSILON = 4, 5, 1e-5
SEEDS = {1: 2, 3: 1}  # by the number of layers
Data = dict[str, np.ndarray]
Changes = Mapping[str, Callable[[np.ndarray], np.ndarray]]


def drawn(half: Attribute, seed: int, layers: int) -> Data:
    rng = np.random.default_rng(seed)
    made: Data = {}
    for k in range(layers):
        made[f"w{k}"] = rng.normal(size=(CHANNELS, CHANNELS, 3, 3)) / 7
        made[f"c{k}"] = 0.3 * rng.normal(size=CHANNELS)
        made[f"scale{k}"] = 1 + 0.2 * rng.normal(size=CHANNELS)
        made[f"shift{k}"] = 0.4 * rng.normal(size=CHANNELS)
        made[f"mean{k}"] = 0.3 * rng.normal(size=CHANNELS)
        made[f"var{k}"] = 0.5 + np.abs(rng.normal(size=CHANNELS))
    return {name: array.astype(to_numpy(half)) for name, array in made.items()}


def apart(data: Data, half: Attribute, layers: int) -> Program:
    """Convolutions, each with its batch norm."""
    b = GraphBuilder()
    y = b.input("x", (1, CHANNELS, SIZE, SIZE), half)
    for k in range(layers):
        y = b.conv(y, *(b.weight(f"{n}{k}", data[f"{n}{k}"]) for n in ("w", "c")), **CONV)
        rest = [b.weight(f"{n}{k}", data[f"{n}{k}"]) for n in ("scale", "shift", "mean", "var")]
        y = b.relu(b.batch_norm(y, *rest, epsilon=EPSILON))
    b.output("y", y)
    return b.build()


def by_a_tool(
    data: Data, half: Attribute, layers: int, way: str, changes: Changes | None = None
) -> Program:
    """Folded elsewhere: in float32 and rounded once, or step by step in half floats."""
    b, dtype = GraphBuilder(), to_numpy(half)
    working = np.dtype(np.float32) if way == "once" else dtype
    y = b.input("x", (1, CHANNELS, SIZE, SIZE), half)
    for k in range(layers):
        w, c, scale, shift, mean, var = (
            data[f"{n}{k}"].astype(working) for n in ("w", "c", "scale", "shift", "mean", "var")
        )
        by = scale / np.sqrt(var + np.asarray(EPSILON, working))
        made = {f"folded{k}": w * by.reshape(-1, 1, 1, 1), f"bias{k}": c * by + (shift - mean * by)}
        for name, change in (changes or {}).items():
            if name in made:
                made[name] = change(made[name])
        y = b.conv(y, *(b.weight(n, a.astype(dtype)) for n, a in made.items()), **CONV)
        y = b.relu(y)
    b.output("y", y)
    return b.build()


def folded_here(program: Program, *, expressions: bool) -> Program:
    """As our own passes fold it."""
    made = program.clone()
    run_passes(made, "fold-batch-norm,fold-constants")
    for op in made.module.walk():
        if not expressions:
            op.attributes.pop("isoform.expression", None)
    return made


def same(one: Program, other: Program) -> str:
    verdicts = [compare(*pair, budget=900) for pair in ((one, other), (other, one))]
    assert all(v.kind != "different" for v in verdicts), verdicts[0].text()
    return verdicts[0].kind if verdicts[0].kind == verdicts[1].kind else "unknown"


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("expressions", [True, False])
def test_a_batch_norm_that_we_fold_is_equal(
    half: Attribute, layers: int, expressions: bool
) -> None:
    for seed in range(SEEDS[layers]):
        whole = apart(drawn(half, seed, layers), half, layers)
        found = same(whole, folded_here(whole, expressions=expressions))
        assert found == "equal-up-to-folding"


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("way", ["once", "in steps"])
@pytest.mark.parametrize("layers", [1, 3])
def test_a_batch_norm_that_a_tool_folds_is_no_difference(
    half: Attribute, way: str, layers: int
) -> None:
    for seed in range(SEEDS[layers]):
        data = drawn(half, seed, layers)
        same(apart(data, half, layers), by_a_tool(data, half, layers, way))


def sign(array: np.ndarray) -> np.ndarray:
    position = np.unravel_index(np.argmax(np.abs(array)), array.shape)
    array[position] *= -1
    return array


def off(part: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array[np.argmax(np.abs(array))] *= 1 + part
        return array

    return change


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("way", ["once", "in steps"])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("fault", ["bias", "sign"])
def test_a_fault_beside_rounded_constants_is_a_difference(
    half: Attribute, way: str, layers: int, fault: str
) -> None:
    part = 0.04 if half == f16 else 0.25  # of bfloat16 4 in a hundred are 4 units
    name, change = {"bias": ("bias0", off(part)), "sign": ("folded0", sign)}[fault]
    for seed in range(SEEDS[layers]):
        data = drawn(half, seed, layers)
        wrong = by_a_tool(data, half, layers, way, {name: change})
        for pair in ((apart(data, half, layers), wrong), (wrong, apart(data, half, layers))):
            verdict = compare(*pair, budget=900)
            assert verdict.kind == "different", f"seed {seed}: {verdict.text()}"


def scaled(half: Attribute, folded: bool, by: float = 1.0) -> Program:
    """(x @ w) * s, with s in the weights or beside them."""
    rng, b, dtype = np.random.default_rng(5), GraphBuilder(), to_numpy(half)
    w, s = (rng.normal(size=shape).astype(dtype) for shape in ((8, 5), (5,)))
    x = b.input("x", (4, 8), half)
    if folded:
        b.output("y", b.matmul(x, b.weight("ws", w * (s * dtype.type(by)))))
    else:
        s_ = b.broadcast(b.weight("s", s), shape=[4, 5], dims=[1])
        b.output("y", b.mul(b.matmul(x, b.weight("w", w)), s_))
    return b.build()


@pytest.mark.parametrize("half", HALVES)
def test_a_scale_folded_into_a_product(half: Attribute) -> None:
    assert same(scaled(half, False), scaled(half, True)) == "equal-up-to-folding"
    assert compare(scaled(half, False), scaled(half, True, 1.25)).kind == "different"


def gelu(half: Attribute, divides: bool, root: float = 2.0**0.5) -> Program:
    b = GraphBuilder()
    x = b.input("x", (8, 9), half)
    literal = root if divides else 1 / root
    c = b.expand(b.constant(to_numpy(half).type(literal)), (8, 9))
    inner = b.div(x, c) if divides else b.mul(x, c)
    b.output("y", b.mul(x, b.erf(inner)))
    return b.build()


@pytest.mark.parametrize("half", HALVES)
def test_literals_that_were_rounded_are_no_difference(half: Attribute) -> None:
    same(gelu(half, True), gelu(half, False))
    assert compare(gelu(half, True), gelu(half, False, 1.6)).kind == "different"


# --- what is exact --------------------------------------------------------------------------------


def through_half(half: Attribute, source: Attribute) -> Program:
    """relu(x + x), rounded to a half type on the way."""
    b = GraphBuilder()
    x = b.input("x", (3, 5), source)
    y = b.cast(b.mul(b.cast(x, to=f32), b.cast(x, to=f32)), to=half)
    b.output("y", b.cast(b.relu(y), to=f32))
    return b.build()


@pytest.mark.parametrize("half", HALVES)
def test_only_what_comes_from_the_type_itself_is_not_rounded(half: Attribute) -> None:
    x = np.random.default_rng(0).normal(size=(3, 5)).astype(to_numpy(half)).astype(np.float64)
    inside = run(through_half(half, half), {"x": x}, Arithmetic.REAL)["y"]
    assert np.array_equal(inside, np.maximum(x * x, 0))
    from_outside = run(through_half(half, f32), {"x": x}, Arithmetic.REAL)["y"]
    assert np.array_equal(from_outside, (x * x).astype(np.float32).astype(to_numpy(half)))
    computed = run(through_half(half, half), {"x": x}, Arithmetic.COMPUTED)["y"]
    assert np.array_equal(computed, from_outside)


def chain(half: Attribute, length: int) -> Program:
    def step(b: GraphBuilder, y: SSAValue, k: int) -> SSAValue:
        return b.relu(b.mul(y, b.weight(f"w{k}", np.ones((2, 3), to_numpy(half)))))

    b = GraphBuilder()
    y = b.input("x", (2, 3), half)
    for k in range(length):
        y = step(b, y, k)
    b.output("y", y)
    return b.build()


def test_the_bound_follows_from_the_type_and_from_how_many_roundings_there_are() -> None:
    def part(one: Program, other: Program) -> float:
        return Roundings.of(one, other).limits.part

    assert part(chain(f32, 9), chain(f32, 9)) == part(chain(f32, 1), chain(f16, 1)) == 1e-4
    assert part(chain(f16, 1), chain(f16, 1)) == 4 * 2.0**-10
    assert part(chain(bf16, 1), chain(bf16, 1)) == 4 * 2.0**-7
    assert part(chain(f16, 9), chain(f16, 4)) == 3 * 4 * 2.0**-10
    assert part(chain(bf16, 400), chain(bf16, 400)) == 0.25


def test_what_rounding_may_do_by_type() -> None:
    single = Roundings.of(chain(f32, 3), chain(bf16, 3))
    assert (single.one, single.near, single.limits.noise) == (8 * 2.0**-23, 1e-5, 2.0**-20)
    assert not single.half and not single.literals
    half = Roundings.of(chain(f16, 4), chain(f16, 1))
    assert (half.one, half.near) == (4 * 2.0**-10, 2 * 4 * 2.0**-10)
    assert (half.limits.part, half.limits.noise) == (half.near, half.one)
    assert half.half and not half.literals


@pytest.mark.parametrize("half", HALVES)
def test_rounded_constants_beside_identities_of_functions_are_no_difference(
    half: Attribute,
) -> None:
    """A scale folded into a product, and tanh by exp after it."""

    def program(folded: bool) -> Program:
        rng, b, dtype = np.random.default_rng(5), GraphBuilder(), to_numpy(half)
        w, s = (rng.normal(size=shape).astype(dtype) for shape in ((8, 5), (5,)))
        x = b.input("x", (4, 8), half)
        if folded:
            y = b.matmul(x, b.weight("ws", w * s))
            one, two = (b.expand(b.constant(dtype.type(n)), (4, 5)) for n in (1, 2))
            e = b.add(one, b.exp(b.mul(two, y)))
            b.output("y", b.sub(one, b.div(two, e)))
        else:
            s_ = b.broadcast(b.weight("s", s), shape=[4, 5], dims=[1])
            b.output("y", b.tanh(b.mul(b.matmul(x, b.weight("w", w)), s_)))
        return b.build()

    same(program(False), program(True))


@pytest.mark.parametrize("half", HALVES)
def test_a_constant_folded_to_half_floats_is_no_difference(half: Attribute) -> None:
    """Its rounding is below one unit in the last place, and far above that of float64."""
    b = GraphBuilder()
    numbers = np.array([1.41406, -0.402344, 0.492188, -0.0116577])  # the last is tiny when squared
    x = b.constant(numbers.astype(to_numpy(half)), half)
    b.output("y", b.mul(x, x))
    program = b.build("squares")
    folded = program.clone()
    run_passes(folded, "fold-constants")
    assert len(list(folded.main.body.block.ops)) == 2
    assert compare(program, folded, seed=3).kind != "different"
