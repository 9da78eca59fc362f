"""Propose schedules to measure: evolution from the best ones so far, sorted by a learned model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects.schedule import Schedule
from .schedule_cost import KnownTrials, Model

PARENTS = 16
CHILDREN = 64
GENERATIONS = 4
# The share of a batch that is drawn at random, so that the model sees what it does not favour.
EXPLORED = 0.2
# Fewer items leave threads without work. Trials run on one thread, which would not show that.
LEAST_ITEMS = 16


@dataclass(frozen=True)
class Evolution:
    """Proposes batches; the same trials, model and seed give the same batch."""

    trials: KnownTrials
    seed: str

    def batch(self, size: int, model: Model) -> list[Schedule]:
        """Up to `size` new schedules; fewer or none where the space has no more."""
        space, known = self.trials.space, self.trials.ratios
        random_ = random.Random(f"{self.seed} {len(known)}")
        chosen: dict[Schedule, None] = {}
        if not known:
            chosen |= dict.fromkeys(map(space.whole, space.shortlist[1:size]))
        wanted = size - max(1, round(size * EXPLORED)) if known else len(chosen)
        for schedule in self._evolved(random_, model) if known else ():
            if len(chosen) >= wanted:
                break
            if self._is_new(schedule):
                chosen[schedule] = None
        for _ in range(8 * size):
            if len(chosen) >= size:
                break
            drawn = space.drawn(random_)
            if drawn is not None and self._is_new(drawn):
                chosen[drawn] = None
        return [schedule for schedule in chosen if self._is_new(schedule)]

    def _is_new(self, schedule: Schedule) -> bool:
        space = self.trials.space
        if schedule in self.trials.ratios or schedule == space.default:
            return False
        least = min(LEAST_ITEMS, space.items(space.default.as_dict()))
        return space.items(schedule.as_dict()) >= least

    def _evolved(self, random_: random.Random, model: Model) -> list[Schedule]:
        """Descendants of the best schedules, most promising first."""
        space = self.trials.space
        ratios = {s: r for s, r in self.trials.ratios.items() if r is not None}
        best = sorted(
            {**ratios, space.default: 1.0}.items(), key=lambda item: (item[1], item[0].text)
        )
        parents = [schedule for schedule, _ in best[:PARENTS]]
        seen: dict[Schedule, float] = {}
        for _ in range(GENERATIONS):
            made: dict[Schedule, None] = {}
            for _ in range(CHILDREN):
                child = self._child(parents, random_)
                if child is not None and child not in seen:
                    made[child] = None
            fresh = list(made)
            seen |= dict(zip(fresh, model.predict(space, fresh), strict=True))
            ranked = sorted(seen, key=lambda s: seen[s])  # stable: equal ones as they were made
            parents = ranked[:PARENTS]
        return sorted(seen, key=lambda s: seen[s])

    def _child(self, parents: Sequence[Schedule], random_: random.Random) -> Schedule | None:
        space = self.trials.space
        one = random_.choice(parents)
        if len(parents) > 1 and random_.random() < 0.3:
            return space.crossed(one, random_.choice(parents), random_)
        return space.mutated(one, random_)
