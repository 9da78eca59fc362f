"""Schedule reuse (ETO): counts, costs of plans, ablation of bridges, modelled search.

python benchmarks/reuse.py counts      pairs and bridges of the paper's sets, beside its figures
python benchmarks/reuse.py costs       figure 6: costs of pairs and plans, beside the paper's
python benchmarks/reuse.py plans       no bridges, one hop, all hops: programs to measure
python benchmarks/reuse.py modelled    the same, built and timed by the model of P100, V100, H100
python benchmarks/reuse.py cpu         BERT-base's products here: trials and times; ranges that hold

Nothing but the last is measured. What is modelled says so: there the back end is a stand-in, random
and mutated schedules of the multi-level tile sketch, and a plan's root takes as many trials as it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from isoform.compiler.commands.operator_list import read_operators
from isoform.compiler.targets.cpu_options import CpuOptions
from isoform.compiler.targets.levels import place
from isoform.dialects.schedule import Schedule
from isoform.lowering.targets import TARGETS
from isoform.passes.reuse import (
    ModelledGpu,
    OperatorNest,
    ReusePlan,
    TileSchedule,
    bridges,
    can_reuse,
    pair_cost,
    reuse_pairs,
    search,
    select,
)
from isoform.passes.reuse.features import divisors
from isoform.passes.reuse.nest import groups_of
from isoform.passes.reuse.operands import operands
from isoform.passes.reuse.pair_cost import BACK_END_TRIALS
from isoform.passes.reuse.tile_schedule import UNROLLS
from isoform.passes.tuning.measure_schedules import processor_here
from isoform.passes.tuning.reuse_rounds import BLOCK, SLICE, TILE, ReuseRounds, Side
from isoform.passes.tuning.reuse_tuner import REUSE, ReuseTuner
from isoform.passes.tuning.tune_kernels import KernelToTune, TuneOptions, kernels_of
from isoform.passes.tuning.tuned_kernels import TunedKernels
from isoform.testing import operator_sets

SETS: dict[str, Callable[[], list[OperatorNest]]] = {
    "ResNet-50": operator_sets.resnet50,
    "ResNet-50, batch 1 and 16": lambda: [
        *operator_sets.resnet50(),
        *operator_sets.resnet50(16),
    ],
    "MobileNetV2": operator_sets.mobilenet_v2,
    "BERT-base": operator_sets.bert,
    "BERT, two sizes, batches, lengths": operator_sets.berts,
}
# The paper's: bridges of one hop and all; pairs without and with those of one hop (figure 6).
PAPER_BRIDGES = {"ResNet-50": (44, 49), "MobileNetV2": (81, 121)}
PAPER_PAIRS = {"BERT-base": (4, 24)}
# Figure 6, with the pairs (2, 3) and (5, 6) in the order that fits its costs.
FIGURE_6 = {
    (2, 4): 110.1,
    (4, 2): 117.8,
    (4, 3): 80.7,
    (3, 4): 85.1,
    (4, 8): 126.9,
    (8, 6): 140.5,
    (6, 9): 42.8,
    (9, 5): 54.2,
}
SIZES = {
    2: (1, 128, 768, 3072),
    3: (1, 128, 3072, 768),
    4: (1, 128, 768, 768),
    5: (12, 128, 64, 128),
    6: (12, 128, 128, 64),
    8: (1, 128, 128, 64),
    9: (12, 128, 64, 64),
}
HOPS = {"none": 0, "one hop": 1, "all": None}
GPUS = ("p100", "v100", "h100")
MODELLED = ("ResNet-50", "MobileNetV2", "BERT-base")
SEEDS = (0, 1, 2)


def rows(head: str, *lines: tuple[object, ...]) -> None:
    """Print a table."""
    print(f"| {head} |\n|{'---|' * (head.count('|') + 1)}")
    for line in lines:
        print("| " + " | ".join(map(str, line)) + " |")


def beside(ours: object, paper: object) -> str:
    """Our figure, and the paper's if it gives one."""
    return str(ours) if paper is None else f"{ours} ({paper})"


def counts() -> None:
    """Print pairs and bridges."""
    lines: list[tuple[object, ...]] = []
    for name, make in SETS.items():
        nests = make()
        one, every = bridges(nests), bridges(nests, hops=None)
        pairs = len(reuse_pairs(nests)), len(reuse_pairs([*nests, *one]))
        paper, in_pairs = PAPER_BRIDGES.get(name), PAPER_PAIRS.get(name)
        told = (paper or (None, None), in_pairs or (None, None))
        line = (name, len(nests), len(groups_of(nests)), beside(pairs[0], told[1][0]))
        found = (beside(len(one), told[0][0]), beside(len(every), told[0][1]))
        lines.append((*line, *found, beside(pairs[1], told[1][1])))
    head = "set | operators | kinds | pairs | bridges, one hop | all | pairs with one hop"
    rows(head, *lines)


