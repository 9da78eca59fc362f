"""Measure zoo models on the CPU against other runtimes, interleaved in one process.

    python benchmarks/cpu.py                          the first five of docs/results/cpu-models.md
    python benchmarks/cpu.py --all --threads 1 2
    python benchmarks/cpu.py resnet18 --batch 16
    python benchmarks/cpu.py resnet18 --per-op        where the time goes, kernel by kernel

All runtimes take turns, with the same number of threads; what counts are medians and their ratios.
Peers are onnxruntime, OpenVINO, torch and torch.compile, as far as they are installed
(pip install -e '.[bench]'); ncnn, which does not take every model, where `--against` names it. They
run torchvision's or transformers' own export with the same weights where there is one, and the
table says which file each ran. Of one model, `isoform bench zoo:NAME --against ...` does the same;
of yours, `isoform bench FILE.onnx --against ...` on the file itself.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import isoform
from isoform.compiler import api, zoo
from isoform.compiler.commands.bench import SETTLE, open_peers
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.commands.subcommands import table
from isoform.compiler.peers.model_file import peer_model
from isoform.compiler.peers.runtimes import PEERS, Peer
from isoform.compiler.peers.timing import (
    difference,
    interleave,
    machine,
    median,
    package_version,
    quartiles,
)
from isoform.dialects.program import Program
from isoform.dialects.types import Array
from isoform.testing.peaks import copy_rates, fma_peak
from isoform.testing.per_op import format_ops, per_op

MAIN = ("resnet18", "squeezenet", "vgg19", "bert-base", "dcgan")
ANY_MODEL = tuple(name for name in PEERS if name != "ncnn")
MORE = ("resnet50", "resnext50", "inception-v3", "mobilenet-v2")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names."""
    parsed = _parse(arguments)
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        os.environ.pop(name, None)  # set for other software on shared machines
    names = parsed.models or (MAIN + MORE if parsed.all else MAIN)
    found: list[dict[str, Any]] = []
    for name in names:
        program = zoo.build(name, parsed.batch)
        for threads in parsed.threads:
            if parsed.per_op:
                rows = per_op(program, threads, parsed.effort, parsed.tolerance)
                print(f"{name}, batch {parsed.batch}, {threads} thread(s)\n{format_ops(rows)}\n")
                print(f"{_peaks(threads)}\n", flush=True)
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
    add("--batch", type=int, default=1, metavar="N", help="batch size (1)")
    add("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    add("--seconds", type=float, default=15.0, help="time for the runs of each line (15)")
    add("--against", default=",".join(ANY_MODEL), help=f"of {', '.join(PEERS)} (all but ncnn)")
    add("--effort", default="default", choices=("quick", "default", "max"))
    add("--tolerance", type=float, default=1e-5, help="error Winograd may add; 0: direct only")
    add("--no-error", action="store_true", help="skip the float64 reference (slow)")
    add("--per-op", action="store_true", help="a table of kernels instead")
    add("--json", action="store_true")
    return parser.parse_args(arguments)


def _peaks(threads: int) -> str:
    rates = ", ".join(f"{n >> 10} KiB {r / 1e9:.1f}" for n, r in copy_rates(threads).items())
    return f"peak {fma_peak(threads) / 1e9:.1f} GFLOP/s; copying, GB/s read and written: {rates}"


# --- models -------------------------------------------------------------------------------------


def measure(
    name: str, program: Program, threads: int, options: argparse.Namespace
) -> dict[str, Any]:
    """One model with one number of threads: every runtime's times, and errors against float64."""
    feeds = draw_inputs(program)
    better = api.improve(program)
    session = isoform.compile(better, "cpu", threads, options.effort, options.tolerance)
    ours = Peer("isoform", package_version("isoform"), lambda: session.run(None, feeds))
    with peer_model(program) as model:
        opened = open_peers(model, options.against.split(","), threads, feeds)
        runs = {peer.name: peer.run for peer in (ours, *opened.peers)}
        times = interleave(runs, options.seconds, settle=SETTLE)
    everyone = [ours, *opened.peers]
    exact = None if options.no_error else _exact(program, feeds)
    return {
        "model": name,
        "batch": options.batch,
        "threads": threads,
        "machine": machine(),
        "absent": opened.absent,
        "refused": opened.refused,
        "native_calls_per_run": _calls_per_run(session, feeds),
        "runtimes": {
            peer.name: {
                "version": peer.version,
                "model": peer.model,
                "settings": peer.settings,
                "runs": len(times[peer.name]),
                "median_ms": median(times[peer.name]) * 1e3,
                "quartiles_ms": [t * 1e3 for t in quartiles(times[peer.name])],
                "ratio": median(times[peer.name]) / median(times["isoform"]),
                "apart": difference(peer.run(), ours.run()),
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
    head = ["runtime", "median ms", "quartiles ms", "time / isoform's", "error", "runs"]
    files = [f"{name} runs {r['model']} ({r['settings']})" for name, r in found["runtimes"].items()]
    apart = max(r["apart"] for r in found["runtimes"].values())
    return "\n".join([table(head, rows), *files[1:], f"outputs differ by {apart:.1e} at most"])


def summary(found: Sequence[Mapping[str, Any]]) -> str:
    """All models in one table of medians, and what a reader must know of the machine."""
    about = found[0]["machine"]
    runtimes = {name: r for entry in found for name, r in entry["runtimes"].items()}
    names = [name for name in runtimes if name != "isoform"]
    rows = []
    for entry in found:
        ours = entry["runtimes"]["isoform"]
        row = [entry["model"], str(entry["batch"]), str(entry["threads"])]
        row.append(f"{ours['median_ms']:.2f}")
        for name in names:
            theirs = entry["runtimes"].get(name)
            if theirs is None:
                row.append("refused")
                continue
            row.append(f"{theirs['median_ms']:.2f} ({theirs['ratio']:.2f}x)")
        row.append("-" if ours["error"] is None else f"{ours['error']:.1e}")
        row.append(next((entry["runtimes"][name]["model"] for name in names), "-"))
        rows.append(row)
    versions = ", ".join(f"{name} {r['version']}" for name, r in runtimes.items())
    loads = [entry["machine"]["load_average"] or 0.0 for entry in found]
    lines = [
        table(["model", "batch", "threads", "isoform", *names, "error", "file"], rows),
        "milliseconds, medians; in brackets the runtime's time over isoform's",
        f"{about['cpu']}, {about['cores']} cores, {about['system']}, Python {about['python']}",
        f"{versions}; load average {min(loads):.1f} to {max(loads):.1f}",
    ]
    return "\n".join(lines + [f"{name} is not installed" for name in found[0]["absent"]])


if __name__ == "__main__":
    main()
