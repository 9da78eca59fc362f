"""Laws of two outputs that laws of a concat stand for.

`concat(t, u) = v` says as well that t and u are the two parts of v, `split(v).0` and `split(v).1`.
Read that way it merges two ops of one operand wherever their results go. The term with the split is
larger by one operator, so at the size limit enumeration does not meet it. Parts that share nothing
are left as they are: any two adds of a program could be put side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..instances import shapes_of
from ..rule import Node, Out, Term, operator_count, variables_of
from .candidates import RuleCandidate


def laws_of_parts(found: Sequence[RuleCandidate], most: int) -> list[RuleCandidate]:
    """The laws of two outputs whose split term has one operator more than `most`."""
    known = {(one.left, one.right) for one in found}
    made = [new for one in found for new in _parts(one, most)]
    return [one for one in dict.fromkeys(made) if (one.left, one.right) not in known]


def _parts(one: RuleCandidate, most: int) -> Iterator[RuleCandidate]:
    for whole, other in ((one.left, one.right), (one.right, one.left)):
        if len(whole) != 1 or not isinstance(whole[0], Node) or whole[0].op != "concat":
            continue
        operands, axis = whole[0].operands, whole[0].attribute("axis")
        if len(operands) != 2 or not isinstance(axis, int) or operator_count(other) != most:
            continue
        shapes = shapes_of(operands, dict(one.shapes))
        if shapes is None or not share_an_operand(operands, other):
            continue
        sizes = tuple(shape[axis] for shape in shapes)
        split = Node("split", other, (("axis", axis), ("sizes", sizes)))
        yield RuleCandidate(operands, (Out(split, 0), Out(split, 1)), one.shapes)


def share_an_operand(operands: Sequence[Term], other: tuple[Term, ...]) -> bool:
    """Whether the parts are ops that share an operand, and each reads what the other does not."""
    every = set(variables_of(other))
    first, second = (set(variables_of((term,))) for term in operands)
    ops = all(isinstance(term, Node) for term in operands)
    return (
        ops
        and every == first | second
        and bool(first & second)
        and not (first <= second or second <= first)
    )
