"""`--verify-diagnostics` and `--parsing-diagnostics`: the errors that must be raised are."""

from pathlib import Path

import pytest

from isoform.compiler.commands.expected_errors import expectations, mismatches
from isoform.compiler.opt import main
from isoform.dialects.errors import UserError

FINE = "func.func @f()\n"
BAD = '%0 = "arith.addi"() : () -> i32\n'
UNKNOWN = "arith.nonsense\n"

Capture = pytest.CaptureFixture[str]


def verdict(text: str, tmp_path: Path, *flags: str) -> int:
    file = tmp_path / "chunks.mlir"
    file.write_text(text)
    return main([str(file), "--split-input-file", *flags])


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (f"// expected-error@+1 {{{{Expected 2 operands}}}}\n{BAD}", 0),
        (f"// expected-error@below {{{{Expected 2 operands}}}}\n{BAD}", 0),
        (f"// expected-error {{{{Expected 2 operands}}}}\n\n\n{BAD}", 0),
        (f"{BAD.rstrip()} // expected-error@same {{{{Expected 2}}}}\n", 0),
        (f"{BAD}// expected-error@-1 {{{{Expected 2}}}}\n", 0),
        (f"// expected-error@+1 {{{{unknown operation}}}}\n{UNKNOWN}", 0),
        (f"// expected-error@+2 {{{{Expected 2 operands}}}}\n{BAD}", 1),
        (f"// expected-error@+1 {{{{Expected 3 operands}}}}\n{BAD}", 1),
        (f"// expected-error {{{{Expected 2 operands}}}}\n{FINE}", 1),
        (f"// expected-error {{{{Expected 2}}}}\n{BAD}// -----\n{FINE}", 0),
        (f"// expected-error {{{{Expected 2}}}}\n{BAD}// -----\n{BAD}", 1),
        (f"{FINE}// -----\n// expected-error@+1 {{{{Expected 2}}}}\n{BAD}", 0),
    ],
)
def test_annotations_decide(text: str, status: int, tmp_path: Path) -> None:
    assert verdict(text, tmp_path, "--verify-diagnostics") == status


def test_without_annotations_the_error_is_printed_as_xdsl_does(
    tmp_path: Path, capsys: Capture
) -> None:
    assert verdict(BAD, tmp_path, "--verify-diagnostics") == 0
    assert "Expected 2 operands" in capsys.readouterr().out
    assert verdict("func.func @f(", tmp_path, "--parsing-diagnostics") == 0
    assert capsys.readouterr().err == ""


def test_without_annotations_and_without_an_error_it_fails(tmp_path: Path, capsys: Capture) -> None:
    assert verdict(FINE, tmp_path, "--verify-diagnostics") == 1
    assert "no error was raised" in capsys.readouterr().err
    assert verdict(FINE, tmp_path, "--parsing-diagnostics") == 1


def test_each_flag_speaks_of_its_own_kind_of_error(tmp_path: Path) -> None:
    assert verdict("func.func @f(", tmp_path, "--verify-diagnostics") == 1
    assert verdict(BAD, tmp_path, "--parsing-diagnostics") == 1


def test_an_error_without_a_line_matches_by_its_text() -> None:
    expected = expectations("// expected-error@+1 {{too deep}}", "m.mlir")
    assert mismatches(expected, [UserError("too deep", where="m.mlir")]) == []
    assert len(mismatches(expected, [UserError("too wide", where="m.mlir")])) == 2
