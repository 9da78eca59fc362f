"""The expert bar: does the default `optimize` find what an expert writes by hand?

    python benchmarks/search_bar.py --target h100 --out FOLDER               all programs
    python benchmarks/search_bar.py lora repvgg --target cpu --out FOLDER    two of them
    python benchmarks/search_bar.py --target cpu --table FOLDER              the stored rows

The programs are tests/search/original/NAME.mlir, the experts' tests/search/expert/NAME*.mlir: of
several the cheapest counts, and the original is one of them. FOLDER keeps a report and a result
for each program and target; what is there already is priced again, not searched again (--again
searches). All programs get one price. On targets that run here it is measured: runs in turn, as
`optimize` accepts its results by, but their lower quartile instead of the median, so that other
programs on the machine matter less. On the others it is modelled: the cost model's seconds of the
program's kernels. `by search` is the model's price of the cheapest program over the
original's as they stand, which is what the graph searches look at.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import isoform
from isoform.compiler.checks.differential import draw
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.frontends.program_file import used_weights
from isoform.compiler.peers.timing import Run, interleave, machine, quartiles
from isoform.compiler.targets.cpu import compile_cpu
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import priced
from isoform.compiler.targets.session import Session
from isoform.dialects.graph import WeightOp
from isoform.dialects.program import Program
from isoform.dialects.weights import Weights
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs, load_costs

PROGRAMS = Path(__file__).parents[1] / "tests" / "search"
# A result at most this many times the expert's price passes.
BAR = 1.02
# Seconds of runs that compare the programs on a target that runs here, and the least rounds.
MEASURING, LEAST_ROUNDS = 3.0, 15
SMALL = 0.1
HEAD = (
    "program",
    "original us",
    "found us",
    "expert us",
    "found : expert",
    "by search",
    "kept",
    "seconds",
    "what the report says",
)


@dataclass(frozen=True)
class Pricing:
    """How programs are priced: the target and its costs, and the budget of a search."""

    target: str
    budget: float
    cost_file: str | None
    threads: int = 1

    @property
    def costs(self) -> Costs:
        """The model, as `optimize` asks it."""
        target = target_named(self.target)
        described = target.with_units(self.threads) if target.runs_here else target
        return load_costs(described, self.cost_file)

    def prices(self, programs: Sequence[Program]) -> list[float]:
        """Seconds of each program, by what `optimize` accepts a result by; once for equal ones."""
        first = [next(k for k, o in enumerate(programs) if same(o, p)) for p in programs]
        distinct = sorted(set(first))
        seconds = self._seconds([programs[k] for k in distinct])
        return [seconds[distinct.index(k)] for k in first]

    def _seconds(self, programs: Sequence[Program]) -> list[float]:
        costs = self.costs
        if not target_named(self.target).runs_here:
            return [costs.program(priced(program, self.target)).seconds for program in programs]
        return self._measured(programs)

    def _measured(self, programs: Sequence[Program]) -> list[float]:
        """The lower quartile of the seconds of runs in turn, each with the kernels tuned for it."""
        feeds = draw_inputs(programs[0], 0)
        options = CpuOptions(self.threads)
        with ExitStack() as closing:
            runs: dict[str, Run] = {}
            for number, program in enumerate(programs):
                session = Session(program, compile_cpu(program, options))
                closing.callback(session.close)
                runs[str(number)] = partial(session.run, None, feeds)
            times = interleave(runs, MEASURING, LEAST_ROUNDS)
        return [quartiles(taken)[0] for taken in times.values()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Search and price what the command line names, or print what was stored."""
    parser = argparse.ArgumentParser(description="Compare optimize with what an expert writes")
    add = parser.add_argument
    add("programs", nargs="*", metavar="NAME", help="all without one")
    add("--target", default="cpu")
    add("--budget", type=float, default=60.0, metavar="S")
    add("--cost-file", metavar="F.json")
    add("--out", metavar="FOLDER", help="where results and rows are kept")
    add("--again", action="store_true", help="search also what is there already")
    add("--table", metavar="FOLDER", help="print the rows of a folder, and run nothing")
    parsed = parser.parse_args(arguments)
    names = parsed.programs or sorted(p.stem for p in (PROGRAMS / "original").glob("*.mlir"))
    if parsed.table is not None:
        stored = [row_file(Path(parsed.table), name, parsed.target) for name in names]
        print(format_rows([json.loads(path.read_text()) for path in stored if path.exists()]))
        return
    if parsed.out is None:
        parser.error("--out FOLDER or --table FOLDER is needed")
    pricing = Pricing(parsed.target, parsed.budget, parsed.cost_file)
    folder = Path(parsed.out)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        row = measure(name, pricing, folder, parsed.again)
        row_file(folder, name, parsed.target).write_text(json.dumps(row, indent=1) + "\n")
        print(line(row), flush=True)


