"""Rewrite rules of the graph level: types only. rule_text.py reads and writes them.

A rule says that the tensors `left` equal the tensors `right`, position by position, wherever every
condition of `where` holds. Variables are tensors of any shape and element type. On the left, an
attribute that is given must match, one that is not must have its op's default; a tuple may mix
numbers and `AttrVar`s. On the right, `Size`s are evaluated under the bindings of the match. A rule
applies where the left side matches, `where` holds, and the right side makes sense with the same
result types: the dialect's inference decides that (it refuses a concat of shapes that do not fit).

Five names beside the ops of the graph dialect stand for constant tensors: `CONSTANTS`
(constants.py has their values); on a left side they match a weight or literal of that value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from ...dialects.floats import Floats

Proof = Literal["proved-by-z3", "proved-by-e-graph", "checked-only", "refuted"]
PROOFS: tuple[Proof, ...] = ("proved-by-z3", "proved-by-e-graph", "checked-only", "refuted")

DIVISIONS = ("div", "reciprocal", "reduce_mean", "avg_pool", "pool_kernel")
"""Ops and constants that divide: integers drop the rest, floats round it."""

CONSTANTS = ("ones", "identity_matrix", "identity_kernel", "pool_kernel", "pair_mask")


@dataclass(frozen=True, order=True)
class Var:
    """A tensor of any shape."""

    name: str


@dataclass(frozen=True, order=True)
class AttrVar:
    """Any value of an attribute, bound by matching."""

    name: str


@dataclass(frozen=True, order=True)
class Size:
    """A whole number computed from shapes and attributes: `w.shape[0] + v.shape[0]`."""

    text: str


AttrAtom: TypeAlias = "int | float | bool | str | AttrVar | Size"
AttrValue: TypeAlias = "AttrAtom | tuple[AttrAtom, ...]"
Attributes: TypeAlias = "tuple[tuple[str, AttrValue], ...]"


def atoms_of(value: AttrValue) -> tuple[AttrAtom, ...]:
    """The parts of a list; what is none is its own only part."""
    return value if isinstance(value, tuple) else (value,)


@dataclass(frozen=True)
class Node:
    """An op on terms: its name without `graph.`, attributes by their names, sorted."""

    op: str
    operands: tuple[Term, ...]
    attributes: Attributes = ()
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.op, self.operands, self.attributes)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Node, (self.op, self.operands, self.attributes)  # hashes differ between processes

    def attribute(self, name: str) -> AttrValue | None:
        """The attribute as given; None where it takes the op's default."""
        return dict(self.attributes).get(name)


@dataclass(frozen=True)
class Out:
    """One result of an op with several (split)."""

    node: Node
    index: int


Term: TypeAlias = "Var | Node | Out"


@dataclass(frozen=True)
class Rule:
    """`left` equals `right` wherever `where` holds; several terms are several outputs.

    Attributes:
        where: conditions over `x.shape[i]`, `x.rank` and attribute variables (conditions.py).
        proof: how far the rule is known to hold.
        source: where it comes from, in words.
        floats: what it does to floats; None where running it is to say (floats.py). The same in
            both directions: each side differs from the other.
    """

    name: str
    left: tuple[Term, ...]
    right: tuple[Term, ...]
    where: tuple[str, ...] = ()
    proof: Proof = "checked-only"
    source: str = ""
    floats: Floats | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the tensor variables of the left side, in order of appearance."""
        return variables_of(self.left)

    @cached_property
    def divides(self) -> bool:
        """Whether it holds for floats only: rules are checked in a field, and integers are none."""
        return any(node.op in DIVISIONS for node in nodes_of((*self.left, *self.right)))

    def reversed(self) -> Rule:
        """The same law read from right to left, under a name that says so."""
        back = self.name.endswith("-back")
        name = self.name.removesuffix("-back") if back else f"{self.name}-back"
        return Rule(name, self.right, self.left, self.where, self.proof, self.source, self.floats)


def subterms(terms: tuple[Term, ...]) -> Iterator[Term]:
    """Every term inside `terms`, parents first; a shared one as often as it appears."""
    for term in terms:
        yield term
        match term:
            case Var():
                pass
            case Out():
                yield from subterms((term.node,))
            case Node():
                yield from subterms(term.operands)


def variables_of(terms: tuple[Term, ...]) -> tuple[str, ...]:
    """Names of the tensor variables, in order of first appearance."""
    return tuple(dict.fromkeys(t.name for t in subterms(terms) if isinstance(t, Var)))


def means_two(node: Node, attribute: str) -> bool:
    """Whether a variable stands for a split's sizes: rules are checked on splits into two alone."""
    is_sizes = node.op == "split" and attribute == "sizes"
    return is_sizes and isinstance(node.attribute(attribute), AttrVar)


def nodes_of(terms: tuple[Term, ...]) -> tuple[Node, ...]:
    """The distinct ops of the terms: equal ones are one (rules share them)."""
    return tuple(dict.fromkeys(t for t in subterms(terms) if isinstance(t, Node)))


def operator_count(terms: tuple[Term, ...]) -> int:
    """How many ops the terms take, constants not counted."""
    return sum(1 for node in nodes_of(terms) if node.op not in CONSTANTS)
