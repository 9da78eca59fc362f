"""The programs of the expert bar: what an expert writes computes what the original does."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.search_program_forms import EVERY, built
from support.search_programs import ORIGINALS as FOLDER
from support.search_programs import PROGRAMS

import isoform
from isoform.compiler.checks.differential import evaluate, first_difference
from isoform.compiler.frontends.program_file import module_text, parse
from isoform.dialects.program import Program
from isoform.passes.equivalence import compare
from isoform.passes.same_interface import check_comparable

ORIGINALS = sorted(FOLDER.glob("*.mlir"))
EXPERTS = sorted((FOLDER.parent / "expert").glob("*.mlir"))
# Seconds for one comparison; the longest takes two.
BUDGET = 600.0


def original_of(expert: Path) -> Program:
    """The program that an expert's NAME.mlir or NAME.KIND.mlir stands for."""
    return isoform.load(FOLDER / f"{expert.name.partition('.')[0]}.mlir")


def test_each_of_the_36_programs_and_of_the_others_has_an_expert() -> None:
    assert len(PROGRAMS) == 36 and len(EVERY) == 36 + 27 + 27 + 32 + 11
    assert {p.stem for p in ORIGINALS} == {*EVERY}
    assert {p.stem for p in ORIGINALS} == {p.stem for p in EXPERTS if "." not in p.stem}
    assert {p.name.partition(".")[0] for p in EXPERTS} == {p.stem for p in ORIGINALS}


@pytest.mark.parametrize("path", ORIGINALS, ids=lambda p: p.stem)
def test_an_original_is_what_its_builder_makes(path: Path) -> None:
    assert path.read_text() == module_text(built(path.stem).module)


@pytest.mark.parametrize("path", EXPERTS, ids=lambda p: p.stem)
def test_an_expert_program_says_why_it_is_better(path: Path) -> None:
    assert path.read_text().startswith("// ")


@pytest.mark.parametrize("path", EXPERTS, ids=lambda p: p.stem)
def test_an_expert_program_is_equal_to_its_original(path: Path) -> None:
    before, after = original_of(path), isoform.load(path)
    check_comparable(before, after)
    verdict = compare(before, after, seed=0, budget=BUDGET)
    assert verdict.kind == "equal", verdict.text()


@pytest.mark.parametrize("path", EXPERTS, ids=lambda p: p.stem)
def test_an_expert_program_computes_the_same_numbers(path: Path) -> None:
    before, after = original_of(path), isoform.load(path)
    assert first_difference(evaluate(before.module), evaluate(after.module)) is None


# A mistake that an expert might make, one of each kind of rewrite: what is written, and instead.
MISTAKES = {
    "acnet": ("pads = [0, 0, 1, 0, 0, 0, 1, 0]", "pads = [0, 0, 2, 0, 0, 0, 0, 0]"),
    "aspp": ("w + 12 * s - 12", "w + 12 * s - 6"),
    "aspp.blocks": ("a - i + 1", "i - a + 1"),
    "context": ("starts = [0, 48, 0, 0]", "starts = [0, 47, 0, 0]"),
    "conv1d_dil4.phases": ("4 * l + n - 4", "4 * l + n - 3"),
    "conv2d_dil_group.phases": ("c + 128", "c + 64"),
    "conv_pw1d": ("graph.add", "graph.sub"),
    "conv_then_stridedslice": ("pads = [1, 1, 0, 0]", "pads = [0, 0, 1, 1]"),
    "distr_sub": ("%b, %c", "%c, %b"),
    "fig3a": ("pads = [0, 0, 1, 1, 0, 0, 1, 1]", "pads = [0, 0, 2, 1, 0, 0, 0, 1]"),
    "fig3a.gemm": ("f + 4608", "f + 4096"),
    "inception_branch": ("w + s - 2", "w + s - 1"),
    "inverse_transpose": ("graph.relu", "graph.abs"),
    "k13": ("pads = [0, 0, 1, 0, 0, 1]", "pads = [0, 0, 2, 0, 0, 0]"),
    "lora": ("graph.add", "graph.sub"),
    "lstm": ("%3, %4, %5, %6 =", "%4, %3, %5, %6 ="),
    "qkv_bias": ("%bq, %bk, %bv", "%bq, %bv, %bk"),
    "qkv_gqa": ("%wq, %wk, %wv", "%wq, %wv, %wk"),
    "pyramid": ("graph.add %c, %d", "graph.add %c, %c"),
    "repvgg": ("pads = [0, 64]", "pads = [1, 63]"),
    "scale_mm": ("dense<1.250000e-01>", "dense<2.500000e-01>"),
    "slice_mm": ("starts = [0, 0]", "starts = [0, 1]"),
    "subneg": ("%v, %w", "%w, %v"),
    "swiglu": ("%u, %v =", "%v, %u ="),
    "tconv_s3": ("perm = [0, 3, 1, 4, 2]", "perm = [0, 3, 2, 4, 1]"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_an_expert_who_makes_a_mistake_is_refuted(name: str) -> None:
    right, wrong = MISTAKES[name]
    path = FOLDER.parent / "expert" / f"{name}.mlir"
    text = path.read_text()
    assert right in text
    verdict = compare(
        original_of(path), parse(text.replace(right, wrong, 1)), seed=0, budget=BUDGET
    )
    assert verdict.kind == "different", verdict.text()
