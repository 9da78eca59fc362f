"""The rule generator's tables: docs/results/rule-generation.md.

    python benchmarks/rules.py [--size 3] [--jobs 2] [--checkpoint FOLDER] [--out F]
                                      enumerate, prune, make general, prove; counts of each step
    python benchmarks/rules.py --enumerate 4 [--worlds a,b]
                                      enumeration and pruning alone, world by world, with seconds
    python benchmarks/rules.py --redundant
                                      operator properties that z3 derives from the others

Seconds are wall-clock seconds, of --enumerate CPU seconds; memory is the largest resident size.
"""

import argparse
import resource
import time
from pathlib import Path

from isoform.passes.rules.generate.candidates import Counts
from isoform.passes.rules.generate.operators import WORLDS
from isoform.passes.rules.generate.pipeline import (
    SEED,
    counts_table,
    equalities,
    generate,
    rule_file,
)
from isoform.passes.rules.generate.table import Enumerator
from isoform.passes.rules.prove.by_z3 import properties, proved_by_z3
from isoform.passes.rules.rule import Node, Rule, Var
from isoform.testing.property_checks import is_implied

FALSE = Rule("a-sum-is-its-first", (Node("add", (Var("a"), Var("b"))),), (Var("a"),))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--out", type=Path, help="the rule file")
    parser.add_argument("--enumerate", type=int, metavar="N")
    parser.add_argument("--worlds", default="", help="names, with --enumerate; all of them if none")
    parser.add_argument("--redundant", action="store_true")
    given = parser.parse_args()
    if given.redundant:
        report_redundant()
        return
    if given.enumerate is not None:
        chosen = given.worlds.split(",") if given.worlds else [w.name for w in WORLDS]
        enumerate_worlds(given.enumerate, chosen)
        return
    started = time.perf_counter()
    made = generate(given.size, jobs=given.jobs, checkpoint=given.checkpoint, tell=tell)
    print(counts_table(made))
    if given.out is not None:
        given.out.write_text(rule_file(made))
    print(f"{time.perf_counter() - started:.0f} s, {memory()} MB in this process")


def tell(text: str) -> None:
    """A line of progress, with the seconds and memory this process used so far."""
    print(f"{time.process_time():7.1f} s CPU, {memory()} MB: {text}", flush=True)


def enumerate_worlds(size: int, names: list[str]) -> None:
    """What is left of each world after each step, with seconds of this process."""
    columns = [step.replace("_", " ") for step in vars(Counts())]
    print("world", *columns, "left", "enumeration s", "all s", "MB", sep=" | ")
    worlds = {world.name: world for world in WORLDS}
    for world in (worlds[name] for name in names):
        started = time.process_time()
        Enumerator(world, SEED, size).run()
        made = time.process_time() - started
        found, counts = equalities(world, size)
        every = time.process_time() - started - made
        seconds = f"{made:.1f} | {every:.1f}"
        print(
            world.name, *vars(counts).values(), len(found), seconds, memory(), sep=" | ", flush=True
        )


def report_redundant() -> None:
    """Properties that follow from all others, and those left when such are dropped in turn."""
    started, every = time.perf_counter(), properties()
    kept = list(every)
    print(f"{len(every)} properties; false from them all: {proved_by_z3(FALSE, every)}", flush=True)
    for rule in every:
        if not is_implied(rule, every):
            continue
        rest = is_implied(rule, kept)
        kept = [r for r in kept if r is not rule] if rest else kept
        print(f"{rule.name}: follows from the others{', dropped' if rest else ''}", flush=True)
    print(f"{len(kept)} are left, {time.perf_counter() - started:.0f} s, {memory()} MB")


def memory() -> int:
    """Largest resident size of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
