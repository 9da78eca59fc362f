"""Decide what to do with one subprogram: search it, then measure or ask the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ...dialects.algebra import ScopeOp
from ...dialects.program import Program
from ...dialects.weights_only import weights_only
from ...lowering.algebra_to_kernel.match import match_conv
from ..cost import Costs
from .alone import Alone
from .bound import least_of_program
from .by_hand import find_scope
from .derive import apply_found
from .isolate import isolate_all
from .price import ScopePrices
from .remembered import Decision
from .search import DerivationSettings, FoundProgram, Searcher
from .side_by_side import BATCH, SHARED
from .step import ProposalOptions
from .subprograms import Subprogram

Measure = Callable[[Sequence[Program], float], "list[float]"]

# A block of rows is a matrix that fills the registers' tiles many times over.
BLOCK = 128
SETTINGS = DerivationSettings(
    depth=3, states=1500, budget=20.0, keep=7, options=ProposalOptions(block=BLOCK)
)
# Two contractions need a derivation each before they are one; blocks of each would hide that.
PAIR = replace(SETTINGS, depth=5, states=4000, keep=200, options=ProposalOptions())
PAIR_KEEP = 4
# Seconds of interleaved runs for one subprogram.
MEASURING = 0.6
# A program must win by this much: less is noise.
MARGIN = 0.96


def settings_of(sub: Subprogram, settings: DerivationSettings) -> DerivationSettings:
    """Bounds for a subprogram: pairs go further, larger groups are merged as they stand."""
    if len(sub.roots) == 1:
        return settings
    states = settings.states if settings.states < SETTINGS.states else PAIR.states
    pair = replace(PAIR, states=states, budget=settings.budget)
    if len(sub.roots) == 2:
        return pair
    return replace(pair, depth=len(sub.roots) - 1, rules=())


class Chooser:
    """Decides for the subprograms of one program.

    Args:
        measure: median seconds of programs, run in turn; None where the target does not run here.
    """

    def __init__(self, work: Program, costs: Costs, measure: Measure | None, alone: Alone) -> None:
        self.work, self.costs, self.measure, self.alone = work, costs, measure, alone

    def decide(self, sub: Subprogram, settings: DerivationSettings, seconds: float) -> Decision:
        """Search for at most so many CPU seconds, and choose."""
        settings = settings_of(sub, settings)
        settings = replace(settings, budget=min(settings.budget, seconds))
        searcher = Searcher(ScopePrices(sub.known, costs=self.costs), settings)
        result = searcher.search(sub.roots)
        best = result.best if len(sub.roots) == 1 else merged(result.best)[:PAIR_KEEP]
        trail, modelled, measured = None, 0.0, 0
        if self.measure is None:
            kind, before, chosen = "modelled", sub.native, next(iter(best), None)
            after = math.inf if chosen is None else chosen.priced.seconds
            if after >= before * MARGIN:
                chosen = None
        else:
            decided = self._measured(self.measure, sub, searcher, best)
            kind, before, chosen, after, measured = decided
        if chosen is not None:
            trail, modelled = chosen.state.trail(), chosen.priced.seconds
        states, stop = len(result.states), result.stop.value
        return Decision(trail, modelled, before, after, kind, stop, states, measured)

    def _measured(
        self, measure: Measure, sub: Subprogram, searcher: Searcher, best: Sequence[FoundProgram]
    ) -> tuple[str, float, FoundProgram | None, float, int]:
        """How it was decided, seconds as it stands, what won against that, its seconds."""
        ops = [find_scope(self.work.module, name) for name in sub.places[0]]
        known = weights_only(self.work.main.body.block.ops)
        given = isolate_all(ops, known)[0]
        alone = self.alone.seconds(sub)
        best = [f for f in best if not (len(ops) == 1 and stands(f, ops[0]))]
        calls = [least_of_program(f.state.roots, f.priced, searcher.prices) for f in best]
        least = [self.alone.least_seconds(operations) for operations in calls]
        pairs = zip(best, least, strict=True)
        able = [found for found, seconds in pairs if seconds < alone * MARGIN]
        if not able:
            return "bound", alone, None, min(least, default=alone), 0
        programs, chosen = [given], list[FoundProgram | None]([None])
        for found in able:
            program, copies = isolate_all(ops, known)
            if apply_found(program.module, copies, searcher, found) is None:
                continue
            if not any(_same(program, other) for other in programs):
                programs.append(program)
                chosen.append(found)
        if len(programs) == 1:
            return "measured", alone, None, alone, 0
        seconds = measure(programs, MEASURING)
        number = min(range(1, len(seconds)), key=seconds.__getitem__)
        wins = seconds[number] < seconds[0] * MARGIN
        found = chosen[number] if wins else None
        return "measured", seconds[0], found, seconds[number], len(seconds) - 1


def merged(found: Sequence[FoundProgram]) -> list[FoundProgram]:
    """The programs in which two contractions have become one."""
    return [f for f in found if {SHARED, BATCH} & set(f.state.rules())]


def stands(found: FoundProgram, op: ScopeOp) -> bool:
    """Whether a program is the convolution that the op runs as already: no rule, nothing moved."""
    if found.state.parent is not None or match_conv(op) is None:
        return False
    return all(m.kernel.name == "conv" and all(m.direct) for _, m in found.priced.choices)


def _same(one: Program, other: Program) -> bool:
    return one.module.is_structurally_equivalent(other.module)
