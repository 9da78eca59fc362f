"""`isoform tune MODEL|--ops FILE`: measure schedules of kernels, list and merge the results."""

from __future__ import annotations

import contextlib
import re
import sys
import time
from argparse import Namespace
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...dialects.cache_folder import tuned_file
from ...dialects.cluster import cluster
from ...dialects.errors import UsageError, UserError
from ...dialects.files import check_outputs
from ...dialects.program import Program
from ...dialects.signature import key
from ...passes.cost.cost_file import Measured
from ...passes.tuning.reuse_tuner import REUSE, ReuseTuner
from ...passes.tuning.schedule_cost import is_available
from ...passes.tuning.tune_kernels import (
    BATCH,
    PATIENCE,
    KernelToTune,
    Progress,
    TuneOptions,
    kernels_of,
)
from ...passes.tuning.tuned_kernels import TunedKernels, kernel_of
from .. import api
from ..targets.cpu_options import CpuOptions
from ..targets.levels import place
from .interrupts import STATUS, interrupts
from .operator_list import read_operators
from .subcommands import load_model, print_json, table


def tune_command(arguments: Namespace) -> int:
    """`isoform tune`."""
    asked = [arguments.model, arguments.ops, arguments.merge, arguments.list or None]
    if arguments.model is not None and arguments.ops is not None:
        raise UsageError("MODEL and --ops exclude each other")
    if all(one is None for one in asked):
        raise UsageError("nothing to do", hint="give MODEL, --ops FILE, --list or --merge OTHER")
    path = _path(arguments)
    if arguments.merge is not None:
        if not Path(arguments.merge).exists():
            raise UserError("cannot read file: it does not exist", where=arguments.merge)
        TunedKernels(path).merge(Path(arguments.merge))
    status = 0
    if arguments.model is not None or arguments.ops is not None:
        status = _tune(arguments, path)
    if arguments.list:
        _list(TunedKernels(path), as_json=arguments.json)
    return status


def _path(arguments: Namespace) -> Path:
    check_outputs([arguments.db])
    path = tuned_file() if arguments.db is None else Path(arguments.db)
    if path is None:
        raise UserError("there is no cache folder", hint="say where with --db PATH")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _program(arguments: Namespace) -> Program:
    if arguments.ops is not None:
        program = read_operators(Path(arguments.ops))
    else:
        program = api.improve(load_model(arguments))
    # As `compile` places it, so that its kernels are those that are looked up.
    return place(program, CpuOptions(1))


def _tune(arguments: Namespace, path: Path) -> int:
    database = TunedKernels(path)
    kernels = kernels_of(_program(arguments))
    if not kernels:
        raise UserError(
            "no kernel of the program has a schedule", where=arguments.model or arguments.ops
        )
    if not is_available():
        hint = "pip install 'isoform[tune]'"
        print(
            f"isoform: scikit-learn is absent: no cost model is learned ({hint})", file=sys.stderr
        )
    told = Told()
    with interrupts("all finished batches are kept") as seen, _executor(arguments) as options:
        try:
            _run(ReuseTuner(database, options, told), kernels, arguments.reuse)
        except KeyboardInterrupt:
            if not seen.count:
                raise
    processor = ReuseTuner(database, options, told).processor
    entries = [database.entry(kernel.task.signature, processor) for kernel in kernels]
    found = [entry for entry in entries if entry is not None]
    faster = [entry for entry in found if entry.schedule]
    print(f"{len(found)} of {len(kernels)} kernels tuned, {len(faster)} faster by another schedule")
    return STATUS if seen.count else 0


def _run(tuner: ReuseTuner, kernels: Sequence[KernelToTune], reuse: str) -> None:
    """Tune kernels, each by itself or by a plan, which is told."""
    hops = REUSE[reuse]
    if hops is None:
        tuner.run(kernels)
        return
    plan = tuner.run_plan(kernels, hops, lambda program: place(program, CpuOptions(1)))
    print(
        f"{len(plan.arcs)} nests, {plan.known} known, {plan.in_full} tuned in full, "
        f"{len(plan.bridges)} bridges",
        file=sys.stderr,
    )


@contextlib.contextmanager
def _executor(arguments: Namespace) -> Generator[TuneOptions]:
    """How trials are run: here, or by a cluster."""
    if arguments.cluster is None:
        yield TuneOptions(arguments.trials, arguments.seed)
        return
    with cluster(arguments.cluster) as executor:
        yield TuneOptions(arguments.trials, arguments.seed, executor, apart=True)


@dataclass
class Told:
    """Prints progress: how far, the best so far, about how long the rest takes.

    A kernel is left where nothing gets better, mostly long before its trials are used up. So those
    to come are taken to need as many trials as those before them did.
    """

    started: float = field(default_factory=time.monotonic)
    trials: dict[int, int] = field(default_factory=dict[int, int])  # of each kernel so far

    def __call__(self, progress: Progress) -> None:
        self.trials[progress.number] = progress.trials
        done = sum(self.trials.values())
        before = [n for k, n in self.trials.items() if k != progress.number]
        usual = sum(before) / len(before) if before else min(progress.of, PATIENCE * BATCH)
        here = max(usual - progress.trials, 0.0)
        later = usual * (progress.kernels - progress.number - 1)
        seconds = (time.monotonic() - self.started) / done * (here + later)
        print(
            f"[{progress.number + 1}/{progress.kernels}] {progress.kernel.name}: "
            f"{progress.trials} trials, {progress.of} at most, "
            f"best {progress.ratio:.2f} of the default, about {_clock(seconds)} left",
            file=sys.stderr,
        )


def _clock(seconds: float) -> str:
    """4:05, or 2:04:05 from an hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _list(database: TunedKernels, *, as_json: bool) -> None:
    """Print each kernel: its address, processor, trials, times and schedule."""
    entries = list(database.file.ops.values())
    if as_json:
        processors = database.processors()
        print_json({"processors": processors, "kernels": [_as_json(entry) for entry in entries]})
        return
    head = ("kernel", "key", "processor", "trials", "default us", "tuned us", "schedule")
    print(table(head, [_row(entry, database) for entry in entries]))


def _as_json(entry: Measured) -> dict[str, object]:
    processor, kernel = kernel_of(entry)
    names = {"key": key(entry.signature), "processor": processor, "kernel": kernel}
    return {**names, **entry.as_json()}


def _row(entry: Measured, database: TunedKernels) -> Sequence[str]:
    processor, kernel = kernel_of(entry)
    words = database.processors().get(processor, "")
    direct = entry.us if entry.direct_us is None else entry.direct_us
    return (
        _name(kernel),
        key(entry.signature)[:12],
        f"{words} {processor[:6]}",
        str(len(entry.trials)),
        f"{direct:.2f}",
        f"{entry.us:.2f}",
        entry.schedule or "the generator's",
    )


def _name(kernel: str) -> str:
    """The kind of kernel and the shapes it reads, from its signature."""
    kind = re.search(r"kernel\.(\w+)", kernel)
    shapes = re.findall(r"tensor<((?:\d+x)*\d+)x", kernel.rpartition(" on (")[2])
    return f"{'kernel' if kind is None else kind[1]} {', '.join(shapes)}"
