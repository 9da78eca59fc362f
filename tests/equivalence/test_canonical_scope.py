"""One scope has one form, whatever it was written like; different scopes have different forms."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from support.families import FAMILIES, program
from support.mutations import algebra, mutate
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, SSAValue

from isoform.dialects.algebra import OnesOp, ScopeOp
from isoform.dialects.canonical_body import from_op, read
from isoform.dialects.canonical_ops import to_ops
from isoform.dialects.canonical_scope import (
    Apply,
    Scope,
    Source,
    _refined,
    add,
    apply,
    bind,
    constant,
    factor,
    leaf,
    multiply,
    numbers,
    reduce,
    scope,
)
from isoform.dialects.canonical_scope import Read as CanonicalRead
from isoform.dialects.index import Index, iterators
from isoform.dialects.op_reference import evaluate_op
from isoform.dialects.program import Program
from isoform.dialects.scalars import Call, Cast, Expr, Read, call, postorder
from isoform.dialects.scope_builder import Source as Operand
from isoform.dialects.types import (
    element_of,
    is_float,
    reference_dtype,
    shape_of,
    tensor,
    tensor_type,
)

X, K, W = (Block(arg_types=[tensor(s, f32)]).args[0] for s in ((2, 4, 6, 6), (3, 4, 3, 3), (4, 4)))
GIVEN = {
    X: leaf("X", (2, 4, 6, 6), f32),
    K: leaf("K", (3, 4, 3, 3), f32),
    W: leaf("W", (4, 4), f32),
}


def form(shape, expr: Expr, sums=(), reduction="sum") -> Scope:
    return from_op(ScopeOp(tensor(shape, f32), expr, sums, reduction), GIVEN.__getitem__)


def conv(order=(0, 1, 2), swapped=False, flipped=False) -> Scope:
    """A convolution with its sums in an order; `swapped` reads K[s, r], `flipped` is y[w, h]."""
    n, f, h, w = iterators(4)
    if flipped:
        h, w = w, h
    sums = [4, 3, 3]
    positions = {k: Index.iterator(4 + position) for position, k in enumerate(order)}
    c, r, s = positions[0], positions[1], positions[2]
    kernel = Operand(K)[[f, c, s, r] if swapped else [f, c, r, s]]
    expr = kernel * Operand(X)[[n, c, h + r - 1, w + s - 1]]
    return form((2, 3, 6, 6), expr, [sums[k] for k in order])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_sums_does_not_matter(order) -> None:
    assert conv(order) is conv()


def test_swapped_taps_and_swapped_traversals_differ() -> None:
    forms = {conv(), conv(swapped=True), conv(flipped=True), conv(swapped=True, flipped=True)}
    assert len(forms) == 4


def test_ties_between_sums_are_broken_by_the_least_form() -> None:
    """Two sums of one extent, used alike: every naming gives the same scope."""
    (i,) = iterators(1)
    forms = set()
    for a, b, c in itertools.permutations(iterators(3, 1)):
        expr = Operand(W)[a, b] * Operand(W)[b, c] * Operand(W)[c, a] * Operand(W)[i, a]
        forms.add(form((4,), expr, [4, 4, 4]))
    assert len(forms) == 1


def shuffled(expr: Expr, rng: random.Random) -> Expr:
    """Swap the operands of some additions and multiplications, and regroup some."""
    images: dict[Expr, Expr] = {}
    for node in postorder(expr):
        if not isinstance(node, Call):
            images[node] = Cast(node.element, images[node.arg]) if isinstance(node, Cast) else node
            continue
        args = [images[a] for a in node.args]
        if node.function in ("add", "mul", "max", "min") and rng.random() < 0.5:
            args.reverse()
        inner = args[0]
        regroup = isinstance(inner, Call) and inner.function == node.function
        if node.function in ("add", "mul") and regroup and rng.random() < 0.5:
            a, b = inner.args
            args = [a, Call(node.function, (b, args[1]))]
        images[node] = Call(node.function, tuple(args))
    return images[expr]


def renamed(op: ScopeOp, rng: random.Random) -> ScopeOp:
    """The same op with its sums in another order and its operands shuffled."""
    rank, count = len(op.traversal), len(op.extents)
    order = list(range(rank, count))
    rng.shuffle(order)
    images = iterators(count)
    for position, k in enumerate(order):
        images[k] = Index.iterator(rank + position)
    expr = op.expr()
    changed = {
        r: Read(r.source, tuple(e.substitute(images) for e in r.index), r.outside)
        for r in op.reads()
    }
    from isoform.dialects.scalars import map_reads

    sums = [op.extents[k] for k in order]
    body = shuffled(map_reads(expr, changed.__getitem__), rng)
    return ScopeOp(tensor_type(op.result), body, sums, op.reduction.data)


def scopes_of(p: Program):
    """Each scope with the sources of its operands; ones are ones, all else is given."""
    known: dict[SSAValue, Source] = {}
    for op in p.main.body.block.ops:
        if isinstance(op, OnesOp):
            known[op.result] = scope(shape_of(op.result), element_of(op.result), constant(1))
        if not isinstance(op, ScopeOp):
            continue
        for value in op.inputs:
            if value not in known:
                known[value] = leaf(f"given {len(known)}", shape_of(value), element_of(value))
        yield op, known


@pytest.mark.parametrize("name", FAMILIES)
def test_renaming_and_operand_order_do_not_matter(name: str) -> None:
    rng = random.Random(name)
    for op, known in scopes_of(algebra(program(name))):
        expected = from_op(op, known.__getitem__)
        for _ in range(5):
            assert from_op(renamed(op, rng), known.__getitem__) is expected, str(op)


@pytest.mark.parametrize("name", FAMILIES)
def test_scopes_survive_the_way_to_ops_and_back(name: str) -> None:
    for seed in range(4):
        p = algebra(program(name))
        if seed:
            p, _ = mutate(p, random.Random(seed))
        for op, known in scopes_of(p):
            check_round_trip(op, known)


def check_round_trip(op: ScopeOp, known: dict[SSAValue, Source]) -> None:
    from isoform.dialects.scope_builder import ScopeBuilder

    made = from_op(op, known.__getitem__)
    back = {s.token: v for v, s in known.items() if not isinstance(s, Scope)}
    build = ScopeBuilder()
    result = to_ops(made, build, lambda s: back[s.token])
    again = dict(known)
    arrays = {v: drawn(v) for v in op.inputs}
    for step in build.ops:
        step.verify()
        value = step.results[0]
        if isinstance(step, OnesOp):
            again[value] = scope(shape_of(value), element_of(value), constant(1))
        else:
            again[value] = from_op(step, again.__getitem__)  # pyright: ignore
        arrays[value] = evaluate_op(step, [arrays[v] for v in step.operands], {})[0]
    assert again[result.value] is made, str(op)
    (expected,) = evaluate_op(op, [arrays[v] for v in op.inputs], {})
    np.testing.assert_allclose(arrays[result.value], expected, rtol=1e-12, atol=1e-12)


def drawn(value: SSAValue) -> np.ndarray:
    type_ = tensor_type(value)
    if isinstance(value.owner, OnesOp):
        return np.ones(type_.get_shape(), reference_dtype(type_.element_type))
    rng = np.random.default_rng(len(type_.get_shape()))
    if is_float(type_.element_type):
        return rng.normal(size=type_.get_shape())
    return rng.integers(0, 2, type_.get_shape()).astype(reference_dtype(type_.element_type))


i, j, k = iterators(3)


SAME = {
    "an iterator of extent 1 is 0": (
        form((1, 4), Operand(W)[i, j]),
        form((1, 4), Operand(W)[0, j]),
    ),
    "a sum that nothing reads is a coefficient": (
        form((4,), Operand(W)[i, 0], [5]),
        form((4,), Operand(W)[i, 0] * 5.0),
    ),
    "like terms are one": (
        form((4,), Operand(W)[i, 0] + Operand(W)[i, 1] + Operand(W)[i, 0]),
        form((4,), Operand(W)[i, 1] + Operand(W)[i, 0] * 2.0),
    ),
    "terms cancel": (
        form((4,), Operand(W)[i, 0] - Operand(W)[i, 0] + 1.0),
        form((4,), Read(W, (Index(0), Index(0))) * 0.0 + 1.0),
    ),
    "a read that is always outside is 0": (
        form((4,), Operand(W)[i, 0] + Operand(W)[i + 4, 0] * Operand(W)[i, i]),
        form((4,), Operand(W)[i, 0]),
    ),
    "products distribute": (
        form((4,), (Operand(W)[i, 0] + 1.0) * (Operand(W)[i, 1] - 2.0)),
        form((4,), Operand(W)[i, 0] * Operand(W)[i, 1] + Operand(W)[i, 1] - 2.0
             - Operand(W)[i, 0] * 2.0),
    ),
    "max forgets order and repetition": (
        form((4,), call("max", call("max", Operand(W)[i, 0], Operand(W)[i, 1]), Operand(W)[i, 0])),
        form((4,), call("max", Operand(W)[i, 1], Operand(W)[i, 0])),
    ),
    "division by a literal is a coefficient": (
        form((4,), Operand(W)[i, 0] / 4.0),
        form((4,), Operand(W)[i, 0] * 0.25),
    ),
    "a > b is b < a": (
        form((4,), call("select", call("gt", Operand(W)[i, 0], Operand(W)[i, 1]), 1.0, 0.0)),
        form((4,), call("select", call("lt", Operand(W)[i, 1], Operand(W)[i, 0]), 1.0, 0.0)),
    ),
}  # fmt: skip
DIFFERENT = {
    "operands of a difference": (
        form((4,), Operand(W)[i, 0] - Operand(W)[i, 1]),
        form((4,), Operand(W)[i, 1] - Operand(W)[i, 0]),
    ),
    "shared and separate sums": (
        form((4,), Operand(W)[i, j] * Operand(W)[0, j], [4]),
        form((4,), Operand(W)[i, j] * Operand(W)[0, k], [4, 4]),
    ),
    "a power and a product": (
        form((4,), Operand(W)[i, 0] * Operand(W)[i, 0]),
        form((4,), Operand(W)[i, 0] * Operand(W)[0, i]),
    ),
    "functions": (
        form((4,), call("exp", Operand(W)[i, 0])),
        form((4,), call("tanh", Operand(W)[i, 0])),
    ),
    "reductions": (
        form((4,), Operand(W)[i, j], [4], "max"),
        form((4,), Operand(W)[i, j], [4], "min"),
    ),
    "the value outside": (
        form((4,), Operand(W).at([i + 1, 0], 0.0)),
        form((4,), Operand(W).at([i + 1, 0], 1.0)),
    ),
    "an infinite literal is not a number": (
        form((4,), (Operand(W)[i, 0] + float("inf")) - float("inf")),
        form((4,), Operand(W)[i, 0]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("law", SAME)
def test_forms_are_one(law: str) -> None:
    a, b = SAME[law]
    assert a is b, f"{a.expr.token}\n{b.expr.token}"


@pytest.mark.parametrize("law", DIFFERENT)
def test_forms_are_two(law: str) -> None:
    a, b = DIFFERENT[law]
    assert a is not b


def test_a_guard_that_pins_a_sum_is_substituted() -> None:
    """sum over j of [j == i + 1] W[j, 0] is W[i + 1, 0], and 0 where j does not reach i + 1."""
    one = Block(arg_types=[tensor((1,), f32)]).args[0]
    given = {**GIVEN, one: scope((1,), f32, constant(1))}
    op = ScopeOp(tensor((4,), f32), Operand(W)[j, 0] * Operand(one)[j - i - 1], [4])
    assert from_op(op, given.__getitem__) is form((4,), Operand(W)[i + 1, 0])


def test_a_call_depends_on_no_iterator_of_a_sum_inside_it() -> None:
    """exp(sum_k x[i, k]): the sum's iterator has the number after those outside."""
    x = factor(CanonicalRead(GIVEN[W], tuple(iterators(2)), 0.0), (4, 4))
    made = apply("exp", [bind(x, (4,), (4,))], (4,))
    assert made.terms[0].factors[0].iterators == {0}
    assert reduce("max", (4,), x, (4,)).terms[0].factors[0].iterators == {0}


