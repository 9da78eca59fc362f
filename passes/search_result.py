"""The result of every search over programs: `optimize` treats them all alike.

A search pass (`graph-substitute`, `graph-saturate`, `algebra-derive`, `algebra-mutate`) is a thin
wrapper of a function `search(program, costs, limits) -> SearchResult` in its folder. Costs here are
modelled seconds; `optimize` measures the programs if the target runs here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..dialects.floats import Allowed, Floats
from ..dialects.program import Program
from .rules.rule import Rule

StopReason = Literal["finished", "time", "steps", "nodes", "memory", "interrupted"]
Proof = Literal["proved-by-z3", "proved-by-e-graph", "exact", "checked"]

Point: TypeAlias = "tuple[float, int, float]"
"""Of a search's curve: seconds since it began, candidates looked at, seconds of the best."""

Measure: TypeAlias = Callable[[Sequence[Program], float], "list[float]"]
"""Median seconds of programs with the same inputs, run in turn for a number of seconds."""


@dataclass(frozen=True)
class Limits:
    """What a search may spend, and what its rewrites may do to floats.

    Attributes:
        compiled: how measured programs are compiled, in words: a key of stored decisions.
        rules: the user's, beside those that ship; searches with rules take them.

    Units:
        seconds: of wall-clock time; steps: programs (or states) looked at.
    """

    seconds: float = 60.0
    steps: int = 100_000
    seed: int = 0
    floats: Allowed = field(default_factory=Allowed)
    compiled: str = ""
    rules: tuple[Rule, ...] = ()

    @property
    def key(self) -> str:
        """A key that separates decisions stored under other permissions or ways to compile."""
        return f"{self.floats.key} {self.compiled}"


@dataclass(frozen=True)
class Applied:
    """One rewrite of the result: the rule, the op it made or replaced, seconds saved (< 0).

    Attributes:
        became: the subprogram as IR after this step of a derivation; empty where it has no steps.
        equal: of an e-graph, the class of what the rule made and those that it reads, each with its
            forms.
    """

    rule: str
    place: str  # the op
    proof: Proof  # how the rule is known to hold
    delta: float  # seconds, modelled
    floats: Floats
    became: str = ""
    equal: Sequence[dict[str, Any]] = ()

    def entry(self) -> dict[str, Any]:
        """The rewrite as an entry of a report."""
        found = {"rule": self.rule, "place": self.place, "proof": self.proof, "delta": self.delta}
        became = {"became": self.became} if self.became else {}
        equal = {"equal": list(self.equal)} if self.equal else {}
        return {**found, **self.floats.entry(), **became, **equal}


@dataclass(frozen=True)
class Rejected:
    """An alternative that the search did not take."""

    rule: str
    place: str
    reason: str


@dataclass
class SearchResult:
    """The best program found, as a copy, and how it was found.

    Attributes:
        program: the best by the model; a copy of the input if nothing better was found.
        stop_reason: "finished" only if the whole space within its limits was searched.
        alternatives: next best programs, best first, worth measuring as well.
        best_after: seconds until the best was found, if the search records it.
        looked_at: what was searched, in a few words for a reader.
        curve: the best over time; a point where the search began, one for each that is better.
        matches: how often each rule added to an e-graph, where there is one.
    """

    program: Program
    stop_reason: StopReason
    applied: list[Applied] = field(default_factory=list[Applied])
    rejected: list[Rejected] = field(default_factory=list[Rejected])
    alternatives: list[Program] = field(default_factory=list[Program])
    best_after: float = 0.0
    looked_at: str = ""
    curve: list[Point] = field(default_factory=list[Point])
    matches: dict[str, int] = field(default_factory=dict[str, int])
