"""Search the programs that rules derive from a few scopes, breadth first, and price each.

States are tuples of canonical roots. They are interned, so equal programs are one object and
identity is the fingerprint. Rules are applied to the innermost contractions. Their results are
memoised per scope, since states share most scopes. EinNet's converging stage is matching modulo
layout, once per new scope (price.py): the distance of a state from library kernels is part of its
price.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from ...dialects.canonical_types import Scope
from ..work_clock import charge, now
from .body import body_of
from .factor import factor_sum
from .flattening import may_be_rows, merge_rows
from .merges import merge_copies, traversal_merge
from .parts import may_be_parts, merge_parts
from .price import Priced, ScopePrices
from .replace import Replacer, Roots, scopes_of
from .rules import EAGER, RULES
from .side_by_side import MERGES, Merger, may_be_alike
from .step import DerivationRule, DerivationStep, ProposalOptions
from .sums import every_sum_split

MERGE_COPIES = "merge-copies"
# Eager rules shrink a program each time; more rounds than this would be a bug.
_MAX_ROUNDS = 1000
# Prices are sums of floats, whose order may differ.
_CLOSE = 1e-6
# What making and pricing a program takes.
SECONDS_A_STATE = 1.2e-3


TrailStep: TypeAlias = "tuple[str, str]"
"""A rule, and the outline of the program after it."""

Uses: TypeAlias = "tuple[tuple[str, int], ...]"
"""How often each limited rule was used on a path."""


class Stop(Enum):
    """Why a search ended."""

    EXHAUSTED = "exhausted"
    FOUND = "found"
    DEPTH = "depth"
    STATES = "states"
    TIME = "time"


@dataclass(frozen=True)
class DerivationSettings:
    """Bounds of a search.

    Attributes:
        depth: most rule applications on a path; eager rules do not count.
        states: most distinct programs.
        budget: CPU seconds, or those of counted work.
        flops: most operations of a state, as a multiple of the root's.
        keep: how many of the cheapest programs are returned; among those with the same library
            calls, the one with the shortest derivation and the cheapest.
        options: for the rules' proposals.
        rules: the rules to try.
        limits: whether the rules' own limits on their uses apply.
        regroup: whether scopes that read contractions are multiplied out: products of three
            factors, summed in another order, and sums of products that share an operand.
        guards: False omits the guards that make replacing sound (only for tests).
    """

    depth: int = 4
    states: int = 4000
    budget: float = 60.0
    flops: float = 3.0
    keep: int = 4
    options: ProposalOptions = field(default_factory=ProposalOptions)
    rules: tuple[DerivationRule, ...] = RULES
    limits: bool = True
    guards: bool = True
    regroup: bool = False


@dataclass(frozen=True)
class RuleApplication:
    """One rule application: the scope and its replacement; for merges also the second scope."""

    old: Scope  # the scope
    step: DerivationStep  # its replacement
    other: tuple[Scope, DerivationStep] | None = None


@dataclass(frozen=True, eq=False)
class DerivationState:
    """A program and its derivation; `applied` ends with the eager steps after the rule."""

    roots: Roots  # the program
    depth: int = 0  # rule applications
    parent: DerivationState | None = None
    applied: tuple[RuleApplication, ...] = ()
    used: Uses = ()  # uses of limited rules

    def path(self) -> list[DerivationState]:
        """The states from the root to this one."""
        found: list[DerivationState] = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found[::-1]

    def steps(self) -> list[RuleApplication]:
        """Every application from the root on, eager ones included."""
        return [a for state in self.path() for a in state.applied]

    def rules(self) -> list[str]:
        """Names of the rules on the path, without eager ones."""
        return [state.applied[0].step.rule for state in self.path() if state.parent is not None]

    def trail(self) -> tuple[TrailStep, ...]:
        """The rules on the path, each with the program's outline after it."""
        states = [state for state in self.path() if state.parent is not None]
        return tuple((s.applied[0].step.rule, outline(s.roots)) for s in states)


@dataclass(frozen=True)
class FoundProgram:
    """One of the cheapest programs."""

    state: DerivationState
    priced: Priced


@dataclass
class DerivationResult:
    """The programs that a search found, and its counters.

    Attributes:
        root: the program it began with, priced.
        best: the cheapest programs, cheapest first, with the root if it is that cheap.
        generated: rule applications that gave a program.
    """

    root: FoundProgram
    best: list[FoundProgram]
    states: list[DerivationState]  # all that were found
    generated: int
    per_depth: list[int]  # new states per depth
    seconds: float
    stop: Stop  # why it ended


