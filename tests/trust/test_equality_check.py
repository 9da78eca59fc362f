"""`isoform-opt --check` proves where it can, and says where it only compared results."""

from pathlib import Path

import pytest

from isoform.compiler.checks.equality_check import EqualityCheck
from isoform.compiler.frontends.source import SourceText, parse_source
from isoform.compiler.opt import main
from isoform.compiler.registry import make_context
from isoform.dialects.errors import UserError

Captured = pytest.CaptureFixture[str]
TEXT = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = graph.relu %x : tensor<4xf32>
  %z = graph.add %y, %y : tensor<4xf32>
  func.return %z : tensor<4xf32>
}
"""


def parse(text: str):
    return parse_source(make_context(), SourceText("test", text))[0]


def test_the_engine_answers_first() -> None:
    check = EqualityCheck(parse(TEXT))
    assert check.check(parse(TEXT)).how == "unchanged"
    two = TEXT.replace(
        "%z = graph.add %y, %y",
        "%c = graph.constant dense<2.0> : tensor<4xf32>\n%z = graph.mul %y, %c",
    )
    answer = check.check(parse(two))
    assert answer.difference is None
    assert answer.how == "equal"


def test_the_reference_answers_where_the_engine_cannot() -> None:
    """relu(x) = (x + |x|) / 2 needs an identity of abs that the engine does not have."""
    halves = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = graph.abs %x : tensor<4xf32>
  %z = graph.add %x, %a : tensor<4xf32>
  func.return %z : tensor<4xf32>
}
"""
    answer = EqualityCheck(parse(TEXT)).check(parse(halves))
    assert answer.difference is None
    assert answer.how.startswith("not proved (they are not equal for arbitrary functions")
    assert answer.how.endswith("), same results on drawn inputs")


def test_a_difference_names_position_and_values() -> None:
    wrong = TEXT.replace("graph.add", "graph.mul")
    answer = EqualityCheck(parse(TEXT)).check(parse(wrong))
    assert answer.difference is not None
    assert answer.difference.startswith("output 'z' at [")


def test_a_changed_signature_is_a_difference() -> None:
    answer = EqualityCheck(parse(TEXT)).check(parse(TEXT.replace("4x", "5x")))
    assert answer.difference == "input 'x' has another shape: expected [4], found [5]"


def test_swapped_outputs_are_a_difference() -> None:
    text = """
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = graph.relu %x : tensor<4xf32>
  %z = graph.abs %x : tensor<4xf32>
  func.return %y, %z : tensor<4xf32>, tensor<4xf32>
}
"""
    answer = EqualityCheck(parse(text)).check(parse(text.replace("%y, %z :", "%z, %y :")))
    assert answer.difference is not None


def test_a_folded_constant_is_checked_as_its_expression_without_weights() -> None:
    """No weights are at hand in isoform-opt: what was folded is what it was made of."""
    from isoform.compiler.checks.differential import evaluate, first_difference

    before = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = graph.weight @w : tensor<4xf32>
  %e = graph.exp %w : tensor<4xf32>
  %y = graph.add %x, %e : tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
    expression = "%0 = graph.weight @w : tensor<4xf32>; %1 = graph.exp %0 : tensor<4xf32>"
    after = f"""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %e = graph.weight @folded {{isoform.expression = "{expression}"}} : tensor<4xf32>
  %y = graph.add %x, %e : tensor<4xf32>
  func.return %y : tensor<4xf32>
}}
"""
    results = [evaluate(parse(text)) for text in (before, after, after.replace("exp ", "tanh "))]
    assert first_difference(results[0], results[1]) is None
    assert first_difference(results[0], results[2]) is not None


def test_a_module_without_main_cannot_be_checked() -> None:
    with pytest.raises(UserError, match=r"no func\.func @main"):
        EqualityCheck(parse("func.func @f()"))


def test_check_and_explain_say_what_each_answer_rests_on(
    relus: Path, planted: Path, capsys: Captured
) -> None:
    base = [str(relus), "--plugin", str(planted), "--check", "--explain", "-p"]
    assert main([*base, "cse,relu-to-clip,graph-to-algebra"]) == 0
    err = capsys.readouterr().err
    assert "check after cse: unchanged" in err
    assert "check after relu-to-clip: equal\n" in err
    assert "check after graph-to-algebra: equal\n" in err
    assert main([*base, "cse,relu-to-clip{wrong=3}"]) == 1
    err = capsys.readouterr().err
    assert "error: --check: output 'r' at [" in err
    assert "[after pass 'relu-to-clip']" in err
