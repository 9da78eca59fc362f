"""TENSAT's published rules, where the environment says they are: ISOFORM_TENSAT_RULES=FOLDER."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from isoform.compiler import zoo
from isoform.dialects.errors import UserError
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.prove.by_egraph import proved_by_egraph
from isoform.passes.rules.rule_text import parse_rules, print_rules
from isoform.passes.saturation.check import check_instances
from isoform.passes.saturation.price import NodePrices
from isoform.passes.saturation.search import SaturationSettings, saturate_block
from isoform.testing.tensat_rules import convert

BRIDGE = """
rule matmul-transposed-weight
  where b.rank == 2
  matmul(?a, ?b, transpose_b=true) => matmul(?a, transpose(?b, perm=[1, 0]))
"""

HERE = os.environ.get("ISOFORM_TENSAT_RULES")
FOLDER = Path(HERE) if HERE else None

EXAMPLE = """
(ewadd ?input_1 (matmul 0 ?input_2 ?input_3))=>(ewadd (matmul 0 ?input_2 ?input_3) ?input_1)
(concat 1 4 (conv2d 1 1 0 2 ?x ?w) (conv2d 1 1 0 2 ?y ?v))=>\
(relu (conv2d 1 1 0 0 (concat 1 4 ?x ?y) (concat 0 4 ?w ?v)))
(relu (conv2d 1 1 0 0 ?x ?w))=>(conv2d 1 1 0 2 ?x ?w)
"""
PAIR = """
(matmul 0 ?a ?b)=>(split_0 (split 1 (matmul 0 ?a (concat 1 2 ?b ?c))))
(matmul 0 ?a ?c)=>(split_1 (split 1 (matmul 0 ?a (concat 1 2 ?b ?c))))
"""


def test_rules_become_rules_of_ours_and_stay_so_as_text() -> None:
    rules = convert(EXAMPLE, PAIR)
    assert [rule.name for rule in rules] == ["tensat-0", "tensat-1", "tensat-multi-0"]
    assert "w.shape[0] * g1 == v.shape[0] * g0" in rules[1].where
    assert "?b.shape[1], ?c.shape[1]" in print_rules(rules[2:])
    assert parse_rules(print_rules(rules)) == rules


@pytest.mark.parametrize("text", ["(relu ?x)", "(a ?x)=>?x", "(relu ?x))=>?x", "?x=>(relu ?y)"])
def test_what_is_no_rule_is_one_line(text: str) -> None:
    with pytest.raises(UserError):
        convert(text)


SUMS = """
(ewadd (concat 1 4 ?a ?b) (concat 1 4 ?c ?d))=>(ewadd (concat 1 4 ?c ?b) (concat 1 4 ?a ?d))
(concat 0 4 (conv2d 1 1 0 0 ?x ?w) (conv2d 1 1 0 0 ?y ?w))=>(conv2d 1 1 0 0 (concat 0 4 ?x ?y) ?w)
"""
WRONG = """
(ewadd (concat 1 4 ?a ?b) (concat 1 4 ?c ?d))=>(ewadd (concat 1 4 ?a ?c) (concat 1 4 ?b ?d))
(concat 1 4 (conv2d 1 1 0 0 ?x ?w) (conv2d 1 1 0 0 ?x ?v))=>(conv2d 1 1 0 0 ?x (concat 0 4 ?v ?w))
(relu (ewadd ?a ?b))=>(relu (ewadd (relu ?a) ?b))
"""


def test_rules_follow_from_our_operator_properties_and_false_ones_do_not() -> None:
    grouped = convert(EXAMPLE)[1]
    for rule in (grouped, *convert(SUMS)):
        assert proved_by_egraph(rule), rule.name
    ranks = tuple(c for c in grouped.where if "*" not in c)
    for rule in (replace(grouped, where=ranks), *convert(WRONG)):
        assert not proved_by_egraph(rule), rule.name


published = pytest.mark.skipif(FOLDER is None, reason="ISOFORM_TENSAT_RULES is not set")


def published_rules():
    assert FOLDER is not None
    multi = (FOLDER / "converted_multi.txt").read_text()
    return convert((FOLDER / "converted.txt").read_text(), multi)


@published
def test_every_published_rule_converts() -> None:
    rules = published_rules()
    assert len(rules) == 129  # 133 less four that only move an activation into a convolution
    assert sum(len(rule.left) == 2 for rule in rules) == 11
    assert parse_rules(print_rules(rules)) == rules


@published
@pytest.mark.slow
def test_published_rules_follow_from_our_operator_properties() -> None:
    assert [rule.name for rule in published_rules() if not proved_by_egraph(rule)] == []


@published
@pytest.mark.slow
def test_every_instance_of_the_published_rules_on_the_models_holds() -> None:
    for name in ("squeezenet", "nasrnn", "tensat-bert", "vgg19", "resnext50", "inception-v3"):
        table = OpTable()
        prices = NodePrices(table, Costs(target_named("h100")))
        rules = (*published_rules(), *parse_rules(BRIDGE))
        block = zoo.build(name).main.body.block
        outcome = saturate_block(
            block, table, prices, SaturationSettings(rules=rules, method="dag")
        )
        checked = check_instances(outcome.saturation.instances)
        assert not checked.failed, name
