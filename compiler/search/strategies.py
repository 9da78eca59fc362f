"""The searches that `optimize` runs, as a table: `--strategy NAME` runs one of them alone.

To add one: write `search(program, costs, limits) -> SearchResult` (passes/search_result.py) in a
folder of passes/, and add its line to `STRATEGIES` below, at its place in the order:

    Strategy("substitute", "graph", 1.0, plain("passes.substitution.strategy:search"), GUARDED),

A plug-in lists its own as `STRATEGIES` (docs/adding-a-search.md); what they find is compared with
what they were given.

That is all. `optimize` calls it with the best program so far and its share of the budget, measures
the result against that program where the target runs here, keeps the faster one, and reports. A
search that measures parts itself takes a fourth argument, a `Measure`, and is listed with
`measuring` instead of `plain`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

from ...dialects.errors import UserError, did_you_mean
from ...dialects.floats import GUARDED, ROUNDING, Floats
from ...dialects.program import Program
from ...passes.cost.costs import Costs
from ...passes.search_result import Limits, Measure, SearchResult

PACKAGE = __name__.rpartition(".compiler")[0]
EVERY = "optimize"

Search: TypeAlias = Callable[[Program, Costs, Limits, Measure | None], SearchResult]


@dataclass(frozen=True)
class Strategy:
    """One search.

    Attributes:
        level: the lowest level of its results. A search of a lower level is skipped where the
            result must stay above it; a graph search needs a graph-level program.
        share: of the budget, relative to the shares of the other searches.
        floats: the most that its rewrites do to floats. It leaves out by itself what
            `Limits.floats` does not allow.
        by_default: whether it is part of `optimize`, or runs only when named.
        where_modelled: whether it is part of `optimize` where the model decides.
    """

    name: str
    level: str
    share: float
    search: Search
    floats: Floats
    by_default: bool = True
    where_modelled: bool = True


def plain(reference: str) -> Search:
    """A `search(program, costs, limits)`, loaded when it runs."""

    def search(
        program: Program, costs: Costs, limits: Limits, measure: Measure | None
    ) -> SearchResult:
        return _load(reference)(program, costs, limits)

    return search


def measuring(reference: str) -> Search:
    """A `search(program, costs, limits, measure)`, loaded when it runs."""

    def search(
        program: Program, costs: Costs, limits: Limits, measure: Measure | None
    ) -> SearchResult:
        return _load(reference)(program, costs, limits, measure)

    return search


def _load(reference: str) -> Any:
    module, _, name = reference.partition(":")
    return getattr(import_module(f"{PACKAGE}.{module}"), name)


# In the order they run: those of the graph level first, since the others leave it.
STRATEGIES: tuple[Strategy, ...] = (
    # The laws end early, and what they leave goes to the others; on a busy machine they need it.
    Strategy("saturate", "graph", 2.0, plain("passes.saturation.strategy:search"), ROUNDING),
    # Not where programs are measured: on no zoo model did it find one that costs the cpu less than
    # saturation's, and it takes longer where nothing gains (docs/commands.md has the table).
    Strategy(
        *("substitute", "graph", 1.0),
        *(plain("passes.substitution.strategy:search"), ROUNDING),
        by_default=False,
    ),
    Strategy("derive", "algebra", 2.0, measuring("passes.derivation.propose:search"), GUARDED),
    Strategy("mutate", "algebra", 2.0, measuring("passes.partial.propose:search"), GUARDED),
)


_ADDED: ContextVar[tuple[Strategy, ...]] = ContextVar("strategies", default=())


@contextmanager
def adding_strategies(added: Sequence[Strategy]) -> Generator[None]:
    """Add the searches of a plug-in in the block.

    Raises:
        UserError: a name is taken.
    """
    for strategy in added:
        if strategy.name in (EVERY, *(s.name for s in known_strategies())):
            raise UserError(f"there is already a strategy '{strategy.name}'")
    token = _ADDED.set((*_ADDED.get(), *added))
    try:
        yield
    finally:
        _ADDED.reset(token)


def known_strategies() -> tuple[Strategy, ...]:
    """Ours and those of plug-ins in use; those of the graph level first, since others leave it."""
    return tuple(sorted((*STRATEGIES, *_ADDED.get()), key=lambda s: s.level != "graph"))


def is_added(strategy: Strategy) -> bool:
    """Whether a plug-in has it: what it finds is not trusted."""
    return strategy in _ADDED.get()


def chosen(name: str, level: str, measured: bool = True) -> tuple[Strategy, ...]:
    """The strategies that names select, limited to those that keep a program at `level`.

    Args:
        name: of one, of several with commas between them, or `optimize`: those by default. They
            run in the order of `STRATEGIES`.
        measured: whether programs are measured, or the model decides.

    Raises:
        UserError: a name is unknown.
    """
    strategies = known_strategies()
    known = tuple(s.name for s in strategies)
    names = [part.strip() for part in name.split(",")]
    for part in names:
        if part != EVERY and part not in known:
            _refuse(part, (EVERY, *known))
    every = [s for s in strategies if (s.by_default if measured else s.where_modelled)]
    found = tuple(s for s in strategies if s.name in names or (EVERY in names and s in every))
    return tuple(s for s in found if level != "graph" or s.level == "graph")


def _refuse(name: str, known: Sequence[str]) -> None:
    """Raises UserError."""
    hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
    raise UserError(f"unknown strategy '{name}'", where="--strategy", hint=hint)
