"""Mutation testing of what judges and of what gives ops their meaning. Resumable.

python scripts/mutate.py --map            run the tests once, note which lines each runs
python scripts/mutate.py                  try 600 mutants drawn by seed 0, equally by file
python scripts/mutate.py --report         count what the log holds, list the survivors

A mutant is the tree with one small change (an operator, a constant, a condition, an entry of a
table). It is killed when a test that runs its line fails. Tests that pass fastest are tried first;
the first failure ends a mutant; after --limit seconds it counts as a survivor. Mutants run in a
copy of the committed tree, under the folder --work; the log has one line of JSON for each.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from mutation.mutants import Mutant, read_mutants

ROOT = Path(__file__).resolve().parents[1]
# What is mutated: files that judge, and files that say what an op means.
SUBJECTS = (
    "passes/equivalence/*.py",
    "dialects/a*.py",
    "dialects/c*.py",
    "dialects/discrete.py",
    "dialects/floats.py",
    "dialects/gather.py",
    "dialects/index*.py",
    "dialects/layout.py",
    "dialects/op_reference.py",
    "dialects/reference.py",
    "dialects/scalar*.py",
    "dialects/scope_body.py",
    "dialects/types.py",
    "dialects/wrapping.py",
    "lowering/algebra_to_kernel/*.py",
    "passes/saturation/check.py",
    "passes/saturation/cycles.py",
    "passes/saturation/extract.py",
    "passes/saturation/greedy.py",
    "passes/saturation/ilp.py",
    "passes/saturation/problem.py",
    "compiler/reports/certificate.py",
    "compiler/checks/equality_check.py",
    "compiler/checks/verify_module.py",
)
NOT_MEANT = ("__init__.py", "dialects/cache_folder.py", "dialects/context.py")
# The tests that are run first, in a process of their own: most mutants die here.
FIRST = 20


def subjects(root: Path) -> list[str]:
    """Files that are mutated, relative to the tree.

    Raises:
        SystemExit: a pattern names no file any more.
    """
    found: list[str] = []
    for pattern in SUBJECTS:
        paths = [str(p.relative_to(root)) for p in sorted(root.glob(pattern))]
        if not paths:
            raise SystemExit(f"mutate: {pattern} names no file: correct SUBJECTS")
        found += [p for p in paths if not p.endswith(NOT_MEANT)]
    return list(dict.fromkeys(found))


def drawn(root: Path, files: list[str], count: int, seed: int) -> list[Mutant]:
    """So many mutants, one of each file in turn until there are enough."""
    piles: list[list[Mutant]] = []
    for file in files:
        pile = read_mutants(root, file)
        random.Random(f"{seed} {file}").shuffle(pile)
        piles.append(pile)
    turns = (pile[turn] for turn in range(count) for pile in piles if turn < len(pile))
    return [mutant for mutant, _ in zip(turns, range(count), strict=False)]


class Tests:
    """Which tests run a line, fastest first; from what --map has written."""

    def __init__(self, folder: Path):
        self.seconds: dict[str, float] = {}
        self.lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for path in sorted(folder.glob("*.json")):
            part = json.loads(path.read_text())
            self.seconds.update(part["seconds"])
            for file, lines in part["lines"].items():
                for line, tests in lines.items():
                    self.lines[file][int(line)].update(tests)
        if not self.seconds:
            raise SystemExit(f"mutate: {folder} holds no map of the tests: run --map first")

    def of(self, mutant: Mutant) -> list[str]:
        """Tests that run the line of a mutant; all of its file where only an import runs it."""
        lines = self.lines[mutant.path]
        ran = mutant.line if mutant.line in lines else mutant.statement
        if ran not in lines:
            return []
        tests = lines[ran] or set().union(*lines.values())
        return sorted(tests, key=lambda t: (self.seconds[t], t))


class Copy:
    """A copy of the committed tree in which mutants run."""

    def __init__(self, work: Path, source: Path = ROOT):
        self.root = work / "isoform"
        self.work = work
        if self.root.exists():
            shutil.rmtree(self.root)
        archive = subprocess.run(
            ["git", "archive", "HEAD"], cwd=source, check=True, stdout=subprocess.PIPE
        )
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tree:
            tree.extractall(self.root, filter="data")

    @cached_property
    def environment(self) -> dict[str, str]:
        """Of the tests: the copy is what `import isoform` finds, with caches of its own."""
        return os.environ | {
            "PYTHONPATH": f"{self.work}{os.pathsep}{ROOT / 'scripts'}",
            "ISOFORM_CACHE": str(self.work / "cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def pytest(self, arguments: list[str], limit: float | None = None, **env: str) -> int | None:
        """The exit status of pytest; None where it took longer than so many seconds."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment | env,
            stdout=None if limit is None else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return None

    def verdict(self, mutant: Mutant, tests: list[str], limit: float) -> str:
        """Return "killed", "survived", "timeout", or "no test" where none runs the line."""
        if not tests:
            return "no test"
        path = self.root / mutant.path
        source = path.read_bytes()
        ends = time.monotonic() + limit
        try:
            path.write_bytes(mutant.applied(source))
            for part in (tests[:FIRST], tests[FIRST:]):
                if not part:
                    continue
                names = self.work / "tests.txt"
                names.write_text("\n".join(part))
                status = self.pytest(["-x", f"@{names}"], max(1.0, ends - time.monotonic()))
                if status != 0:
                    return "timeout" if status is None else "killed"
        finally:
            path.write_bytes(source)
        return "survived"


