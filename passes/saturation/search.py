"""The search end to end: encode, saturate, extract, decode; nothing slower is ever returned."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.ir import Block, Operation

from ...dialects.program import Program, where
from ..cost.costs import Costs
from ..rules.floats import allowed_rules, floats_of
from ..rules.op_table import OpTable
from ..rules.rule import Rule, Var
from ..rules.rule_set import PROVED, reported_proof, rules_named
from ..search_result import Applied, Limits, Point, Rejected, SearchResult
from ..work_clock import charge, now
from .around import Surroundings
from .check import require_sound
from .cycles import Cycles
from .decode import Decoder
from .egraph import PROJECT, EGraph, ENode
from .encode import Encoded, encode, is_program
from .engine import Engine, engine_for
from .extract import Extracted, Method, extract, extract_quickly
from .limits import Caps, Watch
from .prepared_rules import Prepared, prepared
from .price import NodePrices
from .print_out import print_out
from .problem import Problem, problem_of, without_launches
from .saturate import Saturation, SaturationRun

_FIRST = 0.2
"""Of the time, what the choice after one round of merges may take where more follow."""

_SECONDS_A_NODE = 1e-4
"""To read an e-node out of egglog and price it."""

_NAMED = 5
"""Rules that a report names for one reason; the others it counts."""


@dataclass(frozen=True)
class SaturationSettings:
    """How to saturate and extract.

    Attributes:
        dialect: what op names of rules belong to.
        check: compare every e-node with its class in exact arithmetic afterwards.
        added: rules besides, whose instances are checked in any case.
        printed: keep the e-graph as IR.
        replayed: keep the run as a program of egglog.

    Units:
        extract_seconds: the most for extraction, of the time that saturation leaves.
    """

    rules: tuple[Rule, ...] = ()
    caps: Caps = field(default_factory=Caps)
    cycles: Cycles = "guarded"  # how they are kept out
    method: Method = "ilp"  # of extraction
    dialect: str = "graph"
    check: bool = False
    added: tuple[Rule, ...] = ()
    printed: bool = False
    replayed: bool = False
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
        replay: the run as a program of egglog, where the settings ask for it.
        curve: the best choice before, after one round of merges, and at the end, over e-nodes.
        around: the e-graph as a report tells of it.
        fused: whether another program was written, the best where all but products fuses.
        joined: ops of the block in whose place the program has a value that it had before.
    """

    changed: bool
    saturation: Saturation
    extracted: Extracted
    before: float  # seconds, modelled
    after: float
    made: list[tuple[Operation, ENode]]
    skipped: list[tuple[str, str]]
    seconds: dict[str, float]
    encoded: Encoded
    e_graph: Block | None
    replay: str
    curve: list[Point]
    around: Surroundings
    fused: bool = False
    joined: Sequence[Operation] = ()


class _Laps:
    """Seconds of each stage; a stage that comes again adds to its own."""

    def __init__(self) -> None:
        self.clock = time.perf_counter()
        self.seconds = dict[str, float]()

    def __call__(self, stage: str) -> None:
        before, self.clock = self.clock, time.perf_counter()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + self.clock - before


