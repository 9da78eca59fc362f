"""The second prover: an e-graph that rewrites both sides of a rule by the same properties.

Shapes and attributes are terms of a second sort, `N`, so a proof is for all of them: `dim` and
`rank` of tensors, sums, literals. An equation that a rule assumes, or a fact says, is a union.
Conditions that are not equations are checked only where the rule itself says them. Bounded: a few
iterations, and none on a large graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ....dialects.errors import UserError
from ..conditions import Meaning, compiled_as, names_in
from ..egglog_terms import TermGraph
from ..instances import attribute_names
from ..rule import AttrVar, Node, Rule, Size, Var, subterms, variables_of
from .by_z3 import DEFINED, properties
from .encoder import TermEncoder, signature
from .facts import FACTS

_ITERATIONS = 5
_MAX_MATCHES = 30_000
_HEAD = """
(datatype T)
(datatype N (Num i64) (Named String))
(relation sense (T))
(relation apart (N N))
(constructor dim (T N) N)
(constructor rank (T) N)
(constructor plus (N N) N)
(constructor minus (N N) N)
(constructor times (N N) N)
(constructor over (N N) N)
(constructor at (N N) N)
(constructor no (N) N)
(rewrite (plus ?x ?y) (plus ?y ?x))
(rule ((= ?s (plus ?x ?y)) (= ?s (plus ?x ?z))) ((union ?y ?z)))
(rule ((= ?s (plus ?y ?x)) (= ?s (plus ?z ?x))) ((union ?y ?z)))
(rewrite (plus (Num ?x) (Num ?y)) (Num (+ ?x ?y)))
(rewrite (minus (Num ?x) (Num ?y)) (Num (- ?x ?y)))
(rewrite (no (Num ?x)) (Num (- 1 ?x)))
(rewrite (times ?x (Num 1)) ?x)
"""
_DIMS = 4
_APART = [f"(apart (Num {a}) (Num {b}))" for a in range(_DIMS) for b in range(_DIMS) if a != b]
_WORDS = {"+": "plus", "-": "minus", "*": "times", "//": "over"}


class _NoEquationError(Exception):
    """A condition that the e-graph has no words for."""


class _Text(Meaning):
    """Conditions as text for egglog; a comparison becomes ("==" or "!=", a, b)."""

    def compare(self, sign: str, a: Any, b: Any) -> Any:
        if sign not in ("==", "!="):
            raise _NoEquationError
        return (sign, number(a), number(b))

    def apply(self, function: str, arguments: Sequence[Any]) -> Any:
        raise _NoEquationError

    def shape(self, variable: Any) -> Any:
        raise _NoEquationError

    def calculate(self, sign: str, a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return super().calculate(sign, a, b)
        if sign not in _WORDS:
            raise _NoEquationError
        return f"({_WORDS[sign]} {number(a)} {number(b)})"

    def every(self, parts: Any) -> Any:
        raise _NoEquationError

    def some(self, parts: Any) -> Any:
        raise _NoEquationError

    def no(self, part: Any) -> Any:
        return f"(no {number(part)})"

    def rank(self, variable: Any) -> Any:
        if variable[0] != "tensor":
            raise _NoEquationError
        return f"(rank {variable[1]})"

    def item(self, variable: Any, index: Any) -> Any:
        kind, text = variable
        if kind == "pair":
            return text[index]
        if kind == "numbers":
            return f"(at {text} {number(index)})"
        if isinstance(index, int) and index < 0:
            return f"(dim {text} (minus (rank {text}) (Num {-index})))"
        return f"(dim {text} {number(index)})"


def number(value: Any) -> str:
    """A number, or what stands for one, as text."""
    if isinstance(value, tuple):
        return value[1]
    return f"(Num {int(value)})" if isinstance(value, int) else value


_MEANING = _Text()


class TermWriter(TermEncoder):
    """Terms of one rule as text; variables as `prefix` + name, or as ground constants."""

    def __init__(self, rule: Rule, ground: bool) -> None:
        self.ground = ground
        self.bindings: dict[str, Any] = {}
        self.declared: list[str] = []
        for name in variables_of((*rule.left, *rule.right)):
            self.bindings[name] = ("tensor", f"(goal-{name})" if ground else f"?{name}")
            if ground:
                self.declared.append(f"(constructor goal-{name} () T)")

    def variable(self, name: str) -> str:
        return self.bindings[name][1]

    def pair(self, name: str) -> Sequence[str]:
        if name not in self.bindings:
            parts = [f"{name}_{k}" for k in range(2)]
            texts = tuple(f'(Named "{part}")' if self.ground else f"?{part}" for part in parts)
            self.bindings[name] = ("pair", texts)
        return self.bindings[name][1]

    def attribute(self, name: str) -> Any:
        if name not in self.bindings:
            text = f'(Named "{name}")' if self.ground else f"?{name}"
            self.bindings[name] = ("numbers", text)
        return self.bindings[name]

    def call(self, name: str, operands: Sequence[str], values: Sequence[str]) -> str:
        sorts = " ".join(["T"] * len(operands) + ["N"] * len(values))
        self.declared.append(f"(constructor op-{name} ({sorts}) T)")
        return f"({' '.join([f'op-{name}', *operands, *values])})"

    def listed(self, parts: Sequence[str]) -> str:
        key = f"list{len(parts)}"
        self.declared.append(f"(constructor {key} ({' '.join(['N'] * len(parts))}) N)")
        return f"({' '.join([key, *parts])})" if parts else '(Named "nothing")'

    def value(self, value: Any) -> str:
        match value:
            case AttrVar():
                return self.attribute(value.name)[1]
            case Size():
                return number(self.condition(value.text))
            case float():
                return f'(Named "{value}")'
            case _:
                return number(value)

    def condition(self, text: str) -> Any:
        """A condition or size. Raises _NoEquationError where the e-graph has no words for it."""
        for name in names_in(text):
            self.attribute(name)
        return compiled_as(text, _MEANING)(self.bindings)


def proved_by_egraph(rule: Rule, given: Sequence[Rule] | None = None) -> bool:
    """Whether both sides become one class; False says nothing.

    Facts of shapes speak of the dims that are mentioned: those of all terms of the rule are. Where
    both sides are the relu of something, that being equal will do.
    """
    match rule.left, rule.right:
        case (Node(op="relu", operands=left),), (Node(op="relu", operands=right),):
            if proved_by_egraph(replace(rule, left=left, right=right), given):
                return True
        case _:
            pass
    axioms = _all_axioms() if given is None else _axioms(given)
    goal = TermWriter(rule, ground=True)
    sides = [(goal.term(a), goal.term(b)) for a, b in zip(rule.left, rule.right, strict=True)]
    declared = list(dict.fromkeys([*axioms[0], *goal.declared]))
    assumed = _assumed(rule, goal)
    lines = [_HEAD, *declared, *axioms[1], *_APART]
    axes = [goal.attribute(n)[1] for n, a in attribute_names(rule.left).items() if a == "axis"]
    positions = [*(f"(Num {k})" for k in range(_DIMS)), *axes]
    lines += [f"(dim {text} {at})" for text in _tensors(rule, goal) for at in positions]
    for k, (a, b) in enumerate(sides):
        lines += [f"(let $a{k} {a})", f"(let $b{k} {b})", f"(sense $a{k})", f"(sense $b{k})"]
        lines.append(f"(union (rank $a{k}) (rank $b{k}))")
        lines += [f"(union (dim $a{k} {at}) (dim $b{k} {at}))" for at in positions]

    graph = TermGraph("\n".join([*lines, *assumed]))
    equal = " ".join(f"(= $a{k} $b{k})" for k in range(len(sides)))
    return graph.rewrite(_ITERATIONS, _MAX_MATCHES, equal)


def _tensors(rule: Rule, goal: TermWriter) -> list[str]:
    """Every tensor of a rule, once; a split is none, its parts are."""
    terms = subterms((*rule.left, *rule.right))
    whole = (t for t in terms if not (isinstance(t, Node) and t.op == "split"))
    return list(dict.fromkeys(map(goal.term, whole)))


def _assumed(rule: Rule, goal: TermWriter) -> list[str]:
    """The goal's conditions as unions, or as pairs known to be apart."""
    lines = list[str]()
    for text in rule.where:
        try:
            found = goal.condition(text)
        except _NoEquationError:
            continue
        if isinstance(found, tuple):
            sign, a, b = found
            both = f"(apart {a} {b})\n(apart {b} {a})"
            lines.append(f"(union {a} {b})" if sign == "==" else both)
    return lines


