"""egglog behind one class: it finds matches of patterns and closes the graph under congruence.

    (constructor V (i64) T)              class k of egraph.py, by its number
    (constructor c3 (T T i64) T)         one for each op, operand count and attribute names;
                                         an attribute is the number of its value
    (constructor part (T i64) T)         result i of an op with several
    (function dim (T i64) i64 ..)        extents (and rank) of tensors, where a guard reads them
    (function whole (i64) i64 ..)        an attribute's value, where it is a whole number
    (function item (i64 i64) i64 ..)     its entries, where it is a list of them
    (relation m5 (T .. i64 ..))          the matches of body 5: root, tensors, attributes
    (ruleset r5)                         what finds them: each body is matched by itself

Programs go in as text in small pieces: what the parser gives back holds the whole text once for
each of its nodes, so one text of a thousand facts takes gigabytes. Nothing is bound at top level,
which would slow down everything after it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.dialects.builtin import IntAttr, ShapedType
from xdsl.ir import Attribute

from ..substitution.rule import AttrValue, Rule
from .egraph import PROJECT, EGraph, ENode
from .ops import OpTable, Types
from .patterns import Bodies, Body, Left, Pattern, Shape, left_of, value_of, whole_number

if TYPE_CHECKING:
    from egglog.bindings import EGraph as Egglog

Row: TypeAlias = "tuple[int, tuple[int, ...], tuple[int, ...]]"
"""A match: class of the root, of the tensor variables, numbers of the attribute columns."""

_AT_ONCE = 4
"""Facts in one piece of text."""

_PRELUDE = """
(sort T)
(constructor V (i64) T)
(constructor part (T i64) T)
(function rank (T) i64 :merge old)
(function dim (T i64) i64 :merge old)
(function whole (i64) i64 :merge old)
(function item (i64 i64) i64 :merge old)
"""


@dataclass
class Relation:
    """Matches of one body.

    Attributes:
        wholes: attribute variables, in the order of the columns after the tensors; then the
            columns of `checks`.
    """

    name: str
    pattern: Pattern
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
    lefts: tuple[Left, ...]
    relations: dict[Pattern, list[Relation]] = field(default_factory=dict[Pattern, list[Relation]])
    numbers: dict[Attribute, int] = field(default_factory=dict[Attribute, int])
    attributes: list[Attribute] = field(default_factory=list[Attribute])
    positions: tuple[int, ...] = ()
    _facts: list[str] = field(default_factory=list[str])
    _fixed: int = 0

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
        self._facts = []

    def _run(self, text: str) -> None:
        self.egglog.run_program(*self.egglog.parse_program(text))

    # --- declarations ---

    def _constructor(self, shape: Shape | None) -> str:
        return "part" if shape is None else f"c{self.shapes.index(shape)}"

    def _declaration(self, shape: Shape) -> str:
        columns = " ".join(["T"] * shape[1] + ["i64"] * (len(shape[2]) + 1))
        return f"(constructor {self._constructor(shape)} ({columns}) T)\n"

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
        found = re.findall(r"\(dim \?\w+ (-?\d+)\)", "".join(text))
        self.positions = tuple(sorted({int(p) for p in found}))
        self._ranks = any("(rank " in line for line in text)

    _ranks: bool = False

    def number(self, attribute: Attribute) -> int:
        """The number of an attribute's value; what guards read of it becomes known."""
        known = self.numbers.get(attribute)
        if known is not None:
            return known
        number = self.numbers[attribute] = len(self.attributes)
        self.attributes.append(attribute)
        value, whole = value_of(attribute), whole_number(attribute)
        if whole is not None:
            self._facts.append(f"(set (whole {number}) {whole})")
        if isinstance(value, tuple) and all(isinstance(v, int) for v in value):
            entries = {**dict(enumerate(value)), **{k - len(value): v for k, v in enumerate(value)}}
            self._facts += [f"(set (item {number} {k}) {v})" for k, v in entries.items()]
        return number

    # --- the program ---

    def insert(self, graph: EGraph, tick: Callable[[], None]) -> None:
        """Tell egglog what is new in the graph.

        Args:
            tick: may raise; what egglog was told is then too little to match on, but nothing wrong.
        """
        for node in graph.fresh_nodes:
            self._facts.append(f"(union (V {node.klass}) {self._call(node)})")
            self._facts += self._extents(node.klass, graph.types[node.klass])
        self._facts += [f"(union (V {a}) (V {b}))" for a, b in graph.fresh_unions]
        graph.fresh_nodes, graph.fresh_unions = [], []
        self._flush(tick)

    def _call(self, node: ENode) -> str:
        operands = [f"(V {c})" for c in node.operands]
        head = node.head
        if head.op == PROJECT:
            index = head.attributes[0][1]
            assert isinstance(index, IntAttr)
            return f"(part {operands[0]} {index.data})"
        shape = (head.op, len(operands), tuple(name for name, _ in head.attributes))
        columns = [str(self.number(value)) for _, value in head.attributes]
        return f"({' '.join([self._constructor(shape), *operands, *columns, str(head.anchor)])})"

    def _extents(self, klass: int, types: Types) -> list[str]:
        if len(types) != 1 or not isinstance(types[0], ShapedType) or not self._reads_shapes:
            return []
        shape = types[0].get_shape()
        rank = len(shape)
        facts = [f"(set (rank (V {klass})) {rank})"]
        here = [p for p in self.positions if -rank <= p < rank]
        return facts + [f"(set (dim (V {klass}) {p}) {shape[p]})" for p in here]

    @property
    def _reads_shapes(self) -> bool:
        return self._ranks or bool(self.positions)

    def _flush(self, tick: Callable[[], None] = lambda: None) -> None:
        facts, self._facts = self._facts, []
        for start in range(0, len(facts), _AT_ONCE):
            tick()
            self._run(" ".join(facts[start : start + _AT_ONCE]))

    def match(self, graph: EGraph, patterns: Iterable[Pattern]) -> dict[str, list[Row]]:
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


def _relation(name: str, pattern: Pattern, body: Body) -> Relation:
    checks = tuple(value for _, value in body.checks)
    return Relation(name, pattern, tuple(body.wholes), checks, body.left_over)


def _rule_text(relation: Relation, body: Body) -> str:
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
