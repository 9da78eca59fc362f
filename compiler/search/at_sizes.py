"""Optimise a program with symbolic dims: one result for every size, which keeps its symbols.

    sizes     representative ones: seq = 16, seq = 128
    search    on the program with symbols, priced at the first of them
    take      what is faster at all of them together and slower at none
    compare   it with the source at every size that the guards allow: one that differs is dropped

Searches of the graph level take part: rules decide their conditions by the guards, and where these
do not decide, a rule does not match. No guard is added, so the result is for all sizes that the
source is for. Searches of lower levels need extents that are numbers.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...dialects.errors import UndecidedExtent, one_line, say
from ...dialects.program import Program
from ...dialects.shape_guards import shape_env
from ...dialects.specialize import specialize
from ...lowering.targets import target_named
from ...passes.cost.costs import load_costs
from ...passes.equivalence import Verdict
from ...passes.equivalence.all_sizes import compare_at_all_sizes
from ...passes.equivalence.verdict import DIFFERENT
from ...passes.margins import ACCEPT, MEASURE
from ...passes.search_result import SearchResult
from ...passes.work_clock import counted, now
from ..frontends.program_family import family_of
from ..frontends.symbolic_program import SymbolicProgram
from ..reports.report_schema import FORMAT, VERSION
from ..targets.cpu_options import CpuOptions
from .acceptance import program_seconds, search_entry
from .optimizer import FINISHED, NO_GAIN, Optimized, improve, rewritten_copy, why_not_measured
from .records import ComparisonRequest, Searched
from .strategies import Strategy, chosen, is_added

Sizes = Mapping[str, int]

# Seconds for the proof at every size, beside the budget. Rules are proved or checked exactly before
# they ship, so a result of which it shows nothing is returned, and the report says so.
PROVING = 60.0


def optimize_at_sizes(
    symbolic: Program,
    sizes: Sequence[Sizes],
    target: str,
    strategy: str,
    budget: float,
    seed: int,
    options: CpuOptions,
    cost_file: str | Path | None = None,
) -> Optimized:
    """Search, then compare; see `api.optimize`.

    Raises:
        UserError: a guard does not hold at one of the sizes, a symbol has none or a size no symbol.
    """
    started = time.perf_counter()
    described = target_named(target)
    unmeasured = why_not_measured(symbolic, described)
    here = described.with_units(options.threads) if described.runs_here else described
    costs = load_costs(here, cost_file)
    request = ComparisonRequest(described, costs, seed, options, started + budget, unmeasured)
    search = SizedSearch(tuple(sizes), request, symbolic)
    strategies = list[Strategy]()
    for one in chosen(strategy, "kernel", unmeasured is None):
        if one.level != "graph":
            search.reject(one, "below the graph level extents are numbers: --shape binds them")
        elif is_added(one):
            search.reject(
                one, "what a plug-in finds is compared at fixed shapes: --shape binds them"
            )
        else:
            strategies.append(one)
    try:
        with counted(request.end) if unmeasured is not None else nullcontext():
            end = now() + budget * MEASURE.searching
            for number, one in enumerate(strategies):
                search.run(one, max(end - now(), 0.0) / (len(strategies) - number))
                if search.found.stop_reason == "interrupted":
                    break
    except KeyboardInterrupt:
        search.interrupted = True
    return search.settled(strategy, budget, started)


def with_numbers(symbolic: Program, sizes: Sizes) -> Program:
    """The program at sizes."""
    program = symbolic.clone()
    program.weights = program.weights.apart()
    specialize(program.module, sizes, program.weights)
    return program


def at(symbolic: Program, sizes: Sizes) -> Program:
    """The program at sizes, rewritten as a session rewrites it."""
    return improve(with_numbers(symbolic, sizes))


def shown_at(better: Optimized, sizes: Sizes) -> Optimized:
    """A result and its source at sizes, for what shows programs of fixed shapes."""
    assert better.original is not None
    result, source = (with_numbers(one, sizes) for one in (better, better.original))
    return Optimized(result.module, result.weights, better.source, better.report, source)


@dataclass
class SizedSearch:
    """One search at several sizes: the best program so far, and what a report says.

    Args:
        source: with symbols, at the graph level.
    """

    sizes: tuple[Sizes, ...]
    request: ComparisonRequest
    source: Program
    found: Searched = field(init=False)
    interrupted: bool = False  # outside of a search, which says so itself

    def __post_init__(self) -> None:
        for sizes in self.sizes:
            at(self.source, sizes)  # what is wrong with them is said before the search
        self.costs = self.request.costs.at(self.sizes[0])
        with shape_env(self.source.main).active():
            better, steps, rewrites, rejected = rewritten_copy(
                self.source, self.costs, self.request.options.floats
            )
        self.found = Searched(better, rewrites, rejected)
        self.steps = steps

    def seconds(self, *programs: Program) -> list[list[float]]:
        """Of each size, the seconds of each program."""
        return [
            program_seconds([at(program, sizes) for program in programs], self.request)
            for sizes in self.sizes
        ]

    def run(self, strategy: Strategy, seconds: float) -> None:
        """Search so long, and take the best that is faster."""
        floats = self.request.options.floats
        if not floats.allows(strategy.floats):
            self.reject(strategy, floats.why_not(strategy.floats))
            return
        begun, limits = time.perf_counter(), self.request.limits(seconds)
        say(f"search {strategy.name}: up to {seconds:.1f} s")
        try:
            with shape_env(self.source.main).active():
                result = strategy.search(self.found.program, self.costs, limits, None)
        except UndecidedExtent as error:  # it asks for more than the guards say
            self.reject(strategy, one_line(str(error)))
        else:
            self._take(strategy, result)
        self.found.seconds[strategy.name] = time.perf_counter() - begun

    def reject(self, strategy: Strategy, reason: str) -> None:
        """Say why a search has no part."""
        self.found.rejected.append({"rule": strategy.name, "place": "main", "reason": reason})

    def _take(self, strategy: Strategy, result: SearchResult) -> None:
        found, module = self.found, self.found.program.module
        same = result.program.module.is_structurally_equivalent(module)
        entry = search_entry(strategy, result, 0 if same else 1)
        found.searches.append(entry)
        found.rejected += [vars(rejected) for rejected in result.rejected]
        if same:
            return
        ratios = [after / before for before, after in self.seconds(found.program, result.program)]
        kind = "modelled" if self.request.unmeasured is not None else "measured"
        mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
        least, worst = (
            (ACCEPT.modelled_program, 1.0)
            if kind == "modelled"
            else (ACCEPT.program, ACCEPT.alike_programs)
        )
        entry["kept"] = mean < least and max(ratios) <= worst
        text = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        entry["reason"] = f"its best program was {kind} to take {text} of the time at the sizes"
        if entry["kept"]:
            found.program = result.program
            found.rewrites += [{**a.entry(), "search": strategy.name} for a in result.applied]

    def settled(self, strategy: str, budget: float, started: float) -> Optimized:
        """The best program where it is proved to be equal, else the source and the reason."""
        source, found, request = self.source, self.found, self.request
        verdict = self._verdict()
        reason = ""
        if verdict is not None and verdict.kind == DIFFERENT:
            reason = f"{verdict.kind}: {verdict.text()}"
            found = replace(found, program=source.clone(), rewrites=[])
            found.rejected.append({"rule": "all", "place": "main", "reason": reason})
        times = self.seconds(source, found.program)
        gained = verdict is not None and not reason
        stop = "interrupted" if self.interrupted else found.stop_reason
        if stop not in ("interrupted", "time"):
            stop = FINISHED if gained else NO_GAIN
        message = found.nothing if verdict is None else _message(verdict)
        report = {
            "format": FORMAT,
            "version": VERSION,
            "source": source.source,
            "target": request.target.name,
            "strategy": strategy,
            "seed": request.seed,
            "budget_s": budget,
            "threads": request.options.threads,
            "elapsed_s": time.perf_counter() - started,
            "stages_s": found.seconds,
            "stop_reason": stop,
            "cost": {
                "before": times[0][0],
                "after": times[0][1],
                "unit": "s",
                "kind": "modelled" if request.unmeasured is not None else "measured",
            },
            "sizes": [
                {"at": dict(sizes), "before": before, "after": after}
                for sizes, (before, after) in zip(self.sizes, times, strict=True)
            ],
            "passes": [vars(step) for step in self.steps],
            "rewrites": found.rewrites,
            "rejected": found.rejected,
            **found.entries,
            "verdict": {} if verdict is None else verdict.as_json(),
            "message": message,
        }
        return Optimized(found.program.module, found.program.weights, source.source, report, source)

    def _verdict(self) -> Verdict | None:
        """Whether the best program equals the source at every size; None where it is the source."""
        source, best = self.source, self.found.program
        if source.module.is_structurally_equivalent(best.module):
            return None
        say("compare: the result with the input, at every size")
        begun = time.perf_counter()
        families = (family_of(SymbolicProgram(program)) for program in (source, best))
        verdict = compare_at_all_sizes(*families, seed=self.request.seed, budget=PROVING)
        self.found.seconds["compare"] = time.perf_counter() - begun
        return verdict


def _message(verdict: Verdict) -> str:
    """What a user is told of the comparison at every size."""
    if verdict.is_equal:
        return "equal at every size that the guards allow"
    kept = (
        "rewrites not kept" if verdict.kind == DIFFERENT else "not shown to be equal at every size"
    )
    return f"{kept}: {verdict.text()}"


__all__: tuple[str, ...] = ("SizedSearch", "Sizes", "at", "optimize_at_sizes", "shown_at")