@cache
def _all_axioms() -> tuple[list[str], list[str]]:
    return _axioms(properties())


def _axioms(given: Sequence[Rule]) -> tuple[list[str], list[str]]:
    """Declarations, and rules for the properties and the facts."""
    declared, lines = list[str](), list[str]()
    for rule in given:
        declared_here, found = _property(rule)
        declared += declared_here
        lines += found
    for key, facts in FACTS.items():
        declared_here, found = _facts(key, facts)
        declared += declared_here
        lines += found
    return list(dict.fromkeys(declared)), list(dict.fromkeys(lines))


def _property(rule: Rule) -> tuple[list[str], list[str]]:
    """Both directions, each from the side that is met; a condition must be known to hold."""
    found, writer = list[str](), TermWriter(rule, ground=False)
    left, right = writer.term(rule.left[0]), writer.term(rule.right[0])
    try:
        known = [_known(writer.condition(text)) for text in rule.where]
    except _NoEquationError:
        return writer.declared, []
    known += [f"(sense {left})"] if rule.source == DEFINED else []
    for side, pattern, other in ((rule.left[0], left, right), (rule.right[0], right, left)):
        if isinstance(side, Var) or (rule.source == DEFINED and pattern == right):
            continue
        if set(_words(other)) | {w for k in known for w in _words(k)} <= set(_words(pattern)):
            body = " ".join([f"(= ?whole {pattern})", *known])
            found.append(f"(rule ({body}) ((union ?whole {other})))")
    return writer.declared, found


