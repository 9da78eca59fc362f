"""The database of tuned kernels: for each kernel and processor what was tried, and what is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...dialects.schedule import Schedule
from ...dialects.signature import key
from ..cost.cost_file import CostFile, Measured
from .database import TARGET, add_choices, read_choices
from .measure_schedules import Trial, TrialAnswer

# What an entry's `algorithm` is once the best of its trials was chosen.
DECIDED = "scheduled"
_PROCESSOR = "processor "


@dataclass
class TunedKernels:
    """The tuned kernels of one file; every change is written at once, by any process.

    Raises:
        UserError: the file is broken, or cannot be written.
    """

    path: Path
    file: CostFile = field(init=False)

    def __post_init__(self) -> None:
        self.file = read_choices(self.path, broken_is_empty=False)

    def entry(self, kernel: str, processor: str) -> Measured | None:
        """What is known of a kernel, by its signature, on a processor."""
        return self.file.ops.get(key(_signature(kernel, processor)))

    def schedule(self, kernel: str, processor: str) -> Schedule | None:
        """The schedule to use; None where the generator's own is as good, or none was tried."""
        entry = self.entry(kernel, processor)
        chosen = entry is not None and entry.algorithm == DECIDED and entry.schedule
        return Schedule.parse(chosen) if chosen else None

    def processors(self) -> dict[str, str]:
        """The processors, by their keys, in words."""
        found = {n: str(v) for n, v in self.file.env.items() if n.startswith(_PROCESSOR)}
        return {name.removeprefix(_PROCESSOR): words for name, words in found.items()}

    def add_trials(
        self, kernel: str, answer: TrialAnswer, ratios: Mapping[Schedule, float | None]
    ) -> None:
        """Keep trials of a kernel, whatever is used of them."""
        before = self.entry(kernel, answer.processor)
        texts = {schedule.text: ratio for schedule, ratio in ratios.items()}
        if before is None:
            before = _entry(kernel, answer, Schedule(), answer.default, "")
        self._write(answer, replace(before, trials={**before.trials, **texts}))

    def decide(self, kernel: str, answer: TrialAnswer, schedule: Schedule, trial: Trial) -> None:
        """Keep which schedule is used, and what it took."""
        before = self.entry(kernel, answer.processor)
        made = _entry(kernel, answer, schedule, trial, DECIDED)
        trials = {} if before is None else before.trials
        self._write(answer, replace(made, trials=dict(trials)))

    def merge(self, other: Path) -> None:
        """Add the kernels and trials of another file."""
        self._add(read_choices(other, broken_is_empty=False))

    def _write(self, answer: TrialAnswer, entry: Measured) -> None:
        new = CostFile(TARGET, env={_PROCESSOR + answer.processor: answer.words})
        new.add(entry)
        self._add(new)

    def _add(self, new: CostFile) -> None:
        add_choices(self.path, new, broken_is_empty=False)
        self.file.merge(new)


def kernel_of(entry: Measured) -> tuple[str, str]:
    """The processor and the signature of the kernel that an entry is of."""
    _, processor, kernel = entry.signature.split(" ", 2)
    return processor.rstrip(":"), kernel


def _signature(kernel: str, processor: str) -> str:
    return f"schedule {processor}: {kernel}"


def _entry(
    kernel: str, answer: TrialAnswer, schedule: Schedule, trial: Trial, state: str
) -> Measured:
    times = trial.seconds * 1e6, trial.low * 1e6, trial.high * 1e6
    direct = answer.default.seconds * 1e6
    text = _signature(kernel, answer.processor)
    return Measured(text, *times, state, direct, trial.error, schedule.text)
