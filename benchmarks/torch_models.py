"""Run library models through torch.compile(backend="isoform"), beside eager and inductor.

Each model has random weights, is in evaluation mode, and runs in a process of its own: eager,
inductor (weights frozen) and isoform in turn, on one thread by the thread's clock, on more by the
wall clock and in blocks of calls. A line of JSON is written for each; models that the file has are
not run again, and `--table` prints the lines as a table.

    python benchmarks/torch_models.py --out models.jsonl [NAME ...]
    python benchmarks/torch_models.py --out models.jsonl --threads 2 [NAME ...]
    python benchmarks/torch_models.py --out models.jsonl --table
    python benchmarks/torch_models.py --ops NAME              what takes longest in one model
    python benchmarks/torch_models.py --out models.jsonl --agree [NAME ...]   no inductor, no times
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from torch_cases import CASES

sys.path.pop(0)  # this folder's names are others' (`kernels`)
# Threads of torch's pool spin for milliseconds after a call and take a core from what comes next:
# on several threads, so many calls of one kind follow each other, after two that do not count.
BLOCK = 8


def measure(name: str, seconds: float, threads: int) -> dict[str, Any]:
    """One model: compiled three ways, compared and timed."""
    import torch  # pyright: ignore[reportMissingImports]

    import isoform

    torch.set_num_threads(threads)
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
        clock = time.thread_time if threads == 1 else time.perf_counter
        times = _interleaved(runs, seconds, clock, 1 if threads == 1 else BLOCK) if seconds else {}
    apart = max((_apart(a, b) for a, b in zip(found, wanted, strict=True)), default=0.0)
    return {
        "model": name, "threads": threads, "load": os.getloadavg()[0],
        "calls": counted.get("calls", 0), "run": counted.get("run", 0),
        "parts": counted.get("parts", 0), "breaks": breaks, "apart": apart,
        "compile_s": seconds_to_compile, "left": sorted(handler.found),
        "ms": {key: 1e3 * statistics.median(value) for key, value in times.items()},
    }  # fmt: skip


def _interleaved(
    runs: Mapping[str, Callable[[], Any]], seconds: float, clock: Callable[[], float], block: int
) -> dict[str, list[float]]:
    """Seconds of calls, in turn or in blocks; by the thread's clock, other work does not count."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in (*runs.values(), *runs.values()):
        run()
    end = clock() + seconds
    while clock() < end or len(times["eager"]) < 5:
        for name, run in runs.items():
            for k in range(block if block == 1 else block + 2):
                started = clock()
                run()
                if block == 1 or k >= 2:
                    times[name].append(clock() - started)
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


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _table(path: Path) -> None:
    """A row for each model: what ran, then the times at each number of threads."""
    found = _lines(path)
    counts = sorted({m.get("threads", 1) for m in found})
    times = "".join(f" eager, {n} | inductor, {n} | isoform, {n} |" for n in counts)
    print(f"| model | calls | run | parts | breaks | apart | compile s |{times}")
    print("|" + "---|" * (7 + 3 * len(counts)))
    models: dict[str, dict[int, dict[str, Any]]] = {}
    for m in found:
        models.setdefault(m["model"], {})[m.get("threads", 1)] = m
    for name, by_threads in models.items():
        m = min(by_threads.values(), key=lambda m: ("failed" in m, m.get("threads", 1)))
        if "failed" in m:
            print(f"| {name} | failed: {m['failed']} |" + " |" * (5 + 3 * len(counts)))
            continue
        ms = [
            f"{one['ms'][k]:.2f}" if k in (one := by_threads.get(n, {"ms": {}})).get("ms", {})
            else "-"
            for n in counts for k in ("eager", "inductor", "isoform")
        ]  # fmt: skip
        share = 100.0 * m["run"] / m["calls"] if m["calls"] else 0.0
        apart = max(one["apart"] for one in by_threads.values() if "apart" in one)
        cells = (name, m["calls"], f"{share:.0f}%", m["parts"], m["breaks"], f"{apart:.0e}",
                 f"{m['compile_s']:.0f}", *ms)  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |")


def _ops(name: str, threads: int) -> None:
    """What takes longest in isoform's programs and in inductor's and torch's ops."""
    import torch  # pyright: ignore[reportMissingImports]

    import isoform

    part = import_module("isoform.compiler.torch_backend.part")  # needs torch
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    parts: list[Any] = []
    first = part.Part.__init__

    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        first(self, *args, **kwargs)
        parts.append(self)

    part.Part.__init__ = noted
    module, args = CASES[name](torch)
    module.eval()
    with torch.no_grad():
        ours = torch.compile(module, backend=isoform.torch.backend)
        ours(*args)
        for one in parts:
            print(one.session.profile())
        runs = {"isoform": lambda: ours(*args)}
        with torch._inductor.config.patch({"cpp.enable_kernel_profile": True}):
            inductor = _inductor(torch, module, args)
        if inductor is not None:
            runs["inductor"] = inductor
        for key, run in runs.items():
            run()
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
                for _ in range(10):
                    run()
            print(key, "(10 calls)")
            print(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=12,
                                             max_name_column_width=60))  # fmt: skip


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
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ops", metavar="NAME", help="print what takes longest in one model")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.seconds = 0.0 if args.agree else args.seconds
    if args.table:
        _table(args.out)
    elif args.ops:
        _ops(args.ops, args.threads)
    elif args.one:
        print(json.dumps(measure(args.names[0], args.seconds, args.threads)))
    else:
        done = {(m["model"], m.get("threads", 1)) for m in _lines(args.out)}
        for name in args.names or CASES:
            if (name, args.threads) not in done:
                line = _child(name, args)
                with args.out.open("a") as file:
                    file.write(line + "\n")


def _child(name: str, given: argparse.Namespace) -> str:
    limit, threads = given.limit, given.threads
    command = [sys.executable, __file__, "--one", name, "--seconds", str(given.seconds),
               "--threads", str(threads)]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return json.dumps(
            {"model": name, "threads": threads, "failed": f"not done in {limit:.0f} s"}
        )
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return json.dumps({"model": name, "threads": threads, "failed": last[:200]})
    return lines[-1]


if __name__ == "__main__":
    main()
