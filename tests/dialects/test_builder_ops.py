"""The builder's methods tell what they take: `dir`, signatures, docstrings, and the stub."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import isoform
from isoform.dialects.builder_ops import CLASSES, method_name

ROOT = Path(__file__).resolve().parents[2]


def test_dir_lists_every_op_and_the_builder_itself() -> None:
    names = dir(isoform.GraphBuilder())
    assert {method_name(op) for op in CLASSES} <= set(names)
    assert {"conv", "and_", "input", "output", "build"} <= set(names)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("relu", "(x: SSAValue, /) -> SSAValue"),
        ("concat", "(*inputs: SSAValue, axis: int) -> SSAValue"),
        ("cast", "(x: SSAValue, /, *, to: Attribute) -> SSAValue"),
    ],
)
def test_a_method_has_a_signature(name: str, found: str) -> None:
    shown = str(inspect.signature(getattr(isoform.GraphBuilder(), name)))
    assert shown.replace("xdsl.ir.core.", "") == found


def test_a_method_has_the_docstring_of_its_op() -> None:
    b = isoform.GraphBuilder()
    assert "ONNX Conv" in (b.conv.__doc__ or "")
    assert b.conv.__name__ == "conv"
    assert inspect.signature(b.conv).parameters["groups"].default == 1
    assert inspect.signature(b.conv).parameters["bias"].default is None


def test_an_optional_operand_may_be_none() -> None:
    b = isoform.GraphBuilder()
    x, w = b.input("x", (1, 2, 4, 4)), b.input("w", (3, 2, 1, 1))
    how = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
    assert str(b.conv(x, w, None, **how).type) == "tensor<1x3x4x4xf32>"


def test_the_stub_is_what_the_definitions_give() -> None:
    script = ROOT / "scripts" / "builder_stub.py"
    made = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    stub = (ROOT / "dialects" / "builder_ops.pyi").read_text()
    assert stub.strip() == made.stdout.strip(), "python scripts/builder_stub.py --write"
