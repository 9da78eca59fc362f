"""The generator: what it enumerates, finds, prunes, and that it does so the same way twice."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from isoform.passes.rules.exact import plan
from isoform.passes.rules.generate import pipeline
from isoform.passes.rules.generate.candidates import RuleCandidate, candidates
from isoform.passes.rules.generate.generalise import Failure, generalise
from isoform.passes.rules.generate.operators import (
    ADD,
    MATMUL,
    RELU,
    WORLDS,
    World,
    concat,
    conv,
    operator,
    split,
)
from isoform.passes.rules.generate.parts import laws_of_parts
from isoform.passes.rules.generate.pipeline import generate, rule_file
from isoform.passes.rules.generate.special import is_special_case, without_special_cases
from isoform.passes.rules.generate.subsume import without_consequences
from isoform.passes.rules.generate.table import Enumerator
from isoform.passes.rules.rule import Rule, Var
from isoform.passes.rules.rule_text import parse_rules, term_text
from isoform.testing.property_checks import counterexample

SHIPPED = Path(pipeline.__file__).parents[1] / "rules" / "default.rules"
SQUARE = frozenset({2, 4})
SMALL = World("small", (("a", (2, 2)), ("b", (2, 2)), ("c", (2, 2))), (ADD, MATMUL, RELU), SQUARE)
PARTS = World(
    "parts",
    (("a", (2, 2)), ("b", (2, 2)), ("c", (2, 2))),
    (MATMUL, RELU, concat(0), concat(1), split(0), split(1)),
    SQUARE,
)


def laws(world: World, size: int) -> set[str]:
    found, _ = candidates(Enumerator(world, 1, size).run())
    texts = set[str]()
    for one in found:
        left, right = (", ".join(term_text(t) for t in side) for side in (one.left, one.right))
        texts |= {f"{left} = {right}", f"{right} = {left}"}
    return texts


def test_the_table_holds_every_graph_once() -> None:
    """Compared with plain recursion over sets of nodes; no op here commutes."""
    world = World("two", (("a", (2, 2)), ("b", (2, 2))), (MATMUL, RELU), SQUARE)
    table = Enumerator(world, 1, 3, representatives_from=9).run()
    known: dict[str, frozenset[str]] = {"a": frozenset(), "b": frozenset()}
    for _ in range(3):
        for x, y in product(list(known), repeat=2):
            text = f"matmul({x},{y})"
            known[text] = known[x] | known[y] | {text}
        for x in list(known):
            known[f"relu({x})"] = known[x] | {f"relu({x})"}
        known = {text: nodes for text, nodes in known.items() if len(nodes) <= 3}
    assert len(table) == len(known)


def test_the_algebra_of_matrices_is_found() -> None:
    found = laws(SMALL, 3)
    assert "add(?a, ?b) = add(?b, ?a)" in found
    assert "matmul(?a, matmul(?b, ?c)) = matmul(matmul(?a, ?b), ?c)" in found
    assert "relu(relu(?a)) = relu(?a)" in found
    assert any(law.startswith("matmul(?a, add(?b, ?c)) = add(") for law in found)
    assert not any("matmul(?a, ?b) = matmul(?b, ?a)" in law for law in found)


def test_operands_that_share_an_input_are_merged() -> None:
    found, _ = candidates(Enumerator(PARTS, 1, 3).run())
    merges = [one for one in found if len(one.left) == 2]
    texts = {", ".join(term_text(t) for t in one.left) for one in merges}
    assert "matmul(?a, ?b), matmul(?a, ?c)" in texts
    one = next(
        o
        for o in merges
        if "(?a, ?b), matmul(?a, ?c)" in str([*map(term_text, o.left)])
        or ", ".join(map(term_text, o.left)) == "matmul(?a, ?b), matmul(?a, ?c)"
    )
    rule = generalise(one)
    assert isinstance(rule, Rule)
    text = ", ".join(term_text(t) for t in rule.right)
    assert "axis=?a.rank - 1, sizes=[?b.shape[-1], ?c.shape[-1]]" in text  # not of rank 2 alone


def test_an_op_joins_by_its_specification_alone() -> None:
    world = World(
        "more",
        (("a", (2, 2)), ("b", (2, 2))),
        (operator("sub", 2), operator("neg", 1), operator("tanh", 1)),
        SQUARE,
    )
    found = laws(world, 2)
    assert "neg(sub(?a, ?b)) = sub(?b, ?a)" in found
    assert "neg(neg(?a)) = ?a" in found
    assert not any("tanh" in law for law in found)


def test_what_follows_from_smaller_laws_is_dropped() -> None:
    found, _ = candidates(Enumerator(SMALL, 1, 3).run())
    kept = without_consequences(found)
    assert len(kept) < len(found) / 2
    sizes = [" = ".join(term_text(t) for t in (*o.left, *o.right)) for o in kept]
    assert "add(?a, ?b) = add(?b, ?a)" in sizes


def test_a_side_condition_is_found_and_needed() -> None:
    """Merging kernels of grouped convolutions over one image is right for one group only."""
    world = World(
        "convs",
        (("x", (1, 2, 2, 2)), ("w", (2, 2, 1, 1)), ("v", (2, 2, 1, 1))),
        (conv(), concat(0), split(1)),
        frozenset({1, 2, 4}),
    )
    found, _ = candidates(Enumerator(world, 1, 3).run())
    one = next(o for o in found if len(o.left) == 2)
    rule = generalise(one)
    assert isinstance(rule, Rule)
    needed = [c for c in rule.where if counterexample(rule, c) is not None]
    assert {"groups == 1", "x.shape[1] == w.shape[1]"} & set(needed)


def test_a_law_of_square_matrices_only_is_no_rule() -> None:
    """matmul(a, a) makes sense for squares alone: what comes of it is a rule or a reason."""
    world = World("one", (("a", (2, 2)),), (MATMUL, operator("transpose", 1, perm=(1, 0))), SQUARE)
    found, _ = candidates(Enumerator(world, 1, 2).run())
    made = [generalise(one) for one in found]
    assert all(isinstance(m, Rule | Failure) for m in made)


def test_a_false_equality_becomes_no_rule() -> None:
    table = Enumerator(SMALL, 1, 1).run()
    terms = {term_text(table.term(k)): table.term(k) for k in range(len(table))}
    shapes = tuple((name, shape) for name, shape in SMALL.variables)
    one = RuleCandidate((terms["add(?a, ?b)"],), (terms["matmul(?a, ?b)"],), shapes)
    assert isinstance(generalise(one), Failure)


def test_generation_is_reproducible_and_resumes(tmp_path: Path) -> None:
    world = [World("w", SMALL.variables[:2], (ADD, RELU), SQUARE)]
    first = rule_file(generate(2, world))
    kept = rule_file(generate(2, world, checkpoint=tmp_path))
    steps = sorted(p.name for p in tmp_path.iterdir())
    assert {name.split("-")[0] for name in steps} == {"candidates", "general", "proved"}
    resumed = rule_file(generate(2, world, checkpoint=tmp_path))
    assert first == kept == resumed
    assert "rule add-to-add\n" in first


@pytest.mark.slow
def test_processes_change_nothing() -> None:
    world = [World("w", SMALL.variables[:2], (ADD, RELU), SQUARE)]
    assert rule_file(generate(2, world)) == rule_file(generate(2, world, jobs=2))


@pytest.mark.parametrize("size", [1])
def test_small_graphs_give_the_rules_on_file(size: int) -> None:
    """As the shipped file, bit for bit, does with 3: `isoform rules generate --size 3`."""
    expected = Path(__file__).parent / f"size{size}.rules"
    assert rule_file(generate(size)) == expected.read_text()


@pytest.mark.slow
def test_the_shipped_file_is_what_the_generator_makes() -> None:
    assert rule_file(generate(3, jobs=2)) == SHIPPED.read_text()


def test_a_special_case_of_a_rule_is_dropped() -> None:
    general, special, other = parse_rules(
        "rule a\n  concat(?a, concat(?b, ?c, axis=?k), axis=?k) =>\n"
        "    concat(concat(?a, ?b, axis=?k), ?c, axis=?k)\n"
        "rule b\n  concat(?x, concat(?x, ?y, axis=1), axis=1) =>\n"
        "    concat(concat(?x, ?x, axis=1), ?y, axis=1)\n"
        "rule c\n  concat(?a, concat(?b, ?c, axis=?k), axis=?k) =>\n"
        "    concat(?a, concat(?b, ?c, axis=?k), axis=?k)\n"
    )
    assert without_special_cases([special, general]) == [general]
    assert without_special_cases([other, general]) == [other, general]
    assert not is_special_case(general, special)


@pytest.mark.parametrize("bias", [False, True])
def test_merging_groups_is_found(bias: bool) -> None:
    """Two groups as one, with zeros where they do not meet: nobody wrote this rule.

    Its mask has the kernel's shape, not numbers that equal it on the images enumerated.
    """
    (world,) = [w for w in WORLDS if w.name == "merged-groups"]
    found, _ = candidates(Enumerator(world, 1, 3).run())
    ops = [o for o in found if "mul(concat(?w, ?w" in term_text(o.left[0])]
    one = next(o for o in ops if len(o.right[0].operands) == 2 + bias)  # pyright: ignore
    assert one.right[0].operands[:2] == (Var("x"), Var("w"))  # pyright: ignore
    rule = generalise(RuleCandidate(one.right, one.left, one.shapes))
    assert isinstance(rule, Rule)
    text = term_text(rule.right[0])
    assert "groups=?groups // 2" in text
    assert "shape=[?w.shape[0], 2 * ?w.shape[1], ?w.shape[2], ?w.shape[3]]" in text


def test_two_parts_of_a_concat_are_a_law_of_two_outputs() -> None:
    """Two convolutions of one image, each with its bias: the split is past the size limit."""
    shapes = (("x", (1, 2, 2, 2)), ("w", (2, 2, 1, 1)), ("v", (2, 2, 1, 1)), ("b", (2,)))
    operators = (conv(arity=3), concat(0), concat(1))
    world = World("biases", (*shapes, ("c", (2,))), operators, frozenset({1, 2, 4}))
    found, _ = candidates(Enumerator(world, 1, 3).run())
    (one,) = laws_of_parts(found, 3)
    rule = generalise(one)
    assert isinstance(rule, Rule)
    left, right = ([term_text(t) for t in side] for side in (rule.left, rule.right))
    assert all(text.startswith("conv(?x") for text in left)
    assert "concat(?w, ?v, axis=0), concat(?b, ?c, axis=0)" in right[0]
    assert "sizes=[?w.shape[0], ?v.shape[0]]" in right[0]


def test_fingerprints_differ_where_values_do() -> None:
    table = Enumerator(SMALL, 1, 2).run()
    again = Enumerator(SMALL, 2, 2).run()
    _, mine = np.unique(table.hashes, return_inverse=True)
    _, theirs = np.unique(again.hashes, return_inverse=True)
    pairs = {(int(a), int(b)) for a, b in zip(mine, theirs, strict=True)}
    assert len(pairs) == mine.max() + 1 == theirs.max() + 1  # other draws, the same classes
    assert plan("add", (), ((2, 2), (2, 2))) is not None
