"""Named identities of real functions, which may be assumed when plain equality fails.

They hold for real numbers where both sides are defined, without rounding, overflow and NaN. A
verdict lists those it used. Rewriting goes in one direction, from the inside out, so it ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ...dialects.canonical_scope import (
    ONE,
    Apply,
    Expr,
    Extents,
    Factor,
    Leaf,
    Read,
    Reduce,
    Scope,
    Source,
    Symbol,
    Term,
    add,
    apply,
    bind,
    collect,
    constant,
    expand,
    factor,
    multiply,
    normal,
    numbers,
    reduce,
    scale,
    single_factor,
)
from ...dialects.index import Index, iterators
from .cancellation import NAME as CANCELLING
from .cancellation import needs_cancelling
from .evaluator import sources_of
from .inline import Inliner, TooManyTermsError
from .prove import Proof, Prover

STATEMENTS: dict[str, str] = {
    "tanh-by-exp": "tanh(x) = 1 - 2 / (1 + exp(2 x))",
    "expm1-by-exp": "expm1(x) = exp(x) - 1",
    "logistic-symmetry": "1 / (1 + exp(x)) = 1 - 1 / (1 + exp(-x))",
    "reciprocal-of-product": "1 / (a b) = (1 / a) (1 / b), 1 / (1 / a) = a",
    "cancel": "a / a = 1",
    "exp-of-sum": "exp(a + b) = exp(a) exp(b), exp(-a) = 1 / exp(a)",
    "odd-function": "f(-x) = -f(x) for erf, sin, tan, asin, atan, sinh, asinh, atanh",
    "even-function": "f(-x) = f(x) for abs, cos, cosh",
    "power-of-half": "pow(x, 1/2) = sqrt(x), pow(x, -1/2) = 1 / sqrt(x)",
    "square-of-root": "sqrt(x) sqrt(x) = x",
    "infinite-mask": "x + inf = inf and x - inf = -inf for finite x",
    "rounded-literal": "a literal that is a rational p/q or sqrt(p/q) rounded stands for it",
}
_ODD = frozenset({"erf", "sin", "tan", "asin", "atan", "sinh", "asinh", "atanh"})
_EVEN = frozenset({"abs", "cos", "cosh"})
# Rationals that a rounded literal may represent.
_MAX_DENOMINATOR = 4096
_MOST_DENOMINATOR_32 = 256  # so few that a float32 is hardly one of them by chance
_MAX_RADICAND = 64


def prove_up_to_functions(prover: Prover, a: Source, b: Source, cut: Iterable[str]) -> Proof:
    """Compare two scopes after rewriting both by the identities."""
    cut = frozenset(cut)
    proof = _rewritten(prover, a, b, cut)

    def proves(first: Source, second: Source, cut: frozenset[str]) -> bool:
        return _rewritten(prover, first, second, cut).equal is True

    if proof.equal and needs_cancelling(a, b, cut, proves):
        return replace(proof, assumptions=(*proof.assumptions, CANCELLING))
    return proof


def _rewritten(prover: Prover, a: Source, b: Source, cut: frozenset[str]) -> Proof:
    if not isinstance(a, Scope) or not isinstance(b, Scope):
        return Proof(None)
    try:
        inliner = Inliner(cut - {a.token, b.token}, prover.check)
        rewriter = Rewriter()
        first = rewriter.expr(inliner.inline_scope(a), a.shape)
        second = rewriter.expr(inliner.inline_scope(b), b.shape)
    except TooManyTermsError:
        return Proof(None)
    if _read_apart(first, second):
        return Proof(None)
    proof = prover.expressions(first, second, a.shape)
    return replace(proof, assumptions=tuple(sorted(rewriter.used)))


def _read_apart(a: Expr, b: Expr) -> bool:
    """Whether each of two expressions reads a tensor of any values that the other does not.

    Written out, both would be polynomials in variables of their own: that takes long, and they are
    not equal unless all of these cancel.
    """
    ours, theirs = ({s.token for s in sources_of(e) if not _is_known(s)} for e in (a, b))
    return bool(ours - theirs and theirs - ours)


def _is_known(source: Source) -> bool:
    return isinstance(source, Leaf) and source.data is not None


@dataclass
class Rewriter:
    """Rewrite expressions; `used` collects the names of the applied identities."""

    used: set[str] = field(default_factory=set[str])

    def expr(self, expr: Expr, extents: Extents) -> Expr:
        """The normal form of an expression under the identities."""
        total: list[Expr] = []
        for term in expr.terms:
            wide = extents + term.sums
            value = self._literal(term.coefficient, wide)
            for f in term.factors:
                value = multiply(value, self._factor(f, wide), wide)
            value = self._products(value, wide)
            total.append(bind(value, extents, term.sums) if term.sums else value)
            if sum(len(e.terms) for e in total) > 256:
                raise TooManyTermsError
        return self._masked(add(*total), extents)

    def _factor(self, f: Factor, extents: Extents) -> Expr:
        match f:
            case Apply(function, args, depth):
                inner = [self.expr(a, extents[:depth]) for a in args]
                return self.call(function, inner, extents)
            case Read(source, index, outside) if isinstance(source, Leaf) and source.data:
                return factor(Read(self._simple(source, source.data), index, outside), extents)
            case Reduce(kind, sums, arg, depth):
                return reduce(kind, sums, self.expr(arg, extents[:depth] + sums), extents[:depth])
            case _:
                return factor(f, extents)

    def call(self, function: str, args: Sequence[Expr], extents: Extents) -> Expr:
        """A call with rewritten arguments."""
        rule = _RULES.get(function)
        found = rule(self, args, extents) if rule is not None else None
        return apply(function, args, extents) if found is None else found

    # --- one rule a function ---

    def tanh(self, args: Sequence[Expr], extents: Extents) -> Expr:
        self.used.add("tanh-by-exp")
        exp = self.call("exp", [scale(args[0], 2)], extents)
        quotient = self.call("recip", [add(constant(1), exp)], extents)
        return add(constant(1), scale(quotient, -2))

    def expm1(self, args: Sequence[Expr], extents: Extents) -> Expr:
        self.used.add("expm1-by-exp")
        return add(self.call("exp", args, extents), constant(-1))

    def exp(self, args: Sequence[Expr], extents: Extents) -> Expr | None:
        """A product of exponentials of positive multiples, one for each term."""
        value = constant(1)
        if len(args[0].terms) == 1 and args[0].terms[0].coefficient > 0:
            return None
        for term in args[0].terms:
            self.used.add("exp-of-sum")
            alone = Expr((Term(abs(term.coefficient), term.sums, term.factors),))
            one = apply("exp", [alone], extents)
            one = one if term.coefficient > 0 else self.call("recip", [one], extents)
            value = multiply(value, one, extents)
        return value

    def recip(self, args: Sequence[Expr], extents: Extents) -> Expr | None:
        arg = args[0]
        if len(arg.terms) != 1:
            return self._recip_of_sum(arg, extents)
        term = arg.terms[0]
        wide = extents + term.sums
        outside = [f for f in term.factors if all(k < len(extents) for k in f.iterators)]
        inside = tuple(f for f in term.factors if f not in outside)
        images = [*iterators(len(extents)), *(Index(0) for _ in term.sums)]
        if term.coefficient == 1 and (len(outside) + (1 if inside else 0)) <= 1:
            only = outside[0] if outside else None
            if not isinstance(only, Apply) or only.function != "recip":
                return None
            self.used.add("reciprocal-of-product")
            return only.args[0]
        self.used.add("reciprocal-of-product")
        value = constant(1 / term.coefficient)
        for f in outside:
            alone = collect(
                t for p in expand(ONE, (f,), images, extents) for t in normal(p, extents)
            )
            value = multiply(value, self.call("recip", [alone], extents), extents)
        if inside:
            rest = bind(_product(inside, wide), extents, term.sums)
            value = multiply(value, apply("recip", [rest], extents), extents)
        return value

    def _recip_of_sum(self, arg: Expr, extents: Extents) -> Expr | None:
        if not arg.terms:
            return None
        if (exponent := _one_plus_exp(arg)) is not None:
            return self._logistic(exponent, extents)
        first = arg.terms[0].coefficient
        if first == 1:
            return None
        self.used.add("reciprocal-of-product")
        return scale(self.call("recip", [scale(arg, 1 / first)], extents), 1 / first)

    def _logistic(self, exponential: Factor, extents: Extents) -> Expr | None:
        """1 / (1 + 1 / exp(x)) = 1 - 1 / (1 + exp(x))."""
        if not isinstance(exponential, Apply) or exponential.function != "recip":
            return None
        self.used.add("logistic-symmetry")
        positive = apply("recip", [add(constant(1), exponential.args[0])], extents)
        return add(constant(1), scale(positive, -1))

    def odd(self, function: str, args: Sequence[Expr], extents: Extents) -> Expr | None:
        if not args[0].terms or args[0].terms[0].coefficient > 0:
            return None
        even = function in _EVEN
        self.used.add("even-function" if even else "odd-function")
        return scale(apply(function, [scale(args[0], -1)], extents), 1 if even else -1)

    def power(self, args: Sequence[Expr], extents: Extents) -> Expr | None:
        exponent = args[1].constant
        if exponent not in (Fraction(1, 2), Fraction(-1, 2)):
            return None
        self.used.add("power-of-half")
        root = apply("sqrt", args[:1], extents)
        return (
            root if exponent is not None and exponent > 0 else self.call("recip", [root], extents)
        )

    def _masked(self, total: Expr, extents: Extents) -> Expr:
        """A sum with a choice that has an infinite side: a choice between two sums."""
        for term in total.terms:
            f = term.factors[0] if len(term.factors) == 1 and not term.sums else None
            if not isinstance(f, Apply) or f.function != "raw.select" or term.coefficient != 1:
                continue
            rest = Expr(tuple(t for t in total.terms if t is not term))
            if not rest.terms or rest.symbolic:
                continue
            self.used.add("infinite-mask")
            condition, *sides = f.args
            sums = [s if _is_infinite(s) else self._masked(add(rest, s), extents) for s in sides]
            return self.call("raw.select", [condition, *sums], extents)
        return total

    def choice(self, args: Sequence[Expr], extents: Extents) -> Expr | None:
        """A choice, with its condition or the opposite, in one canonical spelling."""
        condition, then, otherwise = args
        opposite = add(constant(1), scale(condition, -1))
        if opposite.token < condition.token:
            return apply("raw.select", [opposite, otherwise, then], extents)
        return None

    # --- products and literals ---

    def _products(self, value: Expr, extents: Extents) -> Expr:
        """Cancel a / a and join sqrt(x) sqrt(x) in each term."""
        total: list[Expr] = []
        for term in value.terms:
            left, made = self._cancelled(list(term.factors), extents + term.sums)
            if len(left) == len(term.factors):
                total.append(Expr((term,)))
                continue
            product = multiply(_product(left, extents + term.sums), made, extents + term.sums)
            product = scale(product, term.coefficient)
            total.append(bind(product, extents, term.sums) if term.sums else product)
        return add(*total)

    def _cancelled(self, factors: list[Factor], extents: Extents) -> tuple[list[Factor], Expr]:
        made = constant(1)
        changed = True
        while changed:
            changed = False
            by_token = {f.token: k for k, f in enumerate(factors)}
            for k, f in enumerate(factors):
                other = by_token.get(_inverse(f))
                if other is not None and other != k:
                    self.used.add("cancel")
                    factors = [g for n, g in enumerate(factors) if n not in (k, other)]
                    changed = True
                    break
                twin = next(
                    (n for n in range(k + 1, len(factors)) if factors[n].token == f.token), None
                )
                if twin is not None and (root := _root(f)) is not None:
                    self.used.add("square-of-root")
                    made = multiply(made, self._squared(root, f, extents), extents)
                    factors = [g for n, g in enumerate(factors) if n not in (k, twin)]
                    changed = True
                    break
        return factors, made

    def _squared(self, root: Expr, f: Factor, extents: Extents) -> Expr:
        assert isinstance(f, Apply)
        return root if f.function == "sqrt" else self.call("recip", [root], extents)

    def _simple(self, source: Leaf, data: Sequence[Fraction]) -> Leaf:
        """A literal tensor with its rounded rationals made exact."""
        found = [nearest_simple(value) for value in data]
        if not any(f is not None and f[1] == 1 for f in found):
            return source
        self.used.add("rounded-literal")
        exact = tuple(
            f[0] if f is not None and f[1] == 1 else v for f, v in zip(found, data, strict=True)
        )
        return numbers(exact, source.shape, source.element, source.label)

    def _literal(self, value: Fraction, extents: Extents) -> Expr:
        found = nearest_simple(value)
        if found is None:
            return constant(value)
        self.used.add("rounded-literal")
        rational, radicand = found
        if radicand == 1:
            return constant(rational)
        return scale(apply("sqrt", [constant(radicand)], extents), rational)


Rule = Callable[[Rewriter, Sequence[Expr], Extents], "Expr | None"]


def _symmetric(function: str) -> Rule:
    return lambda rewriter, args, extents: rewriter.odd(function, args, extents)


_RULES: dict[str, Rule] = {
    "tanh": Rewriter.tanh,
    "exp": Rewriter.exp,
    "expm1": Rewriter.expm1,
    "recip": Rewriter.recip,
    "pow": Rewriter.power,
    "raw.select": Rewriter.choice,
    **{name: _symmetric(name) for name in sorted(_ODD | _EVEN)},
}


def _product(factors: Iterable[Factor], extents: Extents) -> Expr:
    value = constant(1)
    for f in factors:
        value = multiply(value, factor(f, extents), extents)
    return value


def _is_infinite(value: Expr) -> bool:
    inner = single_factor(value)
    return isinstance(inner, Symbol) and inner.value != "nan"


def _inverse(f: Factor) -> str:
    """The token of f's reciprocal; empty if there is none."""
    if not isinstance(f, Apply) or f.function != "recip":
        return ""
    inner = single_factor(f.args[0])
    return "" if inner is None else inner.token