def test_a_size_counts_factors_and_the_depth_of_calls() -> None:
    x = factor(CanonicalRead(GIVEN[W], tuple(iterators(2)), 0.0), (4, 4))
    exp = apply("exp", [x], (4, 4))
    assert (constant(3).size, x.size, exp.size) == ((0, 0), (1, 0), (2, 1))
    assert add(x, exp).size == (3, 1)
    assert apply("exp", [multiply(exp, x, (4, 4))], (4, 4)).size == (4, 2)
    assert reduce("max", (4,), x, (4,)).size == (2, 1)


def test_a_function_of_literals_is_a_literal_and_of_a_tensor_is_not() -> None:
    i = tuple(iterators(1))
    given = factor(CanonicalRead(numbers([Fraction(-1), Fraction(2)], (2,), f32), i, 0.0), (2,))
    other = factor(CanonicalRead(leaf("V", (2,), f32), i, 0.0), (2,))
    made = apply("max", [given, constant(0)], (2,)).terms[0].factors[0]
    assert isinstance(made, CanonicalRead) and made.source.data == (0, 2)
    twice = apply("max", [given, given], (2,))
    assert twice.token == given.token
    for args in ([given, other], [other, constant(0)], [other, other, given]):
        assert isinstance(apply("max", args, (2,)).terms[0].factors[0], Apply)


