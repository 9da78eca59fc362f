"""Mutation testing of what judges and of what gives ops their meaning. Resumable.

python scripts/mutate.py --map all        run the tests once, note which lines each runs
python scripts/mutate.py                  try 600 mutants drawn by seed 0, equally by file
python scripts/mutate.py --again          try again those that were not killed
python scripts/mutate.py --report         count what the log holds, list the survivors

A mutant is the tree with one small change (an operator, a constant, a condition, an entry of a
table). It is killed when a test that runs its line fails. Tests that killed a mutant of the same
file are tried first, then the fastest; the first failure ends a mutant; after --limit seconds, or
--cpu seconds of computing, it counts as a survivor. Mutants run in a
copy of a commit, under the folder --work; the log has one line of JSON for each. Survivors that are
shown to be equivalent stand in scripts/mutation/equivalent.txt, each with the proof.
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
from collections import defaultdict
from functools import cached_property
from pathlib import Path

from mutation.mutants import Mutant, read_mutants
from mutation.report import read_equivalent, read_log, report

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
    "compiler/reports/check_certificate.py",
    "compiler/checks/equality_check.py",
    "compiler/checks/verify_module.py",
)
NOT_MEANT = ("__init__.py", "dialects/cache_folder.py", "dialects/context.py")
# The tests that are run first, in a process of their own: most mutants die here.
FIRST = 20
NOT_FOUND = 4  # pytest's exit status where a test that is named does not exist


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

    def __init__(self, work: Path, source: Path = ROOT, commit: str = "HEAD", cpu: int = 120):
        self.root = work / "isoform"
        self.work = work
        self.cpu = cpu
        shutil.rmtree(self.root, ignore_errors=True)
        archive = subprocess.run(
            ["git", "archive", commit], cwd=source, check=True, stdout=subprocess.PIPE
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

    def pytest(self, arguments: list[str], **env: str) -> int:
        """Run tests in a process of their own; pytest's exit status."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(
            command, cwd=self.root, env=self.environment | env, check=False
        ).returncode

    @cached_property
    def server(self) -> subprocess.Popen[str]:
        """The process that forks to run tests, once the tests' bytecode is written."""
        self.pytest(["--collect-only", "-qq"], PYTHONDONTWRITEBYTECODE="")
        return subprocess.Popen(
            [sys.executable, "-m", "mutation.fork_server"],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, tests: list[str], limit: float) -> tuple[int | None, str]:
        """Pytest's exit status, None after the limit; and the test that failed.

        The cache of compiled code is empty at the start: none of it is of another mutant.
        """
        shutil.rmtree(self.work / "cache", ignore_errors=True)
        names = self.work / "tests.txt"
        names.write_text("\n".join(tests))
        assert self.server.stdin is not None and self.server.stdout is not None
        print(
            json.dumps({"tests": str(names), "limit": limit, "cpu": self.cpu}),
            file=self.server.stdin,
            flush=True,
        )
        answer = json.loads(self.server.stdout.readline())
        return answer["status"], answer["by"]

    def verdict(self, mutant: Mutant, tests: list[str], limit: float) -> tuple[str, str]:
        """Return the verdict on a mutant, and the test that killed it.

        The verdict is "killed", "survived", "timeout", or "no test" where none runs the line.
        """
        path = self.root / mutant.path
        source, times = path.read_bytes(), path.stat()
        ends = time.monotonic() + limit
        try:
            path.write_bytes(mutant.applied(source))
            for part in (tests[:FIRST], tests[FIRST:]):
                if not part:
                    continue
                status, by = self.run(part, max(1.0, ends - time.monotonic()))
                if status == NOT_FOUND:  # a case of a table is gone; where nothing imports, again
                    part = list(dict.fromkeys(test.split("[")[0] for test in part))
                    status, by = self.run(part, max(1.0, ends - time.monotonic()))
                if status != 0:
                    return ("timeout", "") if status is None else ("killed", by)
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # its bytecode stays valid
        return ("survived" if tests else "no test"), ""


def make_map(copy: Copy, folder: Path, part: str, files: list[str], arguments: list[str]) -> int:
    """Run tests once and write which lines each of them runs: one part of the map."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{part}-*.json"):
        old.unlink()
    plugin = ["-p", "mutation.coverage_plugin"]
    status = copy.pytest(
        [*plugin, *arguments],
        MUTATION_FILES="\n".join(files),
        MUTATION_MAP=str(folder.resolve() / part),
    )
    return 0 if status in (0, 1) else 1  # tests that fail here kill nothing: they are left out


def main() -> int:
    """Run what is asked for; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--map", metavar="PART", help="note which lines each test runs, as a part")
    parser.add_argument("--again", action="store_true", help="retry what was not killed")
    parser.add_argument("--report", action="store_true", help="count what the log holds")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one mutant")
    parser.add_argument("--cpu", type=int, default=120, help="seconds of computing for one run")
    parser.add_argument("--only", default="", help="only files whose path begins so")
    parser.add_argument("--commit", default="HEAD", help="the tree that is mutated")
    parser.add_argument("--share", default="0/1", help="1/2: every second mutant, from the second")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutation")
    parser.add_argument("pytest", nargs="*", help="with --map, after --: what pytest is told")
    asked = parser.parse_args()
    asked.work = asked.work.resolve()
    asked.work.mkdir(parents=True, exist_ok=True)
    files = [f for f in subjects(ROOT) if f.startswith(asked.only)]
    if asked.map:
        copy = Copy(asked.work, commit=asked.commit)
        return make_map(copy, asked.work / "map", asked.map, files, asked.pytest)
    log = asked.work / "mutants.jsonl"
    if not asked.report:
        try_drawn(asked, files, log)
    rows = read_log(log)
    proofs = read_equivalent()
    for row in rows.values():
        if row["mutant"] in proofs and row["verdict"] != "killed":
            row["verdict"] = "equivalent"
    print(*report(list(rows.values())), sep="\n")
    return 0


def try_drawn(asked: argparse.Namespace, files: list[str], log: Path) -> None:
    """Try this process's share of the mutants that are drawn and have no verdict yet.

    Each share has a copy of its own, so two processes may work at once.
    """
    first, step = map(int, asked.share.split("/"))
    copy = Copy(asked.work / f"share{first}", commit=asked.commit, cpu=asked.cpu)
    tests = Tests(asked.work / "map")
    mutants = drawn(copy.root, files, asked.count, asked.seed)[first::step]
    rows, proofs = read_log(log), read_equivalent()
    done = {
        key
        for key, row in rows.items()
        if row["verdict"] == "killed" or not asked.again or key in proofs
    }
    try_mutants(copy, tests, [m for m in mutants if m.key not in done], asked.limit, log)


def try_mutants(copy: Copy, tests: Tests, mutants: list[Mutant], limit: float, log: Path) -> None:
    """Add a verdict on each to the log."""
    killers = {(row["mutant"].split(":")[0], row["by"]) for row in read_log(log).values()}
    with log.open("a") as out:
        for mutant in mutants:
            started = time.monotonic()
            covering = tests.of(mutant)
            covering.sort(key=lambda t, path=mutant.path: (path, t) not in killers)
            verdict, by = copy.verdict(mutant, covering, limit)
            killers.add((mutant.path, by))
            row = {
                "mutant": mutant.key,
                "verdict": verdict,
                "seconds": round(time.monotonic() - started, 1),
                "tests": len(covering),
                "by": by,
            }
            print(json.dumps(row), file=out, flush=True)
            if verdict != "killed":
                print(f"{verdict}: {mutant.key}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
