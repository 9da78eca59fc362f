"""Substitution search on TASO's models: docs/results/substitution-search.md. Run it alone.

    python benchmarks/substitution.py --out ROWS.jsonl [--table models|alpha|rules|layouts|groups]
                                      [--models a,b] [--targets h100,v100,cpu] [--seconds 60]
                                      [--measured] [--onnx]
    python benchmarks/substitution.py --show ROWS.jsonl [--table models]

A row is a model, a target and settings; rows that are in ROWS.jsonl already are not made again, so
a run may be cut off and go on. Every result is compared with its source by the equivalence checker
and certified in memory; `--certificates FOLDER` keeps the certificates.

Costs, and so gains, are modelled. `--measured` also runs both programs on this CPU, one thread, in
turn, and `--onnx` writes both as ONNX, has onnx.checker check what was found, and compares their
outputs in onnxruntime. Seconds are wall-clock seconds of one thread. TASO's columns are TENSAT's
measurements of it (n = 100, alpha = 1.0, its own cost model on one T4), on another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import onnxruntime

from isoform.compiler import api, zoo
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.peers.timing import difference, interleave, median
from isoform.compiler.reports.certificate import CertifiedWork, certificate_of
from isoform.dialects.graph.contraction import ConvOp
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.rule import Rule, operator_count
from isoform.passes.rules.rule_set import rules_named
from isoform.passes.search_result import Limits, SearchResult
from isoform.passes.substitution.search import SubstitutionSettings, both_ways, search

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
    """What a row stands for, but for the model and the target.

    Attributes:
        layouts: whether layouts are searched jointly; "first": alone, and then substitutions.
    """

    alpha: float = 1.05
    programs: int = 1000
    size: int = 4
    layouts: bool | str = True
    substitutions: bool = True


SETTINGS: dict[str, tuple[Setting, ...]] = {
    "models": (Setting(), Setting(1.0, 100)),
    "alpha": (Setting(1.0), Setting(1.05), Setting(1.1)),
    "rules": (Setting(size=1), Setting(size=2), Setting(size=3), Setting()),
    "layouts": (
        Setting(layouts=False),
        Setting(substitutions=False),
        Setting(layouts="first"),
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


def searched(
    program: Program, costs: Costs, setting: Setting, seconds: float, rules: Sequence[Rule]
) -> SearchResult:
    """What the search finds under a setting."""
    settings = SubstitutionSettings(
        (), setting.alpha, setting.programs, layouts=setting.layouts is True
    )
    if setting.layouts == "first":
        alone = replace(settings, layouts=True)
        program = search(program, costs, Limits(seconds), rules=(), settings=alone).program
    return search(program, costs, Limits(seconds), rules=rules, settings=settings)


def row(model: str, target: str, setting: Setting, given: argparse.Namespace) -> dict[str, Any]:
    """Search one model and check what was found."""
    folder: Path | None = given.certificates
    program = api.improve(zoo.build(model))
    costs = Costs(target_named(target))
    before = costs.program(program).seconds
    rules = rules_of(setting)
    started = time.perf_counter()
    found = searched(program, costs, setting, given.seconds, rules)
    elapsed = time.perf_counter() - started
    after = costs.program(found.program).seconds
    rewrites = [asdict(applied) for applied in found.applied]
    work = CertifiedWork("graph-substitute", rewrites, 0)
    certificate = certificate_of(program, found.program, work, given.check_seconds)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{model}-{target}-{setting.alpha}-{setting.programs}.json"
        (folder / name).write_text(json.dumps(certificate, indent=1))
    extra: dict[str, Any] = measured(program, found.program) if given.measured else {}
    extra |= through_onnx(program, found.program) if given.onnx else {}
    return {
        "model": model,
        "target": target,
        **asdict(setting),
        **extra,
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


def measured(program: Program, better: Program) -> dict[str, Any]:
    """Both compiled for this CPU and run in turn on one thread: medians, ratio of paired runs."""
    feeds = draw_inputs(program, 0)
    runs = {
        name: partial(api.compile(p, threads=1).run, None, feeds)
        for name, p in (("before", program), ("after", better))
    }
    times = interleave(runs, 10.0, least=20, most=400, settle=0.005)
    ratios = np.asarray(times["before"]) / np.asarray(times["after"])
    low, middle, high = np.percentile(ratios, [25, 50, 75])
    return {
        "before_ms": median(times["before"]) * 1e3,
        "after_ms": median(times["after"]) * 1e3,
        "ratio": [float(middle), float(low), float(high)],
        "pairs": len(ratios),
    }


def through_onnx(program: Program, better: Program) -> dict[str, Any]:
    """Whether what was found passes onnx.checker, and how far onnxruntime's outputs are apart."""
    feeds = draw_inputs(program, 0)
    outputs = list[list[Any]]()
    with TemporaryDirectory() as folder:
        for name, one in (("before", program), ("after", better)):
            path = Path(folder) / f"{name}.onnx"
            api.save(one, path)
            onnx.checker.check_model(str(path), full_check=True)
            session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
            outputs.append(session.run(program.output_names, feeds))
    before, after = outputs
    return {"onnx_difference": difference(after, before)}


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
        layouts = {True: "yes", False: "no"}.get(setting.layouts, setting.layouts)
        cells += [layouts, entry["rules"]]
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
    parser.add_argument("--measured", action="store_true", help="run both on this CPU as well")
    parser.add_argument("--onnx", action="store_true", help="compare both in onnxruntime")
    given = parser.parse_args()
    if given.show is not None:
        show(read(given.show), SETTINGS[given.table])
    elif given.out is not None:
        make(given)
    else:
        parser.error("--out or --show")


if __name__ == "__main__":
    main()
