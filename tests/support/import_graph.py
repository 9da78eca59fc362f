"""Which file of the package imports which, read from the text."""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("dialects", "lowering", "passes", "compiler", "testing")

When = Literal["at import", "when called", "for types"]


@dataclass(frozen=True)
class Import:
    """An import of one module of the package, where it stands, and when it happens."""

    module: str
    line: int
    when: When


@cache
def files() -> Mapping[str, Path]:
    """The modules of the package by name, `passes.cost`; the package itself has none."""
    paths = [ROOT / "__init__.py", *(p for f in FLOORS for p in sorted((ROOT / f).rglob("*.py")))]
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return {re.sub(r"\.?__init__$", "", n): p for n, p in zip(names, paths, strict=True)}


@cache
def imports(module: str) -> tuple[Import, ...]:
    """What a module imports of the package, inside functions too."""
    path = files()[module]
    package = path.relative_to(ROOT).parent.parts
    return tuple(
        Import(target, node.lineno, when)
        for node, when in _import_nodes(ast.parse(path.read_text(), str(path)), "at import")
        for target in _targets(node, package)
    )


def _import_nodes(node: ast.AST, when: When) -> Iterator[tuple[ast.ImportFrom, When]]:
    for child in ast.iter_child_nodes(node):
        inside: When = when
        if isinstance(child, ast.ImportFrom) and child.level:
            yield child, when
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inside = "when called"
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            inside = "for types"
        yield from _import_nodes(child, inside)


def _targets(node: ast.ImportFrom, package: tuple[str, ...]) -> Iterator[str]:
    below = package[: len(package) - node.level + 1]
    base = ".".join((*below, *([node.module] if node.module else [])))
    for alias in node.names:
        inner = f"{base}.{alias.name}".removeprefix(".")
        yield inner if inner in files() else base


@cache
def references(module: str) -> frozenset[str]:
    """Modules that a text such as `"passes.cost.costs:Costs"` names, to be imported later."""
    found: set[str] = set()
    for text in re.findall(r'"\.?((?:\w+\.)+\w+)(?::\w+)?"', files()[module].read_text()):
        if text in files():
            found.add(text)
    return frozenset(found)


def packages(module: str) -> Iterator[str]:
    """The packages that a module stands in: their `__init__` is imported with it."""
    while module:
        module = module.rpartition(".")[0]
        yield module
