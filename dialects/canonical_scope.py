"""Canonical scopes: the interned value form of `algebra.scope`.

A scope's value at the traversal point x is an expression over the iterators x,

    expr = sum over terms of coefficient * (sum over s of product of factors)

with a rational coefficient and, for each term, its own summation iterators s. A factor is a read
`T[index]`, a guard `[0 <= index < extent]`, a function applied to expressions, or a reduction other
than a sum. Iterators are numbered: the traversals first, then those of each enclosing sum.

One scope has one form. Indices are normal (index.py). Iterators of extent 1 are 0. Sums over an
unread iterator are coefficients. A guard that pins a sum iterator is substituted. Sums are ordered
by how they are read (ties by the least result). Operands and terms are sorted, like terms are
merged, and terms that are always out of bounds vanish. Traversals keep their positions: swapping
two gives another scope. Different forms may still be equal; equal forms are.

Arithmetic is exact: coefficients are the exact rationals of the literals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from xdsl.ir import Attribute

from .canonical_types import (
    ONE,
    ZERO,
    Apply,
    Expr,
    Extents,
    Factor,
    Guard,
    Leaf,
    Product,
    Read,
    Reduce,
    Scope,
    Source,
    Symbol,
    Term,
    digest,
    leaf,
    numbers,
    render,
    render_factor,
    render_index,
    scope,
)
from .extremes import between, flat, single_factor
from .index import Index, iterators, normalise, range_of
from .scalar_laws import NOTHING_AFTER, OF_A_MULTISET, OF_A_SET, simplify_call, value_at
from .wrapping import WRAP, bits_of, in_type, reduced, stays_inside, type_named, unwrapped

# With more orders of tied sums than this, their neighbours decide. If ties are left, the first
# order is taken: sound, but not canonical.
MAX_ORDERS = 5040
# A product of sums with more terms than this stays a call of "mul".
MAX_TERMS = 1024

# --- building -----------------------------------------------------------------------------------


def constant(value: Fraction | int) -> Expr:
    """The constant expression."""
    return Expr((Term(Fraction(value), (), ()),)) if value != 0 else ZERO


def collect(terms: Iterable[Term]) -> Expr:
    """Add terms: like terms are merged, zeros vanish."""
    found: dict[str, Term] = {}
    for term in terms:
        other = found.get(term.body)
        if other is not None:
            term = Term(other.coefficient + term.coefficient, term.sums, term.factors)
        found[term.body] = term
    kept = [found[name] for name in sorted(found) if found[name].coefficient != 0]
    return Expr(tuple(kept))


def add(*exprs: Expr) -> Expr:
    """The sum."""
    return collect(term for expr in exprs for term in expr.terms)


def scale(expr: Expr, by: Fraction | int) -> Expr:
    """The product with a number."""
    if by == 0:
        return ZERO
    return Expr(tuple(Term(t.coefficient * by, t.sums, t.factors) for t in expr.terms))


def multiply(left: Expr, right: Expr, extents: Extents) -> Expr:
    """The product, distributed; both are over iterators of the extents."""
    if (c := left.constant) is not None:
        return scale(right, c)
    if (c := right.constant) is not None:
        return scale(left, c)
    if len(left.terms) * len(right.terms) > MAX_TERMS:
        args = sorted((left, right), key=lambda e: e.token)
        return Expr((Term(ONE, (), (Apply("mul", tuple(args), len(extents)),)),))
    pairs = itertools.product(products(left), products(right))
    return collect(t for a, b in pairs for t in normal(_join(a, b, extents), extents))


def factor(made: Factor, extents: Extents) -> Expr:
    """The expression with this single factor."""
    return collect(normal((ONE, (), (made,)), extents))


def bind(expr: Expr, extents: Extents, sums: Extents) -> Expr:
    """Sum an expression over its last iterators, which run over `sums`."""
    bound = [(t.coefficient, sums + t.sums, t.factors) for t in expr.terms]
    return collect(term for part in bound for term in normal(part, extents))


def substitute(expr: Expr, images: Sequence[Index], extents: Extents) -> Expr:
    """Replace iterator k by `images[k]`, an index over iterators of the new extents."""
    found: list[Term] = []
    for t in expr.terms:
        wide = extents + t.sums
        inner = [*images, *iterators(len(t.sums), len(extents))]
        for c, sums, factors in expand(t.coefficient, t.factors, inner, wide):
            found += _finish(c, t.sums + sums, factors, extents)
    return collect(found)


def apply(function: str, args: Sequence[Expr], extents: Extents) -> Expr:
    """A function of expressions, simplified by the laws that hold exactly."""
    if function.startswith(WRAP):
        return _wrapped(function, args[0], extents)
    if (literal := _of_literal(function, args, extents)) is not None:
        return literal
    inner = single_factor(args[0]) if function in NOTHING_AFTER else None
    if isinstance(inner, Apply) and inner.function in NOTHING_AFTER[function]:
        return args[0]
    known = simplify_call(function, [(a.token, a.constant) for a in args])
    if isinstance(known, Fraction):
        return constant(known)
    kept = [constant(k) if isinstance(k, Fraction) else args[k] for k in known]
    if function in OF_A_SET:
        kept = flat(function, kept)
        if len(kept) == 1:
            return kept[0]
        if function == "max" and (found := between(kept)) is not None:
            low, high, rest = found
            inner = apply("max", [low, apply("min", rest, extents)], extents)
            return apply("min", [high, inner], extents)
    made = Apply(function, tuple(kept), len(extents))
    return Expr((Term(ONE, (), (made,)),))


def wrapped(expr: Expr, element: Attribute, extents: Extents) -> Expr:
    """The value of an integer type congruent to a polynomial (wrapping.py)."""
    return apply(f"{WRAP}{element}", [expr], extents)


def modulo(expr: Expr, bits: int, extents: Extents) -> Expr:
    """The normal form of a class modulo 2^bits: small coefficients, no inner wrapping."""
    while any(unwrapped(f, bits) is not None for t in expr.terms for f in t.factors):
        total: list[Expr] = []
        for t in expr.terms:
            wide = extents + t.sums
            value = constant(t.coefficient)
            for f in t.factors:
                inner = unwrapped(f, bits)
                value = multiply(value, factor(f, wide) if inner is None else inner, wide)
            total.append(bind(value, extents, t.sums) if t.sums else value)
        expr = add(*total)
    return reduced(expr, bits)


def _wrapped(function: str, arg: Expr, extents: Extents) -> Expr:
    element = type_named(function.removeprefix(WRAP))
    assert element is not None
    if arg.constant is not None:
        return constant(in_type(arg.constant, element))
    if stays_inside(arg, element, extents):
        return arg
    small = modulo(arg, bits_of(element), extents)
    if small.constant is not None or stays_inside(small, element, extents):
        return _wrapped(function, small, extents)
    return Expr((Term(ONE, (), (Apply(function, (small,), len(extents)),)),))


def _of_literal(function: str, args: Sequence[Expr], extents: Extents) -> Expr | None:
    """A function of literals and numbers is a literal, if its values are known."""
    reads = {a.token: f for a in args if isinstance(f := single_factor(a), Read)}
    fixed = [a.constant for a in args]
    if len(reads) != 1:
        return None
    ((token, read),) = reads.items()
    if any(n is None and a.token != token for n, a in zip(fixed, args, strict=True)):
        return None
    source = read.source
    if not isinstance(source, Leaf) or not source.data or not _stays_inside(read, extents):
        return None
    values = [value_at(function, [v if n is None else n for n in fixed]) for v in source.data]
    known = tuple(v for v in values if v is not None)
    if len(known) != len(values):
        return None
    made = numbers(known, source.shape, source.element, source.label)
    return factor(Read(made, read.index), extents)


def _stays_inside(read: Read, extents: Extents) -> bool:
    """Whether a read never leaves its source."""
    ranges = [range_of(e, extents) for e in read.index]
    return all(a >= 0 and b < n for (a, b), n in zip(ranges, read.source.shape, strict=True))


def reduce(kind: str, sums: Extents, arg: Expr, extents: Extents) -> Expr:
    """max, min or prod over the last iterators of `arg`, whose extents are `sums`."""
    if kind == "sum":
        return bind(arg, extents, sums)
    first, value = len(extents), arg.constant
    if value is not None:
        return constant(value ** math.prod(sums) if kind == "prod" else value)
    used, counts = arg.iterators, kind in OF_A_MULTISET
    kept = [k for k, n in enumerate(sums) if n != 1 and (counts or first + k in used)]
    extents_of = [sums[k] for k in kept]

    def text(names: Sequence[str]) -> str:
        every = [f"u{k}" for k in range(first + len(sums))]
        every[:first] = names[:first]
        for k, name in zip(kept, names[first:], strict=True):
            every[first + k] = name
        return render(arg, every)

    order = [kept[k] for k in _least_order(first, extents_of, text)]
    new = tuple(sums[k] for k in order)
    images = [*iterators(first), *(Index(0) for _ in sums)]
    for position, k in enumerate(order):
        images[first + k] = Index.iterator(first + position)
    arg = substitute(arg, images, extents + new)
    if not new:
        return arg
    return Expr((Term(ONE, (), (Reduce(kind, new, arg, first),)),))


def products(expr: Expr) -> list[Product]:
    """The terms as products, ready for further multiplication."""
    return [(t.coefficient, t.sums, t.factors) for t in expr.terms]


def _join(a: Product, b: Product, extents: Extents) -> Product:
    """Multiply two products over the extents; sums of `b` are numbered after those of `a`."""
    factors = b[2]
    if a[1] and b[1]:
        wide = extents + a[1] + b[1]
        shifted = iterators(len(b[1]), len(extents) + len(a[1]))
        images = [*iterators(len(extents)), *shifted]
        parts = expand(b[0], factors, images, wide)
        if not parts:
            return Fraction(0), (), ()
        assert len(parts) == 1 and not parts[0][1], "renaming iterators changes no structure"
        return a[0] * parts[0][0], a[1] + b[1], a[2] + parts[0][2]
    return a[0] * b[0], a[1] + b[1], a[2] + factors


# --- the normal form of a product ---------------------------------------------------------------


def normal(made: Product, extents: Extents) -> list[Term]:
    """The terms of a product over the extents."""
    coefficient, sums, factors = made
    if coefficient == 0 or 0 in extents:
        return []
    wide = extents + sums
    found: list[Term] = []
    for c, inner, parts in expand(coefficient, factors, iterators(len(wide)), wide):
        found += _finish(c, sums + inner, parts, extents)
    return found


def expand(
    coefficient: Fraction, factors: Iterable[Factor], images: Sequence[Index], extents: Extents
) -> list[Product]:
    """Map each factor (see `map_factor`) and multiply the results."""
    done: list[Product] = [(coefficient, (), ())]
    for f in factors:
        parts = map_factor(f, images, extents)
        if not parts:
            return []
        if len(parts) == 1 and not parts[0][1]:
            c, _, new = parts[0]
            done = [(a * c, sums, old + new) for a, sums, old in done]
        else:
            done = [_join(a, b, extents) for a in done for b in parts]
    return done


def map_factor(made: Factor, images: Sequence[Index], extents: Extents) -> list[Product]:
    """Replace iterators by their images and simplify; a list of products, empty for zero."""
    match made:
        case Read(source, index, outside):
            at = tuple(normal_index(e.substitute(images), extents) for e in index)
            return _read(source, at, outside, extents)
        case Guard(index, extent):
            form = guard_form(normal_index(index.substitute(images), extents), extent, extents)
            if form is None:
                return []
            return [(ONE, (), () if form is True else (Guard(*form),))]
        case Apply(function, args, depth):
            mapped = [substitute(a, images[:depth], extents) for a in args]
            return products(apply(function, mapped, extents))
        case Reduce(kind, sums, arg, depth):
            inner = [*images[:depth], *iterators(len(sums), len(extents))]
            arg = substitute(arg, inner, extents + sums)
            return products(reduce(kind, sums, arg, extents))
        case _:
            return [(ONE, (), (made,))]


@lru_cache(maxsize=1 << 15)
def normal_index(index: Index, extents: Extents) -> Index:
    """`normalise`, memoised."""
    return normalise(index, extents)


def _read(source: Source, at: tuple[Index, ...], outside: float, extents: Extents) -> list[Product]:
    inside = True
    for e, size in zip(at, source.shape, strict=True):
        low, high = range_of(e, extents)
        if high < 0 or low >= size:
            symbol = (Symbol(str(outside)),)
            return [] if outside == 0.0 else [(ONE, (), symbol)]
        inside = inside and low >= 0 and high < size
    if isinstance(source, Scope) and not source.expr.terms and (inside or outside == 0.0):
        return []
    return [(ONE, (), (Read(source, at, 0.0 if inside else outside),))]


def guard_form(
    index: Index, extent: int, extents: Extents
) -> tuple[Index, int] | Literal[True] | None:
    """The one spelling of 0 <= index < extent: True if always, None if never."""
    low, high = range_of(index, extents)
    if low >= 0 and high < extent:
        return True
    if high < 0 or low >= extent:
        return None
    if low >= 0:  # the upper side alone: 0 <= extent - 1 - index
        return _one_sided(extent - 1 - index, extents)
    if high < extent:
        return _one_sided(index, extents)
    return min((index, extent - 1 - index), key=_orientation), extent


def _orientation(index: Index) -> tuple[int, list[int], str]:
    """Choose between an index and its mirror image, independently of names."""
    return index.constant, sorted(c for _, c in index.terms), render_index(index, ())


def _one_sided(index: Index, extents: Extents) -> tuple[Index, int]:
    """The form of 0 <= index, divided by the common divisor of its coefficients."""
    common = math.gcd(*(c for _, c in index.terms))
    if common > 1:
        parts = tuple((atom, c // common) for atom, c in index.terms)
        index = Index(index.constant // common, parts)
    return index, range_of(index, extents)[1] + 1


def _finish(
    c: Fraction, sums: Extents, factors: tuple[Factor, ...], extents: Extents
) -> list[Term]:
    """The terms of a product with simplified factors."""
    if (pinned := _pinned(factors, sums, len(extents))) is not None:
        return _substitute_pinned(c, sums, factors, extents, *pinned)
    factors = _needed(factors, extents + sums)
    first = len(extents)
    used: set[int] = set()
    for f in factors:
        used |= f.iterators
    kept = [k for k in range(len(sums)) if first + k in used]
    for k, n in enumerate(sums):
        c = c if k in kept else c * n

    def text(names: Sequence[str]) -> str:
        every = [f"u{k}" for k in range(first + len(sums))]
        every[:first] = names[:first]
        for k, name in zip(kept, names[first:], strict=True):
            every[first + k] = name
        return "*".join(sorted(render_factor(f, every) for f in factors))

    order = [kept[k] for k in _least_order(first, [sums[k] for k in kept], text)]
    new = tuple(sums[k] for k in order)
    if order == list(range(len(sums))) and all(
        _depth(f) in (None, first + len(sums)) for f in factors
    ):
        return [Term(c, sums, tuple(sorted(factors, key=lambda f: f.token)))]
    images = [*iterators(first), *(Index(0) for _ in sums)]
    for position, k in enumerate(order):
        images[first + k] = Index.iterator(first + position)
    parts = expand(c, factors, images, extents + new)
    assert len(parts) <= 1 and all(not part[1] for part in parts), "renaming changes no structure"
    return [Term(c, new, tuple(sorted(fs, key=lambda f: f.token))) for c, _, fs in parts]


def _depth(made: Factor) -> int | None:
    return made.depth if isinstance(made, Apply | Reduce) else None


def _pinned(
    factors: Iterable[Factor], sums: Extents, first: int
) -> tuple[Guard, int, Index] | None:
    """A guard index == 0 that can be solved for a sum iterator, and the solution."""
    for f in factors:
        if not isinstance(f, Guard) or f.extent != 1:
            continue
        for k in range(len(sums)):
            sign = f.index.coefficient(first + k)
            rest = f.index - Index.iterator(first + k) * sign
            if sign in (1, -1) and first + k not in rest.iterators:
                return f, k, rest * -sign
    return None


def _substitute_pinned(
    c: Fraction,
    sums: Extents,
    factors: tuple[Factor, ...],
    extents: Extents,
    pin: Guard,
    k: int,
    solution: Index,
) -> list[Term]:
    """sum over i of [i == e] f(i) = [0 <= e < n] f(e)."""
    first, new = len(extents), sums[:k] + sums[k + 1 :]
    images = [*iterators(first + k), Index(0), *iterators(len(new) - k, first + k)]
    images[first + k] = solution.substitute(images)
    others = [f for f in factors if f is not pin]
    bound = Guard(Index.iterator(first + k), sums[k])
    found: list[Term] = []
    for coefficient, inner, parts in expand(c, [*others, bound], images, extents + new):
        found += _finish(coefficient, new + inner, parts, extents)
    return found


def _needed(factors: Iterable[Factor], extents: Extents) -> tuple[Factor, ...]:
    """Drop repeated guards, and guards that a read's zero outside implies."""
    kept = list(factors)
    if not any(isinstance(f, Guard) for f in kept):
        return tuple(kept)
    said: set[tuple[Index, int]] = set()
    for f in kept:
        if isinstance(f, Read) and f.outside == 0.0:
            for e, size in zip(f.index, f.source.shape, strict=True):
                said |= _sides(e, size, extents)
    needed: list[Factor] = []
    for f in kept:
        if isinstance(f, Guard):
            if (f.index, f.extent) in said:
                continue
            said.add((f.index, f.extent))
        needed.append(f)
    return tuple(needed)


