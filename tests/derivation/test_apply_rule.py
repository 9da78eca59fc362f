"""algebra-apply-rule: its options are the table's, and what is wrong with a call is one line."""

from dataclasses import fields
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from isoform.compiler.commands.pass_help import help_pass
from isoform.compiler.pass_manager import run_pipeline
from isoform.compiler.registry import make_context, multiverse
from isoform.compiler.reports.float_policy import permitted
from isoform.dialects.errors import UserError
from isoform.dialects.floats import Allowed
from isoform.passes.derivation.apply_rule import AlgebraApplyRule, all_rules, options_of

LIT = Path(__file__).resolve().parents[2] / "lit_tests" / "derivation"
TEXT = """
func.func @main(%x: tensor<4x8xf32>, %k: tensor<4x3xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %y = algebra.scope (h: 8) sum (c: 4, r: 3) %x[c, h + r - 1] * %k[c, r] : tensor<8xf32>
  %z = algebra.scope (h: 8) sum (c: 4, s: 3) %x[c, h + s - 2] * %k[c, s] : tensor<8xf32>
  func.return %y, %z : tensor<8xf32>, tensor<8xf32>
}
"""


def applied(options: str) -> ModuleOp:
    module = Parser(make_context(), TEXT).parse_module()
    run_pipeline(module, f"algebra-apply-rule{{{options}}}", make_context())
    return module


def test_the_options_of_the_pass_are_those_of_the_rules() -> None:
    own = {field.name for field in fields(AlgebraApplyRule)} - {"name", "rule", "at"}
    assert own == {option.name for rule in all_rules().values() for option in options_of(rule)}


@pytest.mark.parametrize("name", all_rules())
def test_a_rule_has_a_lit_test_and_a_line_of_help(name: str) -> None:
    assert (LIT / f"algebra-apply-rule-{name}.mlir").exists()
    text = help_pass("algebra-apply-rule", multiverse().all_passes)
    assert any(line.split()[:1] == [name] for line in text.splitlines())


def test_a_scope_is_named_or_found_by_its_iterators() -> None:
    assert str(applied("rule=split-sum sums=r by=2 at=y")) == str(
        applied("rule=split-sum sums=r by=2")
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("rule=split-sums", "no derivation rule 'split-sums'"),
        ("rule=split-sum sums=r", "rule 'split-sum' needs option 'by'"),
        ("rule=split-sum sums=r by=2 low=1", "rule 'split-sum' has no option 'low'"),
        ("rule=merge-batch first=y second=z at=y", "rule 'merge-batch' has no option 'at'"),
        ("rule=split-sum sums=q by=2 at=y", "%y has no summation iterator 'q'"),
        ("rule=split-sum sums=c by=9 at=y", "the rule does not apply"),
        ("rule=split-sum sums=c by=2", "the rule applies to several scopes"),
        ("rule=match kernel=gem", "no library kernel 'gem'"),
        ("rule=delta-elim sum=r guard=3", "the rule does not apply"),
    ],
)
def test_what_is_wrong_is_said(options: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        applied(options)
    assert error.value.message == message


def test_a_rule_has_its_own_label_of_floats() -> None:
    """`--strict-nan` refuses a rule that drops products with 0, and no rule that keeps all bits."""
    strict = Allowed(strict_nan=True)
    assert permitted([AlgebraApplyRule("drop-dead")], strict)
    with pytest.raises(UserError, match="algebra-apply-rule"):
        permitted([AlgebraApplyRule("tighten")], strict)
