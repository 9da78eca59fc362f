"""Broken files get one line, soon: never a crash, a traceback or an endless wait."""

import random
import time
from pathlib import Path

import pytest

from isoform.compiler.opt import main

LIT = Path(__file__).resolve().parents[2] / "lit_tests"
PIECES = [
    *"%@!#^{}()[]<>=:,\"'-/.0x",
    "tensor<",
    "dense<",
    "loc(",
    "->",
    "i32",
    "\x00",
    "é",
    "9" * 30,
]

Capture = pytest.CaptureFixture[str]


def damaged(text: str, chance: random.Random) -> str:
    """Cut, repeat or insert something at a few places."""
    for _ in range(chance.randint(1, 4)):
        at, to = chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)
        text = chance.choice(
            [
                text[:at],
                text[:at] + text[at + chance.randint(1, 6) :],
                text[:at] + chance.choice(PIECES) + text[at:],
                text[:at] + text[to : to + chance.randint(1, 30)] + text[at:],
            ]
        )
    return text


@pytest.mark.parametrize("seed", range(4))
def test_damaged_programs_are_accepted_or_refused_in_a_line_for_each_fault(
    seed: int, tmp_path: Path, capsys: Capture
) -> None:
    chance = random.Random(seed)
    programs = [p.read_text() for p in sorted(LIT.rglob("*.mlir"))]
    file = tmp_path / "damaged.mlir"
    for _ in range(100):
        file.write_text(text := damaged(chance.choice(programs), chance))
        status = main([str(file), "--split-input-file"])
        err = capsys.readouterr().err
        errors = err.splitlines()
        assert status == (1 if errors else 0), text
        assert all(line.startswith("error: ") for line in errors), f"{err}\n{text}"
        assert "--traceback" not in err, f"{err}\n{text}"


def test_a_string_that_is_not_closed_takes_no_time(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "open.mlir"
    file.write_text('func.func @f("' + "a" * 1_000_000)
    started = time.process_time()
    assert main([str(file)]) == 1
    assert time.process_time() - started < 60  # of minutes, were it quadratic
    assert "End of file reached before closing string literal" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "func.func @f(%c: i1) {" + "scf.if %c {" * 3000 + "}" * 3000 + "func.return }",
        '"test.op"() {a = ' + "[" * 3000 + "]" * 3000 + "} : () -> ()",
    ],
)
def test_deep_nesting_is_refused(text: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "deep.mlir"
    file.write_text(text)
    assert main([str(file)]) == 1
    assert capsys.readouterr().err == f"error: {file}: this is nested too deeply\n"


@pytest.mark.parametrize("number", ["1.0 : f128", "0x1 : f80", "dense<1.0> : tensor<2xf128>"])
def test_numbers_of_types_that_xdsl_cannot_print(
    number: str, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "wide.mlir"
    file.write_text(f"func.func @main() attributes {{x = {number}}} {{\n  func.return\n}}\n")
    assert main([str(file)]) == 1
    err = capsys.readouterr().err
    assert "wide.mlir:1:" in err and err.count("\n") == 1
    assert "of this type" in err or "a number of type f" in err
