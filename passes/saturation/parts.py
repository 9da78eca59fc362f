"""An extraction problem without cycles falls apart at the classes that every choice needs.

Whoever reads such a class, it is paid once: how it is made has nothing to do with how its readers
are made, unless they may share another class. Each part is a small problem of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from .problem import Problem


def needed_classes(problem: Problem) -> set[int]:
    """The classes that every choice needs; the problem has no cycle."""
    needs = dict[int, int]()  # of each class, those it needs as a set of bits
    order = _operands_first(problem)
    for klass in order:
        common = -1
        for operands in problem.operands[klass]:
            own = 0
            for operand in operands:
                own |= needs[operand]
            common &= own
        needs[klass] = common | 1 << klass
    found = 0
    for root in problem.roots:
        found |= needs[root]
    return {klass for klass in order if found >> klass & 1}


def parts_of(problem: Problem) -> list[Problem]:
    """The problem's parts that leave a choice, largest last; together they decide all of it."""
    needed = needed_classes(problem)
    near = {klass: list[int]() for klass in problem.nodes}
    for klass, nodes in problem.operands.items():
        for operand in (o for operands in nodes for o in operands if o not in needed):
            near[klass].append(operand)
            near[operand].append(klass)
    found = [_part(problem, classes, needed) for classes in _connected(near)]
    return sorted((p for p in found if p.size() > len(p.nodes)), key=Problem.size)


def _part(problem: Problem, classes: list[int], needed: set[int]) -> Problem:
    """The problem of some classes: what is needed in any case costs its readers nothing."""
    operands = {
        c: [tuple(o for o in node if o not in needed) for node in problem.operands[c]]
        for c in classes
    }
    nodes, costs = {c: problem.nodes[c] for c in classes}, {c: problem.costs[c] for c in classes}
    return Problem(nodes, operands, costs, tuple(c for c in classes if c in needed))


def _connected(near: Mapping[int, list[int]]) -> list[list[int]]:
    """The classes in groups that are connected."""
    seen, groups = set[int](), list[list[int]]()
    for first in near:
        group, stack = list[int](), [first]
        while stack:
            klass = stack.pop()
            if klass not in seen:
                seen.add(klass)
                group.append(klass)
                stack += near[klass]
        if group:
            groups.append(group)
    return groups


def _operands_first(problem: Problem) -> list[int]:
    """All classes that the roots may need, operands before their readers."""
    seen, order = set[int](), list[int]()
    for root in problem.roots:
        stack = [(root, False)]
        while stack:
            klass, done = stack.pop()
            if done:
                order.append(klass)
            elif klass not in seen:
                seen.add(klass)
                stack.append((klass, True))
                stack += [
                    (o, False) for node in problem.operands[klass] for o in node if o not in seen
                ]
    return order
