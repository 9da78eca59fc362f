"""Imports run one way: dialects <- lowering <- passes <- compiler <- testing, relative inside."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("dialects", "lowering", "passes", "compiler", "testing")
OUTSIDE = ("tests", "lit_tests", "docs", "examples", "benchmarks", "scripts")


def python_files(*folders: str) -> list[Path]:
    return sorted(p for folder in folders for p in (ROOT / folder).rglob("*.py"))


def imported_modules(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each imported module; a relative one from the root: `.passes.cost.costs`."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module or ""
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            below = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((node.lineno, "." + ".".join((*base, name))) for name in below)


@pytest.mark.parametrize("path", python_files(*FLOORS), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_down_only(path: Path) -> None:
    floor = FLOORS.index(path.relative_to(ROOT).parts[0])
    wrong = []
    for line, name in imported_modules(path):
        first = name.lstrip(".").split(".")[0]
        if name.startswith("."):
            if first in FLOORS and FLOORS.index(first) > floor:
                wrong.append(f"{path}:{line}: imports {name}, which is above it")
        elif first == "isoform" or first in (*FLOORS, *OUTSIDE):
            wrong.append(f"{path}:{line}: imports {name}; inside the package imports are relative")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", python_files("passes"), ids=lambda p: str(p.relative_to(ROOT)))
def test_passes_import_no_code_generator(path: Path) -> None:
    """What they may ask of one is `lowering/code_generator.py`."""
    wrong = [
        f"{path}:{line}: imports {name}; ask `Target.generator()`"
        for line, name in imported_modules(path)
        if name.startswith((".lowering.kernel_to_cpu", ".lowering.kernel_to_cuda"))
    ]
    assert not wrong, "\n".join(wrong)


ENGINES = ("substitution", "saturation")


@pytest.mark.parametrize(
    "path",
    python_files("passes/rules", *(f"passes/{engine}" for engine in ENGINES)),
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_rules_stand_below_both_engines(path: Path) -> None:
    """`passes/rules` imports no engine, and no engine imports the other."""
    above = tuple(f".passes.{engine}" for engine in ENGINES if engine != path.parent.name)
    wrong = [
        f"{path}:{line}: imports {name}; what both engines need stands in passes/rules"
        for line, name in imported_modules(path)
        if name.startswith(above)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "path",
    python_files("tests", "examples", "benchmarks", "scripts"),
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_what_is_outside_imports_isoform_by_name(path: Path) -> None:
    names = (*FLOORS, *OUTSIDE)
    wrong = [
        f"{path}:{line}: imports {name}; write `from isoform...`, and nothing of tests"
        for line, name in imported_modules(path)
        if name.startswith(".") or name.split(".")[0] in names
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "path",
    python_files("benchmarks", "scripts", "examples"),
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_what_scripts_import_exists(path: Path) -> None:
    """No test runs most benchmarks: a renamed function would be seen when somebody measures."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "isoform":
            module = import_module(str(node.module))
            for name in node.names:
                if not hasattr(module, name.name):
                    import_module(f"{node.module}.{name.name}")
