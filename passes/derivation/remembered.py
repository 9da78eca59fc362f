"""What was found for subprograms before, on disk: a search that was cut off goes on from there.

An entry is named by the interned scope, the leaves that are weights, the costs (target, cost file)
and bounds, how it was decided, the rules themselves (a hash of this folder and of the iterator
table), and what a time depends on: the machine and the sources of its kernels. Anybody may delete
it at any time; a broken one counts as none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...dialects.cache_folder import CacheFolder
from ...dialects.files import hash_of_sources
from ...lowering.targets import CPU


@dataclass(frozen=True)
class Decision:
    """What is to be done with a subprogram.

    Attributes:
        trail: of the program to take (`State.trail`); None where it stays as it is.
        modelled: modelled seconds of that program: with the trail they say which one it is.
        before, after: seconds as it is, and of the best program found.
        stop: why the search for it stopped.
        states: how many programs were looked at.
        measured: how many of them were measured; 0 where the bound ruled all of them out.
        spent: seconds that the decision took, measurements included.
    """

    trail: tuple[tuple[str, str], ...] | None
    modelled: float
    before: float
    after: float
    kind: str
    stop: str
    states: int
    measured: int = 0
    spent: float = 0.0


class Remembered:
    """Decisions by subprogram, in a folder of files, `under` what the user allows (`Allowed.key`).

    It is one of their own below the cache folder: compiled models, which are large, push out what
    stands beside them.
    """

    def __init__(self, folder: CacheFolder | None = None, under: str = "") -> None:
        if folder is None:
            shared = CacheFolder()
            folder = shared if shared.path is None else CacheFolder(shared.path / "decisions")
        self.folder = folder
        self.under = under

    def load(self, key: Sequence[str]) -> Decision | None:
        """The decision that was saved under a key."""
        file = self.folder.file(_name([*key, self.under]))
        if file is None:
            return None
        try:
            entry: dict[str, Any] = json.loads(file.read_bytes())
            trail: list[list[str]] | None = entry.pop("trail")
            found = None if trail is None else tuple((rule, text) for rule, text in trail)
            return Decision(trail=found, **entry)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def save(self, key: Sequence[str], decision: Decision) -> None:
        """Keep a decision; where that is impossible it is made again next time."""
        file = self.folder.file(_name([*key, self.under]))
        if file is not None:
            self.folder.write(file, json.dumps(asdict(decision)).encode())


def _name(key: Sequence[str]) -> str:
    text = "\0".join([*key, _rules_version(), CPU.generator().machine_kind()])
    return f"derived-{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


@cache
def _rules_version() -> str:
    """A hash of the files that decide what is derived."""
    here = Path(__file__).resolve().parent
    return hash_of_sources([here, here.parents[1] / "lowering" / "algebra_to_kernel"])
