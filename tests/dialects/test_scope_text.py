"""The text of scopes: what is printed reads back the same; bad text says what is wrong."""

import random

import pytest
from xdsl.dialects.builtin import FunctionType, ModuleOp, bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region
from xdsl.utils.exceptions import ParseError

from isoform.dialects.algebra import ScopeOp
from isoform.dialects.index import Index
from isoform.dialects.scalars import FUNCTIONS, Call, Cast, Const, Expr, Read, call
from isoform.dialects.scope_builder import Source
from isoform.dialects.types import tensor

HEADER = (
    "func.func @main(%x: tensor<4x6xf32>, %b: tensor<4xi1>, %i: tensor<4xi32>) {\n"
    "%y = algebra.scope "
)
FOOTER = "\nfunc.return\n}"

BODIES = [
    # text as printed
    "(a: 4) %x[a, a] : tensor<4xf32>",
    "(a: 4) sum (k: 6) %x[a, k] : tensor<4xf32>",
    "(a: 4) max (k: 6) %x[a, k] else -inf : tensor<4xf32>",
    "(a: 4) min (k: 6) max(%x[a, k], 0.0) : tensor<4xf32>",
    "(a: 4) prod (k: 6) %x[a, k] else 1.0 : tensor<4xf32>",
    "(a: 4) max(%x[a, a], 0.0) : tensor<4xf32>",
    "() sum (k: 4) %x[k, -k + 3] * (%x[k, k floordiv 2] - 3.0) : tensor<f32>",
    "(a: 4) %x[2 * (a floordiv 3) + 1, 3] : tensor<4xf32>",
    "(a: 4, c: 4) %x[(a + c) floordiv 2, a - 4 * (a floordiv 4)] : tensor<4x4xf32>",
    "(a: 4) select(%b[a], %x[a, a] else 1.5, -2.0) : tensor<4xf32>",
    "(a: 4) select(lt(%x[a, 0], %x[a, 1]), 1.0, nan) : tensor<4xf32>",
    "(a: 4) f32(%i[a]) * 0.5 : tensor<4xf32>",
    "(a: 4) i32(%x[a, 0]) + 3 : tensor<4xi32>",
    "(a: 4) xor(%b[a], true) : tensor<4xi1>",
    "(a: 4) neg(%x[a, 0]) / (%x[a, 1] / %x[a, 2]) : tensor<4xf32>",
    "(a: 4) %x[a, 0] - (%x[a, 1] - %x[a, 2]) - -1.5 : tensor<4xf32>",
    "(a: 4) (%x[a, 0] + %x[a, 1]) * %x[a, 2] + 2.0 : tensor<4xf32>",
    "(a: 4) %x[a, 0] * 1.0000000031710769e-30 : tensor<4xf32>",
    "(a: 4) 9.0 * %x[a, 0] + -0.0 : tensor<4xf32>",
    "(a: 0) 1.0 : tensor<0xf32>",
    "(max: 4) max (sum: 2) max(%x[max, sum], %x[max, 0]) : tensor<4xf32>",
    '(a: 4) erf(%x[a, 0]) attributes {isoform.rules = ["r"]} : tensor<4xf32>',
]


@pytest.mark.parametrize("body", BODIES)
def test_custom_text_prints_as_written_and_round_trips(body: str, parse, round_trip) -> None:
    module = parse(HEADER + body + FOOTER)
    assert f"algebra.scope {body}" in round_trip(module)


ALTERNATIVES = [
    ("(a: 4) -%x[a, 0] : tensor<4xf32>", "neg(%x[a, 0])"),
    ("(a: 4) %x[a, a mod 2] : tensor<4xf32>", "%x[a, a - 2 * (a floordiv 2)]"),
    ("(a: 4) %x[a, 2 * (a + 1) - a] : tensor<4xf32>", "%x[a, a + 2]"),
    ("(a: 4) ((%x[a, 0])) : tensor<4xf32>", "(a: 4) %x[a, 0]"),
    ("(a: 4) f32(%x[a, 0]) : tensor<4xf32>", "(a: 4) %x[a, 0]"),
    ("(a: 4) max(%x[a, 0], 0) : tensor<4xf32>", "max(%x[a, 0], 0.0)"),
    ("(a: 4) max (k: 2) %x[a, k] : tensor<4xf32>", "max (k: 2)"),
    ("(a: 4) [%x[a, 0], %b[a]] { ^bb0(%p: f32, %q: i1): algebra.yield %p : f32 } : tensor<4xf32>",
     "(a: 4) %x[a, 0]"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "shown"), ALTERNATIVES)
def test_other_spellings_print_in_one_way(body: str, shown: str, parse, round_trip) -> None:
    assert shown in round_trip(parse(HEADER + body + FOOTER))


BAD = [
    ("(a: 4) %x[a] : tensor<4xf32>", "a tensor of rank 2 is read at 1 indices"),
    ("(a: 4) %x[a, k] : tensor<4xf32>", "'k' is not an iterator of this scope"),
    ("(a: 4) %x[a, a * a] : tensor<4xf32>", "an index may not multiply iterators"),
    ("(a: 4) %x[a, a floordiv 0] : tensor<4xf32>", "division of an index by zero"),
    ("(a: 4) %z[a, a] : tensor<4xf32>", "value %z is used before it is defined"),
    ("(a: 5) %x[a, a] : tensor<4xf32>", "the traversal extents [5] are not the shape"),
    ("(a: 4) tahn(%x[a, a]) : tensor<4xf32>", "unknown scalar function 'tahn', did you mean 'tan"),
    ("(a: 4) max(%x[a, a]) : tensor<4xf32>", "'max' has another number of arguments"),
    ("(a: 4) %x[a, a] + %i[a] : tensor<4xf32>", "have different element types: f32 and i32"),
    ("(a: 4) %x[a, a] : tensor<4xf64>", "a scope's body has another type"),
    ("(a: 4) sin(%i[a]) : tensor<4xi32>", "'sin' is not defined for element type i32"),
    ("(a: 4) %x[a, a] else %b[a] : tensor<4xf32>", "`else` needs a literal"),
    ("(a: 4, a: 4) %x[a, a] : tensor<4x4xf32>", "2 distinct iterator names"),
    ("(a: 4) sum (k: 0) %x[a, k] : tensor<4xf32>", "summations at least 1"),
]


