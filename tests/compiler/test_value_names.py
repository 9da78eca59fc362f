"""What values are called decides nothing: not what is found, and not what is computed."""

import random
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import SSAValue

from isoform.compiler.targets.levels import lower_to
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program, keep_names, printed_names
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation import propose as derivation
from isoform.passes.partial import propose as partial
from isoform.passes.saturation import strategy as saturation
from isoform.passes.search_result import Limits, SearchResult
from isoform.passes.substitution import search as substitution
from isoform.testing.random_programs import random_graph, random_scope_program

# xDSL strips `_60` off a name, passes by hand name what they derive `y.0`, traces name scopes `s0`.
NAMES = (
    "val",
    "val_60",
    "x",
    "x_0",
    "x0",
    "s0",
    "s1",
    "s1.0",
    "w0",
    "v1.sum.0",
    "layer.0",
    "y",
    "_",
    "",
)


def weight(b: GraphBuilder, name: str, *shape: int) -> SSAValue:
    return b.weight(name, np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32))


def products() -> Program:
    """Three products share an operand: as one they are faster."""
    b = GraphBuilder()
    x = b.input("x", (16, 64))
    q, k, v = (b.matmul(x, weight(b, name, 64, 64)) for name in "qkv")
    b.output("y", b.add(b.mul(b.relu(q), k), v))
    return b.build()


def transposed() -> Program:
    """Transposed convolutions in a row: derivation makes products of them."""
    b = GraphBuilder()
    x = b.input("x", (1, 16, 4, 4))
    for k in range(2):
        w = weight(b, f"w{k}", 16, 16, 4, 4)
        kind = {"strides": [2, 2], "pads": [1] * 4, "dilations": [1, 1], "groups": 1}
        x = b.relu(b.conv_transpose(x, w, output_padding=[0, 0], **kind))
    b.output("y", x)
    return b.build()


def dilated() -> Program:
    """A dilated convolution: mutants of it are plain ones."""
    b = GraphBuilder()
    x = b.relu(b.input("x", (1, 64, 14, 14)))
    w = weight(b, "w", 64, 64, 3, 3)
    b.output("y", b.relu(b.conv(x, w, strides=[1, 1], pads=[2] * 4, dilations=[2, 2])))
    return b.build()


def values(program: Program) -> list[SSAValue]:
    """Every value of @main, those in regions too."""
    blocks = [block for op in program.module.walk() for r in op.regions for block in r.blocks]
    return [
        value
        for block in blocks
        for value in (*block.args, *(r for op in block.ops for r in op.results))
    ]


def renamed(program: Program, name: Callable[[], str]) -> Program:
    """A copy whose values have other names, its inputs and outputs excepted."""
    made = program.clone()
    keep_names(made)
    for value in values(made):
        value.name_hint = name() or None
    return made


def nameless(program: Program) -> str:
    """The text of a program without the names of values, and without what they came from."""
    made = renamed(program, str)
    for op in made.module.walk():
        op.location = UnknownLoc()
    return str(made.module)


def drawn(seed: int) -> Callable[[], str]:
    """Names that clash, again and again."""
    rng = random.Random(seed)
    return lambda: rng.choice(NAMES)


COSTS = Costs(target_named("v100"))


def derived(program: Program) -> SearchResult:
    return derivation.search(program, COSTS, Limits(600.0, steps=150))


def mutated(program: Program) -> SearchResult:
    settings = partial.MutationSettings(seconds=300.0)
    return partial.search(program, COSTS, Limits(600.0), None, settings)


def saturated(program: Program) -> SearchResult:
    return saturation.search(program, COSTS, Limits(600.0))


def substituted(program: Program) -> SearchResult:
    return substitution.search(program, COSTS, Limits(600.0))


@pytest.mark.parametrize(
    ("search", "made"),
    [
        (derived, transposed),
        (substituted, products),
        pytest.param(saturated, products, marks=pytest.mark.slow),
        pytest.param(mutated, dilated, marks=pytest.mark.slow),
    ],
)
def test_every_search_finds_the_same_whatever_values_are_called(
    search: Callable[[Program], SearchResult], made: Callable[[], Program]
) -> None:
    program = made()
    first, other = search(program), search(renamed(program, drawn(0)))
    assert first.applied
    for wanted, found in zip(first.applied, other.applied, strict=True):
        assert (found.rule, found.proof, found.delta) == (wanted.rule, wanted.proof, wanted.delta)
    assert [r.reason for r in other.rejected] == [r.reason for r in first.rejected]
    assert nameless(other.program) == nameless(first.program)


def test_kernels_are_the_same_whatever_values_are_called() -> None:
    for seed in range(12):
        program = random_graph(seed) if seed % 2 else random_scope_program(seed)
        kernels = {
            nameless(lower_to(renamed(program, name), "kernel"))
            for name in (drawn(seed), drawn(seed + 1), lambda: "val")
        }
        assert len(kernels) == 1, seed


def test_printed_names_are_those_of_the_printer() -> None:
    for seed in range(20):
        program = random_graph(seed) if seed % 2 else random_scope_program(seed)
        made = renamed(program, drawn(seed))
        if seed % 3 == 0:
            made = lower_to(made, "kernel")
        text, block = str(made.module), made.main.body.block
        results = [value for op in block.ops for value in op.results]
        found = printed_names(made.module, results)
        assert len(set(found.values())) == len(found)
        assert all(f"%{name} = " in text or f"%{name}, " in text for name in found.values())
        # Of those that are read alone: a value whose name is unique is not printed to be found.
        assert all(printed_names(made.module, [v])[v] == name for v, name in found.items())
