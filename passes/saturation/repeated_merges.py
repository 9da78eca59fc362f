"""Merges whose result can be merged again: of three ops and more that fit, one.

Merging two products of one operand gives a product of that operand, so a third can be merged with
it by the same rule. A round of matches sees pairs alone; here the steps are taken one by one, each
an instance of the rule on what the step before it made, so nothing new has to be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..rules.rule import AttrValue, AttrVar, Node, Term, Var, subterms
from .left_sides import LeftPatterns


@dataclass(frozen=True)
class RepeatedMerge:
    """Where the right side of a merge of two is what the merge begins from.

    Attributes:
        whole: the term of the right side that the first pattern matches; all results are of it.
        terms: what it binds the variables of that pattern to, by the pattern's names.
    """

    whole: Term
    terms: Mapping[str, Term]


def repeated_merge_of(left: LeftPatterns) -> RepeatedMerge | None:
    """How a rule applies to its own result; None where it does not."""
    if not is_symmetric(left):
        return None
    results = [set(subterms((term,))) for term in left.rule.right]
    for term in subterms(left.rule.right):
        bound = dict[str, Term]()
        within = all(term in parts for parts in results)
        if within and _fits(left.patterns[0].term, term, left.names[0], bound):
            return RepeatedMerge(term, bound)
    return None


def is_symmetric(left: LeftPatterns) -> bool:
    """Whether the outputs can be swapped: then one order of each pair says it all."""
    if len(left.patterns) != 2 or left.patterns[0] != left.patterns[1]:
        return False
    first, second = left.names
    both = {*first.values()} & {*second.values()}
    return all(first[v] == second[v] or not {first[v], second[v]} & both for v in first)


def _fits(pattern: Term, term: Term, names: Mapping[str, str], bound: dict[str, Term]) -> bool:
    """Whether a pattern matches a term, attributes by the rule's names; binds its variables."""
    if isinstance(pattern, Var):
        return bound.setdefault(pattern.name, term) == term
    if not isinstance(pattern, Node) or not isinstance(term, Node):
        return False
    if pattern.op != term.op or len(pattern.operands) != len(term.operands):
        return False
    named = {name: _named(value, names) for name, value in pattern.attributes}
    pairs = zip(pattern.operands, term.operands, strict=True)
    return named == dict(term.attributes) and all(_fits(p, t, names, bound) for p, t in pairs)


def _named(value: AttrValue, names: Mapping[str, str]) -> AttrValue:
    return AttrVar(names[value.name]) if isinstance(value, AttrVar) else value
