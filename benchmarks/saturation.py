"""Saturation on TENSAT's seven models: time, modelled cost, ablations. Run it alone on the machine.

    python benchmarks/saturation.py [--rules FILE] [--models a,b] [--table time|cost|cycles|k]

Rules: a rule set or file, joined with those of `--tensat FOLDER`, which are converted as read.
Costs are modelled for the target named; nothing here measures a program.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isoform.compiler import zoo
from isoform.lowering.targets import target_named
from isoform.passes.cost import Costs
from isoform.passes.saturation.extract import METHODS
from isoform.passes.saturation.limits import Caps
from isoform.passes.saturation.match import CYCLES
from isoform.passes.saturation.ops import OpTable
from isoform.passes.saturation.price import Prices
from isoform.passes.saturation.search import Outcome, Settings, saturate_block
from isoform.passes.saturation.tensat_rules import convert
from isoform.passes.substitution.rule import Rule
from isoform.passes.substitution.rule_set import rules_named

# Name, and seconds of TENSAT's optimiser (its table 4; Inception-v3 at k_multi = 2).
MODELS = {
    "tensat-bert": 1.4,
    "resnext50": 0.7,
    "nasnet-a": 10.6,
    "nasrnn": 0.5,
    "inception-v3": 5.1,
    "squeezenet": 0.3,
    "vgg19": 0.4,
}


def once(name: str, rules: Sequence[Rule], target: str, seconds: float, **options: Any) -> Outcome:
    """Saturate and extract one model from its IR on; a new copy each time."""
    program = zoo.build(name)
    table = OpTable()
    prices = Prices(table, Costs(target_named(target)))
    caps = Caps(k_multi=options.pop("k_multi", 1), seconds=3600.0)
    settings = Settings(rules=tuple(rules), caps=caps, extract_seconds=seconds, **options)
    return saturate_block(program.main.body.block, table, prices, settings)


def time_row(name: str, rules: Sequence[Rule], seconds: float) -> dict[str, Any]:
    """Cold and warm time of the whole pass, and where the warm time goes."""
    k_multi = 2 if name == "inception-v3" else 1
    times, outcome = list[float](), None
    for _ in range(3):
        begun = time.perf_counter()
        outcome = once(name, rules, "cpu", seconds, k_multi=k_multi)
        times.append(sum(outcome.seconds.values()))
        assert time.perf_counter() >= begun
    assert outcome is not None
    return {
        "model": name,
        "k_multi": k_multi,
        "tensat_s": MODELS[name],
        "first_s": times[0],
        "warm_s": min(times[1:]),
        "e_nodes": outcome.saturation.nodes[-1],
        "stop": outcome.saturation.stop_reason,
        **{f"{stage}_s": value for stage, value in outcome.seconds.items()},
    }


def cost_row(name: str, rules: Sequence[Rule], target: str, seconds: float) -> dict[str, Any]:
    """Modelled microseconds of the program and of what each extraction gives."""
    row: dict[str, Any] = {"model": name, "target": target}
    for method in METHODS:
        outcome = once(name, rules, target, seconds, method=method)
        row["original_us"] = outcome.before * 1e6
        row[f"{method}_us"] = outcome.extracted.cost * 1e6
        if method == "ilp":
            row["gap"] = outcome.extracted.gap
    return row


def cycles_row(name: str, rules: Sequence[Rule], seconds: float, k_multi: int) -> dict[str, Any]:
    """One e-graph a way to handle cycles: sizes, seconds, cost."""
    row: dict[str, Any] = {"model": name, "k_multi": k_multi}
    for cycles in CYCLES:
        outcome = once(name, rules, "h100", seconds, cycles=cycles, k_multi=k_multi)
        row[f"{cycles}_nodes"] = outcome.saturation.nodes[-1]
        row[f"{cycles}_saturate_s"] = outcome.seconds["saturate"]
        row[f"{cycles}_extract_s"] = outcome.seconds["extract"]
        row[f"{cycles}_us"] = outcome.extracted.cost * 1e6
    return row


def k_row(name: str, rules: Sequence[Rule], seconds: float) -> dict[str, Any]:
    """E-nodes, cost and gap by rounds of rules with several outputs."""
    row: dict[str, Any] = {"model": name}
    for k_multi in (0, 1, 2, 3):
        outcome = once(name, rules, "h100", seconds, k_multi=k_multi)
        row[f"k{k_multi}_nodes"] = outcome.saturation.nodes[-1]
        row[f"k{k_multi}_s"] = sum(outcome.seconds.values())
        row[f"k{k_multi}_us"] = outcome.extracted.cost * 1e6
        row[f"k{k_multi}_gap"] = outcome.extracted.gap
    return row


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as a table."""
    heads = list(rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = [f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", default="default")
    parser.add_argument("--tensat", type=Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--table", choices=("time", "cost", "cycles", "k"), default="time")
    parser.add_argument("--targets", default="cpu,h100,v100")
    parser.add_argument("--k-multi", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60.0, help="for one extraction")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rules = rules_named(given.rules)
    if given.tensat is not None:
        multi = (given.tensat / "converted_multi.txt").read_text()
        rules += convert((given.tensat / "converted.txt").read_text(), multi)
    rows = list[dict[str, Any]]()
    for name in given.models.split(","):
        if given.table == "time":
            rows.append(time_row(name, rules, given.seconds))
        elif given.table == "cost":
            rows += [cost_row(name, rules, t, given.seconds) for t in given.targets.split(",")]
        elif given.table == "cycles":
            rows.append(cycles_row(name, rules, given.seconds, given.k_multi))
        else:
            rows.append(k_row(name, rules, given.seconds))
    print(json.dumps(rows, indent=2) if given.json else markdown(rows))


if __name__ == "__main__":
    main()
