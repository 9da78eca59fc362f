"""From `algebra.scope` to canonical scopes; canonical_ops.py is the inverse.

Reads of scopes that only move data (copies, pads, literals) are replaced by reads of their sources.
Booleans are 0 and 1, so logic and `select` are polynomials. Integers are polynomials modulo a power
of two, wrapped where their value matters (wrapping.py). Conversions that change no number vanish.
`rsqrt` is the reciprocal of `sqrt` and `a / b` is `a` times the reciprocal of `b`, as in the
reference.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

from xdsl.ir import Attribute, SSAValue

from . import scalars
from .algebra import ScopeOp
from .canonical_casts import converted
from .canonical_scope import (
    ONE,
    ZERO,
    Apply,
    Expr,
    Extents,
    Factor,
    Guard,
    Read,
    Reduce,
    Scope,
    Source,
    Symbol,
    Term,
    add,
    apply,
    constant,
    factor,
    multiply,
    reduce,
    scale,
    scope,
    substitute,
    wrapped,
)
from .index import Index, iterators
from .scalars import Call, Cast, Const, operand_type
from .types import element_of, is_bool, is_float
from .wrapping import bits_of, is_whole

# Decides whether an expression is read through.
Through: TypeAlias = Callable[[Expr], bool]
Additions: TypeAlias = Literal["merged", "unsigned", "apart"]

# Literal integer powers up to this one become products.
MAX_POWER = 8
_MAX_TRUTHS = 6
COMPARISONS = frozenset({"lt", "le", "eq", "ne"})
_SWAPPED = {"gt": "lt", "ge": "le"}
_BITWISE = frozenset({"and", "or", "xor"})
# A nest of these on integers is wrapped once, at the end.
_RING = frozenset({"add", "sub", "neg", "mul", "select"})
# Functions with another meaning on integers.
INTEGER = frozenset({"div", "rem", "pow", *_BITWISE})


def from_op(
    op: ScopeOp,
    source_of: Callable[[SSAValue], Source],
    through: Through | None = None,
    additions: Additions = "merged",
) -> Scope:
    """The canonical scope of an op whose operands are these sources.

    Args:
        through: which scopes are read through; `moves_data` for None.
        additions: "merged": sums of floats are polynomials. "unsigned": differences and negative
            literals become sums and positive ones, so that nothing cancels. "apart": each sum,
            difference and product is a scope of its own; terms cancel where such scopes are opened.
    """
    body = op.expr()
    through = moves_data if through is None else through
    reader = _Reader(op.extents, source_of, body, through, additions)
    value = reader.value(body)
    rank = len(op.traversal)
    element = element_of(op.result)
    kind = op.reduction.data
    if kind == "sum" and op.summation and is_bool(element):
        kind = "or"  # a sum of booleans is not a sum
    elif kind == "sum" and value.symbolic:
        kind = "raw"  # ring laws do not hold for infinite literals
    if kind in ("max", "min") and is_whole(element):
        value = wrapped(value, element, op.extents)
    expr = reduce(kind, op.summation, value, op.traversal) if len(op.extents) > rank else value
    return scope(op.traversal, element, expr)


def read(
    source: Source,
    index: Sequence[Index],
    extents: Extents,
    outside: float = 0.0,
    through: Through | None = None,
) -> Expr:
    """`source[index]` over iterators of the extents, read through copies."""
    through = moves_data if through is None else through
    if outside == 0.0 or not math.isfinite(outside):
        made = factor(Read(source, tuple(index), outside), extents)
        return _through(made, extents, through)
    inside = constant(1)
    for e, size in zip(index, source.shape, strict=True):
        inside = multiply(inside, factor(Guard(e, size), extents), extents)
    value = Fraction(outside)
    rest = scale(add(constant(1), scale(inside, -1)), value)
    return add(read(source, index, extents, through=through), rest)


def _through(made: Expr, extents: Extents, through: Through) -> Expr:
    """Read the source's own source, if the source only moves data."""
    only = made.terms[0].factors[0] if made.terms and made.terms[0].factors else None
    if not isinstance(only, Read) or not isinstance(only.source, Scope):
        return made
    source = only.source
    if not through(source.expr) or (only.outside != 0.0):
        return made
    guards = constant(1)
    for e, size in zip(only.index, source.shape, strict=True):
        guards = multiply(guards, factor(Guard(e, size), extents), extents)
    if guards.constant is None and source.expr.symbolic:
        return made
    return multiply(guards, substitute(source.expr, only.index, extents), extents)


