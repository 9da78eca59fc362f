"""Measure how long a model takes from nothing, and from the cache folder, to its first result.

    python benchmarks/startup.py                        ResNet-18, default effort, all cores
    python benchmarks/startup.py model.onnx --effort quick --threads 1
    python benchmarks/startup.py --cached               leave the compilation from nothing out

Every figure is of a process of its own, with a cache folder of this run's own (`ISOFORM_CACHE`), so
nothing is found but what the first process left. `from nothing` and `from the cache` are the calls
`load` and `compile`; imports that they make are timed by `-X importtime` and left out of `from the
cache, no imports`. `to the first result` is from the start of the interpreter to the end of the
first run, everything included. Of the repeated figures the median counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from isoform.compiler.commands.subcommands import table
from isoform.lowering.kernel_to_cpu.runtime.cores import processors

PROCESS = """
import sys, time
import isoform
from isoform.compiler.commands.inputs import draw_inputs
model, effort, threads = sys.argv[1:]
print("-- begin", file=sys.stderr, flush=True)
started = time.perf_counter()
program = isoform.load(model)
session = isoform.compile(program, effort=effort, threads=int(threads) or None)
seconds = time.perf_counter() - started
print("-- end", file=sys.stderr, flush=True)
session.run(None, draw_inputs(program))
print(seconds, time.time(), flush=True)
"""
IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|(\s+)(\S+)")
SHOWN = 12


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description="Measure compilation and start-up")
    add = parser.add_argument
    add("model", nargs="?", default="zoo:resnet18", metavar="MODEL")
    add("--effort", default="default", choices=("quick", "default", "max"))
    add("--threads", type=int, default=0, metavar="N", help="0: all cores")
    add("--repeat", type=int, default=5, metavar="N", help="processes that read the cache")
    add("--cached", action="store_true", help="fill the cache at effort quick, untimed")
    add("--json", action="store_true")
    parsed = parser.parse_args(arguments)
    effort = "quick" if parsed.cached else parsed.effort
    found = measure(parsed.model, effort, parsed.threads, max(1, parsed.repeat))
    if parsed.cached:
        del found["seconds"]["from nothing"]
    print(json.dumps(found, indent=2) if parsed.json else format_found(found))


def measure(model: str, effort: str, threads: int, repeat: int) -> dict[str, Any]:
    """Seconds by name, and the imports that took longest."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["-c", PROCESS, model, effort, str(threads)]
        first = run(command, folder)
        later = [run(command, folder) for _ in range(repeat)]
        listed = [run(["-X", "importtime", *command], folder) for _ in range(repeat)]
    imports = imports_of(listed[-1]["stderr"])
    inside = [process["seconds"] - imports_inside(process["stderr"]) for process in listed]
    return {
        "model": model,
        "effort": effort,
        "python": sys.version.split()[0],
        "cores": processors(),
        "load_average": os.getloadavg()[0],
        "seconds": {
            "from nothing": first["seconds"],
            "from the cache": median(later, "seconds"),
            "from the cache, no imports": statistics.median(inside),
            "to the first result": median(later, "whole"),
        },
        "imports": imports,
    }


def run(command: Sequence[str], folder: str) -> dict[str, Any]:
    """One process: seconds of load and compile, of the whole, and what it wrote to stderr."""
    environment = {**os.environ, "ISOFORM_CACHE": folder}
    started = time.time()
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    seconds, ended = map(float, done.stdout.split())
    return {"seconds": seconds, "whole": ended - started, "stderr": done.stderr}


def median(processes: Sequence[Mapping[str, Any]], key: str) -> float:
    """Median of one figure."""
    return statistics.median(process[key] for process in processes)


def imports_inside(stderr: str) -> float:
    """Seconds of the imports between the two marks, each module by itself."""
    part = stderr.partition("-- begin")[2].partition("-- end")[0]
    return sum(int(own) for own, *_ in IMPORT.findall(part)) / 1e6


def imports_of(stderr: str) -> list[tuple[str, float]]:
    """Top-level packages by the seconds that their modules take themselves, longest first."""
    total: dict[str, float] = {}
    for own, _, _, name in IMPORT.findall(stderr):
        package = name.partition(".")[0]
        total[package] = total.get(package, 0.0) + int(own) / 1e6
    return sorted(total.items(), key=lambda item: (-item[1], item[0]))


def format_found(found: Mapping[str, Any]) -> str:
    """The figures and the longest imports as two tables."""
    seconds = [[name, f"{value:.3f}"] for name, value in found["seconds"].items()]
    imports = [[name, f"{value * 1e3:.0f}"] for name, value in found["imports"][:SHOWN]]
    rest = sum(value for _, value in found["imports"][SHOWN:])
    imports += [["the others", f"{rest * 1e3:.0f}"]]
    imports += [["all", f"{sum(v for _, v in found['imports']) * 1e3:.0f}"]]
    head = (
        f"{found['model']}, effort {found['effort']}, {found['cores']} cores, "
        f"Python {found['python']}, load average {found['load_average']:.1f}"
    )
    return "\n\n".join(
        [head, table(["", "seconds"], seconds), table(["imported package", "ms"], imports)]
    )


if __name__ == "__main__":
    main()
