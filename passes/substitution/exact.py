"""Exact values of graph ops, many at once: residues modulo a prime, by the ops' own scopes.

An op of the dialect needs nothing here to take part: its `as_scopes` is compiled, for given operand
shapes, into gathers and modular arithmetic over a whole batch of operands. What no field has is
replaced by something that keeps the laws and nothing else: `max` and `min` go by a random total
order of the residues (so relu is an arbitrary retraction), every other function is a random one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.errors import UserError, did_you_mean
from ...dialects.graph import OPS, GraphOp
from ...dialects.index import grid
from ...dialects.scalars import Call, Cast, Const, Expr, Read
from ...dialects.scope_builder import ScopeBuilder, Source
from ...dialects.types import shape_of, tensor

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"
Shape: TypeAlias = "tuple[int, ...]"
Attributes: TypeAlias = "tuple[tuple[str, Any], ...]"

PRIME = 2147483629  # below 2^31: a product of two residues fits 62 bits
_P = np.uint64(PRIME)
_LOWEST = np.uint64(PRIME)  # -inf: no residue, below all in every order
_MOST_CONSTANT = 1 << 20


@cache
def graph_ops() -> Mapping[str, type[GraphOp]]:
    """The dialect's ops by their names without `graph.`."""
    return {op.name.removeprefix("graph."): op for op in OPS if issubclass(op, GraphOp)}


@dataclass(frozen=True)
class Plan:
    """An op compiled for operand shapes.

    Attributes:
        shapes: of the results.
        run: batch in, batch out: [n, elements] of each operand to the same of each result.
    """

    shapes: tuple[Shape, ...]
    run: Callable[[Sequence[Words]], list[Words]]


@lru_cache(maxsize=200_000)
def infer(op: str, attributes: Attributes, shapes: tuple[Shape, ...]) -> tuple[Shape, ...] | None:
    """Result shapes of an op; None where its inference refuses the operands or attributes.

    Raises:
        UserError: there is no such op.
    """
    cls = graph_ops().get(op)
    if cls is None:
        raise UserError(f"the graph dialect has no op '{op}'", hint=did_you_mean(op, graph_ops()))
    operands = [create_ssa_value(tensor(shape)) for shape in shapes]
    try:
        built = cls(*operands, results=_results(attributes), **dict(attributes))
    except (UserError, VerifyException, IndexError, TypeError):
        return None
    found = tuple(shape_of(r) for r in built.results)
    return None if any(0 in shape for shape in found) else found


@lru_cache(maxsize=2048)  # a plan holds its index tables: a megabyte, if shapes are large
def plan(op: str, attributes: Attributes, shapes: tuple[Shape, ...]) -> Plan | None:
    """The op at these operand shapes; None where its inference refuses them.

    Raises:
        UserError: the op is no tensor expression, or none at all.
    """
    found = infer(op, attributes, shapes)
    if found is None:
        return None
    cls = graph_ops()[op]
    if not cls.has_scopes():
        raise UserError(f"graph.{op} is no tensor expression, so it has no exact value")
    operands = [create_ssa_value(tensor(shape)) for shape in shapes]
    built = cls(*operands, results=_results(attributes), **dict(attributes))
    build = ScopeBuilder()
    made = built.as_scopes(build, *(Source(v) for v in operands))
    sources = [made] if isinstance(made, Source) else list(made)
    steps = [_step(step) for step in build.ops]

    def run(values: Sequence[Words]) -> list[Words]:
        known: dict[SSAValue, Words] = dict(zip(operands, values, strict=True))
        for step, result, reads in steps:
            known[result] = step([known[v] for v in reads])
        count = max((v.shape[0] for v in values), default=1)
        return [np.broadcast_to(v, (count, v.shape[1])) for v in (known[s.value] for s in sources)]

    return Plan(found, run)


def _results(attributes: Attributes) -> int:
    """How many results an op has: as many as `sizes` are given, where they are (split)."""
    given = dict(attributes)
    return len(given["sizes"]) if "sizes" in given and "starts" not in given else 1


_Step: TypeAlias = "tuple[Callable[[Sequence[Words]], Words], SSAValue, list[SSAValue]]"


def _step(op: Operation) -> _Step:
    if isinstance(op, OnesOp):
        size = int(np.prod(shape_of(op.result), dtype=np.int64))
        ones = np.ones((1, size), np.uint64)
        return (lambda _: ones), op.result, []
    assert isinstance(op, ScopeOp), op.name
    return _scope(op), op.results[0], list(op.operands)


def _scope(op: ScopeOp) -> Callable[[Sequence[Words]], Words]:
    expr, reads = op.expr(), op.reads()
    points, rank = int(np.prod(op.traversal, dtype=np.int64)), len(op.traversal)
    taps = int(np.prod(op.extents[rank:], dtype=np.int64))
    gathers = {
        read: _gather(read, shape_of(value), op.extents)
        for read, value in zip(reads, op.operands, strict=True)
    }
    reduction = op.reduction.data

    def run(values: Sequence[Words]) -> Words:
        arrays = {read: gathers[read](v) for read, v in zip(reads, values, strict=True)}
        body = _evaluate(expr, arrays)
        body = np.broadcast_to(body, (body.shape[0], points * taps))
        return _reduce(body.reshape(body.shape[0], points, taps), reduction)

    return run


