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
    """What was decided cannot be done at a place; the message says why."""


@dataclass(frozen=True)
class Proposal:
    """A program that computes a subprogram.

    Units: seconds are modelled.

    Attributes:
        write: the program, alone; None where it cannot be written.
        least: seconds that it takes at least; 0 where nothing is known of that.
        rank: of programs that are as fast the one of the least rank is taken.
        repeatable: whether the trail is enough to make it again in another process.
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
    """What one proposer has for a subprogram, the cheapest first.

    Attributes:
        before: modelled seconds of the subprogram as it stands.
        looked: what was looked at, in words; stop: why no more of it was.
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
class ChosenPlace:
    """A subprogram to be replaced as was decided, at the scopes of these names."""

    sub: Subprogram
    decision: Decision
    names: tuple[str, ...]


@dataclass(frozen=True)
class AppliedRewrite:
    """What was done at a place: passes that do the same, the rules applied, how it is proved."""

    pipeline: str
    rules: Sequence[tuple[str, Floats]]
    proof: Proof


class Proposer(ABC):
    """Proposes programs for subprograms.

    Attributes:
        rule: what reports call it.
        alike: proposals that take this many times as long as the fastest are as fast.
        finish: passes over the whole program after its rewrites.
        search: what it proposes for (`begin`).
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
        """The subprograms of several contractions that it looks at."""
        return ()

    def why_not(self, sub: Subprogram) -> str | None:
        """Why a subprogram is not worth its search, as far as it shows without one."""
        return None

    def least(self, sub: Subprogram) -> float:
        """Seconds that its programs for a contraction take, at least."""
        return 0.0

    @abstractmethod
    def propose(self, sub: Subprogram, seconds: float) -> Proposals:
        """Look for programs, for so many seconds at most."""

    @abstractmethod
    def apply(self, module: ModuleOp, place: ChosenPlace) -> AppliedRewrite:
        """Do what was decided, in place.

        Raises:
            DoesNotFitError: what was done of it stands.
            UserError: what was proposed is wrong, a bug.
        """

    def variants(self, places: Sequence[ChosenPlace]) -> Sequence[Sequence[ChosenPlace]]:
        """Other choices of places, between which the whole programs decide."""
        return ()

    def order(self, programs: Sequence[Program]) -> Sequence[int]:
        """The numbers of whole programs, the preferred one first."""
        return range(len(programs))
