"""Measure partial equivalence: PET's operators, and whole models with it on and off.

    python benchmarks/partial.py                       the operators of PET's Table 3 and figures
    python benchmarks/partial.py --split-points        the same operators: PET's test and ours
    python benchmarks/partial.py --models csrnet       models: mutation on, off, onnxruntime
    python benchmarks/partial.py --ablation --models csrnet-backend    kinds, forms, depth x rounds

Operators: what the generator looked at, CPU seconds, and of the exact and the partial mutant that
are modelled to be the fastest on a V100, the papers' target: wrong share of the positions, share of
the multiplications that the correction takes, and milliseconds here of the original and the
corrected program, run in turn. PET's test: of the same mutants, the positions that it compares, the
masks that are ours, too large and too small, and the seconds of both. Models: medians and ratios of
programs that take turns in one process; every result is verified.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from isoform.compiler import api
from isoform.compiler.commands.inputs import draw_inputs
from isoform.compiler.peers.model_file import peer_model
from isoform.compiler.peers.runtimes import PEERS
from isoform.compiler.peers.timing import interleave, median
from isoform.compiler.targets.levels import lower_to
from isoform.dialects.canonical_types import Leaf, Read, Scope, Source, leaf
from isoform.dialects.graph import WeightOp
from isoform.dialects.index import Index, iterators
from isoform.dialects.program import Program, main_of
from isoform.dialects.types import shape_of
from isoform.dialects.weights import Weights
from isoform.dialects.weights_only import weights_only
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation.apply_steps import replace_op
from isoform.passes.derivation.body import build
from isoform.passes.derivation.lift import Lift, program_of_scopes, scope_ops
from isoform.passes.derivation.propose import search as derive_program
from isoform.passes.derivation.step import DerivationStep
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.evaluator import Evaluator
from isoform.passes.partial.apply import RULE
from isoform.passes.partial.generate import Generator, Options
from isoform.passes.partial.mutate import modelled
from isoform.passes.partial.operators import gathered
from isoform.passes.partial.propose import MutationSettings
from isoform.passes.partial.propose import search as search_program
from isoform.passes.partial.region import field_mask
from isoform.passes.partial.search import (
    Candidate,
    correction_bytes,
    correction_share,
    forms_of,
    free_dims,
    prices_of,
    search_mutants,
    shrunk,
)
from isoform.passes.partial.split_points import mask_by_split_points
from isoform.passes.search_result import Limits
from isoform.testing.derivation_cases import conv

ONE = (1,)


def ones(x: Leaf, features: Sequence[int]) -> tuple[Scope, ...]:
    """1x1 convolutions of one input."""
    n, f, h, w, c = iterators(5)
    nowhere = Index(0)
    made: list[Scope] = []
    for number, count in enumerate(features):
        k = leaf(f"K{number}", (count, x.shape[1], 1, 1), f32, label=f"K{number}")
        factors = Read(x, (n, c, h, w)), Read(k, (f, c, nowhere, nowhere))
        made.append(build((x.shape[0], count, *x.shape[2:]), (x.shape[1],), factors, f32))
    return tuple(made)


def products(x: Leaf, columns: Sequence[int]) -> tuple[Scope, ...]:
    """Matrix products of one input."""
    m, n, k = iterators(3)
    made: list[Scope] = []
    for number, count in enumerate(columns):
        w = leaf(f"K{number}", (x.shape[1], count), f32, label=f"K{number}")
        factors = Read(x, (m, k)), Read(w, (k, n))
        made.append(build((x.shape[0], count), (x.shape[1],), factors, f32))
    return tuple(made)


BRANCHES = ones(leaf("X", (1, 768, 18, 18), f32, label="X"), (192, 192, 160, 160))
PROJECTIONS = products(leaf("X", (512, 768), f32, label="X"), (768, 768, 768))
# Name, programs, the windows tried.
OPERATORS: tuple[tuple[str, tuple[Scope, ...], dict[str, Any]], ...] = (
    ("batch into width (Fig. 1)", (conv((4, 3, 8, 8), 4, (3, 3)),), {"dilations": ONE}),
    ("dilated (Fig. 3, Table 3)", (conv((1, 512, 14, 14), 256, (3, 3), dilation=2),), {}),
    ("dilated, odd size", (conv((1, 512, 15, 15), 256, (3, 3), dilation=2),), {}),
    ("rows with gaps (Fig. 11b)", (conv((2, 512, 7, 15), 256, (3, 3)),), {"dilations": ONE}),
    (
        "5x5 in tiles (Table 3)",
        (conv((1, 48, 38, 38), 64, (5, 5)),),
        {"dilations": ONE, "gaps": (), "bytes": 1 << 31},
    ),
    ("four 1x1 of one input (Table 3)", BRANCHES, {"depth": 3, "groups": (1, 2, 4), "gaps": ()}),
    ("three products of one input (Table 3)", PROJECTIONS, {"depth": 3, "gaps": ()}),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", nargs="*", help="zoo models instead of operators")
    parser.add_argument("--only", default="", help="operators whose name holds this")
    parser.add_argument("--split-points", action="store_true", help="compare PET's test with ours")
    parser.add_argument("--against", default="onnxruntime")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0, help="of interleaved runs")
    parser.add_argument("--least", type=int, default=20, help="interleaved runs of a model")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of search for a model")
    parser.add_argument("--ablation", action="store_true", help="modelled, one part left out")
    parser.add_argument("--target", default="v100", help="of the ablation")
    parser.add_argument("--rows", help="file of rows: those that are there are not made again")
    parser.add_argument("--no-run", action="store_true", help="operators are not measured")
    parsed = parser.parse_args(arguments)
    if parsed.ablation:
        for name in parsed.models or ("csrnet-backend",):
            ablation(name, parsed)
        return
    if parsed.models:
        for name in parsed.models:
            print(json.dumps(measure(name, parsed)), flush=True)
        return
    for name, roots, windows in OPERATORS:
        if parsed.only in name:
            made = masks(name, roots, windows) if parsed.split_points else None
            print(json.dumps(made or operator(name, roots, windows, parsed)), flush=True)


def operator(
    name: str, roots: Sequence[Scope], windows: dict[str, Any], parsed: Any
) -> dict[str, Any]:
    """One operator: what was found."""
    program = program_of(roots)
    roots, _ = lifted(program)
    options = replace(Options(seconds=60.0, strides=ONE, groups=ONE, gaps=(1,)), **windows)
    started = time.process_time()
    costs = Costs(target_named("v100"))
    found = search_mutants(roots, options, lambda scopes: modelled(scopes, costs), 64, costs, 64)
    row: dict[str, Any] = {
        "operator": name,
        "values": found.count.values,
        "products": found.count.products,
        "mutants": found.count.kept,
        "stopped": found.count.stopped,
        "cpu_s": round(time.process_time() - started, 1),
        "unproved": found.unproved,
        "modelled_us": round(modelled(roots, costs) * 1e6, 2),
    }
    for kind, exact in (("exact", True), ("partial", False)):
        chosen = next((c for c in found.candidates if c.mutant.exact == exact), None)
        if chosen is not None:
            row[kind] = _described(chosen, roots)
            row[kind]["forms"] = forms(program, roots, chosen, costs, parsed)
    return row


def forms(
    program: Program, roots: Sequence[Scope], chosen: Candidate, costs: Costs, parsed: Any
) -> dict[str, Any]:
    """The original, the mutant as it is and corrected in each form: modelled us, ms here."""
    _, full = shrunk(roots)
    mutant = chosen.mutant
    made = mutant.build(full)
    pairs = zip(mutant.index, roots, strict=True)
    results = {
        "original": list(roots),
        "mutant": [gathered(made, index, root.shape) for index, root in pairs],
    }
    known = forms_of(roots, mutant, full, prices_of(full, costs))
    if not mutant.exact:
        results |= {form: [c.result for c in corrections] for form, corrections in known.items()}
    row: dict[str, Any] = {}
    row["us"] = {k: round(modelled(r, costs) * 1e6, 1) for k, r in results.items()}
    if not parsed.no_run:
        programs = [rewritten(program, r) for k, r in results.items() if k != "original"]
        times = timed([program, *programs], parsed.seconds / 3)
        row["ms"] = {k: round(t * 1e3, 3) for k, t in zip(results, times, strict=True)}
    return row


def program_of(roots: Sequence[Scope]) -> Program:
    """A program of scopes; leaves labelled K are weights."""
    module, weights = program_of_scopes(roots, lambda x: x.label.startswith("K")), Weights()
    for number, op in enumerate(main_of(module).body.block.ops):
        if isinstance(op, WeightOp):
            shape, rng = shape_of(op.result), np.random.default_rng(number)
            data = rng.standard_normal(shape).astype(np.float32) / 30
            weights.add(op.key, partial(np.asarray, data))
    return Program(module, weights)


def lifted(program: Program) -> tuple[list[Scope], dict[Source, SSAValue]]:
    """The scopes of a program, and the values that they read."""
    known = weights_only(program.main.body.block.ops)
    lift = Lift(program.module, constants=known, positional=True)
    return [lift.scope(op) for op in scope_ops(program.module)], dict(lift.values)


def masks(
    name: str, roots: Sequence[Scope], windows: dict[str, Any], most: int = 200
) -> dict[str, Any]:
    """PET's test of an operator's mutants beside ours, at the channels that the search computes."""
    options = replace(Options(seconds=60.0, strides=ONE, groups=ONE, gaps=(1,)), **windows)
    (small, *_), full = shrunk(roots)
    generator = Generator([small], options, free_dims(full))
    found = [mutant for mutant in generator.run() if not mutant.exact]
    found = found[:: max(1, -(-len(found) // most))]
    row: dict[str, Any] = {"operator": name, "mutants": len(found), "positions": 0, "tested": 0}
    row |= {"same": 0, "too large": 0, "too small": 0, "s_every": 0.0, "s_split_points": 0.0}
    for mutant in found:
        made = gathered(mutant.build(generator.same), mutant.index[0], small.shape)
        times = [time.perf_counter()]
        every = field_mask(small, made, Evaluator(generator.field))
        times.append(time.perf_counter())
        few = mask_by_split_points(small, made, Evaluator(generator.field))
        times.append(time.perf_counter())
        verdict = "too small" if (every & ~few.mask).any() else "too large"
        row["same" if (every == few.mask).all() else verdict] += 1
        row["positions"] += every.size
        row["tested"] += few.positions
        row["s_every"] += times[1] - times[0]
        row["s_split_points"] += times[2] - times[1]
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}


def _described(chosen: Candidate, roots: Sequence[Scope]) -> dict[str, Any]:
    return {
        "mutant": list(chosen.mutant.text),
        "wrong": round(chosen.mutant.wrong, 4),
        "boxes": sum(len(correction.parts) for correction in chosen.corrections),
        "form": chosen.form,
        "correction_flops": round(correction_share(chosen, roots), 4),
        "correction_bytes": round(correction_bytes(chosen, roots), 4),
        "proof": chosen.methods[0],
        "modelled_us": round(chosen.seconds * 1e6, 2),
    }


def rewritten(program: Program, results: Sequence[Scope]) -> Program:
    """The program with its scopes computed so."""
    made = program.clone()
    _, values = lifted(made)
    for op, result in zip(scope_ops(made.module), results, strict=True):
        replace_op(made.module, op, DerivationStep(RULE, result), values)
    return made


def measure(name: str, parsed: Any) -> dict[str, Any]:
    """One model: with mutation, without, and a peer."""
    program = api.load(f"zoo:{name}", batch=parsed.batch)
    started = time.perf_counter()
    better = api.optimize(program, strategy="mutate", budget=parsed.budget)
    row: dict[str, Any] = {"model": name, "batch": parsed.batch}
    row["search_s"] = round(time.perf_counter() - started, 1)
    row["mutated"] = sum(r["rule"] == "mutate" for r in better.report["rewrites"])
    row["verdict"] = compare(lower_to(program, "algebra"), lower_to(better, "algebra")).kind
    plain = api.improve(program)
    feeds = draw_inputs(program, 0)
    runs: dict[str, Callable[[], Any]] = {
        "on": partial(api.compile(better, threads=1).run, None, feeds),
        "off": partial(api.compile(plain, threads=1).run, None, feeds),
    }
    with peer_model(program) as model:
        for peer in parsed.against.split(",") if parsed.against else ():
            runs[peer] = PEERS[peer](model, 1, feeds).run
            row["file"] = model.label
        times = interleave(runs, parsed.seconds, least=parsed.least)
    row["ms"] = {k: round(median(v) * 1e3, 2) for k, v in times.items()}
    row["ratio"] = {k: round(median(v) / median(times["on"]), 3) for k, v in times.items()}
    return row


# What an ablation tries: a name, and how far the search goes. Rounds derive, too; the first row is
# of derivation alone: equivalent programs in PET's sense.
RULES = "rules alone"
ALL = MutationSettings(seconds=20.0, most=12)
UNFUSED = ("plain", "library", "pieces")
ABLATIONS: tuple[tuple[str, MutationSettings], ...] = (
    ("exact only", replace(ALL, kinds="exact")),
    ("partial only", replace(ALL, kinds="partial")),
    ("partial only, unfused", replace(ALL, kinds="partial", forms=UNFUSED)),
    ("joint", ALL),
    *(
        (f"depth {depth} rounds {count}", replace(ALL, depth=depth, rounds=count, seconds=6.0))
        for depth in (1, 2, 3, 4, 5)
        for count in (1, 2, 3, 4)
    ),
)


def ablation(name: str, parsed: Any) -> None:
    """A model's modelled microseconds with parts of the search left out, a row each."""
    rows = Path(parsed.rows) if parsed.rows else None
    done = rows.read_text().splitlines() if rows is not None and rows.exists() else []
    known = {
        (row["model"], row.get("batch", 1), row["target"], row["search"])
        for row in map(json.loads, done)
    }
    program = api.load(f"zoo:{name}", batch=parsed.batch)
    costs = Costs(target_named(parsed.target))
    before = costs.program(lower_to(program, "kernel")).seconds
    for kind, settings in ((RULES, None), *ABLATIONS):
        if parsed.only not in kind or (name, parsed.batch, parsed.target, kind) in known:
            continue
        started = time.process_time()
        limits = Limits(parsed.budget)
        if settings is None:
            found = derive_program(program, costs, limits)
        else:
            found = search_program(program, costs, limits, None, settings)
        after = costs.program(lower_to(found.program, "kernel")).seconds
        row = {"model": name, "batch": parsed.batch, "target": parsed.target, "search": kind}
        row |= {"stop": found.stop_reason, "looked_at": found.looked_at}
        row |= {"rewrites": len(found.applied), "cpu_s": round(time.process_time() - started, 1)}
        row |= {"us_before": round(before * 1e6, 1), "us_after": round(after * 1e6, 1)}
        print(json.dumps(row), flush=True)
        if rows is not None:
            with rows.open("a") as file:
                file.write(json.dumps(row) + "\n")


def timed(programs: Sequence[Program], seconds: float) -> list[float]:
    """Median seconds of programs that take the same inputs, run in turn on one thread."""
    feeds = draw_inputs(programs[0], 0)
    runs = {
        str(k): partial(api.compile(p, threads=1).run, None, feeds) for k, p in enumerate(programs)
    }
    times = interleave(runs, seconds, least=10)
    return [median(times[str(k)]) for k in range(len(programs))]


if __name__ == "__main__":
    main()