def saturate_block(
    block: Block,
    table: OpTable,
    prices: NodePrices,
    settings: SaturationSettings,
    copy: Block | None = None,
) -> BlockOutcome:
    """Saturate one block and rewrite it where that is cheaper.

    Args:
        copy: an equal block, for what is best where all but products fuses, if that is another.

    Raises:
        UserError: `settings.check` found an e-node that is not equal to its class.
    """
    lap = _Laps()
    encoded = encode(block, table)
    graph = encoded.graph
    before = block_cost(problem_of(graph, graph.roots, prices), table)
    curve = [(0.0, len(graph.nodes), before)]
    lap("encode")
    found, engine = _engine(graph, table, settings)
    lap("rules")
    # Rules are compiled once for all programs of their shapes: no program's time counts it.
    watch = Watch(settings.caps, now())
    loop = SaturationRun(encoded, engine, watch)
    saturation, first = _saturated(loop, prices, settings, lap, curve)
    graph = encoded.graph = loop.graph()
    lap("read")
    problem = problem_of(graph, graph.roots, prices)
    charge(len(graph.nodes) * _SECONDS_A_NODE)
    lap("price")
    until = _extraction_ends(settings, watch.begun, saturation.stop_reason)
    known = _again(graph, first)
    extracted = extract(problem, settings.method, settings.cycles, until, watch.spare(), known)
    lap("extract")
    _add(curve, lap, saturation, extracted)
    chosen = extracted.problem.chosen(extracted.choice)
    e_graph = print_out(encoded, table, _named(graph, chosen)) if settings.printed else None
    fused = copy is not None and _fused(copy, encoded, table, prices, problem, extracted, until)
    decoder = Decoder(encoded, table, extracted.problem, extracted.choice)
    joined = _joined(encoded, chosen, table)
    changed = bool(saturation.applied) and extracted.cost < before and decoder.run()
    lap("decode")
    return BlockOutcome(
        changed=changed,
        saturation=saturation,
        extracted=extracted,
        before=before,
        after=extracted.cost if changed else before,
        made=decoder.made,
        skipped=list(found.skipped),
        seconds=lap.seconds,
        encoded=encoded,
        e_graph=e_graph,
        replay=engine.replay() if settings.replayed else "",
        curve=curve,
        around=Surroundings(graph, table, problem, chosen),
        fused=fused,
        joined=joined,
    )


def _saturated(
    loop: SaturationRun,
    prices: NodePrices,
    settings: SaturationSettings,
    lap: _Laps,
    curve: list[Point],
) -> tuple[Saturation, Extracted | None]:
    """Saturate; where merges take part in several rounds, with the choice after the first."""
    saturation, first = loop.run(min(settings.caps.k_multi, 1)), None
    lap("saturate")
    if settings.caps.k_multi > 1 and saturation.stop_reason in ("finished", "steps"):
        first = _first(loop.graph(), prices, settings, loop.watch.begun)
        lap("first")
        _add(curve, lap, saturation, first)
        saturation = loop.run(settings.caps.k_multi - 1)
        lap("saturate")
    _check(saturation, settings)
    lap("check")
    return saturation, first


def _joined(encoded: Encoded, chosen: Mapping[int, ENode], table: OpTable) -> list[Operation]:
    """The ops whose class a rule joined with a value of the program, which was chosen."""
    found = list[Operation]()
    for op in encoded.block.ops:
        own = table.head(op), tuple(encoded.classes[v] for v in op.operands)
        nodes = (chosen.get(encoded.classes[result]) for result in op.results)
        others = (n for n in nodes if n is not None and not n.made_by and n.origin is not op)
        if op not in encoded.anchors and any(
            n.head.op != PROJECT and (n.head, n.operands) != own for n in others
        ):
            found.append(op)
    return found


def _engine(graph: EGraph, table: OpTable, settings: SaturationSettings) -> tuple[Prepared, Engine]:
    """The rules that can match, and what runs them."""
    prefix, guarded = f"{settings.dialect}.", settings.cycles == "guarded"
    found = prepared(graph, (*settings.rules, *settings.added), table, prefix)
    return found, engine_for(found.rules, found.shapes, table, prefix, guarded)


def _fused(
    copy: Block,
    encoded: Encoded,
    table: OpTable,
    prices: NodePrices,
    problem: Problem,
    extracted: Extracted,
    until: float,
) -> bool:
    """Write the best choice of all where only products take a launch; False where it is known."""
    priced = without_launches(problem, prices)
    if priced is None:
        return False
    found = extract_quickly(priced, until)
    if found.problem.chosen(found.choice) == extracted.problem.chosen(extracted.choice):
        return False
    again = encode(copy, table)
    again.graph = encoded.graph
    return Decoder(again, table, found.problem, found.choice).run()


