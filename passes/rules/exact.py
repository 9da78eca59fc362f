"""Exact values of graph ops, many at once: residues modulo a prime, by the ops' own scopes.

New ops need no code here: the reference evaluates their scopes, as it does for floats, in an
arithmetic of residues over a whole batch of draws. Functions that no field has are replaced by ones
that keep only their laws: `max` and `min` use a random total order of the residues (so relu is an
arbitrary retraction), every other function is random.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ...dialects.algebra import ScopeOp
from ...dialects.arithmetic import Arithmetic
from ...dialects.errors import UserError, did_you_mean
from ...dialects.graph import OPS, GraphOp
from ...dialects.graph.data import GatherOp
from ...dialects.op_reference import ScopeEvaluator, evaluate_op
from ...dialects.scalars import Call
from ...dialects.types import Array, placeholders, shape_of, tensor
from ..equivalence.residue_einsum import contract
from ..equivalence.residues import Lanes, Residues, Words, mix
from .rule import atoms_of

Shape: TypeAlias = "tuple[int, ...]"
Attributes: TypeAlias = "tuple[tuple[str, Any], ...]"

PRIME = 4194301  # below 2^22: 2^11 products of two residues add up exactly in a float64
FIELD = Residues((PRIME,), 0)
_LOWEST = float(PRIME)  # stands for -inf: below every residue
_MAX_CONSTANT = 1 << 20


@cache
def graph_ops() -> Mapping[str, type[GraphOp]]:
    """The dialect's ops by their names without `graph.`."""
    return {op.name.removeprefix("graph."): op for op in OPS if issubclass(op, GraphOp)}


@dataclass(frozen=True)
class Plan:
    """An op compiled for operand shapes.

    Attributes:
        shapes: of the results.
        run: residues of each operand, [draws, *shape], to those of each result; a constant may have
            one draw for all.
    """

    shapes: tuple[Shape, ...]
    run: Callable[[Sequence[Lanes]], list[Lanes]]


@lru_cache(maxsize=1024)  # shapes are inferred, and values asked for soon after
def op_on(op: str, attributes: Attributes, shapes: tuple[Shape, ...]) -> GraphOp | None:
    """The op on placeholders of these shapes; None where inference refuses shapes or attributes.

    Raises:
        UserError: there is no such op.
    """
    cls = graph_ops().get(op)
    if cls is None:
        raise UserError(f"the graph dialect has no op '{op}'", hint=did_you_mean(op, graph_ops()))
    elements = [i64 if issubclass(cls, GatherOp) and k else f32 for k in range(len(shapes))]
    operands = placeholders([tensor(*pair) for pair in zip(shapes, elements, strict=True)])
    try:
        built = cls(*operands, results=_results(attributes), **dict(attributes))
    except (UserError, VerifyException, IndexError, TypeError):
        return None
    return None if any(0 in shape_of(r) for r in built.results) else built


@lru_cache(maxsize=200_000)
def infer(op: str, attributes: Attributes, shapes: tuple[Shape, ...]) -> tuple[Shape, ...] | None:
    """Result shapes of an op; None and errors as `op_on`."""
    built = op_on(op, attributes, shapes)
    return None if built is None else tuple(map(shape_of, built.results))


@lru_cache(maxsize=2048)  # a plan holds its index tables: a megabyte, if shapes are large
def plan(op: str, attributes: Attributes, shapes: tuple[Shape, ...]) -> Plan | None:
    """The op at these operand shapes; None where its inference refuses them.

    Raises:
        UserError: the op is not a tensor expression, or none at all.
    """
    built = op_on(op, attributes, shapes)
    if built is None:
        return None
    if isinstance(built, GatherOp):
        axis = built.value("axis")
        return Plan(
            (shape_of(built.result),), lambda values: [_gathered(values[0], values[1], axis)]
        )
    if not built.has_scopes():
        raise UserError(f"graph.{op} is not a tensor expression, so it has no exact value")
    steps, results = built.scopes()
    scopes = [ScopeEvaluator(s, MODULAR) if isinstance(s, ScopeOp) else None for s in steps]

    def run(values: Sequence[Lanes]) -> list[Lanes]:
        known: dict[SSAValue, Lanes] = dict(zip(built.operands, values, strict=True))
        for step, scope in zip(steps, scopes, strict=True):
            given = [known[v] for v in step.operands]
            made = evaluate_op(step, given, {}, MODULAR) if scope is None else [scope(given)]
            known[step.results[0]] = made[0]
        return [known[value] for value in results]

    return Plan(tuple(map(shape_of, built.results)), run)


def _gathered(x: Lanes, indices: Lanes, axis: int) -> Lanes:
    """Slices at positions that residues stand for: any function to the positions there are."""
    places = indices.astype(np.int64) % x.shape[axis + 1]
    draws = max(len(x), len(places))
    every = np.resize(x, (draws, *x.shape[1:]))
    pairs = zip(every, np.resize(places, (draws, *places.shape[1:])), strict=True)
    return np.stack([np.take(values, at, axis) for values, at in pairs])


