"""Layouts of products: flags and transposes are one to the search, and cost what they cost."""

import numpy as np
import pytest
from xdsl.ir import Block

from isoform.compiler import api
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.equivalence import compare
from isoform.passes.rules.graph_form import Tables, encode
from isoform.passes.rules.op_table import OpTable
from isoform.passes.rules.rule_text import parse_rules, term_text
from isoform.passes.search_result import Limits
from isoform.passes.substitution.layouts import (
    fold_transposes,
    unfold_transposes,
    with_unfolded_transposes,
)
from isoform.passes.substitution.search import FOLDED, SubstitutionSettings, search

COSTS = Costs(target_named("h100"))


def flagged(transpose_a: bool, transpose_b: bool, batch: tuple[int, ...] = ()) -> Program:
    build = GraphBuilder()
    x = build.input("x", (*batch, *((6, 4) if transpose_a else (4, 6))))
    w = build.input("w", (*batch, *((8, 6) if transpose_b else (6, 8))))
    build.output("y", build.matmul(x, w, transpose_a=transpose_a, transpose_b=transpose_b))
    return build.build()


def block_of(program: Program) -> Block:
    return program.main.body.block


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("flags", [(False, True), (True, False), (True, True), (False, False)])
def test_unfolding_is_undone_and_changes_no_value(
    flags: tuple[bool, bool], batch: tuple[int, ...]
) -> None:
    program = flagged(*flags, batch)
    other = program.clone()
    unfold_transposes(block_of(other))
    assert str(other.module).count("graph.transpose") == sum(flags)
    rng = np.random.default_rng(0)
    given = {name: rng.random(type_.get_shape()) for name, type_ in program.inputs.items()}
    before, after = (reference.run(p, given)["y"] for p in (program, other))
    assert np.allclose(before, after)
    fold_transposes(block_of(other))
    assert other.module.is_structurally_equivalent(program.module)


@pytest.mark.parametrize("shared", [False, True])
def test_a_transpose_costs_what_reads_it_beside_products(shared: bool) -> None:
    build = GraphBuilder()
    x, w = build.input("x", (64, 32)), build.input("w", (16, 32))
    turned = build.transpose(w, perm=[1, 0])
    build.output("y", build.matmul(x, turned))
    if shared:
        build.output("z", build.relu(turned))
    program = build.build()
    graph = encode(block_of(program), Tables(OpTable(), COSTS))
    folded = program.clone()
    fold_transposes(block_of(folded))
    assert graph.seconds == pytest.approx(COSTS.program(folded).seconds)
    assert ("graph.transpose" in str(folded.module)) == shared


def test_layouts_alone_gain_where_a_transpose_is_written_out() -> None:
    build = GraphBuilder()
    x, w = build.input("x", (64, 32)), build.input("w", (16, 32))
    build.output("y", build.matmul(x, build.transpose(w, perm=[1, 0])))
    program = build.build()
    found = search(program, COSTS, Limits(10.0), rules=())
    assert [applied.rule for applied in found.applied] == [FOLDED]
    assert "graph.transpose" not in str(found.program.module)
    assert compare(program, found.program).is_equal
    without = search(
        program, COSTS, Limits(10.0), rules=(), settings=SubstitutionSettings(layouts=False)
    )
    assert without.applied == []


def test_a_rule_written_with_flags_matches_unfolded_programs() -> None:
    (rule,) = parse_rules(
        "rule x\n  matmul(?a, ?b, transpose_b=true) => matmul(?a, transpose(?b, perm=[1, 0]))\n"
    )
    texts = [term_text(variant.left[0]) for variant in with_unfolded_transposes(rule)]
    assert texts[0] == "matmul(?a, transpose(?b, perm=[1, 0]))"
    assert texts[1] == "matmul(?a, transpose(?b, perm=[0, 2, 1]))"
    (plain,) = parse_rules("rule x\n  matmul(?a, ?b) => matmul(?a, ?b)\n")
    assert with_unfolded_transposes(plain) == (plain,)


def test_an_imported_model_keeps_its_flags_where_nothing_is_gained() -> None:
    program = api.improve(flagged(False, True))
    found = search(program, COSTS, Limits(10.0), rules=())
    assert found.program.module.is_structurally_equivalent(program.module)
