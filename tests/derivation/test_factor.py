"""factor-sum: products that share an operand are one product of a sum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from isoform.compiler.frontends.program_file import parse
from isoform.compiler.targets.levels import run_passes
from isoform.dialects.algebra import OnesOp
from isoform.dialects.program import Program, keep_names, pipeline_of
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.derivation import factor
from isoform.passes.derivation.body import SumOfProducts
from isoform.passes.derivation.factor import factor_sum, inner_contractions
from isoform.passes.derivation.lift import Lift, scope_ops
from isoform.passes.derivation.propose import search
from isoform.passes.equivalence import compare
from isoform.passes.equivalence.prove import Prover
from isoform.passes.search_result import Limits


@pytest.fixture(autouse=True)
def own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions are remembered in a folder of the test's own."""
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path))


def written(*lines: str, **shapes: str) -> Program:
    """A program of scopes; the last one, y, is its result."""
    inputs = ", ".join(f"%{name}: tensor<{shape}xf32>" for name, shape in shapes.items())
    kind = lines[-1].rpartition(" : ")[2]
    body = "\n".join(f"  %{line}" for line in lines)
    text = f"func.func @main({inputs}) -> {kind} {{\n{body}\n  func.return %y : {kind}\n}}"
    return parse(text)


PROGRAMS = {
    "AB - AC": written(
        "s = algebra.scope (m: 64, n: 96) sum (k: 128) %a[m, k] * %b[k, n] : tensor<64x96xf32>",
        "t = algebra.scope (m: 64, n: 96) sum (k: 128) %a[m, k] * %c[k, n] : tensor<64x96xf32>",
        "y = algebra.scope (m: 64, n: 96) %s[m, n] - %t[m, n] : tensor<64x96xf32>",
        a="64x128",
        b="128x96",
        c="128x96",
    ),
    "three, one of them transposed and scaled": written(
        "s = algebra.scope (m: 70, n: 50) sum (k: 90) %b[m, k] * %a[k, n] : tensor<70x50xf32>",
        "t = algebra.scope (n: 50, m: 70) sum (k: 90) %a[k, n] * %c[k, m] : tensor<50x70xf32>",
        "u = algebra.scope (m: 70, n: 50) sum (k: 90) %d[m, k] * %a[k, n] : tensor<70x50xf32>",
        "y = algebra.scope (m: 70, n: 50) %s[m, n] + 3.0 * %t[n, m] - %u[m, n] : tensor<70x50xf32>",
        a="90x50",
        b="70x90",
        c="90x70",
        d="70x90",
    ),
    "convolutions of a signal": written(
        "s = algebra.scope (f: 32, l: 100) sum (c: 48, r: 3) %x[c, l + r - 1] * %w[f, c, r]"
        " : tensor<32x100xf32>",
        "t = algebra.scope (f: 32, l: 100) sum (r: 3, c: 48) %x[c, l + r - 1] * %v[f, c, r]"
        " : tensor<32x100xf32>",
        "y = algebra.scope (f: 32, l: 100) %s[f, l] - %t[f, l] : tensor<32x100xf32>",
        x="48x100",
        w="32x48x3",
        v="32x48x3",
    ),
    "a sum beside": written(
        "s = algebra.scope (m: 64, n: 96) sum (k: 128) %a[m, k] * %b[k, n] : tensor<64x96xf32>",
        "t = algebra.scope (m: 64, n: 96) sum (k: 128) %a[m, k] * %c[k, n] : tensor<64x96xf32>",
        "y = algebra.scope (m: 64, n: 96) %s[m, n] + %d[m, n] + %t[m, n] : tensor<64x96xf32>",
        a="64x128",
        b="128x96",
        c="128x96",
        d="64x96",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivation_finds_the_shared_operand(name: str) -> None:
    program = PROGRAMS[name]
    result = search(program, Costs(target_named("h100")), Limits(60.0))
    assert "derive factor-sum" in {applied.rule for applied in result.applied}
    assert {applied.proof for applied in result.applied} == {"exact"}
    assert compare(program, result.program).is_equal
    assert products(result.program) == 1
    again = program.clone()
    keep_names(again)
    run_passes(again, pipeline_of(result.program.module))
    assert compare(again, result.program).is_equal


def products(program: Program) -> int:
    """How many sums of products of two tensors a program has."""
    sums = [op for op in scope_ops(program.module) if op.summation]
    return sum(len([v for v in op.inputs if not isinstance(v.owner, OnesOp)]) > 1 for op in sums)


def is_right(program: Program) -> bool | None:
    """Whether the rule keeps the last scope's meaning; None where it does not apply."""
    op = list(scope_ops(program.module))[-1]
    old = Lift(program.module, inner_contractions(op).__contains__).scope(op)
    step = factor_sum(old)
    return None if step is None else Prover().prove(old, step.new).equal


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_product_of_the_sum_is_the_sum_of_the_products(name: str) -> None:
    assert is_right(PROGRAMS[name]) is True


@pytest.mark.parametrize("fault", ["sign", "order"])
def test_a_factor_that_is_lost_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bugs: coefficients are forgotten; a kernel's taps are read in another order."""
    without = factor.without_read

    def wrong(body: SumOfProducts, *given: object) -> SumOfProducts:
        if fault == "order":
            return without(body, given[0], given[1][::-1])  # pyright: ignore
        made = without(body, *given)  # pyright: ignore
        return replace(made, coefficient=abs(made.coefficient))

    monkeypatch.setattr(factor, "without_read", wrong)
    name = "AB - AC" if fault == "sign" else "convolutions of a signal"
    assert is_right(PROGRAMS[name]) is not True


def test_operands_that_are_read_elsewhere_are_not_shared() -> None:
    """One reads rows of %a, the other columns."""
    program = written(
        "s = algebra.scope (m: 8, n: 8) sum (k: 8) %a[m, k] * %b[k, n] : tensor<8x8xf32>",
        "t = algebra.scope (m: 8, n: 8) sum (k: 8) %a[k, m] * %c[k, n] : tensor<8x8xf32>",
        "y = algebra.scope (m: 8, n: 8) %s[m, n] - %t[m, n] : tensor<8x8xf32>",
        **dict.fromkeys("abc", "8x8"),
    )
    assert is_right(program) is None
