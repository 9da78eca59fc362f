"""`isoform-opt` as its users meet it: what it prints, where, and how it refuses."""

import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.ir import Attribute

from isoform.compiler.opt import main

GOOD = """\
func.func @f(%x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  %z = arith.addi %x, %x : i32
  %r = arith.muli %y, %z : i32
  func.return %r : i32
}
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Stand in a folder with a good program and return its name."""
    monkeypatch.chdir(tmp_path)
    Path("good.mlir").write_text(GOOD)
    return "good.mlir"


def fails(arguments: list[str], capsys: Capture, status: int = 1) -> str:
    """Run, check that nothing but one line on stderr comes out, and return the line."""
    assert main(arguments) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err.removeprefix("error: ").rstrip("\n")


def test_ir_goes_to_stdout_and_reports_to_stderr(good: str, capsys: Capture) -> None:
    flags = ["--explain", "--time-passes", "--print-between-passes"]
    assert main([good, "-p", "cse,canonicalize", *flags]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("builtin.module {\n")
    assert out.endswith("}\n")
    assert out.count("arith.addi") == 1
    assert "Pass cse took" in err
    assert "cse: 0 rewrites; arith.addi 2 -> 1\n" in err
    assert "IR after cse:\nbuiltin.module {" in err
    assert "IR after canonicalize:" not in err


def test_its_output_is_its_input_again(good: str, capsys: Capture) -> None:
    main([good])
    once = capsys.readouterr().out
    Path("once.mlir").write_text(once)
    main(["once.mlir"])
    assert capsys.readouterr().out == once


def test_an_empty_file_is_an_empty_module(good: str, capsys: Capture) -> None:
    Path("empty.mlir").write_text("\n// nothing\n")
    assert main(["empty.mlir"]) == 0
    assert capsys.readouterr().out == "builtin.module {\n}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "%y = arith.adi %x : i32",
            "1:6: unknown operation 'arith.adi' (did you mean 'arith.addi'?)",
        ),
        (
            "arit.addi",
            "1:1: unknown dialect 'arit' of operation 'arit.addi' (did you mean 'arith'?)",
        ),
        ("func.func @f(%x: !llvm.ptrr)", "1:19: unknown type or attribute 'llvm.ptrr' (did you"),
        ("func.func @f(%x: !lvm.ptr)", "1:19: unknown dialect 'lvm' of 'lvm.ptr' (did you mean"),
        ("func.func @f(%x: i32) {\n  func.return %y : i32\n}", "2:15: %y is used but nothing def"),
        ("func.func @f(%x: i32) {\n  func.return", "2:14: "),
        ("func.func @f(%x: i32, %x: i32) {func.return}", "1:23: SSA value %x is already defined"),
        ('"arith.addi"() : () -> ()', "1:1: 'arith.addi': "),
        ('%0 = arith.constant "a" : i32', "1:"),
        ("\x00", "1:1: "),
    ],
)
def test_bad_ir_is_one_line_with_its_position(
    good: str, capsys: Capture, text: str, message: str
) -> None:
    Path("bad.mlir").write_text(text)
    assert fails(["bad.mlir"], capsys).startswith(f"bad.mlir:{message}")


def test_a_use_before_its_definition_is_refused(good: str, capsys: Capture) -> None:
    text = "func.func @f(%x: i32) -> i32 {\n  %y = arith.addi %x, %z : i32\n"
    text += "  %z = arith.addi %x, %x : i32\n  func.return %y : i32\n}\n"
    Path("bad.mlir").write_text(text)
    expected = "bad.mlir:2:3: 'arith.addi': operand #1 %z is used before its definition"
    assert fails(["bad.mlir"], capsys) == expected
    assert main(["bad.mlir", "--disable-verify"]) == 0


def test_disable_verify_lasts_no_longer_than_the_run(good: str, capsys: Capture) -> None:
    before = Attribute.__post_init__
    assert main([good, "--disable-verify"]) == 0
    assert Attribute.__post_init__ is before


def test_a_missing_file_is_named_with_a_similar_one(good: str, capsys: Capture) -> None:
    assert fails(["godo.mlir"], capsys) == "godo.mlir: no such file (did you mean 'good.mlir'?)"
    assert fails(["."], capsys).startswith(".: cannot read file")


def test_a_file_that_is_no_text_is_refused(good: str, capsys: Capture) -> None:
    Path("bytes.mlir").write_bytes(b"module {\n\xff\xfe}")
    assert fails(["bytes.mlir"], capsys) == "bytes.mlir:2: this is not text (UTF-8)"


