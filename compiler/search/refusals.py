"""Why a program that a search takes is refused: two prices, and the kernels behind the second.

A search prices its own form of a program: ops of a graph one by one, or scopes. What is accepted is
priced as the kernels that run, or measured. Where the two disagree the report says so.
"""

from __future__ import annotations

from typing import Any

from ...dialects.program import Program
from ...passes.cost.costs import Costs
from ...passes.search_result import SearchResult
from ..targets.levels import level_of, priced

CONTRACTIONS = ("gemm", "conv", "attention", "tiled_product")
Kinds = dict[str, tuple[int, float]]
"""For each kind of kernel how many there are, and their seconds."""


def claimed_ratio(before: Program, after: Program, result: SearchResult, costs: Costs) -> float:
    """What part of the time a search takes its program to need, by its own prices."""
    seconds = costs.program(before).seconds
    if not seconds:
        return 1.0
    if level_of(before) == level_of(after):
        return costs.program(after).seconds / seconds
    if after is not result.program:
        return 1.0
    return max(seconds + sum(one.delta for one in result.applied), 0.0) / seconds


def refusal(
    before: Program, after: Program, claimed: float, ratio: float, kind: str, costs: Costs
) -> dict[str, Any]:
    """The entry of a report about a program that the search takes and acceptance refuses."""
    kinds = [kinds_of(program, costs) for program in (before, after)]
    why = f"as kernels it has {in_words(kinds[1])} in place of {in_words(kinds[0])}"
    text = f"taken as {claimed:.3f} in the search, {kind} as {ratio:.3f} at acceptance: {why}"
    return {"search": claimed, "acceptance": ratio, "kind": kind, "why": text}


def kinds_of(program: Program, costs: Costs) -> Kinds:
    """The kernels that the target runs for a program, by kind."""
    found: Kinds = {}
    for op, cost in costs.breakdown(priced(program, costs.target.name)):
        name = op.name.rpartition(".")[2]
        count, seconds = found.get(name, (0, 0.0))
        found[name] = count + 1, seconds + cost.seconds
    return found


def contractions(kinds: Kinds) -> int:
    """How many of the kernels are products or convolutions."""
    return sum(kinds.get(name, (0, 0.0))[0] for name in CONTRACTIONS)


def simpler(after: Kinds, before: Kinds) -> bool:
    """Whether a program has fewer kernels, of no kind more, and they are modelled to be faster."""
    counts = {kind: count for kind, (count, _) in after.items()}
    more = any(count > before.get(kind, (0, 0.0))[0] for kind, count in counts.items())
    fewer = sum(counts.values()) < sum(count for count, _ in before.values())
    return fewer and not more and total(after) < total(before)


def total(kinds: Kinds) -> float:
    """Their seconds together."""
    return sum(seconds for _, seconds in kinds.values())


def in_words(kinds: Kinds) -> str:
    """For example `1 gemm (3.1 us), 3 loops (7.5 us)`."""
    parts = (f"{count} {name} ({s * 1e6:.1f} us)" for name, (count, s) in sorted(kinds.items()))
    return ", ".join(parts) or "nothing"
