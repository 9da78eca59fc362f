"""What was decided for subprograms before, on disk: a search that was cut off goes on from there.

An entry is named by the interned scopes, the leaves that are weights, the costs (target, cost
file), who proposed what with which bounds, what the user allows, how what is measured is compiled
(threads, effort, tolerance), a hash of the passes and of the matcher, and what a time depends on:
the machine and the sources of its kernels. Anybody may delete it at any time; a broken one counts
as none.
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
"""What a proposer makes a program of again: for each rule what tells its use from others."""


@dataclass(frozen=True)
class Decision:
    """What is to be done with a subprogram.

    Attributes:
        trail: of the program to take; None where the subprogram stays as it is.
        modelled: modelled seconds of that program: with the trail they say which one it is.
        before, after: seconds as it is, and of the best program found.
        kind: how that is known: "measured", "modelled", or "bound" where none could be faster.
        stop: why the search for it stopped.
        looked: what was looked at, in words; how: what was done for it.
        proposer: whose program is taken; empty where none is.
        measured: how many programs were measured; 0 where the bound ruled all of them out.
        spent: seconds that the decision took, measurements included.
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

    It is one of their own below the cache folder: compiled models, which are large, push out what
    stands beside them.

    Args:
        under: what the user allows, and how what is measured is compiled (`Limits.key`).
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
    return f"decided-{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


@cache
def _rules_version() -> str:
    """A hash of the files that decide what is proposed, and what it is taken to cost."""
    passes = Path(__file__).resolve().parents[1]
    folders = sorted({file.parent for file in passes.rglob("*.py")})
    return hash_of_sources([*folders, passes.parent / "lowering" / "algebra_to_kernel"])
