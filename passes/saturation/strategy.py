"""Saturate whole programs in a row of searches: not at all where no rule matches.

Matching is cheap where it finds nothing, and egglog takes a quarter of a second to import. That a
program has nothing to gain is remembered on disk, unless time or memory stopped the search.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

from xdsl.ir import Operation

from ...dialects.graph.shaping import ConcatOp, SplitOp
from ...dialects.program import Program
from ..cost.costs import Costs
from ..rules.floats import allowed_rules
from ..rules.graph_form import Tables, encode
from ..rules.match import GraphMatcher, unusable
from ..rules.op_table import OpTable
from ..rules.rule import Rule
from ..rules.rule_set import rules_named
from ..search_result import Limits, Rejected, SearchResult, StopReason
from ..subprograms.decisions import Decision, DecisionRecord
from ..work_clock import now

_REPEATABLE: dict[str, StopReason] = {"finished": "finished", "steps": "steps", "nodes": "nodes"}


# The generated rules' part of the seconds: after the laws they gain on few programs, and seldom end
# before their limits.
_GENERATED = 0.25
# Seconds of one extraction at most. Programs that fall apart take one; what others gain after that
# is next to nothing.
_EXTRACTION = 5.0
# The part in which the laws must end together with those that take ops apart.
_EXPANSIVE = 0.5


def search(program: Program, costs: Costs, limits: Limits) -> SearchResult:
    """The cheapest program by modelled cost that laws lead to, and generated rules from there.

    The laws are few and saturate; the generated rules run into their limits on larger programs, and
    would keep the laws from what they find. So do laws that take ops apart: where they do not end
    in their part of the time, the others begin anew without them.
    """
    begun = now()

    def part(share: float) -> Limits:
        left = limits.seconds - (now() - begun)
        return replace(limits, seconds=max(min(left, limits.seconds * share), 0.0))

    first = _with_rules(program, costs, part(_EXPANSIVE), "laws", "expansive")
    if first.stop_reason in ("time", "nodes", "memory"):
        without = _with_rules(program, costs, part(1 - _EXPANSIVE - _GENERATED), "laws")
        _join(first, without)
        first = min(without, first, key=lambda one: costs.program(one.program).seconds)
    if first.stop_reason == "interrupted":
        return first
    second = _with_rules(first.program, costs, part(_GENERATED), "default")
    _join(first, second)
    # As kernels they may be the cheaper ones: fewer sums that are no epilogue, more that fuses.
    known = [first.program] if first.applied and second.applied else []
    second.alternatives = [*first.alternatives, *known, *second.alternatives]
    second.applied = [*first.applied, *second.applied]
    second.looked_at = f"{first.looked_at}, then {second.looked_at}"
    if second.stop_reason == "finished":
        second.stop_reason = first.stop_reason
    return second


def _join(first: SearchResult, second: SearchResult) -> None:
    """Give both the curve and the matches of one search followed by another.

    The clock of limits may count work, or leap to its end; a curve has its own.
    """
    after = max((t for t, *_ in first.curve), default=0.0)
    best = min((price for *_, price in first.curve), default=math.inf)
    later = [(after + t, n, min(price, best)) for t, n, price in second.curve]
    rules = {**first.matches, **second.matches}
    both = {rule: first.matches.get(rule, 0) + second.matches.get(rule, 0) for rule in rules}
    first.curve = second.curve = [*first.curve, *later]
    first.matches = second.matches = both


def _with_rules(program: Program, costs: Costs, limits: Limits, *sets: str) -> SearchResult:
    shipped = [rule for name in sets for rule in rules_named(name)]
    rules, _ = allowed_rules((*shipped, *limits.rules), limits.floats)
    count = sum(1 for _ in program.main.body.block.ops)
    seen = f"{count} ops, {len(rules)} rules"
    key, memory = _key(program, costs, rules), DecisionRecord()
    known = memory.load(key)
    if known is not None:
        stop = _REPEATABLE.get(known.stop, "finished")
        return SearchResult(program.clone(), stop, looked_at=f"{seen}, as remembered")
    if not matches(program, costs, rules):
        reason = f"none of {len(rules)} rules matches"
        rejected = [Rejected("saturate", "main", reason)]
        return SearchResult(program.clone(), "finished", [], rejected, looked_at=seen)
    from .search import SaturationSettings
    from .search import search as saturated

    added = tuple(r for r in rules if r in limits.rules)
    settings = SaturationSettings(added=added, extract_seconds=_EXTRACTION)
    others = tuple(r for r in rules if r not in limits.rules)
    result = saturated(program, costs, limits, rules=others, settings=settings)
    # Which rules cannot take part, and where one was refused, is no answer to why nothing gained.
    result.rejected, result.looked_at = [], seen
    same = result.program.module.is_structurally_equivalent(program.module)
    if same and not result.alternatives and result.stop_reason in _REPEATABLE:
        nothing = Decision(None, 0.0, 0.0, 0.0, "modelled", result.stop_reason, seen)
        memory.save(key, nothing)
    return result


def matches(program: Program, costs: Costs, rules: tuple[Rule, ...]) -> bool:
    """Whether a rule's left side may stand anywhere in a program.

    In chains of binary ops it may, which a wide concatenation or split is one of.
    """
    if any(_is_chain(op) for op in program.main.body.block.ops):
        return True
    tables = Tables(OpTable(), costs)
    usable = tuple(rule for rule in rules if not unusable(rule, tables))
    graph = encode(program.main.body.block, tables)
    return bool(GraphMatcher(tables, usable).everywhere(graph))


def _is_chain(op: Operation) -> bool:
    return isinstance(op, ConcatOp | SplitOp) and max(len(op.operands), len(op.results)) > 2


def _key(program: Program, costs: Costs, rules: tuple[Rule, ...]) -> tuple[str, ...]:
    text = hashlib.sha256(f"{program.module}\0{rules!r}".encode()).hexdigest()
    return ("saturate", text, *costs.key)