def moves_data(expr: Expr) -> bool:
    """Whether an expression is read through: at most one read, no sum, no function."""
    factors = [f for t in expr.terms for f in t.factors if not isinstance(f, Guard)]
    if any(t.sums for t in expr.terms) or len(expr.terms) > 3:
        return False
    return len(factors) <= 1 and not any(isinstance(f, Apply | Reduce) for f in factors)


def only_moves(expr: Expr) -> bool:
    """Whether an expression is read through where it must not be added to or scaled.

    A pad's fill is a constant outside the guards: c - c [inside].
    """
    if not moves_data(expr):
        return False
    moved = [t for t in expr.terms if any(not isinstance(f, Guard) for f in t.factors)]
    rest = sum(t.coefficient for t in expr.terms if t not in moved)
    return not moved or (rest == 0 and all(t.coefficient == 1 for t in moved))


class _Reader:
    """Turn a scalar expression into a canonical one over the extents."""

    def __init__(
        self,
        extents: Extents,
        source_of: Callable[[SSAValue], Source],
        body: scalars.Expr,
        through: Through,
        additions: Additions,
    ):
        self.extents = extents
        self.additions = additions
        self.through = through
        self.source_of = source_of
        self.types = scalars.element_types(body, lambda r: element_of(r.source))

    def value(self, body: scalars.Expr) -> Expr:
        values: dict[scalars.Expr, Expr] = {}
        for node in scalars.postorder(body):
            match node:
                case scalars.Read(source, index, outside):
                    operand = self.source_of(source)
                    values[node] = read(operand, index, self.extents, outside, self.through)
                case Const(literal):
                    unsigned = self.additions == "unsigned"
                    values[node] = literal_value(abs(literal) if unsigned else literal)
                case Cast(element, arg):
                    values[node] = self._cast(values[arg], self.types[arg], element)
                case Call(function, args):
                    made = self._call(node, function, [values[a] for a in args])
                    values[node] = self._apart(node, made) if self.additions == "apart" else made
                case _:
                    raise TypeError(f"not a scalar expression: {node}")
        return values[body]

    def _apart(self, node: Call, made: Expr) -> Expr:
        """A sum or product of floats as a scope of its own, read at the current point."""
        kind = operand_type(node, self.types)
        if node.function not in ("add", "sub", "mul") or kind is None or not is_float(kind):
            return made
        here = tuple(iterators(len(self.extents)))
        return factor(Read(scope(self.extents, kind, made), here), self.extents)

    def _cast(self, value: Expr, source: Attribute | None, target: Attribute) -> Expr:
        if source is None or source == target:
            return value
        if is_whole(source) and is_whole(target) and bits_of(target) <= bits_of(source):
            return value  # its class modulo the smaller power of two
        value = self._settled(value, source)
        if is_bool(target):
            return self._truth(value)
        return converted(value, source, target, self.extents)

    def _settled(self, value: Expr, element: Attribute | None) -> Expr:
        """The expression of a value; an integer is wrapped where it may leave its type."""
        if element is None or not is_whole(element):
            return value
        return wrapped(value, element, self.extents)

    def _call(self, node: Call, function: str, args: list[Expr]) -> Expr:
        kind = operand_type(node, self.types)
        floats = kind is None or is_float(kind)
        if function in _BITWISE and kind is not None and is_bool(kind):
            return self._logic(function, *args)
        if any(a.symbolic for a in args):
            return self._opaque(function, args)
        if kind is not None and is_bool(kind) and function in ("add", "sub", "neg"):
            return apply(f"b{function}", args, self.extents)
        if floats and self.additions == "unsigned" and function in ("sub", "neg"):
            return add(*args)
        if function not in _RING:
            args = [self._settled(a, kind) for a in args]
        match function:
            case "add":
                return add(*args)
            case "sub":
                return add(args[0], scale(args[1], -1))
            case "neg":
                return scale(args[0], -1)
            case "mul":
                return multiply(args[0], args[1], self.extents)
            case "select":
                return self._select(*args)
            case "div" if floats:
                return multiply(args[0], self._recip(args[1]), self.extents)
            case "rsqrt":
                return self._recip(apply("sqrt", args, self.extents))
            case "pow" if floats:
                return self._power(args[0], args[1])
            case "ne" if args[1].constant == 0:
                return self._truth(args[0])
            case "div" if args[1].constant == 1:
                return args[0]
            case "pow" if args[1].constant == 0:
                return constant(1)
            case _ if function in _SWAPPED:
                return apply(_SWAPPED[function], args[::-1], self.extents)
            case _:
                whole = not floats and function in INTEGER
                return apply(f"i{function}" if whole else function, args, self.extents)

    def _truth(self, value: Expr) -> Expr:
        """value != 0."""
        return value if is_zero_or_one(value) else apply("ne", [value, ZERO], self.extents)

    def _opaque(self, function: str, args: list[Expr]) -> Expr:
        """A call on an infinite literal, which ring laws must not touch."""
        if function in _SWAPPED:
            function, args = _SWAPPED[function], args[::-1]
        name = function if function in ("max", "min", "lt", "le", "eq", "ne") else f"raw.{function}"
        return apply(name, args, self.extents)

    def _recip(self, value: Expr) -> Expr:
        return apply("recip", [value], self.extents)

    def _select(self, condition: Expr, then: Expr, otherwise: Expr) -> Expr:
        """c * a + (1 - c) * b, for a condition c that is 0 or 1."""
        chosen = multiply(condition, add(then, scale(otherwise, -1)), self.extents)
        return add(chosen, otherwise)

    def _logic(self, function: str, a: Expr, b: Expr) -> Expr:
        both = multiply(a, b, self.extents)
        if function == "and":
            return both
        return add(a, b, scale(both, -1 if function == "or" else -2))

    def _power(self, base: Expr, exponent: Expr) -> Expr:
        power = exponent.constant
        if power == 0:
            return constant(1)
        if power is None or power.denominator != 1 or not 1 <= abs(power) <= MAX_POWER:
            return apply("pow", [base, exponent], self.extents)
        value = base
        for _ in range(abs(int(power)) - 1):
            value = multiply(value, base, self.extents)
        return value if power > 0 else self._recip(value)


def is_zero_or_one(expr: Expr) -> bool:
    """Whether an expression over a few booleans is a boolean for all their values."""
    factors = {f.token: f for t in expr.terms for f in t.factors}
    if any(t.sums for t in expr.terms) or len(factors) > _MAX_TRUTHS:
        return False
    if not all(_is_truth(f) for f in factors.values()):
        return False
    for values in itertools.product((0, 1), repeat=len(factors)):
        known = dict(zip(factors, values, strict=True))
        parts = (t.coefficient * math.prod(known[f.token] for f in t.factors) for t in expr.terms)
        if sum(parts) not in (0, 1):
            return False
    return True


def _is_truth(f: Factor) -> bool:
    if isinstance(f, Read):
        return is_bool(f.source.element) and f.outside == 0.0
    return isinstance(f, Guard) or (isinstance(f, Apply) and f.function in COMPARISONS)


def literal_value(literal: float | int | bool) -> Expr:
    """The exact rational of a literal, or a symbol for one that is not a rational."""
    if isinstance(literal, float) and not math.isfinite(literal):
        return Expr((Term(ONE, (), (Symbol(str(literal)),)),))
    return constant(Fraction(literal))
