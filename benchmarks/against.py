"""Measure the published tables of docs/results/cpu-models.md: zoo models against other runtimes.

    python benchmarks/against.py one-thread --out ROWS.json           rows that are not there yet
    python benchmarks/against.py one-thread --models resnet18 --out ROWS.json --again
    python benchmarks/against.py --table ROWS.json                    as Markdown, measuring nothing

Each row is one process, the command `isoform bench zoo:NAME ...` that the row carries: all runtimes
take turns in it, each on the library's own export with the zoo's weights where there is one. Rows
are added to the file as they are done, with the load average beside them.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODELS = ("resnet18", "squeezenet", "vgg19", "bert-base", "dcgan", "resnet50", "resnext50",
          "inception-v3", "mobilenet-v2")  # fmt: skip
SMALL = tuple(name for name in MODELS if name not in ("bert-base", "resnet50"))


@dataclass(frozen=True)
class Table:
    """What one published table measures."""

    against: str
    threads: int = 1
    batch: int = 1
    models: Sequence[str] = MODELS


TABLES = {
    "one-thread": Table("onnxruntime,openvino"),
    "two-threads": Table("onnxruntime,openvino", threads=2),
    "torch-ncnn": Table("onnxruntime,torch,torch-compile,ncnn"),
    "batch-16": Table("onnxruntime,openvino", threads=2, batch=16),
    "batch-16-one-thread": Table("onnxruntime,openvino", batch=16),
    "derived": Table("onnxruntime", models=("gcn", "infogan", "csrnet", "fsrcnn", "drn-d-22")),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names, or print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(TABLES)}")
    add("--models", nargs="+", metavar="NAME", help="only these")
    add("--seconds", type=float, default=6.0, metavar="S", help="for the runs of a row (6)")
    add("--out", metavar="ROWS.json", help="where rows are added")
    add("--again", action="store_true", help="measure rows that are there already, too")
    add("--table", metavar="ROWS.json", help="print the rows of a file, and measure nothing")
    parsed = parser.parse_args(arguments)
    if parsed.table is not None:
        print(format_rows(json.loads(Path(parsed.table).read_text())))
        return
    rows = json.loads(Path(parsed.out).read_text()) if Path(parsed.out or "").is_file() else []
    for name in parsed.tables:
        for model in parsed.models or TABLES[name].models:
            known = any((r["table"], r["model"]) == (name, model) for r in rows)
            if known and not parsed.again:
                continue
            row = measure(name, model, parsed.seconds)
            rows = [r for r in rows if (r["table"], r["model"]) != (name, model)] + [row]
            print(format_rows([row]), flush=True)
            if parsed.out is not None:
                Path(parsed.out).write_text(json.dumps(rows, indent=1) + "\n")


def command_of(name: str, model: str, seconds: float) -> list[str]:
    """The words that a user types for this row."""
    table = TABLES[name]
    words = ["isoform", "bench", f"zoo:{model}", "--against", table.against]
    words += ["--threads", str(table.threads), "--seconds", f"{seconds:g}"]
    return [*words, "--batch", str(table.batch)] if table.batch != 1 else words


def measure(name: str, model: str, seconds: float) -> dict[str, Any]:
    """One row, by the command in a process of its own."""
    words = command_of(name, model, seconds)
    program = [sys.executable, "-m", "isoform.compiler.cli", *words[1:], "--json"]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    row = {"table": name, "model": model, "command": shlex.join(words)}
    row["time"] = time.strftime("%Y-%m-%d %H:%M")
    if done.returncode:
        return {**row, "error": done.stderr.strip().splitlines()[-1]}
    return {**row, "found": json.loads(done.stdout)}


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """One Markdown table for each published one, with what must be known of the machine."""
    parts: list[str] = []
    for name in dict.fromkeys(row["table"] for row in rows):
        chosen = [row for row in rows if row["table"] == name]
        parts += [f"{name}: {chosen[0]['command']}", "", *_lines(name, chosen), ""]
    return "\n".join(parts)


def _lines(name: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    peers = TABLES[name].against.split(",")
    head = ["model", "isoform", *peers, "apart", "load", "other runtimes ran"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(_cells(row, peers)) + " |" for row in rows]


def _cells(row: Mapping[str, Any], peers: Sequence[str]) -> list[str]:
    if "error" in row:
        return [row["model"], row["error"]]
    found = row["found"]
    results = {r["runtime"]: r for r in found["results"]}
    cells = [row["model"], f"{results['isoform']['median_s'] * 1e3:.2f}"]
    for peer in peers:
        theirs = results.get(peer)
        if theirs is None:
            cells.append("refused" if peer in found["refused"] else "absent")
        else:
            cells.append(f"{theirs['median_s'] * 1e3:.2f} ({theirs['ratio']:.2f}x)")
    apart = max(found["differences"].values(), default=0.0)
    files = {r["model"] for name, r in results.items() if name != "isoform"}
    load = found["machine"]["load_average"]
    return [*cells, f"{apart:.1e}", f"{load:.1f}", "; ".join(sorted(files))]


__all__ = ["TABLES", "command_of", "format_rows", "measure"]

if __name__ == "__main__":
    main()
