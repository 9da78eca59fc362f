"""The documents are right: what they mark for testing is run, in order, in an empty folder.

A comment above a fenced block says what happens to it:

    <!-- test -->            run it: `sh` with bash, `python` with what ran before it in scope
    <!-- test: fails -->     run it; it must exit with a status other than 0
    <!-- test: file NAME --> write it to NAME
    <!-- test: output -->    compare it with what the block before it printed (stdout and stderr)
"""

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^<!-- test(?::\s*(?P<what>[^>]*?))? -->\n+```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_document(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    scope = ModuleType(f"doc_{path.stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, scope.__name__, scope)
    text = path.read_text()
    output = ""
    for block in BLOCK.finditer(text):
        place = f"{path}:{text.count(chr(10), 0, block.start('text')) + 1}"
        what, body = block["what"] or "", block["text"]
        if what.startswith("file "):
            Path(what.removeprefix("file ").strip()).write_text(body)
        elif what == "output":
            assert body.rstrip() == output.rstrip(), f"{place}: it prints something else"
        elif block["language"] == "python":
            output = run_python(body, scope, place)
        else:
            output = run_shell(body, place, fails=what == "fails")


def test_every_mark_stands_above_a_block() -> None:
    for path in DOCUMENTS:
        text = path.read_text()
        marks = re.findall(r"^<!-- test", text, re.MULTILINE)
        assert len(marks) == len(BLOCK.findall(text)), f"{path}: a mark has no block"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_reader_sees_the_name_of_each_file(path: Path) -> None:
    """The marks are comments: what a page says must be enough to follow it."""
    text = path.read_text()
    for block in BLOCK.finditer(text):
        if (block["what"] or "").startswith("file "):
            before = "\n" + re.sub(r"<!--.*?-->", "", text[: block.start()], flags=re.DOTALL)
            section = before[before.rfind("\n#") :]
            name = block["what"].removeprefix("file ").strip()
            assert name in section, f"{path}: nothing says that a block is {name}"


def run_shell(body: str, place: str, *, fails: bool) -> str:
    command = ["bash", "-euo", "pipefail", "-c", body]
    run = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert (run.returncode != 0) == fails, f"{place}: exit {run.returncode}\n{run.stdout}"
    return run.stdout


def run_python(body: str, scope: ModuleType, place: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(body, place, "exec"), scope.__dict__)
    return printed.getvalue()
