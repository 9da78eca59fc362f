"""Saturation on TENSAT's models: time, modelled cost, ablations, soundness. Run it alone.

    python benchmarks/saturation.py --table time|cost|backtrack|k|cycles|sound|measured
        [--rules FILE] [--tensat FOLDER] [--models a,b] [--targets cpu,h100] [--into ROWS.json]

Rules: a rule set or file, joined with those of `--tensat FOLDER`, which are converted as read.
Costs are modelled for the target named; `measured` alone runs programs, on the CPU, one thread, in
turns, after `improve`, compiled into a cache folder of their own. Seconds are wall-clock. With
`--into` rows are added to the file one by one and those that stand there are not made again; each
carries the machine and its load.
"""

from __future__ import annotations

import time

_STARTED = time.perf_counter()  # what is imported below is part of a cold run

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from functools import partial  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, TypeAlias  # noqa: E402

from isoform.compiler import api, zoo  # noqa: E402
from isoform.compiler.commands.inputs import draw_inputs  # noqa: E402
from isoform.compiler.garbage import rare_collections  # noqa: E402
from isoform.compiler.peers.timing import interleave, machine, median  # noqa: E402
from isoform.dialects.program import Program  # noqa: E402
from isoform.lowering.targets import target_named  # noqa: E402
from isoform.passes.cost.costs import Costs  # noqa: E402
from isoform.passes.rules.op_table import OpTable  # noqa: E402
from isoform.passes.rules.rule import Rule  # noqa: E402
from isoform.passes.rules.rule_set import rules_named  # noqa: E402
from isoform.passes.saturation.check import check_instances  # noqa: E402
from isoform.passes.saturation.cycles import CYCLES  # noqa: E402
from isoform.passes.saturation.extract import METHODS  # noqa: E402
from isoform.passes.saturation.limits import Caps  # noqa: E402
from isoform.passes.saturation.price import NodePrices  # noqa: E402
from isoform.passes.saturation.search import BlockOutcome, SaturationSettings, saturate_block  # noqa: E402
from isoform.passes.search_result import Limits  # noqa: E402
from isoform.passes.substitution import search as backtracking  # noqa: E402
from isoform.testing.tensat_rules import convert  # noqa: E402

# Name, and seconds of TENSAT's optimiser (its table 4; Inception-v3 at k_multi = 2).
MODELS: dict[str, float | None] = {
    "tensat-bert": 1.4,
    "bert-base": None,
    "resnext50": 0.7,
    "nasnet-a": 10.6,
    "nasrnn": 0.5,
    "inception-v3": 5.1,
    "squeezenet": 0.3,
    "vgg19": 0.4,
}
Row: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Case:
    """One row to make.

    Attributes:
        seconds: the most one extraction may take; in `k` and `cycles` the whole search.
    """

    model: str
    target: str
    rules: tuple[Rule, ...]
    seconds: float
    given: argparse.Namespace

    def once(self, program: Program | None = None, **options: Any) -> BlockOutcome:
        """Saturate and extract the model from its IR on; a new copy each time."""
        program = zoo.build(self.model) if program is None else program
        table = OpTable()
        prices = NodePrices(table, Costs(target_named(self.target)))
        k_multi, seconds = options.pop("k_multi", 1), options.pop("seconds", 3600.0)
        caps = Caps(k_multi=k_multi, seconds=seconds, mebibytes=8192.0)
        options = {"extract_seconds": self.seconds, **options}
        settings = SaturationSettings(rules=self.rules, caps=caps, **options)
        with rare_collections():  # as passes run
            return saturate_block(program.main.body.block, table, prices, settings)