def _check(saturation: Saturation, settings: SaturationSettings) -> None:
    """Check what the user's own rules made, or all instances, if asked. Raises UserError."""
    if not (settings.check or settings.added):
        return
    added = set(settings.added)
    unproved = {rule for rule in added if rule.proof not in PROVED}
    checked = (i for i in saturation.instances if settings.check or i.rule in added)
    require_sound(checked, unproved)


def _add(curve: list[Point], lap: _Laps, saturation: Saturation, found: Extracted) -> None:
    """Note the choice of the e-graph as it is now, where none before was better."""
    nodes = max(saturation.nodes, default=curve[0][1])
    curve.append((sum(lap.seconds.values()), nodes, min(found.cost, curve[-1][2])))


def _extraction_ends(settings: SaturationSettings, begun: float, stop_reason: str) -> float:
    """When extraction must have ended, on the clock of `begun`; at once after an interrupt."""
    if stop_reason == "interrupted":
        return 0.0
    return min(begun + settings.caps.seconds, now() + settings.extract_seconds)


def _named(graph: EGraph, chosen: Mapping[int, ENode]) -> dict[int, ENode]:
    """What is chosen, and the parts that splits of splits go on from, which it leaves out."""
    classes, found = graph.classes(), dict[int, ENode]()
    for node in chosen.values():
        for operand in node.operands:
            parts = (n for n in classes[operand] if n.head.op == PROJECT)
            taken = next((n for n in parts if n.operands[0] in chosen), None)
            if operand not in chosen and taken is not None:
                found[operand] = taken
    return {**found, **chosen}


def _first(
    graph: EGraph, prices: NodePrices, settings: SaturationSettings, begun: float
) -> Extracted:
    """The choice after one round of merges: of what comes later not all may be looked at."""
    problem, clock = problem_of(graph, graph.roots, prices), now()
    until = clock + max(begun + settings.caps.seconds - clock, 0.0) * _FIRST
    return extract(problem, settings.method, settings.cycles, until)


def _again(graph: EGraph, first: Extracted | None) -> list[ENode]:
    """The e-nodes of an earlier choice, if any, in the graph that came of it, leaves first."""
    if first is None:
        return []
    index = {(n.head, n.operands): n for n in graph.nodes}
    classes, found = dict[int, int](), list[ENode]()
    for klass in first.problem.order(first.choice) or ():
        node = first.problem.nodes[klass][first.choice[klass]]
        if any(c not in classes for c in node.operands):
            continue  # a split that goes on from another: its operand was not needed
        same = index[node.head, tuple(classes[c] for c in node.operands)]
        classes[klass] = same.klass
        found.append(same)
    return found


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
    better, other, table = program.clone(), program.clone(), OpTable(context)
    blocks = [one.main.body.block for one in (better, other)]
    outcome = saturate_block(blocks[0], table, NodePrices(table, costs), settled, blocks[1])
    rejected, stop = [*refused, *_rejected(outcome)], outcome.saturation.stop_reason
    if outcome.changed:
        gain = outcome.after - outcome.before
        applied = _applied(outcome, (*chosen, *settled.added), gain)
        result = SearchResult(better, stop, applied, rejected)
    else:
        result = SearchResult(program.clone(), stop, [], rejected)
    result.curve, result.matches = outcome.curve, dict(outcome.saturation.applied)
    result.alternatives = [other] if outcome.fused else []
    return result


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
    """One entry for each op that a rule made, or that a value took the place of.

    Which rule joined an op with a value, an e-graph does not tell: the entry stands for each that
    ends in a value and took part. The gain is shared equally.
    """
    known = {r.name: r for r in rules}
    made = [(known[node.made_by], op, outcome.around.of(node.klass)) for op, node in outcome.made]
    took_part = [r for r in rules if outcome.saturation.applied.get(r.name)]
    ends = [r for r in took_part if any(isinstance(t, Var) for t in r.right)] or took_part
    made += [(rule, op, []) for op in outcome.joined for rule in ends]
    share = delta / len(made) if made else 0.0
    return [
        Applied(rule.name, where(op), reported_proof(rule), share, floats_of(rule), equal=equal)
        for rule, op, equal in made
    ]
