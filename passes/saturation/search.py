"""The search end to end: encode, saturate, extract, decode; nothing slower is ever returned."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.ir import Block, Operation

from ...dialects.errors import UserError
from ...dialects.program import Program, where
from ..cost import Costs
from ..rules.constants import steps_taken
from ..rules.floats import allowed_rules, floats_of
from ..rules.op_table import RESULTS, OpTable
from ..rules.rule import CONSTANTS, Node, Rule, Term, Var, subterms
from ..rules.rule_set import reported_proof, rules_named
from ..search_result import Applied, Limits, Rejected, SearchResult
from .apply import InstanceApplier
from .check import require_sound
from .decode import Decoder
from .egraph import PROJECT, EGraph, ENode
from .encode import Encoded, encode, is_program
from .engine import engine_for
from .extract import Extracted, Method, extract
from .limits import Caps, Watch
from .match import Cycles
from .patterns import Shape, without_names
from .price import NodePrices
from .print_out import print_out
from .problem import Problem, problem_of
from .saturate import Saturation, SaturationRun

_FIRST = 0.2
"""Of the time, what the choice after one round of merges may take where more follow."""

_NAMED = 5
"""Rules that a report names for one reason; the others it counts."""


@dataclass(frozen=True)
class SaturationSettings:
    """How to saturate and extract.

    Attributes:
        dialect: what op names of rules belong to.
        check: compare every e-node with its class in exact arithmetic afterwards.
        printed: keep the e-graph as IR.

    Units:
        extract_seconds: the most for extraction, of the time that saturation leaves.
    """

    rules: tuple[Rule, ...] = ()
    caps: Caps = field(default_factory=Caps)
    cycles: Cycles = "guarded"
    method: Method = "ilp"
    dialect: str = "graph"
    check: bool = False
    printed: bool = False
    extract_seconds: float = math.inf


@dataclass
class BlockOutcome:
    """What was done to one block.

    Attributes:
        changed: whether the block was rewritten.
        made: the new ops that rules made, with their e-nodes.
        skipped: rules that cannot take part, with the reason.
        seconds: by stage.
        e_graph: all of it, in the dialect `equivalence`, where the settings ask for it.
    """

    changed: bool
    saturation: Saturation
    extracted: Extracted
    before: float
    after: float
    made: list[tuple[Operation, ENode]]
    skipped: list[tuple[str, str]]
    seconds: dict[str, float]
    encoded: Encoded
    e_graph: Block | None


def usable(
    rules: Sequence[Rule], table: OpTable, prefix: str
) -> tuple[list[Rule], list[tuple[str, str]]]:
    """The rules that can take part, and why the others cannot."""
    kept, skipped = dict[object, Rule](), list[tuple[str, str]]()
    for rule in rules:
        reason = _unusable(rule, table, prefix)
        first = rule if reason else kept.setdefault(without_names(rule), rule)
        if first is not rule:
            reason = f"it says what '{first.name}' says"
        if reason:
            skipped.append((rule.name, reason))
    return list(kept.values()), skipped


def _unusable(rule: Rule, table: OpTable, prefix: str) -> str:
    if rule.proof == "refuted":
        return "it is refuted"
    if any(isinstance(term, Var) for term in rule.left):
        return "its left side is a bare variable"
    for term in subterms(rule.left):
        if isinstance(term, Node) and term.op in CONSTANTS:
            return "its left side asks for the value of a weight"
    for term in (*subterms(rule.left), *subterms(rule.right)):
        if isinstance(term, Node) and term.op not in CONSTANTS:
            try:
                table.complete(prefix + term.op, {})
            except UserError as error:
                return error.one_line()
    return ""


def _shapes(graph: EGraph, rules: Sequence[Rule], table: OpTable, prefix: str) -> set[Shape]:
    """Every e-node shape that the program has or a rule can make."""
    shapes = {
        (n.head.op, len(n.operands), tuple(name for name, _ in n.head.attributes))
        for n in graph.nodes
        if n.head.op != PROJECT
    }
    for rule in rules:
        shapes |= {s for term in subterms(rule.right) for s in _shape(term, table, prefix)}
    return shapes


def _shape(term: Term, table: OpTable, prefix: str) -> list[Shape]:
    if not isinstance(term, Node):
        return []
    if term.op in CONSTANTS:
        steps = steps_taken(term.op)
        shapes = [_shape_of(s.op, len(s.operands), s.attributes, table, prefix) for s in steps]
        return [("graph.constant", 0, (RESULTS, "data")), *shapes]
    return [_shape_of(term.op, len(term.operands), term.attributes, table, prefix)]


def _shape_of(
    name: str, operands: int, given: Sequence[tuple[str, object]], table: OpTable, prefix: str
) -> Shape:
    names = {*dict(given), *dict(table.complete(prefix + name, {}))}
    return prefix + name, operands, tuple(sorted(names))


def saturate_block(
    block: Block, table: OpTable, prices: NodePrices, settings: SaturationSettings
) -> BlockOutcome:
    """Saturate one block and rewrite it where that is cheaper.

    Raises:
        UserError: `settings.check` found an e-node that is not equal to its class.
    """
    begun = clock = time.perf_counter()
    seconds = dict[str, float]()

    def lap(stage: str) -> None:
        nonlocal clock
        now = time.perf_counter()
        seconds[stage] = seconds.get(stage, 0.0) + now - clock
        clock = now

    encoded = encode(block, table)
    graph, prefix = encoded.graph, f"{settings.dialect}."
    before = block_cost(problem_of(graph, graph.roots, prices), table)
    lap("encode")
    rules, skipped = usable(settings.rules, table, prefix)
    engine = engine_for(rules, _shapes(graph, rules, table, prefix), table, prefix)
    lap("rules")
    builder = InstanceApplier(graph, table, prefix)
    watch = Watch(graph, settings.caps, begun)
    loop, known = SaturationRun(graph, engine, builder, watch, settings.cycles), list[ENode]()
    saturation = loop.run(min(settings.caps.k_multi, 1))
    lap("saturate")
    if settings.caps.k_multi > 1 and saturation.stop_reason in ("finished", "steps"):
        known = _first(graph, prices, settings, begun)
        lap("first")
        saturation = loop.run(settings.caps.k_multi - 1)
        lap("saturate")
    if settings.check:
        require_sound(graph, saturation.instances)
        lap("check")
    problem = problem_of(graph, graph.roots, prices)
    lap("price")
    until = _extraction_ends(settings, begun, saturation.stop_reason)
    spare = max(settings.caps.mebibytes - watch.gained(), 0.0)
    known = [graph.index.get((n.head, tuple(map(graph.find, n.operands))), n) for n in known]
    extracted = extract(problem, settings.method, settings.cycles, until, spare, known)
    lap("extract")
    chosen = extracted.problem.chosen(extracted.choice)
    e_graph = print_out(encoded, table, _named(graph, chosen)) if settings.printed else None
    decoder = Decoder(encoded, table, extracted.problem, extracted.choice)
    changed = bool(saturation.applied) and extracted.cost < before and decoder.run()
    lap("decode")
    return BlockOutcome(
        changed=changed,
        saturation=saturation,
        extracted=extracted,
        before=before,
        after=extracted.cost if changed else before,
        made=decoder.made,
        skipped=skipped,
        seconds=seconds,
        encoded=encoded,
        e_graph=e_graph,
    )


def _extraction_ends(settings: SaturationSettings, begun: float, stop_reason: str) -> float:
    """When extraction must have ended, on the clock of `begun`; at once after an interrupt."""
    if stop_reason == "interrupted":
        return 0.0
    return min(begun + settings.caps.seconds, time.perf_counter() + settings.extract_seconds)


def _named(graph: EGraph, chosen: Mapping[int, ENode]) -> dict[int, ENode]:
    """What is chosen, and the parts that splits of splits go on from, which it leaves out."""
    classes, found = graph.classes(), dict[int, ENode]()
    for node in chosen.values():
        for operand in map(graph.find, node.operands):
            parts = (n for n in classes[operand] if n.head.op == PROJECT)
            taken = next((n for n in parts if graph.find(n.operands[0]) in chosen), None)
            if operand not in chosen and taken is not None:
                found[operand] = taken
    return {**found, **chosen}


def _first(
    graph: EGraph, prices: NodePrices, settings: SaturationSettings, begun: float
) -> list[ENode]:
    """The e-nodes of the choice after one round of merges: later ones may not all be looked at."""
    problem, now = problem_of(graph, graph.roots, prices), time.perf_counter()
    until = now + max(begun + settings.caps.seconds - now, 0.0) * _FIRST
    found = extract(problem, settings.method, settings.cycles, until)
    return list(found.problem.chosen(found.choice).values())


def block_cost(problem: Problem, table: OpTable) -> float:
    """What the program's own ops cost, each once; the problem is that of no rules."""
    total = list[float]()
    for klass, nodes in problem.nodes.items():
        total += [
            problem.costs[klass][k]
            for k, node in enumerate(nodes)
            if node.origin is not None and is_program(node, node.origin, table)
        ]
    return math.fsum(total)


