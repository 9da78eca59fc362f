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
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from isoform.compiler import cli, opt

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^<!-- test(?::\s*(?P<what>[^>]*?))? -->\n+```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


OURS = {"isoform": cli.main, "isoform-opt": opt.main}
# What only a shell understands, outside of quotes.
SHELL_SYNTAX = re.compile(r"""[|<>;&$`*?~#(){}!=\[\]]""")
QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")


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
    """Run a block in a shell; commands of ours alone in this process, which has imported much."""
    commands = commands_of_ours(body)
    if commands is not None:
        status, output = run_here(commands)
    else:
        command = ["bash", "-euo", "pipefail", "-c", body]
        run = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        status, output = run.returncode, run.stdout
    assert (status != 0) == fails, f"{place}: exit {status}\n{output}"
    return output


def commands_of_ours(body: str) -> list[list[str]] | None:
    """The arguments of each command, if a block needs no shell and no other program."""
    lines = [line for line in body.replace("\\\n", " ").splitlines() if line.strip()]
    if any(SHELL_SYNTAX.search(QUOTED.sub("", line)) for line in lines):
        return None
    commands = [shlex.split(line) for line in lines]
    return commands if all(c[0] in OURS and "-" not in c[1:] for c in commands) else None


def run_here(commands: list[list[str]]) -> tuple[int, str]:
    """Run commands of ours until one fails: its status, and what all printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        for name, *arguments in commands:
            try:
                status = OURS[name](arguments)
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else 1
            if status:
                return status, printed.getvalue()
    return 0, printed.getvalue()


def test_what_needs_a_shell_is_given_to_one() -> None:
    ours = "isoform zoo a \\\n  -o 'a b.mlir'\nisoform-opt -p 'x{y=1},z' b.mlir\n"
    words = [["isoform", "zoo", "a", "-o", "a b.mlir"], ["isoform-opt", "-p", "x{y=1},z", "b.mlir"]]
    assert commands_of_ours(ours) == words
    for line in (
        "isoform zoo | head -1",
        "isoform zoo > a",
        "cp a b",
        "isoform-opt -",
        "A=1 isoform",
    ):
        assert commands_of_ours(line) is None, line
    assert commands_of_ours('isoform-opt a -p "f{t=$t}"') is None
    status, output = run_here([["isoform", "zoo", "no-model"], ["isoform", "zoo"]])
    assert status == 1 and output.count("\n") == 1


def run_python(body: str, scope: ModuleType, place: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(body, place, "exec"), scope.__dict__)
    return printed.getvalue()