Watch = Callable[[DerivationState], bool]


class Searcher:
    """Derives programs; memoises the rules' results per scope, across searches.

    Args:
        prices: of the target.
    """

    def __init__(self, prices: ScopePrices, settings: DerivationSettings):
        self.prices = prices
        self.settings = settings
        self.replacer = Replacer(settings.guards)
        self._known_steps: dict[Scope, list[tuple[DerivationRule, DerivationStep]]] = {}
        self._eager: dict[Scope, DerivationStep | None] = {}
        self._copies: dict[Scope, DerivationStep | None] = {}
        self._merges: dict[tuple[Scope, Scope], list[Merger]] = {}
        self._normal: dict[Roots, tuple[Roots, tuple[RuleApplication, ...]]] = {}

    def search(
        self, roots: Sequence[Scope], watch: Watch = lambda state: False
    ) -> DerivationResult:
        """Derive programs from the roots, until a limit is reached or `watch` says stop."""
        run = _Run(self, tuple(roots), watch)
        return run.run()

    def retrace(
        self, roots: Sequence[Scope], trail: Sequence[TrailStep], seconds: float
    ) -> FoundProgram | None:
        """The program that these rules give in this order at this cost, if any.

        For a program that differs from a searched one only in its leaves' names: canonical order
        depends on names, so the same step may look different.
        """
        states = [DerivationState(tuple(roots))]
        for name, wanted in trail:
            following: dict[Roots, DerivationState] = {}
            for state in states:
                for rule, applied, new in self.applications(state):
                    if applied[0].step.rule != name or new in following:
                        continue
                    if outline(new) == wanted:
                        used = uses_after(state, rule, applied)
                        following[new] = DerivationState(new, state.depth + 1, state, applied, used)
            states = list(following.values())
        priced = [FoundProgram(state, self.prices.program(state.roots)) for state in states]
        best = min(priced, key=lambda f: abs(f.priced.seconds - seconds), default=None)
        close = best is not None and abs(best.priced.seconds - seconds) <= seconds * _CLOSE
        return best if close else None

    # --- what can be done to a program ---

    def applications(
        self, state: DerivationState
    ) -> Iterator[tuple[DerivationRule | None, tuple[RuleApplication, ...], Roots]]:
        """Every rule application to an innermost contraction, with eager rules applied after it."""
        inner = innermost(state.roots)
        used = dict(state.used)
        for scope in inner:
            for rule, step in self._steps(scope):
                if self._spent(rule, used, state.roots, scope):
                    continue
                roots = self.replacer.replace(state.roots, scope, step)
                roots, eager = self.normalised(roots)
                yield rule, (RuleApplication(scope, step), *eager), roots
        for one, other in itertools.combinations(inner, 2):
            yield from self._merged(state.roots, one, other)
        if self.settings.regroup:
            yield from self._regrouped(state.roots, inner)
            yield from self._factored(state.roots)

    def _regrouped(
        self, roots: Roots, inner: Sequence[Scope]
    ) -> Iterator[tuple[None, tuple[RuleApplication, ...], Roots]]:
        """A product of three factors whose last two are multiplied first.

        The reader of a contraction is multiplied out, and other sums are taken inside.
        """
        for outer in scopes_of(roots):
            body = body_of(outer) if is_contraction(outer) else None
            for number, read in enumerate([] if body is None else body.reads):
                if body is None or read.source not in inner:
                    continue
                merge = traversal_merge(body, number)
                whole = None if merge is None else body_of(merge.new)
                if merge is None or whole is None:
                    continue
                between = self.replacer.replace(roots, outer, merge)
                for split in every_sum_split(whole, self.settings.options):
                    new = self.replacer.replace(between, merge.new, split)
                    new, eager = self.normalised(new)
                    steps = RuleApplication(outer, merge), RuleApplication(merge.new, split)
                    yield None, (*steps, *eager), new

    def _factored(self, roots: Roots) -> Iterator[tuple[None, tuple[RuleApplication, ...], Roots]]:
        """Products of one operand that a scope adds as one product."""
        for outer in scopes_of(roots):
            step = factor_sum(outer)
            if step is not None:
                new, eager = self.normalised(self.replacer.replace(roots, outer, step))
                yield None, (RuleApplication(outer, step), *eager), new

    def _steps(self, scope: Scope) -> list[tuple[DerivationRule, DerivationStep]]:
        if scope not in self._known_steps:
            body = body_of(scope)
            assert body is not None
            options = self.settings.options
            self._known_steps[scope] = [
                (rule, step)
                for rule in self.settings.rules
                for step in rule.propose(body, options)
                if step.new is not scope
            ]
        return self._known_steps[scope]

    def _spent(
        self, rule: DerivationRule, used: dict[str, int], roots: Roots, scope: Scope
    ) -> bool:
        if rule.limit is None or not self.settings.limits:
            return False
        return used.get(_use(rule, roots, scope), 0) >= rule.limit

    def _merged(
        self, roots: Roots, one: Scope, other: Scope
    ) -> Iterator[tuple[None, tuple[RuleApplication, ...], Roots]]:
        for made in self.mergers(one, other):
            new = self.replacer.replace(roots, one, made.first)
            new = self.replacer.replace(new, other, made.second)
            new, eager = self.normalised(new)
            yield None, (RuleApplication(one, made.first, (other, made.second)), *eager), new

    def mergers(self, one: Scope, other: Scope) -> list[Merger]:
        """The ways to compute two contractions as one."""
        if (one, other) not in self._merges:
            first, second = body_of(one), body_of(other)
            assert first is not None and second is not None
            alike = may_be_alike(first, second)
            made = [merge(first, second) for merge in MERGES] if alike else []
            made += [merge_parts(first, second)] if may_be_parts(first, second) else []
            found = [one for one in made if one is not None]
            if not found and may_be_rows(first, second):
                found = [one for one in [merge_rows(first, second)] if one is not None]
            self._merges[one, other] = found
        return self._merges[one, other]

    def may_merge(self, one: Scope, other: Scope) -> bool:
        """Whether trying to merge two contractions is worth the time."""
        first, second = body_of(one), body_of(other)
        assert first is not None and second is not None
        tests = may_be_alike, may_be_parts, may_be_rows
        return any(test(first, second) for test in tests)

    def normalised(self, roots: Roots) -> tuple[Roots, tuple[RuleApplication, ...]]:
        """Apply the eager rules until none applies."""
        if roots not in self._normal:
            applied: list[RuleApplication] = []
            new = roots
            for _ in range(_MAX_ROUNDS):
                found = self._eager_step(new)
                if found is None:
                    break
                applied.append(found)
                new = self.replacer.replace(new, found.old, found.step)
            self._normal[roots] = new, tuple(applied)
        return self._normal[roots]

    def _eager_step(self, roots: Roots) -> RuleApplication | None:
        for scope in scopes_of(roots):
            if scope not in self._copies:
                self._copies[scope] = merge_copies(scope)
            step = self._copies[scope] or self._shrunk(scope)
            keeps = step is not None and step.image is None
            if step is not None and (keeps or scope not in roots):
                return RuleApplication(scope, step)
        return None

    def _shrunk(self, scope: Scope) -> DerivationStep | None:
        if scope not in self._eager:
            body = body_of(scope)
            proposals = (
                step
                for rule in EAGER
                for step in (rule.propose(body, self.settings.options) if body is not None else ())
            )
            self._eager[scope] = next(proposals, None)
        return self._eager[scope]


