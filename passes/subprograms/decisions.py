"""Stored decisions about subprograms: a search that was cut off resumes from them.

The key of an entry covers the interned scopes, the leaves that are weights, the costs (target, cost
file), the proposer and its limits, the user's permissions, how measured programs are compiled
(threads, effort, tolerance), a hash of the passes and of the matcher, and everything a time depends
on: the machine and the sources of its kernels. Entries may be deleted at any time; a broken one is
ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from ...dialects.cache_folder import CacheFolder
from ...dialects.files import hash_of_sources
from ...lowering.targets import CPU
from ..search_result import StopReason

Trail: TypeAlias = "tuple[tuple[str, str], ...]"
"""From this a proposer makes a program again: for each rule a key that identifies its use."""


@dataclass(frozen=True)
class Decision:
    """The decision about a subprogram.

    Attributes:
        trail: of the program to use; None if the subprogram stays as it is.
        modelled: modelled seconds of that program; together with the trail they identify it.
        before, after: seconds of the baseline, and of the best program found.
        kind: how these are known: "measured", "modelled", or "bound" if none could be faster.
        stop: why the search stopped.
        looked: what was searched, in words; how: what was done, in words.
        proposer: whose program is used; empty if none is.
        measured: how many programs were measured; 0 if the bound excluded all of them.
        spent: seconds spent on the decision, measurements included.
    """

    trail: Trail | None
    modelled: float
    before: float
    after: float
    kind: str
    stop: StopReason
    looked: str = ""
    how: str = "searched"
    proposer: str = ""
    measured: int = 0
    spent: float = 0.0


class DecisionRecord:
    """Decisions by subprogram, in a folder of files.

    It is a separate folder below the cache folder: compiled models, which are large, evict their
    neighbours.

    Args:
        under: the user's permissions, and how measured programs are compiled (`Limits.key`).
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
        """Store a decision; if that is impossible it is made again next time."""
        file = self.folder.file(_name([*key, self.under]))
        if file is not None:
            self.folder.write(file, json.dumps(asdict(decision)).encode())


def _name(key: Sequence[str]) -> str:
    text = "\0".join([*key, _rules_version(), CPU.generator().machine_kind()])
    return f"decided-{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


@cache
def _rules_version() -> str:
    """A hash of the files that proposals and their costs depend on."""
    root, parts = Path(__file__).resolve().parents[2], ("dialects", "passes")
    return hash_of_sources([*(root / part for part in parts), root / "lowering/algebra_to_kernel"])
