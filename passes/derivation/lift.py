"""Convert between `algebra.scope` ops and the canonical scopes that rules work on."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import count

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from ...dialects import scalars
from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.canonical_body import from_op
from ...dialects.canonical_ops import to_ops
from ...dialects.canonical_scope import constant
from ...dialects.canonical_types import Guard, Leaf, Read, Scope, Source, leaf, scope
from ...dialects.graph import WeightOp
from ...dialects.program import main_of, printed_names, provenance, sanitise
from ...dialects.scope_builder import ScopeBuilder
from ...dialects.types import element_of, is_float, shape_of, tensor
from .body import Link, SumOfProducts
from .replace import scopes_of

# The provenance name of passes/partial's rule.
MUTATED = "mutate"
# Prefix of the identity of a leaf that is known before the program runs, in a positional lift.
_KNOWN = "constant "
# Suffix of the name of a derived scope.
_DERIVED = re.compile(r"(\.\d+)+$")


class Lift:
    """Canonical forms of values, and the values of canonical forms.

    A leaf is named after its value, so the same program has the same canonical forms (whose sums
    and factors are ordered by the names of their operands) in every pass.

    Args:
        module: the program.
        inside: whether to open an op's own expression; any other value is a leaf.
        constants: values known before the program runs.
        positional: number leaves in order of occurrence instead, so that equal ops have equal
            forms.
    """

    def __init__(
        self,
        module: ModuleOp,
        inside: Callable[[ScopeOp], bool] = lambda op: False,
        constants: Iterable[SSAValue] = (),
        *,
        positional: bool = False,
    ):
        self.inside = inside
        self.constants = frozenset(constants)
        self.names = None if positional else unique_names(module)
        self.sources: dict[SSAValue, Source] = {}
        self.values: dict[Source, SSAValue] = {}

    def source(self, value: SSAValue) -> Source:
        """The canonical form of a value."""
        if value not in self.sources:
            made = self._source(value)
            self.sources[value] = made
            self.values.setdefault(made, value)
        return self.sources[value]

    def _source(self, value: SSAValue) -> Source:
        owner = value.owner
        shape, element = shape_of(value), element_of(value)
        if isinstance(owner, OnesOp):
            return scope(shape, element, constant(1))
        if isinstance(owner, ScopeOp) and self.inside(owner):
            return from_op(owner, self.source)
        name = self.names[value] if self.names is not None else str(len(self.sources))
        kind = _KNOWN if self.names is None and value in self.constants else "value "
        return leaf(f"{kind}{name}", shape, element)

    def scope(self, op: ScopeOp) -> Scope:
        """The canonical form of an op, whose operands are leaves unless they are inside."""
        return from_op(op, self.source)

    def known(self) -> list[str]:
        """Tokens of the leaves that are known before the program runs."""
        return [s.token for s in self.known_leaves()]

    def known_leaves(self) -> list[Source]:
        """The leaves that are known before the program runs."""
        return [s for value, s in self.sources.items() if value in self.constants]


def body_of_op(op: ScopeOp, lift: Lift) -> SumOfProducts | None:
    """The op as one sum of products, its sums in its own order; None if it is not one."""
    element = element_of(op.result)
    if (op.summation and op.reduction.data != "sum") or not is_float(element):
        return None
    coefficient, factors = Fraction(1), list[Link]()
    for part in _product(op.expr()):
        match part:
            case scalars.Const(value) if not isinstance(value, bool) and math.isfinite(value):
                coefficient *= Fraction(value)
            case scalars.Read(value, index, outside) if outside == 0.0:
                if isinstance(value.owner, OnesOp):
                    pairs = zip(index, shape_of(value), strict=True)
                    factors += [Guard(e, n) for e, n in pairs]
                elif element_of(value) == element:
                    factors.append(Read(lift.source(value), tuple(index)))
                else:
                    return None
            case _:
                return None
    return SumOfProducts(op.traversal, op.summation, coefficient, tuple(factors), element)


def _product(expr: scalars.Expr) -> list[scalars.Expr]:
    match expr:
        case scalars.Call("mul", (left, right)):
            return [*_product(left), *_product(right)]
        case _:
            return [expr]


def write(
    root: Scope, values: dict[Source, SSAValue]
) -> tuple[list[Operation], SSAValue, list[ScopeOp]]:
    """The ops of a scope and of all it reads that have no value yet; new values are added.

    Returns the ops in order, the value of the root, and the new scopes, the root last.
    """
    build = ScopeBuilder()
    made: list[ScopeOp] = []
    for scope_ in reversed(scopes_of([root])):
        if scope_ in values:
            continue
        values[scope_] = to_ops(scope_, build, values.__getitem__).value
        owner = values[scope_].owner
        assert isinstance(owner, ScopeOp)
        made.append(owner)
    return build.ops, values[root], made


def scope_ops(module: ModuleOp) -> list[ScopeOp]:
    """Every scope of @main, in order."""
    return [op for op in main_of(module).body.block.ops if isinstance(op, ScopeOp)]


def unique_names(module: ModuleOp) -> dict[SSAValue, str]:
    """Names for all values of @main except guards: their own, numbered where not unique.

    Printing and parsing keep them, and so does inserting ops with new names.
    """
    block = main_of(module).body.block
    results = [r for op in block.ops if not isinstance(op, OnesOp) for r in op.results]
    seen: dict[str, int] = {}
    found: dict[SSAValue, str] = {}
    for value in (*block.args, *results):
        hint = value.name_hint or ""
        seen[hint] = seen.get(hint, -1) + 1
        found[value] = f"{hint}#{seen[hint]}"
    return found


def scope_names(module: ModuleOp) -> dict[ScopeOp, str]:
    """The printed names of scopes, without the %: each belongs to one scope."""
    ops = scope_ops(module)
    names = printed_names(module, [op.result for op in ops])
    return {op: names[op.result] for op in ops}


def name_apart(module: ModuleOp) -> None:
    """Give every scope a unique name that does not look like a derived one.

    A scope that has such a name keeps it; the others become `s0`, `s1`, ... in order.
    """
    block = main_of(module).body.block
    results = [r for op in block.ops for r in op.results]
    times = Counter(value.name_hint for value in (*block.args, *results))
    numbers = (f"s{number}" for number in count())
    for op in scope_ops(module):
        hint = op.result.name_hint
        if hint is None or times[hint] > 1 or _DERIVED.search(hint):
            op.result.name_hint = next(name for name in numbers if name not in times)


def family(op: ScopeOp) -> Callable[[ScopeOp], bool]:
    """Whether a scope was derived with this one: `y.0`, `y.0.1`, ... belong to `y`.

    Scopes of a mutant do not count: its views are permanent.
    """
    base = _base(op)

    def belongs(other: ScopeOp) -> bool:
        return other is not op and bool(base) and _base(other) == base and not _mutated(other)

    return belongs


def _mutated(op: ScopeOp) -> bool:
    return provenance(op)[-1:] == [MUTATED]


def _base(op: ScopeOp) -> str:
    return _DERIVED.sub("", op.result.name_hint or "")


def fresh_name(taken: set[str], base: str) -> str:
    """The first free name of `base.0`, `base.1`, ...; it is taken from now on."""
    number = 0
    while f"{base}.{number}" in taken:
        number += 1
    taken.add(f"{base}.{number}")
    return f"{base}.{number}"


def names_in(module: ModuleOp) -> set[str]:
    """The names of all values of @main."""
    block = main_of(module).body.block
    results: Sequence[SSAValue] = [r for op in block.ops for r in op.results]
    return {v.name_hint for v in (*block.args, *results) if v.name_hint is not None}


def leaves_of(*roots: Scope) -> list[Leaf]:
    """The leaves that scopes depend on, each once."""
    found: dict[Leaf, None] = {}
    for node in scopes_of(roots):
        for term in node.expr.terms:
            for f in term.factors:
                if isinstance(f, Read) and isinstance(f.source, Leaf):
                    found[f.source] = None
    return list(found)


def program_of_scope(root: Scope) -> ModuleOp:
    """A program that computes a scope from its leaves, which are its inputs, in order."""
    return program_of_scopes([root])


def program_of_scopes(
    roots: Sequence[Scope], known: Callable[[Leaf], bool] = lambda _: False
) -> ModuleOp:
    """A program that computes some scopes from their leaves, which are its inputs, in order.

    Args:
        known: for a leaf, whether it is a weight (w0, w1, ...) instead of an input.
    """
    leaves = leaves_of(*roots)
    given, weights = ([x for x in leaves if known(x) == whether] for whether in (False, True))
    inputs = [tensor(x.shape, x.element) for x in given]
    main = FuncOp("main", (inputs, [tensor(r.shape, r.element) for r in roots]))
    block = main.body.block
    for arg, x in zip(block.args, given, strict=True):
        arg.name_hint = sanitise(x.label.lower() or "x")
    values: dict[Source, SSAValue] = dict(zip(given, block.args, strict=True))
    for number, x in enumerate(weights):
        block.add_op(weight := WeightOp(f"w{number}", tensor(x.shape, x.element)))
        values[x] = weight.result
    results: list[SSAValue] = []
    for number, root in enumerate(roots):
        ops, value, _ = write(root, values)
        value.name_hint = "y" if len(roots) == 1 else f"y{number}"
        block.add_ops(ops)
        results.append(value)
    block.add_op(ReturnOp(*results))
    return ModuleOp([main])


def is_known(x: Leaf) -> bool:
    """Whether a leaf of a positional lift is known before the program runs."""
    return x.identity.startswith(_KNOWN)
