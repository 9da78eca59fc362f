"""CPU seconds of `isoform optimize`: of this checkout, and of another one in turn with it.

python benchmarks/search_seconds.py zoo:squeezenet tests/search/original/lora.mlir --old FOLDER

Each command is a process of its own. The first run of each begins with an empty cache folder; the
second finds what the first left. CPU seconds are of the process and those it starts: on a machine
that is shared they vary less than wall-clock seconds, which stand beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
OPTIMIZE = "import sys; from isoform.compiler.cli import main; sys.exit(main())"


def run(checkout: Path, folder: Path, more: Sequence[str]) -> tuple[float, float, str]:
    """CPU and wall-clock seconds of one command in a checkout, and how it ended."""
    package = folder / "path" / "isoform"
    package.parent.mkdir(exist_ok=True)
    if not package.exists():
        package.symlink_to(checkout)
    cache = str(folder / "cache")
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "ISOFORM_CACHE": cache}
    report = folder / "report.json"
    command = [sys.executable, "-c", OPTIMIZE, "optimize", *more, "-o", str(folder / "out.mlir")]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    flags = ["--report", str(report)]
    done = subprocess.run([*command, *flags], env=environment, capture_output=True, text=True)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - started
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    found = json.loads(report.read_text())
    cost = found["cost"]
    gain = cost["before"] / cost["after"] if cost["after"] else 1.0
    return seconds, wall, f"{found['stop_reason']}, {gain:.2f}x {cost['kind']}"


def main() -> None:
    """Print one row for each model, checkout and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--old", type=Path, help="a checkout of another commit")
    parser.add_argument("--budget", default="600")
    parser.add_argument("--target", default="cpu")
    asked = parser.parse_args()
    checkouts = {"old": asked.old.resolve()} if asked.old else {}
    checkouts["new"] = HERE
    print("| program | checkout | run | CPU s | wall s | ended |\n|---|---|---|---|---|---|")
    for model in asked.models:
        flags = [model, "--budget", asked.budget, "--target", asked.target]
        for name, checkout in checkouts.items():
            with tempfile.TemporaryDirectory() as folder:
                for number in ("first", "second"):
                    cpu, wall, ended = run(checkout, Path(folder), flags)
                    row = (model, name, number, f"{cpu:.1f}", f"{wall:.1f}", ended)
                    print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
