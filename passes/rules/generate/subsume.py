"""Drop candidates that follow from smaller ones: an e-graph of ground terms, rewritten by those.

Candidates come smallest first. A round rewrites the terms of all candidates of one size by what is
accepted so far; pairs that have become one class follow and are dropped; the first of the rest are
accepted, and the next round begins. Rules are used here at the shapes they were found at, and
operators whose attributes depend on shapes are told apart by these, so no step leaves what was
shown.

Source: Nandi et al., Ruler (OOPSLA 2021), for minimising a rule set by what it derives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..egglog_terms import TermGraph
from ..instances import shapes_of
from ..rule import CONSTANTS, Node, Out, Term, Var, operator_count, subterms, variables_of
from .candidates import RuleCandidate

_ITERATIONS = 4
_MAX_MATCHES = 60_000
_SHAPED = ("concat", "split", "conv", "broadcast")


def without_consequences(found: Sequence[RuleCandidate]) -> list[RuleCandidate]:
    """The candidates that do not follow from smaller ones, and all of several outputs."""
    single = [one for one in found if len(one.left) == 1]
    accepted = list[RuleCandidate]()
    for size in sorted({_size(one) for one in single}):
        left = sorted((one for one in single if _size(one) == size), key=_generality)
        batch = 1
        while left:
            left = list(_not_derived(left, accepted))
            accepted += left[:batch]
            left, batch = left[batch:], min(2 * batch, 16)
    kept = {id(one) for one in accepted}
    return [one for one in found if id(one) in kept or len(one.left) > 1]


def _size(one: RuleCandidate) -> int:
    return max(operator_count(one.left), operator_count(one.right))


def _generality(one: RuleCandidate) -> tuple[int, ...]:
    """Order: without constants first, then more variables, then smaller."""
    constants = sum(isinstance(t, Node) and t.op in CONSTANTS for t in subterms(one.left))
    small = operator_count(one.left) + operator_count(one.right)
    return (constants, -len(variables_of(one.left)), small)


def _not_derived(
    left: Sequence[RuleCandidate], accepted: Sequence[RuleCandidate]
) -> Iterator[RuleCandidate]:
    """The candidates whose two sides remain in different classes."""
    if not accepted:
        yield from left
        return
    graph = GroundTerms()
    positions = [(graph.add(one.left[0], one), graph.add(one.right[0], one)) for one in left]
    for one in accepted:
        graph.rule(one)
    graph.saturate(_ITERATIONS)
    for one, (a, b) in zip(left, positions, strict=True):
        if not graph.equal(a, b):
            yield one


class GroundTerms:
    """Ground terms and rewrites in egglog, with one constructor for each op and attributes."""

    def __init__(self) -> None:
        self.graph = TermGraph("(datatype T)")
        self.constructors: dict[object, str] = {}
        self.rewrites: list[str] = []
        self.terms: dict[str, str] = {}

    def _constructor(self, key: object, arity: int) -> str:
        if key not in self.constructors:
            name = f"c{len(self.constructors)}"
            self.constructors[key] = name
            self.graph.run(f"(constructor {name} ({' '.join(['T'] * arity)}) T)")
        return self.constructors[key]

    def text(self, term: Term, one: RuleCandidate, ground: bool) -> str:
        """The term in egglog. Variables stand for themselves, or for any term."""
        match term:
            case Var():
                shape = dict(one.shapes)[term.name]
                key = ("variable", term.name, shape)
                return f"({self._constructor(key, 0)})" if ground else f"?{term.name}"
            case Out():
                node, index = term.node, term.index
            case Node():
                node, index = term, 0
        shapes = shapes_of(node.operands, dict(one.shapes)) if node.op in _SHAPED else None
        key = (node.op, node.attributes, index, len(node.operands), shapes)
        inner = [self.text(operand, one, ground) for operand in node.operands]
        return f"({' '.join([self._constructor(key, len(inner)), *inner])})"

    def add(self, term: Term, one: RuleCandidate) -> str:
        text = self.text(term, one, True)
        if text not in self.terms:
            self.terms[text] = f"$t{len(self.terms)}"
        return self.terms[text]

    def rule(self, one: RuleCandidate) -> None:
        """Both directions, if the left side has an operator on top and binds all it needs."""
        left, right = one.left[0], one.right[0]
        for a, b in ((left, right), (right, left)):
            if isinstance(a, Var) or not set(variables_of((b,))) <= set(variables_of((a,))):
                continue
            if a in set(subterms((b,))) or (isinstance(a, Node) and a.op in CONSTANTS):
                continue  # it would grow without end
            rewrite = f"(rewrite {self.text(a, one, False)} {self.text(b, one, False)})"
            self.rewrites.append(rewrite)

    def saturate(self, iterations: int) -> None:
        """Rewrite a few times, or until the graph is large."""
        self.graph.run("\n".join(f"(let {name} {text})" for text, name in self.terms.items()))
        self.graph.run("\n".join(dict.fromkeys(self.rewrites)))
        self.graph.rewrite(iterations, _MAX_MATCHES)

    def equal(self, a: str, b: str) -> bool:
        """Whether two added terms are now in one class."""
        return self.graph.holds(f"(= {a} {b})")
