"""Tune the schedules of kernels: batches of trials, each kept in the database as it ends.

For each kernel: propose schedules (evolution.py), measure them (measure_schedules.py), learn
(schedule_cost.py), and so on until the trials are used up or nothing gets better. Then the best few
are measured again, beside the generator's schedule: the least of many noisy times is too good. What
was measured before, in the database, is not measured again.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from xdsl.ir import SSAValue

from ...dialects.executor import Executor, LocalExecutor, LostError, kept_workers
from ...dialects.kernel import KernelOp
from ...dialects.program import Program
from ...dialects.schedule import Schedule
from ...dialects.types import byte_size, tensor_type
from ...lowering.algebra_to_kernel.constant import constant_values
from ...lowering.schedule_space import Space
from ...lowering.targets import CPU
from ..margins import ACCEPT
from ..reuse import OperatorNest, kernel_nest
from .evolution import Evolution
from .measure_schedules import (
    KernelTask,
    Trial,
    TrialAnswer,
    TrialRequest,
    measure_trials,
    op_of,
    processor_here,
    task_of,
)
from .schedule_cost import KnownTrials, learned
from .tuned_kernels import DECIDED, TunedKernels

BATCH = 16
ROUNDS = 5
# Batches without a better schedule, by so much, after which a kernel is left.
PATIENCE = 3
BETTER = 0.99
# The last measurement.
FINALISTS = 3
FINAL_ROUNDS = 15
# Limit for the operands of all programs of a batch.
MOST_BYTES = 1 << 30


@dataclass
class KernelToTune:
    """A kernel with a schedule space and its loops, and how often programs run it."""

    task: KernelTask
    space: Space
    bytes: int
    nest: OperatorNest
    count: int = 1

    @property
    def name(self) -> str:
        """The kind of kernel and its sizes."""
        sizes = " ".join(f"{name}={number:g}" for name, number in self.space.features.items())
        return f"{self.space.kind} {sizes}"


@dataclass(frozen=True)
class Progress:
    """How far tuning is; `ratio` is the best so far over the generator's schedule."""

    kernel: KernelToTune
    number: int
    kernels: int
    trials: int
    of: int
    ratio: float


class Tell(Protocol):
    """Is told the progress after each batch."""

    def __call__(self, progress: Progress) -> None:
        """Take note."""
        ...


@dataclass(frozen=True)
class TuneOptions:
    """How kernels are tuned.

    Attributes:
        trials: schedules to measure of each kernel, those of the database included.
        apart: whether each trial is an item of the executor's, which may run it elsewhere.
    """

    trials: int
    seed: int = 0
    executor: Executor = field(default_factory=lambda: LocalExecutor(0))
    apart: bool = False


def kernels_of(program: Program) -> list[KernelToTune]:
    """The kernels of a placed program that have a schedule space, each once, in program order."""
    constants = constant_values(program.module)
    found: dict[str, KernelToTune] = {}
    for op in program.main.body.block.ops:
        made = _to_tune(op, constants) if isinstance(op, KernelOp) else None
        if made is None:
            continue
        before = found.setdefault(made.task.signature, made)
        if before is not made:
            before.count += 1
    return list(found.values())


def kernel_from(signature: str) -> KernelToTune | None:
    """A kernel to start others from, by its signature in the database; it cannot be measured.

    None if it is not a kernel of today's spaces.
    """
    op, constants = op_of(signature)
    space = _space_of(op, constants)
    if space is None:
        return None
    return KernelToTune(KernelTask("", signature), space, 0, _nest_of(op, space))


def _to_tune(op: KernelOp, constants: Container[SSAValue]) -> KernelToTune | None:
    space = None if op.result in constants else _space_of(op, constants)
    if space is None:
        return None
    size = sum(byte_size(tensor_type(value)) for value in (*op.inputs, op.result))
    return KernelToTune(task_of(op, constants), space, size, _nest_of(op, space))


def _space_of(op: KernelOp, constants: Container[SSAValue]) -> Space | None:
    """The space of a kernel, if there is something to choose."""
    space = CPU.generator().space(op, constants)
    if space is None or all(len(values) == 1 for values in space.dimensions.values()):
        return None
    return space


def _nest_of(op: KernelOp, space: Space) -> OperatorNest:
    """Its loops; kernels are alike whose spaces have the same entries and ways to read B."""
    right = map(str, space.dimensions.get("right", ()))
    return kernel_nest(op, (space.kind, *space.dimensions, *right))


