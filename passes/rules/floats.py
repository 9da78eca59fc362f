"""What a rule does to floats, measured by running both sides: the label of dialects/floats.py.

Both sides are computed in float32, op by op, on small instances. Three questions are asked:

- On finite inputs of both signs: are the floats identical, and does only one side have a NaN? A sum
  over iterators counts as a different float, because kernels add in their own orders.
- On magnitudes (inputs and literals positive, subtraction read as addition, division by a computed
  value read as a product): are both sides equal? Reassociating and distributing keep this value.
  It changes where terms or factors cancel or combine.
- With infinities, NaN and zeros among the inputs: do they appear in the same positions? One draw
  shows little, so there are many: in a third of them all numbers are small and whole, which cancel,
  in another third positive, so that infinities do not become NaN on both sides.
"""

from __future__ import annotations

import zlib
from collections.abc import Container, Iterator, Sequence
from functools import cache
from math import prod

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from ...dialects.algebra import ScopeOp
from ...dialects.arithmetic import Arithmetic
from ...dialects.floats import BITS, ROUNDING, VALUES, Allowed, Floats, Label
from ...dialects.graph.base import discard
from ...dialects.op_reference import evaluate_op
from ...dialects.scalars import Call, reads_of
from ...dialects.types import Array, tensor_type
from ..search_result import Rejected
from .conditions import holds
from .constants import constant_array
from .exact import graph_ops, op_on
from .instances import Bindings, InstanceSampler, attributes_of, nearest_instances, shapes_of
from .rule import CONSTANTS, Node, Rule, nodes_of
from .terms import interpreted

# Instances looked at, and draws for each of them that is found.
INSTANCES, TRIES = 4, 8
# Draws with specials for each instance; how many of an array's numbers are special is drawn too.
SPECIAL_DRAWS, SHARES = 32, (0.0, 0.1, 0.3, 0.6)
# Relative difference of magnitudes that is rounding.
CLOSE = 1e-9
MOVED = Floats(Label.ROUNDING, "infinities or NaN may come or go")
SPECIALS = (np.inf, -np.inf, np.nan, 0.0)


def floats_of(rule: Rule) -> Floats:
    """The label that a rule carries; if it has none, the label found by running it."""
    return classified(rule) if rule.floats is None else rule.floats


def allowed_rules(
    rules: Sequence[Rule], allowed: Allowed
) -> tuple[tuple[Rule, ...], list[Rejected]]:
    """The rules that a user allows, and the reasons why the others are not used."""
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
    """The label found by running a rule; `rounding` if no instance of it can be run."""
    ops = {node.op for node in nodes_of((*rule.left, *rule.right))} - {*CONSTANTS}
    if not all(op in graph_ops() and graph_ops()[op].has_scopes() for op in ops):
        return MOVED
    found = BITS
    rng = np.random.default_rng(zlib.crc32(rule.name.encode()))
    instances = [b for base in nearest_instances(rule, 1) for b in _instances(rule, base, rng)]
    for bindings in instances[:INSTANCES]:
        found |= _on(rule, bindings)
    return found if instances else MOVED


def _instances(rule: Rule, base: Bindings, rng: np.random.Generator) -> list[Bindings]:
    sampler = InstanceSampler(rule, base, rng)
    drawn = [base, *(sampler.draw() for _ in range(TRIES * INSTANCES))]
    return [b for b in drawn if holds(rule.where, b) and _makes_sense(rule, b)]


def _makes_sense(rule: Rule, bindings: Bindings) -> bool:
    left = shapes_of(rule.left, bindings)
    return left is not None and left == shapes_of(rule.right, bindings)


def _on(rule: Rule, bindings: Bindings) -> Floats:
    """The observations on one instance."""
    signed, sizes = (_Run(bindings, kind) for kind in ("signed", "sizes"))
    special = _Run(bindings, "special", (SPECIAL_DRAWS,))
    with np.errstate(all="ignore"):
        pairs = list(signed.pairs(rule))
        if not all(_alike(a, b) for a, b in pairs):
            return VALUES
        if not all(np.allclose(a, b, CLOSE, 0.0) for a, b in sizes.pairs(rule)):
            return VALUES
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)
        found = ROUNDING if signed.sums or not same else BITS
        kept = all(_alike(a, b) for a, b in special.pairs(rule))
        return found if kept else found | MOVED


