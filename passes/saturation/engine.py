"""egglog behind one class: it finds matches of patterns and closes the graph under congruence.

    (constructor V (i64) T)              class k of egraph.py, by its number
    (constructor c3 (T T i64) T)         one for each op, operand count and attribute names;
                                         an attribute is the number of its value
    (constructor part (T i64) T)         result i of an op with several
    (function typ (T) i64 ..)            the type of a class, by its number
    (function dim (i64 i64) i64 ..)      extents (and rank) of a type
    (function whole (i64) i64 ..)        an attribute's value, where it is a whole number
    (function item (i64 i64) i64 ..)     its entries, where it is a list of them
    (relation m5 (T .. i64 ..))          the matches of body 5: root, tensors, attributes
    (ruleset r5)                         what finds them: each body is matched by itself
    (relation n3 (i64 .. i64))           e-nodes as numbers: class, operands, attributes, anchor and
                                         type; the rules of `in` make c3 and V of them

Programs go in as tables of numbers in files, which egglog reads a hundred times as fast as text:
a fact at top level is compiled as a rule of its own.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import IntAttr, ShapedType
from xdsl.ir import Attribute

from ..rules.op_table import OpTable, Types, value_of
from ..rules.rule import AttrValue, Rule
from .egraph import PROJECT, EGraph, ENode
from .patterns import (
    Bodies,
    EGraphPattern,
    LeftPatterns,
    RuleBody,
    Shape,
    left_of,
    whole_number,
)

if TYPE_CHECKING:
    from egglog.bindings import EGraph as Egglog

Row: TypeAlias = "tuple[int, tuple[int, ...], tuple[int, ...]]"
"""A match: class of the root, of the tensor variables, numbers of the attribute columns."""

_PRELUDE = """
(sort T)
(constructor V (i64) T)
(constructor part (T i64) T)
(function typ (T) i64 :merge old)
(function rank (i64) i64 :merge old)
(function dim (i64 i64) i64 :merge old)
(function whole (i64) i64 :merge old)
(function item (i64 i64) i64 :merge old)
(ruleset in)
(relation same (i64 i64))
(rule ((same ?a ?b)) ((union (V ?a) (V ?b))) :ruleset in)
(relation npart (i64 i64 i64 i64))
(rule ((npart ?k ?a ?i ?t)) ((union (V ?k) (part (V ?a) ?i)) (set (typ (V ?k)) ?t)) :ruleset in)
"""


@dataclass
class Relation:
    """Matches of one body.

    Attributes:
        wholes: attribute variables, in the order of the columns after the tensors; then the
            columns of `checks`.
    """

    name: str
    pattern: EGraphPattern
    wholes: tuple[str, ...]
    checks: tuple[AttrValue, ...]
    left_over: tuple[str, ...]


@dataclass
class Engine:
    """One egglog e-graph with the patterns of a rule set; used for one program at a time.

    Attributes:
        lefts: the rules' left sides.
        relations: for each pattern where its matches stand.
    """

    egglog: Egglog
    shapes: tuple[Shape, ...]
    lefts: tuple[LeftPatterns, ...]
    relations: dict[EGraphPattern, list[Relation]] = field(
        default_factory=dict[EGraphPattern, list[Relation]]
    )
    numbers: dict[Attribute, int] = field(default_factory=dict[Attribute, int])
    attributes: list[Attribute] = field(default_factory=list[Attribute])
    _told: set[int] = field(default_factory=set[int])
    _rows: dict[str, list[tuple[int, ...]]] = field(
        default_factory=dict[str, "list[tuple[int, ...]]"]
    )
    _fixed: int = 0
    _places: dict[Shape, int] = field(default_factory=dict[Shape, int])

    def __post_init__(self) -> None:
        self._places = {shape: k for k, shape in enumerate(self.shapes)}

    @staticmethod
    def make(rules: Sequence[Rule], shapes: Iterable[Shape], table: OpTable, prefix: str) -> Engine:
        """An engine for a rule set and the e-node shapes that may come up."""
        from egglog.bindings import EGraph as Egglog

        engine = Engine(Egglog(), tuple(sorted(set(shapes))), tuple(map(left_of, rules)))
        engine._run(_PRELUDE)
        for shape in engine.shapes:
            engine._run(engine._declaration(shape))
        engine._compile(table, prefix)
        engine._flush()
        engine._fixed = len(engine.attributes)
        engine._run("(push)")
        return engine

    def reset(self) -> None:
        """Forget the program, keep the rules."""
        self._run("(pop) (push)")
        for attribute in self.attributes[self._fixed :]:
            del self.numbers[attribute]
        del self.attributes[self._fixed :]
        self._told, self._rows = set(), {}

    def _run(self, text: str) -> None:
        self.egglog.run_program(*self.egglog.parse_program(text))

    # --- declarations ---

    def _constructor(self, shape: Shape | None) -> str:
        return "part" if shape is None else f"c{self._places[shape]}"

    def _declaration(self, shape: Shape) -> str:
        name, count, more = self._constructor(shape), shape[1], len(shape[2]) + 1
        classes = [f"?a{k}" for k in range(count)]
        numbers = [f"?b{k}" for k in range(more)]
        call = " ".join([name, *(f"(V {a})" for a in classes), *numbers])
        return (
            f"(constructor {name} ({' '.join(['T'] * count + ['i64'] * more)}) T)\n"
            f"(relation n{name} ({' '.join(['i64'] * (count + more + 2))}))\n"
            f"(rule ((n{name} ?k {' '.join([*classes, *numbers])} ?t))"
            f" ((union (V ?k) ({call})) (set (typ (V ?k)) ?t)) :ruleset in)\n"
        )

    def _compile(self, table: OpTable, prefix: str) -> None:
        bodies = Bodies(table, prefix, self.shapes)
        patterns = dict.fromkeys(p for left in self.lefts for p in left.patterns)
        text, count = list[str](), 0
        for pattern in patterns:
            self.relations[pattern] = []
            for body in bodies.of(pattern, self._constructor, self.number):
                relation = _relation(f"m{count}", pattern, body)
                self.relations[pattern].append(relation)
                text.append(_rule_text(relation, body))
                count += 1
        for piece in text:
            self._run(piece)

    def number(self, attribute: Attribute) -> int:
        """The number of an attribute's value; what guards read of it becomes known."""
        known = self.numbers.get(attribute)
        if known is not None:
            return known
        number = self.numbers[attribute] = len(self.attributes)
        self.attributes.append(attribute)
        value, whole = value_of(attribute), whole_number(attribute)
        if whole is not None:
            self._row("whole", number, whole)
        if isinstance(value, tuple) and all(isinstance(v, int) for v in value):
            self._entries("item", number, value)
        return number

    def _type(self, number: int, types: Types) -> None:
        """Make known what guards read of a type."""
        if len(types) == 1 and isinstance(types[0], ShapedType) and number not in self._told:
            self._told.add(number)
            shape = types[0].get_shape()
            self._row("rank", number, len(shape))
            self._entries("dim", number, shape)

    def _entries(self, name: str, number: int, entries: Sequence[int]) -> None:
        """The entries of a list by their positions, from the front and from the end."""
        for k, entry in enumerate(entries):
            self._row(name, number, k, entry)
            self._row(name, number, k - len(entries), entry)

    def _row(self, name: str, *numbers: int) -> None:
        self._rows.setdefault(name, []).append(numbers)

    # --- the program ---

    def insert(self, graph: EGraph) -> None:
        """Tell egglog what is new in the graph."""
        for node in graph.fresh_nodes:
            self._type(graph.kind[node.klass], graph.types[node.klass])
            self._insert(node, graph.kind[node.klass])
        for pair in graph.fresh_unions:
            self._row("same", *pair)
        graph.fresh_nodes, graph.fresh_unions = [], []
        self._flush()

    def _insert(self, node: ENode, type_: int) -> None:
        head = node.head
        if head.op == PROJECT:
            index = head.attributes[0][1]
            assert isinstance(index, IntAttr)
            self._row("npart", node.klass, *node.operands, index.data, type_)
            return
        shape = (head.op, len(node.operands), tuple(name for name, _ in head.attributes))
        numbers = [self.number(value) for _, value in head.attributes]
        name = f"n{self._constructor(shape)}"
        self._row(name, node.klass, *node.operands, *numbers, head.anchor, type_)

    def _flush(self) -> None:
        rows, self._rows = self._rows, {}
        with tempfile.TemporaryDirectory() as folder:
            for name, table in rows.items():
                path = Path(folder) / name
                path.write_text("".join("\t".join(map(str, row)) + "\n" for row in table))
                self._run(f'(input {name} "{path.as_posix()}")')
        self._run("(run in 1)")

    def match(self, graph: EGraph, patterns: Iterable[EGraphPattern]) -> dict[str, list[Row]]:
        """The matches of patterns by their relation, all that ever were; joins classes.

        The graph takes over the classes that congruence joined.
        """
        relations = [r for pattern in patterns for r in self.relations[pattern]]
        self._run(" ".join(f"(run r{r.name} 1)" for r in relations))
        functions = self.egglog.freeze().functions
        numbers = self._classes(graph, functions["V"])
        rows = dict[str, list[Row]]()
        whole = self.egglog.value_to_i64
        for relation in relations:
            last = 1 + len(relation.pattern.tensors)
            found = list[Row]()
            for row in functions[relation.name].rows:
                inputs = row.inputs
                tensors = tuple(numbers[v] for v in inputs[1:last])
                found.append((numbers[inputs[0]], tensors, tuple(map(whole, inputs[last:]))))
            rows[relation.name] = sorted(set(found))
        return rows

    def _classes(self, graph: EGraph, function: Any) -> dict[Any, int]:
        """The number of each of egglog's classes."""
        groups = dict[Any, list[int]]()
        for row in function.rows:
            groups.setdefault(row.output, []).append(self.egglog.value_to_i64(row.inputs[0]))
        graph.congruent(sorted(sorted(group) for group in groups.values() if len(group) > 1))
        return {value: graph.find(group[0]) for value, group in groups.items()}


