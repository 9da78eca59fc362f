"""The dialects' documents are up to date with the sources that they are made from."""

import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def script(name: str) -> Any:
    spec = util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_derivation_rules_is_up_to_date() -> None:
    table = script("rule_table")
    hint = "run: python scripts/rule_table.py --write"
    assert table.rule_page() == table.DOCUMENT.read_text(), hint


def test_the_op_table_is_up_to_date() -> None:
    op_table = script("op_table")
    document = op_table.DOCUMENT.read_text()
    assert op_table.insert(document) == document, "run: python scripts/op_table.py --write"


def test_the_first_frontend_is_the_example() -> None:
    example = (ROOT / "examples" / "frontend.py").read_text()
    assert example in (ROOT / "docs" / "first-frontend.md").read_text()


def test_the_example_runs() -> None:
    command = [sys.executable, str(ROOT / "examples" / "frontend.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "graph.softmax" in run.stdout
