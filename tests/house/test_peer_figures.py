"""Figures against another runtime carry the command that gives it the user's own file."""

import re
import shlex
from pathlib import Path

import pytest

from isoform.compiler.cli import parse_arguments
from isoform.compiler.peers import PEERS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
PEER = re.compile(r"onnxruntime|OpenVINO|openvino|torch\.compile|ncnn")
COMMAND = re.compile(r"isoform bench [^`\n#]+")


def tables(text: str) -> list[tuple[str, str, str]]:
    """Head and first row of each table with what stands before it, from the last heading on."""
    found: list[tuple[str, str, str]] = []
    lines, since = text.splitlines(), 0
    for k, line in enumerate(lines):
        if line.startswith("#"):
            since = k
        starts = line.startswith("|") and (k == 0 or not lines[k - 1].startswith("|"))
        if starts:
            found.append((line, lines[k + 2], "\n".join(lines[since:k])))
    return found


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def peer_tables() -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for page in PAGES:
        for head, row, before in tables(page.read_text()):
            cells = zip(cells_of(head), cells_of(row), strict=True)
            if any(PEER.match(name) and cell[:1].isdigit() for name, cell in cells):
                found.append((page.name, head, before))
    return found


@pytest.mark.parametrize(("page", "head", "before"), peer_tables(), ids=lambda v: str(v)[:40])
def test_a_table_with_another_runtime_says_what_it_ran(page: str, head: str, before: str) -> None:
    says = COMMAND.search(before) or "re-export" in f"{before}{head}".lower()
    assert says or "isoform's export" in before, f"{page}: {head}"


def test_there_are_such_tables() -> None:
    assert len(peer_tables()) >= 5
    assert tables("# a\n\ntext\n\n| b |\n|---|\n| c |\n") == [("| b |", "| c |", "# a\n\ntext\n")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_bench_commands_of_the_documents_are_commands(page: Path) -> None:
    for text in COMMAND.findall(page.read_text()):
        parsed = parse_arguments(shlex.split(text)[1:])
        for spec in parsed.against.split(",") if parsed.against else ():
            assert spec.partition(":")[0] in PEERS, text
