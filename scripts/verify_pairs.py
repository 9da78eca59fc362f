"""Run `isoform verify` on real pairs of programs: the tables of docs/real-pairs.md.

    python scripts/verify_pairs.py make FOLDER [MODEL ...]   export, optimise and plant faults
    python scripts/verify_pairs.py run FOLDER rows.json [MODEL ...]
    python scripts/verify_pairs.py table rows.json

Making needs torch, torchvision, transformers, onnxruntime, onnxsim and onnxscript. Nothing is
downloaded; weights are drawn. Each comparison is a separate process, from the files to the
verdict, with `--budget` seconds for the comparison; seconds are wall and CPU time of the process.
Rows already in the file of rows are not run again.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PAIRS: tuple[tuple[str, str], ...] = (
    ("block/script", "block/script/ort-extended"),
    ("block/script", "block@fused/script"),
    ("block/script", "block@fused/dynamo"),
    ("causal-block/script", "causal-block/dynamo"),
    ("causal-block/script", "causal-block@fused/script"),
    ("causal-block/script", "causal-block/script/ort-all"),
    ("bert-2/script", "bert-2/dynamo"),
    ("bert-2/script", "bert-2/script/ort-extended"),
    ("bert-2/dynamo", "bert-2/dynamo/ort-all"),
    ("bert-4/script", "bert-4/script/onnxsim"),
    ("bert-4@sdpa/dynamo", "bert-4@sdpa/dynamo/ort-extended"),
    ("bert-base/script", "bert-base/script/ort-basic"),
    ("bert-base/script", "bert-base/script/ort-extended"),
    ("bert-base/script", "bert-base/dynamo"),
    ("bert-base/dynamo", "bert-base/dynamo/ort-extended"),
    ("gpt2-2/script", "gpt2-2/dynamo"),
    ("gpt2-2/dynamo", "gpt2-2/dynamo/onnxscript"),
    ("gpt2-2/script", "gpt2-2/script/ort-extended"),
    ("gpt2/script", "gpt2/script/ort-basic"),
    ("gpt2/script", "gpt2/script/ort-extended"),
    ("gpt2/script", "gpt2/dynamo"),
    ("gpt2/dynamo", "gpt2/dynamo/ort-extended"),
    ("t5/script", "t5/script/ort-extended"),
    ("t5/script", "t5/script/onnxsim"),
    ("llama/dynamo", "llama/dynamo/ort-extended"),
    ("llama/dynamo", "llama@sdpa/dynamo"),
    ("vit-tiny/script", "vit-tiny/script/ort-extended"),
    ("vit-tiny/script", "vit-tiny/dynamo"),
    ("swin/dynamo", "swin/dynamo/ort-extended"),
    ("swin/script", "swin/script/onnxsim"),
    ("convnext/script", "convnext/script/ort-extended"),
    ("convnext/script", "convnext/dynamo"),
    ("detr/script", "detr/script/ort-extended"),
    ("detr/script", "detr/script/onnxsim"),
    ("resnet18/script", "resnet18/dynamo"),
    ("resnet18/apart", "resnet18/script"),
    ("resnet18/apart", "resnet18/apart/ort-basic"),
    ("resnet18/script", "resnet18/script/nhwc"),
    ("resnet50/script", "resnet50/script/ort-extended"),
    ("resnet50/apart", "resnet50/apart/ort-extended"),
    ("mobilenet-v2/dynamo", "mobilenet-v2/dynamo/ort-extended"),
    ("mobilenet-v2/dynamo", "mobilenet-v2/dynamo/nhwc"),
    ("squeezenet/script", "squeezenet/script/ort-extended"),
    ("efficientnet-b0/script", "efficientnet-b0/script/onnxsim"),
    ("efficientnet-b0/apart", "efficientnet-b0/script"),
)


def main() -> None:
    """Do what the command line says."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("what", choices=["make", "run", "table"])
    arguments.add_argument("path", type=Path, help="the folder of models; the rows to print")
    arguments.add_argument("names", nargs="*", help="rows.json for run, then models")
    arguments.add_argument("--budget", type=float, default=60.0)
    given = arguments.parse_args()
    if given.what == "make":
        make(given.path, given.names)
    elif given.what == "run":
        run(given.path, Path(given.names[0]), given.names[1:], given.budget)
    else:
        table(json.loads(given.path.read_text()))


def _asked(names: list[str], name: str) -> bool:
    return not names or any(name.startswith((f"{n}/", f"{n}@")) for n in names)


def make(folder: Path, names: list[str]) -> None:
    """Write the models that do not exist yet."""
    import pair_faults
    import pair_models

    wanted = {n for pair in PAIRS for n in pair} | {n for f in pair_faults.FAULTS for n in f[1:3]}
    for name in sorted(n for n in wanted if _asked(names, n)):
        print(name, pair_models.make(name, folder).stat().st_size, flush=True)
    for fault in pair_faults.FAULTS:
        if _asked(names, fault[1]):
            print(fault[0], pair_faults.make(fault, folder, pair_faults.path_of(fault[1], folder)))


def run(folder: Path, rows: Path, names: list[str], budget: float) -> None:
    """Compare the models; rows are saved as they finish."""
    import pair_faults

    done: dict[str, Any] = json.loads(rows.read_text()) if rows.exists() else {}
    tasks = [
        (f"{a} : {b}", pair_faults.path_of(a, folder), pair_faults.path_of(b, folder))
        for a, b in PAIRS
        if _asked(names, a)
    ]
    for k, (what, source, other, _) in enumerate(pair_faults.FAULTS):
        if _asked(names, source):
            path = pair_faults.path_of(other, folder)
            tasks.append((f"{what} : {other}", path, folder / f"fault-{k}.onnx"))
    for name, first, second in tasks:
        if name not in done and first.exists() and second.exists():
            done[name] = compared(first, second, budget)
            print(name, done[name], flush=True)
            rows.write_text(json.dumps(done, indent=1))


def compared(first: Path, second: Path, budget: float) -> dict[str, Any]:
    """The verdict of one process, and its seconds."""
    call = "import sys; from isoform.compiler.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", call, "verify", str(first), str(second), "--json"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    found = subprocess.run(
        [*command, "--budget", str(budget)], capture_output=True, text=True, check=False
    )
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row: dict[str, Any] = {"wall": round(wall, 1), "cpu": round(cpu, 1)}
    try:
        verdict = json.loads(found.stdout)
    except json.JSONDecodeError:
        return row | {"kind": "error", "words": (found.stderr or found.stdout).strip()[:300]}
    difference = verdict["difference"] or {}
    return row | {
        "kind": verdict["kind"],
        "assumed": [a["name"] for a in verdict["assumptions"]],
        "words": verdict["reason"],
        "position": difference.get("position"),
        "inside": difference.get("inside", ""),
    }


def table(rows: dict[str, Any]) -> None:
    """The rows as a document's tables."""
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs")
    print("| pair | verdict | s wall | s CPU |")
    print("|---|---|---|---|")
    for name, row in rows.items():
        kind = row["kind"] + (f" ({', '.join(row['assumed'])})" if row.get("assumed") else "")
        place = f" at {row['position']}" if row.get("position") else ""
        print(f"| {name} | {kind}{place} | {row['wall']} | {row['cpu']} |")


if __name__ == "__main__":
    main()
