"""Mutate whole programs: every distinct contraction once, and keep what is faster.

A program is split as for derivation (derivation/whole.py): at functions, maxima and data-dependent
reads. Where the target runs here, the cheapest corrected mutants by the model and the scope as it
stands are compiled alone and measured in turn; elsewhere the model decides. Whoever calls `search`
measures the whole program once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from ...dialects.algebra import ScopeOp
from ...dialects.program import Program, add_pipeline, where
from ...lowering.algebra_to_kernel.match import match_conv, match_gemm
from ..algebra_inline_copies import AlgebraInlineCopies
from ..algebra_sink_copies import AlgebraSinkCopies
from ..cost import Costs
from ..derivation.by_hand import find_scope
from ..derivation.isolate import isolate
from ..derivation.price import Prices
from ..derivation.whole import Subprogram, prepared, priced, run, split, weight
from ..search_result import Applied, Limits, Rejected, SearchResult, StopReason
from ..weights_only import weights_only
from .generate import Options
from .mutate import RULE, apply_to, modelled, replay, windows_of
from .search import Candidate, search_mutants

Measure = Callable[[Sequence[Program], float], "list[float]"]

# Views of consecutive mutants meet across what is elementwise, and cancel where they are inverses.
FINISH = (
    AlgebraSinkCopies(),
    AlgebraInlineCopies(),
    CommonSubexpressionElimination(),
    DeadCodeElimination(),
)
# Seconds of generation for one subprogram, and mutants of it that are proved and priced.
GENERATING, MOST = 10.0, 24
# Candidates of one subprogram that are measured; seconds of interleaved runs for them.
MEASURED, MEASURING = 5, 0.6
# A mutant must win by this much: less is noise.
MARGIN = 0.95
# Mutants that take at most this much longer than the fastest count as fast.
NOISE = 1.05
# Subprograms of a smaller share of the whole program are left alone.
LEAST_SHARE = 0.005


@dataclass(frozen=True)
class Decision:
    """What to do with a subprogram: the mutant to take, seconds of both, and why."""

    chosen: Candidate | None
    before: float
    after: float
    reason: str


def search(
    program: Program, costs: Costs, limits: Limits, measure: Measure | None = None
) -> SearchResult:
    """Mutate every contraction that gains.

    Args:
        measure: median seconds of programs, run in turn; None where the target does not run here.
    """
    return _Whole(program, costs, limits, measure).run()


class _Whole:
    """One search."""

    def __init__(
        self, program: Program, costs: Costs, limits: Limits, measure: Measure | None
    ) -> None:
        self.before, self.costs, self.measure = program, costs, measure
        self.work = prepared(program)
        self.end = time.perf_counter() + limits.seconds
        self.seed = limits.seed
        self.stop: StopReason = "finished"
        self.applied: list[Applied] = []
        self.rejected: list[Rejected] = []

    def run(self) -> SearchResult:
        """Decide for each subprogram, then rewrite them all."""
        subs = split(self.work.module, lambda known: Prices(known, self.costs.target))
        total = priced(subs)
        gains: list[tuple[Subprogram, Candidate]] = []
        try:
            for sub in subs:
                decision = self._decision(sub, weight(sub) < LEAST_SHARE * total)
                if decision.chosen is not None:
                    gains.append((sub, decision.chosen))
                    self._note(sub, decision.chosen, decision)
                else:
                    self._reject(sub, decision.reason)
        except KeyboardInterrupt:
            self.stop = "interrupted"
        if not gains:
            return SearchResult(self.before.clone(), self.stop, [], self.rejected)
        result = self._rewritten(gains)
        return SearchResult(result, self.stop, self.applied, self.rejected)

    def _note(self, sub: Subprogram, chosen: Candidate, decision: Decision) -> None:
        for name in sub.names:
            place = where(find_scope(self.work.module, name))
            delta = decision.after - decision.before
            self.applied.append(Applied(RULE, place, chosen.proof, delta))

    def _reject(self, sub: Subprogram, reason: str) -> None:
        place = where(find_scope(self.work.module, sub.names[0]))
        self.rejected.append(Rejected(RULE, place, reason))

    # --- one subprogram ---

    def _decision(self, sub: Subprogram, small: bool) -> Decision:
        if small:
            return Decision(None, 0.0, 0.0, "it takes too small a share of the program")
        left = self.end - time.perf_counter()
        if left <= 0:
            self.stop = "time"
            return Decision(None, 0.0, 0.0, "the time was spent")
        op = find_scope(self.work.module, sub.names[0])
        if self.costs.target.runs_here and is_regular(op):
            # The same work in other images; a core is as well used by any of them.
            return Decision(None, 0.0, 0.0, "it is regular: another shape gains nothing here")
        options = Options(seconds=min(left, GENERATING), seed=self.seed)
        options = replace(options, **windows_of(op))
        found = search_mutants([sub.root], options, lambda s: modelled(s, self.costs), MOST)
        if found.count.stopped != "finished":
            self.stop = found.count.stopped
        seen = f"{found.count.products} mutants, {found.count.kept} of them mostly right"
        if not found.candidates:
            return Decision(None, 0.0, 0.0, f"{seen}, none with less work")
        if self.measure is None:
            return self._modelled(sub, found.candidates, seen)
        return self._measured(op, sub, found.candidates, seen)

    def _modelled(self, sub: Subprogram, found: Sequence[Candidate], seen: str) -> Decision:
        before, best = modelled([sub.root], self.costs), found[0]
        reason = f"{seen}, the best modelled to take {best.seconds / before:.2f} of the time"
        chosen = best if best.seconds < before * MARGIN else None
        return Decision(chosen, before, best.seconds, reason)

    def _measured(
        self, op: ScopeOp, sub: Subprogram, found: Sequence[Candidate], seen: str
    ) -> Decision:
        """The mutant that won against the scope as it stands, each alone."""
        known = weights_only(self.work.main.body.block.ops)
        programs = [isolate(op, known)[0]]
        for candidate in found[:MEASURED]:
            alone, copy = isolate(op, known)
            apply_to(alone.module, copy, candidate)
            programs.append(alone)
        assert self.measure is not None
        seconds = self.measure(programs, MEASURING)
        least = min(seconds[1:])
        # Of those that are as fast, the first by its text: views of neighbours then cancel.
        close = [k for k in range(1, len(seconds)) if seconds[k] <= least * NOISE]
        best = min(close, key=lambda k: found[k - 1].mutant.text)
        reason = f"{seen}, the best measured to take {seconds[best] / seconds[0]:.2f} of the time"
        wins = seconds[best] < seconds[0] * MARGIN
        return Decision(found[best - 1] if wins else None, seconds[0], seconds[best], reason)

    # --- the program ---

    def _rewritten(self, gains: Sequence[tuple[Subprogram, Candidate]]) -> Program:
        """A copy of the program with these subprograms replaced."""
        made = self.work.clone()
        for sub, candidate in gains:
            for name in sub.names:
                apply_to(made.module, find_scope(made.module, name), candidate)
                add_pipeline(made.module, replay(name, candidate))
        run(made, FINISH)
        made.module.verify()
        return made


def is_regular(op: ScopeOp) -> bool:
    """Whether it is a matrix product, or a convolution with no stride, dilation or groups."""
    if match_gemm(op) is not None:
        return True
    found = match_conv(op)
    if found is None or found.transposed:
        return False
    return {*found.strides, *found.dilations, found.groups} == {1}


__all__ = ["search"]