def test_the_greatest_of_a_constant_is_it_and_a_product_a_power() -> None:
    assert reduce("max", (4,), constant(3), ()).constant == 3
    assert reduce("min", (4,), constant(3), ()).constant == 3
    assert reduce("prod", (2, 2), constant(3), ()).constant == 81
    assert reduce("sum", (4,), constant(3), ()).constant == 12


def test_tied_iterators_are_told_apart_by_their_factors() -> None:
    """a[i, j] b[j, k] d[k, l]: a chain, one end of which distinguishes all; a ring does not."""
    chain = _refined([[0, 1, 2]], lambda n: f"a{n[0]}{n[1]} b{n[1]}{n[2]}")
    assert sorted(map(len, chain)) == [1, 1, 1]
    ring = _refined([[0, 1, 2]], lambda n: "".join(sorted(n[k] + n[(k + 1) % 3] for k in range(3))))
    assert [*map(len, ring)] == [3]


def test_another_number_outside_is_a_choice_by_guards() -> None:
    (i,) = iterators(1)
    source = leaf("V", (3,), f32)
    made = read(source, [i - 1], (5,), 2.0)
    reads = [f for t in made.terms for f in t.factors if isinstance(f, CanonicalRead)]
    assert [r.outside for r in reads] == [0.0]
    assert sorted(t.coefficient for t in made.terms if not t.factors) == [2]
    (kept,) = read(source, [i - 1], (5,), float("-inf")).terms[0].factors
    assert isinstance(kept, CanonicalRead) and kept.outside == float("-inf")


