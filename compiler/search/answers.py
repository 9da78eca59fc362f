"""Remember what `optimize` found: the same question again is answered without a search.

The key covers all that an answer depends on: the program with its weights and names, the searches,
the target's costs, the user's rules and permissions, how programs are compiled and measured, the
machine, and this package's files. An answer that the budget cut short serves no larger budget. One
that was interrupted, or was not compared with the input, is not kept. A file begins with the hash
of the rest: a damaged one counts as missing, also where what it says is a program.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...dialects.cache_folder import CacheFolder
from ...dialects.errors import UserError, in_debug_mode
from ...dialects.program import Program
from ..frontends.program_file import module_text, parse, used_weights
from ..plugin import any_in_use
from ..targets.cpu import compiler_key, identities
from .records import Comparison, ComparisonRequest, Searched
from .search_stage import OUT_OF_TIME
from .strategies import Strategy

GENERATION = 3  # of the file's form


@dataclass(frozen=True)
class Answer:
    """What the searches gave, and how it compares with the input.

    Attributes:
        comparing: seconds that the comparison took.
        remembered: whether an earlier run found it.
    """

    searched: Searched
    comparison: Comparison
    comparing: float = 0.0
    remembered: bool = False

    @property
    def timed(self) -> bool:
        """Whether more time might have found more."""
        stops = [search["stop_reason"] for search in self.searched.searches]
        reasons = [entry["reason"] for entry in self.searched.rejected]
        return "time" in stops or OUT_OF_TIME in reasons


@dataclass(frozen=True)
class AnswerMemory:
    """Where the answer to one question is remembered.

    Attributes:
        key: of the question.
        rewritten: the program that the searches are given.
        known: its weights. A result that uses others cannot be made again from its text.
    """

    folder: CacheFolder
    key: str
    rewritten: Program
    known: frozenset[str]
    budget: float

    @classmethod
    def of(
        cls,
        program: Program,
        rewritten: Program,
        strategies: Sequence[Strategy],
        request: ComparisonRequest,
        budget: float,
    ) -> AnswerMemory | None:
        """The place for a question; None without a cache folder, in debug mode, or where plug-ins
        are in use: a plug-in's file may say something else next time.
        """
        folder = CacheFolder()
        if not folder.usable or folder.path is None or any_in_use() or in_debug_mode():
            return None
        parts = (
            str(GENERATION),
            *compiler_key(request.options),
            module_text(program.module),
            module_text(rewritten.module),
            *identities(program),
            repr([(s.name, s.share) for s in strategies]),
            repr((request.seed, request.options, request.unmeasured, request.rules)),
            *request.costs.key,
        )
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        own = CacheFolder(folder.path / "answers")
        known = frozenset((*rewritten.weights, *used_weights(rewritten.module)))
        return cls(own, key, rewritten, known, budget)

    def load(self) -> Answer | None:
        """The answer of an earlier run; None if there is none that serves this budget."""
        file = self.folder.file(f"{self.key}.json")
        if file is None:
            return None
        try:
            digest, _, text = file.read_bytes().partition(b"\n")
            if digest != _hash(text):
                return None
            entry: dict[str, Any] = json.loads(text)
            if entry["timed"] and self.budget > entry["budget"]:
                return None
            entry["comparison"]["algorithms"] = tuple(entry["comparison"]["algorithms"])
            comparison = replace(Comparison(**entry["comparison"]), compiling=0.0)
            program = self._program(entry.pop("program"))
            found = Searched(program, entry["rewrites"], entry["rejected"], entry["searches"])
        except (OSError, ValueError, TypeError, KeyError, UserError):
            return None
        self.folder.touch(file)
        return Answer(found, comparison, remembered=True)

    def _program(self, text: str | None) -> Program:
        if text is None:
            return self.rewritten
        made = parse(text, self.rewritten.source)
        made.weights = self.rewritten.weights
        return made

    def save(self, found: Answer) -> None:
        """Keep an answer that another run would give as well."""
        program, reason = found.searched.program, found.searched.stop_reason
        file = self.folder.file(f"{self.key}.json")
        lasting = reason != "interrupted" and found.comparison.missed is None
        if file is None or not lasting or not self.known.issuperset(used_weights(program.module)):
            return
        entry = {
            "program": None if program is self.rewritten else module_text(program.module),
            "rewrites": found.searched.rewrites,
            "rejected": found.searched.rejected,
            "searches": found.searched.searches,
            "comparison": asdict(found.comparison),
            "timed": found.timed,
            "budget": self.budget,
        }
        text = json.dumps(entry).encode()
        self.folder.write(file, _hash(text) + b"\n" + text)


def _hash(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest().encode()
