"""The state of a search over subprograms, which proposers read."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.program import Program
from ..margins import ACCEPT, Pruning
from ..search_result import Limits
from ..work_clock import now
from .baselines import Baselines
from .decisions import DecisionRecord
from .find import Subprogram
from .prepare import prepared
from .prices import Prices


class SearchState:
    """The program, its subprograms, what they take, and the time left.

    Attributes:
        work: the program as scopes; what a proposer adds to it when it begins is used only where
            something is done there.
        parts: for each scope that a proposer added, the contractions in it.
        singles: the subprograms of one contraction; empty until all proposers have begun.
    """

    def __init__(self, program: Program, limits: Limits, prices: Prices, pruning: Pruning) -> None:
        self.limits, self.prices, self.pruning = limits, prices, pruning
        self.plain = prepared(program)
        self.work = self.plain.clone()
        self.parts: dict[str, tuple[str, ...]] = {}
        self.singles: list[Subprogram] = []
        self.started = now()
        self.record = DecisionRecord(under=limits.key)
        self.baselines = Baselines(self.work, prices, self.record)

    @property
    def end(self) -> float:
        """When the time is spent, on the clock of searches."""
        return self.started + self.limits.seconds

    def left(self, share: float = 1.0) -> float:
        """Seconds left of this share of the time."""
        return self.started + self.limits.seconds * share - now()

    def contractions(self, names: Sequence[str]) -> list[str]:
        """The contractions that scopes are, or hold."""
        return [part for name in names for part in self.parts.get(name, (name,))]

    def members(self, sub: Subprogram) -> list[Subprogram]:
        """The contractions of a subprogram, each as a subprogram of its own."""
        of = {name: single for single in self.singles for name in single.names}
        return [of[name] for name in self.contractions(sub.occurrences[0]) if name in of]

    def idle(self, what: str, sub: Subprogram, before: float, least: float) -> str | None:
        """Why a subprogram cannot save enough, given the least seconds of its programs."""
        saved = (before - least) * len(sub.occurrences)
        enough = saved >= self.pruning.saved * self.baselines.total(self.singles)
        if enough and least < before * ACCEPT.subprogram:
            return None
        return not_faster(what, before, least)


def not_faster(what: str, before: float, least: float) -> str:
    """Why something was not measured: its lower bound against the present seconds."""
    gain = "be faster" if least >= before * ACCEPT.subprogram else "save enough"
    return f"{what} could {gain}: {least * 1e6:.3g} us at the peak, {before * 1e6:.3g} us as it is"