def _use(rule: DerivationRule, roots: Roots, scope: Scope) -> str:
    """The key that a limit counts: uses of a rule under one root."""
    if rule.limit is None:
        return ""
    number = next(k for k, root in enumerate(roots) if scope in scopes_of((root,)))
    return f"{rule.name} {number}"


def innermost(roots: Sequence[Scope]) -> list[Scope]:
    """The contractions that read no other contraction, to which rules are applied."""
    every = [s for s in scopes_of(roots) if is_contraction(s)]
    below = {inner for s in every for inner in scopes_of((s,)) if inner is not s}
    return [s for s in every if not any(i in below and is_contraction(i) for i in _under(s))]


def _under(scope: Scope) -> list[Scope]:
    return [s for s in scopes_of((scope,)) if s is not scope]


def is_contraction(scope: Scope) -> bool:
    """Whether a scope sums a product of at least two reads."""
    body = body_of(scope)
    return body is not None and bool(body.sums) and len(body.reads) >= 2


def outline(roots: Sequence[Scope]) -> str:
    """The part of a program that does not depend on names and orders: its scopes' extents."""
    lines = [
        f"{sorted(scope.shape)} {sorted(sorted(term.sums) for term in scope.expr.terms)}"
        for scope in scopes_of(roots)
    ]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:12]