def time_row(case: Case) -> Row:
    """Cold and warm seconds of the whole pass, and where the warm ones go.

    Cold: the imports and the first pass of a process of its own. Warm: the least of three.
    """
    k_multi = 2 if case.model == "inception-v3" else 1
    cold = subprocess.run([*_again(case), "--cold"], capture_output=True, check=True, text=True)
    runs = [case.once(k_multi=k_multi) for _ in range(4)][1:]
    outcome = min(runs, key=lambda o: sum(o.seconds.values()))
    return {
        "k_multi": k_multi,
        "tensat_s": MODELS[case.model],
        "cold_s": float(cold.stdout),
        "warm_s": sum(outcome.seconds.values()),
        "e_nodes": outcome.saturation.nodes[-1],
        "stop": outcome.saturation.stop_reason,
        **{f"{stage}_s": value for stage, value in outcome.seconds.items()},
    }


def _again(case: Case) -> list[str]:
    """The command line of this program for one model."""
    given = case.given
    command = [sys.executable, __file__, "--table", given.table, "--models", case.model]
    command += ["--rules", given.rules, "--targets", case.target]
    return command + (["--tensat", str(given.tensat)] if given.tensat is not None else [])


def print_cold(case: Case) -> None:
    """Seconds from the first import to the end of the pass, without building the model."""
    begun = time.perf_counter()
    program = zoo.build(case.model)
    built = time.perf_counter() - begun
    case.once(program, k_multi=2 if case.model == "inception-v3" else 1)
    print(time.perf_counter() - _STARTED - built)


def cost_row(case: Case) -> Row:
    """Modelled microseconds of the program and of what each extraction gives."""
    row: Row = {}
    for method in METHODS:
        outcome = case.once(method=method)
        row["original_us"] = outcome.before * 1e6
        row[f"{method}_us"] = outcome.extracted.cost * 1e6
        row[f"{method}_s"] = outcome.seconds["extract"]
        if method == "ilp":
            row["gap"] = outcome.extracted.gap
    return row


def backtrack_row(case: Case) -> Row:
    """Saturation against graph-substitute: same rules, same costs, n = 100, alpha = 1.0."""
    costs, program = Costs(target_named(case.target)), zoo.build(case.model)
    settings = backtracking.SubstitutionSettings(rules=case.rules, alpha=1.0, programs=100)
    begun = time.perf_counter()
    found = backtracking.search(
        program, costs, Limits(case.given.backtrack), rules=case.rules, settings=settings
    )
    seconds = time.perf_counter() - begun
    better = zoo.build(case.model)
    outcome = case.once(better)
    return {
        "original_us": costs.program(program).seconds * 1e6,
        "substitute_us": costs.program(found.program).seconds * 1e6,
        "saturate_us": costs.program(better).seconds * 1e6,
        "substitute_s": seconds,
        "substitute_stop": found.stop_reason,
        "saturate_s": sum(outcome.seconds.values()),
    }


def measured_row(case: Case) -> Row:
    """CPU milliseconds (medians, in turns) of the program and of what each search makes of it."""
    settings = backtracking.SubstitutionSettings(rules=case.rules, alpha=1.0, programs=100)
    costs, limits = Costs(target_named(case.target)), Limits(case.given.backtrack)
    original = zoo.build(case.model)
    found = backtracking.search(original, costs, limits, rules=case.rules, settings=settings)
    programs = {"original": original, "substitute": found.program}
    for method in METHODS:
        programs[method] = zoo.build(case.model)
        case.once(programs[method], method=method)
    feeds, sessions = draw_inputs(original, 0), dict[str, api.Session]()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ISOFORM_CACHE"] = folder
        same = {name: str(program.module) for name, program in programs.items()}
        first = {name: next(n for n in same if same[n] == same[name]) for name in same}
        for name in dict.fromkeys(first.values()):
            better = api.improve(programs[name])
            sessions[name] = api.compile(better, "cpu", 1, "quick")
        runs = {name: partial(s.run, None, feeds) for name, s in sessions.items()}
        times = interleave(runs, case.given.run)
    row: Row = {"backtrack_s": case.given.backtrack, "runs": min(map(len, times.values()))}
    for name, origin in first.items():
        row[f"{name}_us"] = costs.program(programs[name]).seconds * 1e6
        row[f"{name}_ms"] = median(times[origin]) * 1e3 if name == origin else f"as {origin}"
    return row


