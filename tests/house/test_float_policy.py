"""Everything that rewrites says what it does to floats: none has a default."""

import pytest

from isoform.compiler.pipelines import FAST_MATH, FOR_CPU, LOWER_TO_KERNEL, PLACE
from isoform.compiler.registry import PASSES
from isoform.compiler.reports.float_policy import OF_XDSL, floats_named
from isoform.compiler.search.optimizer import GRAPH_REWRITES
from isoform.compiler.search.strategies import STRATEGIES
from isoform.dialects.floats import Floats, Label
from isoform.passes.derivation.rules import BY_HAND, EAGER, RULES
from isoform.passes.rules.rule_set import shipped, shipped_names


@pytest.mark.parametrize("name", [name for name, _ in PASSES])
def test_a_pass_has_a_label_of_its_own(name: str) -> None:
    cls = dict(PASSES)[name]()
    assert isinstance(vars(cls).get("floats"), Floats)


def test_what_runs_by_default_never_changes_values() -> None:
    names = {*GRAPH_REWRITES, *LOWER_TO_KERNEL, *PLACE, *FOR_CPU}
    assert {*OF_XDSL} <= {*names, "cse"}, "cse stands in certificates and in users' pipelines"
    labels = {name: floats_named(name) for name in names}
    assert all(found is not None and found.label != Label.VALUES for found in labels.values())
    assert [floats_named(name).label for name in FAST_MATH] == [Label.VALUES]  # pyright: ignore


def test_rules_and_searches_have_labels() -> None:
    listed = [*RULES, *EAGER, *BY_HAND, *STRATEGIES]
    assert all(isinstance(one.floats, Floats) for one in listed)
    for name in shipped_names():
        assert [rule.name for rule in shipped(name) if rule.floats is None] == []
