"""scripts/mutate.py makes the mutants it says, and tells the killed ones from the survivors."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
pytest.importorskip("coverage")

import mutate  # noqa: E402 - found where scripts are
from mutation.mutants import Mutant, mutants_of  # noqa: E402

SOURCE = '''"""A docstring with 3 numbers < 4."""

NEUTRAL = {"max": -1, "min": 1}


def clamp(x: "int | 3", low: int = 0) -> int:
    """The larger of both; never less than 0."""
    if x < low:
        return low
    return x


def sign(x: int) -> int:
    assert x < 300, "too large"
    return -1 if x < 0 else 1


def unused(x: int) -> int:
    return x + 1


KINDS = {"sum", "max", "min"}
'''
TESTS = """import pytest

from isoform.subject import KINDS, NEUTRAL, clamp, sign


def test_clamp() -> None:
    assert clamp(-3) == 0 and clamp(0) == 0 and clamp(4) == 4


def test_sign() -> None:
    assert sign(4) == 1


def test_neutral() -> None:
    assert set(NEUTRAL) == {"max", "min"}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_kind(kind: str) -> None:
    assert len(kind) == 3
"""


def changes() -> list[tuple[str, str, str]]:
    return [(m.kind, m.old, m.new) for m in mutants_of("subject.py", SOURCE.encode())]


@pytest.mark.parametrize(
    "change",
    [
        ("entries exchanged", '{"max": -1, "min": 1}', '{"max": 1, "min": -1}'),
        ("comparison", "x < low", "(x) <= (low)"),
        ("condition", "x < low", "True"),
        ("condition", "x < low", "False"),
        ("constant", "0", "1"),
        ("sign or not", "-1", "(1)"),
        ("arithmetic", "x + 1", "(x) - (1)"),
    ],
    ids=lambda c: f"{c[0]} {c[2]}",
)
def test_a_change_is_among_the_mutants(change: tuple[str, str, str]) -> None:
    assert change in changes()


def test_what_is_said_about_the_code_is_left_alone() -> None:
    assert not [c for c in changes() if "3" in c[1]]


def test_each_mutant_is_a_program() -> None:
    for mutant in mutants_of("subject.py", SOURCE.encode()):
        compile(mutant.applied(SOURCE.encode()), "subject.py", "exec")


def test_verdicts(tmp_path: Path) -> None:
    """A tested bound dies; a table's values, which no test reads, and code no test runs live."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "__init__.py").write_text("")
    (tree / "subject.py").write_text(SOURCE)
    (tree / "test_subject.py").write_text(TESTS)
    for command in ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -qm a"):
        subprocess.run(["git", *command.split()], cwd=tree, check=True)
    copy = mutate.Copy(tmp_path / "work", tree)
    assert mutate.make_map(copy, tmp_path / "map", "all", ["subject.py"], ["-p", "no:xdist"]) == 0
    tests = mutate.Tests(tmp_path / "map")

    def verdict(kind: str, new: str) -> tuple[str, str]:
        (mutant,) = [
            m
            for m in mutants_of("subject.py", SOURCE.encode())
            if (m.kind, m.new) == (kind, new) and m.line != 15
        ]
        return copy.verdict(mutant, tests.of(mutant), 60.0)

    assert verdict("condition", "True") == ("killed", "test_subject.py::test_clamp")
    assert verdict("entries exchanged", '{"max": 1, "min": -1}') == ("survived", "")
    assert verdict("arithmetic", "(x) - (1)") == ("no test", "")
    assert verdict("entry left out", '{"sum", "max"}') == ("survived", "")  # a case is gone
    assert (copy.root / "subject.py").read_text() == SOURCE


def test_each_file_gives_as_many(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(SOURCE)
    found = mutate.drawn(tmp_path, ["a.py", "b.py"], 6, seed=0)
    assert [m.path for m in found] == ["a.py", "b.py"] * 3
    assert found == mutate.drawn(tmp_path, ["a.py", "b.py"], 6, seed=0)
    assert found != mutate.drawn(tmp_path, ["a.py", "b.py"], 6, seed=1)


def test_the_files_that_are_mutated_exist() -> None:
    files = mutate.subjects(ROOT)
    assert {"passes/equivalence/verdict.py", "dialects/arithmetic.py"} <= set(files)
    assert all(isinstance(m, Mutant) for m in mutate.drawn(ROOT, files, 10, seed=0))
