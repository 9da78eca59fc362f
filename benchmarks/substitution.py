"""Substitution search on TASO's models: docs/substitutions.md. Run it alone on the machine.

    python benchmarks/substitution.py --out ROWS.jsonl [--table models|alpha|rules|layouts|groups]
                                      [--models a,b] [--targets h100,v100,cpu] [--seconds 60]
    python benchmarks/substitution.py --show ROWS.jsonl [--table models]

A row is a model, a target and settings; rows that are in ROWS.jsonl already are not made again, so
a run may be cut off and go on. Every result is compared with its source by the equivalence checker
and certified in memory; `--certificates FOLDER` keeps the certificates.

Costs, and so gains, are modelled: nothing here runs a model. Seconds are wall-clock seconds of one
thread. TASO's columns are TENSAT's measurements of it (n = 100, alpha = 1.0, its own cost model on
one T4), on another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isoform.compiler import api, zoo
from isoform.compiler.certificate import Work, certificate_of
from isoform.dialects.graph.contraction import ConvOp
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost import Costs
from isoform.passes.search_result import Limits
from isoform.passes.substitution.rule import Rule, operator_count
from isoform.passes.substitution.rule_set import rules_named
from isoform.passes.substitution.search import Settings, both_ways, search

TASO: dict[str, tuple[float, float] | None] = {
    "tensat-bert": (13.6, 8.5),
    "resnext50": (25.3, 5.5),
    "nasnet-a": (1226.0, 1.9),
    "nasrnn": (177.3, 45.4),
    "inception-v3": (68.6, 6.3),
    "squeezenet": (16.4, 6.7),
    "vgg19": (8.9, 8.9),
    "resnet50": None,
}
"""Seconds of TASO's search and the speed-up in per cent it found."""


@dataclass(frozen=True)
class Setting:
    """What a row stands for, but for the model and the target."""

    alpha: float = 1.05
    programs: int = 1000
    size: int = 3
    layouts: bool = True
    substitutions: bool = True


SETTINGS: dict[str, tuple[Setting, ...]] = {
    "models": (Setting(), Setting(1.0, 100)),
    "alpha": (Setting(1.0), Setting(1.05), Setting(1.1)),
    "rules": (Setting(size=1), Setting(size=2), Setting(size=3)),
    "layouts": (
        Setting(layouts=False),
        Setting(substitutions=False),
        Setting(),
    ),
    "groups": (Setting(programs=100),),
}


def rules_of(setting: Setting) -> tuple[Rule, ...]:
    """The rules that are on by default, of graphs up to a size."""
    if not setting.substitutions:
        return ()
    sizes = {
        r: max(operator_count(r.left), operator_count(r.right)) for r in rules_named("default")
    }
    return tuple(rule for rule, size in sizes.items() if size <= setting.size)


def row(model: str, target: str, setting: Setting, given: argparse.Namespace) -> dict[str, Any]:
    """Search one model and check what was found."""
    folder: Path | None = given.certificates
    program = api.improve(zoo.build(model))
    costs = Costs(target_named(target))
    before = costs.program(program).seconds
    settings = Settings((), setting.alpha, setting.programs, layouts=setting.layouts)
    rules = rules_of(setting)
    started = time.perf_counter()
    found = search(program, costs, Limits(given.seconds), rules=rules, settings=settings)
    elapsed = time.perf_counter() - started
    after = costs.program(found.program).seconds
    rewrites = [asdict(applied) for applied in found.applied]
    work = Work("graph-substitute", rewrites, 0)
    certificate = certificate_of(program, found.program, work, given.check_seconds)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{model}-{target}-{setting.alpha}-{setting.programs}.json"
        (folder / name).write_text(json.dumps(certificate, indent=1))
    return {
        "model": model,
        "target": target,
        **asdict(setting),
        "rules": len(both_ways(rules)),
        "before_us": before * 1e6,
        "after_us": after * 1e6,
        "gain_percent": 100 * (before / after - 1),
        "search_s": elapsed,
        "best_s": found.best_after,
        "stop": found.stop_reason,
        "verdict": certificate["body"]["verdict"]["kind"],
        "reason": certificate["body"]["verdict"].get("reason", ""),
        "used": Counter(applied.rule for applied in found.applied).most_common(),
        "groups": sorted(Counter(_groups(found.program)).items()),
        "machine": f"{platform.processor() or platform.machine()}, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}",
    }


def _groups(program: Program) -> Iterator[int]:
    """The groups of each grouped convolution."""
    for op in program.main.body.block.ops:
        if isinstance(op, ConvOp) and op.value("groups") > 1:
            yield op.value("groups")


def key(entry: dict[str, Any]) -> tuple[Any, ...]:
    """What distinguishes rows."""
    return tuple(entry[n] for n in ("model", "target", *asdict(Setting())))


def read(path: Path) -> list[dict[str, Any]]:
    """The rows there are."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def make(given: argparse.Namespace) -> None:
    """Make the rows that are missing."""
    done = {key(entry) for entry in read(given.out)}
    for model in given.models.split(","):
        for target in given.targets.split(","):
            for setting in SETTINGS[given.table]:
                if key({"model": model, "target": target, **asdict(setting)}) in done:
                    continue
                entry = row(model, target, setting, given)
                with given.out.open("a") as file:
                    file.write(json.dumps(entry) + "\n")
                gain = f"{entry['gain_percent']:.1f} % in {entry['search_s']:.1f} s"
                print(model, target, setting, gain, entry["stop"], entry["verdict"], flush=True)


def show(entries: Sequence[dict[str, Any]], settings: Sequence[Setting]) -> None:
    """Print the rows of some settings as a table."""
    heads = ("model", "target", "alpha", "n", "size", "layouts", "rules on", "before us")
    heads += ("after us", "gain %", "best s", "search s", "stop", "verdict", "TASO s", "TASO %")
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for entry in entries:
        setting = Setting(**{name: entry[name] for name in asdict(Setting())})
        if setting not in settings:
            continue
        taso = TASO.get(entry["model"])
        cells = [entry["model"], entry["target"], setting.alpha, setting.programs, setting.size]
        cells += ["yes" if setting.layouts else "no", entry["rules"]]
        cells += [f"{entry[n]:.1f}" for n in ("before_us", "after_us", "gain_percent")]
        cells += [f"{entry[n]:.2f}" for n in ("best_s", "search_s")]
        cells += [entry["stop"], entry["verdict"], *(taso or ("-", "-"))]
        print("| " + " | ".join(map(str, cells)) + " |")


def main() -> None:
    """Make rows, or print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", type=Path)
    parser.add_argument("--table", choices=SETTINGS, default="models")
    parser.add_argument("--models", default=",".join(TASO))
    parser.add_argument("--targets", default="h100,v100,cpu")
    parser.add_argument("--seconds", type=float, default=60.0, help="for one search")
    parser.add_argument("--check-seconds", type=float, default=120.0, help="for one comparison")
    parser.add_argument("--certificates", type=Path)
    given = parser.parse_args()
    if given.show is not None:
        show(read(given.show), SETTINGS[given.table])
    elif given.out is not None:
        make(given)
    else:
        parser.error("--out or --show")


if __name__ == "__main__":
    main()