def flops_of(roots: Sequence[Scope]) -> float:
    """Multiplications and additions of the contractions."""
    total = 0.0
    for scope in scopes_of(roots):
        body = body_of(scope)
        if body is not None and body.sums and len(body.reads) >= 2:
            total += 2.0 * math.prod(body.extents)
    return total


Call = tuple[str, tuple[int, ...], tuple[bool, ...]]
Plan = tuple[tuple[Call, ...], tuple[int, ...]]


def _plan(roots: Sequence[Scope], priced: Priced) -> Plan:
    """The library calls of a program (extents, operands used in place), and the ranks of its
    generated scopes: a key of how it runs, independent of names and orders."""
    calls = [(m.kernel.name, m.contraction.extents, m.direct) for _, m in priced.choices]
    matched = {scope for scope, _ in priced.choices}
    ranks = sorted(len(s.shape) for s in scopes_of(roots) if s not in matched)
    return tuple(sorted((name, tuple(sorted(n)), tuple(d)) for name, n, d in calls)), tuple(ranks)


class _Run:
    """One search."""

    def __init__(self, searcher: Searcher, roots: Roots, watch: Watch):
        self.searcher = searcher
        self.settings = searcher.settings
        self.watch = watch
        self.started = now(time.process_time)
        self.first = DerivationState(roots)
        self.most_flops = self.settings.flops * flops_of(roots)
        self.seen: dict[Roots, DerivationState] = {roots: self.first}
        self.plans: dict[Plan, list[FoundProgram]] = {}
        self.generated = 0
        self.per_depth = [1]

    def run(self) -> DerivationResult:
        root = self._found(self.first)
        frontier: list[DerivationState] = [self.first]
        stop = Stop.EXHAUSTED
        if self.watch(self.first):
            frontier, stop = [], Stop.FOUND
        while frontier:
            if len(self.per_depth) > self.settings.depth:
                stop = Stop.DEPTH
                break
            frontier, reason = self._next_states(frontier)
            self.per_depth.append(len(frontier))
            if reason is not None:
                stop = reason
                break
        kept = [found for plan in self.plans.values() for found in plan]
        best = sorted(kept, key=lambda f: (f.priced.seconds, f.state.depth))[: self.settings.keep]
        seconds = now(time.process_time) - self.started
        states = list(self.seen.values())
        return DerivationResult(root, best, states, self.generated, self.per_depth, seconds, stop)

    def _next_states(
        self, frontier: Sequence[DerivationState]
    ) -> tuple[list[DerivationState], Stop | None]:
        """The states one rule further."""
        found: list[DerivationState] = []
        for state in self._ordered(frontier):
            for rule, applied, roots in self.searcher.applications(state):
                self.generated += 1
                charge(SECONDS_A_STATE)
                if flops_of(roots) > self.most_flops:
                    continue
                if roots in self.seen:
                    continue
                used = uses_after(state, rule, applied)
                new = DerivationState(roots, state.depth + 1, state, applied, used)
                self.seen[roots] = new
                found.append(new)
                self._found(new)
                if self.watch(new):
                    return found, Stop.FOUND
                if len(self.seen) >= self.settings.states:
                    return found, Stop.STATES
            if now(time.process_time) - self.started > self.settings.budget:
                return found, Stop.TIME
        return found, None

    def _ordered(self, frontier: Sequence[DerivationState]) -> Sequence[DerivationState]:
        """States to continue from; with several roots the cheapest first, where most are alike."""
        if len(self.first.roots) == 1:
            return frontier
        return sorted(frontier, key=lambda s: self.searcher.prices.program(s.roots).seconds)

    def _found(self, state: DerivationState) -> FoundProgram:
        """Price a state and keep it if it is among the cheapest."""
        found = FoundProgram(state, self.searcher.prices.program(state.roots))
        if math.isfinite(found.priced.seconds):
            plan = self.plans.setdefault(_plan(state.roots, found.priced), [])
            if len(plan) < 2:
                plan.append(found)
            elif found.priced.seconds < plan[-1].priced.seconds:
                plan[-1] = found
        return found


def uses_after(
    state: DerivationState, rule: DerivationRule | None, applied: Sequence[RuleApplication]
) -> Uses:
    """Uses of limited rules on the path to a state and one application further."""
    if rule is None or rule.limit is None:
        return state.used
    used = dict(state.used)
    name = _use(rule, state.roots, applied[0].old)
    used[name] = used.get(name, 0) + 1
    return tuple(sorted(used.items()))