class Tuner:
    """Tunes kernels one after the other; each batch is in the database before the next."""

    def __init__(self, database: TunedKernels, options: TuneOptions, tell: Tell) -> None:
        self.database, self.options, self.tell = database, options, tell
        self.processor, self.words = processor_here()

    def run(self, kernels: Sequence[KernelToTune]) -> None:
        """Tune all kernels.

        Raises:
            UserError: the database cannot be written.
        """
        known = [KnownTrials(kernel.space, self._measured(kernel)) for kernel in kernels]
        with kept_workers():
            for number, kernel in enumerate(kernels):
                same = [t for t in known if t.space.kind == kernel.space.kind]
                self._tune(kernel, known[number], same, (number, len(kernels)))

    def _measured(self, kernel: KernelToTune) -> dict[Schedule, float | None]:
        """Earlier trials, but for schedules that are no longer valid."""
        entry = self.database.entry(kernel.task.signature, self.processor)
        trials = {} if entry is None else entry.trials
        found = {Schedule.parse(text): ratio for text, ratio in trials.items()}
        return {s: ratio for s, ratio in found.items() if kernel.space.refusal(s) is None}

    def _tune(
        self,
        kernel: KernelToTune,
        trials: KnownTrials,
        same: Sequence[KnownTrials],
        place: tuple[int, int],
    ) -> None:
        evolution = Evolution(trials, f"{self.options.seed} {kernel.task.signature}")
        most = max(2, min(BATCH, MOST_BYTES // max(1, kernel.bytes)))
        stale, measured, best = 0, False, _best(trials)
        while len(trials.ratios) < self.options.trials and stale < PATIENCE:
            size = min(most, self.options.trials - len(trials.ratios))
            batch = evolution.batch(size, learned(same, self.options.seed))
            if not batch:
                break
            self._measure(kernel, trials, batch)
            measured = True
            stale = 0 if _best(trials) < BETTER * best else stale + 1
            best = min(best, _best(trials))
            self.tell(Progress(kernel, *place, len(trials.ratios), self.options.trials, best))
        if measured or self._is_undecided(kernel):
            self._decide(kernel, trials)

    def _measure(
        self, kernel: KernelToTune, trials: KnownTrials, batch: Sequence[Schedule]
    ) -> None:
        """Measure schedules and keep what they took."""
        groups = [[schedule] for schedule in batch] if self.options.apart else [list(batch)]
        requests = [
            TrialRequest(kernel.task, tuple(group), ROUNDS, self.options.seed) for group in groups
        ]

        def done(number: int, answer: TrialAnswer) -> None:
            found = dict(zip(groups[number], (t.ratio for t in answer.trials), strict=True))
            if answer.processor == self.processor:
                trials.ratios.update(found)
            self.database.add_trials(kernel.task.signature, answer, found)

        def lost(number: int, error: LostError) -> None:
            trials.ratios.update(dict.fromkeys(groups[number]))  # not again: it ended its process

        self.options.executor.run(measure_trials, requests, done, lost)

    def _is_undecided(self, kernel: KernelToTune) -> bool:
        """Whether there are trials, but an interruption kept the best from being chosen."""
        entry = self.database.entry(kernel.task.signature, self.processor)
        return entry is not None and bool(entry.trials) and entry.algorithm != DECIDED

    def _decide(self, kernel: KernelToTune, trials: KnownTrials) -> None:
        """Measure the best ones again, beside the generator's schedule, and keep the choice."""
        ratios = {s: r for s, r in trials.ratios.items() if r is not None and r < 1}
        few = sorted(ratios, key=lambda s: (ratios[s], s.text))[:FINALISTS]
        answer = measure_trials(
            TrialRequest(kernel.task, tuple(few), FINAL_ROUNDS, self.options.seed)
        )
        faster = [pair for pair in zip(few, answer.trials, strict=True) if _is_faster(pair[1])]
        default = Schedule(), answer.default
        schedule, trial = min(faster, key=lambda pair: pair[1].ratio or math.inf, default=default)
        self.database.decide(kernel.task.signature, answer, schedule, trial)


def _is_faster(trial: Trial) -> bool:
    """Whether a schedule is faster than the generator's by more than noise, in most rounds."""
    return trial.ratio is not None and trial.ratio < ACCEPT.kernel and trial.quartile < 1


def _best(trials: KnownTrials) -> float:
    return min((1.0, *(r for r in trials.ratios.values() if r is not None)))
