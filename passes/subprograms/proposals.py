"""What may stand in place of a subprogram, and who proposes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...dialects.floats import Floats
from ...dialects.program import Program
from ..search_result import Proof, StopReason
from .decisions import Decision, Trail
from .find import Subprogram
from .prepare import CLEAN
from .state import SearchState


class DoesNotFitError(Exception):
    """A decision cannot be applied at an occurrence; the message says why."""


@dataclass(frozen=True)
class Proposal:
    """A program that computes a subprogram.

    Units: seconds are modelled.

    Attributes:
        write: the program, alone; None if it cannot be written.
        least: a lower bound of its seconds; 0 if unknown.
        rank: among equally fast programs the one with the lowest rank is taken.
        repeatable: whether another process can make it again from the trail.
    """

    trail: Trail
    seconds: float
    write: Callable[[], Program | None]
    least: float = 0.0
    rank: Any = ()
    repeatable: bool = True
    proposer: str = ""


@dataclass(frozen=True)
class Proposals:
    """The programs of one proposer for a subprogram, the cheapest first.

    Attributes:
        before: modelled seconds of the subprogram as it stands.
        looked: what was searched, in words; stop: why the search stopped.
        how: what was done, in words.
        repeatable: whether more time would find the same.
    """

    before: float
    found: Sequence[Proposal]
    looked: str
    stop: StopReason = "finished"
    how: str = "searched"
    repeatable: bool = True


@dataclass(frozen=True)
class ChosenOccurrence:
    """A subprogram to be replaced as decided, at the scopes of these names."""

    sub: Subprogram
    decision: Decision
    names: tuple[str, ...]


@dataclass(frozen=True)
class AppliedRewrite:
    """What was done at an occurrence: equivalent passes, the applied rules, how it is proved.

    Attributes:
        steps: for each rule the subprogram after it, as IR; fewer where the last is the result.
    """

    pipeline: str  # the equivalent passes
    rules: Sequence[tuple[str, Floats]]
    proof: Proof
    steps: Sequence[str] = ()


class Proposer(ABC):
    """Proposes programs for subprograms.

    Attributes:
        rule: its name in reports.
        alike: proposals at most this much slower than the fastest count as equally fast.
        finish: passes over the whole program after its rewrites.
        search: the search it proposes for (`begin`).
    """

    rule: str
    alike: float = 1.0
    finish: tuple[ModulePass, ...] = CLEAN
    search: SearchState

    @property
    @abstractmethod
    def key(self) -> str:
        """What decides its proposals, beside the subprogram and the costs."""

    def begin(self, search: SearchState) -> None:
        """Get to know a search; scopes may be added to its program."""
        self.search = search

    def together(self) -> Sequence[Subprogram]:
        """The subprograms of several contractions that it handles."""
        return ()

    def why_not(self, sub: Subprogram) -> str | None:
        """Why a subprogram is not worth searching, as far as that is known without a search."""
        return None

    def least(self, sub: Subprogram) -> float:
        """A lower bound of the seconds of its programs for a contraction."""
        return 0.0

    @abstractmethod
    def propose(self, sub: Subprogram, seconds: float) -> Proposals:
        """Find programs, within this many seconds."""

    @abstractmethod
    def apply(self, module: ModuleOp, choice: ChosenOccurrence) -> AppliedRewrite:
        """Apply a decision, in place.

        Raises:
            DoesNotFitError: earlier steps remain applied.
            UserError: the proposal is wrong, a bug.
        """

    def variants(self, choices: Sequence[ChosenOccurrence]) -> Sequence[Sequence[ChosenOccurrence]]:
        """Other choices; the whole programs decide between them."""
        return ()

    def order(self, programs: Sequence[Program]) -> Sequence[int]:
        """The numbers of whole programs, the preferred one first."""
        return range(len(programs))
