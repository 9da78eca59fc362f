"""Which matches of a rule may be merged as one group, and how many pairs that makes.

Merges share what the outputs of their rule share; where cycles are guarded they stand at one level
of the program, or join weights alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .answers import Answers
from .encoding import Row
from .read_back import PatternMatch, Snapshot
from .rule_program import RuleOnTable

Group: TypeAlias = "dict[int, PatternMatch]"
"""Matches of one output by their class, one for each."""


@dataclass
class CycleGuards:
    """What keeps merges from closing cycles, on one snapshot; None of both where nothing does."""

    levels: Mapping[int, int] | None
    weights: set[int]

    @staticmethod
    def of(snapshot: Snapshot, guarded: bool) -> CycleGuards:
        """The guards of an e-graph as it is."""
        return CycleGuards(snapshot.levels() if guarded else None, snapshot.weights())

    def level(self, member: RuleOnTable, part: int, match: PatternMatch) -> int | None:
        """The level that what a match is merged with has to have; None where any will do."""
        if self.levels is None or self.is_weights_only(member, part, match):
            return None
        return self.levels[match.roots[0]]

    def is_weights_only(self, member: RuleOnTable, part: int, match: PatternMatch) -> bool:
        """Whether all that a merge joins of a match are weights."""
        named = zip(_names(member, part), match.tensors, strict=True)
        return bool(member.joined) and all(
            c in self.weights for n, c in named if n in member.joined
        )


def shared(member: RuleOnTable, part: int, match: PatternMatch) -> tuple[Row, Row]:
    """The classes and attributes that a match has to have in common with the others."""
    table, left = member.table.parts[part], member.left
    assert table.pattern is not None
    common = set(left.names[0].values())
    for names in left.names[1:]:
        common &= set(names.values())
    named = zip(_names(member, part), match.tensors, strict=True)
    classes = sorted((n, c) for n, c in named if n in common)
    start = len(table.types)
    values = match.question[start : start + table.wholes]
    wholes = (left.names[part][column[1:]] for column in table.columns)
    attributes = sorted((n, v) for n, v in zip(wholes, values, strict=False) if n in common)
    return tuple(c for _, c in classes), tuple(v for _, v in attributes)


def groups(member: RuleOnTable, found: Iterable[PatternMatch], guards: CycleGuards) -> list[Group]:
    """Matches of a symmetric rule's first output that may all be merged."""
    by_key = dict[object, Group]()
    for match in found:
        key = (shared(member, 0, match), guards.level(member, 0, match))
        by_key.setdefault(key, {}).setdefault(match.roots[0], match)
    return list(by_key.values())


def count_combinations(
    member: RuleOnTable, parts: Sequence[Sequence[PatternMatch]], guards: CycleGuards
) -> int:
    """How many combinations of matches a rule with several outputs has at most."""
    total = 0
    for light in (False, True) if guards.levels is not None and member.joined else (False,):
        counts = dict[object, list[int]]()
        for part, matches in enumerate(parts):
            for match in matches:
                if light and not guards.is_weights_only(member, part, match):
                    continue
                level = guards.levels[match.roots[0]] if guards.levels and not light else None
                key = (shared(member, part, match), level)
                counts.setdefault(key, [0] * len(parts))[part] += 1
        for numbers in counts.values():
            product = 1
            for number in numbers:
                product *= number
            total += product
    return total


def question(member: RuleOnTable, parts: Sequence[PatternMatch]) -> Row:
    """The question that these matches together are."""
    return tuple(parts[part].question[slot] for part, slot in member.table.sources)


def _names(member: RuleOnTable, part: int) -> list[str]:
    """The rule's names of the tensor variables of one output."""
    pattern = member.table.parts[part].pattern
    assert pattern is not None
    return [member.left.names[part][v] for v in pattern.tensors]


@dataclass
class GroupMerge:
    """A group that is being merged: what fits two by two, then the results; the rest among itself.

    Attributes:
        waiting: classes still to be merged, by numbers that egglog knows.
        current: those of them that are merged with each other now.
        pairs: the pairs that egglog was asked to merge, and the number of the result.
    """

    member: RuleOnTable
    group: Group
    waiting: list[int]
    current: list[int] = field(default_factory=list[int])
    pairs: list[Row] = field(default_factory=list[Row])

    def next_pairs(self, answers: Answers) -> list[Row]:
        """The pairs to merge now; none where the group is done."""
        while len(self.current) < 2 and len(self.waiting) > 1:
            first, *others = self.waiting
            self.current, self.waiting = [first], []
            for other in others:
                (self.current if self._fits(answers, first, other) else self.waiting).append(other)
        self.pairs = list[Row]()
        for a, b in zip(self.current[::2], self.current[1::2], strict=False):
            self.pairs.append((a, b, answers.new_class()))
        return self.pairs

    def finish(self, made: set[int]) -> None:
        """Go on from the results; of a pair that could not be merged the second waits.

        Args:
            made: the numbers of the results that there are.
        """
        odd = self.current[len(self.current) & ~1 :]
        self.current = [z if z in made else a for a, _, z in self.pairs] + odd
        self.waiting += [b for _, b, z in self.pairs if z not in made]

    def _fits(self, answers: Answers, a: int, b: int) -> bool:
        if a not in self.group or b not in self.group:
            return True  # the result of a merge: to be tried
        return answers.fits(self.member, question(self.member, (self.group[a], self.group[b])))
