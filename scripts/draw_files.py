"""Draw source files for a reader who does not know the project: five from each floor.

    python scripts/draw_files.py [--seed 18] [--count 5]

The reader lists each word that the names, docstrings and comments leave unclear. The draw depends
on the seed and the tree alone, so a second reading can take the same files, or others.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FLOORS = (("compiler",), ("passes",), ("dialects",), ("lowering",), ("testing", "tests"))


def files_of(folders: tuple[str, ...]) -> list[str]:
    """The Python files in and below some folders, sorted, without `__init__.py`."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(str(p.relative_to(ROOT)) for p in found if p.name != "__init__.py")


def main() -> None:
    """Print the files, a floor after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=18)
    parser.add_argument("--count", type=int, default=5, help="files of each floor")
    parsed = parser.parse_args()
    for folders in FLOORS:
        drawn = random.Random(f"{parsed.seed} {folders}").sample(files_of(folders), parsed.count)
        print("\n".join(sorted(drawn)))


if __name__ == "__main__":
    main()
