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
from .rule import CONSTANTS, Node, Rule, subterms
from .rule_text import parse_rules, place_of_op

SUFFIX = ".rules"
EGGLOG = ".egg"
PROVED = ("proved-by-z3", "proved-by-e-graph")
CHECKED = (*PROVED, "checked-only")
ACCEPTED = {"default": PROVED, "laws": CHECKED, "expansive": CHECKED}
"""The proofs that searches ask of a shipped set's rules.

A generated rule that no prover knows is a coincidence more often than a law of use, and is left
out; laws are written by hand, and checked exactly on many shapes where no prover has words.
"""


def rules_named(name_or_path: str) -> tuple[Rule, ...]:
    """The rules of a set that ships, or of a user's file: `default` (generated), `laws` (written),
    `expansive` (laws by which programs grow).

    Of a shipped set those are given whose proof is `ACCEPTED`; of a file all but refuted ones.

    Raises:
        UserError: there is no such set, or the file is broken.
    """
    if name_or_path in shipped_names():
        accepted = ACCEPTED[name_or_path]
        return tuple(rule for rule in shipped(name_or_path) if rule.proof in accepted)
    check_set_or_file(name_or_path)
    return tuple(rule for rule in read_rules(name_or_path) if rule.proof != "refuted")


def check_set_or_file(name: str) -> None:
    """Raise UserError for a name that is neither a set's nor a file's."""
    if name in shipped_names() or name.endswith(SUFFIX) or Path(name).exists():
        return
    hint = did_you_mean(name, shipped_names()) or f"or a FILE{SUFFIX}"
    raise UserError(f"no rule set '{name}'", expected=", ".join(shipped_names()), hint=hint)


def read_rules(path: str | Path) -> tuple[Rule, ...]:
    """Every rule of a file, whatever its proof. Raises UserError where it is broken."""
    try:
        text = read_whole(str(path)).decode()
    except UnicodeDecodeError as error:
        raise UserError("this is not text", where=str(path)) from error
    read = parse_egglog if str(path).endswith(EGGLOG) else parse_rules
    return read(text, str(path))


def read_graph_rules(path: str | Path) -> tuple[Rule, ...]:
    """As `read_rules`, for rules over the graph dialect.

    Raises:
        UserError: the file is broken, or a rule names an op that the graph dialect does not have.
    """
    from .exact import graph_ops

    rules, known = read_rules(path), graph_ops()
    for rule in rules:
        for term in subterms((*rule.left, *rule.right)):
            if isinstance(term, Node) and term.op not in known and term.op not in CONSTANTS:
                text = read_whole(str(path)).decode()
                raise UserError(
                    f"rule {rule.name}: the graph dialect has no op '{term.op}'",
                    where=place_of_op(text, str(path), rule.name, term.op),
                    hint=did_you_mean(term.op, known),
                )
    return rules


def verified_rules(path: str | Path, allow_unproved: bool, flag: str) -> tuple[Rule, ...]:
    """A user's rules, each with the verdict found now, whatever the file says of its proof.

    Args:
        allow_unproved: take rules that the exact check passes and no prover proves.
        flag: what the user has to give to allow them, for messages.

    Raises:
        UserError: a rule is refuted, or not proved and not allowed, or has a shipped rule's name.
    """
    from .prove.verdicts import verify_rule

    taken = {rule.name for name in shipped_names() for rule in shipped(name)}
    found = tuple(verify_rule(rule).rule for rule in read_graph_rules(path))
    for rule in found:
        if rule.name in taken:
            message = f"a rule that ships is called '{rule.name}', too"
            raise UserError(message, where=str(path), hint="give yours another name")
        if rule.proof == "refuted":
            raise UserError(f"rule '{rule.name}' does not hold", where=str(path))
        if rule.proof not in PROVED and not allow_unproved:
            raise UserError(f"rule '{rule.name}' is not proved", where=str(path), hint=flag)
    return found


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