def _sides(index: Index, size: int, extents: Extents) -> set[tuple[Index, int]]:
    low, high = range_of(index, extents)
    forms = [guard_form(index, size, extents)]
    forms.append(guard_form(index, max(high, 0) + 1, extents))
    forms.append(guard_form(size - 1 - index, max(size - 1 - low, 0) + 1, extents))
    return {form for form in forms if isinstance(form, tuple)}


def _least_order(
    first: int, sums: Sequence[int], text: Callable[[Sequence[str]], str]
) -> list[int]:
    """The canonical order of sum iterators: by extent and use, ties by the least text."""
    if len(sums) < 2:
        return list(range(len(sums)))
    outer = [f"i{k}" for k in range(first)]

    def signature(k: int) -> tuple[int, str]:
        if sums.count(sums[k]) == 1:
            return sums[k], ""
        names = [f"~{n}" for n in sums]
        names[k] = "@"
        return sums[k], text([*outer, *names])

    groups: dict[tuple[int, str], list[int]] = {}
    for k in range(len(sums)):
        groups.setdefault(signature(k), []).append(k)
    tied = [groups[s] for s in sorted(groups)]
    if _orders(tied) > MAX_ORDERS:
        tied = _refined(tied, lambda names: text([*outer, *names]))
    orders = _orders(tied)
    plain = [k for group in tied for k in group]
    if orders == 1 or orders > MAX_ORDERS:
        return plain

    def renamed(order: Sequence[int]) -> str:
        names = [""] * len(sums)
        for position, k in enumerate(order):
            names[k] = f"i{first + position}"
        return text([*outer, *names])

    every = itertools.product(*(itertools.permutations(group) for group in tied))
    return min(([k for group in choice for k in group] for choice in every), key=renamed)


