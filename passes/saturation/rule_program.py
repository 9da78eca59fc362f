"""Rules as an egglog program: left sides ask, answers are tables, right sides do.

    (function m3 (T .. i64 ..) i64 ..)     the matches of a left side: outputs, tensor variables,
                                           then what an answer depends on: types, attributes;
                                           its value is the level of the op that is replaced
    (ruleset ask-m3)                       what finds them; `ask` is all of these together
    (relation want (i64 i64 ..))           questions: the table's number, types and attributes
    (relation answer-7 (i64 ..))           answers to rule 7: the question's numbers, then types and
                                           attributes of the e-nodes to make; none where it does not
                                           apply
    (ruleset do-7)                         matches joined with answers: makes the right side

    (rule ((= ?e1 (graph.relu-1 ?v0)) (= ?te1 (typ ?e1)) (= ?tv0 (typ ?v0)) (= ?l (level ?e1)))
          ((set (m3 ?e1 ?v0 ?tv0 ?te1) ?l)) :ruleset ask-m3)

A rule with several outputs joins the tables of its parts (`merge-m9`), guarded in two variants that
cannot close a cycle: what is joined are weights alone, or all outputs stand at one level of the
program. Merges that apply to their own result merge whole groups (repeated_merges.py): `pair-m9`
names two classes to merge and the number of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product

from ..rules.op_table import OpTable
from ..rules.rule import AttrValue, Node, Rule, Term, Var, subterms
from .encode import CHAINED
from .encoding import Encoding
from .left_sides import Bodies, EGraphPattern, LeftPatterns, RuleBody, left_of, value_renamed
from .repeated_merges import RepeatedMerge, is_symmetric, repeated_merge_of
from .right_sides import RightSide, Step, right_side_of


@dataclass(frozen=True, eq=False)
class MatchTable:
    """The matches of a left side, by egglog's variables.

    Attributes:
        types: of the tensor variables, then of the outputs; `columns` the attributes. Both are the
            question.
        wholes: how many of the columns are attribute variables; the others are checked.
        terms: the ops of the pattern.
        parts: of several outputs the tables that are joined, and for each number of the question
            the part and the slot in its question that it is.
    """

    number: int
    roots: tuple[str, ...]
    tensors: tuple[str, ...]
    types: tuple[str, ...]
    columns: tuple[str, ...]
    wholes: int
    pattern: EGraphPattern | None = None
    terms: tuple[Term, ...] = ()
    parts: tuple[MatchTable, ...] = ()
    sources: tuple[tuple[int, int], ...] = ()

    @property
    def name(self) -> str:
        return f"m{self.number}"

    @property
    def question(self) -> tuple[str, ...]:
        return (*self.types, *self.columns)

    def call(self, name: str, *more: str) -> str:
        """The row of a match in this table, or in another of the same columns."""
        return f"({' '.join([name, *self.roots, *self.tensors, *self.question, *more])})"

    def sorts(self, more: int = 0) -> str:
        """The sorts of the columns."""
        classes = len(self.roots) + len(self.tensors)
        return " ".join(["T"] * classes + ["i64"] * (len(self.question) + more))


@dataclass(frozen=True, eq=False)
class RuleOnTable:
    """A rule on one table of matches of its left side.

    Attributes:
        attributes: the rule's names of the table's attribute columns.
        checks: what the columns after them have to be.
        joined: tensor variables that the right side concatenates.
        shared: variables that several outputs have, by the rule's names.
        repeated: how the rule applies to its own result.
    """

    number: int  # of the rule
    left: LeftPatterns
    table: MatchTable
    attributes: tuple[str, ...]
    checks: tuple[AttrValue, ...]
    side: RightSide  # the right side
    joined: frozenset[str]
    repeated: RepeatedMerge | None

    @property
    def rule(self) -> Rule:
        return self.left.rule

    @property
    def answers(self) -> str:
        return f"answer-{self.number}"

    @property
    def tensors(self) -> tuple[str, ...]:
        return self.side.tensors

    @property
    def adds(self) -> int:
        """The most e-nodes that an instance adds."""
        return len(self.side.steps)


@dataclass
class RuleProgram:
    """A rule set as egglog commands, and what its tables mean.

    Attributes:
        guarded: whether rules with several outputs are kept from closing cycles.
        of_table: the rules that have a table's left side, by its number.
    """

    rules: tuple[Rule, ...]
    table: OpTable  # how rules name ops
    prefix: str  # of the ops a rule names
    encoding: Encoding  # of types, attributes and e-nodes
    guarded: bool = True
    tables: list[MatchTable] = field(default_factory=list[MatchTable])
    members: list[RuleOnTable] = field(default_factory=list[RuleOnTable])  # the rules, by number
    of_table: dict[int, list[RuleOnTable]] = field(default_factory=dict[int, "list[RuleOnTable]"])
    commands: list[str] = field(default_factory=list[str])
    _ask: list[str] = field(default_factory=list[str])
    _patterns: dict[EGraphPattern, list[tuple[MatchTable, RuleBody]]] = field(
        default_factory=dict[EGraphPattern, "list[tuple[MatchTable, RuleBody]]"]
    )

    def __post_init__(self) -> None:
        bodies = Bodies(self.table, self.prefix, self.encoding)
        for left in map(left_of, self.rules):
            for pattern in left.patterns:
                if pattern not in self._patterns:
                    found = [(self._single(pattern, body), body) for body in bodies.of(pattern)]
                    self._patterns[pattern] = found
            for parts in product(*(self._patterns[p] for p in left.patterns)):
                self._member(left, parts)
        width = max((len(t.question) for t in self.tables), default=0)
        self.commands = [
            *self.encoding.declarations(),
            *self._wanted(width),
            *(c for table in self.tables for c in _declared(table, width)),
            *(c for m in self.members if m.repeated is not None for c in _grouped(m.table, width)),
            *self._ask,
            *(c for member in self.members for c in self._do(member)),
            *self._together(),
        ]

    # --- asking ---

    def _single(self, pattern: EGraphPattern, body: RuleBody) -> MatchTable:
        tensors = tuple(f"?{v}" for v in pattern.tensors)
        columns = (*body.wholes.values(), *(column for column, _ in body.checks))
        types = tuple(f"?t{v[1:]}" for v in (*tensors, body.root))
        terms = tuple(t for t in subterms((pattern.term,)) if not isinstance(t, Var))
        number = len(self.tables)
        table = MatchTable(
            number, (body.root,), tensors, types, columns, len(body.wholes), pattern, terms
        )
        self.tables.append(table)
        pairs = zip(types, (*tensors, body.root), strict=True)
        facts = [*body.facts, *(f"(= {t} (typ {v}))" for t, v in pairs)]
        facts.append(f"(= ?l (level {body.root}))")
        self._rule(facts, f"(set {table.call(table.name)} ?l)", f"ask-{table.name}", number)
        return table

    def _member(self, left: LeftPatterns, parts: Sequence[tuple[MatchTable, RuleBody]]) -> None:
        """A rule on a table of its left side, which is made where it joins others."""
        tables = [table for table, _ in parts]
        wholes = [
            names[s] for (_, b), names in zip(parts, left.names, strict=True) for s in b.wholes
        ]
        checks = tuple(
            value_renamed(value, names)
            for (_, body), names in zip(parts, left.names, strict=True)
            for _, value in body.checks
        )
        if len(tables) == 1:
            table, names = tables[0], left.names[0]
            assert table.pattern is not None
            tensors = [names[v] for v in table.pattern.tensors]
        else:
            wholes = list(dict.fromkeys(wholes))
            tensors = list(
                dict.fromkeys(
                    names[v]
                    for pattern, names in zip(left.patterns, left.names, strict=True)
                    for v in pattern.tensors
                )
            )
            table = self._joined(left, [b for _, b in parts], tables, tensors, wholes)
        side = right_side_of(left.rule, tensors, self.table, self.prefix)
        joined, repeated = frozenset(_concatenated(left.rule)), repeated_merge_of(left)
        number = len(self.members)
        self.members.append(
            RuleOnTable(number, left, table, tuple(wholes), checks, side, joined, repeated)
        )
        self.of_table.setdefault(table.number, []).append(self.members[-1])
        if len(tables) > 1:
            self._join(self.members[-1])

    def _joined(
        self,
        left: LeftPatterns,
        bodies: Sequence[RuleBody],
        parts: Sequence[MatchTable],
        tensors: Sequence[str],
        wholes: Sequence[str],
    ) -> MatchTable:
        slots = dict[str, tuple[int, int]]()
        for k, (part, names, body) in enumerate(zip(parts, left.names, bodies, strict=True)):
            assert part.pattern is not None
            count = len(part.tensors)
            for i, v in enumerate(part.pattern.tensors):
                slots.setdefault(f"?t_{names[v]}", (k, i))
            slots[f"?r{k}"] = (k, count)
            for i, s in enumerate(body.wholes):
                slots.setdefault(f"?a_{names[s]}", (k, count + 1 + i))
            for i in range(len(body.checks)):
                slots[f"?c{k}_{i}"] = (k, count + 1 + part.wholes + i)
        checks = [name for name in slots if name.startswith("?c")]
        types = (*(f"?t_{v}" for v in tensors), *(f"?r{k}" for k in range(len(parts))))
        columns = (*(f"?a_{s}" for s in wholes), *checks)
        table = MatchTable(
            len(self.tables),
            tuple(f"?e{k}" for k in range(len(parts))),
            tuple(f"?x_{v}" for v in tensors),
            types,
            columns,
            len(wholes),
            parts=tuple(parts),
            sources=tuple(slots[name] for name in (*types, *columns)),
        )
        self.tables.append(table)
        return table

    def _join(self, member: RuleOnTable) -> None:
        """The rules that find the matches of several outputs, and of merges of groups."""
        table, left = member.table, member.left
        count = len(table.parts)
        facts = [self._part(member, k) for k in range(count)]
        facts += [f"(!= ?e{i} ?e{j})" for i, j in combinations(range(count), 2)]
        least = "?l0"
        for k in range(1, count):
            least = f"(min {least} ?l{k})"
        levels = [f"(= ?l{k} (level ?e{k}))" for k in range(count)]
        even = [f"(= ?l0 (level ?e{k}))" for k in range(count)]
        light = [f"(weight ?x_{v})" for v in sorted(member.joined) if v in member.tensors]
        once = ["(= ?e0 (ordering-min ?e0 ?e1))"] if is_symmetric(left) else []
        variants = [(least, levels)]
        if self.guarded:
            variants = [("?l0", even)] + ([(least, [*levels, *light])] if light else [])
        for level, guards in variants:
            into = f"(set {table.call(table.name)} {level})"
            self._rule([*facts, *guards, *once], into, f"merge-{table.name}", table.number)
        if member.repeated is None:
            return
        pair = [f"(pair-{table.name} ?a ?b ?z)", "(= ?e0 (V ?a))", "(= ?e1 (V ?b))"]
        for level, guards in variants:
            into = f"(set {table.call(f'group-{table.name}', '?z')} {level})"
            self._rule([*pair, *facts, *guards], into, "group-ask", table.number)

    def _part(self, member: RuleOnTable, k: int) -> str:
        """A match of the k-th output."""
        part, names = member.table.parts[k], member.left.names[k]
        assert part.pattern is not None
        own = [names[v] for v in part.pattern.tensors]
        wholes = [column[1:] for column in part.columns[: part.wholes]]
        columns = [f"?a_{names[s]}" for s in wholes]
        columns += [f"?c{k}_{i}" for i in range(len(part.columns) - part.wholes)]
        cells = [f"?e{k}", *(f"?x_{v}" for v in own), *(f"?t_{v}" for v in own), f"?r{k}", *columns]
        return f"(= ?q{k} ({part.name} {' '.join(cells)}))"

    def _rule(self, facts: Iterable[str], action: str, ruleset: str, table: int) -> None:
        """A rule that asks; its name says which table it fills."""
        self._ask.append(_rule(facts, [action], ruleset, f"{table} {len(self._ask)}"))

    # --- answering and doing ---

    def _wanted(self, width: int) -> Iterator[str]:
        names = " ".join(f"?w{k}" for k in range(width + 1))
        yield f"(relation want ({' '.join(['i64'] * (width + 1))}))"
        yield from ("(ruleset question)", "(ruleset read)")
        yield from ("(ruleset group-ask)", "(ruleset group-do)")
        yield "(relation made (i64))"
        yield _rule([f"(want {names})"], [f"(delete (want {names}))"], "read")
        yield _rule(["(made ?z)"], ["(delete (made ?z))"], "read")

    def _do(self, member: RuleOnTable) -> Iterator[str]:
        table, side = member.table, member.side
        outs = [self._out(j, step) for j, step in enumerate(side.steps)]
        cells = [*table.question, *(name for out in outs for name in out)]
        actions = list(self._actions(member, outs))
        yield f"(relation {member.answers} ({' '.join(['i64'] * len(cells))}))"
        yield f"(ruleset do-{member.number})"
        answer = f"({' '.join([member.answers, *cells])})"
        into = f"do-{member.number}", f"{member.number} do"
        yield _rule([f"(= ?l {table.call(table.name)})", answer], actions, *into)
        if member.repeated is not None:
            match = f"(= ?l {table.call(f'group-{table.name}', '?z')})"
            whole = self._slot(member, side.slots[member.repeated.whole])
            yield _rule(
                [match, answer],
                [*actions, f"(union (V ?z) {whole})", "(made ?z)"],
                "group-do",
                f"{member.number} group",
            )

    @staticmethod
    def _out(j: int, step: Step) -> list[str]:
        """The numbers of an answer that a step takes: its type and attributes, or its class."""
        if isinstance(step.term, Node) and step.shape is None:
            return [f"?k{j}"]
        names = step.shape[2] if step.shape is not None else ()
        return [f"?o{j}", *(f"?o{j}_{i}" for i in range(len(names)))]

    def _slot(self, member: RuleOnTable, slot: int) -> str:
        count = len(member.tensors)
        return member.table.tensors[slot] if slot < count else f"?n{slot - count}"

    def _actions(self, member: RuleOnTable, outs: Sequence[Sequence[str]]) -> Iterator[str]:
        for j, (step, out) in enumerate(zip(member.side.steps, outs, strict=True)):
            if isinstance(step.term, Node) and step.shape is None:
                yield f"(let ?n{j} (V {out[0]}))"
                continue
            operands = [self._slot(member, p) for p in step.operands]
            index = [] if isinstance(step.term, Node) else [str(step.term.index)]
            name = self.encoding.constructor(step.shape)
            call = " ".join([*operands, *index, *out[1:]])
            yield f"(let ?n{j} ({name} {call}))"
            yield f"(set (typ ?n{j}) {out[0]})"
            yield f"(set (level ?n{j}) ?l)"
            yield f"(set (by-{name} {call}) {member.number})"
            if not operands:
                yield f"(weight ?n{j})"
        for root, slot in zip(member.table.roots, member.side.roots, strict=True):
            yield f"(union {root} {self._slot(member, slot)})"

    def _together(self) -> Iterator[str]:
        """Rulesets that are run at once where all of them fit."""
        parts = {
            "ask": [f"ask-{t.name}" for t in self.tables if not t.parts],
            "do": [f"do-{m.number}" for m in self.members],
        }
        for name, rulesets in parts.items():
            yield f"(unstable-combined-ruleset {' '.join([name, *rulesets])})"


def _declared(table: MatchTable, width: int) -> Iterator[str]:
    """The table of a left side, and the rule that states its questions."""
    yield f"(function {table.name} ({table.sorts()}) i64 :merge old)"
    yield f"(ruleset {'merge' if table.parts else 'ask'}-{table.name})"
    yield _question(table, table.call(table.name), width)


def _grouped(table: MatchTable, width: int) -> Iterator[str]:
    """What merges of groups have besides: pairs, and the matches that they are."""
    yield f"(relation pair-{table.name} (i64 i64 i64))"
    yield f"(function group-{table.name} ({table.sorts(1)}) i64 :merge old)"
    yield _question(table, table.call(f"group-{table.name}", "?z"), width)


def _question(table: MatchTable, match: str, width: int) -> str:
    padding = ["0"] * (width - len(table.question))
    want = f"({' '.join(['want', str(table.number), *table.question, *padding])})"
    return _rule([f"(= ?l {match})"], [want], "question")


def _rule(facts: Iterable[str], actions: Iterable[str], ruleset: str, name: str = "") -> str:
    named = f' :name "{name}"' if name else ""
    return f"(rule ({' '.join(facts)}) ({' '.join(actions)}) :ruleset {ruleset}{named})"


def _concatenated(rule: Rule) -> set[str]:
    """Variables that the right side concatenates."""
    ops = {name.rpartition(".")[2] for name in CHAINED}
    return {
        operand.name
        for term in subterms(rule.right)
        if isinstance(term, Node) and term.op in ops
        for operand in term.operands
        if isinstance(operand, Var)
    }
