"""The reference evaluator against loops over every point."""

import itertools
import math
import random

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i1, i64
from xdsl.ir import Block

from isoform.dialects import op_reference
from isoform.dialects.algebra import ScopeOp
from isoform.dialects.index import Index, iterators
from isoform.dialects.scalars import Call, Cast, Const, Expr, Read, call
from isoform.dialects.scope_builder import ScopeBuilder, Source
from isoform.dialects.types import tensor

REDUCE = {"sum": sum, "max": max, "min": min, "prod": math.prod}
SCALAR = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
    "neg": lambda a: -a,
    "abs": abs,
    "lt": lambda a, b: a < b,
    "select": lambda c, a, b: a if c else b,
}


def brute_force(op: ScopeOp, arrays) -> np.ndarray:
    """Every point by itself, in Python numbers."""
    expr, rank = op.expr(), len(op.traversal)
    out = np.zeros(op.traversal)
    for x in itertools.product(*map(range, op.traversal)):
        points = itertools.product(*map(range, op.summation))
        values = [scalar(expr, (*x, *s), arrays) for s in points]
        out[x] = REDUCE[op.reduction.data](values) if rank < len(op.extents) else values[0]
    return out


def scalar(expr: Expr, point, arrays):
    match expr:
        case Read(source, index, outside):
            at = tuple(int(e.evaluate(point)) for e in index)
            inside = all(0 <= i < n for i, n in zip(at, arrays[source].shape, strict=True))
            return arrays[source][at].item() if inside else outside
        case Const(value):
            return value
        case Cast(_, arg):
            return float(scalar(arg, point, arrays))
        case Call(function, args):
            return SCALAR[function](*(scalar(a, point, arrays) for a in args))
    raise TypeError(expr)


def random_index(rng: random.Random, count: int) -> Index:
    total = Index(rng.randint(-2, 2))
    for k in range(count):
        atom = Index.iterator(k) + rng.randint(-1, 1)
        atom = rng.choice((atom, atom, atom // rng.randint(1, 3), atom % rng.randint(1, 3)))
        total = total + atom * rng.choice((-1, 0, 1, 2))
    return total


def random_body(rng: random.Random, sources, count: int, depth: int) -> Expr:
    def read(at: int = -1) -> Expr:
        source = sources[at if at >= 0 else rng.randrange(2)]
        index = [random_index(rng, count) for _ in source.shape]
        return source.at(index, rng.choice((0.0, 0.0, 0.0, 2.0, -7.0)))

    if depth == 0:
        return read() if rng.random() < 0.8 else Const(rng.choice((0.5, -3.0)))
    function = rng.choice(
        ("mul", "mul", "add", "sub", "max", "min", "neg", "abs", "select", "cast")
    )
    if function == "cast":
        return Cast(f32, read(2))
    arity = {"neg": 1, "abs": 1, "select": 2}.get(function, 2)
    args = [random_body(rng, sources, count, depth - 1) for _ in range(arity)]
    return call(function, *([call("lt", read(0), read(1))] if function == "select" else []), *args)


@pytest.mark.parametrize("seed", range(300))
def test_random_scopes_agree_with_loops(seed: int) -> None:
    rng = random.Random(seed)
    data = np.random.default_rng(seed)
    extents = [rng.randint(1, 4) for _ in range(rng.randint(0, 4))]
    rank = rng.randint(0, len(extents))
    shapes = [[rng.randint(1, 5) for _ in range(rng.randint(0, 3))] for _ in range(3)]
    types = [tensor(s, e) for s, e in zip(shapes, (f32, f32, i64), strict=True)]
    block = Block(arg_types=types)
    arrays = [data.standard_normal(shapes[0]), data.standard_normal(shapes[1])]
    arrays.append(data.integers(-4, 5, shapes[2]))
    sources = [Source(v) for v in block.args]
    expr = random_body(rng, sources, len(extents), rng.randint(0, 3))
    reduction = rng.choice(tuple(REDUCE))
    op = ScopeOp(tensor(extents[:rank]), expr, extents[rank:], reduction)
    op.verify()
    values = dict(zip(block.args, arrays, strict=True))
    found = op_reference.evaluate_scope(op, [values[v] for v in op.inputs])
    np.testing.assert_allclose(found, brute_force(op, values), rtol=1e-12, atol=1e-12)


def test_large_scopes_are_cut_into_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    block = Block(arg_types=[tensor([7, 5])])
    x = Source(block.args[0])
    a, b, k = iterators(3)
    data = np.random.default_rng(0).standard_normal((7, 5))
    for body in (x[a, k] * x[b, k], call("max", x[a, k], x[b, k])):
        op = ScopeOp(tensor([7, 7]), body, [5])
        whole = op_reference.evaluate_scope(op, [data] * len(op.inputs))
        monkeypatch.setattr(op_reference, "CHUNK_POINTS", 40)
        np.testing.assert_allclose(op_reference.evaluate_scope(op, [data] * len(op.inputs)), whole)
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("reduction", "neutral"), [("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf)]
)
def test_a_reduction_of_nothing_gives_its_neutral_element(reduction: str, neutral: float) -> None:
    build = ScopeBuilder()
    x = Source(Block(arg_types=[tensor([3, 0])]).args[0])
    a, k = iterators(2)
    build.scope(tensor([3]), x[a, k], [0], reduction)
    (op,) = build.ops
    op.verify()
    np.testing.assert_array_equal(op_reference.evaluate_scope(op, []), [neutral] * 3)


@pytest.mark.parametrize("reduction", ["sum", "prod", "max", "min"])
def test_nan_goes_through_every_reduction(reduction: str) -> None:
    x = Source(Block(arg_types=[tensor([2, 3])]).args[0])
    a, k = iterators(2)
    op = ScopeOp(tensor([2]), x[a, k], [3], reduction)
    found = op_reference.evaluate_scope(op, [np.array([[1, np.nan, 2], [1, 2, 3]])])
    assert np.isnan(found[0]) and np.isfinite(found[1])


def test_booleans_stay_booleans() -> None:
    b = Source(Block(arg_types=[tensor([2], i1)]).args[0])
    (a,) = iterators(1)
    op = ScopeOp(tensor([3], i1), call("xor", b[a - 1], True))
    op.verify()
    found = op_reference.evaluate_scope(op, [np.array([True, False])])
    assert found.dtype == np.bool_ and found.tolist() == [True, False, True]
