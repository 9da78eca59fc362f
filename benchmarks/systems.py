"""What each search gains alone, in pairs and together, by the command that users run.

    python benchmarks/systems.py squeezenet nasrnn --target h100 --out ROWS.json
    python benchmarks/systems.py --target h100 --out ROWS.json            all zoo models
    python benchmarks/systems.py --table ROWS.json                        the rows as tables

Each run is `isoform optimize zoo:NAME --strategy SEARCHES`, a process with an empty cache folder of
its own. A gain is what the report says: modelled where the target does not run here, otherwise
medians of runs of input and result in turn. Models come with weights drawn for them. What a search
contributes is what the default command loses without it, in percent. Rows are added to the file
one by one, and what stands there is not run again. TENSAT's and TASO's columns are their papers'
(facts: the T4 of TENSAT's authors, their costs): they compare in kind.
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
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from isoform.compiler import zoo
from isoform.compiler.peers.timing import machine, package_version

SEARCHES = ("saturate", "substitute", "derive", "mutate")
DEFAULT = "optimize"


def all_but(search: str) -> str:
    """The name of the others together."""
    return ",".join(name for name in SEARCHES if name != search)


GROUPS = {
    "alone": SEARCHES,
    "default": (DEFAULT,),
    "without": tuple(map(all_but, SEARCHES)),
    "pairs": tuple(",".join(pair) for pair in combinations(SEARCHES, 2)),
}
# Of TASO and of TENSAT: seconds of the search, and speed-up in percent (TENSAT, MLSys 2021).
PAPERS = {
    "tensat-bert": (13.6, 1.4, 8.5, 9.2),
    "resnext50": (25.3, 0.7, 5.5, 8.8),
    "nasnet-a": (1226.0, 10.6, 1.9, 7.3),
    "nasrnn": (177.3, 0.5, 45.4, 68.9),
    "inception-v3": (68.6, 5.1, 6.3, 10.0),
    "squeezenet": (16.4, 0.3, 6.7, 24.5),
    "vgg19": (8.9, 0.4, 8.9, 8.9),
}
HEAD = (
    "model",
    "as it is ms",
    *SEARCHES,
    "all by default",
    *(f"without {name} %" for name in SEARCHES),
    "best pair",
    "CPU s by default",
    "kept",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line names, or print what was run."""
    parser = argparse.ArgumentParser(description="Gains of each search, alone and together")
    add = parser.add_argument
    add("models", nargs="*", metavar="NAME", help="all zoo models without one")
    add("--target", default="h100")
    add("--budget", type=float, default=60.0, metavar="S")
    add("--groups", default=",".join(GROUPS), help="which of alone, default, without, pairs")
    add("--out", metavar="ROWS.json", help="where rows are added")
    add("--table", metavar="ROWS.json", help="print the rows of a file, and run nothing")
    parsed = parser.parse_args(arguments)
    if parsed.table is not None:
        print(format_rows(json.loads(Path(parsed.table).read_text())))
        return
    if parsed.out is None:
        parser.error("--out ROWS.json or --table ROWS.json is needed")
    path = Path(parsed.out)
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    for name in parsed.models or [model.name for model in zoo.MODELS]:
        for system in (s for group in parsed.groups.split(",") for s in GROUPS[group]):
            wanted = (name, parsed.target, system)
            if any((row["model"], row["target"], row["system"]) == wanted for row in rows):
                continue
            rows.append(optimize(name, parsed.target, system, parsed.budget))
            path.write_text(json.dumps(rows, indent=1) + "\n")
            print(in_short(rows[-1]), flush=True)


