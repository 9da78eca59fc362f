"""What every search over programs returns: `optimize` takes them all in one way.

A search pass (`graph-substitute`, `graph-saturate`, `algebra-derive`, `algebra-mutate`) is a thin
face of a function `search(program, costs, limits) -> SearchResult` of its folder. Costs in here are
modelled seconds; `optimize` measures the programs where the target runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ..dialects.floats import Allowed, Floats
from ..dialects.program import Program

StopReason = Literal["finished", "time", "steps", "nodes", "memory", "interrupted"]
Proof = Literal["proved-by-z3", "proved-by-e-graph", "exact", "checked"]

Measure: TypeAlias = Callable[[Sequence[Program], float], "list[float]"]
"""Median seconds of programs that take the same inputs, run in turn for so many seconds."""


@dataclass(frozen=True)
class Limits:
    """What a search may spend, and what its rewrites may do to floats.

    Attributes:
        compiled: how what it measures is compiled, in words: decisions are remembered apart.

    Units:
        seconds: of wall-clock time; steps: programs (or states) looked at.
    """

    seconds: float = 60.0
    steps: int = 100_000
    seed: int = 0
    floats: Allowed = field(default_factory=Allowed)
    compiled: str = ""

    @property
    def key(self) -> str:
        """Tells apart what is remembered under other permissions and ways to compile."""
        return f"{self.floats.key} {self.compiled}"


@dataclass(frozen=True)
class Applied:
    """One rewrite of the result: the rule, the op it made or replaced, seconds it saves (< 0)."""

    rule: str
    place: str
    proof: Proof
    delta: float
    floats: Floats

    def entry(self) -> dict[str, Any]:
        """As an entry of a report."""
        found = {"rule": self.rule, "place": self.place, "proof": self.proof, "delta": self.delta}
        return {**found, **self.floats.entry()}


@dataclass(frozen=True)
class Rejected:
    """An alternative the search saw and did not take."""

    rule: str
    place: str
    reason: str


@dataclass
class SearchResult:
    """The best program found, as a copy, with how it came to be.

    Attributes:
        program: the modelled best; the input's copy where nothing better was found.
        stop_reason: "finished" only where the whole space within its caps was seen.
        alternatives: next best programs, best first, worth measuring as well.
        best_after: seconds until the best was found, where the search tells.
        looked_at: what was searched, in a few words for a reader.
    """

    program: Program
    stop_reason: StopReason
    applied: list[Applied] = field(default_factory=list[Applied])
    rejected: list[Rejected] = field(default_factory=list[Rejected])
    alternatives: list[Program] = field(default_factory=list[Program])
    best_after: float = 0.0
    looked_at: str = ""
