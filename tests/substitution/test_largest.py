"""Laws of the size limit: found on arrays, and compared with what terms one by one give."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from isoform.passes.rules.exact import Shape
from isoform.passes.rules.generate import largest
from isoform.passes.rules.generate.candidates import RuleCandidate, candidates, roles_apart
from isoform.passes.rules.generate.closure import Closure
from isoform.passes.rules.generate.largest import largest_laws
from isoform.passes.rules.generate.operators import (
    ADD,
    MATMUL,
    MUL,
    RELU,
    WORLDS,
    Operator,
    World,
    conv,
    operator,
)
from isoform.passes.rules.generate.pipeline import generate, rule_file
from isoform.passes.rules.generate.subsume import GroundTerms
from isoform.passes.rules.generate.table import Enumerator, Table
from isoform.passes.rules.generate.traits import Traits
from isoform.passes.rules.rule import CONSTANTS, Var, nodes_of, subterms, variables_of
from isoform.passes.rules.rule_text import term_text

SQUARE = frozenset({2})
THREE = (("a", (2, 2)), ("b", (2, 2)), ("c", (2, 2)))
SUMS = World("sums", THREE, (ADD, MUL), SQUARE)
TRANSPOSE = operator("transpose", 1, perm=(1, 0))


def table(world: World, most: int) -> Table:
    """Operands of the size limit are the first of their class, as from the fourth operator on."""
    return Enumerator(world, 1, most, representatives_from=most).run()


def smaller(world: World, most: int) -> list[RuleCandidate]:
    return candidates(Enumerator(world, 1, most, representatives_from=9).run())[0]


def texts(found: list[RuleCandidate]) -> list[str]:
    return [" = ".join(term_text(t) for t in (*one.left, *one.right)) for one in found]


def test_distributing_is_a_law_of_three_operators() -> None:
    """Sums and products of any order follow from those of two operators; this one does not."""
    found = largest_laws(table(SUMS, 3), smaller(SUMS, 2)).found
    assert len(found) == 1
    assert set(texts(found)) <= {
        "add(mul(?a, ?b), mul(?a, ?c)) = mul(?a, add(?b, ?c))",
        "add(mul(?a, ?b), mul(?a, ?c)) = mul(add(?b, ?c), ?a)",
        "add(mul(?a, ?b), mul(?c, ?b)) = mul(add(?a, ?c), ?b)",
        "add(mul(?a, ?b), mul(?c, ?b)) = mul(?b, add(?a, ?c))",
        "add(mul(?a, ?b), mul(?b, ?c)) = mul(?b, add(?a, ?c))",
        "add(mul(?a, ?b), mul(?b, ?c)) = mul(add(?a, ?c), ?b)",
    }


@pytest.mark.parametrize(
    "operators", [(ADD, MUL), (MATMUL, TRANSPOSE), (ADD, RELU, TRANSPOSE), (ADD, MATMUL)]
)
def test_an_e_graph_derives_all_that_is_left_out(operators: tuple[Operator, ...]) -> None:
    """Every equality of the limit, by the smaller laws and those found, in egglog."""
    world = World("w", THREE, operators, SQUARE)
    made, laws = table(world, 3), smaller(world, 2)
    found = largest_laws(made, laws).found
    closure, traits = Closure(made), Traits(made)
    every = np.arange(len(made), dtype=np.int32)
    graph, positions = GroundTerms(), list[tuple[str, str, str]]()
    for k in np.flatnonzero(closure.large & traits.useful(every, closure.first)):
        first = int(closure.first[k])
        one = RuleCandidate((made.term(int(k)),), (made.term(first),), world.variables)
        if k != first and largest._holds(one):  # pyright: ignore[reportPrivateUsage]
            names = texts([one])[0]
            positions.append((graph.add(one.left[0], one), graph.add(one.right[0], one), names))
    for one in (*laws, *found):
        graph.rule(one)
    graph.saturate(4)
    assert positions
    assert [names for a, b, names in positions if not graph.equal(a, b)] == []


def test_smaller_laws_leave_fewer() -> None:
    four = World("four", (*THREE, ("d", (2, 2))), (ADD,), SQUARE)
    assert largest_laws(table(four, 3), []).parts
    assert not largest_laws(table(four, 3), smaller(four, 2)).parts


def test_a_law_is_applied_inside_classes() -> None:
    """(a b)^T = b^T a^T at the root, where the product is one member of its operand's class."""
    world = World("w", THREE, (MATMUL, TRANSPOSE), SQUARE)
    made, laws = table(world, 3), smaller(world, 2)
    closure = Closure(made)
    before = closure.part.copy()
    closure.apply([(one.left[0], one.right[0]) for one in laws])
    assert (closure.part <= before).all()
    assert (closure.part != before).any()
    same = made.hashes[closure.part] == made.hashes
    assert same.all()  # nothing is joined that is not equal