def costs() -> None:
    """Print figure 6."""
    nests = {
        k: OperatorNest("matmul", ("multi-level-tile",), s[:3], s[3:]) for k, s in SIZES.items()
    }
    lines: list[tuple[object, ...]] = []
    for (b, a), paper in FIGURE_6.items():
        ours = (f"{pair_cost(nests[a], nests[b], samples=n):.1f}" for n in (10, 1000))
        named = (nests[k].text.replace(" |", ";") for k in (b, a))
        lines.append((f"{b} -> {a}", *named, paper, *ours))
    rows("arc | from | to | paper | ours, 10 samples | ours, 1,000", *lines)
    operators = [nests[k] for k in (2, 3, 4, 5, 6)]
    print()
    kinds = (("each in full", None, 5000.0), ("direct", 0, 3190.8), ("one hop", 1, 1555.2))
    found = [1000.0 * 5 if hops is None else select(operators, hops).cost for _, hops, _ in kinds]
    rows(
        "BERT-base | paper | ours",
        *((k[0], k[2], f"{cost:.1f}") for k, cost in zip(kinds, found, strict=True)),
    )


def plans() -> None:
    """Print what plans cost, in programs to measure."""
    lines: list[tuple[object, ...]] = []
    for name, make in SETS.items():
        nests = make()
        full = BACK_END_TRIALS * len(nests)
        for bridging, hops in HOPS.items():
            plan = select(nests, hops)
            number = f"{plan.cost:,.0f}", f"{full / plan.cost:.1f}"
            lines.append((name, bridging, f"{full:,}", *number, plan.in_full, len(plan.bridges)))
    rows("set | bridges | each in full | plan | gain | tuned in full | bridges used", *lines)


# --- modelled -----------------------------------------------------------------------------------


def drawn(nest: OperatorNest, draws: random.Random) -> TileSchedule:
    """A random schedule."""
    space = tuple(cut(n, 5, draws) for n in nest.space)
    reduction = tuple(cut(n, 3, draws) for n in nest.reduction)
    vectors = tuple(draws.choice((1, 2, 4)) for _ in operands(nest))
    return TileSchedule(space, reduction, draws.choice(UNROLLS), vectors)


def cut(n: int, parts: int, draws: random.Random) -> tuple[int, ...]:
    """Random factors of a number."""
    found: list[int] = []
    for _ in range(parts - 1):
        found.append(draws.choice(divisors(n)))
        n //= found[-1]
    found.append(n)
    draws.shuffle(found)
    return tuple(found)


def mutated(nest: OperatorNest, old: TileSchedule, draws: random.Random) -> TileSchedule:
    """Another random schedule, of which all but one loop, or all but annotations, is the old."""
    new, loop = drawn(nest, draws), draws.randrange(len(nest.loops) + 1)
    if loop == len(nest.loops):
        return replace(old, unroll=new.unroll, vectors=new.vectors)
    if loop < len(nest.space):
        return replace(old, space=(*old.space[:loop], new.space[loop], *old.space[loop + 1 :]))
    loop -= len(nest.space)
    kept = (*old.reduction[:loop], new.reduction[loop], *old.reduction[loop + 1 :])
    return replace(old, reduction=kept)


def in_full(nest: OperatorNest, gpu: ModelledGpu, seed: int) -> tuple[TileSchedule, float]:
    """The best of 1,000 valid schedules: 250 random, then mutants of the best."""
    draws = random.Random(f"{seed} {nest}")
    best, least, count = None, math.inf, 0
    while count < BACK_END_TRIALS:
        early = best is None or count < BACK_END_TRIALS // 4
        schedule = drawn(nest, draws) if early or best is None else mutated(nest, best, draws)
        if not schedule.is_valid(nest, gpu.machine):
            continue
        count += 1
        seconds = gpu.seconds(nest, schedule)
        if best is None or seconds < least:
            best, least = schedule, seconds
    assert best is not None
    return best, least


Known = dict[OperatorNest, tuple[TileSchedule, float]]


def follow(plan: ReusePlan, gpu: ModelledGpu, full: Known, seed: int) -> tuple[Known, int]:
    """Carry a plan out by the model: schedules and seconds of all nests, programs tried."""
    known: Known = {}
    tried = 0
    for arc in plan.arcs:
        best = None
        if arc.parent is not None:
            a, b = arc.child, arc.parent
            trials = search(a, b, known[b][0], gpu.machine, lambda s, a=a: gpu.seconds(a, s))
            best = trials.best(trials.seconds)
            tried += len(trials.seconds)
            if isinstance(best, TileSchedule):
                known[a] = best, trials.seconds[best]
        if best is None:
            tried += BACK_END_TRIALS
            known[arc.child] = full.get(arc.child) or in_full(arc.child, gpu, seed)
    return known, tried


