"""Pipelines from Python: hooks, limits, errors."""

import threading
from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i32, i64
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.utils.exceptions import PassFailedException

from isoform.compiler import pass_manager
from isoform.compiler.checks.rewrite_limit import rewrite_limit
from isoform.compiler.pass_manager import default_limit, make_passes, run_pipeline
from isoform.compiler.targets.levels import run_passes
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program


class Flip(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: arith.ConstantOp, rewriter: PatternRewriter) -> None:
        assert isinstance(op.value, IntegerAttr)
        rewriter.replace(op, arith.ConstantOp(IntegerAttr(1 - op.value.value.data, i32)))


@dataclass(frozen=True)
class FlipFlop(ModulePass):
    name = "flip-flop"
    recursively: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        walker = PatternRewriteWalker(Flip(), apply_recursively=self.recursively)
        walker.rewrite_module(op)


@dataclass(frozen=True)
class Refuse(ModulePass):
    name = "refuse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise PassFailedException("not\nthis one")


@dataclass(frozen=True)
class Crash(ModulePass):
    name = "crash"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raise KeyError("bug")


@dataclass(frozen=True)
class Mark(ModulePass):
    name = "mark"
    with_: str = "x"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes[self.with_] = StringAttr("")


class Break(ModulePass):
    """Give the first constant a type that its value has not."""

    name = "break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        first = op.body.block.first_op
        assert first is not None
        first.results[0]._type = i64


PASSES = {
    "break": lambda: Break,
    "flip-flop": lambda: FlipFlop,
    "refuse": lambda: Refuse,
    "crash": lambda: Crash,
    "mark": lambda: Mark,
}


def constants(count: int) -> ModuleOp:
    return ModuleOp([arith.ConstantOp.from_int_and_width(0, i32) for _ in range(count)])


def run(pipeline: str, module: ModuleOp, **options):
    return run_pipeline(module, pipeline, Context(), passes=PASSES, **options)


def test_runs_are_counted_and_observed_in_order() -> None:
    seen = []
    runs = run(
        "flip-flop{recursively=false},mark",
        constants(3),
        after_pass=lambda run, module: seen.append((run.name, sorted(module.attributes))),
    )
    assert [(r.name, r.rewrites) for r in runs] == [("flip-flop", 3), ("mark", 0)]
    assert seen == [("flip-flop", []), ("mark", ["x"])]
    assert all(r.seconds >= 0 for r in runs)


def test_rewrites_are_limited() -> None:
    run("flip-flop{recursively=false}", constants(3), max_rewrites=3)
    with pytest.raises(UserError, match=r"pass 'flip-flop': stopped after 2 pattern rewrites"):
        run("flip-flop{recursively=false}", constants(3), max_rewrites=2)
    with pytest.raises(UserError, match="stopped after 516 pattern rewrites: the module is again"):
        run("flip-flop", constants(1), max_rewrites=1000)


@pytest.mark.parametrize(("each", "blamed"), [(True, "break"), (False, "mark")])
def test_what_a_pass_broke_is_seen_after_it_or_after_the_last(each: bool, blamed: str) -> None:
    with pytest.raises(UserError, match=f"after pass '{blamed}'"):
        run("break,mark", constants(1), verify_each=each)
    run("break,mark", constants(1), verify=False)


def test_pipelines_of_our_own_are_verified_at_their_ends_and_everywhere_in_debug_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verified: list[str] = []
    monkeypatch.setattr(pass_manager, "verify_module", lambda *_: verified.append("input"))
    monkeypatch.setattr(pass_manager, "_verify_after", lambda _, p, *more: verified.append(p.name))

    def asked(debug: str, **more: bool) -> list[str]:
        verified.clear()
        monkeypatch.setenv("ISOFORM_DEBUG", debug)
        run_passes(Program(constants(1)), "canonicalize,dce", **more)
        return list(verified)

    for debug in ("0", ""):
        assert asked(debug) == ["input", "dce"]
        assert asked(debug, verify_input=False) == ["dce"]
        assert asked(debug, verify_result=False) == ["input"]
    for more in ({}, {"verify_input": False}, {"verify_result": False}):
        assert asked("1", **more) == ["input", "canonicalize", "dce"]


def test_the_default_limit_grows_with_the_program() -> None:
    assert default_limit(constants(1)) == 100_000
    assert default_limit(constants(1999)) == 200_000


def test_a_limit_ends_with_its_block_and_binds_no_other_thread() -> None:
    failed = []

    def other() -> None:
        try:
            FlipFlop(recursively=False).apply(Context(), constants(5))
        except UserError as error:
            failed.append(error)

    with rewrite_limit(1) as budget:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert budget.used == 0
    FlipFlop(recursively=False).apply(Context(), constants(5))
    assert failed == []


def test_a_pass_that_refuses_is_a_users_error_and_a_crash_is_not() -> None:
    with pytest.raises(UserError) as refused:
        run("refuse", constants(1))
    assert str(refused.value) == "pass 'refuse': not this one"
    with pytest.raises(KeyError) as crashed:
        run("crash", constants(1))
    assert crashed.value.__notes__ == ["while pass 'crash' ran"]


def test_names_that_are_keywords_in_python_are_options_with_a_trailing_dash() -> None:
    assert make_passes('mark{with-="y"}', PASSES) == (Mark("y"),)


def test_a_pipeline_may_span_lines() -> None:
    names = [p.name for p in make_passes("mark,\n  flip-flop{\n recursively=true\n }", PASSES)]
    assert names == ["mark", "flip-flop"]
    assert make_passes(" ", PASSES) == ()
