"""The laws that ship, written by hand: right on several ranks, and each condition needed."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from isoform.dialects.errors import UserError
from isoform.passes.rules.check import check_rule
from isoform.passes.rules.conditions import evaluate
from isoform.passes.rules.floats import classified
from isoform.passes.rules.instances import first_instances, outcome, with_spatial_dims
from isoform.passes.rules.prove.verdicts import verify_rule
from isoform.passes.rules.rule import Rule
from isoform.passes.rules.rule_set import PROVED, rules_named, shipped
from isoform.passes.rules.rule_text import parse_rules
from isoform.testing.property_checks import counterexample

LAWS = (*shipped("laws"), *shipped("expansive"))
# Of the rules that a line `over` makes those of two ops stand for all by default.
STAND_IN = ("exp", "relu", "div", "max")


def of_one_op(rule: Rule) -> bool:
    """Whether a rule is written out, or made for one of `STAND_IN`."""
    stem = rule.name.rpartition("-")[0]
    siblings = [r for r in LAWS if r.name.rpartition("-")[0] == stem]
    return len(siblings) < 10 or rule.name.endswith(STAND_IN)


CHOSEN = [rule for rule in LAWS if of_one_op(rule)]


@pytest.mark.parametrize("rule", CHOSEN, ids=lambda r: r.name)
def test_a_law_holds_on_its_first_instances(rule: Rule) -> None:
    tried = (outcome(rule, bindings) for bindings in islice(first_instances(rule, 300_000), 60))
    found = list(islice((one for one in tried if one.left == one.right), 4))
    assert found, "no small shapes fit both sides"
    assert all(one.equal for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("rule", CHOSEN, ids=lambda r: r.name)
def test_a_law_has_the_verdict_and_the_label_it_claims(rule: Rule) -> None:
    proof = verify_rule(rule, 20, seed=5).rule.proof
    assert proof == rule.proof or (rule not in STATED and proof in PROVED)
    if rule in STATED:
        # Instances are drawn: a label may be more cautious than what these few show, never less.
        assert rule.floats is not None
        assert classified(replace(rule, floats=None)) | rule.floats == rule.floats


# A family shares one verdict, that of the op least is known of, and the label of what changes most.
STATED = [rule for rule in CHOSEN if not rule.name.endswith(STAND_IN)]


# Its condition keeps the search finite, not the law right: tests/search/test_found.py has the case.
FOR_THE_SEARCH = ("slice-of-slice",)


@pytest.mark.parametrize(
    "rule", [r for r in CHOSEN if r.where and r.name not in FOR_THE_SEARCH], ids=lambda r: r.name
)
def test_each_condition_of_a_law_is_needed(rule: Rule) -> None:
    """Without it the law would be applied where it is wrong, or makes no sense."""
    for condition in rule.where:
        assert counterexample(rule, condition) is not None, condition


WRONG = """
rule slice-at-half-the-place: slice(slice(?x, starts=?s, sizes=?z, steps=?t), starts=?u, sizes=?y, \
steps=?v) => slice(?x, starts=?s + ?u, sizes=?y, steps=?t * ?v)
rule transposes-the-wrong-way-round: transpose(transpose(?x, perm=?p), perm=?q) => \
transpose(?x, perm=take(?q, ?p))
rule slice-of-conv-without-its-pads: slice(conv(?x, ?w, strides=?s, pads=?p, dilations=?d, \
groups=?g), starts=?a, sizes=?z, steps=?t) => conv(slice(?x, starts=join([?a[0], 0], \
rest(?a, 2) * ?s), sizes=join([?z[0], ?x.shape[1]], (rest(?z, 2) - 1) * rest(?t, 2) * ?s + ?d * \
(rest(?w.shape, 2) - 1) + 1), steps=put(?t * 0 + 1, 0, ?t[0])), ?w, strides=?s * rest(?t, 2), \
pads=?p * 0, dilations=?d, groups=?g)
rule mean-for-sum: reduce_sum(matmul(?a, ?b), axes=[?k], keep_dims=true) => \
matmul(?a, reduce_mean(?b, axes=[?k], keep_dims=true)) where ?k == ?a.rank - 1
rule difference-turned: sub(matmul(?a, ?b), matmul(?a, ?c)) => matmul(?a, sub(?c, ?b))
rule padded-point: conv(conv(?x, ?w, strides=?s, pads=?p, dilations=?d, groups=1), ?v, strides=?t, \
pads=?q, dilations=?e, groups=1) => conv(?x, transpose(conv(transpose(?w, perm=put(put(count(\
?w.rank), 0, 1), 1, 0)), ?v, strides=?d * 0 + 1, pads=?p * 0, dilations=?d * 0 + 1, groups=1), \
perm=put(put(count(?w.rank), 0, 1), 1, 0)), strides=?s, pads=?p, dilations=?d, groups=1) where \
product(?v.shape) == ?v.shape[0] * ?v.shape[1]
rule second-part-from-its-start: slice(concat(?a, ?b, axis=?k), starts=?s, sizes=?z, steps=?t) => \
slice(?b, starts=put(?s, ?k, 0), sizes=?z, steps=?t) where ?s[?k] >= ?a.shape[?k]
rule padded-at-the-other-end: add(conv(?x, ?w, strides=?s, pads=?p, dilations=?d, groups=?g), \
conv(?x, ?v, strides=?s, pads=?q, dilations=?d, groups=?g)) => conv(?x, add(pad(?w, \
pads=join(join(count(2) * 0, take((max(?p, ?q) - ?p) // join(?d, ?d), count(?w.rank - 2) + \
?w.rank - 2)), join(count(2) * 0, take((max(?p, ?q) - ?p) // join(?d, ?d), count(?w.rank - \
2))))), pad(?v, pads=join(join(count(2) * 0, take((max(?p, ?q) - ?q) // join(?d, ?d), \
count(?w.rank - 2) + ?w.rank - 2)), join(count(2) * 0, take((max(?p, ?q) - ?q) // join(?d, ?d), \
count(?w.rank - 2)))))), strides=?s, pads=max(?p, ?q), dilations=?d, groups=?g)
rule sum-taken-half: sub(?a, add(?b, ?c)) => add(sub(?a, ?b), ?c)
rule gather-of-summed-rows: gather(matmul(?a, ?b), ?i, axis=?k) => matmul(?a, gather(?b, ?i, \
axis=?k)) where ?k == ?a.rank - 2
rule groups-of-unlike-sizes: concat(conv(?x, ?w, strides=?s, pads=?p, dilations=?d, groups=?g), \
conv(?y, ?v, strides=?s, pads=?p, dilations=?d, groups=?k), axis=1) => conv(concat(?x, ?y, \
axis=1), concat(?w, ?v, axis=0), strides=?s, pads=?p, dilations=?d, groups=?g + ?k) where \
?w.shape[1] == ?v.shape[1]
rule shuffled-the-other-way: matmul(reshape(transpose(reshape(?x, shape=?r), perm=[0, 2, 1]), \
shape=?h), ?w) => matmul(?x, reshape(transpose(reshape(?w, shape=[?r[1], ?r[2], ?w.shape[1]]), \
perm=[1, 0, 2]), shape=?w.shape)) where ?h == ?x.shape and ?r[0] == ?h[0] and ?x.rank == 2
rule mean-of-weighted-rows: reduce_mean(mul(?a, broadcast(?v, shape=?h, dims=?e)), axes=[?k], \
keep_dims=true) => matmul(?v, ?a, transpose_a=true) where ?k == ?a.rank - 2 and ?e == \
count(?a.rank) and ?v.shape == put(?a.shape, -1, 1)
rule copies-in-turn-for-side-by-side: concat(?x, ?x, axis=?k) => reshape(broadcast(?x, \
shape=join(first(?x.shape, ?k + 1), join([2], rest(?x.shape, ?k + 1))), dims=drop(count(?x.rank + \
1), ?k + 1)), shape=put(?x.shape, ?k, 2 * ?x.shape[?k]))
rule sum-of-the-channels-for-that-of-their-copies: conv(reshape(broadcast(?x, shape=?h, dims=?e), \
shape=?t), ?w, strides=?s, pads=?p, dilations=?d, groups=1) => conv(?x, reduce_sum(reshape(?w, \
shape=join([?w.shape[0], ?h[1], ?h[2]], rest(?w.shape, 2))), axes=[?e[1]], keep_dims=false), \
strides=?s, pads=?p, dilations=?d, groups=1) where ?x.shape == drop(?h, 3 - ?e[1]) and \
?e == drop(count(?x.rank + 1), 3 - ?e[1]) and ?t == join([?h[0], ?h[1] * ?h[2]], rest(?h, 3))
rule row-along-the-dim-it-came-from: add(transpose(?x, perm=?p), broadcast(?v, shape=?h, \
dims=[?k])) => transpose(add(?x, broadcast(?v, shape=?x.shape, dims=[find(?p, ?k)])), perm=?p)
rule softmax-along-another-dim: softmax(transpose(?x, perm=?p), axis=?k) => transpose(softmax(?x, \
axis=?k), perm=?p)
"""


@pytest.mark.parametrize("rule", parse_rules(WRONG), ids=lambda r: r.name)
def test_a_wrong_law_is_refuted(rule: Rule) -> None:
    assert check_rule(rule, 300, thorough=True).wrong is not None


def test_a_law_of_windows_is_checked_on_signals_and_volumes() -> None:
    rule = next(r for r in LAWS if r.name == "convs-of-one-image")
    image = next(first_instances(rule))
    ranks = [len(image["x"])]
    for dims in (1, 3):
        made = with_spatial_dims(rule, image, dims)
        assert made is not None and outcome(rule, made).equal
        ranks.append(len(made["x"]))
    assert ranks == [4, 3, 5]


def test_searches_take_laws_that_are_checked_or_proved() -> None:
    assert {*rules_named("laws"), *rules_named("expansive")} == {*LAWS}
    assert {rule.proof for rule in LAWS} <= {"checked-only", "proved-by-z3", "proved-by-e-graph"}
    assert all(rule.floats is not None for rule in LAWS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("put(p, 1, 7)", (1, 7, 0)),
        ("put(p, -1, 7)", (1, 2, 7)),
        ("take(p, inverse(p))", (0, 1, 2)),
        ("find(p, 2)", 1),
        ("drop(p, 0)", (2, 0)),
        ("join(p, count(2))", (1, 2, 0, 0, 1)),
        ("product(p + 1)", 6),
        ("max(p, 1)", (1, 2, 1)),
        ("min(p, x.shape[0], 3 * p)", (1, 2, 0)),
        ("2 * p + p * p", (3, 8, 0)),
        ("p - p == p * 0", True),
        ("x.shape == join(p, p)", False),
    ],
)
def test_functions_of_lists(text: str, value: object) -> None:
    assert evaluate(text, {"p": (1, 2, 0), "x": (3, 4)}) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("put(p, 9, 1)", "reads what is not there"),
        ("find(p, 9)", "reads what is not there"),
        ("p + x.shape", "cannot be computed"),
        ("put(p, 1)", "put has other arguments"),
    ],
)
def test_functions_of_lists_refuse_what_they_cannot_do(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        evaluate(text, {"p": (1, 2, 0), "x": (3, 4)})


def test_a_line_over_ops_makes_a_rule_for_each() -> None:
    text = "rule twice [checked-only; bits]: f(f(?x)) => f(?x) over f relu abs where ?x.rank == 2"
    first, second = parse_rules(text)
    assert [first.name, second.name] == ["twice-relu", "twice-abs"]
    assert first.where == ("?x.rank == 2",) and first.floats is not None
    unary = parse_rules("rule twice: f(f(?x)) => f(?x) over f unary")
    assert {"twice-tanh", "twice-sigmoid"} <= {rule.name for rule in unary}
    assert "twice-cast" not in {rule.name for rule in unary}, "it has attributes"


def test_a_line_over_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="'over' names no op"):
        parse_rules("rule twice: f(f(?x)) => f(?x) over f")
