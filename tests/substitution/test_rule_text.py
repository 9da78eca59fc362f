"""Rules as text: read, written, refused."""

import pytest

from isoform.dialects.errors import UserError
from isoform.passes.rules.conditions import evaluate, holds
from isoform.passes.rules.rule import AttrVar, Out, Size
from isoform.passes.rules.rule_set import rules_named, shipped, shipped_names
from isoform.passes.rules.rule_text import parse_rules, print_rules

MERGE = """\
rule matmul-merge
  proof proved-by-z3
  source a test
  where a.rank == 2
  matmul(?a, ?b), matmul(?a, ?c) =>
    split(matmul(?a, concat(?b, ?c, axis=1)), axis=1, sizes=[?b.shape[1], ?c.shape[1]]).0,
    (same).1
"""


def test_a_rule_is_printed_as_it_was_read() -> None:
    (rule,) = parse_rules(MERGE)
    assert print_rules([rule]) == MERGE
    zeroth, first = rule.right
    assert isinstance(zeroth, Out) and isinstance(first, Out) and zeroth.node == first.node
    assert zeroth.node.attribute("sizes") == (Size("b.shape[1]"), Size("c.shape[1]"))


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_files_round_trip(name: str) -> None:
    rules = shipped(name)
    assert rules and parse_rules(print_rules(rules)) == rules


def test_attribute_values_of_every_kind() -> None:
    text = (
        'rule x\n  conv(?x, ?w, a=?s, b=[?p, 1, -2], c=true, d="t", e=1.5) => '
        "conv(?x, ?w, a=[?p + 1, min(?x.shape[-1] - 2, ?s[0] // 2)], b=not ?s)\n"
    )
    (rule,) = parse_rules(text)
    assert parse_rules(print_rules([rule])) == (rule,)
    node = rule.left[0]
    assert dict(node.attributes)["b"] == (AttrVar("p"), 1, -2)  # pyright: ignore


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rule x\n  relu(?a) => relu(?b)\n", "does not bind ?b"),
        ("rule x\n  relu(?a) => conv(?a, ?a, groups=?g)\n", "does not bind ?g"),
        ("rule x\n  relu(?a), relu(?b) => relu(?a)\n", "2 outputs left and 1 right"),
        ("rule x\n  proof prooved-by-z3\n  relu(?a) => ?a\n", "did you mean 'proved-by-z3'"),
        ("rule x\n  relu(?a => ?a\n", "f:2:11: rule x"),
        ("rule x: relu(?a) = ?a\n", "f:1:18: rule x"),
        ("rule x\n  relu(?a) =>  # to\n    ?a)\n", "f:3:7: rule x"),
        ("rule x\n  where a.shape[\n  relu(?a) => ?a\n", "not a condition or size"),
        ("rule x\n  relu(?a) => ?a\nrule x\n  relu(?a) => ?a\n", "stands twice"),
        ("relu(?a) => ?a\n", "starts with 'rule NAME'"),
        ("rule x: relu(?a) => ?a let ?b\n", "a let is 'let ?NAME = VALUE'"),
    ],
)
def test_broken_rules_are_refused_with_their_line(text: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_rules(text, "f")
    assert message in caught.value.one_line()


def test_conditions_compute() -> None:
    bound = {"x": (1, 6, 4), "g": 3, "s": (1, 2)}
    assert evaluate("x.shape[-1] + s[1] * 2", bound) == 8
    assert evaluate("x.shape[1] % g == 0 and not x.rank == 4", bound) is True
    assert evaluate("1 <= g < 3 or min(s[0], 5) == 1", bound) is True
    assert not holds(("x.shape[7] == 1",), bound)  # a dim that is not there


def test_lists_are_computed_element_by_element() -> None:
    bound = {"p": (1, 2, 3, 4), "s": (2, 0)}
    assert evaluate("first(p, 2) - rest(p, 2)", bound) == (-2, -2)
    assert evaluate("max(first(p, 2), s)", bound) == (2, 2)
    assert evaluate("min(-s, 0)", bound) == (-2, 0)
    assert evaluate("join([p[0], 7], s)", bound) == (1, 7, 2, 0)


def test_a_let_stands_for_its_value() -> None:
    text = (
        "rule cut: slice(?x, starts=?s, sizes=?z, steps=?t) => "
        "slice(?x, starts=?low * 2, sizes=?z, steps=?t) "
        "let ?low = ?s - 1 let ?high = ?low + ?z where ?high == ?s"
    )
    (rule,) = parse_rules(text)
    (right,) = rule.right
    assert rule.where == ("((?s - 1) + ?z) == ?s",)
    assert dict(right.attributes)["starts"] == Size("(s - 1) * 2")  # pyright: ignore


@pytest.mark.parametrize("text", ["__import__('os')", "x.shape.__class__", "x if x else x", "f(x)"])
def test_conditions_can_compute_and_nothing_else(text: str) -> None:
    with pytest.raises(UserError):
        evaluate(text, {"x": (1,), "f": 1})


def test_a_set_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="did you mean 'default'"):
        rules_named("defualt")
    assert all(rule.proof.startswith("proved") for rule in rules_named("default"))
