"""`--check` finds a pass that changes what the program computes."""

from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from isoform.compiler.checks.differential import differential_check, evaluate, first_difference
from isoform.compiler.frontends.source import SourceText, parse_source
from isoform.compiler.pass_manager import run_pipeline
from isoform.compiler.registry import make_context
from isoform.dialects.errors import UserError
from isoform.dialects.graph.elementwise import AbsOp, ReluOp

TEXT = """
func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %w = graph.weight @w : tensor<2x3xf32>
  %y = graph.add %x, %w : tensor<2x3xf32>
  %z = graph.relu %y : tensor<2x3xf32>
  func.return %z : tensor<2x3xf32>
}
"""


@dataclass(frozen=True)
class ReluToAbs(ModulePass):
    """Replace relu by abs, which is wrong."""

    name = "relu-to-abs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, ReluOp):
                Rewriter.replace_op(inner, AbsOp(inner.x))


def parse(text: str) -> ModuleOp:
    return parse_source(make_context(), SourceText("test", text))[0]


def test_a_right_pass_passes_and_a_wrong_one_is_named_with_position_and_values() -> None:
    module = parse(TEXT)
    check = differential_check(module)
    run_pipeline(module, "cse", make_context(), after_pass=check)
    message = r"output 'z' at \[\d, \d\] was 0 and is .* \[after pass 'relu-to-abs'\]"
    with pytest.raises(UserError, match=message):
        run_pipeline(module, [ReluToAbs()], make_context(), after_pass=check)


def test_evaluation_depends_on_the_seed_alone() -> None:
    (first,), (again,) = (evaluate(parse(TEXT), 1).values() for _ in range(2))
    (other,) = evaluate(parse(TEXT), 2).values()
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_infinities_and_nans_must_stay_where_they_are() -> None:
    before = {"y": np.array([1.0, np.inf, np.nan])}
    assert first_difference(before, {"y": np.array([1.0 + 1e-9, np.inf, np.nan])}) is None
    wrong = first_difference(before, {"y": np.array([1.0, np.nan, np.nan])})
    assert wrong == "output 'y' at [1] was inf and is nan"


def test_shapes_and_counts_of_outputs_are_compared() -> None:
    one, two = {"y": np.zeros(1)}, {"y": np.zeros(2)}
    assert first_difference(one, two) == "output 'y' had shape (1,) and has (2,)"
    assert first_difference(one, {}) == "there were 1 outputs and there are 0"


def test_a_module_without_main_cannot_be_checked() -> None:
    with pytest.raises(UserError, match=r"no func\.func @main"):
        differential_check(parse("func.func @f()"))
