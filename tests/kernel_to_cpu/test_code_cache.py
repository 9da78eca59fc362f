"""Equal kernels are generated once; whatever their code depends on makes another one."""

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import UnitAttr

from isoform.compiler.targets.levels import place
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.kernel import FAST_MATH, KernelOp
from isoform.lowering.kernel_to_cpu import code_cache as cache
from isoform.lowering.kernel_to_cpu.code_cache import cached_code
from isoform.lowering.kernel_to_cpu.emit.module import KernelCode
from isoform.lowering.kernel_to_cpu.isa import Isa, runnable

ISA = Isa.named("plain")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generated: None) -> Path:
    monkeypatch.setenv("ISOFORM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "OURS", OURS)
    monkeypatch.setattr(cache, "_recent", {})
    return tmp_path / "cache"


OURS = cache.OURS


def kernel_of(scale: float = 2.0, axis: int = 1, name: str = "x") -> KernelOp:
    """A softmax of x * scale, where the scale is a literal operand."""
    b = GraphBuilder()
    x = b.input(name, (8, 8))
    scales = b.constant(np.full((8, 8), scale, np.float32))
    b.output("y", b.softmax(b.mul(x, scales), axis=axis))
    ops = place(b.build()).main.body.block.ops
    return next(op for op in ops if isinstance(op, KernelOp))


class Emit:
    """Makes a new code each time."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> KernelCode:
        self.count += 1
        return KernelCode(f"k{self.count}", f"text {self.count}", 1, 2)


def other_process() -> None:
    cache._recent.clear()


def test_equal_kernels_of_two_programs_are_generated_once_in_any_process(folder: Path):
    emit = Emit()
    first = cached_code(kernel_of(), ISA, ("a",), emit)
    assert cached_code(kernel_of(name="another"), ISA, ("a",), emit) == first
    other_process()
    assert cached_code(kernel_of(), ISA, ("a",), emit) == first
    assert emit.count == 1


def test_what_code_depends_on_makes_another(monkeypatch: pytest.MonkeyPatch):
    emit = Emit()
    fast = kernel_of()
    fast.attributes[FAST_MATH] = UnitAttr()
    asked = [
        (kernel_of(), ISA, ("a",)),
        (kernel_of(), ISA, ("b",)),
        (kernel_of(axis=0), ISA, ("a",)),
        (kernel_of(scale=3.0), ISA, ("a",)),
        (fast, ISA, ("a",)),
        *((kernel_of(), isa, ("a",)) for isa in runnable() if isa != ISA),
    ]
    codes = [cached_code(*question, emit) for question in asked]
    monkeypatch.setattr(cache, "_version", lambda: "other sources")
    codes.append(cached_code(*asked[0], emit))
    assert len({code.symbol for code in codes}) == len(codes) == emit.count


def test_a_damaged_file_is_made_anew(folder: Path):
    emit = Emit()
    cached_code(kernel_of(), ISA, (), emit)
    (file,) = folder.glob("*.kernel")
    whole = file.read_bytes()
    for damaged in (b"", whole[:-9], whole[:20] + b"?" + whole[21:]):
        file.write_bytes(damaged)
        other_process()
        cached_code(kernel_of(), ISA, (), emit)
    assert emit.count == 4


def test_the_kernel_of_a_plug_in_is_generated_each_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cache, "OURS", ())
    emit = Emit()
    for _ in range(2):
        cached_code(kernel_of(), ISA, (), emit)
    assert emit.count == 2
