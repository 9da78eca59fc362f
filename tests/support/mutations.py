"""Change one thing of an algebra-level program: a read, a literal, an extent, a function..."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from xdsl.context import Context
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from isoform.dialects.algebra import ScopeOp
from isoform.dialects.index import Index
from isoform.dialects.program import Program, main_of
from isoform.dialects.scalars import Call, Cast, Const, Expr, Read, map_reads, postorder
from isoform.dialects.types import element_of, is_float, tensor_type
from isoform.lowering.graph_to_algebra import GraphToAlgebra

ALIKE = (
    ("exp", "tanh", "erf", "sqrt", "abs", "sin", "log", "rsqrt", "floor"),
    ("add", "sub", "mul", "max", "min", "div"),
    ("lt", "le", "gt", "ge", "eq", "ne"),
    ("and", "or", "xor"),
)


class NoPlaceError(Exception):
    """The mutation does not apply here."""


def algebra(program: Program) -> Program:
    """A copy with every graph op as scopes."""
    lowered = program.clone()
    GraphToAlgebra().apply(Context(), lowered.module)
    return lowered


def mutate(program: Program, rng: random.Random) -> tuple[Program, str]:
    """A copy of an algebra-level program with one change, and what it was."""
    for _ in range(200):
        copy = program.clone()
        scopes = [op for op in main_of(copy.module).body.block.ops if isinstance(op, ScopeOp)]
        op = rng.choice(scopes)
        change = rng.choice(CHANGES)
        try:
            change(op, rng)
            copy.module.verify()
        except (NoPlaceError, ValueError, VerifyException):
            continue
        return copy, change.__name__.removeprefix("_")
    raise AssertionError("no mutation applies")


def _replace(
    op: ScopeOp,
    expr: Expr,
    sums: tuple[int, ...] | None = None,
    reduction: str | None = None,
) -> None:
    sums = op.summation if sums is None else sums
    try:
        new = ScopeOp(tensor_type(op.result), expr, sums, reduction or op.reduction.data, op.names)
    except Exception as error:  # an ill-typed body: the mutation does not apply
        raise NoPlaceError from error
    if len(new.iterators) != len(op.iterators):
        raise NoPlaceError
    Rewriter.replace_op(op, new)


def _pick(op: ScopeOp, rng: random.Random) -> tuple[Read, int]:
    reads = [r for r in op.reads() if r.index]
    if not reads:
        raise NoPlaceError
    read = rng.choice(reads)
    return read, rng.randrange(len(read.index))


def _with_index(op: ScopeOp, read: Read, dim: int, index: Index) -> None:
    if index == read.index[dim]:
        raise NoPlaceError
    changed = list(read.index)
    changed[dim] = index
    new = Read(read.source, tuple(changed), read.outside)
    _replace(op, map_reads(op.expr(), lambda r: new if r == read else r))


def _shift(op: ScopeOp, rng: random.Random) -> None:
    read, dim = _pick(op, rng)
    _with_index(op, read, dim, read.index[dim] + rng.choice((-2, -1, 1, 2)))


def _stretch(op: ScopeOp, rng: random.Random) -> None:
    """Change one coefficient."""
    read, dim = _pick(op, rng)
    index = read.index[dim]
    if not index.terms:
        raise NoPlaceError
    atom, c = rng.choice(index.terms)
    step = rng.choice((-1, 1))
    _with_index(op, read, dim, index + Index(0, ((atom, step),)) if c + step else index + 1)


def _other_iterator(op: ScopeOp, rng: random.Random) -> None:
    """Use one iterator in place of another."""
    read, dim = _pick(op, rng)
    images = [Index.iterator(k) for k in range(len(op.extents))]
    used = sorted(read.index[dim].iterators)
    if not used or len(images) < 2:
        raise NoPlaceError
    images[rng.choice(used)] = rng.choice(images)
    _with_index(op, read, dim, read.index[dim].substitute(images))


def _swap_indices(op: ScopeOp, rng: random.Random) -> None:
    read, a = _pick(op, rng)
    b = rng.randrange(len(read.index))
    if read.index[a] == read.index[b]:
        raise NoPlaceError
    changed = list(read.index)
    changed[a], changed[b] = changed[b], changed[a]
    new = Read(read.source, tuple(changed), read.outside)
    _replace(op, map_reads(op.expr(), lambda r: new if r == read else r))


def _extent(op: ScopeOp, rng: random.Random) -> None:
    """One sum over one more or one less."""
    if not op.summation:
        raise NoPlaceError
    k = rng.randrange(len(op.summation))
    sums = list(op.summation)
    sums[k] += rng.choice((-1, 1))
    if sums[k] < 1:
        raise NoPlaceError
    _replace(op, op.expr(), tuple(sums))


def _reduction(op: ScopeOp, rng: random.Random) -> None:
    if not op.summation:
        raise NoPlaceError
    kinds = [k for k in ("sum", "max", "min", "prod") if k != op.reduction.data]
    _replace(op, op.expr(), None, rng.choice(kinds))


def _outside(op: ScopeOp, rng: random.Random) -> None:
    read, _ = _pick(op, rng)
    if not is_float(element_of(read.source)):
        raise NoPlaceError
    values = [v for v in (0.0, 1.0, -1.0) if v != read.outside]
    new = Read(read.source, read.index, rng.choice(values))
    _replace(op, map_reads(op.expr(), lambda r: new if r == read else r))


def _wire(op: ScopeOp, rng: random.Random) -> None:
    """Read another value of the same type."""
    read, _ = _pick(op, rng)
    block = op.parent
    assert block is not None
    values: list[SSAValue] = [*block.args]
    for other in block.ops:
        if other is op:
            break
        values.extend(other.results)
    fit = [v for v in values if v.type == read.source.type and v is not read.source]
    if not fit:
        raise NoPlaceError
    new = Read(rng.choice(fit), read.index, read.outside)
    _replace(op, map_reads(op.expr(), lambda r: new if r == read else r))


def _rewrite(op: ScopeOp, old: Expr, new: Expr) -> None:
    """Replace one node of the body, all its uses."""
    images: dict[Expr, Expr] = {}
    body = op.expr()
    for node in postorder(body):
        if node == old:
            images[node] = new
        elif isinstance(node, Call):
            images[node] = Call(node.function, tuple(images[a] for a in node.args))
        elif isinstance(node, Cast):
            images[node] = Cast(node.element, images[node.arg])
        else:
            images[node] = node
    _replace(op, images[body])


def _nodes(op: ScopeOp, kind: type) -> list[Expr]:
    found = [node for node in postorder(op.expr()) if isinstance(node, kind)]
    if not found:
        raise NoPlaceError
    return found


def _literal(op: ScopeOp, rng: random.Random) -> None:
    node = rng.choice(_nodes(op, Const))
    assert isinstance(node, Const)
    value = node.value
    if isinstance(value, bool) or not math.isfinite(value):
        raise NoPlaceError
    changed = rng.choice((value + 1, value * 2, -value, value * 1.01))
    changed = type(value)(changed)
    if changed == value:
        raise NoPlaceError
    _rewrite(op, node, Const(changed))


def _function(op: ScopeOp, rng: random.Random) -> None:
    node = rng.choice(_nodes(op, Call))
    assert isinstance(node, Call)
    others = [f for group in ALIKE if node.function in group for f in group if f != node.function]
    if not others:
        raise NoPlaceError
    _rewrite(op, node, Call(rng.choice(others), node.args))


def _operands(op: ScopeOp, rng: random.Random) -> None:
    """Swap two operands of a call."""
    node = rng.choice(_nodes(op, Call))
    assert isinstance(node, Call)
    if len(node.args) < 2 or node.args[-1] == node.args[-2]:
        raise NoPlaceError
    _rewrite(op, node, Call(node.function, (*node.args[:-2], node.args[-1], node.args[-2])))


def _drop(op: ScopeOp, rng: random.Random) -> None:
    """Replace a call by one of its operands."""
    node = rng.choice(_nodes(op, Call))
    assert isinstance(node, Call)
    _rewrite(op, node, rng.choice(node.args))


def _scale(op: ScopeOp, rng: random.Random) -> None:
    _replace(op, op.expr() * rng.choice((2, -1, 3)))


CHANGES: tuple[Callable[[ScopeOp, random.Random], None], ...] = (
    _shift, _stretch, _other_iterator, _swap_indices, _extent, _reduction, _outside, _wire,
    _literal, _function, _operands, _drop, _scale,
)  # fmt: skip