def _gather(read: Read, shape: Shape, extents: Sequence[int]) -> Callable[[Words], Words]:
    """Reads at every point of the iteration space, flat; `outside` beyond the shape."""
    whole = tuple(extents)
    points = grid(whole, range(len(whole))) if whole else []
    flat, inside = np.zeros(whole, np.int64), np.ones(whole, bool)
    for e, size in zip(read.index, shape, strict=True):
        at = np.broadcast_to(np.asarray(e.evaluate(points)), whole)
        inside &= (at >= 0) & (at < size)
        flat = flat * size + at
    if inside.all():
        index = flat.ravel()
        return lambda v: v[:, index]
    total = int(np.prod(shape, dtype=np.int64))
    index = np.where(inside, flat, total).ravel()
    outside = _literal(read.outside)

    def gather(v: Words) -> Words:
        column = np.full((v.shape[0], 1), outside, np.uint64)
        return np.concatenate([v, column], axis=1)[:, index]

    return gather


def _literal(value: float | int | bool | Fraction) -> np.uint64:
    if value == float("-inf"):
        return _LOWEST
    exact = Fraction(value)
    return np.uint64(exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME)


def _reduce(body: Words, reduction: str) -> Words:
    if body.shape[2] == 1:
        return body[:, :, 0]
    match reduction:
        case "sum":
            return body.sum(axis=2) % _P
        case "max":
            order = np.argmax(_height(body), axis=2)
            return np.take_along_axis(body, order[:, :, None], axis=2)[:, :, 0]
        case "min":
            order = np.argmin(_height(body), axis=2)
            return np.take_along_axis(body, order[:, :, None], axis=2)[:, :, 0]
        case _:
            total = body[:, :, 0]
            for k in range(1, body.shape[2]):
                total = total * body[:, :, k] % _P
            return total


def _height(x: Words) -> Words:
    """A random total order of the residues, 0 in its middle; that of -inf is the least."""
    with np.errstate(over="ignore"):
        return np.where(x == _LOWEST, np.uint64(0), (mix(x) + _MIDDLE) | np.uint64(1))


def mix(x: Words) -> Words:
    """A fixed random-looking permutation of the 64-bit words (splitmix64's finaliser)."""
    with np.errstate(over="ignore"):
        x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


_MIDDLE = np.uint64((2**63 - int(mix(np.zeros(1, np.uint64))[0])) % 2**64)


# --- expressions --------------------------------------------------------------------------------


def _evaluate(expr: Expr, arrays: Mapping[Read, Words]) -> Words:
    match expr:
        case Read():
            return arrays[expr]
        case Const():
            return np.full((1, 1), _literal(expr.value), np.uint64)
        case Cast():
            return _evaluate(expr.arg, arrays)
        case Call():
            return _call(expr.function, [_evaluate(a, arrays) for a in expr.args])
        case _:
            raise UserError(f"no exact value of {expr!r}")


def _call(function: str, args: Sequence[Words]) -> Words:
    match function, args:
        case "add", (a, b):
            return (a + b) % _P
        case "sub", (a, b):
            return (a + _P - b) % _P
        case "mul", (a, b):
            return a * b % _P
        case "neg", (a,):
            return (_P - a) % _P
        case "div", (a, b):
            return a * _inverse(b) % _P
        case "max", (a, b):
            return np.where(_height(a) >= _height(b), a, b)
        case "min", (a, b):
            return np.where(_height(a) <= _height(b), a, b)
        case "select", (c, a, b):
            return np.where(c != 0, a, b)
        case _:
            return _random_function(function, args)


def _random_function(name: str, args: Sequence[Words]) -> Words:
    state = np.full((1, 1), np.uint64(zlib.crc32(name.encode())), np.uint64)
    with np.errstate(over="ignore"):
        for k, arg in enumerate(args):
            state = mix(state * np.uint64(31 + k) + arg)
    return state % _P


def _inverse(x: Words) -> Words:
    """1 / x by Fermat; of 0 it is 0."""
    result, power, base = np.ones_like(x), PRIME - 2, x
    while power:
        if power & 1:
            result = result * base % _P
        base, power = base * base % _P, power >> 1
    return result


# --- constants and draws ------------------------------------------------------------------------


def constant(op: str, attributes: Attributes) -> tuple[Shape, Words] | None:
    """Shape and residues of a constant of rules; None where its attributes make no sense."""
    from .constants import constant_array, makes_sense

    given = dict(attributes)
    numbers = [n for v in given.values() for n in (v if isinstance(v, tuple) else (v,))]
    if any(not isinstance(n, int) or n < 1 for n in numbers) or np.prod(numbers) > _MOST_CONSTANT:
        return None
    if not makes_sense(op, given):
        return None
    array = constant_array(op, given)
    if op == "pool_kernel":
        share = _literal(Fraction(1, int(np.prod(given["kernel"]))))
        return array.shape, np.full((1, array.size), share, np.uint64)
    return array.shape, array.reshape(1, -1).astype(np.uint64)


@lru_cache(maxsize=4096)
def draw(shape: Shape, lanes: int, seed: int, name: str) -> Words:
    """Random residues of a variable: [lanes, elements]."""
    size = int(np.prod(shape, dtype=np.int64))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), *shape])
    values = rng.integers(0, PRIME, (lanes, size), dtype=np.uint64)
    values.setflags(write=False)
    return values


__all__ = [
    "PRIME",
    "Attribute",
    "Plan",
    "Shape",
    "Words",
    "constant",
    "draw",
    "graph_ops",
    "mix",
    "plan",
]
