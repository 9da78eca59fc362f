"""Soundness: every e-node that a rule made is equal to its class, proved instance by instance.

An e-node is in its class because an instance of a rule put it there, or because congruence did. So
each instance is stated as two programs, left side and right side over free inputs of the classes'
shapes, and the equivalence engine compares them: exactly, at every position, on shapes that it
shrinks as far as its theorem allows (docs/trust.md). Instances with equal shapes and attributes are
one question. `evaluate` is the other half, for small programs: it computes every class once and
every e-node from the classes of its operands, and so also covers congruence and this package.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntAttr, TensorType
from xdsl.ir import SSAValue

from ...dialects.arithmetic import Arithmetic
from ...dialects.builder import GraphBuilder
from ...dialects.errors import UserError
from ...dialects.op_reference import evaluate_op
from ...dialects.program import Program
from ...dialects.types import Array
from ..equivalence import compare
from ..equivalence.verdict import UNKNOWN
from ..rules.conditions import evaluate as evaluate_size
from ..rules.constants import ConstantStep, Steps, constant_steps
from ..rules.op_table import OpTable
from ..rules.rule import CONSTANTS, AttrValue, AttrVar, Node, Out, Rule, Size, Term, Var
from .answers import Instance
from .egraph import PROJECT, EGraph


@dataclass(frozen=True)
class CheckCounts:
    """How many instances were asked about, as how many questions, and those that fail."""

    instances: int
    questions: int
    failed: tuple[tuple[Instance, str], ...]  # with the reason


def check_instances(
    instances: Iterable[Instance], budget: float = 60.0, unproved: Collection[Rule] = ()
) -> CheckCounts:
    """Compare both sides of every instance.

    Args:
        budget: seconds for each question.
        unproved: rules that the user allowed although none proves them: only a difference that is
            found fails, not a comparison that stays undecided.
    """
    count, questions = 0, dict[Instance, None]()
    for instance in instances:
        count += 1
        questions.setdefault(instance)
    failed = list[tuple[Instance, str]]()
    for question in questions:
        left, right = (
            _program(question, side) for side in (question.rule.left, question.rule.right)
        )
        verdict = compare(left, right, budget=budget)
        undecided = verdict.kind == UNKNOWN and question.rule in unproved
        if not verdict.is_equal and not undecided:
            failed.append((question, verdict.text()))
    return CheckCounts(count, len(questions), tuple(failed))


def require_sound(instances: Iterable[Instance], unproved: Collection[Rule] = ()) -> CheckCounts:
    """Check all instances. Raises UserError that names the first rule that fails."""
    checked = check_instances(instances, unproved=unproved)
    for question, why in checked.failed:
        shapes = ", ".join(f"{name}: {type_}" for name, type_ in question.types)
        raise UserError(
            f"rule '{question.rule.name}' does not hold on {shapes}: {why}", where="check"
        )
    return checked


def _program(question: Instance, terms: Sequence[Term]) -> Program:
    """One side of an instance as a program over its variables."""
    build = GraphBuilder()
    made: dict[Term, SSAValue] = {}
    shapes = dict[str, Any](question.attributes)
    for name, type_ in question.types:
        assert isinstance(type_, TensorType)
        made[Var(name)] = build.input(name, type_.get_shape(), type_.element_type)
        shapes[name] = type_.get_shape()

    def attribute(value: AttrValue) -> Any:
        if isinstance(value, tuple):
            return [attribute(v) for v in value]
        if isinstance(value, AttrVar):
            return shapes[value.name]
        return evaluate_size(value.text, shapes) if isinstance(value, Size) else value

    def write(term: Term) -> SSAValue:
        if term in made:
            return made[term]
        if isinstance(term, Out):
            write(term.node)
            parts: Any = made[term.node].owner
            made[term] = parts.results[term.index]
            return made[term]
        assert isinstance(term, Node)
        given = {name: attribute(value) for name, value in term.attributes}
        if term.op in CONSTANTS:
            first: Any = question.types[0][1]
            made[term] = _constant(build, constant_steps(term.op, given), first.element_type)
            return made[term]
        count = len(given["sizes"]) if term.op == "split" else 1
        operands = [write(operand) for operand in term.operands]
        made[term] = build.op(term.op, *operands, results=count, **given)
        return made[term]

    for k, term in enumerate(terms):
        build.output(f"y{k}", write(term))
    return build.build()


def _constant(build: GraphBuilder, steps: Steps, element: Any) -> SSAValue:
    """As rules write it: the checker sees exact literals, and expressions over them."""
    values = list[SSAValue]()
    for step in steps:
        if isinstance(step, ConstantStep):
            operands = [values[k] for k in step.operands]
            values.append(build.op(step.op, *operands, **dict(step.attributes)))
        else:
            values.append(build.constant(step, element))
    return values[-1]


def evaluate(
    graph: EGraph, table: OpTable, leaves: Mapping[int, Array], weights: Mapping[str, Array]
) -> list[str]:
    """E-nodes that do not compute the value of their class, in words; empty where all do.

    Values are those of the reference in float64: with small whole numbers sums and products are
    exact. Meant for small programs: every class is computed and kept.

    Args:
        leaves: values of the classes of the inputs.
    """
    values: dict[int, list[Array]] = {c: [a] for c, a in leaves.items()}
    waiting, wrong = list(graph.nodes), list[str]()
    while waiting:
        later = list[Any]()
        for node in waiting:
            klass, operands = node.klass, node.operands
            if any(c not in values for c in operands) or (not operands and node.head.anchor):
                if operands:
                    later.append(node)
                continue
            if node.head.op == PROJECT:
                index = node.head.attributes[0][1]
                assert isinstance(index, IntAttr)
                found = [values[operands[0]][index.data]]
            else:
                sample = table.build(node.head, tuple(graph.types[c][0] for c in operands))
                assert sample is not None, node.head.op
                found = list(
                    evaluate_op(sample, [values[c][0] for c in operands], weights, Arithmetic.REAL)
                )
            known = values.setdefault(klass, found)
            same = all(np.allclose(a, b, 1e-9, 1e-9) for a, b in zip(known, found, strict=True))
            if not same:
                by = node.made_by or "the program"
                wrong.append(f"class {klass}: {node.head.op} made by {by} has another value")
        if len(later) == len(waiting):
            break
        waiting = later
    return wrong
