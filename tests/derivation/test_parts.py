"""merge-parts: products of parts of one tensor, each with an operand of its own, as one batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import run_passes
from isoform.dialects.program import Program, keep_names, pipeline_of
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation import parts
from isoform.passes.derivation.apply_steps import merge_ops
from isoform.passes.derivation.body import body_of
from isoform.passes.derivation.lift import Lift, scope_ops
from isoform.passes.derivation.parts import merge_parts
from isoform.passes.derivation.propose import search
from isoform.passes.equivalence import compare
from isoform.passes.search_result import Limits


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions are remembered in a folder of the test's own."""
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))


def products(*lines: str, shape: str, inputs: str, own: str) -> Program:
    """A program that returns products of %a, each with an operand of its own."""
    names = "bcde"[: len(lines)]
    given = ", ".join([f"%a: tensor<{inputs}xf32>", *(f"%{n}: tensor<{own}xf32>" for n in names)])
    kinds = ", ".join([f"tensor<{shape}xf32>"] * len(lines))
    body = "\n".join(
        f"  %y{k} = algebra.scope {line} : tensor<{shape}xf32>" for k, line in enumerate(lines)
    )
    values = ", ".join(f"%y{k}" for k in range(len(lines)))
    return parse(
        f"func.func @main({given}) -> ({kinds}) {{\n{body}\n  func.return {values} : {kinds}\n}}"
    )


def columns(*starts: int, own: str = "48x40") -> Program:
    """Products of columns of a matrix."""
    places = [f"k + {start}" for start in starts]
    lines = [
        f"(m: 60, n: 40) sum (k: 48) %a[m, {at}] * %{name}[k, n]"
        for at, name in zip(places, "bcde", strict=False)
    ]
    return products(*lines, shape="60x40", inputs="60x200", own=own)


# Backwards; a signal's channels, with windows.
CHANNELS = [
    f"(f: 24, l: 100) sum (c: 16, r: 3) %a[c + {16 * k}, l + r] * %{name}[f, c, r]"
    for k, name in enumerate("bcd")
]
PROGRAMS = {
    "two": columns(0, 48),
    "four, last first": columns(144, 96, 48, 0),
    "windows of channels": products(*CHANNELS, shape="24x100", inputs="48x102", own="24x16x3"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivation_finds_the_batch(name: str) -> None:
    program = PROGRAMS[name]
    result = search(program, Costs(target_named("h100")), Limits(60.0))
    assert "derive merge-parts" in {applied.rule for applied in result.applied}
    assert {applied.proof for applied in result.applied} == {"exact"}
    assert compare(program, result.program).is_equal
    again = program.clone()
    keep_names(again)
    run_passes(again, pipeline_of(result.program.module))
    assert compare(again, result.program).is_equal


def merged(program: Program) -> Program | None:
    """The program with its scopes merged one after the other; None where they are not."""
    made = program.clone()
    keep_names(made)
    while len(ops := [op for op in scope_ops(made.module) if op.summation]) > 1:
        lift = Lift(made.module)
        one, other = ops[:2]
        bodies = [body_of(lift.scope(op)) for op in (one, other)]
        assert bodies[0] is not None and bodies[1] is not None
        step = merge_parts(bodies[0], bodies[1])
        if step is None:
            return None
        merge_ops(made.module, one, other, step, lift.values)
    return made


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_batch_computes_what_its_members_do(name: str) -> None:
    made = merged(PROGRAMS[name])
    assert made is not None and compare(PROGRAMS[name], made).is_equal


@pytest.mark.parametrize("program", [columns(0, 48, 100), columns(0, 48, 48), columns(7, 7)])
def test_parts_at_unlike_distances_are_no_batch(program: Program) -> None:
    assert merged(program) is None


@pytest.mark.parametrize("fault", ["place", "order"])
def test_a_part_at_another_place_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bugs: every part begins one further on; the last operand is in the first's place."""
    batch = parts.grown_batch

    def wrong(one: parts.BatchView, other: parts.Read, steps: tuple[int, ...]) -> parts.Scope:
        if fault == "place":
            return batch(replace(one, start=tuple(at + 1 for at in one.start)), other, steps)
        return batch(replace(one, own=other), one.own, steps)

    monkeypatch.setattr(parts, "grown_batch", wrong)
    program = PROGRAMS["two"]
    made = merged(program)
    assert made is not None and not compare(program, made).is_equal
