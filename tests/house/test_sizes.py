"""Files and functions stay short enough to read at one sitting."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("dialects", "lowering", "passes", "compiler", "testing", "tests", "examples", "scripts")
FILE_LINES = 600
FUNCTION_LINES = 60

FILES = sorted(p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    lines = text.count("\n")
    assert lines <= FILE_LINES, f"{path}: {lines} lines, split it by subject"
    long = [
        f"{path}:{node.lineno}: {node.name} has {length(node)} lines of code"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and length(node) > FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function without its docstring."""
    last = function.end_lineno or function.lineno
    first = function.body[0]
    has_docstring = ast.get_docstring(function) is not None
    docstring = (first.end_lineno or 0) - first.lineno + 1 if has_docstring else 0
    return last - function.lineno + 1 - docstring
