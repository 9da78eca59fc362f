"""What decides whether a program is accepted, measured or left out stands in passes/margins.py."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from isoform.passes.margins import Acceptance, Measuring, Pruning

ROOT = Path(__file__).resolve().parents[2]
DECIDES = re.compile(r"MARGIN|NOISE$|WORTH|AS_FAST|HOPELESS|LEAST_(GAIN|SHARE|SAVED)")


def numbers_that_decide(text: str) -> list[str]:
    """Names of numbers of a module that say how much faster is faster."""
    found: list[str] = []
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = [name.id for t in targets for name in ast.walk(t) if isinstance(name, ast.Name)]
        found += [name for name in names if DECIDES.search(name)]
    return found


@pytest.mark.parametrize("folder", ["passes", "compiler", "lowering"])
def test_margins_stand_in_one_file(folder: str) -> None:
    files = [file for file in sorted((ROOT / folder).rglob("*.py")) if file.name != "margins.py"]
    found = {str(file): names for file in files if (names := numbers_that_decide(file.read_text()))}
    assert not found, f"move them to passes/margins.py, each with its reason: {found}"


def test_a_margin_elsewhere_is_found() -> None:
    assert numbers_that_decide("MARGIN, OTHER = 0.97, 2\nROUNDS = 3\n") == ["MARGIN"]


@pytest.mark.parametrize("kind", [Acceptance, Measuring, Pruning])
def test_every_margin_has_its_reason(kind: type) -> None:
    attributes = str(kind.__doc__).partition("Attributes:")[2]
    lines = re.findall(r"^ {8}(\w[\w, ]*):", attributes, re.MULTILINE)
    named = {name for line in lines for name in line.split(", ")}
    assert named == {field.name for field in fields(kind)}
