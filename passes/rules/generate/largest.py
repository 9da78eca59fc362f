"""The laws of the size limit: those that no smaller ones, nor each other, imply.

Terms of the size limit number millions, so no pair of them becomes a term before it is known to be
new: the table's classes are joined by what smaller laws say (closure.py), and of the parts that are
left the most general pairs become laws, a few at a time, and are applied in turn.

Laws of two outputs are kept whatever the closure says: `t, u = split(v)` follows from
`concat(t, u) = v` as an equation, and yet is what merges t and u. Those alone are kept whose parts
share an operand (parts.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..instances import outcome
from ..rule import Out, Term
from ..terms import renamed
from .candidates import (
    Classes,
    RuleCandidate,
    by_shape,
    doubles,
    has_common_part,
    roles_apart,
    with_variable,
    without_instances,
)
from .closure import Closure
from .parts import share_an_operand
from .table import Ids, Table
from .traits import Traits

_MAX_BATCH = 64
_AGAIN, _LANES = 11, 32  # another draw, and a larger one


@dataclass
class Largest:
    """Laws of the size limit, and what is left of all equalities there at each step.

    Attributes:
        pairs: terms that are not the first of their class.
        roles: of these, those whose kernels and images are apart.
        parts: pairs of parts of one class after all smaller laws, of use as laws.
        laws: of these, those that do not follow from each other, nor are coincidences of the draw
            (relu keeps a small tensor as it is now and then).
    """

    found: list[RuleCandidate]
    pairs: int
    roles: int
    parts: int
    laws: int


def largest_laws(table: Table, smaller: Sequence[RuleCandidate]) -> Largest:
    """The laws of graphs of the size limit that do not follow from smaller ones."""
    closure, traits = Closure(table), Traits(table)
    every = np.flatnonzero(closure.large & (closure.first != np.arange(len(table))))
    apart = traits.apart(every.astype(np.int32), closure.first[every])
    closure.apply([law for one in smaller if _holds(one) for law in _outputs(one)])
    left, right = _pairs(closure, traits)
    parts, laws = len(left), list[RuleCandidate]()
    while len(left):
        for batch in _in_turn(left, right, closure):
            laws += batch
        left, right = _pairs(closure, traits)
    made = [one for one in laws if not has_common_part(one)]
    return Largest(made + _of_two(table), len(every), int(apart.sum()), parts, len(laws))


def _holds(one: RuleCandidate) -> bool:
    """Whether the equality is not a coincidence."""
    return outcome(one.rule, dict(one.shapes), _AGAIN, _LANES).equal


def _outputs(one: RuleCandidate) -> Iterator[tuple[Term, Term]]:
    yield from zip(one.left, one.right, strict=True)


def _pairs(closure: Closure, traits: Traits) -> tuple[Ids, Ids]:
    """The best term of each part of a class, paired with the best of the class's first part.

    Best: no constants, then each variable once. Pairs of more variables come first.
    """
    every = np.arange(len(closure.first), dtype=np.int32)
    usable = every[traits.apart(every, every)]
    divided = np.zeros(len(every), bool)
    divided[closure.first[usable[closure.part[usable] != closure.first[usable]]]] = True
    usable = usable[divided[closure.first[usable]]]
    worst_last = (usable, ~traits.linear[usable], traits.constants[usable])
    order = np.lexsort((*worst_last, closure.part[usable], closure.first[usable]))
    usable = usable[order]
    usable = usable[_starts(closure.part[usable], closure.first[usable])]
    leads = _starts(closure.first[usable])
    hub = usable[leads][np.cumsum(leads) - 1]
    fits = ~leads & traits.apart(usable, hub) & traits.useful(usable, hub)
    left, right = usable[fits], hub[fits]
    constants = traits.constants[left] | traits.constants[right]
    size = closure.table.sizes[left] + closure.table.sizes[right]
    best = np.lexsort((left, size, -traits.distinct[left], constants))
    return left[best], right[best]


def _starts(*columns: Ids) -> Any:
    """Rows that differ from the previous row."""
    new = np.ones(len(columns[0]), bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return new


def _in_turn(left: Ids, right: Ids, closure: Closure) -> Iterator[list[RuleCandidate]]:
    """Take laws in order, a few at a time. Skip pairs that these laws already make equal."""
    batch = 1
    while len(left):
        yield _accepted(closure, np.stack([left[:batch], right[:batch]]))
        left, right = left[batch:], right[batch:]
        apart = closure.part[left] != closure.part[right]
        left, right, batch = left[apart], right[apart], min(2 * batch, _MAX_BATCH)


def _accepted(closure: Closure, pairs: Ids) -> list[RuleCandidate]:
    """The pairs as laws, without renamed duplicates. The laws are applied."""
    shapes = dict(closure.table.world.variables)
    term = closure.table.term
    laws = dict[Any, RuleCandidate]()
    for a, b in pairs.T:
        one = by_shape((term(int(a)),), (term(int(b)),), shapes)
        if (one.right, one.left) not in laws:
            laws.setdefault((one.left, one.right), one)
    closure.join(pairs)
    true = [one for one in laws.values() if _holds(one)]
    closure.apply([law for one in true for law in _outputs(_most_general(one))])
    return true


def _most_general(one: RuleCandidate) -> RuleCandidate:
    """Replace shared subterms of both sides by variables."""
    while (more := with_variable(one)) is not None:
        names = {"common": f"common{len(more.shapes)}"}
        shapes = tuple((names.get(name, name), shape) for name, shape in more.shapes)
        one = RuleCandidate(renamed(more.left, names), renamed(more.right, names), shapes)
    return one


def _of_two(table: Table) -> list[RuleCandidate]:
    """Laws of two outputs at the size limit."""
    classes, shapes = Classes(table), dict(table.world.variables)
    found = dict[Any, RuleCandidate]()
    for pair in doubles(table, classes, table.most):
        left = tuple(table.term(int(classes.first[term])) for term in pair)
        right = tuple(table.term(term) for term in pair)
        whole = right[0].node.operands if isinstance(right[0], Out) else ()
        if roles_apart((*left, *right)) and share_an_operand(left, whole):
            one = by_shape(left, right, shapes)
            found.setdefault((one.left, one.right), one)
    return without_instances([one for one in found.values() if not has_common_part(one)])