def _results(attributes: Attributes) -> int:
    """How many results an op has: as many as `sizes` are given, where they are (split)."""
    given = dict(attributes)
    return len(given["sizes"]) if "sizes" in given and "starts" not in given else 1


class _Modular(Arithmetic):
    """Residues of one prime; each row of their first dim is a draw of its own."""

    def dtype(self, element: Attribute) -> np.dtype:
        return np.dtype(np.float64)

    def tensor(self, value: Array, element: Attribute) -> Array:
        return value

    def cast(self, value: Array, source: Attribute | None, target: Attribute) -> Array:
        return value

    def literal(self, value: float | int | bool | Fraction, element: Attribute | None) -> Array:
        return _residue(value)

    def call(self, node: Call, args: Sequence[Array], operand: Attribute | None) -> Array:
        match node.function, args:
            case "add", (a, b):
                return FIELD.reduce(a + b)
            case "sub", (a, b):
                return FIELD.reduce(a - b)
            case "mul", (a, b):
                return FIELD.reduce(a * b)
            case "neg", (a,):
                return -a
            case "div", (a, b):
                return FIELD.reduce(a * _inverse(b))
            case "max", (a, b):
                return np.where(_height(a) >= _height(b), a, b)
            case "min", (a, b):
                return np.where(_height(a) <= _height(b), a, b)
            case "select", (c, a, b):
                return np.where(c != 0, a, b)
            case _:
                return _random_function(node.function, args)

    def reduce(self, kind: str, value: Array, axes: tuple[int, ...]) -> Array:
        value = value.reshape(*value.shape[: -len(axes)], -1)
        match kind:
            case "sum":
                return FIELD.reduce(value.sum(axis=-1))
            case "max" | "min":
                position = (np.argmax if kind == "max" else np.argmin)(_height(value), axis=-1)
                return np.take_along_axis(value, position[..., None], axis=-1)[..., 0]
            case _:
                total = value[..., 0]
                for k in range(1, value.shape[-1]):
                    total = FIELD.reduce(total * value[..., k])
                return total

    def contract(
        self, factors: Sequence[tuple[Array, Sequence[int]]], kept: Sequence[int]
    ) -> Array:
        led = any(a.ndim > len(used) for a, used in factors)
        parts = [(a if a.ndim > len(used) else a[None], tuple(used)) for a, used in factors]
        found, _ = contract(FIELD, parts, kept)
        return found if led else found[0]

    def scaled(
        self, value: Array, literals: Sequence[float], times: int, element: Attribute
    ) -> Array:
        return FIELD.scale(value, math.prod(map(Fraction, literals), start=Fraction(times)))


MODULAR = _Modular()


@lru_cache(maxsize=1024)
def _residue(value: float | int | bool | Fraction) -> Array:
    return np.asarray(_LOWEST if value == float("-inf") else FIELD.literal(Fraction(value))[0])


def _words(x: Array) -> Words:
    return x.astype(np.int64).view(np.uint64)


def _height(x: Array) -> Words:
    """A random total order of the residues, 0 in its middle; that of -inf is the least."""
    with np.errstate(over="ignore"):
        return np.where(x == _LOWEST, np.uint64(0), (mix(_words(x)) + _MIDDLE) | np.uint64(1))


_MIDDLE = np.uint64((2**63 - int(mix(np.zeros(1, np.uint64))[0])) % 2**64)


def _random_function(name: str, args: Sequence[Array]) -> Array:
    state = np.full((), np.uint64(zlib.crc32(name.encode())), np.uint64)
    with np.errstate(over="ignore"):
        for k, arg in enumerate(args):
            state = mix(state * np.uint64(31 + k) + _words(arg))
    return FIELD.reduce((state % np.uint64(PRIME)).astype(np.float64))


def _inverse(x: Array) -> Array:
    """1 / x by Fermat; of 0 it is 0."""
    result, power, base = np.ones_like(x), PRIME - 2, x
    while power:
        if power & 1:
            result = FIELD.reduce(result * base)
        base, power = FIELD.reduce(base * base), power >> 1
    return result


# --- constants and draws ------------------------------------------------------------------------


@lru_cache(maxsize=256)
def constant(op: str, attributes: Attributes) -> Lanes | None:
    """Residues of a constant of rules, [1, *shape]; None where its attributes make no sense."""
    from .constants import constant_array, makes_sense

    given = dict(attributes)
    numbers: list[Any] = [n for value in given.values() for n in atoms_of(value)]
    if any(not isinstance(n, int) or n < 1 for n in numbers) or np.prod(numbers) > _MAX_CONSTANT:
        return None
    if not makes_sense(op, given):
        return None
    array = constant_array(op, given)
    if op == "pool_kernel":
        share = Fraction(1, int(np.prod(given["kernel"])))
        return np.full((1, *array.shape), FIELD.literal(share))
    return array[None]


@lru_cache(maxsize=4096)
def draw(shape: Shape, draws: int, seed: int, name: str) -> Lanes:
    """Random residues of a variable: [draws, *shape]."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), *shape])
    values = FIELD.reduce(rng.integers(0, PRIME, (draws, *shape)).astype(np.float64))
    values.setflags(write=False)
    return values