def search(
    program: Program,
    costs: Costs,
    limits: Limits,
    *,
    rules: str | Sequence[Rule] = "default",
    settings: SaturationSettings | None = None,
    context: Context | None = None,
) -> SearchResult:
    """The best program that the rules reach by modelled cost; the input's copy if none is better.

    Args:
        rules: a rule set's name, a file, or rules.
        settings: everything but rules and seconds, which `limits` gives.
    """
    chosen = rules_named(rules) if isinstance(rules, str) else tuple(rules)
    chosen, refused = allowed_rules(chosen, limits.floats)
    given = settings or SaturationSettings()
    settled = replace(given, rules=chosen, caps=replace(given.caps, seconds=limits.seconds))
    better, table = program.clone(), OpTable(context)
    outcome = saturate_block(better.main.body.block, table, NodePrices(table, costs), settled)
    before, after = costs.program(program).seconds, costs.program(better).seconds
    rejected, stop = [*refused, *_rejected(outcome)], outcome.saturation.stop_reason
    if not outcome.changed or after >= before:
        return SearchResult(program.clone(), stop, [], rejected)
    return SearchResult(better, stop, _applied(outcome, chosen, after - before), rejected)


def _rejected(outcome: BlockOutcome) -> list[Rejected]:
    """One entry for each reason, with the rules that it kept out."""
    saturation, names = outcome.saturation, dict[str, list[str]]()
    for name, reason in outcome.skipped:
        names.setdefault(reason, []).append(name)
    for (name, reason), count in saturation.refused.items():
        names.setdefault(f"{reason} (instances)", []).append(f"{name} ({count})")
    for name, bound in saturation.aside.items():
        names.setdefault("set aside: too many matches (at most)", []).append(
            f"{name} ({bound:.0f})"
        )
    return [Rejected(_some(rules), "main", reason) for reason, rules in names.items()]


def _some(names: Sequence[str]) -> str:
    """The first few of a list, and how many more there are."""
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _applied(outcome: BlockOutcome, rules: Sequence[Rule], delta: float) -> list[Applied]:
    """One entry for each op that a rule made; the gain is shared equally."""
    known = {r.name: r for r in rules}
    share = delta / len(outcome.made) if outcome.made else 0.0
    return [
        Applied(rule.name, where(op), reported_proof(rule), share, floats_of(rule))
        for op, node in outcome.made
        for rule in (known[node.made_by],)
    ]
