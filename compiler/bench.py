"""`isoform bench`: a program against other runtimes, interleaved in one process.

The machine is shared and its clock moves, so no two runtimes are timed one after the other: they
take turns, each round starting with another one, some untimed runs before each timed one, and what
counts are medians and their ratios. Threads are pinned in every runtime.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ..dialects.errors import UserError, did_you_mean
from ..dialects.program import Program
from ..dialects.types import Array
from .peers import PEERS, Outputs, Peer

Run = Callable[[], object]
WARM_UP = 2
# Runtimes let their threads spin for a few milliseconds after a run.
SETTLE = 0.02


def interleave(
    runs: Mapping[str, Run], seconds: float, least: int = 5, most: int = 2000, settle: float = 0.0
) -> dict[str, list[float]]:
    """Time each run in turn until `seconds` are spent, `least` rounds at least; in seconds.

    Args:
        settle: seconds of untimed runs before each timed one. The threads of the runtime that ran
            before may spin for a while on a core that this one needs, and its data fill caches.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    for name in order * WARM_UP:
        runs[name]()
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < least or (time.perf_counter() < end and rounds < most):
        for name in order[rounds % len(order) :] + order[: rounds % len(order)]:
            _settle(runs[name], settle)
            started = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - started)
        rounds += 1
    return times


def _settle(run: Run, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        run()


def median(times: Sequence[float]) -> float:
    """The median."""
    return statistics.median(times)


def quartiles(times: Sequence[float]) -> tuple[float, float]:
    """The 25th and the 75th percentile."""
    low, high = np.percentile(np.asarray(times), [25, 75])
    return float(low), float(high)


def machine() -> dict[str, Any]:
    """What a reader of timings must know of the machine; the load is that of the last minute."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "load_average": load,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def cpu_name() -> str:
    """The processor's marketing name where the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def package_version(name: str) -> str:
    """Version of an installed package, "?" where its metadata is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "?"


def bench(
    program: Program,
    against: Sequence[str],
    threads: int,
    seconds: float,
    seed: int = 0,
    improve: bool = True,
    effort: str = "default",
    tolerance: float = 1e-5,
) -> dict[str, Any]:
    """Time a program, and the same model in other runtimes.

    Args:
        against: names of `peers.PEERS`.
        seconds: for the timed runs of all together.
        effort, tolerance: as `api.compile` takes them.
        improve: whether the rewrites that never hurt are applied first.

    Raises:
        UserError: unknown runtime, or a runtime refuses the model.
    """
    from . import api
    from .inputs import draw_inputs

    _check_names(against)
    # Set for other software on shared machines, they slow OpenBLAS down.
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    feeds = draw_inputs(program, seed)
    better = api.improve(program) if improve else program
    session = api.compile(better, "cpu", threads, effort, tolerance)
    ours = Peer("isoform", package_version("isoform"), lambda: session.run(None, feeds))
    peers, absent = open_peers(program, against, threads, feeds)
    everyone = [ours, *peers]
    times = interleave({peer.name: peer.run for peer in everyone}, seconds, settle=SETTLE)
    base = median(times["isoform"])
    return {
        "model": program.source,
        "threads": threads,
        "machine": machine(),
        "algorithms": session.algorithms,
        "results": [_result(peer, times[peer.name], base, threads) for peer in everyone],
        "absent": absent,
        "differences": {p.name: difference(ours.run(), p.run()) for p in peers},
    }


def _check_names(against: Sequence[str]) -> None:
    for name in against:
        if name not in PEERS:
            hint = did_you_mean(name, PEERS) or f"known: {', '.join(PEERS)}"
            raise UserError(f"unknown runtime '{name}'", where="--against", hint=hint)


def open_peers(
    program: Program, names: Sequence[str], threads: int, feeds: Mapping[str, Array]
) -> tuple[list[Peer], list[str]]:
    """The peers that are installed, ready to run, and the names of those that are not."""
    peers, absent = list[Peer](), list[str]()
    for name in names:
        try:
            peers.append(PEERS[name](program, threads, feeds))
        except ImportError:
            absent.append(name)
    return peers, absent


def _result(peer: Peer, times: Sequence[float], base: float, threads: int) -> dict[str, Any]:
    low, high = quartiles(times)
    return {
        "runtime": peer.name,
        "version": peer.version,
        "threads": threads,
        "runs": len(times),
        "median_s": median(times),
        "p25_s": low,
        "p75_s": high,
        "ratio": median(times) / base,
    }


def difference(ours: Outputs, theirs: Outputs) -> float:
    """Greatest difference of any output, relative to the other runtime's greatest magnitude."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        wide_a, wide_b = a.astype(np.float64), np.asarray(b).astype(np.float64)
        scale = float(np.abs(wide_b).max(initial=0.0)) or 1.0
        worst = max(worst, float(np.abs(wide_a - wide_b).max(initial=0.0)) / scale)
    return worst


def bench_command(arguments: Namespace) -> int:
    """`isoform bench MODEL`."""
    from .commands import load_model, print_json

    against = [name for name in arguments.against.split(",") if name]
    _check_names(against)
    found = bench(
        load_model(arguments),
        against,
        arguments.threads,
        arguments.seconds,
        arguments.seed,
        not arguments.no_optimize,
        arguments.effort,
        arguments.tolerance,
    )
    if arguments.json:
        print_json(found)
    else:
        print(format_bench(found))
    return 0


def format_bench(found: Mapping[str, Any]) -> str:
    """The result as a table and what is needed to read it."""
    from .commands import table

    rows = [
        [
            f"{r['runtime']} {r['version']}",
            f"{r['median_s'] * 1e3:.3f}",
            f"{r['p25_s'] * 1e3:.3f} .. {r['p75_s'] * 1e3:.3f}",
            f"{r['ratio']:.2f}",
            str(r["runs"]),
        ]
        for r in found["results"]
    ]
    about = found["machine"]
    load = "?" if about["load_average"] is None else f"{about['load_average']:.2f}"
    lines = [
        table(["runtime", "median ms", "quartiles ms", "against isoform", "runs"], rows),
        f"{found['model']}, {found['threads']} thread(s) each, {about['cpu']}, load {load}",
    ]
    lines += [f"{name} is not installed, so it was left out" for name in found["absent"]]
    worst = max(found["differences"].values(), default=None)
    if worst is not None:
        lines.append(f"outputs differ by {worst:.1e} of the greatest magnitude at most")
    return "\n".join(lines)
