"""The rule generator's table: docs/substitutions.md.

    python benchmarks/rules.py [--size 3] [--jobs 2] [--checkpoint FOLDER]
                                      enumerate, prune, make general, prove; counts of each step
    python benchmarks/rules.py --enumerate 4
                                      enumeration and pruning alone, world by world, with seconds

Seconds are wall-clock seconds; memory is the largest resident size.
"""

import argparse
import resource
import time
from pathlib import Path

from isoform.passes.substitution.generate.candidates import candidates
from isoform.passes.substitution.generate.operators import WORLDS
from isoform.passes.substitution.generate.pipeline import SEED, counts_table, generate
from isoform.passes.substitution.generate.table import Enumerator


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--enumerate", type=int, metavar="N")
    given = parser.parse_args()
    if given.enumerate is not None:
        enumerate_worlds(given.enumerate)
        return
    started = time.perf_counter()
    made = generate(given.size, jobs=given.jobs, checkpoint=given.checkpoint, tell=print)
    print(counts_table(made))
    print(f"{time.perf_counter() - started:.0f} s, {memory()} MB in this process")


def enumerate_worlds(size: int) -> None:
    """Terms, classes and candidates of each world."""
    print("world | terms | classes | pairs | candidates | enumeration s | all s | MB")
    for world in WORLDS:
        started = time.perf_counter()
        table = Enumerator(world, SEED, size).run()
        made = time.perf_counter() - started
        found, counts = candidates(table)
        numbers = (counts.terms, counts.classes, counts.pairs, len(found))
        seconds = f"{made:.1f} | {time.perf_counter() - started:.1f}"
        print(world.name, *numbers, seconds, memory(), sep=" | ", flush=True)


def memory() -> int:
    """Largest resident size of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
