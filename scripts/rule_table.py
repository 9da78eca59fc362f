"""Write docs/derivation-rules.md from the table of derivation rules.

python scripts/rule_table.py            print the page
python scripts/rule_table.py --write    write the document
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from isoform.passes.derivation.apply_rule import FORMS, description, options_of, usage
from isoform.passes.derivation.rules import BY_HAND, EAGER, RULES
from isoform.passes.derivation.step import DerivationRule

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "derivation-rules.md"
HEAD = """\
# Derivation rules

Written by `python scripts/rule_table.py --write` from the rules' table and docstrings. Each rule is
applied by hand with `isoform-opt -p 'algebra-apply-rule{rule=NAME at=SCOPE ...}'` and the options
below; without `at` it changes the only scope that it applies to. What [derivation](derivation.md)
finds is written down as such passes.
"""
GROUPS = (
    ("Proposed by the search", RULES),
    ("Applied wherever they apply", EAGER),
    ("Not proposed for one scope", BY_HAND),
    ("Canonical and library forms", FORMS),
)


def rule_page() -> str:
    """The document."""
    parts = [HEAD]
    for title, rules in GROUPS:
        parts.append(f"\n## {title}\n")
        parts += [f"\n{section(rule)}" for rule in rules]
    return "".join(parts)


def section(rule: DerivationRule) -> str:
    """One rule: how it is written, what it does, when it may, where it comes from."""
    call = f"rule={rule.name} {usage(rule)}".rstrip()
    options = [f"- `{o.name}`: {o.what}{default(o.default)}\n" for o in options_of(rule)]
    infinities = f", {rule.floats.infinities}" if rule.floats.infinities else ""
    most = "" if rule.limit is None else f"- The search applies it {times(rule.limit)} a path.\n"
    facts = [
        f"- Condition: {rule.condition}.\n",
        f"- Floats: `{rule.floats.label.value}`{infinities}. Source: {rule.source}.\n",
        most,
    ]
    return f"### {rule.name}\n\n`{call}`\n\n{body(rule)}\n\n{''.join([*options, *facts])}"


def times(limit: int) -> str:
    """A number in words."""
    return "at most once" if limit == 1 else f"at most {limit} times"


def default(value: int | None) -> str:
    """The end of an option's line."""
    return "" if value is None else f" (default {value})"


def body(rule: DerivationRule) -> str:
    """The docstring; indented IR is a block in Markdown."""
    text = description(rule)
    assert "Before" in text, f"the function of rule '{rule.name}' shows no IR"
    return textwrap.dedent(text)


def main() -> None:
    """Print or write."""
    if "--write" in sys.argv[1:]:
        DOCUMENT.write_text(rule_page())
    else:
        print(rule_page())


if __name__ == "__main__":
    main()