def row_file(folder: Path, name: str, target: str) -> Path:
    """Where the row of a program is kept."""
    return folder / f"{name}.{target}.json"


def measure(name: str, pricing: Pricing, folder: Path, again: bool) -> dict[str, Any]:
    """One row: search, unless that was done before, then price the three programs."""
    original = with_weights(isoform.load(PROGRAMS / "original" / f"{name}.mlir"))
    row, result = row_file(folder, name, pricing.target), folder / f"{name}.{pricing.target}.mlir"
    if again or not (row.exists() and result.exists()):
        found = isoform.optimize(
            original, pricing.target, budget=pricing.budget, cost_file=pricing.cost_file
        )
        isoform.save(found, result)
        report = found.report
    else:
        report = json.loads(row.read_text())["report"]
    paths = experts_of(name)
    programs = [isoform.load(result), original]
    programs += [with_weights(isoform.load(path)) for path in paths]
    seconds = pricing.prices(programs)
    best = min(range(1, len(seconds)), key=lambda k: seconds[k])
    modelled = [pricing.costs.program(program).seconds for program in programs[1:]]
    return {
        "name": name,
        "target": pricing.target,
        "budget_s": report["budget_s"],
        "kind": "measured" if target_named(pricing.target).runs_here else "modelled",
        "machine": machine(),
        "found_s": seconds[0],
        "original_s": seconds[1],
        "expert_s": seconds[best],
        "expert": "original" if best == 1 else paths[best - 2].name,
        "by_search": min(modelled) / modelled[0],
        "report": report,
    }


def experts_of(name: str) -> list[Path]:
    """What experts would write: NAME.mlir, and NAME.KIND.mlir where targets differ."""
    return sorted((PROGRAMS / "expert").glob(f"{name}.*mlir"))


def same(one: Program, other: Program) -> bool:
    """Whether two programs of one interface are the same up to names."""
    return one.main.body.is_structurally_equivalent(other.main.body)


def with_weights(program: Program) -> Program:
    """The program with weights drawn by their names."""
    types = {op.key: op.type for op in program.module.walk() if isinstance(op, WeightOp)}
    arrays = {name: draw(name, types[name], 0) * SMALL for name in used_weights(program.module)}
    program.weights = Weights({name: array.astype("float32") for name, array in arrays.items()})
    return program


def format_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table, and how many reach the bar."""
    kinds = {f"{row['target']}, {row['kind']}, budget {row['budget_s']:.0f} s" for row in rows}
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    reached = sum(ratio_of(row) <= BAR for row in rows)
    total = f"{reached} of {len(rows)} are at most {BAR} times the expert's price."
    return "\n".join([*sorted(kinds), "", *lines, *map(line, rows), "", total])


def ratio_of(row: Mapping[str, Any]) -> float:
    """The result's price over the expert's; an expert may find that nothing is to be computed."""
    if not row["expert_s"]:
        return math.inf if row["found_s"] else 1.0
    return row["found_s"] / row["expert_s"]


def line(row: Mapping[str, Any]) -> str:
    """One line of the table."""
    report, ratio = row["report"], ratio_of(row)
    kept = [search["strategy"] for search in report["searches"] if search["kept"]]
    own = " (original)" if row["expert"] == "original" else ""
    cells = [
        row["name"],
        *(f"{row[key] * 1e6:.2f}" for key in ("original_s", "found_s", "expert_s")),
        f"{ratio:.3f}" if ratio <= BAR else f"**{ratio:.3f}**",
        f"{row['by_search']:.2f}",
        ", ".join(kept) or "-",
        f"{report['elapsed_s']:.0f}",
        "" if kept else in_short(report),
    ]
    cells[3] += own
    return "| " + " | ".join(cells) + " |"


def in_short(report: Mapping[str, Any]) -> str:
    """Why no search was kept, in the report's words; a limit that stopped one in brackets."""
    by_reason: dict[str, list[str]] = {}
    for search in report["searches"]:
        limit = search["stop_reason"]
        name = search["strategy"] + ("" if limit == "finished" else f" ({limit})")
        by_reason.setdefault(search["reason"], []).append(name)
    parts = [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]
    if report["message"].startswith("rewrites not kept"):
        parts.append(report["message"])
    return "; ".join(parts)


__all__ = ["Pricing", "format_rows", "measure"]

if __name__ == "__main__":
    main()
