"""The mutants of a file: each is the file with one small change that should make a test fail."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type, str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
ARITHMETIC: dict[type, str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.FloorDiv: "%",
    ast.Mod: "//",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
FUNCTIONS = {"min": "max", "max": "min", "all": "any", "any": "all"}


@dataclass(frozen=True)
class Mutant:
    """A change of one piece of a file: bytes `first` to `last` become `new`."""

    path: str
    line: int
    statement: int  # the line where the statement begins that holds it
    first: int
    last: int
    kind: str
    old: str
    new: str

    @property
    def key(self) -> str:
        """What names it in a log: it stays the same while the file does."""
        return f"{self.path}:{self.line}:{self.first} {self.kind}: {self.old} -> {self.new}"

    def applied(self, source: bytes) -> bytes:
        """The changed file."""
        return source[: self.first] + self.new.encode() + source[self.last :]


def mutants_of(path: str, source: bytes) -> list[Mutant]:
    """All mutants of a file, in the order of their places.

    No mutants are made of docstrings, annotations, error messages (what `raise` says), `assert`,
    `strict=` of zip (it asserts that lengths agree) and `if TYPE_CHECKING`: no test is owed for
    them.
    """
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr) and node.end_lineno and node.end_col_offset is not None
        first, last = starts[node.lineno - 1], starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def text_of(node: ast.AST) -> str:
        first, last = span(node)
        return source[first:last].decode()

    found: dict[tuple[int, int, str], Mutant] = {}
    for node, statement in _meaningful(tree, 1):
        for kind, at, new in _changes(node):
            first, last = span(at)
            old, text = text_of(at), new(text_of)
            if text != old:
                mutant = Mutant(
                    path, node.lineno, statement, first, last, kind, _one_line(old), text
                )
                found.setdefault((first, last, text), mutant)
    return sorted(found.values(), key=lambda m: (m.first, m.last, m.new))


def read_mutants(root: Path, path: str) -> list[Mutant]:
    """The mutants of a file of the tree."""
    return mutants_of(path, (root / path).read_bytes())


def _one_line(text: str) -> str:
    return " ".join(text.split())


Text = Callable[[ast.AST], str]
Change = tuple[str, ast.expr, Callable[[Text], str]]


def _meaningful(tree: ast.AST, statement: int) -> Iterator[tuple[ast.expr, int]]:
    """Each expression whose value some test is owed for, with the line of its statement."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "type_params", "decorator_list", "exc"):
            continue
        if isinstance(tree, ast.Assert) or (isinstance(tree, ast.keyword) and tree.arg == "strict"):
            return
        if isinstance(tree, ast.Expr) and isinstance(value, ast.Constant):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                continue
            if isinstance(child, ast.JoinedStr):  # what a message says
                continue
            line = child.lineno if isinstance(child, ast.stmt) else statement
            if isinstance(child, ast.expr):
                yield child, line
            yield from _meaningful(child, line)
            if isinstance(child, ast.If | ast.While | ast.IfExp):
                yield _Test(child.test), line
            if isinstance(child, ast.comprehension):
                yield from ((_Test(c), line) for c in child.ifs)


class _Test(ast.expr):
    """The condition of a branch, a guard or a filter."""

    def __init__(self, test: ast.expr):
        super().__init__()
        self.test = test
        ast.copy_location(self, test)


def _changes(node: ast.expr) -> Iterator[Change]:
    match node:
        case _Test():
            for value in ("True", "False"):
                yield "condition", node.test, lambda _, v=value: v
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            new = COMPARISONS[type(op)]
            yield "comparison", node, lambda text: f"({text(left)}) {new} ({text(right)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
            new = ARITHMETIC[type(op)]
            yield "arithmetic", node, lambda text: f"({text(left)}) {new} ({text(right)})"
        case ast.BoolOp(op=op, values=values):
            word = " or " if isinstance(op, ast.And) else " and "
            yield "logic", node, lambda text: word.join(f"({text(v)})" for v in values)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield "sign or not", node, lambda text: f"({text(operand)})"
        case ast.Call(func=ast.Name(id=name) as function) if name in FUNCTIONS:
            yield "function", function, lambda _: FUNCTIONS[name]
        case ast.Constant(value=bool() as value):
            yield "constant", node, lambda _: str(not value)
        case ast.Constant(value=int() | float() as value):
            yield "constant", node, lambda _: repr(value + 1)
        case ast.Dict() | ast.Set() | ast.List() | ast.Tuple():
            yield from _entries(node)
        case _:
            pass


def _entries(node: ast.Dict | ast.Set | ast.List | ast.Tuple) -> Iterator[Change]:
    """Leave an entry of a table out; exchange the values of two that follow each other."""
    if isinstance(node, ast.Tuple | ast.List) and not isinstance(node.ctx, ast.Load):
        return
    if isinstance(node, ast.Dict):
        if None in node.keys:  # a table that takes another in
            return
        keys = [k for k in node.keys if k is not None]
        values = node.values
        for a, b in zip(range(len(values)), range(1, len(values)), strict=False):
            order = [*range(len(values))]
            order[a], order[b] = b, a

            def exchanged(text: Text, order: list[int] = order) -> str:
                pairs = zip(keys, order, strict=True)
                return "{" + ", ".join(f"{text(k)}: {text(values[i])}" for k, i in pairs) + "}"

            yield "entries exchanged", node, exchanged
        return
    if len(node.elts) < 3 or isinstance(node, ast.Tuple):  # a tuple's length is its type
        return
    open_, close = ("{", "}") if isinstance(node, ast.Set) else ("[", "]")
    for left_out in range(len(node.elts)):
        kept = [e for i, e in enumerate(node.elts) if i != left_out]

        def without(text: Text, kept: list[ast.expr] = kept) -> str:
            return open_ + ", ".join(map(text, kept)) + close

        yield "entry left out", node, without