def test_a_wrong_law_joins_nothing_wrong() -> None:
    made = table(SUMS, 3)
    closure = Closure(made)
    a, b = Var("a"), Var("b")
    wrong = next(one for one in smaller(SUMS, 2) if one.left[0] != one.right[0])
    closure.apply([(wrong.left[0], a), (a, wrong.left[0]), (wrong.left[0], b)])
    assert (made.hashes[closure.part] == made.hashes).all()


def test_coincidences_are_no_laws() -> None:
    """relu keeps a small tensor as it is in one draw of four thousand."""
    world = World("w", THREE, (ADD, RELU, MUL), SQUARE)
    found = largest_laws(table(world, 3), smaller(world, 2)).found
    for one in found:
        assert largest._holds(one)  # pyright: ignore[reportPrivateUsage]


def test_traits_are_those_of_terms() -> None:
    variables: tuple[tuple[str, Shape], ...] = (("x", (1, 2, 2, 2)), ("w", (2, 2, 1, 1)))
    (kernels,) = [w for w in WORLDS if w.name == "kernels"]
    small = World("w", variables, (ADD, conv()), frozenset({1, 2}), kernels.constants)
    made = Enumerator(small, 1, 2).run()
    traits = Traits(made)
    names = [leaf.name if isinstance(leaf, Var) else "" for leaf in made.leaves]
    for k in range(len(made)):
        term = made.term(k)
        uses = [t.name for t in subterms((term,)) if isinstance(t, Var)]
        bits = sum(1 << names.index(name) for name in variables_of((term,)))
        assert traits.variables[k] == bits
        assert traits.linear[k] == (len(uses) == len(set(uses)))
        assert traits.constants[k] == any(n.op in CONSTANTS for n in nodes_of((term,)))
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, len(made), (2, 2000)).astype(np.int32)
    apart = traits.apart(*pairs)
    for a, b, said in zip(*pairs, apart, strict=True):
        assert said == roles_apart((made.term(int(a)), made.term(int(b))))
    assert apart.any()
    assert not apart.all()


def test_triples_are_those_of_three_operands() -> None:
    """Biased convolutions, compared with plain recursion over sets of nodes."""
    shapes: dict[str, Shape] = {"x": (1, 2, 2, 2), "w": (2, 2, 1, 1), "b": (2,)}
    world = World("w", tuple(shapes.items()), (conv(arity=3), ADD), frozenset({1, 2}))
    made = Enumerator(world, 1, 3, representatives_from=9).run()
    known: dict[str, tuple[frozenset[str], Shape]]
    known = {name: (frozenset(), shape) for name, shape in shapes.items()}
    for _ in range(3):
        of: dict[Shape, list[tuple[str, frozenset[str]]]] = {}
        for text, (nodes, shape) in known.items():
            of.setdefault(shape, []).append((text, nodes))
        for shape, terms in of.items():
            for (x, a), (y, b) in product(terms, repeat=2):
                if not ((a or b) and x != y and f"add({y},{x})" in known):
                    known.setdefault(f"add({x},{y})", (a | b | {f"add({x},{y})"}, shape))
        for image in (shapes["x"], shapes["w"]):
            for (x, a), (y, b), (z, c) in product(of[image], of[shapes["w"]], of[shapes["b"]]):
                text = f"conv({x},{y},{z})"
                known.setdefault(text, (a | b | c | {text}, image))
        known = {t: (nodes, s) for t, (nodes, s) in known.items() if len(nodes) <= 3}
    assert len(made) == len(known)
    assert len({term_text(made.term(k)) for k in range(len(made))}) == len(made)


def test_four_operators_are_made_from_a_checkpoint_alike(tmp_path: Path) -> None:
    world = [World("w", THREE[:2], (ADD, RELU), SQUARE)]
    first = generate(4, world, checkpoint=tmp_path)
    assert first.counts[0][1].limit_pairs > 0
    assert (tmp_path / "candidates-4-0.pickle").exists()
    assert rule_file(first) == rule_file(generate(4, world, checkpoint=tmp_path))
