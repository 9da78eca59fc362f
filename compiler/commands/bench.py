"""`isoform bench`: a program against other runtimes, interleaved in one process.

The machine is shared and its clock speed varies, so runtimes are not timed one after the other.
They take turns. Each round starts with a different runtime, and untimed runs come before each timed
one. Compare the medians and their ratios. Threads are pinned in every runtime.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...dialects.errors import UserError, did_you_mean
from ...dialects.floats import Allowed
from ...dialects.program import Program
from ...dialects.types import Array
from ..peers.model_file import PeerModel, peer_model
from ..peers.runtimes import PEERS, Peer, Refused
from ..peers.timing import difference, interleave, machine, median, package_version, quartiles
from ..search import optimizer
from ..targets.cpu import compile_cpu
from ..targets.cpu_options import CpuOptions
from ..targets.session import Session
from .inputs import draw_inputs
from .subcommands import load_model, print_json, table

# Seconds of untimed runs before each timed one: the threads of the runtime before may still spin.
SETTLE = 0.02
# Outputs further apart than this, relative to the greatest magnitude, are a different result.
AGREE = 1e-2


def bench(
    program: Program,
    against: Sequence[str],
    threads: int,
    seconds: float,
    seed: int = 0,
    improve: bool = True,
    effort: str = "default",
    tolerance: float = 1e-5,
    name: str | Path | None = None,
    floats: Allowed | None = None,
) -> dict[str, Any]:
    """Time a program, and the same model in other runtimes.

    Args:
        against: names of `peers.runtimes.PEERS`; NAME:FILE.onnx runs that file instead of the
            model's.
        name: what the program was loaded from; an `.onnx` goes to the other runtimes unchanged.
        seconds: for the timed runs of all runtimes together.
        effort: what is measured to choose kernels, as in `api.compile`.
        tolerance: relative error that an inexact algorithm (Winograd) may add; 0 admits none.
        floats: what rewrites may do to floats.
        improve: whether to apply first the rewrites that need no measuring.

    Raises:
        UserError: unknown runtime, or a file that is missing or no model. What a runtime refuses is
            in the result, under `refused`.
    """
    _check_names(against)
    # Alone no file is read: its label is empty.
    alone = nullcontext(PeerModel(Path(name or program.source), "", program))
    with peer_model(program, name) if against else alone as model:
        options = CpuOptions(threads, effort, tolerance, floats=floats or Allowed())
        return _bench(model, against, seconds, seed, improve, options)


def _bench(
    model: PeerModel,
    against: Sequence[str],
    seconds: float,
    seed: int,
    improve: bool,
    options: CpuOptions,
) -> dict[str, Any]:
    # Shared machines set these for other software; they slow OpenBLAS down.
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)
    program = model.program
    feeds = draw_inputs(program, seed)
    strict, threads = options.floats.strict_nan, options.threads
    better = optimizer.improve(program, strict_nan=strict) if improve else program
    session = Session(better, compile_cpu(better, options))
    run = partial(session.run, None, feeds)
    # `key` names what the user allows beside the defaults, such as fast-math; else it is empty.
    settings = (
        f"effort {options.effort}, tolerance {options.tolerance:g} {options.floats.key}".strip()
    )
    ours = Peer("isoform", package_version("isoform"), run, program.source, settings)
    opened = open_peers(model, against, threads, feeds)
    everyone = [ours, *opened.peers]
    times = interleave({peer.name: peer.run for peer in everyone}, seconds, settle=SETTLE)
    base = median(times["isoform"])
    return {
        "model": program.source,
        "threads": threads,
        "machine": machine(),
        "algorithms": session.algorithms,  # isoform's, where they are not the direct ones
        "results": [_result(peer, times[peer.name], base, threads) for peer in everyone],
        "absent": opened.absent,
        "refused": opened.refused,
        "differences": {p.name: difference(ours.run(), p.run()) for p in opened.peers},
    }


def _check_names(against: Sequence[str]) -> None:
    for spec in against:
        name = spec.partition(":")[0]
        if name not in PEERS:
            hint = did_you_mean(name, PEERS) or f"known: {', '.join(PEERS)}"
            raise UserError(f"unknown runtime '{name}'", where="--against", hint=hint)


@dataclass
class OpenedPeers:
    """Peers that are ready to run, names not installed, and why others refuse the model."""

    peers: list[Peer] = field(default_factory=list[Peer])
    absent: list[str] = field(default_factory=list[str])
    refused: dict[str, str] = field(default_factory=dict[str, str])


def open_peers(
    model: PeerModel, names: Sequence[str], threads: int, feeds: Mapping[str, Array]
) -> OpenedPeers:
    """Load the model in each runtime.

    Args:
        names: RUNTIME, or RUNTIME:FILE.onnx, which runs that file instead of the model's.

    Raises:
        UserError: a file is missing or is not a model.
    """
    opened = OpenedPeers()
    for spec in names:
        name, _, file = spec.partition(":")
        given = model.with_file(Path(file)) if file else model
        try:
            opened.peers.append(replace(PEERS[name](given, threads, feeds), name=spec))
        except ImportError:
            opened.absent.append(name)
        except Refused as error:
            opened.refused[spec] = str(error)
    return opened


def _result(peer: Peer, times: Sequence[float], base: float, threads: int) -> dict[str, Any]:
    low, high = quartiles(times)
    return {
        "runtime": peer.name,
        "version": peer.version,
        "model": peer.model,
        "settings": peer.settings,
        "threads": threads,
        "runs": len(times),
        "median_s": median(times),
        "p25_s": low,
        "p75_s": high,
        "ratio": median(times) / base,
    }


def bench_command(arguments: Namespace) -> int:
    """`isoform bench MODEL`."""
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
        arguments.model,
        Allowed(arguments.fast_math, arguments.strict_nan),
    )
    if arguments.json:
        print_json(found)
    else:
        print(format_bench(found))
    return 0


def format_bench(found: Mapping[str, Any]) -> str:
    """The result as a table, with what a reader needs to interpret it."""
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
        table(["runtime", "median ms", "quartiles ms", "time / isoform's", "runs"], rows),
        f"{found['model']}, {found['threads']} thread(s) each, {about['cpu']}, load {load}",
    ]
    lines += [f"{r['runtime']} runs {r['model']} ({r['settings']})" for r in found["results"]]
    lines += [f"{name} is not installed, so it was left out" for name in found["absent"]]
    lines += [f"{name} was left out: {why}" for name, why in found["refused"].items()]
    worst = max(found["differences"].values(), default=None)
    if worst is not None:
        lines.append(f"outputs differ by {worst:.1e} of the greatest magnitude at most")
    lines += [
        f"{name} computes something else ({by:.1e} apart): its time says nothing"
        for name, by in found["differences"].items()
        if not by <= AGREE
    ]
    return "\n".join(lines)
