"""Where rule sets come from: shipped by name, or a user's file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from ...dialects.errors import UserError, did_you_mean
from ...dialects.files import read_whole
from ..search_result import Proof as ReportedProof
from .egglog_text import parse_egglog
from .rule import Rule
from .rule_text import parse_rules

SUFFIX = ".rules"
EGGLOG = ".egg"
PROVED = ("proved-by-z3", "proved-by-e-graph")
ACCEPTED = {"default": PROVED, "laws": (*PROVED, "checked-only")}
"""The proofs that searches ask of a shipped set's rules.

A generated rule that no prover knows is a coincidence more often than a law of use, and is left
out; laws are written by hand, and checked exactly on many shapes where no prover has words.
"""


def rules_named(name_or_path: str) -> tuple[Rule, ...]:
    """The rules of a set: `default` (generated) and `laws` (written) ship, a path is a user's file.

    Of a shipped set those are given whose proof is `ACCEPTED`; of a file all but refuted ones.

    Raises:
        UserError: there is no such set, or the file is broken.
    """
    if name_or_path in shipped_names():
        accepted = ACCEPTED[name_or_path]
        return tuple(rule for rule in shipped(name_or_path) if rule.proof in accepted)
    if not name_or_path.endswith(SUFFIX) and not Path(name_or_path).exists():
        hint = did_you_mean(name_or_path, shipped_names()) or f"or a FILE{SUFFIX}"
        known = ", ".join(shipped_names())
        raise UserError(f"no rule set '{name_or_path}'", expected=known, hint=hint)
    return tuple(rule for rule in read_rules(name_or_path) if rule.proof != "refuted")


def read_rules(path: str | Path) -> tuple[Rule, ...]:
    """Every rule of a file, whatever its proof. Raises UserError where it is broken."""
    try:
        text = read_whole(str(path)).decode()
    except UnicodeDecodeError as error:
        raise UserError("this is not text", where=str(path)) from error
    read = parse_egglog if str(path).endswith(EGGLOG) else parse_rules
    return read(text, str(path))


@cache
def shipped(name: str) -> tuple[Rule, ...]:
    """Every rule of a set of the package."""
    return parse_rules(_folder().joinpath(name + SUFFIX).read_text(), name + SUFFIX)


@cache
def shipped_names() -> tuple[str, ...]:
    """Names of the sets of the package."""
    found = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX)))


def reported_proof(rule: Rule) -> ReportedProof:
    """What a report says of a rule's proof."""
    proof = rule.proof
    return proof if proof == "proved-by-z3" or proof == "proved-by-e-graph" else "checked"


def _folder() -> Traversable:
    return files(__name__.rpartition(".")[0]).joinpath("shipped")
