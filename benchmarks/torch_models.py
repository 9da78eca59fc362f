"""Run library models through torch.compile(backend="isoform"), beside eager and inductor.

Each model has random weights, is in evaluation mode, and runs in a process of its own: eager,
inductor (weights frozen) and isoform in turn, on one thread, by the thread's clock. A line of JSON
is written for each; `--table` prints the lines as a table.

    python benchmarks/torch_models.py --out models.jsonl [NAME ...]
    python benchmarks/torch_models.py --out models.jsonl --table
    python benchmarks/torch_models.py --out models.jsonl --agree [NAME ...]   no inductor, no times
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch_cases import CASES

sys.path.pop(0)  # this folder's names are others' (`kernels`)
NEAR = 1e-5  # relative to the greatest magnitude of a result


def measure(name: str, seconds: float) -> dict[str, Any]:
    """One model: compiled three ways, compared and timed."""
    import torch  # pyright: ignore[reportMissingImports]

    import isoform

    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.getLogger("isoform.torch").addHandler(handler := _Reasons())
    module, args = CASES[name](torch)
    module.eval()
    counters = torch._dynamo.utils.counters
    with torch.no_grad():
        wanted = _leaves(torch, module(*args))
        counters.clear()
        started = time.process_time()
        options = {} if seconds else {"effort": "quick"}
        ours = torch.compile(module, backend=isoform.torch.backend, options=options)
        found = _leaves(torch, ours(*args))
        seconds_to_compile = time.process_time() - started
        counted, breaks = dict(counters["isoform"]), sum(counters["graph_break"].values())
        runs = {"eager": lambda: module(*args), "isoform": lambda: ours(*args)}
        inductor = _inductor(torch, module, args) if seconds else None
        if inductor is not None:
            runs["inductor"] = inductor
        times = _interleaved(runs, seconds) if seconds else {}
    apart = max((_apart(a, b) for a, b in zip(found, wanted, strict=True)), default=0.0)
    return {
        "model": name, "calls": counted.get("calls", 0), "run": counted.get("run", 0),
        "parts": counted.get("parts", 0), "breaks": breaks, "apart": apart,
        "compile_s": seconds_to_compile, "left": sorted(handler.found),
        "ms": {key: 1e3 * statistics.median(value) for key, value in times.items()},
    }  # fmt: skip


def _interleaved(runs: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Seconds of the thread's clock for each run, in turn: other work does not count."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in (*runs.values(), *runs.values()):
        run()
    end = time.thread_time() + seconds
    while time.thread_time() < end or len(times["eager"]) < 5:
        for name, run in runs.items():
            started = time.thread_time()
            run()
            times[name].append(time.thread_time() - started)
    return times


def _inductor(torch: Any, module: Any, args: Any) -> Callable[[], Any] | None:
    with torch._inductor.config.patch(freezing=True):
        compiled = torch.compile(module)
        try:
            compiled(*args)
        except (RuntimeError, AssertionError, torch._dynamo.exc.TorchDynamoException):
            return None
    return lambda: compiled(*args)


class _Reasons(logging.Handler):
    """Keeps the ops that stayed in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self.found.add(record.getMessage().partition(": ")[2])


def _leaves(torch: Any, value: Any) -> list[Any]:
    found = torch.utils._pytree.tree_leaves(value)
    return [t for t in found if isinstance(t, torch.Tensor)]


def _apart(a: Any, b: Any) -> float:
    """The greatest difference, relative to the greatest magnitude."""
    if not b.numel():
        return 0.0
    most = float(b.double().abs().max())
    return float((a.double() - b.double()).abs().max()) / (most or 1.0)


def _table(path: Path) -> None:
    print("| model | calls | run | parts | breaks | apart | compile s | eager ms | inductor ms"
          " | isoform ms |\n|" + "---|" * 10)  # fmt: skip
    for line in path.read_text().splitlines():
        m = json.loads(line)
        if "failed" in m:
            print(f"| {m['model']} | failed: {m['failed']} |" + " |" * 8)
            continue
        share = 100.0 * m["run"] / m["calls"] if m["calls"] else 0.0
        ms = [
            f"{m['ms'][k]:.2f}" if k in m["ms"] else "-" for k in ("eager", "inductor", "isoform")
        ]
        cells = (m["model"], m["calls"], f"{share:.0f}%", m["parts"], m["breaks"],
                 f"{m['apart']:.0e}", f"{m['compile_s']:.0f}", *ms)  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |")


def main() -> None:
    """Measure the models named, each in its own process, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="models (all)")
    parser.add_argument("--out", type=Path, default=Path("torch_models.jsonl"))
    parser.add_argument(
        "--seconds",
        type=float,
        default=2.0,
        help="of timing, by the thread's clock, for each model",
    )
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each model in all")
    parser.add_argument("--table", action="store_true", help="print what is in the file")
    parser.add_argument("--agree", action="store_true", help="run and compare, without times")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.seconds = 0.0 if args.agree else args.seconds
    if args.table:
        _table(args.out)
    elif args.one:
        print(json.dumps(measure(args.names[0], args.seconds)))
    else:
        for name in args.names or CASES:
            with args.out.open("a") as file:
                file.write(_child(name, args.seconds, args.limit) + "\n")


def _child(name: str, seconds: float, limit: float) -> str:
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return json.dumps({"model": name, "failed": f"not done in {limit:.0f} s"})
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return json.dumps({"model": name, "failed": last[:200]})
    return lines[-1]


if __name__ == "__main__":
    main()
