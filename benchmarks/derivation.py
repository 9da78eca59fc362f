"""What the derivation search finds, in how many states and seconds: docs/results/derivation.md.

    python benchmarks/derivation.py            cases, spaces, ablations
    python benchmarks/derivation.py --check    also every state to depth 4 against its root
    python benchmarks/derivation.py --models dcgan,fsrcnn [--batch 16] [--out rows.json]
                                               whole models, derivation on and off, onnxruntime
    python benchmarks/derivation.py --models dcgan --target h100
                                               the same by the model of a target not at hand
    python benchmarks/derivation.py --models gcn --batch 16 --parts search --out rows.json
    python benchmarks/derivation.py --models gcn --batch 16 --parts times,errors --out rows.json
                                               the same in two sittings
    python benchmarks/derivation.py --models infogan --depths 1,2,3,4,5
                                               what each depth of the search reaches
    python benchmarks/derivation.py --table rows.json

With --out each row is put into a JSON file, in the place of an older one; parts that are not asked
for stay as they were, among them the seconds of a search that this run goes on from. Runs of more
than a tenth of a second are not settled by untimed ones before. Seconds of the first
tables are process CPU seconds. EinNet's figures are from its artifact's logs (MaxDepth 7). Models
run on one thread; subprograms decided before are taken from the cache folder.
"""

import argparse
import gc
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from isoform.compiler import api, zoo
from isoform.compiler.commands.bench import open_peers
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.peers.model_file import peer_model
from isoform.compiler.peers.timing import difference, interleave, median
from isoform.compiler.search.optimizer import Optimized
from isoform.dialects.program import Program
from isoform.passes.derivation import propose
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.replace import Roots
from isoform.passes.derivation.rules import BY_HAND, EAGER, RULES
from isoform.passes.derivation.search import (
    DerivationResult,
    DerivationSettings,
    DerivationState,
    Searcher,
)
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.equivalence.prove import Prover
from isoform.passes.equivalence.residues import Residues, draw_primes
from isoform.testing.derivation_cases import Case, all_cases, constants, stacked
from isoform.testing.derivation_tree import StepwiseSearcher, tree_of

# States without and with fingerprints, seconds without and with, of EinNet's artifact.
EINNET = {
    "conv3x3": ("7.08 M", "158 k", "327", "7.0"),
    "transposed-gather": ("64.0 M", "901 k", "3834", "52.7"),
    "conv5x5": ("76.7 M", "2.23 M", "3695", "98.9"),
    "band-dilated": ("1.27 M", "18.3 k", "73.1", "0.68"),
}
EINNET_DEPTHS = {
    "conv3x3": (8, 4),
    "transposed-gather": (12, 6),
    "conv5x5": (11, 7),
    "band-dilated": (7, 4),
}


def main() -> None:
    """Print the tables."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--models", default="", help="names of the zoo, with commas")
    arguments.add_argument("--batch", type=int, default=1)
    arguments.add_argument("--budget", type=float, default=300.0, help="seconds a model")
    arguments.add_argument("--parts", default="search,times", help="search, times, errors")
    arguments.add_argument("--out", type=Path, help="a JSON file that rows are put into")
    arguments.add_argument("--table", type=Path, help="print the rows of a JSON file")
    arguments.add_argument("--target", default="cpu", help="of --models; modelled if not here")
    arguments.add_argument("--depths", default="", help="of the search, with commas")
    arguments.add_argument("--without", default="", help="peers left out: onnxruntime")
    given = arguments.parse_args()
    if given.table:
        print_rows(json.loads(given.table.read_text()))
        return
    if given.models:
        for name in given.models.split(","):
            known = json.loads(given.out.read_text()) if given.out and given.out.exists() else {}
            rows = model_rows(name, given, known)
            print_rows(rows)
            if given.out:
                given.out.write_text(json.dumps(known | rows, indent=1) + "\n")
        return
    check = given.check
    cases = {case.name: case for case in all_cases()}
    case_table(list(cases.values()))
    space_table(cases)
    depth_table(cases)
    if check:
        check_table(cases)


def find(
    case: Case, exact: bool = False, depth: int | None = None
) -> tuple[DerivationState | None, DerivationResult]:
    """Search for the case's goal; `exact` wants it with no layout kernels at all."""
    found: list[DerivationState] = []

    def watch(state: DerivationState) -> bool:
        match = case.reached(state.roots)
        if match is not None and (not exact or all(match.direct)):
            found.append(state)
        return bool(found)

    settings = DerivationSettings(depth=case.depth if depth is None else depth, states=20_000)
    searcher = Searcher(ScopePrices(constants(case.roots)), settings)
    result = searcher.search(case.roots, watch)
    return (found[0] if found else None), result