def _orders(tied: Sequence[Sequence[int]]) -> int:
    return math.prod(math.factorial(len(group)) for group in tied)


def _refined(
    tied: Sequence[Sequence[int]], text: Callable[[Sequence[str]], str]
) -> list[list[int]]:
    """Refine groups of tied iterators by the groups in their factors, until nothing changes.

    This is colour refinement, as for graphs: in a chain of products, one end distinguishes all.
    """
    groups, before = [list(group) for group in tied], 0
    while before < len(groups) and _orders(groups) > 1:
        before = len(groups)
        names = {k: f"~{position}" for position, group in enumerate(groups) for k in group}
        found: dict[tuple[int, str], list[int]] = {}
        for position, group in enumerate(groups):
            for k in group:
                marked = [("@" if other == k else names[other]) for other in sorted(names)]
                found.setdefault((position, text(marked)), []).append(k)
        groups = [found[key] for key in sorted(found)]
    return groups


__all__ = [
    "ONE",
    "ZERO",
    "Apply",
    "Expr",
    "Extents",
    "Factor",
    "Guard",
    "Leaf",
    "Product",
    "Read",
    "Reduce",
    "Scope",
    "Source",
    "Symbol",
    "Term",
    "add",
    "apply",
    "bind",
    "collect",
    "constant",
    "digest",
    "expand",
    "factor",
    "guard_form",
    "leaf",
    "map_factor",
    "modulo",
    "multiply",
    "normal",
    "numbers",
    "products",
    "reduce",
    "render",
    "render_index",
    "scale",
    "scope",
    "single_factor",
    "substitute",
    "wrapped",
]
