"""Equalities of a table: which pairs of graphs of one fingerprint become candidate rules.

Pruning here needs no proof: it drops a pair only if a smaller or a renamed pair implies it.

- roles: no variable is both image and kernel of a convolution, and constant kernels are used as
  kernels only; other pairs are true but useless;
- congruence: a pair is a term whose operands represent their classes, with the representative of
  its own class; every other pair follows from these;
- input renaming: of pairs that differ only in variable names one is kept;
- instance: a pair that another becomes when terms stand for its variables is dropped;
- common subgraph: a subterm of both sides becomes a variable where the equality still holds, and
  the same operator on top of both sides is taken off where its operands are equal already.

Source: Jia et al., TASO (SOSP 2019), sections 2 and 6 (renaming, common subgraph).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ..exact import Shape
from ..instances import outcome, shapes_of
from ..rule import CONSTANTS, Node, Out, Rule, Term, Var, nodes_of, subterms, variables_of
from ..terms import mapped, matches, renamed
from .table import NONE, Table

KERNELS = ("identity_kernel", "pool_kernel", "pair_mask")


@dataclass(frozen=True)
class RuleCandidate:
    """Two terms of equal value at the world's shapes, with attributes as numbers."""

    left: tuple[Term, ...]  # a term for each output
    right: tuple[Term, ...]  # likewise
    shapes: tuple[tuple[str, Shape], ...]  # of the variables

    @property
    def rule(self) -> Rule:
        return Rule("candidate", self.left, self.right)


@dataclass
class Counts:
    """The number of candidates after each step. largest.py counts those of the size limit."""

    terms: int = 0  # enumerated
    classes: int = 0  # of terms of equal value
    pairs: int = 0  # of terms in one class
    congruence: int = 0  # pairs that differ at the root, not in one operand alone
    roles: int = 0  # pairs that use no variable both as image and as kernel
    renaming: int = 0  # pairs that differ in more than names
    common: int = 0  # pairs without a common part around the difference
    instance: int = 0  # no instance of another candidate
    consequence: int = 0  # do not follow from smaller ones
    general: int = 0  # no artifact of the world
    limit_pairs: int = 0  # at the size limit: pairs
    limit_roles: int = 0  # of these, as `roles`
    limit_parts: int = 0  # pairs of parts that smaller laws leave of a class
    limit_laws: int = 0  # laws found

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{k: getattr(self, k) + getattr(other, k) for k in vars(self)})


def candidates(table: Table) -> tuple[list[RuleCandidate], Counts]:
    """The candidates of a world, smallest first."""
    world, counts = table.world, Counts(terms=len(table))
    classes = Classes(table)
    counts.classes, counts.pairs = classes.count, classes.pairs
    seen, found = dict[object, None](), list[RuleCandidate]()
    for left, right in (*_single(table, classes), *_double(table, classes)):
        counts.congruence += 1
        if not roles_apart((*left, *right)):
            continue
        counts.roles += 1
        one = by_shape(left, right, dict(world.variables))
        key = (one.left, one.right)
        if key in seen or (one.right, one.left) in seen:
            continue
        seen[key] = None
        found.append(one)
    counts.renaming = len(found)
    found = [one for one in found if not has_common_part(one)]
    counts.common = len(found)
    kept = without_instances(found)
    counts.instance = len(kept)
    return kept, counts


def roles_apart(terms: tuple[Term, ...]) -> bool:
    """Whether no variable is both the image of a convolution and its kernel or bias."""
    convs = [node for node in nodes_of(terms) if node.op == "conv"]
    images = {name for node in convs for name in variables_of(node.operands[:1])}
    kernels = {name for node in convs for name in variables_of(node.operands[1:])}
    return not images & kernels and all(_kernels_in_place(term, False) for term in terms)


def _kernels_in_place(term: Term, weights: bool) -> bool:
    """Whether only convolutions read the constant kernels, as kernels."""
    match term:
        case Var():
            return True
        case Out():
            return _kernels_in_place(term.node, weights)
        case Node():
            if term.op in KERNELS and not weights:
                return False
            inside = [weights or (term.op == "conv" and k == 1) for k in range(len(term.operands))]
            return all(map(_kernels_in_place, term.operands, inside))


