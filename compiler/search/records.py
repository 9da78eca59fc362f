"""Data classes: what is asked of searches and measurements, what searches gave, how it compares."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ...dialects.program import Program
from ...lowering.targets import Target
from ...passes.cost.costs import Costs
from ...passes.margins import ACCEPT
from ...passes.rules.rule import Rule
from ...passes.search_result import Limits, StopReason
from ...passes.work_clock import is_counted, now
from ..targets.cpu_options import CpuOptions


@dataclass(frozen=True)
class ComparisonRequest:
    """How programs are to be compared, and how much of the budget is left for it.

    Attributes:
        unmeasured: why they are not measured; None where they are.
        end: when the budget is spent, on the clock of searches (passes/work_clock.py).
        stop: likewise by `time.perf_counter`, where that is another clock.
        rules: the user's, which searches take beside those that ship.
    """

    target: Target
    costs: Costs
    seed: int
    options: CpuOptions
    end: float
    unmeasured: str | None = None
    rules: tuple[Rule, ...] = ()
    stop: float = math.inf

    def wall(self, end: float) -> float:
        """When work that ends at `end` is stopped, by `time.perf_counter`."""
        return self.stop if is_counted() else end

    def limits(self, seconds: float) -> Limits:
        """Those of a search of so many seconds."""
        compiled = f"{self.options.threads} threads, {self.options.key}"
        floats = self.options.floats
        return Limits(seconds, seed=self.seed, floats=floats, compiled=compiled, rules=self.rules)

    @property
    def left(self) -> float:
        """Seconds left of the budget."""
        return max(self.end - now(), 0.0)


@dataclass
class Searched:
    """What the searches gave together; `program` is the given one where none gained.

    Attributes:
        seconds: what each search took, its measurements included.
    """

    program: Program
    rewrites: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    rejected: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # likewise
    searches: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])  # likewise
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    def followed_by(self, later: Searched) -> Searched:
        """Both as one, the later having begun where this one ended."""
        return Searched(
            later.program,
            self.rewrites + later.rewrites,
            self.rejected + later.rejected,
            self.searches + later.searches,
            {**self.seconds, **later.seconds},
        )

    @property
    def entries(self) -> dict[str, Any]:
        """What a report says of the searches, and of how many the result was refused."""
        refused = sum("refused" in search for search in self.searches)
        return {"searches": self.searches, "refused": refused}

    @property
    def nothing(self) -> str:
        """What is said where nothing was found: whether it was looked for to the end."""
        cut = [search["strategy"] for search in self.searches if search["stop_reason"] == "time"]
        if not cut:
            return "no gain found: no rewrite applies"
        return f"no gain found in the time that {', '.join(cut)} had: --budget gives more"

    @property
    def stop_reason(self) -> str:
        """Why the first search that did not finish stopped, "finished" where all did.

        "interrupted" where Ctrl-C ended one: no other began.
        """
        reasons = [search["stop_reason"] for search in self.searches]
        if "interrupted" in reasons:
            return "interrupted"
        return next((r for r in reasons if r != "finished"), "finished")


def slower(after: float, before: float, kind: str) -> bool:
    """Whether seconds "measured" or "modelled" differ by more than two copies of one program do."""
    return after > before * (ACCEPT.alike_programs if kind == "measured" else 1.0)


@dataclass(frozen=True)
class Comparison:
    """Seconds of input and result, how they were found, and why if not measured.

    Attributes:
        before: the input with direct kernels.
        algorithms: where the kernels of the faster one are not the direct ones, for a report.
        compiling: seconds that one compilation of the result took, which no budget counts.
        missed: what ended the comparison before it was one: the result cannot be returned.
        kernels: seconds of each kernel `before` and `after`, where they were measured.
    """

    before: float
    after: float  # the result
    tuned_input: float  # the input, as well tuned
    kind: str  # "measured" or "modelled"
    note: str = ""  # why not measured
    algorithms: tuple[dict[str, Any], ...] = ()
    compiling: float = 0.0
    missed: StopReason | None = None
    kernels: dict[str, list[dict[str, Any]]] = field(
        default_factory=dict[str, list[dict[str, Any]]]
    )

    @property
    def is_slower(self) -> bool:
        """Whether the result takes longer than the input, both as well tuned."""
        return slower(self.after, self.tuned_input, self.kind)

    @property
    def refused(self) -> str:
        """Why the result is not returned, where it is not."""
        return self.note if self.missed is not None else f"{self.kind} slower"
