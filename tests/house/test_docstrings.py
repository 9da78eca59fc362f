"""Examples in docstrings (`>>>`) are true."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("dialects", "lowering", "passes", "compiler", "testing")
FILES = [p for floor in FLOORS for p in sorted((ROOT / floor).rglob("*.py"))]
WITH_EXAMPLES = [p for p in FILES if ">>>" in p.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda p: str(p.relative_to(ROOT)))
def test_docstring_examples(path: Path) -> None:
    name = ".".join(("isoform", *path.relative_to(ROOT).with_suffix("").parts))
    result = doctest.testmod(import_module(name.removesuffix(".__init__")))
    assert result.failed == 0
