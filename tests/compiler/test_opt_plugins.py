"""`--plugin FILE.py`: a file adds dialects, passes and targets without being installed."""

from pathlib import Path

import pytest

from isoform.compiler.opt import main

PASSES = '''
from dataclasses import dataclass
from xdsl.dialects import arith
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriteWalker, RewritePattern, op_type_rewrite_pattern

class Swap(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.AddiOp, rewriter):
        rewriter.replace(op, arith.AddiOp(op.rhs, op.lhs))

@dataclass(frozen=True)
class Endless(ModulePass):
    """Swap operands for ever."""
    name = "endless"
    def apply(self, ctx, op):
        PatternRewriteWalker(Swap()).rewrite_module(op)

@dataclass(frozen=True)
class Breaks(ModulePass):
    """Leave a use before its definition."""
    name = "breaks"
    def apply(self, ctx, op):
        last = op.body.block.first_op.body.block.last_op
        last.prev_op.detach()
        block = last.parent
        moved = block.first_op
        moved.detach()
        block.insert_op_before(moved, last)

@dataclass(frozen=True)
class Options(ModulePass):
    """Take options of every type."""
    name = "options"
    alpha: float = 1.0
    names: tuple[str, ...] = ()
    fast: bool = False
    count: int | None = None
    def apply(self, ctx, op):
        print(repr(self))

@dataclass(frozen=True)
class Needs(ModulePass):
    name = "needs"
    depth: int
    def apply(self, ctx, op):
        {}["nothing"]

PASSES = [Endless, Breaks, Options, Needs]
'''

PROGRAM = """\
func.func @f(%x: i32) -> i32 {
  %y = arith.addi %x, %x : i32
  %z = arith.addi %y, %x : i32
  func.return %z : i32
}
"""

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("passes.py").write_text(PASSES)
    Path("program.mlir").write_text(PROGRAM)


def opt(pipeline: str, capsys: Capture, *flags: str) -> tuple[int, str, str]:
    status = main(["program.mlir", "--plugin", "passes.py", "-p", pipeline, *flags])
    out, err = capsys.readouterr()
    return status, out, err


def load(text: str, capsys: Capture) -> str:
    Path("plugin.py").write_text(text)
    assert main(["program.mlir", "--plugin", "plugin.py"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err.removeprefix("error: ").rstrip("\n")


def test_patterns_without_end_are_stopped(capsys: Capture) -> None:
    status, out, err = opt("endless", capsys, "--max-rewrites", "50")
    assert (status, out) == (1, "")
    assert err.startswith("error: pass 'endless': stopped after 50 pattern rewrites")


def test_a_pass_that_breaks_the_program_is_named(capsys: Capture) -> None:
    status, _, err = opt("breaks", capsys)
    assert status == 1
    assert err.endswith("[after pass 'breaks']\n")


@pytest.mark.parametrize(
    ("pipeline", "shown"),
    [
        ("options", "Options(alpha=1.0, names=(), fast=False, count=None)"),
        ("options{alpha=2 fast=true}", "Options(alpha=2.0, names=(), fast=True, count=None)"),
        ("options{ alpha=1e-3 }", "Options(alpha=0.001, names=(), fast=False, count=None)"),
        ('options{names="a" , b count=-3}', "Options(alpha=1.0, names=('a', 'b'), fast=False"),
    ],
)
def test_options_reach_the_pass(pipeline: str, shown: str, capsys: Capture) -> None:
    status, out, _ = opt(pipeline, capsys)
    assert status == 0
    assert shown in out


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("optons", "unknown pass 'optons' (did you mean 'options'?)"),
        ("options{alfa=1}", "pass 'options': unknown option 'alfa' (did you mean 'alpha'?)"),
        ("options{q=1}", "pass 'options': unknown option 'q' (its options are alpha, names, fast"),
        ("options{fast}", "pass 'options': option 'fast' needs a value (write fast=true)"),
        ("options{fast=1}", "pass 'options': option 'fast': expected bool, found 1"),
        ("options{count=1,2}", "pass 'options': option 'count': expected int|None, found 1,2"),
        ("options{alpha=x}", "pass 'options': option 'alpha': expected float, found 'x'"),
        ("needs", "pass 'needs': needs the option depth=int"),
        ("cse{a=1}", "pass 'cse': unknown option 'a' (it has no options)"),
        ("options{alpha=1", "malformed pipeline at column 16 of 'options{alpha=1':"),
        ("cse;canonicalize", "malformed pipeline at column 4 of 'cse;canonicalize':"),
        (
            "needs{depth=1}",
            "passes.py:47: the plug-in failed: KeyError: 'nothing', while pass",
        ),
    ],
)
def test_mistakes_are_one_line(pipeline: str, message: str, capsys: Capture) -> None:
    status, out, err = opt(pipeline, capsys)
    assert (status, out) == (1, "")
    assert err.startswith("error: ") and message in err
    assert err.count("\n") == 1


def test_traceback_shows_where_a_pass_crashes(capsys: Capture) -> None:
    _, _, err = opt("needs{depth=1}", capsys, "--traceback")
    assert 'passes.py", line' in err


def test_a_plugin_joins_the_lists(capsys: Capture) -> None:
    assert main(["--plugin", "passes.py", "--list-passes"]) == 0
    own, _, rest = capsys.readouterr().out.partition("xDSL:")
    assert "Swap operands for ever." in own
    assert "endless" not in rest
    assert main(["--plugin", "passes.py", "--help-pass", "options"]) == 0
    assert "  alpha=float            default 1.0\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "plugin.py: this plug-in defines none of DIALECTS, PASSES, TARGETS"),
        (
            "\nimport nonsense_module",
            "plugin.py:2: the plug-in failed to load: ModuleNotFoundError",
        ),
        ("\n\n1 +", "plugin.py:3: the plug-in failed to load: SyntaxError"),
        ("import sys; sys.exit(3)", "plugin.py:1: the plug-in failed to load: SystemExit"),
        ("PASSES = 3", "plugin.py: PASSES is not a list"),
        ("PASSES = [3]", "plugin.py: PASSES holds 3, not a subclass of ModulePass"),
        ("DIALECTS = ['x']", "plugin.py: DIALECTS holds 'x', not a Dialect"),
        (
            "from xdsl.transforms.canonicalize import CanonicalizePass\nPASSES=[CanonicalizePass]",
            "plugin.py: there is already a pass 'canonicalize'",
        ),
    ],
)
def test_a_plugin_that_does_not_load_is_one_line(text: str, message: str, capsys: Capture) -> None:
    assert load(text, capsys).replace(f"{Path.cwd()}/", "").startswith(message)


def test_a_missing_plugin_is_named(capsys: Capture) -> None:
    assert main(["--plugin", "absent.py"]) == 1
    assert capsys.readouterr().err == "error: absent.py: no such plug-in file\n"
