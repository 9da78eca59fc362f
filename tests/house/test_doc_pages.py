"""The pages of docs/: guides are short, results name their origin, links and paths exist."""

import re
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LINKING = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
RESULTS = sorted((DOCS / "results").glob("*.md"))
# Reference pages, which list all of something.
LONG = ("certificate", "commands", "derivation-rules")
SHORT_GUIDES = sorted(path.stem for path in DOCS.glob("*.md") if path.stem not in LONG)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")
# Date, machine, commit, and the command, or that none was kept.
PROVENANCE = re.compile(
    r"^> 2\d{3}-\d\d-\d\d.* · .+ · commit [0-9a-f]{7}.* · .*(`.+`|command not kept)", re.MULTILINE
)
PATH = re.compile(r"`([a-z]\w*/[\w/]*(?:\.\w+)?)`")


def headings(text: str) -> list[str]:
    """The anchors of a page, as GitHub makes them of its headings."""
    lines = [line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#")]
    return [re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines]


def sections_with_tables(text: str) -> list[str]:
    """The text before the first table of each section that has one."""
    found: list[str] = []
    for section in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        before = list(takewhile(lambda line: not line.startswith("|"), section.splitlines()))
        if len(before) < len(section.splitlines()):
            found.append("\n".join(before))
    return found


@pytest.mark.parametrize("name", SHORT_GUIDES)
def test_a_guide_has_at_most_200_lines(name: str) -> None:
    assert len((DOCS / f"{name}.md").read_text().splitlines()) <= 200


@pytest.mark.parametrize("page", RESULTS, ids=lambda p: p.name)
def test_each_table_of_results_has_date_machine_commit_and_command(page: Path) -> None:
    sections = sections_with_tables(page.read_text())
    assert sections
    assert [s.splitlines()[0] for s in sections if not PROVENANCE.search(s)] == []


def test_a_table_without_its_origin_is_found() -> None:
    page = "# Results\n\n## Here\n\n| a |\n|---|\n| 1 |\n"
    assert [s for s in sections_with_tables(page) if not PROVENANCE.search(s)] == ["Here\n"]


def test_the_table_beside_mlir_opt_has_no_empty_cell_and_no_bare_no() -> None:
    lines = (DOCS / "mlir-opt.md").read_text().splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in lines
        if line[:2] == "| "
    ]
    assert len(rows) > 40
    assert [row for row in rows if len(row) != 3 or not all(row)] == []
    assert [row for row in rows if row[2] == "no"] == [], "a no has its reason"


@pytest.mark.parametrize("page", LINKING, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in headings(path.read_text()), f"{page.name}: {target}#{anchor}"


def test_the_index_lists_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    listed = {target for target, _ in LINK.findall(index)}
    assert {str(page.relative_to(DOCS)) for page in PAGES} - listed == {"README.md"}


@pytest.mark.parametrize("name", ["architecture", "glossary"])
def test_the_files_that_a_page_names_are_there(name: str) -> None:
    named = set(PATH.findall((DOCS / f"{name}.md").read_text()))
    assert len(named) > 20
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_each_word_of_the_glossary_has_one_sentence_and_a_source() -> None:
    lines = (DOCS / "glossary.md").read_text().splitlines()
    rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| ")]
    words = [row for row in rows if row[0].strip() != "word"]
    assert len(words) > 80
    assert [row for row in words if len(row) != 3 or not row[2].strip()] == []
    assert len({row[0] for row in words}) == len(words)
