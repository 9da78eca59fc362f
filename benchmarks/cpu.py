"""Measure zoo models on the CPU against other runtimes, interleaved in one process.

    python benchmarks/cpu.py                          the five models of docs/cpu.md's first table
    python benchmarks/cpu.py --all --threads 1 2
    python benchmarks/cpu.py resnet18 --per-op        where the time goes, kernel by kernel

All runtimes take turns, with the same number of threads; what counts are medians and their ratios.
Peers are onnxruntime, OpenVINO and torch, as far as they are installed (pip install -e '.[bench]').
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import isoform
from isoform.compiler import api, zoo
from isoform.compiler.bench import (
    SETTLE,
    difference,
    interleave,
    machine,
    median,
    open_peers,
    package_version,
    quartiles,
)
from isoform.compiler.commands import table
from isoform.compiler.cpu import CpuOptions
from isoform.compiler.inputs import draw_inputs
from isoform.compiler.levels import place
from isoform.compiler.peers import PEERS, Peer
from isoform.dialects.kernel import CallOp, ConvOp, KernelOp
from isoform.dialects.program import Program, where
from isoform.dialects.types import Array
from isoform.lowering.algebra_to_kernel.match import match_conv
from isoform.lowering.kernel_to_cpu.session import CpuSession
from isoform.passes.flops import scope_work

MAIN = ("resnet18", "squeezenet", "vgg19", "bert-base", "dcgan")
MORE = ("resnet50", "resnext50", "inception-v3", "mobilenet-v2")
ROUNDS = 15


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names."""
    parsed = _parse(arguments)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)  # set for other software on shared machines
    names = parsed.models or (MAIN + MORE if parsed.all else MAIN)
    found: list[dict[str, Any]] = []
    for name in names:
        program = zoo.build(name)
        for threads in parsed.threads:
            if parsed.per_op:
                print(f"{name}, {threads} thread(s)\n{format_ops(per_op(program, threads))}\n")
                continue
            found.append(measure(name, program, threads, parsed))
            print(f"{name}, {threads} thread(s)\n{_one(found[-1])}\n", file=sys.stderr, flush=True)
    if found:
        print(json.dumps(found, indent=2) if parsed.json else summary(found))


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("models", nargs="*", metavar="MODEL", help=f"zoo models (default: {', '.join(MAIN)})")
    add("--all", action="store_true", help=f"also {', '.join(MORE)}")
    add("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    add("--seconds", type=float, default=15.0, help="time for the runs of each line (15)")
    add("--against", default=",".join(PEERS), help="runtimes, comma-separated (all there are)")
    add("--effort", default="default", choices=("quick", "default", "max"))
    add("--tolerance", type=float, default=1e-5, help="error Winograd may add; 0: direct only")
    add("--no-error", action="store_true", help="skip the float64 reference (slow)")
    add("--per-op", action="store_true", help="a table of kernels instead")
    add("--json", action="store_true")
    return parser.parse_args(arguments)


# --- models -------------------------------------------------------------------------------------


def measure(
    name: str, program: Program, threads: int, options: argparse.Namespace
) -> dict[str, Any]:
    """One model with one number of threads: every runtime's times, and errors against float64."""
    feeds = draw_inputs(program)
    better = api.improve(program)
    session = isoform.compile(better, "cpu", threads, options.effort, options.tolerance)
    ours = Peer("isoform", package_version("isoform"), lambda: session.run(None, feeds))
    peers, absent = open_peers(program, options.against.split(","), threads, feeds)
    everyone = [ours, *peers]
    times = interleave({peer.name: peer.run for peer in everyone}, options.seconds, settle=SETTLE)
    exact = None if options.no_error else _exact(program, feeds)
    return {
        "model": name,
        "threads": threads,
        "machine": machine(),
        "absent": absent,
        "native_calls_per_run": _calls_per_run(session, feeds),
        "runtimes": {
            peer.name: {
                "version": peer.version,
                "runs": len(times[peer.name]),
                "median_ms": median(times[peer.name]) * 1e3,
                "quartiles_ms": [t * 1e3 for t in quartiles(times[peer.name])],
                "ratio": median(times[peer.name]) / median(times["isoform"]),
                "error": None if exact is None else difference(peer.run(), exact),
            }
            for peer in everyone
        },
    }


def _exact(program: Program, feeds: Mapping[str, Array]) -> list[Array]:
    """The outputs in float64."""
    from isoform.dialects import reference

    found = reference.run(program, feeds)
    return [np.asarray(found[name]) for name in program.output_names]


def _calls_per_run(session: isoform.Session, feeds: Mapping[str, Array]) -> int:
    before = session.runner.native_calls
    session.run(None, feeds)
    return session.runner.native_calls - before


def _one(found: Mapping[str, Any]) -> str:
    rows = [
        [
            f"{name} {r['version']}",
            f"{r['median_ms']:.3f}",
            f"{r['quartiles_ms'][0]:.3f} .. {r['quartiles_ms'][1]:.3f}",
            f"{r['ratio']:.2f}",
            "-" if r["error"] is None else f"{r['error']:.1e}",
            str(r["runs"]),
        ]
        for name, r in found["runtimes"].items()
    ]
    head = ["runtime", "median ms", "quartiles ms", "against isoform", "error", "runs"]
    return table(head, rows)


def summary(found: Sequence[Mapping[str, Any]]) -> str:
    """All models in one table of medians, and what a reader must know of the machine."""
    about, runtimes = found[0]["machine"], found[0]["runtimes"]
    names = [name for name in runtimes if name != "isoform"]
    rows = []
    for entry in found:
        ours, row = entry["runtimes"]["isoform"], [entry["model"], str(entry["threads"])]
        row.append(f"{ours['median_ms']:.2f}")
        for name in names:
            theirs = entry["runtimes"][name]
            row.append(f"{theirs['median_ms']:.2f} ({theirs['ratio']:.2f}x)")
        row.append("-" if ours["error"] is None else f"{ours['error']:.1e}")
        rows.append(row)
    versions = ", ".join(f"{name} {r['version']}" for name, r in runtimes.items())
    loads = [entry["machine"]["load_average"] or 0.0 for entry in found]
    lines = [
        table(["model", "threads", "isoform", *names, "error"], rows),
        "milliseconds, medians; in brackets the runtime's time over isoform's",
        f"{about['cpu']}, {about['cores']} cores, {about['system']}, Python {about['python']}",
        f"{versions}; load average {min(loads):.1f} to {max(loads):.1f}",
    ]
    return "\n".join(lines + [f"{name} is not installed" for name in found[0]["absent"]])


# --- kernels ------------------------------------------------------------------------------------


def per_op(program: Program, threads: int) -> list[dict[str, Any]]:
    """Every kernel of a program: median time alone, operations, share; slowest first."""
    placed = place(api.improve(program), CpuOptions(threads))
    session = CpuSession(placed, threads)
    session.run(draw_inputs(program))
    ops = [
        op
        for op in placed.main.body.block.ops
        if isinstance(op, KernelOp | CallOp) and op.results[0] not in session.constants.known
    ]
    runs = {str(k): (lambda s=set(op.results): session.time(s)) for k, op in enumerate(ops)}
    times = [median(t) for t in interleave(runs, 0.0, least=ROUNDS).values()]
    session.close()
    total = sum(times)
    rows = [
        {
            "kernel": op.name,
            "place": where(op),
            "ms": seconds * 1e3,
            "mflop": _flops(op) / 1e6,
            "gflops": _flops(op) / seconds / 1e9,
            "share": seconds / total,
        }
        for op, seconds in zip(ops, times, strict=True)
    ]
    return sorted(rows, key=lambda row: -row["ms"])


def _flops(op: KernelOp | CallOp) -> int:
    """Operations of a kernel; a transposed convolution's scope also counts the taps it skips."""
    scopes = op.scopes if isinstance(op, KernelOp) else []
    flops = [scope_work(scope).flops for scope in scopes]
    found = match_conv(scopes[0]) if isinstance(op, ConvOp) else None
    if found is not None and found.transposed:
        flops[0] //= math.prod(found.strides)
    return sum(flops)


def format_ops(rows: Sequence[Mapping[str, Any]]) -> str:
    """The kernels as a table, with the sum."""
    cells = [
        [
            row["place"],
            f"{row['ms']:.4f}",
            f"{row['mflop']:.2f}",
            f"{row['gflops']:.1f}",
            f"{row['share']:.1%}",
        ]
        for row in rows
    ]
    ms, mflop = (sum(row[key] for row in rows) for key in ("ms", "mflop"))
    cells.append(["all", f"{ms:.4f}", f"{mflop:.2f}", f"{mflop / ms:.1f}", "100.0%"])
    return table(["kernel", "ms", "MFLOP", "GFLOP/s", "share"], cells)


if __name__ == "__main__":
    main()
