"""Which rules take part in the saturation of a program, remembered by the program's shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.errors import UserError
from ..rules.constants import steps_taken
from ..rules.op_table import RESULTS, OpTable
from ..rules.rule import CONSTANTS, Node, Rule, Term, Var, subterms
from .egraph import LEAF, PROJECT, EGraph
from .encoding import Shape, shape_of
from .left_sides import without_names


def usable(
    rules: Sequence[Rule], table: OpTable, prefix: str
) -> tuple[list[Rule], list[tuple[str, str]]]:
    """The rules that can take part, and why the others cannot."""
    kept, skipped = dict[object, Rule](), list[tuple[str, str]]()
    unknown = dict[str, str]()
    for rule in rules:
        reason = _unusable(rule, table, prefix, unknown)
        first = rule if reason else kept.setdefault(without_names(rule), rule)
        if first is not rule:
            reason = f"it says what '{first.name}' says"
        if reason:
            skipped.append((rule.name, reason))
    return list(kept.values()), skipped


def _unusable(rule: Rule, table: OpTable, prefix: str, unknown: dict[str, str]) -> str:
    """Why a rule cannot take part.

    Args:
        unknown: for each op looked up what is wrong with it; added to.
    """
    if rule.proof == "refuted":
        return "it is refuted"
    if any(isinstance(term, Var) for term in rule.left):
        return "its left side is a bare variable"
    for term in subterms(rule.left):
        if isinstance(term, Node) and term.op in CONSTANTS:
            return "its left side asks for the value of a weight"
    for term in (*subterms(rule.left), *subterms(rule.right)):
        if isinstance(term, Node) and term.op not in CONSTANTS:
            if term.op not in unknown:
                unknown[term.op] = _unknown(prefix + term.op, table)
            if unknown[term.op]:
                return unknown[term.op]
    return ""


def _unknown(op: str, table: OpTable) -> str:
    try:
        table.complete(op, {})
    except UserError as error:
        return error.one_line()
    return ""


@dataclass(frozen=True)
class Prepared:
    """The rules for programs of some shapes.

    Attributes:
        rules: those that can ever match; `skipped` those that never can, with the reason.
        shapes: every e-node shape that may come up.
    """

    rules: tuple[Rule, ...]
    skipped: tuple[tuple[str, str], ...]
    shapes: frozenset[Shape]


_PREPARED: dict[object, Prepared] = {}
_MAX_PREPARED = 16


def prepared(graph: EGraph, rules: tuple[Rule, ...], table: OpTable, prefix: str) -> Prepared:
    """The rules for a program, remembered by its shapes."""
    nodes = (n for n in graph.nodes if n.head.op not in (LEAF, PROJECT))
    shapes = frozenset(shape_of(n.head, len(n.operands)) for n in nodes)
    key = rules, shapes, prefix, frozenset(table.classes.items())
    if key not in _PREPARED:
        kept, skipped = usable(rules, table, prefix)
        found, whole = _relevant(shapes, kept, table, prefix)
        while len(_PREPARED) >= _MAX_PREPARED:
            del _PREPARED[next(iter(_PREPARED))]
        _PREPARED[key] = Prepared(found, tuple(skipped), whole)
    return _PREPARED[key]


def _relevant(
    program: frozenset[Shape], rules: Sequence[Rule], table: OpTable, prefix: str
) -> tuple[tuple[Rule, ...], frozenset[Shape]]:
    """The rules that can ever match, and the shapes that may come up."""
    shapes, ops, kept = set(program), {shape[0] for shape in program}, [False] * len(rules)
    asked = [{prefix + t.op for t in subterms(r.left) if isinstance(t, Node)} for r in rules]
    grown = True
    while grown:
        grown = False
        for k, rule in enumerate(rules):
            if not kept[k] and asked[k] <= ops:
                kept[k] = grown = True
                made = {s for term in subterms(rule.right) for s in _shape(term, table, prefix)}
                shapes |= made
                ops |= {shape[0] for shape in made}
    found = tuple(rule for rule, taken in zip(rules, kept, strict=True) if taken)
    return found, frozenset(shapes)


def _shape(term: Term, table: OpTable, prefix: str) -> list[Shape]:
    if not isinstance(term, Node):
        return []
    if term.op in CONSTANTS:
        steps = steps_taken(term.op)
        shapes = [_shape_of(s.op, len(s.operands), s.attributes, table, prefix) for s in steps]
        return [("graph.constant", 0, (RESULTS, "data")), *shapes]
    return [_shape_of(term.op, len(term.operands), term.attributes, table, prefix)]


def _shape_of(
    name: str, operands: int, given: Sequence[tuple[str, object]], table: OpTable, prefix: str
) -> Shape:
    names = {*dict(given), *dict(table.complete(prefix + name, {}))}
    return prefix + name, operands, tuple(sorted(names))
