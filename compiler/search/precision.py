"""`--precision`: lower the precision of as many products as the measured output error allows.

The program is compiled once with a switch for each product (passes/precision/switches.py). First
each product is lowered alone, then all together. While the outputs are further from the program's
own than the bound, products are left as they are, the one with the greatest error alone first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...dialects.errors import UserError, did_you_mean, say
from ...dialects.program import Program, where
from ...dialects.types import Array
from ...passes.margins import ACCEPT
from ...passes.precision import KINDS, RULE, SWITCHES, products, with_switches
from ..commands.inputs import draw_inputs
from ..frontends.program_file import without_weights
from ..peers.timing import difference
from ..targets.cpu import compile_cpu
from ..targets.cpu_options import CpuOptions
from ..targets.levels import level_of
from ..targets.session import Session
from .records import ComparisonRequest

# Drawn inputs on which sets of products are measured; products alone are on the first.
DRAWS = 3
ERROR = 0.01


@dataclass(frozen=True)
class Precision:
    """What the user lets `optimize` lower.

    Attributes:
        to: a name of `KINDS`.
        error: the most that an output may be off, relative to its greatest value.
        inputs: what it is measured on; None draws inputs from the seed.

    Raises:
        UserError: an unknown kind, or an error that is none.
    """

    to: str
    error: float = ERROR
    inputs: Mapping[str, Array] | None = None

    def __post_init__(self) -> None:
        if self.to not in KINDS:
            hint = did_you_mean(self.to, KINDS) or f"known are {', '.join(KINDS)}"
            raise UserError(f"no precision '{self.to}'", where="--precision", hint=hint)
        if not 0 <= self.error < float("inf"):
            raise UserError(
                "an error is a number from 0 up", where="--precision-error", found=self.error
            )


@dataclass
class Chosen:
    """Which products are lowered.

    Attributes:
        numbers: in the program's order.
        entry: of the report.
    """

    asked: Precision
    numbers: tuple[int, ...]
    entry: dict[str, Any]

    @property
    def pipeline(self) -> str:
        """The pass that lowers them, as text; empty where none is lowered."""
        ops = ",".join(map(str, self.numbers))
        return f'{RULE}{{to="{self.entry["to"]}" ops={ops}}}' if ops else ""

    def accept(self, before: float, after: float) -> bool:
        """Whether the lowered program is faster, by its seconds; the entry says so."""
        self.entry["ratio"] = after / before if before else 1.0
        if self.entry["ratio"] < ACCEPT.program:
            return True
        self.entry["error"], self.numbers = 0.0, ()
        return False

    def settle(
        self, program: Program, result: Program, request: ComparisonRequest, refused: str
    ) -> str:
        """Measure what will run; say in the entry what becomes of it.

        Args:
            refused: why the result is not returned, if it is not.

        Returns:
            That, or that the result's outputs are further off than allowed.
        """
        if not refused and self.numbers:
            found = output_error(program, result, self.asked, request.seed, request.options)
            self.entry["error"] = _number(found)
            if not found <= self.asked.error:
                refused = f"outputs are off by {found:.1e}, more than {self.asked.error:g}"
        self.entry["applied"] = bool(self.numbers) and not refused
        return refused


def choose(program: Program, asked: Precision, seed: int, threads: int) -> Chosen:
    """Find the products whose precision is lowered.

    Raises:
        UserError: the program is below the graph level, or its weights are absent.
    """
    if (level := level_of(program)) != "graph":
        raise UserError(
            "--precision lowers products of the graph level", found=f"a program at {level} level"
        )
    if without_weights(program):
        raise UserError("--precision measures errors: the weights file is needed")
    places = [where(op) for op in products(program.module, asked.to)]
    drawn = [] if asked.inputs is not None else [seed + k for k in range(DRAWS)]
    entry: dict[str, Any] = {"to": asked.to, "bound": asked.error, "seeds": drawn}
    if not places:
        return Chosen(asked, (), {**entry, "error": 0.0, "lowered": [], "kept": []})
    say(f"precision: {len(places)} products to {asked.to}")
    feeds = _feeds(program, asked, seed)
    switched = with_switches(program, asked.to)
    runner = compile_cpu(switched, CpuOptions(threads, "quick"))
    with Session(switched, runner) as session:
        measured = _Measured(session, feeds, len(places))
        alone = [measured.error([number], feeds[:1]) for number in range(len(places))]
        numbers, error = _within(measured.error, alone, asked.error)
    rows = [{"place": p, "error": _number(e)} for p, e in zip(places, alone, strict=True)]
    lowered = [rows[k] for k in numbers]
    kept = [row for k, row in enumerate(rows) if k not in numbers]
    say(f"precision: {len(lowered)} of {len(rows)} lowered, error {error:.1e}")
    entry |= {"error": error, "lowered": lowered, "kept": kept}
    return Chosen(asked, tuple(numbers), entry)


def output_error(
    program: Program, result: Program, asked: Precision, seed: int, options: CpuOptions
) -> float:
    """How far a result's outputs are off, as it will run, on the inputs that `choose` takes."""
    with ExitStack() as closing:
        quick = replace(options, effort="quick")
        sessions = [Session(p, compile_cpu(p, o)) for p, o in ((program, quick), (result, options))]
        for session in sessions:
            closing.callback(session.close)
        errors: list[float] = []
        for given in _feeds(program, asked, seed):
            exact, found = ([np.array(a) for a in s.run(None, given)] for s in sessions)
            errors.append(difference(found, exact))
    return max(errors)


def _feeds(program: Program, asked: Precision, seed: int) -> list[Mapping[str, Array]]:
    if asked.inputs is not None:
        return [asked.inputs]
    return [draw_inputs(program, seed + k) for k in range(DRAWS)]


def _number(value: float) -> float | str:
    """A float as JSON has it: an infinity is text."""
    return value if math.isfinite(value) else str(value)


def _within(
    error: Callable[[Sequence[int]], float], alone: Sequence[float], bound: float
) -> tuple[list[int], float]:
    """The products that are lowered, and the error of all of them together.

    All, if the bound allows; else as many as it allows of those with the smallest errors alone,
    found by halving. Of equal ones the first comes first.
    """
    order = sorted(range(len(alone)), key=lambda k: (alone[k], k))
    best, found = 0, 0.0
    least_too_many, count = len(order) + 1, len(order)
    while best < count < least_too_many:
        measured = error(sorted(order[:count]))
        if measured <= bound:
            best, found = count, measured
        else:
            least_too_many = count
        count = (best + least_too_many) // 2
    return sorted(order[:best]), found


class _Measured:
    """A program with switches, and what it gives on some inputs with none of them on."""

    def __init__(self, session: Session, feeds: Sequence[Mapping[str, Array]], count: int) -> None:
        self.session, self.feeds, self.count = session, feeds, count
        self.exact = [self._outputs([], given) for given in feeds]

    def _outputs(self, numbers: Sequence[int], given: Mapping[str, Array]) -> list[Array]:
        on = np.isin(np.arange(self.count), np.asarray(numbers, np.int64))
        return [np.array(a) for a in self.session.run(None, {**given, SWITCHES: on})]

    def error(
        self, numbers: Sequence[int], feeds: Sequence[Mapping[str, Array]] | None = None
    ) -> float:
        """How far outputs are from the exact ones, relative to each one's greatest value."""
        feeds = self.feeds if feeds is None else feeds
        pairs = zip(feeds, self.exact, strict=False)
        return max(difference(self._outputs(numbers, given), exact) for given, exact in pairs)


__all__ = ["ERROR", "Chosen", "Precision", "choose"]
