"""From canonical scopes to `algebra.scope` ops: the inverse of canonical_body.py.

One scope becomes one op, except for what one op cannot hold: a reduction inside a function, or
beside other terms, becomes a scope of its own. Terms with different sums share the iterators of one
op. A term without a sum of its own is taken once, at position 0, by a guard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from .canonical_body import COMPARISONS, INTEGER
from .canonical_scope import (
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
    substitute,
)
from .index import Index, iterators
from .scalars import Call, Cast, Const
from .scalars import Expr as Scalar
from .scalars import Read as ScalarRead
from .scope_builder import ScopeBuilder
from .scope_builder import Source as Operand
from .types import element_of, element_types, is_bool, is_float, tensor
from .wrapping import CAST, WRAP


def to_ops(scope: Scope, build: ScopeBuilder, value_of: Callable[[Source], SSAValue]) -> Operand:
    """Add the ops of a scope; `value_of` maps its sources to values."""
    return _Writer(build, value_of, scope.element).scope(scope.expr, scope.shape, scope.element)


@dataclass
class _Writer:
    build: ScopeBuilder
    value_of: Callable[[Source], SSAValue]
    element: Attribute
    ones: dict[tuple[int, Attribute], Operand] = field(
        default_factory=dict[tuple[int, Attribute], Operand]
    )

    def scope(self, expr: Expr, shape: Extents, element: Attribute) -> Operand:
        """The op that computes an expression at every point of the shape."""
        only = expr.terms[0] if len(expr.terms) == 1 else None
        alone = only is not None and only.coefficient == 1 and not only.sums
        inner = only.factors[0] if alone and only is not None and len(only.factors) == 1 else None
        kind, sums, body = "sum", _shared_sums(expr), expr
        if isinstance(inner, Reduce):
            kind, sums, body = inner.kind, inner.sums, inner.arg
            kind = {"or": "max", "raw": "sum"}.get(kind, kind)
        work = _working(body, element)
        wide = shape + sums
        value = (
            self._value(body, wide, work) if kind != "sum" else self._total(body, shape, sums, work)
        )
        if work != element:
            value = Cast(element, value)
        return self.build.scope(tensor(shape, element), value, sums, kind)

    def _total(self, expr: Expr, shape: Extents, sums: Extents, work: Attribute) -> Scalar:
        """All terms, with their sums mapped to the shared iterators."""
        total: Scalar | None = None
        for term in expr.terms:
            positions = _positions(term.sums, sums)
            images = [*iterators(len(shape)), *(Index.iterator(len(shape) + k) for k in positions)]
            wide = shape + sums
            alone = Expr((Term(term.coefficient, (), term.factors),))
            value = self._value(substitute(alone, images, wide), wide, work)
            for k in range(len(sums)):
                if k not in positions:
                    first = self._guard(Guard(Index.iterator(len(shape) + k), 1), work)
                    value = Call("mul", (value, first))
            total = value if total is None else Call("add", (total, value))
        return _literal(Fraction(0), work) if total is None else total

    def _value(self, expr: Expr, extents: Extents, work: Attribute) -> Scalar:
        """An expression without sums, in the working element type."""
        total: Scalar | None = None
        for term in expr.terms:
            if term.sums:
                value = self._own_scope(Expr((term,)), extents, work)
            else:
                value = self._product(term, extents, work)
            total = value if total is None else Call("add", (total, value))
        return _literal(Fraction(0), work) if total is None else total

    def _product(self, term: Term, extents: Extents, work: Attribute) -> Scalar:
        value: Scalar | None = None
        for f in term.factors:
            one = self._factor(f, extents, work)
            value = one if value is None else Call("mul", (value, one))
        if value is None:
            return _literal(term.coefficient, work)
        if term.coefficient == 1:
            return value
        return Call("mul", (value, _literal(term.coefficient, work)))

    def _factor(self, f: Factor, extents: Extents, work: Attribute) -> Scalar:
        match f:
            case Read(source, index, outside):
                value = ScalarRead(self.value_of(source), index, outside)
                own = element_of(value.source)
                return value if own == work else Cast(work, value)
            case Guard():
                return self._guard(f, work)
            case Symbol(value):
                return Const(float(value))
            case Apply(function, args, _):
                return self._call(function, args, extents, work)
            case _:
                return self._own_scope(Expr((Term(Fraction(1), (), (f,)),)), extents, work)

    def _guard(self, guard: Guard, work: Attribute) -> Scalar:
        key = (guard.extent, work)
        if key not in self.ones:
            self.ones[key] = self.build.ones((guard.extent,), work)
        return self.ones[key][guard.index]

    def _call(
        self, function: str, args: Sequence[Expr], extents: Extents, work: Attribute
    ) -> Scalar:
        inner = _working_all(args, work)
        values = [self._value(a, extents, inner) for a in args]
        if function == "recip":
            return Call("div", (_literal(Fraction(1), work), values[0]))
        if (target := _target(function)) is not None:
            return _cast(Cast(target, values[0]), target, work)
        name = function.removeprefix("raw.")
        name = name[1:] if name[:1] == "i" and name[1:] in INTEGER else name
        value: Scalar = Call(name, (values[0],)) if len(values) == 1 else values[0]
        for other in values[1:]:
            value = Call(name, (value, other))
        return _cast(value, _BOOL if name in COMPARISONS else inner, work)

    def _own_scope(self, expr: Expr, extents: Extents, work: Attribute) -> Scalar:
        """Compute an expression in a scope over the iterators it uses, and read that scope."""
        own = expr.terms[0].sums
        used = [k for k in range(len(extents)) if k in expr.iterators]
        assert not own or all(t.sums == own for t in expr.terms)
        images = [Index(0)] * len(extents)
        for position, k in enumerate(used):
            images[k] = Index.iterator(position)
        shape = tuple(extents[k] for k in used)
        made = self.scope(substitute(expr, images, shape), shape, work)
        return made[[Index.iterator(k) for k in used]]


def _shared_sums(expr: Expr) -> Extents:
    """The smallest list of sums that contains those of every term, in order."""
    shared: list[int] = []
    for term in expr.terms:
        for n in set(term.sums):
            missing = term.sums.count(n) - shared.count(n)
            shared += [n] * max(0, missing)
    longest = max((t.sums for t in expr.terms), key=len, default=())
    return longest if sorted(longest) == sorted(shared) else tuple(sorted(shared))


def _positions(own: Extents, shared: Extents) -> list[int]:
    """For each sum the position of a shared iterator with its extent."""
    free = list(range(len(shared)))
    found: list[int] = []
    for n in own:
        position = next(k for k in free if shared[k] == n)
        free.remove(position)
        found.append(position)
    return found


def _elements(expr: Expr) -> list[Attribute]:
    found: list[Attribute] = []
    for f in (f for t in expr.terms for f in t.factors):
        if isinstance(f, Read):
            found.append(f.source.element)
        elif isinstance(f, Apply):
            found.append(_BOOL if f.function in COMPARISONS else _result_of(f))
        elif isinstance(f, Reduce):
            found += _elements(f.arg)
    return found


def _result_of(f: Apply) -> Attribute:
    inner = [e for a in f.args for e in _elements(a)]
    target = _target(f.function)
    return target if target is not None else inner[0] if inner else f32


def _target(function: str) -> Attribute | None:
    """The result type of a conversion or a wrapping."""
    name = function.removeprefix(CAST).removeprefix(WRAP)
    return None if name == function else next(e for e in _ELEMENTS if str(e) == name)


def _working(expr: Expr, element: Attribute) -> Attribute:
    """The type to compute an expression in: its own, or one that holds its operands."""
    return _working_all([expr], element)


def _working_all(exprs: Sequence[Expr], element: Attribute) -> Attribute:
    found = list(dict.fromkeys(e for expr in exprs for e in _elements(expr)))
    if len(found) == 1 and not is_bool(found[0]):
        return found[0]
    if not found:
        return f32 if is_bool(element) else element
    floats = [e for e in (*found, element) if is_float(e)]
    numbers = [e for e in (*found, element) if not is_bool(e)]
    return floats[0] if floats else numbers[0] if numbers else f32


def _cast(value: Scalar, source: Attribute, target: Attribute) -> Scalar:
    return value if source == target else Cast(target, value)


def _literal(value: Fraction, element: Attribute) -> Scalar:
    if not is_float(element):
        return Const(int(value))
    if Fraction(float(value)) == value:
        return Const(float(value))
    return Call("div", (Const(float(value.numerator)), Const(float(value.denominator))))


_ELEMENTS = element_types()
_BOOL = next(e for e in _ELEMENTS if is_bool(e))
