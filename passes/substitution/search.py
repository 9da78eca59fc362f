"""Cost-based backtracking over substitutions: TASO's search, with cheap steps.

A queue of programs, cheapest first. Ties: the newest first, and rewrites that undo an earlier one
last. The cheapest is taken out, every match in it gives another program, and those that cost less
than `alpha` times the best so far join the queue. A program is worked out as costs and numbers when
it joins and made only when it is taken out; programs seen before are not made again. After a
rewrite only what is near it is matched anew.

Any program in the queue equals the input if the rules hold: the search can stop at any moment.

Source: Jia et al., TASO, SOSP 2019, algorithm 2.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush, nsmallest
from itertools import pairwise
from typing import NamedTuple

from xdsl.context import Context
from xdsl.ir import Block

from ...dialects.errors import say
from ...dialects.floats import ROUNDING
from ...dialects.program import Program
from ..cost.costs import Costs
from ..rules.conditions import names_in
from ..rules.floats import allowed_rules, floats_of
from ..rules.graph_form import Change, Graph, Tables, encode, node_of
from ..rules.match import GraphMatcher, RuleMatch, unusable
from ..rules.op_table import OpTable
from ..rules.rule import Rule, variables_of
from ..rules.rule_set import reported_proof, rules_named
from ..rules.terms import attribute_names, sizes_in, without_names
from ..search_result import (
    Applied,
    Limits,
    Point,
    Proof,
    Rejected,
    SearchResult,
    StopReason,
)
from ..work_clock import charge, now
from .apply import Applier, RefusedError
from .layouts import fold_transposes, unfold_transposes, with_unfolded_transposes
from .write import write

MAX_QUEUED = 200_000
FOLDED = "fold-transposes-into-products"
"""What a report calls the gain of layouts alone: no rule, for layouts.py says it exactly."""
_GRAIN = 0.02
"""Part of what `alpha` allows that makes no difference in the queue."""
_SLACK = 1e-9  # of two costs: sums in another order differ by less


_TOLD = 20  # programs between two lines of what is looked at
_TICKS = 64
# Seconds of counted work: of a node that is matched, a replacement, and a node of a program taken.
_A_TICK, _A_REPLACEMENT, _A_NODE = 5e-6, 1.2e-4, 2e-5


class _TimeIsUpError(Exception):
    """The time limit was reached within a round."""


@dataclass(frozen=True)
class SubstitutionSettings:
    """Settings of the search.

    Attributes:
        alpha: programs that cost up to this much times the best are looked at.
        programs: how many programs are taken out of the queue (TASO's n).
        patience: how many of them after the best; 0 for any number.
        rejected: how many of the best alternatives not taken are reported.
        alternatives: how many of the next best programs are returned.
        layouts: whether the layouts of products are searched as well (layouts.py).
    """

    rules: tuple[Rule, ...] = ()
    alpha: float = 1.05
    programs: int = 1000
    patience: int = 0
    rejected: int = 10
    alternatives: int = 2
    layouts: bool = True


class Replacement(NamedTuple):
    """A match with its change; None if it cannot be applied."""

    match: RuleMatch
    change: Change | None


class Queued(NamedTuple):
    """A program in the queue: a rewrite of one taken out before; the least is taken out first.

    Attributes:
        bucket: its cost in steps of `_GRAIN`.
        goes_back: whether the rewrite undoes an earlier one.
        newest: minus the number of programs queued before.
    """

    bucket: float
    goes_back: bool
    newest: int
    cost: float
    parent: State
    replacement: Replacement


@dataclass
class State:
    """A program taken out of the queue.

    Attributes:
        replacements: what may be done to it next.
        replacement: what made it of its parent.
    """

    graph: Graph
    replacements: list[Replacement]
    parent: State | None = None
    replacement: Replacement | None = None

    def path(self) -> list[State]:
        """The states from the input to this one."""
        found, state = list[State](), self
        while state is not None:
            found.append(state)
            state = state.parent
        return found[::-1]


@dataclass
class FoundGraph:
    """The result of searching one graph.

    Attributes:
        taken: programs taken out of the queue, doubles not counted; worked_out: changes.
        best_after: seconds until the best was found.
        refused: by rule and reason, how often a match could not be applied.
    """

    best: State
    others: list[State]  # next best, best first
    stop_reason: StopReason
    taken: int
    worked_out: int
    seconds: float
    best_after: float
    refused: dict[tuple[str, str], int]
    curve: list[Point]


@dataclass
class Search:
    """One search over one graph."""

    tables: Tables  # shared by all graphs
    settings: SubstitutionSettings
    limits: Limits  # of time and programs
    refused: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    worked_out: int = 0  # replacements computed
    _queue: list[Queued] = field(default_factory=list[Queued])
    _seen: set[int] = field(default_factory=set[int])
    _count: int = 0
    _trimmed: bool = False
    _grain: float = 0.0
    _input: frozenset[int] = frozenset()
    _taken: list[State] = field(default_factory=list[State])
    _best: State = field(init=False)
    _best_after: float = 0.0
    _curve: list[Point] = field(default_factory=list[Point])

    def __post_init__(self) -> None:
        self._end = now() + self.limits.seconds
        self._ticks = 0
        self.matcher = GraphMatcher(self.tables, self.settings.rules, self._tick)
        self.applier = Applier(self.tables, self.settings.rules)

    def run(self, graph: Graph) -> FoundGraph:
        """Search from a graph until the queue is empty or a limit is reached."""
        started = time.perf_counter()
        self._end = now() + self.limits.seconds
        self._best = State(graph, [])
        self._taken = [self._best]
        self._curve = [(0.0, 1, graph.seconds)]
        self._seen.add(graph.mark)
        self._input = frozenset(graph.nodes)
        self._grain = (self.settings.alpha - 1) * _GRAIN * graph.seconds
        try:
            reason = self._rounds(self._best, started)
        except _TimeIsUpError:
            reason = "time"
        except KeyboardInterrupt:
            reason = "interrupted"
        others = nsmallest(
            self.settings.alternatives + 1,
            (s for s in self._taken if s is not self._best),
            key=lambda s: s.graph.seconds,
        )
        below = [s for s in others if s.graph.seconds < graph.seconds]
        return FoundGraph(
            self._best,
            below[: self.settings.alternatives],
            reason,
            len(self._taken),
            self.worked_out,
            time.perf_counter() - started,
            self._best_after,
            self.refused,
            self._curve,
        )

    def _rounds(self, first: State, started: float) -> StopReason:
        """Take out one program after the other. The results so far are in fields."""
        fingerprints = {first.graph.fingerprint()}
        for match in self.matcher.everywhere(first.graph):
            first.replacements.append(self._replacement(first.graph, match))
        self._push_all(first, first.graph.seconds)
        while True:
            reason = self._over(len(self._taken))
            state = (
                None if reason is not None else self._pop(self._best.graph.seconds, fingerprints)
            )
            if state is None:
                return reason or ("memory" if self._trimmed else "finished")
            self._taken.append(state)
            if len(self._taken) % _TOLD == 0:
                say(f"search substitute: {len(self._taken):,} programs")
            charge(len(state.graph.nodes) * _A_NODE)
            if state.graph.seconds < self._best.graph.seconds * (1 - _SLACK):
                self._best, self._best_after = state, time.perf_counter() - started
                self._curve.append((self._best_after, len(self._taken), state.graph.seconds))
            assert state.parent is not None and state.replacement is not None
            assert state.replacement.change is not None
            change = state.replacement.change
            state.replacements = self._replacements(state.parent, change, state.graph)
            self._push_all(state, self._best.graph.seconds)

    def _tick(self) -> None:
        """End a round when the time is up. The clock is read now and then."""
        self._ticks += 1
        if self._ticks % _TICKS:
            return
        charge(_TICKS * _A_TICK)
        if now() > self._end:
            raise _TimeIsUpError

    def _over(self, taken: int) -> StopReason | None:
        if now() > self._end:
            return "time"
        patience = self.settings.patience or taken
        over = taken >= self.settings.programs or self.worked_out >= self.limits.steps
        return "steps" if over or taken - self._curve[-1][1] > patience else None

    def _pop(self, best: float, fingerprints: set[int]) -> State | None:
        """The cheapest program not seen before, without its replacements; None at the end."""
        while self._queue:
            _, _, _, cost, parent, replacement = heappop(self._queue)
            if cost > self.settings.alpha * best * (1 + _SLACK):
                continue
            assert replacement.change is not None
            if self.applier.closes_cycle(parent.graph, replacement.match, replacement.change):
                self._refuse(replacement.match, "it would close a cycle")
                continue
            graph = parent.graph.after(replacement.change)
            found = graph.fingerprint()
            if found in fingerprints:
                continue
            fingerprints.add(found)
            return State(graph, [], parent, replacement)
        return None

    def _replacements(self, parent: State, change: Change, graph: Graph) -> list[Replacement]:
        """The parent's replacements that stay valid, recomputed near the change, and new ones."""
        entries = parent.graph.users
        users = {u for old, _ in change.redirected for u in entries.get(old, ())}
        made = [number for number, _ in change.made]
        rewritten = {*users, *change.dead, *made}
        around = rewritten | {node_of(new) for _, new in change.redirected}
        for number in (*change.dead, *made):
            entry = graph.nodes.get(number) or parent.graph.nodes[number]
            around.update(node_of(v) for v in entry.operands)
        kept = list[Replacement]()
        for replacement in parent.replacements:
            if not rewritten.isdisjoint(replacement.match.nodes):
                continue
            near = replacement.change is None or not around.isdisjoint(replacement.change.reads)
            kept.append(self._replacement(graph, replacement.match) if near else replacement)
        known = {replacement.match for replacement in kept}
        new = self.matcher.near(graph, (*made, *sorted(users)))
        return kept + [self._replacement(graph, m) for m in new if m not in known]

    def _replacement(self, graph: Graph, match: RuleMatch) -> Replacement:
        self._tick()
        self.worked_out += 1
        charge(_A_REPLACEMENT)
        try:
            return Replacement(match, self.applier.change(graph, match))
        except RefusedError as reason:
            self._refuse(match, str(reason))
            return Replacement(match, None)

    def _bucket(self, cost: float) -> float:
        """Costs of one level are equal for the queue: a detour through free rewrites ends soon."""
        return round(cost / self._grain) if self._grain else cost

    def _refuse(self, match: RuleMatch, reason: str) -> None:
        key = (self.settings.rules[match.rule].name, reason)
        self.refused[key] = self.refused.get(key, 0) + 1

    def _push_all(self, state: State, best: float) -> None:
        most = self.settings.alpha * best * (1 + _SLACK)
        for replacement in state.replacements:
            if replacement.change is None or state.graph.seconds + replacement.change.delta > most:
                continue
            mark = (state.graph.mark + replacement.change.mark) & ((1 << 64) - 1)
            if mark in self._seen:
                continue
            self._seen.add(mark)
            self._count += 1
            cost = state.graph.seconds + replacement.change.delta
            back = any(number in self._input for number, _ in replacement.change.made)
            bucket = self._bucket(cost)
            heappush(self._queue, Queued(bucket, back, -self._count, cost, state, replacement))
        if len(self._queue) > MAX_QUEUED:
            self._trimmed = True
            self._queue = nsmallest(MAX_QUEUED // 2, self._queue, key=lambda item: item[:3])
            heapify(self._queue)


# --- programs -----------------------------------------------------------------------------------


def search_block(
    block: Block,
    costs: Costs,
    limits: Limits,
    settings: SubstitutionSettings,
    context: Context | None = None,
) -> tuple[FoundGraph, tuple[Rule, ...], list[Rejected]]:
    """Search from a block, without changing it.

    Returns what was found, the rules that could take part, and what was not taken, with reasons.
    """
    tables = Tables(OpTable(context), costs)
    skipped = list[tuple[str, str]]()
    usable = list[Rule]()
    given = settings.rules
    if settings.layouts:
        given = tuple(variant for rule in given for variant in with_unfolded_transposes(rule))
    for rule in given:
        reason = unusable(rule, tables)
        if reason:
            skipped.append((rule.name, reason))
        else:
            usable.append(rule)
    chosen = replace(settings, rules=tuple(usable))
    search = Search(tables, chosen, limits)
    found = search.run(encode(block, tables))
    return found, chosen.rules, _rejected(found, tables, chosen) + _by_reason(skipped)


def search(
    program: Program,
    costs: Costs,
    limits: Limits,
    *,
    rules: str | Sequence[Rule] = "default",
    settings: SubstitutionSettings | None = None,
    context: Context | None = None,
) -> SearchResult:
    """The best program by modelled cost that the rules reach; a copy of the input if none.

    Args:
        rules: a rule set's name, a file, or rules.
        settings: everything but the rules.
    """
    chosen = rules_named(rules) if isinstance(rules, str) else tuple(rules)
    chosen, refused = allowed_rules((*chosen, *limits.rules), limits.floats)
    given = settings or SubstitutionSettings()
    settled = replace(given, rules=both_ways(chosen))
    start = program.clone()
    if given.layouts:
        unfold_transposes(start.main.body.block)
    found, usable, rejected = search_block(start.main.body.block, costs, limits, settled, context)
    rejected += refused
    before = costs.program(program).seconds
    programs = [_written(start, state, given) for state in (found.best, *found.others)]
    seconds = [costs.program(p).seconds for p in programs]
    if seconds[0] >= before * (1 - _SLACK):
        return SearchResult(program.clone(), found.stop_reason, [], rejected, curve=found.curve)
    others = [p for p, s in zip(programs[1:], seconds[1:], strict=True) if s < before]
    applied = applied_by(found.best, usable)
    gained = found.best.path()[0].graph.seconds - before
    if gained < -_SLACK * before:
        applied.insert(0, Applied(FOLDED, "main", "exact", gained, ROUNDING))
    stop, after = found.stop_reason, found.best_after
    return SearchResult(programs[0], stop, applied, rejected, others, after, curve=found.curve)


def both_ways(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules, and their reverses if these bind all they need."""
    known = {(without_names((*rule.left, *rule.right)), len(rule.left)) for rule in rules}
    found = list(rules)
    for rule in rules:
        back = rule.reversed()
        law = (without_names((*back.left, *back.right)), len(back.left))
        if law not in known and _is_bound(back):
            known.add(law)
            found.append(back)
    return tuple(found)


def _is_bound(rule: Rule) -> bool:
    """Whether a rule's left side binds every variable of its right side and conditions."""
    tensors, attributes = set(rule.variables), {*attribute_names(rule.left)}
    wanted = set(variables_of(rule.right)) | {n for text in rule.where for n in names_in(text)}
    read = {n for text in sizes_in((*rule.left, *rule.right)) for n in names_in(text)}
    wanted |= read | {*attribute_names(rule.right)}
    return wanted <= tensors | attributes


def _written(start: Program, state: State, settings: SubstitutionSettings) -> Program:
    better = start.clone()
    if state.parent is not None:
        write(state.graph, better.main.body.block)
    if settings.layouts:
        fold_transposes(better.main.body.block)
    return better


def applied_by(state: State, rules: Sequence[Rule]) -> list[Applied]:
    """The rewrites that lead to a state, in order."""
    tables = state.graph.tables
    proofs: dict[str, Proof] = {rule.name: reported_proof(rule) for rule in rules}
    path, steps = state.path(), list[Applied]()
    for before, after in pairwise(path):
        assert after.replacement is not None
        delta = after.graph.seconds - before.graph.seconds
        match = after.replacement.match
        rule = rules[match.rule]
        place = tables.places[before.graph.nodes[node_of(match.roots[0])].origin]
        steps.append(Applied(rule.name, place, proofs[rule.name], delta, floats_of(rule)))
    return steps


def _rejected(found: FoundGraph, tables: Tables, settings: SubstitutionSettings) -> list[Rejected]:
    """Replacements of the best program that lose, smallest loss first, then the refused ones."""
    graph = found.best.graph
    replacements = [m for m in found.best.replacements if m.change is not None]
    replacements = nsmallest(settings.rejected, replacements, key=_delta)
    entries = list[Rejected]()
    for replacement in replacements:
        origin = graph.nodes[node_of(replacement.match.roots[0])].origin
        reason = f"it would change the cost by {_delta(replacement) * 1e6:+.3g} us"
        rule = settings.rules[replacement.match.rule]
        entries.append(Rejected(rule.name, tables.places[origin], reason))
    return entries + (_by_reason(list(found.refused)) if settings.rejected else [])


def _by_reason(refused: Sequence[tuple[str, str]]) -> list[Rejected]:
    """One line for all rules that could not be used for the same reason."""
    rules = dict[str, dict[str, None]]()
    for name, reason in refused:
        rules.setdefault(reason, {})[name] = None
    return [
        Rejected(next(iter(names)), "main", reason + _others(len(names) - 1))
        for reason, names in rules.items()
    ]


def _others(count: int) -> str:
    return f"; so it is with {count} other rules" if count else ""


def _delta(replacement: Replacement) -> float:
    return replacement.change.delta if replacement.change is not None else 0.0
