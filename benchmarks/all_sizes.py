"""`isoform verify` of dynamic models against onnxruntime's rewriting of them, at every size.

    python benchmarks/dynamic_exports.py FOLDER
    python benchmarks/all_sizes.py FOLDER rows.json [NAME ...]
    python benchmarks/all_sizes.py --table rows.json

The other program of a pair is what onnxruntime writes after its basic optimisations
(`optimized_model_filepath`). Each comparison is a process of its own; seconds are its CPU time.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

SEED, BUDGET = 1, 300.0


def rewritten(model: Path) -> Path:
    """The file that onnxruntime writes of a model."""
    import onnxruntime

    path = model.with_name(f"{model.stem}.basic.onnx")
    if not path.exists():
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(path)
        onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return path


def compared(model: Path) -> dict[str, Any]:
    """One row: the verdict of a process, and its seconds."""
    call = "import sys; from isoform.compiler.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", call, "verify", str(model), str(rewritten(model)), "--json"]
    command += ["--seed", str(SEED), "--budget", str(BUDGET)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    row: dict[str, Any] = {
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    }
    try:
        verdict = json.loads(found.stdout)
    except json.JSONDecodeError:
        return {**row, "kind": "error", "reason": found.stderr.strip()[:200]}
    sizes = verdict.get("sizes", {})
    cases = sizes.get("cases", [])
    row |= {"kind": verdict["kind"], "reason": verdict["reason"]}
    row |= {"guards": sizes.get("guards", []), "symbols": sizes.get("symbols", [])}
    large = [c["where"] for c in cases if c["how"] == "proved" and " = " not in c["where"]]
    return {**row, "proved": large, "tried": sum(len(case["tried"]) for case in cases)}


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| model | verdict | proved for | where | sizes compared | CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        kind = row["kind"] if row["kind"].startswith("equal") else f"{row['kind']}: {row['reason']}"
        cells = [name, kind, "; ".join(row.get("proved", [])) or "-"]
        cells += [", ".join(row.get("guards", [])) or "-", str(row.get("tried", 0))]
        lines.append(f"| {' | '.join(cells)} | {row['cpu_s']:.0f} |")
    return "\n".join(lines)


def main() -> None:
    """Compare what was not compared before, or print the table."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("folder", type=Path, nargs="?")
    arguments.add_argument("rows", type=Path)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--table", action="store_true", help="print the table of the rows")
    given = arguments.parse_args()
    rows: dict[str, Any] = json.loads(given.rows.read_text()) if given.rows.exists() else {}
    if given.table:
        print(table(rows))
        return
    for model in sorted(given.folder.glob("*.onnx")):
        name = model.stem
        if name.endswith(".basic") or name in rows or (given.names and name not in given.names):
            continue
        rows[name] = compared(model)
        print(name, rows[name], flush=True)
        given.rows.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