def test_clips_have_one_form_and_it_is_what_they_compute() -> None:
    """Of chains of up to three max and min with numbers, those that are one function, no others.

    Those that are a number but for NaN are not simplified; among them forms are not compared.
    """
    i = tuple(iterators(1))
    values = {"x": np.arange(-3.0, 4.0)[:, None], "y": np.arange(-3.0, 4.0)[None, :]}
    x, y = (factor(CanonicalRead(leaf(n, (2,), f32), i, 0.0), (2,)) for n in values)
    forms: dict[bytes, set[str]] = {}
    steps = list(itertools.product(("max", "min"), (-1, 0, 2)))
    chains = [c for n in range(4) for c in itertools.product(steps, repeat=n)]
    for begin, chain in itertools.product(("x", "max", "min"), chains):
        expr = x if begin == "x" else apply(begin, [x, y], (2,))
        found = np.broadcast_to(values["x"], (7, 7))
        if begin != "x":
            found = (np.maximum if begin == "max" else np.minimum)(values["x"], values["y"])
        for function, number in chain:
            expr = apply(function, [constant(number), expr], (2,))
            found = (np.maximum if function == "max" else np.minimum)(found, number)
        forms.setdefault(found.tobytes(), set()).add(expr.token)
    moving = {f: tokens for f, tokens in forms.items() if len(set(np.frombuffer(f))) > 1}
    assert all(len(tokens) == 1 for tokens in moving.values())
    assert sum(map(len, forms.values())) == len(set.union(*forms.values()))
