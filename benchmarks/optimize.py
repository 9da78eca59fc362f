"""Run `isoform optimize` as a user does, on zoo models: time, which stage gained, certificate.

    python benchmarks/optimize.py resnet18 dcgan --out ROWS.json       a first and a second run each
    python benchmarks/optimize.py bert-base --budget 30 --out ROWS.json
    python benchmarks/optimize.py squeezenet --onnx --out ROWS.json    also OUT.onnx, in onnxruntime
    python benchmarks/optimize.py --table ROWS.json                    the rows as a table

Each run is a process of its own; the first has an empty cache folder, the second what that left.
Gains are the report's: medians of runs of input and result in turn. `tuned` is the input with the
kernels that were measured fastest, so `tuned / result` is what rewrites and searches gained, and
`direct / tuned` what the choice of kernels did. The certificate is checked again by `isoform
verify`. With --onnx a third run writes OUT.onnx, and the last column is what its report says:
onnxruntime's time on the source's own file over its time on the written one. Rows are added to the
file as they are done.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isoform.compiler.peers.timing import machine, package_version

HEAD = (
    "model",
    "first s",
    "again s",
    "direct ms",
    "tuned ms",
    "result ms",
    "tuned / result",
    "gained by",
    "stopped by a limit",
    "certificate",
    "own file / OUT.onnx in onnxruntime",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names, or print what was measured."""
    parser = argparse.ArgumentParser(description="Measure isoform optimize on zoo models")
    add = parser.add_argument
    add("models", nargs="*", metavar="NAME")
    add("--budget", type=float, default=60.0, metavar="S")
    add("--onnx", action="store_true", help="also write OUT.onnx, compared in onnxruntime")
    add("--out", metavar="ROWS.json", help="where rows are added")
    add("--table", metavar="ROWS.json", help="print the rows of a file, and measure nothing")
    parsed = parser.parse_args(arguments)
    if parsed.table is not None:
        print(format_rows(json.loads(Path(parsed.table).read_text())))
        return
    for name in parsed.models:
        row = measure(name, parsed.budget, parsed.onnx)
        print(format_rows([row]), flush=True)
        if parsed.out is not None:
            append(Path(parsed.out), row)


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row to a file, in the place of an older one of the same model."""
    rows = json.loads(path.read_text()) if path.exists() else []
    rows = [old for old in rows if old["model"] != row["model"]]
    path.write_text(json.dumps([*rows, row], indent=1) + "\n")


def measure(name: str, budget: float, onnx: bool = False) -> dict[str, Any]:
    """One model: optimise it twice, verify the certificate of the first; a third time for ONNX."""
    with tempfile.TemporaryDirectory() as folder:
        first = optimize(name, budget, folder, "first")
        verified = run(folder, "verify", f"{folder}/first.json", "--budget", "120")
        again = optimize(name, budget, folder, "again")
        there = optimize(name, budget, folder, "onnx")["onnxruntime"] if onnx else {}
    return {
        "model": name,
        "budget_s": budget,
        "machine": machine(),
        "isoform": package_version("isoform"),
        "threads": 1,
        "first": first,
        "again": again,
        "onnxruntime": there,
        "certificate": "holds" if verified.returncode == 0 else verified.stderr.strip(),
        "verdict": verified.stdout.strip(),
    }


def optimize(name: str, budget: float, folder: str, label: str) -> dict[str, Any]:
    """What the report says, without its long lists, and seconds of the process."""
    suffix = "onnx" if label == "onnx" else "mlir"
    files = ["-o", f"{folder}/{label}.{suffix}", "--report", f"{folder}/{label}-report.json"]
    certificate = ["--certificate", f"{folder}/{label}.json"] if label == "first" else []
    flags = ["--budget", str(budget), "--threads", "1"]
    started = time.perf_counter()
    done = run(folder, "optimize", f"zoo:{name}", *files, *certificate, *flags)
    seconds = time.perf_counter() - started
    if done.returncode:
        sys.exit(done.stderr)
    report = json.loads(Path(folder, f"{label}-report.json").read_text())
    kept = ("elapsed_s", "stages_s", "stop_reason", "cost", "searches", "message", "onnxruntime")
    return {**{key: report[key] for key in kept if key in report}, "process_s": seconds}


def run(folder: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """An isoform command, with a cache folder of this measurement's own."""
    environment = {**os.environ, "ISOFORM_CACHE": f"{folder}/cache"}
    command = [sys.executable, "-m", "isoform.compiler.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table, with what must be known of the machine."""
    kinds = {f"{r['machine']['cpu']}, {r['threads']} thread, {r['budget_s']:.0f} s" for r in rows}
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(cells(row)) + " |" for row in rows]
    return "\n".join([*sorted(kinds), "", *lines])


def cells(row: Mapping[str, Any]) -> list[str]:
    """One line of the table."""
    first, again = row["first"], row["again"]
    cost = first["cost"]
    gained = [s["strategy"] for s in first["searches"] if s["kept"]]
    limits = [s["strategy"] for s in first["searches"] if s["stop_reason"] != "finished"]
    if cost["after"] < cost["tuned"] * 0.97 and not gained:
        gained = ["rewrites of the graph"]
    return [
        row["model"],
        f"{first['elapsed_s']:.0f}",
        f"{again['elapsed_s']:.1f}",
        *(f"{cost[key] * 1e3:.3f}" for key in ("before", "tuned", "after")),
        f"{cost['tuned'] / cost['after']:.2f}",
        ", ".join(gained) or "-",
        ", ".join(limits) or "-",
        row["certificate"],
        _there(row.get("onnxruntime", {})),
    ]


def _there(found: Mapping[str, Any]) -> str:
    """Both times and their ratio, as the report has them."""
    if "ratio" not in found:
        return found.get("note", "-")
    before, after = (found[key] * 1e3 for key in ("source_s", "result_s"))
    return f"{before:.2f} / {after:.2f} ms, {found['ratio']:.2f}x"


__all__ = ["format_rows", "measure"]

if __name__ == "__main__":
    main()