def test_a_byte_order_mark_is_no_part_of_the_text(good: str, capsys: Capture) -> None:
    assert main([good]) == 0
    wanted = capsys.readouterr().out
    Path("mark.mlir").write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert main(["mark.mlir"]) == 0
    assert capsys.readouterr().out.replace("mark.mlir", good) == wanted


def test_an_unknown_format_is_refused_unless_it_is_named(good: str, capsys: Capture) -> None:
    Path("good.foo").write_text(GOOD)
    assert "its name does not tell the format" in fails(["good.foo"], capsys)
    assert main(["good.foo", "-f", "mlir"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--explan"], "unrecognized arguments: --explan (did you mean '--explain'?)"),
        (["-t", "mlr"], "-t: unknown name 'mlr' (did you mean 'mlir'?)"),
        (["-t", "mlir{"], "-t: malformed value 'mlir{'"),
        (["-f", "onx"], "-f: unknown name 'onx'"),
        (["--max-rewrites", "many"], "argument --max-rewrites: expected a whole number"),
        (["-p"], "argument -p/--passes: expected one argument"),
    ],
)
def test_wrong_usage_exits_2(
    good: str, capsys: Capture, arguments: list[str], message: str
) -> None:
    assert fails([good, *arguments], capsys, status=2).startswith(message)


def test_an_output_file_is_written_whole_or_not_at_all(good: str, capsys: Capture) -> None:
    Path("out.mlir").write_text("old")
    Path("bad.mlir").write_text(GOOD + "// -----\nnonsense\n")
    fails(["bad.mlir", "--split-input-file", "-o", "out.mlir"], capsys)
    assert Path("out.mlir").read_text() == "old"
    assert main([good, "-o", "out.mlir"]) == 0
    assert Path("out.mlir").read_text().startswith("builtin.module")
    assert sorted(p.name for p in Path().iterdir()) == ["bad.mlir", "good.mlir", "out.mlir"]
    message = "nowhere/out.mlir: cannot write file: its folder does not exist"
    assert fails([good, "-o", "nowhere/out.mlir"], capsys) == message


def test_chunks_are_processed_apart_and_count_their_lines(good: str, capsys: Capture) -> None:
    Path("two.mlir").write_text(f"{GOOD}// -----\n{GOOD}")
    assert main(["two.mlir", "--split-input-file"]) == 0
    assert capsys.readouterr().out.count("\n// -----\n") == 1
    Path("two.mlir").write_text(f"{GOOD}// -----\nfunc.func @f() {{\n  nonsense.op\n}}\n")
    expected = "two.mlir:9:3: unknown dialect 'nonsense'"
    assert fails(["two.mlir", "--split-input-file"], capsys).startswith(expected)


def test_list_passes_shows_names_and_summaries(capsys: Capture) -> None:
    assert main(["--list-passes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["xDSL:"] for line in lines)
    summary = "Applies all canonicalization patterns."
    assert any(line.split(maxsplit=1) == ["canonicalize", summary] for line in lines)


def test_help_pass_shows_options_with_types_and_defaults(capsys: Capture) -> None:
    assert main(["--help-pass", "apply-pdl"]) == 0
    assert "pdl-file=str|None  optional" in capsys.readouterr().out
    message = "unknown pass 'canonicalise' (did you mean 'canonicalize'?)"
    assert fails(["--help-pass", "canonicalise"], capsys) == message


def run(arguments: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "isoform.compiler.opt", *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_it_reads_stdin() -> None:
    assert run([], GOOD).stdout == run(["-"], GOOD).stdout
    failed = run([], "nonsense.op")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.startswith("error: stdin:1:1: unknown dialect 'nonsense'")


def test_a_closed_pipe_is_no_traceback() -> None:
    code = f"{sys.executable} -m isoform.compiler.opt --list-passes | true"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def started() -> tuple[str, float, str]:
    """Status, CPU seconds and heavy imports of isoform-opt on an empty module."""
    code = (
        "import resource, sys; from isoform.compiler.opt import main; status = main(['-']);"
        "used = resource.getrusage(resource.RUSAGE_SELF);"
        "heavy = {'egglog', 'onnx', 'llvmlite', 'sympy', 'z3', 'rich'} & set(sys.modules);"
        "print(status, used.ru_utime + used.ru_stime, heavy, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, input="builtin.module {}", capture_output=True, text=True, check=True
    )
    status, seconds, heavy = done.stderr.split(maxsplit=2)
    return status, float(seconds), heavy.strip()


def test_it_starts_without_importing_anything_heavy() -> None:
    status, _, heavy = started()
    assert (status, heavy) == ("0", "set()")


@pytest.mark.slow
def test_it_starts_in_half_a_second_of_cpu() -> None:
    assert started()[1] <= 0.5
