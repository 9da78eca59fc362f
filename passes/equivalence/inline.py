"""One expression for a whole sub-program: open all scopes down to the values at a cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...dialects.canonical_scope import (
    Apply,
    Expr,
    Extents,
    Factor,
    Guard,
    Read,
    Reduce,
    Scope,
    Source,
    add,
    apply,
    bind,
    constant,
    factor,
    leaf,
    multiply,
    reduce,
    scale,
    substitute,
)
from ...dialects.index import Index
from .evaluator import dependency_order

# Before the token of a source that a leaf stands for.
AT_THE_CUT = "cut "
# Limits of an expression's size: terms, factors at all levels, nesting of functions.
MAX_TERMS = 256
MAX_FACTORS = 768
MAX_DEPTH = 8
# Limits for opening scopes at their reads: nesting, and total number.
MAX_NESTED, MAX_OPENED = 64, 4096


class TooManyTermsError(Exception):
    """Distribution made too many terms."""


class Inliner:
    """Expressions of scopes over values at the cut (tokens) and leaves, memoised.

    `check` is called regularly, and raises to stop.
    """

    def __init__(self, cut: frozenset[str] = frozenset(), check: Callable[[], None] = lambda: None):
        self.cut = cut
        self.check = check
        self.memo: dict[str, Expr] = {}

    def inline_scope(self, source: Scope) -> Expr:
        """The expression of a scope. Raises TooManyTermsError."""
        for needed in dependency_order(source, self.cut - {source.token}):
            if needed.token in self.memo or not isinstance(needed, Scope):
                continue
            if needed.token not in self.cut or needed is source:
                self.memo[needed.token] = self.expr(needed.expr, needed.shape)
        return self.memo[source.token]

    def expr(self, expr: Expr, extents: Extents) -> Expr:
        """The expression with its reads replaced."""
        total: list[Expr] = []
        count = 0
        for term in expr.terms:
            wide = extents + term.sums
            value = constant(term.coefficient)
            for f in term.factors:
                value = multiply(value, self._factor(f, wide), wide)
                self._check(value)
            total.append(bind(value, extents, term.sums) if term.sums else value)
            count += len(total[-1].terms)
            if count > MAX_TERMS:
                raise TooManyTermsError
        return add(*total)

    def _check(self, expr: Expr) -> None:
        self.check()
        factors, depth = expr.size
        if len(expr.terms) > MAX_TERMS or factors > MAX_FACTORS or depth > MAX_DEPTH:
            raise TooManyTermsError

    def _factor(self, made: Factor, extents: Extents) -> Expr:
        match made:
            case Read(source, index, outside) if source.token in self.cut:
                given = leaf(f"{AT_THE_CUT}{source.token}", source.shape, source.element)
                return factor(Read(given, index, outside), extents)
            case Read(source, index, outside) if outside == 0.0 and self._known(source):
                return self._read(source, index, extents)
            case Apply(function, args, depth):
                inner = [self.expr(a, extents[:depth]) for a in args]
                return apply(function, inner, extents)
            case Reduce(kind, sums, arg, depth):
                inner = self.expr(arg, extents[:depth] + sums)
                return reduce(kind, sums, inner, extents[:depth])
            case _:
                pass
        return factor(made, extents)

    def _known(self, source: Source) -> bool:
        return source.token in self.memo

    def _read(self, source: Source, index: Sequence[Index], extents: Extents) -> Expr:
        guards = constant(1)
        for e, size in zip(index, source.shape, strict=True):
            guards = multiply(guards, factor(Guard(e, size), extents), extents)
        value = self._at(source, index, extents)
        constant_guard = guards.constant
        if constant_guard is not None:
            return scale(value, constant_guard)
        return multiply(guards, value, extents)

    def _at(self, source: Source, index: Sequence[Index], extents: Extents) -> Expr:
        return substitute(self.memo[source.token], index, extents)


class NarrowInliner(Inliner):
    """Opens a scope where it is read, and only as far as it is read there.

    One part of a concat does not need the inputs of the others, however many there are: a read
    of one part decides all guards before anything is opened. A scope read in several ways is
    opened several times, so this is for expressions that are too large otherwise.
    """

    def __init__(self, cut: frozenset[str] = frozenset(), check: Callable[[], None] = lambda: None):
        super().__init__(cut, check)
        self.opened: dict[tuple[str, Extents], Expr] = {}
        self.nested = 0

    def inline_scope(self, source: Scope) -> Expr:
        """The expression of a scope. Raises TooManyTermsError."""
        return self.expr(source.expr, source.shape)

    def _known(self, source: Source) -> bool:
        return isinstance(source, Scope)

    def _at(self, source: Source, index: Sequence[Index], extents: Extents) -> Expr:
        assert isinstance(source, Scope)
        given = substitute(source.expr, index, extents)
        key = (given.token, extents)
        if key not in self.opened:
            if len(self.opened) >= MAX_OPENED or self.nested >= MAX_NESTED:
                raise TooManyTermsError
            self.nested += 1
            self.opened[key] = self.expr(given, extents)
            self.nested -= 1
        return self.opened[key]
