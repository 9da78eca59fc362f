"""Schedule spaces as data: a table for each kind of kernel says what may vary, and what is valid.

A `ScheduleTable` has dimensions (names and values, by a kernel's extents and the processor) and
rules, each of which gives the reason why a point is refused. A kernel's `Space` is a table with its
sizes. Code generators ask a space for the whole point that an op's schedule stands for, tuners for
points to try. A new kernel is a new table.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar

from ..dialects.errors import UserError
from ..dialects.schedule import Entry, Schedule

P = TypeVar("P")
Point: TypeAlias = "Mapping[str, Entry]"

# Entries of schedules that other passes and targets read.
OTHERS = frozenset({"algorithm", "tile", "tiles", "library", "threads"})
# How often a random point is drawn again where the rules refuse it.
_DRAWS = 200


@dataclass(frozen=True)
class Dimension(Generic[P]):
    """One thing that may vary.

    Attributes:
        values: what is worth trying for a kernel, least first.
        between: whether any whole number between the least and the greatest of them is valid.
    """

    name: str
    text: str
    values: Callable[[P], Sequence[Entry]]
    between: bool = False


@dataclass(frozen=True)
class ScheduleTable(Generic[P]):
    """The space of one kind of kernel.

    Attributes:
        complete: the whole point for some entries; what they leave open follows from a model.
        rules: each gives the reason why a whole point is refused, or None.
        items: how many items a point's work is cut into, which threads share.
        features: numbers of a kernel that a cost model may use, by name.
        shortlist: a few points worth comparing, the default first.
    """

    kind: str
    dimensions: tuple[Dimension[P], ...]
    complete: Callable[[P, Point], Point]
    rules: tuple[Callable[[P, Point], str | None], ...] = ()
    items: Callable[[P, Point], int] | None = None
    features: Callable[[P], Mapping[str, float]] = lambda problem: {}
    shortlist: Callable[[P], Sequence[Point]] = lambda problem: ()

    def space(self, problem: P) -> Space:
        """The space of one kernel."""
        dims = {d.name: (tuple(d.values(problem)), d.between) for d in self.dimensions}
        items = self.items
        return Space(
            self.kind,
            {name: values for name, (values, _) in dims.items()},
            frozenset(name for name, (_, between) in dims.items() if between),
            lambda given: self.complete(problem, given),
            tuple(_bound(rule, problem) for rule in self.rules),
            (lambda point: 1) if items is None else lambda point: items(problem, point),
            self.features(problem),
            tuple(Schedule.of(point) for point in self.shortlist(problem)),
        )


def _bound(rule: Callable[[P, Point], str | None], problem: P) -> Callable[[Point], str | None]:
    return lambda point: rule(problem, point)


@dataclass(frozen=True)
class Space:
    """What may vary for one kernel: a table with its sizes."""

    kind: str
    dimensions: Mapping[str, tuple[Entry, ...]]
    between: frozenset[str]
    complete: Callable[[Point], Point]
    rules: tuple[Callable[[Point], str | None], ...]
    items: Callable[[Point], int]
    features: Mapping[str, float] = field(default_factory=dict[str, float])
    shortlist: tuple[Schedule, ...] = ()

    @property
    def default(self) -> Schedule:
        """The point that is used where nothing is given."""
        return Schedule.of(self.complete({}))

    def refusal(self, schedule: Schedule) -> str | None:
        """The reason, on one line, why a point is invalid; None if it is valid."""
        given = schedule.as_dict()
        for name, value in given.items():
            reason = self._outside(name, value)
            if reason is not None:
                return reason
        point = self.complete(given)
        return next((reason for rule in self.rules if (reason := rule(point)) is not None), None)

    def _outside(self, name: str, value: Entry) -> str | None:
        if name not in self.dimensions:
            return f"a {self.kind} has no entry '{name}'; it has {', '.join(self.dimensions)}"
        values = self.dimensions[name]
        if value in values:
            return None
        if name not in self.between:
            return f"{name} is one of {', '.join(map(str, values))}, not {value}"
        low, high = values[0], values[-1]
        assert isinstance(low, int)
        assert isinstance(high, int)
        if isinstance(value, int) and low <= value <= high:
            return None
        return f"{name} is a whole number from {low} to {high}, not {value}"

    def point(self, schedule: Schedule, where: str) -> Point:
        """The whole point of a schedule.

        Raises:
            UserError: the schedule is invalid.
        """
        reason = self.refusal(schedule)
        if reason is not None:
            hint = "without a schedule the generator chooses"
            raise UserError(f"an invalid schedule: {reason}", where=where, hint=hint)
        return self.complete(schedule.as_dict())

    def together(self, others: Sequence[Space]) -> Space:
        """The space of points that are valid in this one and in others of its kind."""

        def rule(other: Space) -> Callable[[Point], str | None]:
            return lambda point: other.refusal(Schedule.of(point))

        return replace(self, rules=(*self.rules, *map(rule, others)))

    # --- for tuners ---

    def whole(self, schedule: Schedule) -> Schedule:
        """The schedule with all entries: equal ones run the same code."""
        return Schedule.of(self.complete(schedule.as_dict()))

    def drawn(self, random_: random.Random) -> Schedule | None:
        """A random valid point; None if no draw was valid."""
        for _ in range(_DRAWS):
            made = Schedule.of({n: random_.choice(v) for n, v in self.dimensions.items()})
            if self.refusal(made) is None:
                return made
        return None

    def mutated(self, schedule: Schedule, random_: random.Random) -> Schedule | None:
        """A valid point that differs in one to three entries."""
        names = [name for name, values in self.dimensions.items() if len(values) > 1]
        for _ in range(_DRAWS if names else 0):
            entries = schedule.as_dict()
            for name in random_.sample(names, min(len(names), random_.choice((1, 1, 2, 3)))):
                entries[name] = self._near(name, entries[name], random_)
            made = Schedule.of(entries)
            if made != schedule and self.refusal(made) is None:
                return made
        return None

    def _near(self, name: str, value: Entry, random_: random.Random) -> Entry:
        """Another value of a dimension: a neighbour as often as any."""
        values = self.dimensions[name]
        if value in values and random_.random() < 0.5:
            at = values.index(value) + random_.choice((-1, 1))
            return values[min(max(at, 0), len(values) - 1)]
        return random_.choice(values)

    def crossed(self, one: Schedule, other: Schedule, random_: random.Random) -> Schedule | None:
        """A valid point with entries of both."""
        mine, theirs = one.as_dict(), other.as_dict()
        for _ in range(8):
            made = Schedule.of({n: random_.choice((mine[n], theirs[n])) for n in self.dimensions})
            if self.refusal(made) is None:
                return made
        return None


def powers(most: int, least: int = 1) -> list[int]:
    """`least`, twice that, ... up to `most`."""
    found = [least]
    while 2 * found[-1] <= most:
        found.append(2 * found[-1])
    return found


def parts_of(total: int, most: int = 64) -> list[int]:
    """1, and the sizes of the parts if a total is cut into 1, 2, ... of them, least first."""
    counts = [n for n in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64) if n <= most]
    return sorted({1, *(-(-total // n) for n in counts)} - {0})
