"""What a log of mutants says: counts by folder, and who was not killed."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def read_log(path: Path) -> dict[str, dict[str, Any]]:
    """Rows of a log by mutant."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return {row["mutant"]: row for row in rows}


def read_equivalent(path: Path = EQUIVALENT) -> dict[str, str]:
    """Read the proof of each mutant shown to be equivalent: indented lines under its key."""
    proofs: dict[str, str] = {}
    key = ""
    for line in path.read_text().splitlines():
        if line.startswith(" "):
            proofs[key] = f"{proofs[key]} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            key = line
            proofs[key] = ""
    return proofs


def report(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A table by folder, then each mutant that was not killed."""
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        folders[row["mutant"].rsplit("/", 1)[0]][row["verdict"]] += 1
    in_all = sum(folders.values(), Counter())
    for folder, counts in [*sorted(folders.items()), ("in all", in_all)]:
        differing = counts.total() - counts["equivalent"]
        share = counts["killed"] / differing if differing else 1.0
        others = ", ".join(f"{n} {k}" for k, n in sorted(counts.items()) if k != "killed")
        yield f"{folder}: {counts['killed']} of {differing} killed ({share:.1%}); {others}"
    for row in sorted(rows, key=lambda r: r["mutant"]):
        if row["verdict"] not in ("killed", "equivalent"):
            yield f"{row['verdict']}: {row['mutant']}"