def optimize(name: str, target: str, system: str, budget: float) -> dict[str, Any]:
    """One run: what its report says, and the seconds of the process."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        flags = ["--target", target, "--strategy", system, "--budget", str(budget)]
        command = [sys.executable, "-m", "isoform.compiler.cli", "optimize", f"zoo:{name}", *flags]
        started, spent = time.perf_counter(), cpu_seconds()
        done = subprocess.run(
            [*command, "--report", str(report)],
            capture_output=True,
            text=True,
            env={**os.environ, "ISOFORM_CACHE": f"{folder}/cache"},
            check=False,
        )
        seconds = time.perf_counter() - started
        if done.returncode:
            sys.exit(done.stderr)
        said = json.loads(report.read_text())
    kept = ("elapsed_s", "stop_reason", "cost", "searches", "message")
    return {
        "model": name,
        "target": target,
        "system": system,
        "budget_s": budget,
        "process_s": seconds,
        "cpu_s": cpu_seconds() - spent,
        "machine": machine(),
        "isoform": package_version("isoform"),
        **{key: said[key] for key in kept},
    }


def cpu_seconds() -> float:
    """Of the processes that were started and have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def gain(row: Mapping[str, Any]) -> float:
    """How many times as fast as the input, with the kernels chosen for it."""
    cost = row["cost"]
    return cost["tuned"] / cost["after"] if cost["after"] else 1.0


def in_short(row: Mapping[str, Any]) -> str:
    """A line for whoever waits."""
    where = f"{row['model']} {row['target']} {row['system']}"
    return f"{where}: {gain(row):.3f}x, {row['elapsed_s']:.0f} s, {row['stop_reason']}"


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table for each target, of the models that were run by default."""
    parts: list[str] = []
    for target in dict.fromkeys(row["target"] for row in rows):
        here = [row for row in rows if row["target"] == target]
        by_model: dict[str, dict[str, Mapping[str, Any]]] = {}
        for row in here:
            by_model.setdefault(row["model"], {})[row["system"]] = row
        whole = {name: found for name, found in by_model.items() if DEFAULT in found}
        kind = here[0]["cost"]["kind"]
        lines = [f"{target}, {kind}, budget {here[0]['budget_s']:.0f} s", ""]
        lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
        lines += ["| " + " | ".join(cells(name, found)) + " |" for name, found in whole.items()]
        parts.append("\n".join([*lines, "", two_contribute(whole), "", *beside_papers(whole)]))
    return "\n\n".join(parts)


def beside_papers(models: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[str]:
    """The default command beside TASO and TENSAT: seconds, and gains in percent."""
    head = ("model", "TASO s", "TENSAT s", "CPU seconds", "TASO %", "TENSAT %", "gain %")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, (taso, tensat, taso_gain, tensat_gain) in PAPERS.items():
        if (row := models.get(name, {}).get(DEFAULT)) is not None:
            ours = f"{100.0 * (gain(row) - 1.0):.1f}"
            cells = (name, taso, tensat, f"{row['cpu_s']:.1f}", taso_gain, tensat_gain, ours)
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def contribution(found: Mapping[str, Mapping[str, Any]], search: str) -> float | None:
    """What the default command loses without a search, in percent of its result's time."""
    if all_but(search) not in found:
        return None
    without, together = (found[name]["cost"]["after"] for name in (all_but(search), DEFAULT))
    return 100.0 * (without / together - 1.0) if together else 0.0


def two_contribute(models: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """On how many models at least two searches contribute over 3 percent."""
    found = [
        name
        for name, rows in models.items()
        if sum((contribution(rows, search) or 0.0) > 3.0 for search in SEARCHES) >= 2
    ]
    return f"Two searches contribute over 3% each on {len(found)}: {', '.join(found) or 'none'}."


def cells(name: str, found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """One line of the table; what was not run is a dash."""
    default = found[DEFAULT]
    kept = [search["strategy"] for search in default["searches"] if search["kept"]]
    lost = [contribution(found, search) for search in SEARCHES]
    pairs = {pair: gain(found[pair]) for pair in GROUPS["pairs"] if pair in found}
    best = max(pairs, key=lambda pair: pairs[pair], default="")
    return [
        name,
        f"{default['cost']['tuned'] * 1e3:.3f}",
        *(f"{gain(found[one]):.2f}" if one in found else "-" for one in (*SEARCHES, DEFAULT)),
        *("-" if share is None else f"{share:.1f}" for share in lost),
        f"{best.replace(',', ', ')}: {pairs[best]:.2f}" if best else "-",
        f"{default['cpu_s']:.0f}",
        ", ".join(kept) or default["message"],
    ]


if __name__ == "__main__":
    main()
