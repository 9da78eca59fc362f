"""Predict how good schedules are: trees learned from the trials so far, of all kernels of a kind.

The features of a point are its entries, the kernel's sizes, and how many items there are; numbers
as logarithms. scikit-learn's trees are used if it is installed (extra `tune`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Protocol

from ...dialects.schedule import Schedule
from ...lowering.schedule_space import Space

TREES = 64
LEAST_TRIALS = 8
# What a schedule that gave no result counts as: so many times the generator's seconds.
NO_RESULT = 10.0


class Model(Protocol):
    """Predicts, for each schedule of a space, how good it is; less is better."""

    def predict(self, space: Space, schedules: Sequence[Schedule]) -> list[float]:
        """A number for each schedule."""
        ...


@dataclass(frozen=True)
class Untrained:
    """Knows nothing: all schedules are as good."""

    def predict(self, space: Space, schedules: Sequence[Schedule]) -> list[float]:
        """Zeros."""
        return [0.0 for _ in schedules]


@dataclass
class KnownTrials:
    """The measured schedules of one kernel: ratios over the generator's schedule."""

    space: Space
    ratios: dict[Schedule, float | None] = field(default_factory=dict[Schedule, "float | None"])


@dataclass(frozen=True)
class Trees:
    """Random trees over the features of points."""

    forest: Any

    def predict(self, space: Space, schedules: Sequence[Schedule]) -> list[float]:
        """Logarithms of the predicted ratios."""
        rows = [features(space, schedule) for schedule in schedules]
        return [float(x) for x in self.forest.predict(rows)] if rows else []


def is_available() -> bool:
    """Whether the library of trees is installed."""
    return find_spec("sklearn") is not None


def learned(trials: Sequence[KnownTrials], seed: int) -> Model:
    """The model of trials of one kind of kernel; an untrained one if they are few."""
    # In one order, whether they were measured now or come from a file: trees depend on it.
    rows = [
        (t.space, schedule, t.ratios[schedule])
        for t in trials
        for schedule in sorted(t.ratios, key=lambda schedule: schedule.text)
    ]
    if len(rows) < LEAST_TRIALS or not is_available():
        return Untrained()
    from sklearn.ensemble import ExtraTreesRegressor

    forest = ExtraTreesRegressor(TREES, min_samples_leaf=2, random_state=seed, n_jobs=1)
    targets = [math.log(NO_RESULT if ratio is None else ratio) for _, _, ratio in rows]
    forest.fit([features(space, schedule) for space, schedule, _ in rows], targets)
    return Trees(forest)


def features(space: Space, schedule: Schedule) -> list[float]:
    """The numbers that a model sees; as many for all kernels of a kind."""
    point: Mapping[str, int | str] = space.complete(schedule.as_dict())
    found: list[float] = []
    for name, values in space.dimensions.items():
        value = point[name]
        if isinstance(value, int):
            found.append(math.log2(value + 1))
        else:  # words are ordered by their letters: kernels of a kind need not have all of them
            found.append(float(sum(ord(c) << k for k, c in enumerate(value[:8]))))
            assert value in values
    found.append(math.log2(space.items(point) + 1))
    return found + [math.log2(number + 1) for number in space.features.values()]
