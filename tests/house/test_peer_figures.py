"""Figures against another runtime carry the command that gives it the user's own file."""

import re
import shlex
from itertools import takewhile
from pathlib import Path

import pytest

from isoform.compiler.cli import parse_arguments
from isoform.compiler.peers.runtimes import PEERS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
PEER = re.compile(r"onnxruntime|openvino|torch|ncnn|tvm|iree|tensorrt", re.IGNORECASE)
FIGURE = re.compile(r"(?=.*[1-9])[\d.,]+(x| ms)?( \([\d.]+x\))?")  # no time is 0
COMMAND = re.compile(r"isoform bench [^`\n#]+")
SCRIPT = re.compile(r"benchmarks/\w+\.py")
# Other runtimes once ran a file that isoform had written: such figures had these marks.
MARKS = re.compile(r"re-export|‡", re.IGNORECASE)


def tables(text: str) -> list[tuple[list[str], str]]:
    """Lines of each table with what stands before it, from the last heading on."""
    found: list[tuple[list[str], str]] = []
    lines, since = text.splitlines(), 0
    for k, line in enumerate(lines):
        if line.startswith("#"):
            since = k
        if line.startswith("|") and (k == 0 or not lines[k - 1].startswith("|")):
            rows = list(takewhile(lambda row: row.startswith("|"), lines[k:]))
            found.append((rows, "\n".join(lines[since:k])))
    return found


def cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def has_peer_figures(lines: list[str]) -> bool:
    """Whether a column that is named after a peer holds a time or a ratio."""
    head = cells_of(lines[0])
    rows = [zip(head, cells_of(line), strict=False) for line in lines[2:]]
    return any(PEER.match(name) and FIGURE.fullmatch(cell) for row in rows for name, cell in row)


def gives_the_own_file(before: str) -> bool:
    """Whether a text names a command that runs peers on the user's own file."""
    if any("--against" in command for command in COMMAND.findall(before)):
        return True
    scripts = [ROOT / name for name in SCRIPT.findall(before)]
    texts = [path.read_text() for path in scripts if path.is_file()]
    own = ("peer_model", '"--against"', "{USERS_FILE}")
    return any(mark in text for text in texts for mark in own)


def faults(text: str) -> list[str]:
    """Heads of a page's tables with figures of a peer and no command; and marks."""
    missing = [
        lines[0]
        for lines, before in tables(text)
        if has_peer_figures(lines) and not gives_the_own_file(before)
    ]
    return [*missing, *MARKS.findall(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_a_table_with_another_runtime_says_what_it_ran(page: Path) -> None:
    assert faults(page.read_text()) == []


def test_there_are_such_tables() -> None:
    found = [lines for page in PAGES for lines, _ in tables(page.read_text())]
    assert sum(map(has_peer_figures, found)) >= 5


TABLE = (
    "| model | isoform | OpenVINO |\n|---|---|---|\n| a | 1 | refused |\n| b | 1 | 3.4 (2.8x) |\n"
)
BENCH = "`isoform bench zoo:NAME --against openvino`"


@pytest.mark.parametrize(
    ("page", "found"),
    [
        (f"# Results\n\nOne thread:\n\n{TABLE}", ["| model | isoform | OpenVINO |"]),
        (f"{BENCH}\n\n# Results\n\n{TABLE}", ["| model | isoform | OpenVINO |"]),
        (f"# Results\n\n`isoform bench zoo:NAME`:\n\n{TABLE}", ["| model | isoform | OpenVINO |"]),
        (f"# Results\n\n`benchmarks/kernels.py`\n\n{TABLE}", ["| model | isoform | OpenVINO |"]),
        (f"# Results\n\n{BENCH}\n\n{TABLE}", []),
        (f"# Results\n\n`benchmarks/partial.py --models csrnet`\n\n{TABLE}", []),
        ("| model | onnxruntime |\n|---|---|\n| a | departs |\n| b | 0 |\n", []),
        ("The figures are of our Re-export.", ["Re-export"]),
        ("| 29.2 ‡ |", ["‡"]),
    ],
)
def test_planted_tables(page: str, found: list[str]) -> None:
    assert faults(page) == found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_bench_commands_of_the_documents_are_commands(page: Path) -> None:
    for text in COMMAND.findall(page.read_text()):
        words = shlex.split(text.partition(" > ")[0])  # where it goes is the shell's
        parsed = parse_arguments(words[1:])
        for spec in parsed.against.split(",") if parsed.against else ():
            assert spec.partition(":")[0] in PEERS, text
