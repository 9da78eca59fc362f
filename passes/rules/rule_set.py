"""Load rule sets: those of the package by name, others from a user's file."""

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
"""Which proofs a search accepts for the rules of each set of the package.

Of generated rules it accepts only proved ones: a generated rule without a proof usually holds by
coincidence on the shapes tried. Laws are written by hand; where no prover can state one, the exact
check on many shapes is accepted.
"""


def rules_named(name_or_path: str) -> tuple[Rule, ...]:
    """The rules of a set that ships, or of a user's file: `default` (generated), `laws` (written),
    `expansive` (laws by which programs grow).

    Of a set of the package, rules with an `ACCEPTED` proof are returned; of a file, all but refuted
    ones.

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


def verified_rules(path: str | Path, allow_unproved: bool, hint: str) -> tuple[Rule, ...]:
    """A user's rules, each with the verdict found now, whatever the file says of its proof.

    Args:
        allow_unproved: take rules that the exact check passes and no prover proves.
        hint: of the error for a rule that is not proved: how to allow such rules.

    Raises:
        UserError: a rule is refuted, is neither proved nor allowed, or has the name of a
            rule of the package.
    """
    from .prove.verdicts import verify_rule

    used_names = {rule.name for name in shipped_names() for rule in shipped(name)}
    verified = tuple(verify_rule(rule).rule for rule in read_graph_rules(path))
    for rule in verified:
        if rule.name in used_names:
            message = f"a rule of the package has the name '{rule.name}'"
            raise UserError(message, where=str(path), hint="give yours another name")
        if rule.proof == "refuted":
            raise UserError(f"rule '{rule.name}' does not hold", where=str(path))
        if rule.proof not in PROVED and not allow_unproved:
            raise UserError(f"rule '{rule.name}' is not proved", where=str(path), hint=hint)
    return verified


@cache
def shipped(name: str) -> tuple[Rule, ...]:
    """Return every rule of a set of the package."""
    return parse_rules(_folder().joinpath(name + SUFFIX).read_text(), name + SUFFIX)


@cache
def shipped_names() -> tuple[str, ...]:
    """Names of the sets of the package."""
    names = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)))


def reported_proof(rule: Rule) -> ReportedProof:
    """Return the name by which reports state a rule's proof."""
    proof = rule.proof
    return proof if proof == "proved-by-z3" or proof == "proved-by-e-graph" else "checked"


def _folder() -> Traversable:
    return files(__name__.rpartition(".")[0]).joinpath("shipped")
