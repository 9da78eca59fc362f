"""Random settings of every op that loop nests run, and of quantised ops, against onnxruntime.

Resumable.

python scripts/fuzz_nodes.py --count 2000 --log nodes.jsonl          every op, in turns
python scripts/fuzz_nodes.py --count 2000 --log nodes.jsonl quantised    every quantised op
python scripts/fuzz_nodes.py --count 2000 --log nodes.jsonl TopK     one op
python scripts/fuzz_nodes.py --log nodes.jsonl --table               what the log says, by op
python scripts/fuzz_nodes.py --first 1000000 --count 1500 control-flow sizes-from-data

A setting is a node of drawn attributes, shapes, dtypes and numbers (`tests/support/random_nodes`),
with corners: NaN, infinities, ties, dims of no elements. Setting K of an op is one node for ever;
settings that the log has are not run again. Integers must be the same bit for bit; those of
onnxruntime's own ops, whose rounding nothing fixes, may be one step off. Exit status 1 if anything
differs or crashed.
The last two names are no ops but whole models of If, Loop and Scan; the second have values whose
size data decide, too. The reference runs them, every fourth is compiled instead, and in half of
them loops of known counts stay loops.

Verdicts: agrees; no kernel (onnxruntime refuses); refused (one line of ours); differs; crash; hang.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from isoform.dialects.executor import LocalExecutor, LostError
from isoform.lowering.onnx_to_graph import regions

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = (
    "elementwise", "indexing", "layers", "pools", "reductions", "sampling", "recurrent", "counted",
    "transforms",
)  # fmt: skip
# In families of other ops, too: what is run here.
BESIDE = ("Gather", "GatherElements", "GatherND", "OneHot")
QUANTISED = ("quantised", "contributed", "fused")
BAD = ("differs", "crash", "hang")
MODELS = {"control-flow": False, "sizes-from-data": True}
CHUNK = 100  # settings that one task runs; those of one opset are compiled as one model
Task = tuple[str, int, int]
Row = dict[str, Any]


def generators() -> Mapping[str, Any]:
    """What draws a node, by op: those that nests run, and those whose results data size."""
    from isoform.lowering.node_to_nest import table

    sys.path.insert(0, str(ROOT / "tests"))
    found: dict[str, Any] = {}
    for family in FAMILIES:
        module = importlib.import_module(f"support.random_nodes.{family}")
        own = family in ("recurrent", "counted", "transforms")
        for op, generator in module.GENERATORS.items():
            if own or op in table.TABLE or op in BESIDE:
                found[op] = generator
    return found


def quantised_generators() -> Mapping[str, Any]:
    """What draws a quantised op, or one that onnxruntime fuses; weights constant, too."""
    sys.path.insert(0, str(ROOT / "tests"))
    modules = [importlib.import_module(f"support.random_nodes.{name}") for name in QUANTISED]
    found = {op: draw for module in modules for op, draw in module.GENERATORS.items()}
    return {**found, **modules[1].PRODUCTS}


def work(task: Task) -> list[Row]:
    """The verdicts on settings of one op, in a process of the executor."""
    op, first, count = task
    gc.set_threshold(100_000, 20, 20)  # IR makes many objects and little garbage
    if op in MODELS:
        return [model_row(op, k) for k in range(first, first + count)]
    draw = {**generators(), **quantised_generators()}[op]
    corners, draws, judge = (
        importlib.import_module(f"support.random_nodes.{name}")
        for name in ("corners", "draw", "judge")
    )
    rows: list[Row] = []
    samples = [corners.cornered(draw)(draws.Draw(k)) for k in range(first, first + count)]
    for k, sample, found in zip(
        range(first, first + count), samples, judge.verdicts(samples), strict=True
    ):
        kind, _, detail = found.partition(": ")
        detail = f"{detail} ({sample})" if kind in (*BAD, "refused") else ""
        rows.append({"op": op, "k": k, "verdict": kind, "detail": detail[:900]})
    return rows


def model_row(kind: str, k: int) -> Row:
    """The verdict on model K of a kind."""
    sys.path.insert(0, str(ROOT / "tests"))
    control, judge = (
        importlib.import_module(f"support.random_nodes.{name}") for name in ("control", "judge")
    )
    began = time.process_time()
    with patch.object(regions, "UNROLLED", 1 if k % 8 >= 4 else regions.UNROLLED):
        found = judge.model_verdict(*control.random_model(k, MODELS[kind]), compiled=k % 4 == 0)
    verdict, _, detail = found.partition(": ")
    seconds = round(time.process_time() - began, 3)
    return {"op": kind, "k": k, "verdict": verdict, "detail": detail[:900], "cpu_s": seconds}


def read_log(path: Path) -> dict[tuple[str, int], Row]:
    """Rows by op and setting; a line that was cut short is left out."""
    rows: dict[tuple[str, int], Row] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        rows[row["op"], row["k"]] = row
    return rows


def tasks(
    ops: Sequence[str], count: int, rows: Mapping[tuple[str, int], Row], start: int = 0
) -> list[Task]:
    """What is left: chunks of all ops in turns."""
    found: list[Task] = []
    for first in range(start, start + count, CHUNK):
        chunk = range(first, min(first + CHUNK, start + count))
        for op in ops:
            if any((op, k) not in rows for k in chunk):
                found.append((op, first, len(chunk)))
    return found


def table(rows: Mapping[tuple[str, int], Row]) -> str:
    """A row for each op."""
    counts: dict[str, Counter[str]] = {}
    for row in rows.values():
        counts.setdefault(row["op"], Counter())[row["verdict"]] += 1
    lines = [
        "| op | settings | agrees | no kernel | refused | differs |",
        "|---|---|---|---|---|---|",
    ]
    for op, found in counts.items():
        bad = sum(found[kind] for kind in BAD)
        cells = [op, found.total(), found["agrees"], found["no kernel"], found["refused"], bad]
        lines.append(f"| {' | '.join(str(c) for c in cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Run as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description="Random settings of nodes.")
    parser.add_argument("--count", type=int, default=2000, help="settings of each op")
    parser.add_argument("--first", type=int, default=0, help="the first setting")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=3000.0, help="seconds for 100 settings")
    parser.add_argument("--log", type=Path, default=Path("nodes.jsonl"))
    parser.add_argument("--table", action="store_true", help="print the log as a table")
    parser.add_argument("ops", nargs="*", metavar="OP")
    asked = parser.parse_args()
    rows = read_log(asked.log)
    if asked.table:
        print(table(rows))
        return 0
    quantised = list(quantised_generators())
    known = [*generators(), *MODELS, *quantised]
    if asked.ops == ["quantised"]:
        asked.ops = quantised
    unknown = [op for op in asked.ops if op not in known]
    if unknown:
        print(f"no generator for {', '.join(unknown)}; there are {', '.join(known)}")
        return 1
    left = tasks(asked.ops or known, asked.count, rows, asked.first)
    with asked.log.open("a") as log:

        def tell(number: int, found: list[Row]) -> None:
            for row in found:
                rows[row["op"], row["k"]] = row
                print(json.dumps(row), file=log, flush=True)
                if row["verdict"] in (*BAD, "refused"):
                    print(f"{row['op']} {row['k']}: {row['verdict']}: {row['detail']}", flush=True)

        def lost(number: int, error: LostError) -> None:
            op, first, count = left[number]
            kind = "hang" if str(error) == "late" else "crash"
            rows = [{"op": op, "k": k, "verdict": kind} for k in range(first, first + count)]
            tell(number, [{**row, "detail": "the process was lost"} for row in rows])

        LocalExecutor(asked.jobs, here=False, limit=asked.limit).run(work, left, tell, lost)
    counts = Counter(row["verdict"] for row in rows.values())
    print(f"{len(rows)} settings: " + ", ".join(f"{n} {k}" for k, n in counts.most_common()))
    return 1 if any(counts[k] for k in BAD) else 0


if __name__ == "__main__":
    sys.exit(main())
