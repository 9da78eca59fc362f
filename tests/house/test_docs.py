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
QUOTED = re.compile(r"""'[^']*'|"[^"$`\\]*\"""")
# A command of ours whose words need no shell; then the file of a stream, or what reads the output.
COMMAND = re.compile(
    r"(?P<words>isoform(?:-opt)?(?: +(?!- |-$)[^\s|<>;&$`*?~#(){}!\[\]]+)*)"
    r"(?: +(?P<stream>2?>) (?P<file>[\w.]+)|(?P<both> +2>&1)? +\| (?P<reader>[^#]+))?"
    r" *(?:#.*)?"
)
# What makes one statement of several lines.
COMPOUND = re.compile(r"^\s*(?:for|while|if|case)\b|^\w+=", re.MULTILINE)


@pytest.fixture(autouse=True)
def commands_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bash find them."""
    tools = Path(sys.executable).parent
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_document(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    """Run a block as `bash -euo pipefail` does, but commands of ours in this process.

    It has imported much, and knows the rules that an earlier command has read.
    """
    body = body.replace("\\\n", " ")
    lines = [body] if COMPOUND.search(body) else body.splitlines()
    status, output = 0, ""
    for line in filter(str.strip, lines):
        command = command_of_ours(line)
        status, printed = run_by_bash(line) if command is None else run_here(command)
        output += printed
        if status:
            break
    assert (status != 0) == fails, f"{place}: exit {status}\n{output}"
    return output


def run_by_bash(line: str, read: str | None = None) -> tuple[int, str]:
    """The status of a line of shell that reads a text, and what it prints."""
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", line],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        input=read,
        text=True,
        check=False,
    )
    return run.returncode, run.stdout


def command_of_ours(line: str) -> dict[str, str] | None:
    """The parts of a line by `COMMAND`'s names, if it begins with a command of ours alone."""
    hidden = QUOTED.sub(lambda quoted: "'" * len(quoted[0]), line)
    found = COMMAND.fullmatch(hidden)
    return found and {name: line[slice(*found.span(name))] for name in found.groupdict()}


def run_here(command: dict[str, str]) -> tuple[int, str]:
    """Run a command of ours and what reads its output: the status, and what is printed."""
    out, err = io.StringIO(), io.StringIO()
    if command["both"] or not (command["stream"] or command["reader"]):
        err = out
    name, *arguments = shlex.split(command["words"])
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = OURS[name](arguments)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
    if command["file"]:
        filed, shown = (err, out) if command["stream"] == "2>" else (out, err)
        Path(command["file"]).write_text(filed.getvalue())
        return status, shown.getvalue()
    if command["reader"]:
        last, printed = run_by_bash(command["reader"], out.getvalue())
        return last or status, ("" if err is out else err.getvalue()) + printed
    return status, out.getvalue()


def test_what_needs_a_shell_is_given_to_one() -> None:
    def words(line: str) -> str | None:
        command = command_of_ours(line)
        return command and command["words"]

    assert words("isoform zoo a -o 'a | b.mlir'  # > c") == "isoform zoo a -o 'a | b.mlir'"
    assert words("isoform-opt -p 'x{y=1},z' b.mlir") == "isoform-opt -p 'x{y=1},z' b.mlir"
    for line in (
        "cp a b",
        "isoform-opt -",
        "A=1 isoform",
        'isoform-opt a -p "f{t=$t}"',
        "isoform >",
    ):
        assert command_of_ours(line) is None, line
    for line in ("isoform zoo && ls", "isoform zoo >> a", "isoform zoo || ls", "isoform zoo *"):
        assert command_of_ours(line) is None, line
    assert COMPOUND.search("for a in b; do\n  isoform zoo\ndone") and COMPOUND.search("a=1\nls $a")


@pytest.mark.parametrize(
    "line",
    [
        "isoform --version | tr -d . | wc -w",
        "isoform zoo no-model 2>&1 | wc -l  # one",
        "isoform zoo no-model | wc -l",
        "isoform --version | grep no-version",
        "isoform --version > file",
        "isoform zoo no-model > file",
        "isoform zoo no-model 2> file",
    ],
)
def test_a_line_does_what_it_does_in_bash(line: str, tmp_path: Path) -> None:
    command = command_of_ours(line)
    assert command is not None
    done: list[tuple[int, str, str]] = []
    for run in (lambda: run_here(command), lambda: run_by_bash(line)):
        with contextlib.chdir(tmp_path):
            Path("file").write_text("")
            done.append((*run(), Path("file").read_text()))
    assert done[0] == done[1]


def run_python(body: str, scope: ModuleType, place: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(body, place, "exec"), scope.__dict__)
    return printed.getvalue()