def make_map(copy: Copy, folder: Path, files: list[str], arguments: list[str]) -> int:
    """Run the tests once and write which lines each of them runs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    plugin = ["-p", "mutation.coverage_plugin"]
    status = copy.pytest(
        [*plugin, *arguments], MUTATION_FILES="\n".join(files), MUTATION_MAP=str(folder.resolve())
    )
    return 0 if status in (0, 1) else 1  # tests that fail here kill nothing: they are left out


def read_log(path: Path) -> dict[str, dict[str, Any]]:
    """Rows of a log by mutant."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return {row["mutant"]: row for row in rows}


def report(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A table by folder, then each mutant that was not killed."""
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        folders[row["mutant"].rsplit("/", 1)[0]][row["verdict"]] += 1
    in_all = sum(folders.values(), Counter())
    for folder, counts in [*sorted(folders.items()), ("in all", in_all)]:
        share = counts["killed"] / counts.total()
        others = ", ".join(f"{n} {k}" for k, n in sorted(counts.items()) if k != "killed")
        yield f"{folder}: {counts['killed']} of {counts.total()} killed ({share:.1%}); {others}"
    for row in sorted(rows, key=lambda r: r["mutant"]):
        if row["verdict"] != "killed":
            yield f"{row['verdict']}: {row['mutant']}"


def main() -> int:
    """Run what is asked for; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--map", action="store_true", help="note which lines each test runs")
    parser.add_argument("--report", action="store_true", help="count what the log holds")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one mutant")
    parser.add_argument("--only", default="", help="only files whose path begins so")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("pytest", nargs="*", help="with --map, after --: what pytest is told")
    asked = parser.parse_args()
    asked.work = asked.work.resolve()
    asked.work.mkdir(parents=True, exist_ok=True)
    log = asked.work / "mutants.jsonl"
    files = [f for f in subjects(ROOT) if f.startswith(asked.only)]
    if asked.map:
        return make_map(Copy(asked.work), asked.work / "map", files, asked.pytest)
    rows = read_log(log)
    if not asked.report:
        copy = Copy(asked.work)
        tests = Tests(asked.work / "map")
        mutants = drawn(copy.root, files, asked.count, asked.seed)
        try_mutants(copy, tests, [m for m in mutants if m.key not in rows], asked.limit, log)
        found = read_log(log)
        rows = {m.key: found[m.key] for m in mutants}
    print(*report(list(rows.values())), sep="\n")
    return 0


def try_mutants(copy: Copy, tests: Tests, mutants: list[Mutant], limit: float, log: Path) -> None:
    """Add a verdict on each to the log."""
    with log.open("a") as out:
        for mutant in mutants:
            started = time.monotonic()
            verdict = copy.verdict(mutant, tests.of(mutant), limit)
            seconds = round(time.monotonic() - started, 1)
            row = {"mutant": mutant.key, "verdict": verdict, "seconds": seconds}
            print(json.dumps(row), file=out, flush=True)
            if verdict != "killed":
                print(f"{verdict}: {mutant.key}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
