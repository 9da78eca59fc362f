"""What a rule does to floats, found by running both sides: the label of dialects/floats.py.

On small instances both sides are computed in float32, op by op. Three questions are asked:

- On finite inputs of both signs: are the floats the same, is a NaN on one side only? A sum over
  iterators counts as another float: kernels add in orders of their own.
- Of magnitudes (inputs and literals positive, each subtraction an addition, each division by what
  is no literal a product): are both sides equal? Reassociating and distributing keep this value;
  where terms or factors cancel or combine it changes.
- With infinities, NaN and zeros among the inputs: are they in the same places?
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue
from xdsl.utils.test_value import create_ssa_value

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.floats import BITS, ROUNDING, VALUES, Allowed, Floats, Label
from ...dialects.index import grid
from ...dialects.scalars import FUNCTIONS, Call, Cast, Const, Expr, Read, postorder, reads_of
from ...dialects.scope_builder import ScopeBuilder, Source
from ...dialects.types import Array, shape_of, tensor
from ..search_result import Rejected
from .conditions import holds
from .constants import constant_array
from .exact import graph_ops
from .instances import Bindings, Sampler, attributes_of, first_instances, shapes_of
from .rule import CONSTANTS, Node, Out, Rule, Term, Var, nodes_of

# Instances looked at, and draws for each of them that is found.
INSTANCES, TRIES = 4, 8
# Relative difference of magnitudes that is rounding.
CLOSE = 1e-9
MOVED = Floats(Label.ROUNDING, "infinities or NaN may come or go")
SPECIALS = (np.inf, -np.inf, np.nan, 0.0)

Scalar: TypeAlias = Callable[[str, Sequence[Array]], Any]


def floats_of(rule: Rule) -> Floats:
    """The label that a rule carries; of one without, what running it says."""
    return classified(rule) if rule.floats is None else rule.floats


def allowed_rules(
    rules: Sequence[Rule], allowed: Allowed
) -> tuple[tuple[Rule, ...], list[Rejected]]:
    """The rules that a user allows, and why the others are not used."""
    refused: dict[str, list[str]] = {}
    kept: list[Rule] = []
    for rule in rules:
        floats = floats_of(rule)
        if allowed.allows(floats):
            kept.append(rule)
        else:
            refused.setdefault(allowed.why_not(floats), []).append(rule.name)
    return tuple(kept), [Rejected(", ".join(n), "main", why) for why, n in refused.items()]


@cache
def classified(rule: Rule) -> Floats:
    """The label that running a rule gives; `rounding` where no instance of it can be run."""
    ops = {node.op for node in nodes_of((*rule.left, *rule.right))} - {*CONSTANTS}
    if not all(op in graph_ops() and graph_ops()[op].has_scopes() for op in ops):
        return MOVED
    found = BITS
    rng = np.random.default_rng(zlib.crc32(rule.name.encode()))
    bases = list(islice(first_instances(rule), 1))
    instances = [b for base in bases for b in _instances(rule, base, rng)]
    for bindings in instances[:INSTANCES]:
        found |= _on(rule, bindings)
    return found if instances else MOVED


def _instances(rule: Rule, base: Bindings, rng: np.random.Generator) -> list[Bindings]:
    sampler = Sampler(rule, base, rng)
    drawn = [base, *(sampler.draw() for _ in range(TRIES * INSTANCES))]
    return [b for b in drawn if holds(rule.where, b) and _makes_sense(rule, b)]


def _makes_sense(rule: Rule, bindings: Bindings) -> bool:
    left = shapes_of(rule.left, bindings)
    return left is not None and left == shapes_of(rule.right, bindings)


def _on(rule: Rule, bindings: Bindings) -> Floats:
    """What one instance shows."""
    signed, special, sizes = (_Run(bindings, kind) for kind in ("signed", "special", "sizes"))
    found = BITS
    with np.errstate(all="ignore"):
        for left, right in zip(rule.left, rule.right, strict=True):
            a, b = signed.value(left), signed.value(right)
            x, y = sizes.value(left), sizes.value(right)
            if not _alike(a, b) or not np.allclose(x, y, CLOSE, 0.0):
                return VALUES
            if signed.sums or not np.array_equal(a, b, equal_nan=True):
                found |= ROUNDING
            if not _alike(special.value(left), special.value(right)):
                found |= MOVED
    return found


def _alike(a: Array, b: Array) -> bool:
    """Whether NaN and infinities are in the same places."""
    infinite = np.isinf(a)
    same = np.array_equal(infinite, np.isinf(b)) and np.array_equal(np.isnan(a), np.isnan(b))
    return same and np.array_equal(a[infinite], b[infinite])


class _Run:
    """Values of terms on variables drawn in one way."""

    def __init__(self, bindings: Bindings, kind: str) -> None:
        self.bindings, self.kind = bindings, kind
        self.dtype = np.dtype(np.float64 if kind == "sizes" else np.float32)
        self.sums = False
        self._known: dict[Term, list[Array]] = {}

    def value(self, term: Term) -> Array:
        """The value of a term."""
        index = term.index if isinstance(term, Out) else 0
        node = term.node if isinstance(term, Out) else term
        if node not in self._known:
            self._known[node] = self._results(node)
        return self._known[node][index]

    def _results(self, node: Term) -> list[Array]:
        if isinstance(node, Var):
            return [self._drawn(node.name)]
        assert isinstance(node, Node)
        given = attributes_of(node, self.bindings)
        assert given is not None
        if node.op in CONSTANTS:
            return [constant_array(node.op, dict(given)).astype(self.dtype)]
        operands = [self.value(operand) for operand in node.operands]
        values = [create_ssa_value(tensor(o.shape)) for o in operands]
        results = len(dict(given)["sizes"]) if node.op == "split" else 1
        op = graph_ops()[node.op](*values, results=results, **dict(given))
        build = ScopeBuilder()
        made = op.as_scopes(build, *(Source(v) for v in values))
        sources = [made] if isinstance(made, Source) else list(made)
        known: dict[SSAValue, Array] = dict(zip(values, operands, strict=True))
        moving: set[SSAValue] = {*values}  # what depends on variables
        for step in build.ops:
            if isinstance(step, OnesOp):
                known[step.result] = np.ones(shape_of(step.result), self.dtype)
                continue
            assert isinstance(step, ScopeOp)
            known[step.result] = self._scope(step, known, moving)
            if not moving.isdisjoint(step.operands):
                moving.add(step.result)
        return [known[s.value] for s in sources]

    def _drawn(self, name: str) -> Array:
        shape = self.bindings[name]
        rng = np.random.default_rng([zlib.crc32(name.encode()), *shape])
        drawn = rng.standard_normal(shape)
        if self.kind == "sizes":
            return np.abs(drawn) + 0.5
        if self.kind == "special":
            picks = rng.random(shape) < 0.3
            drawn = np.where(picks, rng.choice(SPECIALS, shape), drawn)
        return np.asarray(drawn, self.dtype)

    def _scope(self, op: ScopeOp, known: dict[SSAValue, Array], moving: set[SSAValue]) -> Array:
        whole = grid(op.extents, range(len(op.extents))) if op.extents else []
        points = [np.asarray(p) for p in whole]
        arrays = {
            read: self._read(read, known[v], op.extents, points)
            for read, v in zip(op.reads(), op.operands, strict=True)
        }
        body = np.broadcast_to(self._body(op.expr(), arrays, moving), op.extents)
        taps = int(np.prod(op.extents[len(op.traversal) :], dtype=np.int64))
        body = body.reshape(*op.traversal, taps)
        self.sums = self.sums or (op.is_sum and taps > 1)
        match op.reduction.data:
            case "max":
                return body.max(axis=-1)
            case "min":
                return body.min(axis=-1)
            case "prod":
                return np.multiply.reduce(body, axis=-1)
            case _:
                return np.cumsum(body, axis=-1)[..., -1]

    def _read(
        self, read: Read, source: Array, extents: Sequence[int], points: Sequence[Array]
    ) -> Array:
        inside, places = np.ones(tuple(extents), bool), list[Array]()
        for e, size in zip(read.index, source.shape, strict=True):
            at = np.broadcast_to(np.asarray(e.evaluate(points)), tuple(extents))
            inside &= (at >= 0) & (at < size)
            places.append(np.clip(at, 0, size - 1))
        found = source[tuple(places)] if places else np.broadcast_to(source, tuple(extents))
        return np.where(inside, found, self.dtype.type(read.outside))

    def _body(self, expr: Expr, arrays: dict[Read, Array], moving: set[SSAValue]) -> Array:
        values: dict[Expr, Array] = {}
        for node in postorder(expr):
            match node:
                case Read():
                    values[node] = arrays[node]
                case Const(value):
                    size = abs(value) if self.kind == "sizes" else value
                    values[node] = np.asarray(size, self.dtype)
                case Cast(_, arg):
                    values[node] = values[arg]
                case Call("div", (a, b)) if self.kind == "sizes" and any(
                    read.source in moving for read in reads_of(b)
                ):
                    values[node] = values[a] * values[b]
                case Call(function, args):
                    values[node] = self._call(function, [values[a] for a in args])
                case _:
                    raise TypeError(f"not a scalar expression: {node}")
        return values[expr]

    def _call(self, function: str, args: Sequence[Array]) -> Array:
        if self.kind == "sizes" and function in ("sub", "neg"):
            return args[0] + args[1] if function == "sub" else args[0]
        found = np.asarray(FUNCTIONS[function].numpy(*args))
        return found if found.dtype == bool else found.astype(self.dtype)