def case_table(cases: list[Case]) -> None:
    """The paper's cases, each with the checker's verdict."""
    print("case | found | rules | depth | states | CPU s | checked")
    for case in cases:
        state, result = find(case)
        if state is None:
            print(f"{case.name} | {case.text} | not found | | {len(result.states)} | |")
            continue
        pairs = zip(case.roots, state.roots, strict=True)
        methods = {proof.method for a, b in pairs if (proof := Prover().prove(a, b)).equal}
        rules = ", ".join(state.rules()) or "as it stands"
        counts = f"{state.depth} | {len(result.states)} | {result.seconds:.2f}"
        print(f"{case.name} | {case.text} | {rules} | {counts} | {'; '.join(sorted(methods))}")


def space_table(cases: dict[str, Case]) -> None:
    """Whole spaces: what interning spares, with eager rules done at once and as steps."""
    print("\ncase | depth | tree nodes | states | spared | eager rules as steps: nodes | states | "
          "spared | CPU s | EinNet: nodes, states, s, s")  # fmt: skip
    for name, depth in (
        ("conv3x3", 7),
        ("conv3x3", 12),
        ("band-dilated", 7),
        ("transposed-gather", 3),
        ("conv5x5", 4),
    ):
        settings = DerivationSettings(depth=depth, states=200_000, budget=300.0)
        roots = cases[name].roots
        seconds = Searcher(ScopePrices(), settings).search(roots).seconds
        trees = [
            tree_of(kind(ScopePrices(), settings), roots) for kind in (Searcher, StepwiseSearcher)
        ]
        cells = [f"{t.nodes} | {t.states} | {100 * t.spared:.1f}%" for t in trees]
        print(f"{name} | {depth} | {' | '.join(cells)} | {seconds:.2f} | {', '.join(EINNET[name])}")
        gc.collect()


def depth_table(cases: dict[str, Case]) -> None:
    """Depth at which the goal is met with matching modulo layout, and with operands in place."""
    print("\ncase | depth, modulo layout | depth, in place only | EinNet: without, with converging")
    for name, (without, with_) in EINNET_DEPTHS.items():
        state, _ = find(cases[name])
        exact, _ = find(cases[name], exact=True)
        depths = [str(s.depth) if s is not None else "not found" for s in (state, exact)]
        print(f"{name} | {depths[0]} | {depths[1]} | {without}, {with_}")


def check_table(cases: dict[str, Case]) -> None:
    """Every state to depth 4 at small sizes, evaluated modulo two primes at every position."""
    print("\nprogram | states to depth 4 | wrong")
    programs: dict[str, Roots] = {c.small[0].token: c.small for c in cases.values()}
    names = {c.small[0].token: c.name for c in reversed(list(cases.values()))}
    programs[stacked()[0].token] = stacked()
    for token, roots in programs.items():
        settings = DerivationSettings(depth=4, states=10**6, budget=1e9)
        states = Searcher(ScopePrices(), settings).search(roots).states
        evaluator = Evaluator(Residues(draw_primes(2, 5), 5))
        wanted = [evaluator.value(root) for root in roots]
        wrong = 0
        for state in states:
            pairs = zip((evaluator.value(r) for r in state.roots), wanted, strict=True)
            wrong += not all(bool(evaluator.field.equal(a, b).all()) for a, b in pairs)
        print(f"{names.get(token, 'stacked')} | {len(states)} | {wrong}", flush=True)


# --- whole models -------------------------------------------------------------------------------


Row = dict[str, Any]
DEPTH = propose.SETTINGS.depth
# Seconds of untimed runs before a timed one; runs of so many seconds need none.
SETTLE, LONG = 0.005, 0.1


def model_rows(name: str, given: argparse.Namespace, known: dict[str, Row]) -> dict[str, Row]:
    """The rows of one model, each under a key of its own.

    Args:
        name: of the zoo, and sizes other than the model's own: `longformer@sequence=2500`.
        known: rows of earlier sittings.
    """
    parts = given.parts.split(",")
    model, *sizes = name.split("@")
    wanted = {key: int(value) for key, _, value in (size.partition("=") for size in sizes)}
    program = zoo.build(model, given.batch, **wanted)
    rows: dict[str, Row] = {}
    for depth in [int(d) for d in given.depths.split(",") if d] or [DEPTH]:
        propose.SETTINGS = replace(propose.SETTINGS, depth=depth)
        key = f"{name} {given.batch} {given.target} {depth}"
        row = {"model": name, "batch": given.batch, "target": given.target, "depth": depth}
        row = known.get(key, {}) | row
        started = time.perf_counter()
        better = api.optimize(
            program, target=given.target, strategy="derive", budget=given.budget, threads=1
        )
        if "search" in parts or "search_s" not in row:
            row["search_s"] = time.perf_counter() - started
        row |= _applied(better)
        if given.target == "cpu":
            if {"times", "errors"} & set(parts):
                row |= measured(program, better, parts, given.without)
        else:
            cost = better.report["cost"]
            row |= {"off_ms": cost["before"] * 1e3, "derived_ms": cost["after"] * 1e3}
            row["off_over_derived"] = [cost["before"] / cost["after"]] * 3
        rows[key] = row
    return rows


