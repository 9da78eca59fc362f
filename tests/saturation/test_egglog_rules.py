"""Rules written in egglog join a run: read as ours, proved or allowed, each instance checked."""

from pathlib import Path

import pytest

from isoform.compiler.opt import main
from isoform.dialects.errors import UserError
from isoform.passes.rules.egglog_text import parse_egglog
from isoform.passes.rules.rule_set import read_rules
from isoform.passes.rules.rule_text import parse_rules

MERGES = Path(__file__).parent / "merges.rules"

PROGRAM = """
func.func @main(%x: tensor<64x256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>) {
  %v = graph.weight @v : tensor<256x256xf32>
  %w = graph.weight @w : tensor<256x256xf32>
  %y = graph.matmul %x, %v : tensor<64x256xf32>
  %z = graph.matmul %x, %w : tensor<64x256xf32>
  func.return %y, %z : tensor<64x256xf32>, tensor<64x256xf32>
}
"""
MERGE = """
(rule ((= e (matmul a b)) (= f (matmul a c)) (= (rank a) 2))
      ((let y (split (matmul a (concat b c :axis 1)) :axis 1
                     :sizes (vec-of (dim b 1) (dim c 1))))
       (union e (part y 0)) (union f (part y 1))) :name "matmul-merge-shared-left")
"""
WRONG = '(rewrite (matmul a b) (matmul b a) :when ((= (dim a 0) 64)) :name "turned")'


def test_a_merge_written_in_egglog_is_the_merge_of_the_rule_file() -> None:
    (rule,) = parse_egglog(MERGE)
    wanted = next(r for r in read_rules(MERGES) if r.name == rule.name)
    assert (rule.left, rule.right, rule.where) == (wanted.left, wanted.right, wanted.where)


def test_sizes_attributes_and_conditions_are_read_as_a_rule_file_has_them() -> None:
    text = """
    (rewrite (split (relu x) :axis k :sizes (vec-of p q)) (relu x)
      :when ((< (+ (dim x -1) 1) (* 2 (at s 0))) (or (= k 1) (not (>= p q)))) :name "r")
    (birewrite (matmul a b :transpose_b true) (matmul a (transpose b :perm (vec-of 1 0))) :name "t")
    """
    found = parse_egglog(text)
    assert [rule.name for rule in found] == ["r", "t", "t-back"]
    wanted = parse_rules(
        "rule r\n  split(relu(?x), axis=?k, sizes=[?p, ?q]) => relu(?x)\n"
        "rule t\n  matmul(?a, ?b, transpose_b=true) => matmul(?a, transpose(?b, perm=[1, 0]))\n"
    )
    assert [(r.left, r.right) for r in found[:2]] == [(r.left, r.right) for r in wanted]
    assert found[0].where == (
        "(x.shape[-1] + 1) < (2 * s[0])",
        "(k == 1) or (not (p >= q))",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(rewrite (relu x)", "egglog does not read this"),
        ("(relation r (i64))", "this is not a rule"),
        ("(rewrite (relu x) (relu y))", "does not bind 'y'"),
        ("(rule ((= e (relu x))) ((relation-of e)))", "no action"),
        ("(rule ((= e (relu x)) (= f (relu y))) ((union e x)))", "about 'f'"),
        ("(rule ((= e (relu e))) ((union e e)))", "part of itself"),
        ("(rewrite (split x :axis) x)", "read :name value"),
        ("(rewrite (relu x) x :when ((bitand x 1)))", "not a condition"),
        ("(rule ((= (dim x 0) 2)) ())", "joins nothing"),
    ],
)
def test_what_no_rule_can_say_is_one_line(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_egglog(text, "my.egg")
    assert str(caught.value).startswith("my.egg: ")
    assert "\n" not in str(caught.value)


def saturated(folder: Path, rules: str, options: str = "") -> int:
    """Run `graph-saturate` with rules of egglog alone, from the command line."""
    (folder / "in.mlir").write_text(PROGRAM)
    (folder / "my.egg").write_text(rules)
    (folder / "none.rules").write_text("")
    given = f'rules="{folder / "none.rules"}" egglog-rules="{folder / "my.egg"}" target=h100'
    return main([str(folder / "in.mlir"), "-p", f"graph-saturate{{{given} {options}}}"])


def test_a_proved_rule_takes_part_by_the_command_line(tmp_path, capsys) -> None:
    assert saturated(tmp_path, MERGE) == 0
    assert capsys.readouterr().out.count("graph.matmul") == 1


def test_a_rule_that_nobody_proves_has_to_be_allowed(tmp_path, capsys, monkeypatch) -> None:
    from isoform.passes.rules.prove import by_egraph, by_z3

    monkeypatch.setattr(by_z3, "proved_by_z3", lambda rule: False)
    monkeypatch.setattr(by_egraph, "proved_by_egraph", lambda rule: False)
    assert saturated(tmp_path, MERGE) == 1
    error = capsys.readouterr().err
    assert "rule 'matmul-merge-shared-left' is not proved (allow-unproved=true)" in error
    assert saturated(tmp_path, MERGE, "allow-unproved=true") == 0
    assert capsys.readouterr().out.count("graph.matmul") == 1


def test_a_refuted_rule_is_refused_whatever_is_allowed(tmp_path, capsys) -> None:
    assert saturated(tmp_path, WRONG, "allow-unproved=true") == 1
    assert "rule 'turned' does not hold" in capsys.readouterr().err


def test_each_instance_of_an_added_rule_is_checked(tmp_path, capsys, monkeypatch) -> None:
    """Also where a verdict was wrong: the check of e-nodes does not ask for it."""
    from isoform.passes.rules.prove import verdicts

    def unchecked(rule):
        return verdicts.VerifiedRule(rule, None)  # type: ignore[arg-type]

    monkeypatch.setattr(verdicts, "verify_rule", unchecked)
    wrong = '(rewrite (matmul a b) (add (matmul a b) (matmul a b)) :name "doubled")'
    assert saturated(tmp_path, wrong, "allow-unproved=true fast-math=true") == 1
    assert "rule 'doubled' does not hold on" in capsys.readouterr().err
