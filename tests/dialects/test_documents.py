"""The dialects' documents are up to date with the sources that they are made from."""

import subprocess
import sys
from importlib import util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_op_table_is_up_to_date() -> None:
    spec = util.spec_from_file_location("op_table", ROOT / "scripts" / "op_table.py")
    assert spec is not None and spec.loader is not None
    op_table = util.module_from_spec(spec)
    spec.loader.exec_module(op_table)
    document = op_table.DOCUMENT.read_text()
    assert op_table.insert(document) == document, "run: python scripts/op_table.py --write"


def test_the_first_frontend_is_the_example() -> None:
    example = (ROOT / "examples" / "frontend.py").read_text()
    assert example in (ROOT / "docs" / "first-frontend.md").read_text()


def test_the_example_runs() -> None:
    command = [sys.executable, str(ROOT / "examples" / "frontend.py")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "graph.softmax" in run.stdout