def _applied(better: Optimized) -> Row:
    """What was rewritten, by the rules' names, and how it is known to be equal."""
    known = {rule.name for rule in (*RULES, *EAGER, *BY_HAND)} | {"match"}
    rules = [r for r in better.report["rewrites"] if _plain(r) in known]
    counts = Counter(_plain(r) for r in rules)
    proofs = Counter(str(r["proof"]) for r in rules)
    (search,) = better.report["searches"]
    row = {"rules": counts, "proofs": proofs, "stop": better.report["stop_reason"]}
    return row | {"looked_at": search["looked_at"]}


def _plain(rewrite: Row) -> str:
    """The rule's name; those of a search's second program have no prefix."""
    return str(rewrite["rule"]).removeprefix("derive ")


def measured(program: Program, better: Program, parts: Sequence[str], without: str) -> Row:
    """Derivation off, on, and onnxruntime, in turn, at least 50 times each; and their errors."""
    feeds = draw_inputs(program, 0)
    off = api.compile(api.improve(program), threads=1)
    on = api.compile(better, threads=1)
    row: Row = {}
    if "errors" in parts:
        exact = api.compile(program, "reference").run(None, feeds)
        row["errors"] = [difference(session.run(None, feeds), exact) for session in (off, on)]
    if "times" in parts:
        runs = {"off": partial(off.run, None, feeds), "derived": partial(on.run, None, feeds)}
        with peer_model(program) as model:
            names = [] if without == "onnxruntime" else ["onnxruntime"]
            peers = open_peers(model, names, 1, feeds).peers
            runs |= {peer.name: peer.run for peer in peers}
            row |= timed(runs) | {"machine": machine(), "time": time.strftime("%Y-%m-%d %H:%M")}
            row |= {"file": model.label} if peers else {}
    return row


def timed(runs: Mapping[str, Callable[[], object]]) -> Row:
    """Medians, and ratios to "derived" with their intervals."""
    started = time.perf_counter()
    runs["derived"]()
    settle = SETTLE if time.perf_counter() - started < LONG else 0.0
    times = interleave(runs, 12.0, least=50, most=400, settle=settle)
    row: Row = {f"{k}_ms": median(v) * 1e3 for k, v in times.items()}
    row["pairs"] = len(times["off"])
    for k, v in times.items():
        if k != "derived":
            row[f"{k}_over_derived"] = interval(v, times["derived"])
    return row


def interval(slow: list[float], fast: list[float]) -> list[float]:
    """The median ratio of paired runs, and its 95% interval (bootstrap, fixed seed)."""
    ratios = np.asarray(slow) / np.asarray(fast)
    draws = np.random.default_rng(0).integers(0, len(ratios), (1000, len(ratios)))
    low, high = np.percentile(np.median(ratios[draws], axis=1), [2.5, 97.5])
    return [float(np.median(ratios)), float(low), float(high)]


def print_rows(rows: dict[str, Row]) -> None:
    """One line each."""
    print("model | batch | target | depth | off ms | derived ms | onnxruntime ms | off / derived | "
          "onnxruntime / derived | scopes | proofs | search s | errors off, derived")  # fmt: skip
    for row in rows.values():
        cells = [str(row[k]) for k in ("model", "batch", "target", "depth")]
        cells += [_number(row.get(f"{k}_ms")) for k in ("off", "derived", "onnxruntime")]
        cells += [_ratio(row.get(f"{k}_over_derived")) for k in ("off", "onnxruntime")]
        proofs = ", ".join(f"{k} {n}" for k, n in row["proofs"].items())
        errors = ", ".join(f"{e:.1e}" for e in row.get("errors", ()))
        cells += [str(row["rules"].get("match", 0)), proofs, f"{row['search_s']:.0f}", errors]
        print(" | ".join(cells), flush=True)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _ratio(value: list[float] | None) -> str:
    return "-" if value is None else f"{value[0]:.2f} ({value[1]:.2f}, {value[2]:.2f})"


def machine() -> str:
    """Processor, versions and load."""
    from importlib.metadata import version

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")
    load = f"load {os.getloadavg()[0]:.1f}"
    return f"{name}, 1 thread, onnxruntime {version('onnxruntime')}, numpy {np.__version__}, {load}"


if __name__ == "__main__":
    main()
