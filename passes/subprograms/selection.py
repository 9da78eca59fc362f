"""Choose the best proposal for a subprogram, and the occurrences at which to apply it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..margins import ACCEPT
from .decisions import Decision
from .find import Subprogram
from .proposals import ChosenOccurrence, Proposal
from .state import not_faster


def best_of(
    none: Decision, before: float, found: Sequence[Proposal], seconds: Sequence[float], alike: float
) -> Decision:
    """The decision for the best of some proposals by their seconds; `none` where none gains."""
    limit = min(seconds, default=before) * alike
    close = [k for k, taken in enumerate(seconds) if taken <= limit]
    best = min(close, key=lambda k: found[k].rank, default=None)
    if best is None:
        return replace(none, before=before, after=before)
    done = replace(none, before=before, after=seconds[best])
    modelled = none.kind == "modelled"
    if seconds[best] >= before * (ACCEPT.modelled_program if modelled else ACCEPT.subprogram):
        return done
    one = found[best]
    return replace(done, trail=one.trail, modelled=one.seconds, proposer=one.proposer)


def chosen_occurrences(
    decided: Sequence[tuple[Subprogram, Decision]],
    parts: Mapping[str, Sequence[str]],
    by_time_left: bool = False,
) -> list[ChosenOccurrence]:
    """Where to apply decisions: one for several contractions only if it saves more than theirs.

    Args:
        parts: for each scope that holds several contractions, those.
        by_time_left: instead, if it takes less time than theirs. The two differ where contractions
            were measured apart and together: a run has a cost of its own.
    """
    saved: dict[str, float] = {}
    left: dict[str, float] = {}
    alone: list[ChosenOccurrence] = []
    together: list[tuple[float, ChosenOccurrence, set[str]]] = []
    for sub, decision in decided:
        taken_by = decision.before if decision.trail is None else decision.after
        left |= {names[0]: taken_by for names in sub.occurrences if len(sub.roots) == 1}
        for names in sub.occurrences if decision.trail is not None else ():
            more = decision.before - decision.after
            members = {part for name in names for part in parts.get(name, (name,))}
            if len(members) == 1:
                saved[names[0]] = more
                alone.append(ChosenOccurrence(sub, decision, names))
            else:
                more -= sum(saved.get(name, 0.0) for name in members)
                if by_time_left:
                    more = sum(left.get(name, 0.0) for name in members) - decision.after
                together.append((more, ChosenOccurrence(sub, decision, names), members))
    taken: set[str] = set()
    occurrences: list[ChosenOccurrence] = []
    for more, occurrence, members in sorted(together, key=lambda one: -one[0]):
        if more > 0 and not taken & members:
            taken |= members
            occurrences.append(occurrence)
    return [*occurrences, *(occurrence for occurrence in alone if occurrence.names[0] not in taken)]


def declined(decision: Decision) -> str:
    """Why a subprogram stays as it is."""
    if not decision.measured and decision.after == decision.before:
        return f"{decision.looked}, none that is faster"
    if decision.kind == "bound":
        return not_faster(f"{decision.looked}, none", decision.before, decision.after)
    ratio = decision.after / decision.before if decision.before else 1.0
    return f"{decision.looked}, the best {decision.kind} to take {ratio:.2f} of the time"
