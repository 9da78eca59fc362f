"""TENSAT's models at full size: the same result every time, and certificates that are checked."""

from pathlib import Path

import pytest

from isoform.compiler import api, zoo
from isoform.compiler.reports.check_certificate import check_certificate
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.rule_set import read_rules
from isoform.passes.saturation.limits import Caps
from isoform.passes.saturation.price import NodePrices
from isoform.passes.saturation.search import SaturationSettings, saturate_block

RULES = read_rules(Path(__file__).parent / "merges.rules")
MODELS = ("tensat-bert", "resnext50", "nasnet-a", "nasrnn", "inception-v3", "squeezenet", "vgg19")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_five_runs_give_the_same_text(name: str) -> None:
    texts, costs = set[str](), Costs(target_named("h100"))
    for _ in range(5):
        program, table = zoo.build(name), OpTable()
        settings = SaturationSettings(rules=RULES, caps=Caps(seconds=600.0))
        outcome = saturate_block(program.main.body.block, table, NodePrices(table, costs), settings)
        assert outcome.saturation.stop_reason in ("finished", "steps", "nodes")
        assert outcome.extracted.optimal
        texts.add(str(program.module))
    assert len(texts) == 1


@pytest.mark.slow
def test_a_saturated_model_has_a_certificate_that_is_checked_again() -> None:
    better = api.optimize(zoo.build("squeezenet"), "h100", "saturate", level="graph")
    made = [rewrite["rule"] for rewrite in better.certificate["body"]["rewrites"]]
    assert made
    assert all(rule in str(better.module) for rule in made)
    assert check_certificate(better.certificate, zoo.build("squeezenet"), better).kind == "equal"
