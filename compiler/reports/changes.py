"""What a step changed in a program: the ops it took away and those it put there, in groups.

A step is a pass or a search. An op that is printed the same at the same place before and after is
unchanged, also if what it reads was rewritten. Of the others, those belong together that read one
another or come from the same source node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from ...dialects.program import Program
from ...passes.cost.costs import Costs
from .printed_ops import PrintedOp, printed_ops

# Ops of one side that an entry shows; of more it says how many.
SHOWN = 24


@dataclass(frozen=True)
class ChangedOps:
    """Ops that became others; either side may be empty."""

    before: tuple[PrintedOp, ...]
    after: tuple[PrintedOp, ...]

    def places(self) -> set[str]:
        """The places of all its ops."""
        return {op.place for op in (*self.before, *self.after)}

    def entry(self) -> dict[str, Any]:
        """The change as part of a report's rewrite; `seconds` are modelled, before and after."""
        sides = (self.before, self.after)
        return {
            "before": _text(self.before),
            "after": _text(self.after),
            "seconds": [fsum(op.seconds for op in side) for side in sides],
        }


class ChangeRecorder:
    """Finds what each step changed in a program that is rewritten in place.

    Args:
        costs: price the ops.
    """

    def __init__(self, program: Program, costs: Costs) -> None:
        self.costs = costs
        self.seen, self.ops = self._look(program), printed_ops(program, costs)

    def take(self, program: Program) -> list[ChangedOps]:
        """The changes since the last call."""
        seen = self._look(program)
        if seen == self.seen:
            return []
        before, self.seen, self.ops = self.ops, seen, printed_ops(program, self.costs)
        return changes(before, self.ops)

    @staticmethod
    def _look(program: Program) -> list[tuple[Any, ...]]:
        """The ops with what they read and hold: equal after a step without effect."""
        ops = program.main.body.block.ops
        return [(op, *op.operands, *op.properties.values()) for op in ops]


def with_changes(
    entries: Iterable[Mapping[str, Any]], found: Sequence[ChangedOps]
) -> list[dict[str, Any]]:
    """Entries of a report, each with the change at its place if there is one.

    Ops without a source node share their places: `graph.relu` may be any of many.
    """
    several: dict[str, list[ChangedOps]] = {}
    for change in found:
        for place in sorted(change.places()):
            several.setdefault(place, []).append(change)
    at = {place: own[0] for place, own in several.items() if len(own) == 1 or source_of(place)}
    return [{**entry, **_entry(entry["place"], at)} for entry in entries]


def _entry(place: str, at: Mapping[str, ChangedOps]) -> dict[str, Any]:
    change = next((at[part] for part in place.split(" with ") if part in at), None)
    return {} if change is None else change.entry()


def changes(before: Sequence[PrintedOp], after: Sequence[PrintedOp]) -> list[ChangedOps]:
    """The groups of ops that differ, in the order of the first op of each."""
    pairs = paired(before, after)
    taken = set(pairs.values())
    gone = [k for k in range(len(before)) if k not in pairs]
    new = [k for k in range(len(after)) if k not in taken]
    groups = _Groups()
    for side, ops, changed in ((0, before, set(gone)), (1, after, set(new))):
        for k in sorted(changed):
            for read in ops[k].reads:
                if read in changed and ops[read].when != "source":
                    groups.join((side, k), (side, read))
            if source := source_of(ops[k].place):
                groups.join((side, k), source)
    found: dict[Any, tuple[list[PrintedOp], list[PrintedOp]]] = {}
    for side, ops, changed in ((0, before, gone), (1, after, new)):
        for k in changed:
            found.setdefault(groups.of((side, k)), ([], []))[side].append(ops[k])
    return [ChangedOps(tuple(first), tuple(second)) for first, second in found.values()]


def paired(before: Sequence[PrintedOp], after: Sequence[PrintedOp]) -> dict[int, int]:
    """Positions of ops that are the same before and after."""
    left: dict[tuple[str, str], list[int]] = {}
    for k, op in enumerate(after):
        left.setdefault((op.place, op.same), []).append(k)
    found: dict[int, int] = {}
    for k, op in enumerate(before):
        if others := left.get((op.place, op.same)):
            found[k] = others.pop(0)
    return found


def source_of(place: str) -> str:
    """The source node in a place, as `where` writes it: `graph.conv 'conv1'` gives `conv1`."""
    first, last = place.find("'"), place.rfind("'")
    return place[first + 1 : last] if 0 <= first < last else ""


def _text(ops: Sequence[PrintedOp]) -> str:
    lines = [op.text for op in ops[:SHOWN]]
    more = len(ops) - SHOWN
    return "\n".join([*lines, f"... and {more} more"] if more > 0 else lines)


class _Groups:
    """Sets that are joined: union and find."""

    def __init__(self) -> None:
        self.parent: dict[Any, Any] = {}

    def of(self, item: Any) -> Any:
        """The representative of an item's set."""
        parent = self.parent.setdefault(item, item)
        while parent != self.parent[parent]:
            parent = self.parent[parent]
        self.parent[item] = parent
        return parent

    def join(self, one: Any, other: Any) -> None:
        """Make one set of two."""
        self.parent[self.of(one)] = self.of(other)
