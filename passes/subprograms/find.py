"""The subprograms of a whole program: contractions, and pairs and groups that may become one.

A program is split where the rules do not apply: functions, maxima, data-dependent reads. Between
them are contractions, which read through copies. Those that are equal up to names are one interned
scope.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.canonical_types import Scope
from ...dialects.program import main_of
from ...dialects.weights_only import weights_only
from ..derivation.derive import native_seconds
from ..derivation.factor import factor_sum, inner_contractions
from ..derivation.lift import Lift, family, scope_names, scope_ops
from ..derivation.price import ScopePrices
from ..derivation.search import is_contraction

# Contractions at most this far apart in the program are considered for merging.
NEAR = 8
# Most members of a group whose contractions are merged as they stand.
MAX_MEMBERS = 4

Key: TypeAlias = "tuple[tuple[Scope, ...], tuple[str, ...]]"
Table = Callable[[Sequence[str]], ScopePrices]


@dataclass
class Subprogram:
    """Scopes that are searched together, as interned scopes, and their occurrences in the program.

    Attributes:
        roots: one for a single contraction.
        known: tokens of the leaves that are weights.
            Of a chain only its last one is a root.
        native: modelled seconds as it stands.
        occurrences: names of the scopes, for each occurrence in the program.
    """

    roots: tuple[Scope, ...]
    known: tuple[str, ...]
    native: float
    occurrences: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    @property
    def key(self) -> Key:
        """A key that is equal for subprograms that are equal up to names."""
        return self.roots, self.known

    @property
    def root(self) -> Scope:
        """The scope of a subprogram with one scope."""
        return self.roots[0]

    @property
    def names(self) -> list[str]:
        """The names of a subprogram with one scope."""
        return [occurrence[0] for occurrence in self.occurrences]


def weight(sub: Subprogram) -> float:
    """Its seconds in the whole program; 0 if it has no modelled price."""
    return (sub.native if math.isfinite(sub.native) else 1.0) * len(sub.occurrences)


def priced(subs: Sequence[Subprogram]) -> float:
    """Modelled seconds of all priced subprograms: the base of shares."""
    return sum(weight(sub) for sub in subs if math.isfinite(sub.native))


def split(module: ModuleOp, prices: Table) -> list[Subprogram]:
    """The contractions of a program, sorted by time, longest first."""
    known = weights_only(main_of(module).body.block.ops)
    return _distinct(module, prices, known, ((op,) for op in _contractions(module, known)))


def groups(module: ModuleOp, prices: Table) -> list[Subprogram]:
    """Independent contractions that may become one.

    They share an operand that is not a weight, or have equal extents, as a batch needs. Pairs are
    searched with all rules; larger groups are merged as they stand.
    """
    known = weights_only(main_of(module).body.block.ops)
    ops = _contractions(module, known)
    return _distinct(module, prices, known, _groups(module, ops, known))


def chains(module: ModuleOp, prices: Table) -> list[Subprogram]:
    """Scopes that alone read contractions: a root, in which those are opened.

    A contraction of another one, or a sum of products that share an operand. An occurrence is the
    names of all, the root first.
    """
    known = weights_only(main_of(module).body.block.ops)
    ops, names = _contractions(module, known), scope_names(module)
    found: dict[Key, Subprogram] = {}
    for op in scope_ops(module):
        every = [inner for inner in inner_contractions(op) if inner in ops]
        for opened in [[inner] for inner in every] if op in ops else [every]:
            lift = Lift(module, opened.__contains__, known, positional=True)
            if op.result in known or (op not in ops and factor_sum(lift.scope(op)) is None):
                continue
            key = (lift.scope(op),), tuple(lift.known())
            if key not in found:
                found[key] = Subprogram(*key, prices(key[1]).program(key[0]).seconds)
            found[key].occurrences.append(tuple(names[o] for o in (op, *opened)))
    return sorted(found.values(), key=lambda s: -weight(s))


def _contractions(module: ModuleOp, known: set[SSAValue]) -> list[ScopeOp]:
    found: list[ScopeOp] = []
    for op in scope_ops(module):
        if op.result not in known and op.summation:
            lift = Lift(module, family(op), known, positional=True)
            if is_contraction(lift.scope(op)):
                found.append(op)
    return found


def _distinct(
    module: ModuleOp, prices: Table, known: set[SSAValue], members: Iterator[tuple[ScopeOp, ...]]
) -> list[Subprogram]:
    """One subprogram for all that are equal up to names."""
    found: dict[Key, Subprogram] = {}
    names = scope_names(module)
    for ops in members:
        families = [family(op) for op in ops]
        lift = Lift(module, lambda o: any(f(o) for f in families), known, positional=True)  # noqa: B023
        key = tuple(lift.scope(op) for op in ops), tuple(lift.known())
        if key not in found:
            table = prices(key[1])
            pairs = zip(ops, key[0], strict=True)
            native = [min(native_seconds(o, table), table.program((r,)).seconds) for o, r in pairs]
            found[key] = Subprogram(*key, sum(native))
        found[key].occurrences.append(tuple(names[op] for op in ops))
    return sorted(found.values(), key=lambda s: -weight(s))


# --- what may become one ------------------------------------------------------------------------


def _groups(
    module: ModuleOp, ops: Sequence[ScopeOp], known: set[SSAValue]
) -> Iterator[tuple[ScopeOp, ...]]:
    before = _dependences(module, ops)
    for number, one in enumerate(ops):
        near = [o for o in ops[number + 1 : number + 1 + NEAR] if not before[o] >> number & 1]
        sharing = [o for o in near if _shared(one, o, known)]
        yield from ((one, o) for o in sharing)
        alike = [o for o in near if o not in sharing and _alike(one, o)]
        yield from ((one, o) for o in alike[:1])
        if len(sharing) > 1:
            yield from _whole_group(ops, (one, *sharing), before)


def _whole_group(
    ops: Sequence[ScopeOp], members: Sequence[ScopeOp], before: dict[ScopeOp, int]
) -> Iterator[tuple[ScopeOp, ...]]:
    """All of them, if none depends on another."""
    chosen = members[:MAX_MEMBERS]
    pairs = itertools.combinations(chosen, 2)
    if not any(before[o] >> ops.index(one) & 1 for one, o in pairs):
        yield tuple(chosen)


def _dependences(module: ModuleOp, ops: Sequence[ScopeOp]) -> dict[ScopeOp, int]:
    """For each contraction the earlier contractions that it depends on, as bits."""
    numbers = {op: number for number, op in enumerate(ops)}
    needed: dict[object, int] = {}
    for op in main_of(module).body.block.ops:
        bits = 0
        for value in op.operands:
            bits |= needed.get(value.owner, 0)
            if isinstance(value.owner, ScopeOp) and value.owner in numbers:
                bits |= 1 << numbers[value.owner]
        needed[op] = bits
    return {op: needed[op] for op in ops}


def _shared(one: ScopeOp, other: ScopeOp, known: set[SSAValue]) -> bool:
    """Whether they read one value that is not a weight."""
    common = set(one.inputs) & set(other.inputs)
    return any(v not in known and not isinstance(v.owner, OnesOp) for v in common)


def _alike(one: ScopeOp, other: ScopeOp) -> bool:
    """Whether all extents are the same, up to their order."""
    pairs = ((one.traversal, other.traversal), (one.extents, other.extents))
    return all(sorted(a) == sorted(b) for a, b in pairs)
