"""Every pass and every prefix of the pipelines keeps what random programs compute.

After each pass the module verifies, and its text reads back to it; of every second program the
generic text, too: reading takes almost half of the time.
"""

import dataclasses
import io
from collections.abc import Iterator
from functools import cached_property
from itertools import islice

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from isoform.compiler.frontends.program_file import parse
from isoform.compiler.pass_manager import PassRun
from isoform.compiler.pipelines import FOR_CPU, LOWER_TO_KERNEL, PLACE
from isoform.compiler.registry import PASSES
from isoform.compiler.targets.levels import run_passes
from isoform.dialects import reference
from isoform.dialects.errors import UserError
from isoform.dialects.graph.elementwise import SubOp
from isoform.dialects.program import Program
from isoform.dialects.scalars import call
from isoform.dialects.types import Array
from isoform.testing.random_programs import (
    Agreement,
    random_graph,
    random_inputs,
    random_scope_program,
)

CHUNK = 10
# Each pass is applied to every tenth program, so to one of each chunk.
SHARES = 10
PIPELINE = (*LOWER_TO_KERNEL, *FOR_CPU, *PLACE)
_TO_ALGEBRA = LOWER_TO_KERNEL.index("graph-to-algebra") + 1
# Levels, and the passes that lead to each from the one before.
LEVELS = {
    "graph": (),
    "algebra": LOWER_TO_KERNEL[:_TO_ALGEBRA],
    "kernel": LOWER_TO_KERNEL[_TO_ALGEBRA:],
}
# Changes sums only within a relative error of float64, never a value.
RELATIVE = 1e-9
# These round: what they fold, or the matrices they bring, is kept in the program's own dtypes.
ROUNDING = {"fold-batch-norm", "fold-constants", "winograd", "tune"}
# What a random program may take: on some of them the shipped rules reach any number of e-nodes.
LIMITED = {
    "graph-saturate": "graph-saturate{node-limit=1000 budget=2.0}",
    "algebra-derive": "algebra-derive{states=600}",
    "algebra-mutate": "algebra-mutate{most=6}",
}


