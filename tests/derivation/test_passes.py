"""algebra-derive rewrites programs, says how, and what it says replays with the passes by hand."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from isoform.compiler.pass_manager import run_pipeline
from isoform.compiler.registry import make_context
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.passes.derivation.derive import AlgebraDerive, Derivation, derive
from isoform.passes.derivation.lift import Lift, program_of_scope, scope_ops
from isoform.passes.derivation.price import ScopePrices
from isoform.passes.derivation.replay import Replay
from isoform.passes.derivation.rules import RULES
from isoform.passes.derivation.search import DerivationSettings, DerivationState, Searcher
from isoform.passes.equivalence import compare
from isoform.testing.derivation_cases import all_cases

TRANSPOSED = """
func.func @main(%x: tensor<16x48x2x2xf32>) -> tensor<16x256x4x4xf32> {
  %k = graph.weight @k : tensor<48x256x4x4xf32>
  %y = graph.conv_transpose %x, %k {strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1],
    output_padding = [0, 0]} : tensor<16x256x4x4xf32>
  %z = graph.relu %y : tensor<16x256x4x4xf32>
  func.return %z : tensor<16x256x4x4xf32>
}
"""


def parse(text: str) -> ModuleOp:
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return module


def lowered(text: str) -> ModuleOp:
    module = parse(text)
    run_pipeline(module, "graph-to-algebra,algebra-inline-copies,cse,dce", make_context())
    return module


def derived() -> tuple[ModuleOp, ModuleOp, list[Derivation]]:
    before = lowered(TRANSPOSED)
    after = before.clone()
    found = derive(after, AlgebraDerive(states=400, gain=0.5))
    after.verify()
    return before, after, found


def test_a_transposed_convolution_becomes_a_product_and_a_selective_sum() -> None:
    before, after, found = derived()
    assert [d.rules[:2] for d in found] == [["sum-split", "reindex"]]
    assert compare(Program(before), Program(after)).is_equal
    assert found[0].chosen.priced.seconds < found[0].result.root.priced.seconds
    assert found[0].before < found[0].result.root.priced.seconds, "its own kernel skips empty taps"
    assert [m.kernel.name for _, m in found[0].chosen.priced.choices] == ["gemm"]


def test_the_trace_replays_as_a_pipeline() -> None:
    before, after, found = derived()
    run_pipeline(before, found[0].pipeline, make_context())
    assert without_notes(before) == without_notes(after)


def without_notes(module: ModuleOp) -> str:
    copy = module.clone()
    for op in scope_ops(copy):
        op.attributes.pop("isoform.derivation", None)
    run_pipeline(copy, "cse,dce", make_context())
    return str(copy)


def test_the_trace_shows_the_expression_after_each_step() -> None:
    _, _, found = derived()
    text = found[0].trace()
    for words in ("{rule=sum-split at=", "{rule=tighten at=", "{rule=match at=", "sum (k"):
        assert words in text


def test_it_declines_where_nothing_is_faster() -> None:
    text = """
    func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x5xf32>) -> tensor<4x5xf32> {
      %y = algebra.scope (m: 4, n: 5) sum (k: 8) %x[m, k] * %w[k, n] : tensor<4x5xf32>
      func.return %y : tensor<4x5xf32>
    }
    """
    module = parse(text)
    before = str(module)
    assert derive(module, AlgebraDerive()) == []
    assert str(module) == before


def test_it_is_deterministic() -> None:
    assert str(derived()[1]) == str(derived()[1])


def test_the_trace_is_written_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    module = lowered(TRANSPOSED)
    run_pipeline(module, f'algebra-derive{{states=400 gain=0.5 trace="{path}"}}', make_context())
    assert "rule=reindex" in path.read_text()


CASES = {c.name: c for c in all_cases() if len(c.roots) == 1 and c.depth}


@pytest.mark.parametrize("name", CASES)
def test_every_state_near_the_root_replays_on_the_program(name: str) -> None:
    """What a state is, its steps done to the ops give: token by token, and by pipeline."""
    module = program_of_scope(CASES[name].small[0])
    (op,) = scope_ops(module)
    root = Lift(module).scope(op)
    states = Searcher(ScopePrices(), DerivationSettings(depth=2)).search((root,)).states
    for state in states[:: max(1, len(states) // 12)]:
        check_replay(module.clone(), state)


PAIR = """
func.func @main(%x: tensor<1x2x4x5xf32>, %k1: tensor<3x2x3xf32>, %k2: tensor<3x2x3xf32>)
    -> (tensor<3x4x5xf32>, tensor<3x4x5xf32>) {
  %y = algebra.scope (f: 3, h: 4, w: 5) sum (c: 2, r: 3) %x[0, c, h, w + r - 1] * %k1[f, c, r]
    : tensor<3x4x5xf32>
  %k = algebra.scope (f: 3, c: 2, r: 3) exp(%k2[f, c, r]) : tensor<3x2x3xf32>
  %z = algebra.scope (f: 3, h: 4, w: 5) sum (c: 2, r: 3) %x[0, c, h + r - 1, w] * %k[f, c, r]
    : tensor<3x4x5xf32>
  func.return %y, %z : tensor<3x4x5xf32>, tensor<3x4x5xf32>
}"""


def test_states_of_two_scopes_replay_on_the_program() -> None:
    """What `%z` needs stands after `%y`, and is moved before it where the two become one."""
    module = Parser(make_context(), PAIR).parse_module()
    ops = [op for op in scope_ops(module) if op.summation]
    lift = Lift(module)
    roots = tuple(lift.scope(op) for op in ops)
    rules = tuple(rule for rule in RULES if rule.name in ("sum-split", "reindex"))
    states = (
        Searcher(ScopePrices(), DerivationSettings(depth=5, states=1500, rules=rules))
        .search(roots)
        .states
    )
    merged = [s for s in states if any(r.startswith("merge-") for r in s.rules())]
    assert {r for s in merged for r in s.rules()} >= {"merge-shared-operand", "merge-batch"}
    for state in merged[:: max(1, len(merged) // 6)]:
        check_replay(module.clone(), state)


def check_replay(module: ModuleOp, state: DerivationState) -> None:
    given, original = module.clone(), module.clone()
    ops = [op for op in scope_ops(module) if op.summation]
    replay = Replay(module, *ops)
    for applied in state.steps():
        replay.apply(applied)
    module.verify()
    if not any(rule.startswith("merge-") for rule in state.rules()):
        assert replay.root() is state.roots[0]
    run_pipeline(original, ",".join(text for text, _ in replay.passes), make_context())
    assert str(original) == str(module)
    assert compare(Program(given), Program(module)).is_equal


def test_an_unknown_scope_is_named_in_the_error() -> None:
    module = lowered(TRANSPOSED)
    with pytest.raises(UserError, match="no scope is named %yy"):
        run_pipeline(module, 'algebra-apply-rule{rule=tighten at="yy"}', make_context())
