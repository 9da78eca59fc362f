"""`isoform rules generate|verify|list`: TASO's generator and provers on the command line."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...dialects.errors import is_quiet
from ...dialects.executor import LocalExecutor
from ...dialects.files import check_outputs, write_whole
from ...passes.rules.rule import PROOFS, Rule, operator_count
from ...passes.rules.rule_set import (
    check_set_or_file,
    read_graph_rules,
    read_rules,
    shipped,
    shipped_names,
)
from ...passes.rules.rule_text import print_rules, term_text
from .calm_block import progress
from .subcommands import print_json, table

if TYPE_CHECKING:  # the provers load z3 and egglog
    from ...passes.rules.prove.verdicts import VerifiedRule


def rules_command(arguments: Namespace) -> int:
    """`isoform rules ACTION`."""
    match arguments.action:
        case "generate":
            return _generate(arguments)
        case "verify":
            return _verify(arguments)
        case _:
            return _list(arguments)


def _tell(line: str) -> None:
    if not is_quiet():
        print(line, file=sys.stderr)


def _generate(arguments: Namespace) -> int:
    from ...passes.rules.generate.pipeline import counts_table, generate, rule_file

    check_outputs([arguments.output])
    checkpoint = None if arguments.checkpoint is None else Path(arguments.checkpoint)
    started = time.monotonic()
    made = generate(arguments.size, jobs=arguments.jobs, checkpoint=checkpoint, tell=_tell)
    if arguments.output is None:
        print(rule_file(made), end="")
    else:
        write_whole(arguments.output, rule_file(made))
    _tell(counts_table(made))
    _tell(f"{len(made.rules)} rule(s) in {time.monotonic() - started:.0f} s")
    return 0


def _rules(arguments: Namespace) -> Sequence[Rule]:
    """Every rule of the set or file, whatever its proof."""
    name = arguments.rules
    check_set_or_file(name)
    return shipped(name) if name in shipped_names() else read_rules(name)


def _verdict(question: tuple[Rule, int, int]) -> VerifiedRule:
    from ...passes.rules.prove.verdicts import verify_rule

    rule, count, seed = question
    return verify_rule(rule, count=count, seed=seed)


def _verify(arguments: Namespace) -> int:
    check_set_or_file(arguments.rules)
    shipped_set = arguments.rules in shipped_names()
    rules = shipped(arguments.rules) if shipped_set else read_graph_rules(arguments.rules)
    started = time.monotonic()
    questions = [(rule, arguments.count, arguments.seed) for rule in rules]
    verdicts_by_number: dict[int, VerifiedRule] = {}
    with progress("verified", len(rules)) as done:

        def heard(number: int, verdict: VerifiedRule) -> None:
            verdicts_by_number[number] = verdict
            done(f"{rules[number].name}: {verdict.rule.proof}")

        LocalExecutor(arguments.jobs - 1).run(_verdict, questions, heard)
    found = [verdicts_by_number[k] for k in range(len(rules))]
    bad = [(v, r) for v, r in zip(found, rules, strict=True) if v.rule.proof == "refuted"]
    counts = {proof: sum(v.rule.proof == proof for v in found) for proof in PROOFS}
    changed = [r.name for v, r in zip(found, rules, strict=True) if v.rule.proof != r.proof]
    if arguments.json:
        verdicts = [
            {"rule": v.rule.name, "proof": v.rule.proof, "instances": v.checked.instances}
            for v in found
        ]
        print_json({"counts": counts, "changed": changed, "rules": verdicts})
    else:
        for verdict, rule in bad:
            at = verdict.checked.wrong or "no instance: it applies nowhere that was tried"
            print(f"refuted {rule.name}: {at}")
        print(", ".join(f"{count} {proof}" for proof, count in counts.items()))
        _tell(f"{len(rules)} rule(s) in {time.monotonic() - started:.0f} s")
    return 1 if bad else 0


def _list(arguments: Namespace) -> int:
    rules = [r for r in _rules(arguments) if arguments.proof in (None, r.proof)]
    if arguments.json:
        print_json({"rules": [_as_json(rule) for rule in rules]})
    elif arguments.long:
        print(print_rules(rules), end="")
    elif rules:
        head = ("rule", "operators", "conditions", "proof")
        print(table(head, [_row(rule) for rule in rules]))
    return 0


def _row(rule: Rule) -> tuple[str, str, str, str]:
    sizes = f"{operator_count(rule.left)} -> {operator_count(rule.right)}"
    return (rule.name, sizes, str(len(rule.where)), rule.proof)


def _as_json(rule: Rule) -> dict[str, object]:
    return {
        "name": rule.name,
        "left": [term_text(term) for term in rule.left],
        "right": [term_text(term) for term in rule.right],
        "where": list(rule.where),
        "proof": rule.proof,
        "source": rule.source,
    }
