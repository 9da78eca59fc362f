"""The loop: ask, answer, do, within limits.

A round has three phases. Ask: left sides fill tables of matches. Answer: what is new of types and
attributes is looked at once, in Python, with the ops' own inference. Do: matches joined with
answers make the right sides.

egglog cannot be stopped inside a step, so how many matches and e-nodes a step may make is bounded
beforehand: a rule whose patterns may have more matches than a round may take is set aside for that
round, and where the e-nodes of all matches might not fit, each rule is done by itself, those with
the fewest first, and undone where there are too many.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...dialects.errors import say
from ..search_result import StopReason
from ..work_clock import charge
from .answers import Answers, Instance
from .bounds import Bounds
from .egraph import EGraph
from .encode import Encoded
from .encoding import Row
from .engine import ANALYSIS, Engine
from .groups import CycleGuards, Group, GroupMerge, count_combinations, groups
from .limits import LimitReached, Watch
from .read_back import Snapshot
from .rule_program import MatchTable, RuleOnTable

_SECONDS_A_MATCH = 1e-5
_MEBIBYTES_A_MATCH = 1e-3
_SECONDS_A_NODE = 5e-5  # to read it out of egglog and price it
_SECONDS_A_NODE_A_ROUND = 1e-5
_SECONDS_A_QUESTION = 5e-4


@dataclass
class Saturation:
    """What the loop did.

    Attributes:
        instances: the types and attributes that rules were applied to, each once.
        applied: matches that were done, by rule; matches found again after a union count again.
        refused: how often a right side was not a program, by rule and first reason.
        aside: rules left out of a round, with the largest bound of their matches.
    """

    stop_reason: StopReason
    iterations: int  # rounds
    seconds: float
    nodes: list[int]  # e-nodes after each round
    applied: dict[str, int]
    refused: dict[tuple[str, str], int]
    aside: dict[str, float]
    instances: list[Instance]


@dataclass
class SaturationRun:
    """One run over one program."""

    encoded: Encoded
    engine: Engine
    watch: Watch
    applied: dict[str, int] = field(default_factory=dict[str, int])  # matches done, by rule
    aside: dict[str, float] = field(default_factory=dict[str, float])
    sizes: list[int] = field(default_factory=list[int])  # e-nodes after each round
    _rounds_begun: int = 0
    _fresh: dict[int, int] = field(default_factory=dict[int, int])
    _merged_groups: dict[int, list[set[int]]] = field(default_factory=dict[int, list[set[int]]])

    def __post_init__(self) -> None:
        graph = self.encoded.graph
        self._program = len(graph.types)
        self.answers = Answers(self.engine.program, self._program)
        self.engine.insert(graph)
        self.sizes = [self.engine.size()]

    def run(self, multi: int) -> Saturation:
        """Saturate; may be called again to go on.

        Args:
            multi: rules with several outputs take part in so many rounds, the first.
        """
        begun = time.perf_counter()
        reason: StopReason = "steps"
        try:
            reason = self._rounds(multi)
        except LimitReached as stop:
            reason = stop.reason
        except KeyboardInterrupt:
            reason = "interrupted"
        self._analyse()
        self.sizes[self._rounds_begun :] = [self.engine.size()]
        return Saturation(
            reason,
            self._rounds_begun,
            time.perf_counter() - begun,
            self.sizes,
            self.applied,
            self.answers.refused,
            self.aside,
            self.answers.instances,
        )

    def graph(self) -> EGraph:
        """The e-graph as it is; the values of `encoded` get their classes in it."""
        return self._snapshot().graph(self.encoded)

    def _snapshot(self) -> Snapshot:
        return Snapshot(self.engine, self._program)

    def _guards(self, snapshot: Snapshot) -> CycleGuards:
        return CycleGuards.of(snapshot, self.engine.program.guarded)

    def _rounds(self, multi: int) -> StopReason:
        """Rounds until nothing changes, once more after a merge; their sizes are added.

        Raises:
            LimitReached: there is no time, memory or room left.
        """
        last = False
        for number in range(self.watch.caps.iterations):
            self.watch.check()
            self.watch.room(self.sizes[-1])
            whole = self._ask(merging=number < multi)
            self._rounds_begun += 1
            self._answer()
            if number == 0 and multi and not self._merged_groups:
                self._merge_groups()
            changed = self._do()
            self.sizes.append(self.engine.size())
            say(f"search saturate: round {number + 1}, {self.sizes[-1]:,} e-nodes")
            if not changed and multi and not last:
                last = True
                changed = self._merge_new_groups()
            if not changed:
                return "finished" if whole else "steps"
        return "steps"

    # --- ask ---

    def _ask(self, merging: bool) -> bool:
        """Find matches; whether no rule was set aside. Raises LimitReached."""
        snapshot, program = self._snapshot(), self.engine.program
        bounds = Bounds(snapshot.kinds(), snapshot.classes(), program.prefix)
        most = {t.number: bounds.of(t.terms) for t in program.tables if not t.parts}
        total, fitting = 0.0, list[MatchTable]()
        for number in sorted(most, key=lambda n: most[n]):
            total += most[number]
            if total > self.watch.caps.matches:
                total -= most[number]
                break
            fitting.append(program.tables[number])
        self.watch.foretold(total * _SECONDS_A_MATCH, total * _MEBIBYTES_A_MATCH)
        if len(fitting) == len(most):
            self._match(["ask"])
        else:
            self._match([f"ask-{table.name}" for table in fitting])
        whole = len(fitting) == len(most)
        asked = {table.number for table in fitting}
        for member in program.members:
            parts = member.table.parts or (member.table,)
            if any(p.number not in asked for p in parts) and (merging or len(parts) == 1):
                self._set_aside(member, max(most[p.number] for p in parts))
        return self._merge(asked, self.watch.caps.matches - total) and whole if merging else whole

    def _set_aside(self, member: RuleOnTable, bound: float) -> None:
        name = member.rule.name
        self.aside[name] = max(bound, self.aside.get(name, 0.0))

    def _merge(self, asked: set[int], room: float) -> bool:
        """Join the matches of rules with several outputs; whether none was set aside."""
        sizes = self.engine.sizes()
        snapshot, whole, rulesets = None, True, list[str]()
        for member in self.engine.program.members:
            table = member.table
            if not table.parts:
                continue
            if any(part.number not in asked for part in table.parts):
                whole = False
                continue
            count = 1
            for part in table.parts:
                count *= sizes[part.name]
            if count > room:
                snapshot = snapshot or self._snapshot()
                parts = [snapshot.matches(part) for part in table.parts]
                count = count_combinations(member, parts, self._guards(snapshot))
            if count > room:
                whole = False
                self._set_aside(member, count)
                continue
            room -= count
            rulesets.append(f"merge-{table.name}")
        self._match(rulesets)
        return whole

    def _match(self, rulesets: Sequence[str]) -> None:
        """Run rulesets that find matches, and count these by table."""
        _, matches = self.engine.run(*(f"(run {name} 1)" for name in rulesets))
        for name, count in matches.items():
            number = int(name.split()[0])
            self._fresh[number] = self._fresh.get(number, 0) + count
            charge(count * _SECONDS_A_MATCH)

    # --- answer ---

    def _answer(self) -> None:
        """Look at the questions that are new."""
        self.engine.run("(run question 1)")
        questions = self.engine.drain("want")
        charge(len(questions) * _SECONDS_A_QUESTION)
        rows = self.answers.rows(questions)
        if rows:
            self.engine.give(rows)

    # --- do ---

    def _do(self) -> bool:
        """Make the right sides; whether that changed anything. Raises LimitReached."""
        fresh, self._fresh = self._fresh, {}
        most = {m: fresh.get(m.table.number, 0) * m.adds for m in self.engine.program.members}
        size, caps = self.engine.size(), self.watch.caps
        total = sum(most.values())
        seconds = total * _SECONDS_A_MATCH + (size + total) * _SECONDS_A_NODE
        self.watch.foretold(seconds, total * _MEBIBYTES_A_MATCH)
        if size + total <= caps.nodes:
            changed, matches = self.engine.run("(run do 1)")
            self._count(matches)
            self._analyse()
            return changed
        changed = False
        for member in sorted(most, key=lambda m: most[m]):
            self.watch.check()
            command = f"(run do-{member.number} 1)"
            may_fit = self.engine.size() + most[member] <= caps.nodes
            done = self.engine.run(command) if may_fit else self.engine.tried(command, caps.nodes)
            if done is None:
                raise LimitReached("nodes")
            self._count(done[1])
            changed = changed or done[0]
        self._analyse()
        return changed

    def _count(self, matches: dict[str, int]) -> None:
        """Take down what was done, by rule."""
        for rule, count in matches.items():
            name = self.engine.program.members[int(rule.split()[0])].rule.name
            if count:
                self.applied[name] = self.applied.get(name, 0) + count

    def _analyse(self) -> None:
        """Work out what depends on weights alone."""
        self.engine.run(ANALYSIS)
        charge(self.engine.size() * _SECONDS_A_NODE_A_ROUND)

    # --- merges ---

    def _merge_groups(self) -> None:
        """Merge whole groups of the program's ops. Raises LimitReached."""
        snapshot, merges = self._snapshot(), list[GroupMerge]()
        guards = self._guards(snapshot)
        for member in self._repeatable():
            for group in groups(member, snapshot.matches(member.table.parts[0]), guards):
                self._begin(member, group, merges)
        self._run_merges(merges)

    def _merge_new_groups(self) -> bool:
        """Merge whole groups that came about since; whether there are any. Raises LimitReached.

        Of a group only what something outside of it reads is merged: all of the group is there at
        once, so the others are not needed on the way.
        """
        snapshot, merges = self._snapshot(), list[GroupMerge]()
        guards = self._guards(snapshot)
        readers = snapshot.readers(self.encoded.graph.roots)
        for member in self._repeatable():
            known = self._merged_groups.get(member.number, [])
            found = [{snapshot.known(c) for c in classes} for classes in known]
            self._merged_groups[member.number] = found
            matches = snapshot.matches(member.table.parts[0])
            live = [m for m in matches if m.roots[0] < self._program]
            kept = [
                {c: m for c, m in group.items() if readers.get(c, set[int]()) - group.keys()}
                for group in groups(member, live, guards)
            ]
            for group in sorted(kept, key=len, reverse=True):
                if not any(group.keys() <= others for others in found):
                    self._begin(member, group, merges)
        return self._run_merges(merges)

    def _repeatable(self) -> list[RuleOnTable]:
        return [m for m in self.engine.program.members if m.repeated is not None]

    def _begin(self, member: RuleOnTable, group: Group, merges: list[GroupMerge]) -> None:
        self._merged_groups.setdefault(member.number, []).append(set(group))
        merges.append(GroupMerge(member, group, list(group)))

    def _run_merges(self, merges: Sequence[GroupMerge]) -> bool:
        """Take the steps of all merges together; whether any was taken. Raises LimitReached."""
        taken = False
        while True:
            active = [merge for merge in merges if merge.next_pairs(self.answers)]
            if not active:
                return taken
            adds = sum(len(merge.pairs) * merge.member.adds for merge in active)
            self.watch.check()
            self.watch.room(self.engine.size() + adds)
            rows = dict[str, list[Row]]()
            for merge in active:
                rows.setdefault(f"pair-{merge.member.table.name}", []).extend(merge.pairs)
            self.engine.give(rows)
            parts = dict.fromkeys(merge.member.table.parts[0].name for merge in active)
            self._match([*(f"ask-{name}" for name in parts), "group-ask"])
            self._answer()
            changed, matches = self.engine.run("(run group-do 1)")
            self._count(matches)
            self._analyse()
            taken = taken or changed
            made = {z for (z,) in self.engine.drain("made")}
            for merge in active:
                merge.finish(made)