def by_itself() -> list[str]:
    """Registered passes that run without options, and xDSL's clean-up passes."""
    names = ["canonicalize", "cse", "dce"]
    for name, factory in PASSES:
        needed = [
            f
            for f in dataclasses.fields(factory())
            if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
        if not needed and issubclass(factory(), ModulePass):
            names.append(name)
    return names


def text(program: Program, generic: bool) -> str:
    stream = io.StringIO()
    Printer(stream, print_generic_format=generic).print_op(program.module)
    return stream.getvalue()


def round_trip(program: Program, right: set[str], generic: bool) -> str | None:
    """What is wrong with the program's text, or with its generic text, too, if anything.

    Args:
        right: the texts found right.
    """
    custom = text(program, generic=False)
    if custom in right:
        return None
    if text(parse(custom), generic=False) != custom:
        return "text: the custom form reads back to something else"
    if generic and text(parse(text(program, generic=True)), generic=False) != custom:
        return "text: the generic form reads back to something else"
    right.add(custom)
    return None


def unequal(before: dict[str, Array], after: dict[str, Array]) -> str | None:
    """The first output that is not what it was."""
    for (name, old), new in zip(before.items(), after.values(), strict=True):
        if old.shape != new.shape or old.dtype != new.dtype:
            return f"output '{name}' was {old.dtype}{old.shape} and is {new.dtype}{new.shape}"
        size = np.abs(old[np.isfinite(old)]).max(initial=1e-30)
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(new, old, rtol=RELATIVE, atol=RELATIVE * size, equal_nan=True)
        if wrong.any():
            place = tuple(int(k) for k in np.argwhere(wrong)[0])
            return f"output '{name}' at {place} was {old[place]!r} and is {new[place]!r}"
    return None


class WrongError(Exception):
    """A pass changed what the program computes, or left a text that does not read back."""


class Check:
    """What a program computes on drawn inputs, and whether passes keep it.

    Attributes:
        reached: the program at the level that `lower` has reached.
    """

    def __init__(self, program: Program, seed: int):
        self.program, self.seed = program, seed
        self.inputs = random_inputs(program, seed)
        self.before = reference.run(program, self.inputs)
        self.reached = program
        self.right = set[str]()

    @cached_property
    def agreement(self) -> Agreement:
        return Agreement.of(self.program, self.inputs)

    def after_each(self, passes: tuple[str, ...]) -> str | None:
        """Apply passes one after another to what is reached; what the first wrong one did.

        What a pass left as it was is not computed again. The text is read back at the start, after
        one of the passes and at the end: it takes long. A rewrite for people may refuse a program
        that it does not fit.
        """
        return self._apply(passes, self.reached.clone())

    def lower(self, passes: tuple[str, ...]) -> str | None:
        """As `after_each`; further passes begin from the result."""
        self.reached = self.reached.clone()
        return self._apply(passes, self.reached)

    def _apply(self, passes: tuple[str, ...], changed: Program) -> str | None:
        if (found := round_trip(changed, self.right, self.seed % 2 == 0)) is not None:
            return f"before any pass: {found}"
        given = changed.module.clone()
        read_back = {1 + self.seed % len(passes), len(passes)}
        done: list[str] = []

        def check(run: PassRun, module: ModuleOp) -> None:
            nonlocal given
            found = None
            if not module.is_structurally_equivalent(given):
                given = module.clone()
                found = self._difference(reference.run(changed, self.inputs), passes)
            done.append(run.name)
            if len(done) in read_back:
                found = found or round_trip(changed, self.right, self.seed % 2 == 0)
            if found is not None:
                raise WrongError(f"pass {run.name}: {found}")

        try:
            run_passes(changed, ",".join(LIMITED.get(name, name) for name in passes), check)
        except WrongError as error:
            return str(error)
        except UserError as error:
            if passes[len(done)] in PIPELINE or "[after pass" in str(error):
                raise
        return None

    def _difference(self, after: dict[str, Array], passes: tuple[str, ...]) -> str | None:
        rounds = ROUNDING & {*passes}
        return self.agreement.difference(after) if rounds else unequal(self.before, after)


def at_every_level(program: Program, seed: int) -> str | None:
    """Lower a program level by level; at each apply its share of the passes."""
    check = Check(program, seed)
    for level, lowering in LEVELS.items():
        if lowering and (found := check.lower(lowering)) is not None:
            return found
        for name in by_itself()[seed % SHARES :: SHARES]:
            if name == "graph-to-algebra" and level != "graph":
                continue
            if (found := check.after_each((name,))) is not None:
                return f"{found} (at level {level})"
    return None


def graphs(chunk: int) -> Iterator[tuple[int, Program]]:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        yield seed, random_graph(seed)


def scopes(chunk: int) -> Iterator[tuple[int, Program]]:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        yield seed, random_scope_program(seed)


@pytest.mark.parametrize("chunk", range(9))
def test_every_prefix_of_the_pipeline_keeps_graphs(holds, chunk: int) -> None:
    holds(graphs(chunk), lambda p, seed: Check(p, seed).after_each(PIPELINE))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(9, 200))
def test_every_prefix_of_the_pipeline_keeps_more_graphs(holds, chunk: int) -> None:
    holds(graphs(chunk), lambda p, seed: Check(p, seed).after_each(PIPELINE))


@pytest.mark.parametrize("chunk", range(10))
def test_every_prefix_of_the_pipeline_keeps_scopes(holds, chunk: int) -> None:
    holds(scopes(chunk), lambda p, seed: Check(p, seed).after_each(PIPELINE[1:]))


def half(chunk: int, which: int) -> Iterator[tuple[int, Program]]:
    """Half of a chunk: of neighbours the other half, as each half has passes of its own."""
    start = CHUNK // 2 * ((chunk + which) % 2)
    return islice(graphs(chunk), start, start + CHUNK // 2)


@pytest.mark.parametrize("chunk", range(20, 20 + SHARES))
def test_a_pass_keeps_what_programs_compute_at_every_level(holds, chunk: int) -> None:
    """Each program is lowered once."""
    holds(half(chunk, 0), at_every_level)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(20, 20 + SHARES))
def test_a_pass_keeps_what_more_programs_compute_at_every_level(holds, chunk: int) -> None:
    holds(half(chunk, 1), at_every_level)


def test_a_wrong_pass_is_caught_and_reduced_to_its_op(holds, tmp_path, monkeypatch) -> None:
    """The test of the tests: a subtraction becomes an addition."""

    def check(program: Program, seed: int) -> str | None:
        inputs = random_inputs(program, seed)
        right = reference.run(program, inputs)
        with monkeypatch.context() as patch:
            patch.setattr(SubOp, "scalar", lambda self, *args: call("add", *args))
            return unequal(right, reference.run(program, inputs))

    with pytest.raises(pytest.fail.Exception, match=r"graph\.sub") as failure:
        holds(((s, random_graph(s)) for s in range(60)), check)
    (path,) = tmp_path.glob("*.mlir")
    assert str(path) in str(failure.value)
    assert path.read_text().count("graph.") <= 3
