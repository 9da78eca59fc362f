"""Tuned kernels against the generators' own schedules: tune sets of operators, then measure again.

    python benchmarks/tuning.py --trials 48 --db tuned.json            tune and print the tables
    python benchmarks/tuning.py --db tuned.json --no-tune              only measure again
    python benchmarks/tuning.py --db tuned.json --models dcgan         some models

The last measurement is apart from the search: both schedules in one process, in turn, each on its
own copy of the operands, one thread by its own clock; `ratio` is the median of the paired ratios.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections import defaultdict
from pathlib import Path

from isoform.compiler import api
from isoform.compiler.commands.subcommands import table
from isoform.compiler.frontends.models import load_static
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.passes.tuning.measure_schedules import TrialRequest, measure_trials, processor_here
from isoform.passes.tuning.tune_kernels import (
    KernelToTune,
    Progress,
    TuneOptions,
    Tuner,
    kernels_of,
)
from isoform.passes.tuning.tuned_kernels import TunedKernels

MODELS = ("resnet50", "mobilenet-v2", "bert-base", "dcgan")
ROUNDS = 21
SLOWER, FASTER = 1.02, 0.95


def tell(progress: Progress) -> None:
    """Print how far tuning is."""
    at = f"{progress.number + 1}/{progress.kernels} {progress.trials} trials"
    print(f"  {at} {progress.ratio:.2f} {progress.kernel.name}", flush=True)


def again(kernel: KernelToTune, database: TunedKernels) -> tuple[float, float]:
    """Seconds of the generator's schedule, and the paired ratio of the tuned one (1 if none is)."""
    chosen = database.schedule(kernel.task.signature, processor_here()[0])
    schedules = () if chosen is None else (chosen,)
    answer = measure_trials(TrialRequest(kernel.task, schedules, ROUNDS, seed=1))
    ratio = answer.trials[0].ratio if answer.trials else 1.0
    return answer.default.seconds, math.inf if ratio is None else ratio


def row(name: str, found: list[tuple[KernelToTune, float, float]]) -> list[str]:
    """A line of the table: kernels, how many are faster and slower, ratios, the sum over a run."""
    ratios = [ratio for _, _, ratio in found]
    before = sum(kernel.count * seconds for kernel, seconds, _ in found)
    after = sum(kernel.count * seconds * ratio for kernel, seconds, ratio in found)
    return [
        name,
        str(len(found)),
        str(sum(ratio < FASTER for ratio in ratios)),
        str(sum(ratio > SLOWER for ratio in ratios)),
        f"{statistics.geometric_mean(ratios):.3f}",
        f"{min(ratios):.2f}",
        f"{max(ratios):.2f}",
        f"{before * 1e3:.2f}",
        f"{after * 1e3:.2f}",
    ]


def main() -> None:
    """Tune and measure the models asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--db", type=Path, required=True)
    parser.add_argument("--no-tune", action="store_true")
    asked = parser.parse_args()
    rows: list[list[str]] = []
    kinds: dict[str, list[tuple[KernelToTune, float, float]]] = defaultdict(list)
    for name in asked.models.split(","):
        program = api.improve(load_static(f"zoo:{name}"))
        kernels = kernels_of(place(program, CpuOptions(1)))
        database, started = TunedKernels(asked.db), time.monotonic()
        if not asked.no_tune:
            Tuner(database, TuneOptions(asked.trials), tell).run(kernels)
        print(f"{name}: tuned in {time.monotonic() - started:.0f} s", flush=True)
        found = [(kernel, *again(kernel, database)) for kernel in kernels]
        rows.append(row(name, found))
        for one in found:
            kinds[one[0].space.kind].append(one)
    head = ("set", "kernels", "faster", "slower", "mean", "best", "worst", "before ms", "after ms")
    print(table(head, rows))
    print()
    print(table(("kind", *head[1:]), [row(kind, found) for kind, found in sorted(kinds.items())]))


if __name__ == "__main__":
    main()
