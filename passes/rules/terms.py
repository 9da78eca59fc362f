"""Operations on terms: map, rename, match and evaluate them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ...dialects.errors import UserError
from .conditions import evaluate, renamed_text
from .rule import (
    Attributes,
    AttrVar,
    Node,
    Out,
    Rule,
    Size,
    Term,
    Var,
    atoms_of,
    nodes_of,
    variables_of,
)

T = TypeVar("T")


def root_node(term: Term) -> Node:
    """The op whose result a term is. Variables have no op."""
    assert not isinstance(term, Var)
    return term.node if isinstance(term, Out) else term


def attribute_names(terms: tuple[Term, ...]) -> dict[str, str]:
    """For each attribute variable, the attribute it stands for first; `pads[]` for a part of it.

    The sizes of a slice are its `extents`, the pads of a pad its `margins`: those of a split and
    of a window are something else.
    """
    own = {("slice", "sizes"): "extents", ("pad", "pads"): "margins"}
    found: dict[str, str] = {}
    for node in nodes_of(terms):
        for name, value in node.attributes:
            name = own.get((node.op, name), name)
            for atom in atoms_of(value):
                if isinstance(atom, AttrVar):
                    found.setdefault(atom.name, f"{name}[]" if isinstance(value, tuple) else name)
    return found


def sizes_in(terms: tuple[Term, ...]) -> Iterator[str]:
    """The texts of the size expressions among the attributes."""
    for node in nodes_of(terms):
        for _, value in node.attributes:
            yield from (atom.text for atom in atoms_of(value) if isinstance(atom, Size))


# --- changing them ------------------------------------------------------------------------------


def mapped(
    terms: tuple[Term, ...],
    image: Callable[[Term], Term | None] = lambda term: None,
    on_top: Callable[[Node, tuple[Term, ...]], Node] = lambda old, operands: Node(
        old.op, operands, old.attributes
    ),
) -> tuple[Term, ...]:
    """The terms with the images of their subterms; where that is None, of the operands.

    Args:
        on_top: what an op becomes, given the images of its operands; by default the op on these.
    """
    known: dict[Term, Term] = {}

    def build(term: Term) -> Term:
        if term not in known:
            given = image(term)
            known[term] = inside(term) if given is None else given
        return known[term]

    def inside(term: Term) -> Term:
        match term:
            case Var():
                return term
            case Out():
                inner = build(term.node)
                assert isinstance(inner, Node)
                return Out(inner, term.index)
            case Node():
                return on_top(term, tuple(map(build, term.operands)))

    return tuple(map(build, terms))


def with_attributes(
    terms: tuple[Term, ...], change: Callable[[Node, str, Any], Any]
) -> tuple[Term, ...]:
    """The terms with each attribute of each node replaced: `change(node, name, value)`."""

    def node(old: Node, operands: tuple[Term, ...]) -> Node:
        return Node(old.op, operands, tuple((n, change(old, n, v)) for n, v in old.attributes))

    return mapped(terms, on_top=node)


def renamed(terms: tuple[Term, ...], names: Mapping[str, str]) -> tuple[Term, ...]:
    """The terms with variables renamed, in size expressions too."""

    def value(old: Any) -> Any:
        match old:
            case AttrVar():
                return AttrVar(names.get(old.name, old.name))
            case Size():
                return Size(renamed_text(old.text, names))
            case tuple():
                return tuple(map(value, old))  # pyright: ignore[reportUnknownArgumentType]
            case _:
                return old

    def node(old: Node, operands: tuple[Term, ...]) -> Node:
        return Node(old.op, operands, tuple((n, value(v)) for n, v in old.attributes))

    def image(term: Term) -> Term | None:
        return Var(names.get(term.name, term.name)) if isinstance(term, Var) else None

    return mapped(terms, image, node)


def names_in_order(terms: tuple[Term, ...]) -> dict[str, str]:
    """Names for the variables in order of appearance: `v0`, `v1`, .. and `s0`, `s1`, .."""
    names = {name: f"v{k}" for k, name in enumerate(variables_of(terms))}
    return names | {name: f"s{k}" for k, name in enumerate(attribute_names(terms))}


def without_names(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """A key that is equal for terms that differ only in variable names."""
    return renamed(terms, names_in_order(terms))


def renamed_rule(rule: Rule, names: Mapping[str, str]) -> Rule:
    """The rule with variables renamed, in sizes and conditions too."""
    left, right = renamed(rule.left, names), renamed(rule.right, names)
    where = tuple(renamed_text(text, names) for text in rule.where)
    return Rule(rule.name, left, right, where, rule.proof, rule.source, rule.floats)


# --- one as an instance of another --------------------------------------------------------------


def matches(
    patterns: Sequence[Term],
    terms: Sequence[Term],
    bound: dict[str, Term],
    alike: Callable[[Node, Node], bool],
) -> bool:
    """Whether terms for the variables of `patterns` make them `terms`; fills `bound`.

    Args:
        alike: whether two ops may stand for each other, their operands left out.
    """

    def one(pattern: Term, term: Term) -> bool:
        match pattern, term:
            case Var(), _:
                return bound.setdefault(pattern.name, term) == term
            case Out(), Out():
                return pattern.index == term.index and one(pattern.node, term.node)
            case Node(), Node():
                return alike(pattern, term) and every(pattern.operands, term.operands)
            case _:
                return False

    def every(some: Sequence[Term], others: Sequence[Term]) -> bool:
        return len(some) == len(others) and all(map(one, some, others))

    return every(patterns, terms)


# --- giving them a meaning ----------------------------------------------------------------------


def resolved(value: Any, bindings: Mapping[str, Any]) -> Any:
    """An attribute's value under bindings. Raises UserError where it cannot be computed."""
    match value:
        case AttrVar():
            if value.name not in bindings:
                raise UserError(f"?{value.name} is not bound")
            return bindings[value.name]
        case Size():
            return evaluate(value.text, bindings)
        case tuple():
            return tuple([resolved(part, bindings) for part in value])  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def resolved_attributes(attributes: Attributes, bindings: Mapping[str, Any]) -> Attributes:
    """Attributes as values. Raises UserError if one cannot be computed."""
    return tuple([(name, resolved(value, bindings)) for name, value in attributes])


def interpreted(
    terms: Sequence[Term],
    variable: Callable[[str], T | None],
    results: Callable[[Node, list[T]], Sequence[T] | None],
) -> list[T] | None:
    """What terms mean, given what variables mean, and the results of an op on its operands.

    None where one has no meaning: an op's results are None, or it has too few.
    """
    known: dict[Node, Sequence[T] | None] = {}

    def meaning(term: Term) -> T | None:
        if isinstance(term, Var):
            return variable(term.name)
        node, index = (term.node, term.index) if isinstance(term, Out) else (term, 0)
        if node not in known:
            operands = every(node.operands)
            known[node] = None if operands is None else results(node, operands)
        found = known[node]
        return None if found is None or index >= len(found) else found[index]

    def every(some: Sequence[Term]) -> list[T] | None:
        found = list[T]()
        for term in some:
            one = meaning(term)
            if one is None:
                return None
            found.append(one)
        return found

    return every(terms)