class Classes:
    """Terms by fingerprint. The first term of each class is its smallest."""

    def __init__(self, table: Table) -> None:
        _, first, inverse, sizes = np.unique(
            table.hashes, return_index=True, return_inverse=True, return_counts=True
        )
        self.first = first[inverse].astype(np.int64)
        self.count = len(first)
        self.pairs = int((sizes.astype(np.int64) * (sizes - 1) // 2).sum())
        self.is_first = np.zeros(len(table), bool)
        self.is_first[first] = True
        operands = np.where(table.operands == NONE, first[0], table.operands)
        missing = table.operands == NONE
        self.canonical = (self.is_first[operands] | missing).all(axis=1)


def _single(table: Table, classes: Classes) -> Iterator[tuple[tuple[Term, ...], tuple[Term, ...]]]:
    for term in np.flatnonzero(classes.canonical & ~classes.is_first):
        yield (table.term(int(term)),), (table.term(int(classes.first[term])),)


def doubles(table: Table, classes: Classes, least: int = 0) -> Iterator[tuple[int, int]]:
    """Both results of a split, if each alone is a smaller term with fewer variables.

    Args:
        least: the least number of operators of the split with everything below it.
    """
    sizes = table.sizes
    for block, (which, result, _) in enumerate(table.made_by):
        if which < 0 or result != 0 or table.world.operators[which].results != 2:
            continue
        zeroth = np.flatnonzero(table.block == block)
        for a in zeroth[classes.canonical[zeroth] & (sizes[zeroth] >= least)]:
            b = int(a) + len(zeroth)
            first = (int(classes.first[a]), int(classes.first[b]))
            if min(sizes[first[0]], sizes[first[1]]) < 1 or a in first or b in first:
                continue
            left = (table.term(first[0]), table.term(first[1]))
            right = (table.term(int(a)), table.term(b))
            new = any(
                set(variables_of((u,))) - set(variables_of((t,)))
                for t, u in zip(left, right, strict=True)
            )
            bound = set(variables_of(right)) <= set(variables_of(left))
            if new and bound and len(nodes_of(left)) <= table.most:
                yield int(a), b


def _double(table: Table, classes: Classes) -> Iterator[tuple[tuple[Term, ...], tuple[Term, ...]]]:
    for pair in doubles(table, classes):
        left = tuple(table.term(int(classes.first[term])) for term in pair)
        yield left, tuple(table.term(term) for term in pair)


def by_shape(
    left: tuple[Term, ...], right: tuple[Term, ...], shapes: Mapping[str, Shape]
) -> RuleCandidate:
    """Rename variables in order of appearance, by shape."""
    names: dict[str, str] = {}
    for name in variables_of((*left, *right)):
        pool = [other for other in shapes if shapes[other] == shapes[name]]
        names[name] = next(other for other in pool if other not in names.values())
    bound = tuple((names[name], shapes[name]) for name in names)
    return RuleCandidate(renamed(left, names), renamed(right, names), bound)


def replace_term(terms: tuple[Term, ...], old: Term, new: Term) -> tuple[Term, ...]:
    """The terms with one subterm replaced at every occurrence."""
    return mapped(terms, lambda term: new if term == old else None)


def has_common_part(one: RuleCandidate) -> bool:
    """Whether a smaller pair implies it: both sides share a subterm, or their top operator."""
    return _shares_an_input(one) or _shares_its_top(one)


def _shares_an_input(one: RuleCandidate) -> bool:
    """Whether the equality holds with any tensor in place of a subterm of both sides."""
    return with_variable(one) is not None


def with_variable(one: RuleCandidate) -> RuleCandidate | None:
    """The pair with a variable in place of a subterm of both sides, if the equality still holds."""
    mine = [t for t in subterms(one.left) if isinstance(t, Out | Node)]
    theirs = set(subterms(one.right))
    for term in dict.fromkeys(mine):
        if term not in theirs or (isinstance(term, Node) and term.op in (*CONSTANTS, "split")):
            continue
        shape = shapes_of((term,), dict(one.shapes))
        if shape is None:
            continue
        left = replace_term(one.left, term, Var("common"))
        right = replace_term(one.right, term, Var("common"))
        if any(isinstance(t, Var) for t in (*left, *right)) and left == right:
            continue
        shapes = {**dict(one.shapes), "common": shape[0]}
        if outcome(Rule("", left, right), shapes).equal:
            return RuleCandidate(left, right, tuple(shapes.items()))
    return None


def _shares_its_top(one: RuleCandidate) -> bool:
    """Whether both sides are the same operator on pairwise equal operands."""
    if len(one.left) != 1:
        return False
    a, b = one.left[0], one.right[0]
    if isinstance(a, Out) and isinstance(b, Out) and a.index == b.index:
        a, b = a.node, b.node
    if not (isinstance(a, Node) and isinstance(b, Node)) or a.op in CONSTANTS:
        return False
    if (a.op, a.attributes, len(a.operands)) != (b.op, b.attributes, len(b.operands)):
        return False
    return all(_equal(x, y, one) for x, y in zip(a.operands, b.operands, strict=True))


def without_instances(found: list[RuleCandidate]) -> list[RuleCandidate]:
    """The candidates that are not special cases of another. Of equal ones the first is kept."""
    by_top: dict[object, list[RuleCandidate]] = {}
    for one in found:
        by_top.setdefault(_top(one.left), []).append(one)
        if _top(one.right) != _top(one.left):
            by_top.setdefault(_top(one.right), []).append(one)
    return [one for one in found if not _is_instance(one, by_top)]


def _top(terms: tuple[Term, ...]) -> object:
    nodes = [t.node if isinstance(t, Out) else t for t in terms]
    return tuple((n.op, n.attributes) if isinstance(n, Node) else "variable" for n in nodes)


def _is_instance(one: RuleCandidate, by_top: Mapping[object, list[RuleCandidate]]) -> bool:
    others = {id(o): o for side in (one.left, one.right) for o in by_top.get(_top(side), [])}
    sides = (one.left, one.right)
    for other in others.values():
        if other is one:
            continue
        for a, b in ((other.left, other.right), (other.right, other.left)):
            for left, right in (sides, sides[::-1]):
                bound: dict[str, Term] = {}
                matched = matches((*a, *b), (*left, *right), bound, _same_op)
                if matched and any(not isinstance(t, Var) for t in bound.values()):
                    return True
                if matched and len(set(bound.values())) < len(bound):
                    return True
    return False


def _same_op(a: Node, b: Node) -> bool:
    return (a.op, a.attributes) == (b.op, b.attributes)


def _equal(x: Term, y: Term, one: RuleCandidate) -> bool:
    return x == y or outcome(Rule("", (x,), (y,)), dict(one.shapes)).equal
