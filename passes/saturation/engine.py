"""egglog behind one class: commands and rows in, counts, questions and e-graphs out.

Registering rules takes longest, so engines are kept by rule set and reset for the next program.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..rules.op_table import OpTable
from ..rules.rule import Rule
from .egraph import LEAF, EGraph
from .encoding import PROGRAM, Encoding, Row, Shape
from .rule_program import RuleProgram

if TYPE_CHECKING:
    from egglog.bindings import EGraph as Egglog

_MAX_ENGINES = 4
_MAX_SHOWN = 100
_NODES = ("in-", "leaf", "light", "same")  # relations whose rows become e-nodes
ANALYSIS = "(run-schedule (saturate (run analysis)))"


@dataclass
class Engine:
    """One egglog e-graph with the rules of a set; used for one program at a time.

    Attributes:
        log: what was given and run since the rules were registered.
    """

    program: RuleProgram
    egglog: Egglog
    log: list[str | Mapping[str, Sequence[Row]]] = field(
        default_factory=list["str | Mapping[str, Sequence[Row]]"]
    )
    _depth: int = 0
    _leaves: int = 0
    _counted: tuple[str, ...] = ()
    _size: int | None = None

    @staticmethod
    def make(
        rules: Sequence[Rule],
        shapes: Iterable[Shape],
        table: OpTable,
        prefix: str,
        guarded: bool = True,
    ) -> Engine:
        """An engine for a rule set and the e-node shapes that may come up."""
        from egglog.bindings import EGraph as Egglog

        encoding = Encoding(tuple(sorted(set(shapes))))
        program = RuleProgram(tuple(rules), table, prefix, encoding, guarded)
        engine = Engine(program, Egglog())
        encoding.fix()
        for command in engine.program.commands:  # a text is copied into every span of its commands
            engine._execute(command)
        engine._counted = ("part", *(encoding.constructor(s) for s in encoding.shapes))
        engine._push()
        return engine

    def reset(self) -> None:
        """Forget the program, keep the rules."""
        self._execute(" ".join(["(pop)"] * self._depth))
        self._depth = 0
        self._push()
        self.program.encoding.forget()
        self.log, self._leaves, self._size = [], 0, None

    def _execute(self, text: str) -> list[Any]:
        return self.egglog.run_program(*self.egglog.parse_program(text))

    def _push(self) -> None:
        self._execute("(push)")
        self._depth += 1

    # --- in ---

    def insert(self, graph: EGraph) -> None:
        """Give a program to egglog."""
        rows, row = dict[str, list[Row]](), self.program.encoding.row
        for node in graph.nodes:
            klass = node.klass
            types, level = graph.types[klass], graph.level[klass]
            if node.head.op == LEAF:
                kind = self.program.encoding.type(types)
                rows.setdefault("leaf", []).append((klass, kind, level))
                self._leaves += 1
            else:
                name, cells = row(node.head, klass, node.operands, types, level, PROGRAM)
                rows.setdefault(name, []).append(cells)
        rows["light"] = [(k,) for k, light in enumerate(graph.weights) if light]
        rows["same"] = graph.same
        self.give(rows)

    def give(self, rows: Mapping[str, Sequence[Row]]) -> None:
        """Add rows to relations; those of e-nodes become e-nodes."""
        with tempfile.TemporaryDirectory() as folder:
            for name, table in rows.items():
                path = Path(folder) / name
                path.write_text("".join("\t".join(map(str, row)) + "\n" for row in table))
                self._execute(f'(input {name} "{path.as_posix()}")')
        self.log.append(rows)
        if any(name.startswith(_NODES) for name in rows):
            self.run("(run in 1)", ANALYSIS)

    def run(self, *commands: str) -> tuple[bool, dict[str, int]]:
        """Run rulesets: whether anything changed, and the new matches of each rule by its name."""
        changed, matches = False, dict[str, int]()
        for output in self._execute(" ".join(commands)) if commands else ():
            changed = changed or output.report.updated
            for name, count in sorted(output.report.num_matches_per_rule.items()):
                matches[name] = matches.get(name, 0) + count
        self.log += commands
        if changed:
            self._size = None
        return changed, matches

    def tried(self, command: str, most: int) -> tuple[bool, dict[str, int]] | None:
        """As `run`; undone, and None, where there are more than so many e-nodes afterwards."""
        self._push()
        done = self.run(command)
        if self.size() <= most:
            return done
        self._execute("(pop)")
        self._depth -= 1
        self.log.pop()
        self._size = None
        return None

    # --- out ---

    def replay(self) -> str:
        """The run as a program of egglog alone, a command a line; answers stand in it as rows."""
        encoding, lines = self.program.encoding, list[str]()
        for number, attribute in enumerate(encoding.attributes):
            lines.append(f"; attribute {number}: {str(attribute)[:_MAX_SHOWN]}")
        for number, types in enumerate(encoding.types):
            lines.append(f"; type {number}: {', '.join(map(str, types))}")
        for number, rule in enumerate(m.rule.name for m in self.program.members):
            lines.append(f"; rule {number}: {rule}")
        lines += self.program.commands
        for position, entry in enumerate(self.log):
            if isinstance(entry, str):
                lines.append(entry)
                continue
            rows = (f"({' '.join(map(str, (n, *r)))})" for n, table in entry.items() for r in table)
            lines.append(f"(ruleset given-{position})")
            lines.append(f"(rule () ({' '.join(rows)}) :ruleset given-{position})")
            lines.append(f"(run given-{position} 1)")
        return "\n".join(line.replace("\n", " ") for line in lines) + "\n"

    def sizes(self) -> dict[str, int]:
        """Rows of each table."""
        return dict(self._execute("(print-size)")[0].sizes)

    def size(self) -> int:
        """How many e-nodes there are."""
        if self._size is None:
            sizes = self.sizes()
            self._size = self._leaves + sum(sizes[name] for name in self._counted)
        return self._size

    def drain(self, relation: str) -> list[Row]:
        """The rows of a relation of numbers that came about since the last call."""
        (output,) = self._execute(f"(print-function {relation} 100000000 :mode csv)")
        self.run("(run read 1)")
        rows = (line.split(",") for line in str(output).splitlines())
        return [tuple(map(int, cells[1:-1])) for cells in rows]

    def freeze(self) -> Mapping[str, Any]:
        """All tables as they are."""
        return self.egglog.freeze().functions

    def whole(self, value: Any) -> int:
        """A number of a frozen table."""
        return self.egglog.value_to_i64(value)


class _Cache(threading.local):
    """The engines of a thread, the last used at the end: egglog 13 is not shared."""

    def __init__(self) -> None:
        self.engines: dict[object, Engine] = {}


_CACHE = _Cache()


def engine_for(
    rules: Sequence[Rule],
    shapes: Iterable[Shape],
    table: OpTable,
    prefix: str,
    guarded: bool = True,
) -> Engine:
    """An engine for these rules, the one that was made for them where it fits."""
    key, wanted = (tuple(rules), prefix, guarded), set(shapes)
    engine = _CACHE.engines.pop(key, None)
    if engine is not None and wanted <= set(engine.program.encoding.shapes):
        engine.reset()
        engine.program.table = table
    else:
        wanted |= set(engine.program.encoding.shapes) if engine is not None else set()
        engine = Engine.make(rules, wanted, table, prefix, guarded)
    _CACHE.engines[key] = engine
    while len(_CACHE.engines) > _MAX_ENGINES:
        del _CACHE.engines[next(iter(_CACHE.engines))]
    return engine