def _known(condition: Any) -> str:
    if not isinstance(condition, tuple):
        raise _NoEquationError
    sign, a, b = condition
    return f"(= {a} {b})" if sign == "==" else f"(apart {a} {b})"


def _words(text: str) -> list[str]:
    return [w.strip("()") for w in text.split() if w.strip("()").startswith("?")]


def _facts(key: str, facts: Sequence[str]) -> tuple[list[str], list[str]]:
    """What makes sense has operands that do, and shapes as the facts say."""
    op, operands, given = signature(key, facts)
    attributes = given if op != "split" else ("axis", "size_0", "size_1")
    words = [f"?{name}" for name in (*operands, *attributes)]
    sorts = " ".join(["T"] * len(operands) + ["N"] * len(attributes))
    declared = [f"(constructor op-{key} ({sorts}) T)"]
    out = f"(op-{key} {' '.join(words)})" if words else f"(op-{key})"
    bindings: dict[str, Any] = {n: ("numbers", f"?{n}") for n in attributes}
    bindings |= {n: ("tensor", f"?{n}") for n in operands}
    bindings |= {"out": ("tensor", "?out"), "i": ("numbers", "?i")}
    bindings["sizes"] = ("pair", ("?size_0", "?size_1"))
    heads = [f"(sense ?{name})" for name in operands]
    lines = list[str]()
    for text in facts:
        guard, _, last = text.rpartition(" or ")
        found = _fact(last, guard, bindings)
        if found is None:
            continue
        conditions, union, free = found
        if free:
            lines.append(f"(rule ((= ?out {out}) (sense ?out) {free} {conditions}) ({union}))")
        elif conditions:
            lines.append(f"(rule ((= ?out {out}) (sense ?out) {conditions}) ({union}))")
        else:
            heads.append(union)
    if heads:
        lines.append(f"(rule ((= ?out {out}) (sense ?out)) ({' '.join(heads)}))")
    return declared, lines


def _fact(last: str, guard: str, bindings: dict[str, Any]) -> tuple[str, str, str] | None:
    """Conditions, the union, and what binds `i`; None for facts without words here.

    A guard `x == y or` needs x and y apart, a guard that is an attribute needs it to be false.
    """
    try:
        found = compiled_as(last, _MEANING)(bindings)
        conditions = [_denied(part, bindings) for part in guard.split(" or ") if part]
    except (_NoEquationError, UserError, KeyError):
        return None
    if not isinstance(found, tuple) or found[0] != "==":
        return None
    free = ""
    if "i" in names_in(last):
        free = f"(= ?d {found[1]})"
    return " ".join(conditions), f"(union {found[1]} {found[2]})", free


def _denied(part: str, bindings: dict[str, Any]) -> str:
    found = compiled_as(part, _MEANING)(bindings)
    if isinstance(found, tuple) and found[0] == "==":
        return f"(apart {found[1]} {found[2]})"
    if isinstance(found, tuple) and found[0] == "numbers":
        return f"(= {found[1]} (Num 0))"
    raise _NoEquationError