@pytest.mark.parametrize(("body", "message"), BAD)
def test_bad_text_says_what_is_wrong(body: str, message: str, parse) -> None:
    with pytest.raises(Exception) as error:
        parse(HEADER + body + FOOTER)
    assert message in str(error.value)


# --- random scopes --------------------------------------------------------------------------------

FLOAT_CALLS = [f for f in FUNCTIONS.values() if f.float_op and not f.returns_bool]
INT_CALLS = [f for f in FUNCTIONS.values() if f.int_op and not f.returns_bool]
COMPARISONS = [f for f in FUNCTIONS.values() if f.returns_bool]
ELEMENTS = (f32, f64, f16, bf16, i8, i32, i64)


class RandomScope:
    """A random well-typed body over a few random tensors."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        rng = self.rng
        self.extents = [rng.randint(1, 5) for _ in range(rng.randint(0, 4))]
        self.rank = rng.randint(0, len(self.extents))
        self.types = [
            tensor([rng.randint(1, 6) for _ in range(rng.randint(0, 3))], e)
            for e in (*ELEMENTS, i1)
        ]
        self.block = Block(arg_types=self.types)

    def index(self) -> Index:
        rng, total = self.rng, Index(self.rng.randint(-3, 3))
        for k in range(len(self.extents)):
            atom = Index.iterator(k) + rng.randint(-2, 2)
            atom = rng.choice((atom, atom // rng.randint(1, 4), atom % rng.randint(1, 4)))
            total = total + atom * rng.randint(-2, 2)
        return total

    def read(self, element) -> Read:
        k = next(k for k, t in enumerate(self.types) if t.element_type == element)
        index = [self.index() for _ in self.types[k].get_shape()]
        return Source(self.block.args[k]).at(index, self.rng.choice((0.0, 0.0, 1.0, -2.0)))

    def expr(self, element, depth: int) -> Expr:
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            literal = rng.randint(-3, 3) if element in (i8, i32, i64) else rng.choice((0.5, -2.0))
            if element == i1:
                literal = rng.random() < 0.5
            return self.read(element) if rng.random() < 0.7 else Const(literal)
        if element == i1:
            other = rng.choice(ELEMENTS)
            compare = rng.choice(COMPARISONS).name
            return call(compare, self.expr(other, depth - 1), self.read(other))
        if rng.random() < 0.15:
            return Cast(element, self.read(rng.choice(ELEMENTS)))
        function = rng.choice(INT_CALLS if element in (i8, i32, i64) else FLOAT_CALLS)
        if function.name == "select":
            condition = call("lt", self.read(f32), Const(0.5))
            return call("select", condition, self.expr(element, depth - 1), self.read(element))
        return Call(
            function.name, tuple(self.expr(element, depth - 1) for _ in range(function.arity))
        )

    def module(self, depth: int) -> tuple[ModuleOp, ScopeOp]:
        element = self.rng.choice((*ELEMENTS, i1))
        result = tensor(self.extents[: self.rank], element)
        reduction = self.rng.choice(("sum", "max", "min", "prod"))
        sums = self.extents[self.rank :]
        op = ScopeOp(result, self.expr(element, depth), sums, reduction if sums else "sum")
        self.block.add_ops([op, ReturnOp(op.result)])
        kind = FunctionType.from_lists(self.types, [result])
        return ModuleOp([FuncOp("main", kind, Region(self.block))]), op


@pytest.mark.parametrize("batch", range(10))
def test_random_scopes_round_trip(batch: int, round_trip) -> None:
    for seed in range(60 * batch, 60 * batch + 60):
        module, _ = RandomScope(seed).module(depth=seed % 6)
        module.verify()
        round_trip(module)


@pytest.mark.parametrize("batch", range(5))
def test_the_expression_of_a_body_builds_the_same_body(batch: int) -> None:
    for seed in range(1000 + 60 * batch, 1060 + 60 * batch):
        _, op = RandomScope(seed).module(depth=seed % 5)
        expr = op.expr()
        again = ScopeOp(op.result.type, expr, op.summation, op.reduction.data, op.names)
        assert again.expr() == expr
        assert again.is_structurally_equivalent(op)


def test_large_bodies_print_as_regions(round_trip) -> None:
    scope = RandomScope(5)
    x = Source(scope.block.args[0])
    rank = len(x.shape)
    total: Expr = x[[0] * rank]
    for k in range(200):
        total = total * 0.5 + float(k)
    op = ScopeOp(tensor([3], f32), total)
    scope.block.add_ops([op, ReturnOp(op.result)])
    kind = FunctionType.from_lists(scope.types, [op.result.type])
    text = round_trip(ModuleOp([FuncOp("main", kind, Region(scope.block))]))
    assert "algebra.yield" in text and "arith.mulf" in text


def test_errors_name_the_position(parse) -> None:
    with pytest.raises(ParseError) as error:
        parse(HEADER + "(a: 4) %x[a, q] : tensor<4xf32>" + FOOTER)
    assert ":2:" in str(error.value)