def _relation(name: str, pattern: EGraphPattern, body: RuleBody) -> Relation:
    checks = tuple(value for _, value in body.checks)
    return Relation(name, pattern, tuple(body.wholes), checks, body.left_over)


def _rule_text(relation: Relation, body: RuleBody) -> str:
    columns = [f"?{v}" for v in relation.pattern.tensors]
    columns += [*body.wholes.values(), *(column for column, _ in body.checks)]
    sorts = " ".join(
        ["T"] * (1 + len(relation.pattern.tensors))
        + ["i64"] * (len(columns) - len(relation.pattern.tensors))
    )
    return (
        f"(relation {relation.name} ({sorts}))\n(ruleset r{relation.name})\n"
        f"(rule ({' '.join(body.facts)}) (({' '.join([relation.name, body.root, *columns])})) "
        f":ruleset r{relation.name})\n"
    )


class _Cache(threading.local):
    """The last engine of a thread: registering rules is the dear part. egglog 13 is not shared."""

    def __init__(self) -> None:
        self.key: object = None
        self.engine: Engine | None = None


_CACHE = _Cache()


def engine_for(
    rules: Sequence[Rule], shapes: Iterable[Shape], table: OpTable, prefix: str
) -> Engine:
    """An engine for these rules, the one of the last call where it fits."""
    rules, wanted = tuple(rules), set(shapes)
    engine = _CACHE.engine
    if engine is not None and _CACHE.key == (rules, prefix) and wanted <= set(engine.shapes):
        engine.reset()
        return engine
    if engine is not None and _CACHE.key == (rules, prefix):
        wanted |= set(engine.shapes)
    _CACHE.engine = Engine.make(rules, wanted, table, prefix)
    _CACHE.key = (rules, prefix)
    return _CACHE.engine