def _alike(a: Array, b: Array) -> bool:
    """Whether NaN and infinities are in the same positions."""
    infinite = np.isinf(a)
    same = np.array_equal(infinite, np.isinf(b)) and np.array_equal(np.isnan(a), np.isnan(b))
    return same and np.array_equal(a[infinite], b[infinite])


class _Magnitudes(Arithmetic):
    """Numbers without signs, so that neither terms nor factors cancel.

    Args:
        moving: values that depend on variables. Division by such a value is read as a product.
    """

    def __init__(self, moving: Container[SSAValue]) -> None:
        self.moving = moving

    def literal(self, value: float | int | bool, element: Attribute | None) -> Array:
        return super().literal(abs(value) if np.isfinite(value) else value, element)

    def call(self, node: Call, args: Sequence[Array], operand: Attribute | None) -> Array:
        match node:
            case Call("sub"):
                return args[0] + args[1]
            case Call("neg"):
                return args[0]
            case Call("div", (_, by)) if any(read.source in self.moving for read in reads_of(by)):
                return args[0] * args[1]
            case _:
                return super().call(node, args, operand)


class _Products(Arithmetic):
    """A sum of products is computed product by product, of many draws at once."""

    contracts = False


class _Run:
    """Values of terms on variables drawn from one distribution.

    Args:
        draws: how many at once, as the first dims of every array.
    """

    def __init__(self, bindings: Bindings, kind: str, draws: tuple[int, ...] = ()) -> None:
        self.bindings, self.kind, self.draws = bindings, kind, draws
        self.moving: set[SSAValue] = set()
        kinds = {"sizes": _Magnitudes(self.moving), "special": _Products()}
        self.arithmetic = kinds.get(kind, Arithmetic.COMPUTED)
        self.sums = False

    def pairs(self, rule: Rule) -> Iterator[tuple[Array, Array]]:
        """The values of both sides of a rule, for each output."""
        values = interpreted((*rule.left, *rule.right), self._drawn, self._results)
        assert values is not None
        yield from zip(values[: len(rule.left)], values[len(rule.left) :], strict=True)

    def _results(self, node: Node, operands: list[Array]) -> list[Array]:
        given = attributes_of(node, self.bindings)
        assert given is not None
        if node.op in CONSTANTS:
            made = constant_array(node.op, dict(given))
            return [self._of_each(self.arithmetic.tensor(made, f32))]
        op = op_on(node.op, given, tuple(o.shape[len(self.draws) :] for o in operands))
        assert op is not None
        steps, results = op.scopes()
        known = dict(zip(op.operands, operands, strict=True))
        self.moving.update(op.operands)
        for step in steps:
            (found,) = evaluate_op(step, [known[v] for v in step.operands], {}, self.arithmetic)
            rank = len(tensor_type(step.results[0]).get_shape())
            known[step.results[0]] = found if found.ndim > rank else self._of_each(found)
            if not self.moving.isdisjoint(step.operands):
                self.moving.update(step.results)
            self.sums |= isinstance(step, ScopeOp) and step.is_sum and prod(step.summation) > 1
        discard(steps)
        return [known[result] for result in results]

    def _of_each(self, array: Array) -> Array:
        """What does not depend on the draw."""
        return np.broadcast_to(array, (*self.draws, *array.shape))

    def _drawn(self, name: str) -> Array:
        shape = (*self.draws, *self.bindings[name])
        rng = np.random.default_rng([zlib.crc32(name.encode()), *shape])
        drawn = rng.standard_normal(shape)
        if self.kind == "sizes":
            drawn = np.abs(drawn) + 0.5
        if self.kind == "special":
            each = (*self.draws, *(1 for _ in self.bindings[name]))
            way = np.arange(*self.draws).reshape(each) % 3
            drawn = np.where(way == 1, rng.integers(-2, 3, shape), drawn)
            picks = rng.random(shape) < rng.choice(SHARES, each)
            drawn = np.where(picks, rng.choice(SPECIALS, shape), drawn)
            drawn = np.where(way == 2, np.abs(drawn), drawn)
        return self.arithmetic.tensor(np.asarray(drawn), f32)