def _root(f: Factor) -> Expr | None:
    """x, if the factor is sqrt(x) or its reciprocal."""
    if isinstance(f, Apply) and f.function == "recip":
        inner = single_factor(f.args[0])
        return _root(inner) if isinstance(inner, Apply) and inner.function == "sqrt" else None
    return f.args[0] if isinstance(f, Apply) and f.function == "sqrt" else None


def _one_plus_exp(arg: Expr) -> Factor | None:
    """e, if the sum is 1 + e for one call e."""
    if len(arg.terms) != 2 or any(t.coefficient != 1 or t.sums for t in arg.terms):
        return None
    counts = sorted(arg.terms, key=lambda t: len(t.factors))
    if counts[0].factors or len(counts[1].factors) != 1:
        return None
    return counts[1].factors[0]


def nearest_simple(value: Fraction) -> tuple[Fraction, Fraction] | None:
    """(q, r) such that a rounded literal represents q sqrt(r); None if it is exact.

    The literal, or its reciprocal that division made, must be the nearest float32 or float64.
    """
    if value.denominator <= _MAX_DENOMINATOR or value == 0:
        return None
    size = abs(value)
    for x, turn in ((size, False), (1 / size, True)):
        for kind in (np.float64, np.float32):
            if Fraction(float(kind(float(x)))) != x:
                continue
            found = _radical(x, kind) or _rational(x, kind)
            if found is not None:
                rational, radicand = found
                if turn:
                    rational = ONE / (rational * radicand)
                return (rational if value > 0 else -rational), radicand
    return None


def _rational(x: Fraction, kind: type[np.floating]) -> tuple[Fraction, Fraction] | None:
    most = _MAX_DENOMINATOR if kind is np.float64 else _MOST_DENOMINATOR_32
    simple = x.limit_denominator(most)
    same = float(kind(simple.numerator / simple.denominator)) == float(x)
    return (simple, ONE) if same and simple != x else None


def _radical(x: Fraction, kind: type[np.floating]) -> tuple[Fraction, Fraction] | None:
    square = (x * x).limit_denominator(_MAX_RADICAND)
    if square == 0 or square.numerator > _MAX_RADICAND:
        return None
    root = math.sqrt(square.numerator / square.denominator)
    near = abs(root - float(x)) <= 2 * float(np.spacing(kind(root)))
    if not near:
        return None
    product = square.numerator * square.denominator
    whole = max(k for k in range(1, math.isqrt(product) + 1) if product % (k * k) == 0)
    return Fraction(whole, square.denominator), Fraction(product // (whole * whole))