def cycles_row(case: Case) -> Row:
    """One e-graph a way to handle cycles: sizes, seconds, cost."""
    row: Row = {"k_multi": case.given.k_multi}
    for cycles in CYCLES:
        outcome = case.once(cycles=cycles, k_multi=case.given.k_multi, seconds=case.seconds)
        row[f"{cycles}_nodes"] = outcome.saturation.nodes[-1]
        row[f"{cycles}_stop"] = outcome.saturation.stop_reason
        row[f"{cycles}_saturate_s"] = outcome.seconds["saturate"]
        row[f"{cycles}_extract_s"] = outcome.seconds["extract"]
        row[f"{cycles}_us"] = outcome.extracted.cost * 1e6
    return row


def k_row(case: Case) -> Row:
    """E-nodes, cost and gap by rounds of rules with several outputs."""
    row: Row = {}
    for k_multi in (0, 1, 2, 3):
        outcome = case.once(k_multi=k_multi, seconds=case.seconds)
        row[f"k{k_multi}_nodes"] = outcome.saturation.nodes[-1]
        row[f"k{k_multi}_stop"] = outcome.saturation.stop_reason
        row[f"k{k_multi}_s"] = sum(outcome.seconds.values())
        row[f"k{k_multi}_us"] = outcome.extracted.cost * 1e6
        row[f"k{k_multi}_gap"] = outcome.extracted.gap
    return row


def sound_row(case: Case) -> Row:
    """Every instance applied to the model, compared exactly on shrunk shapes."""
    outcome = case.once(method="dag")
    begun = time.perf_counter()
    # Most questions take milliseconds, products of channels that do not shrink a minute.
    checked = check_instances(outcome.saturation.instances, budget=240.0)
    return {
        "e_nodes": outcome.saturation.nodes[-1],
        "instances": checked.instances,
        "questions": checked.questions,
        "failed": len(checked.failed),
        "check_s": time.perf_counter() - begun,
    }


TABLES: dict[str, Callable[[Case], Row]] = {
    "time": time_row,
    "cost": cost_row,
    "backtrack": backtrack_row,
    "cycles": cycles_row,
    "k": k_row,
    "sound": sound_row,
    "measured": measured_row,
}


def markdown(rows: Sequence[Row]) -> str:
    """Rows as a table."""
    heads = [name for name in rows[0] if name != "machine"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in map(row.get, heads)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def make(cases: Sequence[Case], into: Path | None) -> list[Row]:
    """The rows of one table; those that stand in the file are taken from there."""
    known: list[Row] = json.loads(into.read_text()) if into is not None and into.exists() else []
    made = list[Row]()
    for case in cases:
        table = case.given.table
        key = {"table": table, "model": case.model, "target": case.target}
        if table == "cycles":
            key["k_multi"] = case.given.k_multi
        row = next((r for r in known if key.items() <= r.items()), None)
        if row is None:
            row = {**key, **TABLES[table](case), "machine": machine()}
            known.append(row)
            if into is not None:
                into.write_text(json.dumps(known, indent=1) + "\n")
        made.append(row)
    return made


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", default="default")
    parser.add_argument("--tensat", type=Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--table", choices=TABLES, default="time")
    parser.add_argument("--targets", default="h100")
    parser.add_argument("--k-multi", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="for one extraction, or search")
    parser.add_argument(
        "--backtrack", type=float, default=600.0, help="seconds of graph-substitute"
    )
    parser.add_argument("--run", type=float, default=10.0, help="seconds of timed runs of a model")
    parser.add_argument("--into", type=Path, help="a JSON file of rows, added to")
    parser.add_argument("--cold", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    rules = rules_named(given.rules)
    if given.tensat is not None:
        multi = (given.tensat / "converted_multi.txt").read_text()
        rules += convert((given.tensat / "converted.txt").read_text(), multi)
    cases = [
        Case(model, target, tuple(rules), given.seconds, given)
        for target in given.targets.split(",")
        for model in given.models.split(",")
    ]
    if given.cold:
        print_cold(cases[0])
    else:
        print(markdown(make(cases, given.into)))


if __name__ == "__main__":
    main()
