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
DEFAULT_SEARCHES = "optimize"

Search: TypeAlias = Callable[[Program, Costs, Limits, Measure | None], SearchResult]


@dataclass(frozen=True)
class Strategy:
    """One search.

    Attributes:
        level: the lowest level of its results. A search of a lower level is skipped where the
            result must stay above it; a graph search needs a graph-level program.
        share: of the budget, relative to the shares of the other searches.
        floats: how much its rewrites may change floats. The search itself leaves out rewrites that
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
    """Return a search that loads `search(program, costs, limits)` when it runs."""

    def search(
        program: Program, costs: Costs, limits: Limits, measure: Measure | None
    ) -> SearchResult:
        return _load(reference)(program, costs, limits)

    return search


def measuring(reference: str) -> Search:
    """Return a search that loads `search(program, costs, limits, measure)` when it runs."""

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
    # Saturation usually stops early, and the budget it leaves goes to later searches; on a busy
    # machine it needs this share.
    Strategy("saturate", "graph", 2.0, plain("passes.saturation.strategy:search"), ROUNDING),
    # Left out if programs are measured: on no zoo model did it find a faster program for the cpu
    # than saturation did, and it takes longer if there is none (docs/commands.md has the table).
    Strategy(
        name="substitute",
        level="graph",
        share=1.0,
        search=plain("passes.substitution.strategy:search"),
        floats=ROUNDING,
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
        UserError: a strategy of that name exists.
    """
    for strategy in added:
        if strategy.name in (DEFAULT_SEARCHES, *(s.name for s in known_strategies())):
            raise UserError(f"there is already a strategy '{strategy.name}'")
    token = _ADDED.set((*_ADDED.get(), *added))
    try:
        yield
    finally:
        _ADDED.reset(token)


def known_strategies() -> tuple[Strategy, ...]:
    """Return the strategies here and of plug-ins in use, those of the graph level first."""
    return tuple(sorted((*STRATEGIES, *_ADDED.get()), key=lambda s: s.level != "graph"))


def is_added(strategy: Strategy) -> bool:
    """Whether the strategy comes from a plug-in, so that its results are not trusted."""
    return strategy in _ADDED.get()


def chosen(name: str, level: str, measured: bool = True) -> tuple[Strategy, ...]:
    """The strategies that names select, limited to those that keep a program at `level`.

    Args:
        name: one name, several with commas between them, or `optimize` for those that run by
            default. They run in the order of `STRATEGIES`.
        measured: whether programs are measured, or the model decides.

    Raises:
        UserError: a name is unknown.
    """
    strategies = known_strategies()
    known = tuple(s.name for s in strategies)
    names = [part.strip() for part in name.split(",")]
    for part in names:
        if part != DEFAULT_SEARCHES and part not in known:
            _refuse(part, (DEFAULT_SEARCHES, *known))
    by_default = [s for s in strategies if (s.by_default if measured else s.where_modelled)]
    found = tuple(
        s for s in strategies if s.name in names or (DEFAULT_SEARCHES in names and s in by_default)
    )
    return tuple(s for s in found if level != "graph" or s.level == "graph")


def _refuse(name: str, known: Sequence[str]) -> None:
    """Raise the UserError of an unknown strategy."""
    hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
    raise UserError(f"unknown strategy '{name}'", where="--strategy", hint=hint)