def modelled() -> None:
    """Print trials and throughput of plans, against the stand-in for the back end."""
    lines: list[tuple[object, ...]] = []
    for name in MODELLED:
        nests = SETS[name]()
        made = {bridging: select(nests, hops) for bridging, hops in HOPS.items()}
        for gpu in (ModelledGpu(TARGETS[target]) for target in GPUS):
            fulls = [{nest: in_full(nest, gpu, seed) for nest in nests} for seed in SEEDS]
            for bridging, plan in made.items():
                runs = [
                    one_run(nests, plan, gpu, full, seed)
                    for seed, full in zip(SEEDS, fulls, strict=True)
                ]
                tried, share, least = (statistics.median(part) for part in zip(*runs, strict=True))
                gain = BACK_END_TRIALS * len(nests) / tried
                number = f"{plan.cost:,.0f}", f"{tried:,.0f}", f"{gain:.1f}"
                quality = f"{100 * share:.1f}", f"{100 * least:.0f}"
                lines.append((name, gpu.target.name, bridging, *number, *quality))
    head = "set | modelled GPU | bridges | estimated | tried | fewer | throughput % | least %"
    rows(head, *lines)


def one_run(
    nests: list[OperatorNest], plan: ReusePlan, gpu: ModelledGpu, full: Known, seed: int
) -> tuple[int, float, float]:
    """Programs tried; throughput over the back end's, of the set and of its worst operator."""
    known, tried = follow(plan, gpu, full, seed)
    ratios = [full[nest][1] / known[nest][1] for nest in nests]
    total = sum(full[nest][1] for nest in nests) / sum(known[nest][1] for nest in nests)
    return tried, total, min(ratios)


# --- here ---------------------------------------------------------------------------------------

PRODUCTS = """matmul m=128 k=768 n=768
matmul m=128 k=768 n=3072
matmul m=128 k=3072 n=768
matmul m=128 k=64 n=128 batch=12 constant=0
matmul m=128 k=128 n=64 batch=12 constant=0
"""


def tuned(
    reuse: str, seed: int, trials: int, folder: Path
) -> tuple[list[KernelToTune], TunedKernels]:
    """Tune the products, with a database of their own."""
    path = folder / f"{reuse}{seed}.txt"
    path.write_text(PRODUCTS)
    kernels = kernels_of(place(read_operators(path), CpuOptions(1)))
    database = TunedKernels(folder / f"{reuse}{seed}.json")
    tuner = ReuseTuner(database, TuneOptions(trials, seed), lambda progress: None)
    hops = REUSE[reuse]
    if hops is None:
        tuner.run(kernels)
    else:
        tuner.run_plan(kernels, hops, lambda program: place(program, CpuOptions(1)))
    return kernels, database


def cpu(trials: int, seeds: int) -> None:
    """Print trials, times and hits of ranges."""
    lines: list[tuple[object, ...]] = []
    hits: list[tuple[bool, ...]] = []
    with tempfile.TemporaryDirectory() as name:
        for seed in range(seeds):
            for reuse in REUSE:
                kernels, database = tuned(reuse, seed, trials, Path(name))
                entries = [database.entry(k.task.signature, processor_here()[0]) for k in kernels]
                ratios = [e.us / e.direct_us for e in entries if e is not None and e.direct_us]
                tried = sum(len(entry.trials) for entry in database.file.ops.values())
                told = ", ".join(f"{ratio:.2f}" for ratio in ratios)
                lines.append((seed, reuse, tried, f"{statistics.geometric_mean(ratios):.3f}", told))
                if reuse == "none":
                    hits += range_hits(kernels, database)
    rows("seed | reuse | trials | time, over the generator's | each", *lines)
    shares = [f"{100 * statistics.mean(part):.0f}" for part in zip(*hits, strict=True)]
    print()
    rows("pairs, of all seeds | tiles % | items % | depth % | all three %", (len(hits), *shares))


def range_hits(kernels: Sequence[KernelToTune], database: TunedKernels) -> list[tuple[bool, ...]]:
    """For each pair, whether some trial within 90% of the best lies in each range, and in all."""
    found: list[tuple[bool, ...]] = []
    here = processor_here()[0]
    for a, b in itertools.permutations(kernels, 2):
        entry = database.entry(a.task.signature, here)
        if entry is None or not can_reuse(a.nest, b.nest):
            continue
        known = database.schedule(b.task.signature, here) or Schedule()
        rounds = ReuseRounds(Side(a.nest, a.space), Side(b.nest, b.space), known)
        ratios = {a.space.default.text: 1.0, **{s: r for s, r in entry.trials.items() if r}}
        good = [s for s, r in ratios.items() if r <= min(ratios.values()) / 0.9]
        inside = [
            [rounds.in_range(Schedule.parse(s), k) for k in (TILE, BLOCK, SLICE)] for s in good
        ]
        single = [any(one[k] for one in inside) for k in range(3)]
        found.append((*single, any(all(one) for one in inside)))
    return found


if __name__ == "__main__":
    PARTS = {"counts": counts, "costs": costs, "plans": plans, "modelled": modelled}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("part", choices=(*PARTS, "cpu"))
    parser.add_argument("--trials", type=int, default=64, help="cpu: of a kernel in full (64)")
    parser.add_argument("--seeds", type=int, default=3, help="cpu: how many (3)")
    asked = parser.parse_args()
    if asked.part == "cpu":
        cpu(asked.trials, asked.seeds)
    else:
        PARTS[asked.part]()
