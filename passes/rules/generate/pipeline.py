"""From small worlds to a rule file: enumerate, prune, generalise, prune again, prove.

Every step is a function of its input and the seed. The file is the same, byte for byte, for any
number of processes. Results are kept in a folder (`checkpoint`), one file for each world and step,
and an interrupted run resumes from there.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from ....dialects.executor import LocalExecutor, kept_workers
from ....dialects.files import write_whole
from ..floats import classified
from ..prove.verdicts import verify_rule
from ..rule import (
    CONSTANTS,
    Node,
    Out,
    Rule,
    Term,
    Var,
    nodes_of,
    operator_count,
    subterms,
    variables_of,
)
from ..rule_text import print_rule, print_rules
from ..terms import renamed, renamed_rule, with_attributes
from .candidates import Classes, Counts, RuleCandidate, candidates, without_instances
from .generalise import Failure, generalise
from .largest import largest_laws
from .operators import WORLDS, World
from .parts import laws_of_parts
from .special import without_special_cases
from .subsume import without_consequences
from .table import REPRESENTATIVES_FROM, Enumerator

T = TypeVar("T")
SEED = 1


@dataclass
class Generated:
    """Rules with their verdicts, and the outcome of every candidate."""

    size: int  # most operators of a graph
    rules: list[Rule] = field(default_factory=list[Rule])
    counts: list[tuple[str, Counts]] = field(default_factory=list[tuple[str, Counts]])  # by world
    laws: int = 0  # over all worlds
    directed: int = 0  # laws read in one direction
    failures: list[Failure] = field(default_factory=list[Failure])  # laws that became no rule
    general: int = 0  # rules, special cases included
    kept: int = 0  # rules without special cases
    refuted: list[Rule] = field(default_factory=list[Rule])


def generate(
    size: int,
    worlds: Sequence[World] = WORLDS,
    jobs: int = 1,
    checkpoint: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Generated:
    """The rules of all graphs up to `size` operators, proved where the provers succeed."""
    made = Generated(size)
    with kept_workers():
        found = list[RuleCandidate]()
        steps = [(world, size) for world in worlds]
        mapped = _mapped(jobs, _enumerated, steps, checkpoint, f"candidates-{size}", 1)
        for world, (kept, counts) in zip(worlds, mapped, strict=True):
            made.counts.append((world.name, counts))
            tell(f"{world.name}: {counts.terms} terms, {len(kept)} candidates")
            found += kept
        found = _first_of_each_law(found)
        found += laws_of_parts(found, size)
        directed = [side for one in found for side in _directions(one)]
        made.laws, made.directed = len(found), len(directed)
        tell(f"{len(found)} laws, {len(directed)} directed: making them general")
        results = _mapped(jobs, generalise, directed, checkpoint, f"general-{size}")
        made.failures = [r for r in results if isinstance(r, Failure)]
        general = without_duplicates([r for r in results if isinstance(r, Rule)])
        made.general = len(general)
        rules = named(without_special_cases(general))
        made.kept = len(rules)
        tell(f"{len(rules)} rules: proving them")
        verified = _mapped(jobs, verify_rule, rules, checkpoint, f"proved-{size}")
    made.refuted = [v.rule for v in verified if v.rule.proof == "refuted"]
    made.rules = [v.rule for v in verified if v.rule.proof != "refuted"]
    return made


def rule_file(made: Generated) -> str:
    """The text of the rule file."""
    head = (
        "# Made by `isoform rules generate`: nobody wrote these rules. Graphs of up to "
        f"{made.size} operators were\n# enumerated, equal ones made general, and the rules proved "
        "(docs/substitutions.md).\n\n"
    )
    return head + print_rules(made.rules)


def counts_table(made: Generated) -> str:
    """The number of candidates after each step, by world and in total, and the verdicts."""
    rows = [*made.counts, ("in all", sum((c for _, c in made.counts), Counts()))]
    steps = [step for step, count in vars(rows[-1][1]).items() if count or "limit" not in step]
    lines = ["  ".join(["world".ljust(15), *(step.rjust(11) for step in steps)])]
    for name, counts in rows:
        numbers = [str(getattr(counts, step)).rjust(11) for step in steps]
        lines.append("  ".join([name.ljust(15), *numbers]))
    reasons = Counter(f.reason for f in made.failures)
    verdicts = Counter(rule.proof for rule in made.rules)
    lines.append(f"{made.laws} laws over all worlds, {made.directed} read in one direction")
    lines += [f"{count} no rule: {reason}" for reason, count in sorted(reasons.items())]
    lines.append(f"{made.general} rules, {made.kept} of them no special case of another")
    lines.append(f"{len(made.refuted)} refuted on further instances")
    lines += [f"{count} {proof}" for proof, count in sorted(verdicts.items())]
    return "\n".join(lines)


def _enumerated(step: tuple[World, int]) -> tuple[list[RuleCandidate], Counts]:
    world, most = step
    found, counts = equalities(world, most)
    kept = [one for one in found if not _is_artifact(one, most)]
    counts.general = len(kept)
    return kept, counts


def equalities(world: World, most: int) -> tuple[list[RuleCandidate], Counts]:
    """The laws of a world that do not follow from others. largest.py finds those of large sizes."""
    table = Enumerator(world, SEED, most).run()
    if most < REPRESENTATIVES_FROM:
        found, counts = candidates(table)
        kept = without_consequences(found)
        counts.consequence = len(kept)
        return kept, counts
    smaller, counts = equalities(world, most - 1)
    largest = largest_laws(table, smaller)
    counts.limit_pairs, counts.limit_roles = largest.pairs, largest.roles
    counts.limit_parts, counts.limit_laws = largest.parts, len(largest.found)
    classes = Classes(table)
    counts.terms, counts.classes, counts.pairs = len(table), classes.count, classes.pairs
    return without_instances([*smaller, *largest.found]), counts


def _is_artifact(one: RuleCandidate, most: int) -> bool:
    """Whether a pair at the size limit is only a special case of a larger law beyond the limit.

    It is one if no side uses each variable once (x + x is a special case of x + y), or if both
    sides contain constants.
    """
    sides = (one.left, one.right)
    if len(one.left) > 1 or max(operator_count(side) for side in sides) < most:
        return False
    if all(any(n.op in CONSTANTS for n in nodes_of(side)) for side in sides):
        return True
    return not any(_is_linear(side) for side in sides)


def _is_linear(terms: tuple[Term, ...]) -> bool:
    names = [t.name for t in subterms(terms) if isinstance(t, Var)]
    return len(names) == len(set(names))


def _first_of_each_law(found: Sequence[RuleCandidate]) -> list[RuleCandidate]:
    """Of candidates that differ only in names, shapes and split sizes, keep the first.

    Drop special cases of what was found in another world.
    """
    seen: dict[tuple[tuple[Term, ...], tuple[Term, ...]], RuleCandidate] = {}
    for one in found:
        names = dict(zip(variables_of((*one.left, *one.right)), "abcdefgh", strict=False))
        left, right = renamed(one.left, names), renamed(one.right, names)
        seen.setdefault((_without_sizes(left), _without_sizes(right)), one)
    bare = [RuleCandidate(left, right, ()) for left, right in seen]
    kept = {(one.left, one.right) for one in without_instances(bare)}
    return [one for law, one in seen.items() if law in kept]


def _without_sizes(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    return with_attributes(terms, lambda _, name, value: () if name == "sizes" else value)


def _directions(one: RuleCandidate) -> Iterator[RuleCandidate]:
    """Both directions, if the left side is not a bare variable and binds every variable."""
    for left, right in ((one.left, one.right), (one.right, one.left)):
        bound = set(variables_of(left))
        if nodes_of(left) and set(variables_of(right)) <= bound and operator_count(left):
            shapes = tuple((name, shape) for name, shape in one.shapes if name in bound)
            yield RuleCandidate(left, right, shapes)


# --- after the rules are general ----------------------------------------------------------------


def without_duplicates(rules: Sequence[Rule]) -> list[Rule]:
    """Of rules equal up to names, keep the one with fewest conditions. Drop special cases."""
    best: dict[object, Rule] = {}
    for rule in rules:
        plain = canonical(rule)
        key = (plain.left, plain.right)
        if key not in best or len(plain.where) < len(best[key].where):
            best[key] = plain
    return list(best.values())


def canonical(rule: Rule) -> Rule:
    """The rule with its tensor variables named a, b, c ... in order of appearance."""
    names = dict(zip(variables_of((*rule.left, *rule.right)), "abcdefgh", strict=False))
    return renamed_rule(rule, names)


def named(rules: Sequence[Rule]) -> list[Rule]:
    """Give each rule a name, its size in words and its float label. Smaller rules come first."""
    taken: dict[str, int] = {}
    found = list[Rule]()
    for rule in sorted(rules, key=_order):
        name = f"{_side(rule.left)}-to-{_side(rule.right)}"
        taken[name] = taken.get(name, 0) + 1
        full = name if taken[name] == 1 else f"{name}-{taken[name]}"
        before, after = operator_count(rule.left), operator_count(rule.right)
        text = f"generated ({before} -> {after} operators)"
        made = replace(rule, name=full, source=text)
        found.append(replace(made, floats=classified(made)))
    return found


def _order(rule: Rule) -> tuple[object, ...]:
    size = max(operator_count(rule.left), operator_count(rule.right))
    return (size, len(rule.left), print_rule(replace(rule, name="")))


def _side(terms: tuple[Term, ...]) -> str:
    """Its operators, outermost first; terms of several outputs joined by `and`."""
    return "-and-".join(_words(t) for t in dict.fromkeys(_root(t) for t in terms))


def _root(term: Term) -> Term:
    return term.node if isinstance(term, Out) else term


def _words(term: Term) -> str:
    if not isinstance(term, Node):
        return "operand"
    inner = [_words(_root(t)) for t in term.operands]
    inner = [word for word in inner if word != "operand"]
    return "-".join([term.op.replace("_", "-"), *inner])


# --- processes and checkpoints ------------------------------------------------------------------


def _mapped(
    jobs: int,
    function: Callable[[Any], T],
    items: Sequence[Any],
    checkpoint: Path | None,
    name: str,
    block: int = 50,
) -> list[T]:
    """Apply the function to every item, in order. Finished blocks are kept and not repeated."""
    blocks = [range(start, min(start + block, len(items))) for start in range(0, len(items), block)]
    paths = [checkpoint and checkpoint / f"{name}-{k}.pickle" for k in range(len(blocks))]
    made: dict[int, T] = {}
    for numbers, path in zip(blocks, paths, strict=True):
        if path and path.exists():
            made |= zip(numbers, pickle.loads(path.read_bytes()), strict=True)
    left = [k for k in range(len(items)) if k not in made]

    def done(number: int, result: T) -> None:
        made[left[number]] = result
        numbers, path = blocks[left[number] // block], paths[left[number] // block]
        if path and all(k in made for k in numbers):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, pickle.dumps([made[k] for k in numbers]))

    LocalExecutor(jobs - 1).run(function, [items[k] for k in left], done)
    return [made[k] for k in range(len(items))]
