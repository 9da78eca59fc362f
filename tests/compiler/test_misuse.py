"""What is easily passed wrongly to the Python API is answered in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import f16

import isoform as typed
from isoform.dialects.errors import UserError
from isoform.dialects.types import element_of

# What a type checker would stop as well is the point here.
isoform: Any = typed
GraphBuilder: Any = typed.GraphBuilder


def built(b: Any = None) -> Any:
    b = GraphBuilder() if b is None else b
    b.output("y", b.relu(b.input("x", (2, 4))))
    return b.build()


def operand(value: Any) -> Any:
    b = GraphBuilder()
    return b.add(b.input("x", (2, 4)), value)


def built_twice() -> Any:
    b = GraphBuilder()
    built(b)
    return b.build()


CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "compile-of-a-path": (
        lambda: isoform.compile("p.onnx"),
        "found str .isoform.load reads a file",
    ),
    "optimize-of-nothing": (lambda: isoform.optimize(None), "a program is needed here"),
    "load-of-a-proto": (
        lambda: isoform.load(onnx.ModelProto()),
        "import_onnx .* takes a ModelProto",
    ),
    "load-of-bytes": (lambda: isoform.load(b"x"), "a model is a path or zoo:NAME: found bytes"),
    "no-thread": (lambda: isoform.compile(built(), threads=0), "above 0: found 0"),
    "threads-as-text": (lambda: isoform.compile(built(), threads="2"), "whole number"),
    "a-number-as-operand": (lambda: operand(2.0), "no value of the program: found float"),
    "an-array-as-operand": (lambda: operand(np.ones((2, 4))), "GraphBuilder.constant makes"),
    "no-dtype": (lambda: GraphBuilder().input("x", (2,), "flaot"), "'flaot' is no numpy dtype"),
    "a-dtype-we-lack": (lambda: GraphBuilder().input("x", (2,), "complex64"), "no element type"),
    "a-number-as-name": (lambda: GraphBuilder().input(5, (2,)), "name is text: found 5"),
    "built-twice": (built_twice, "built already"),
    "inputs-as-a-dict": (
        lambda: isoform.compile(built(), target="reference")({"x": np.ones((2, 4), np.float32)}),
        r"in order or by name .session\(\*\*inputs\)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_in_one_line(name: str) -> None:
    wrong, message = CASES[name]
    with pytest.raises(UserError, match=message) as found:
        wrong()
    assert "\n" not in str(found.value)


@pytest.mark.parametrize("dtype", [f16, np.float16, "float16", np.dtype("float16")])
def test_element_types_may_be_numpy_s(dtype: Any) -> None:
    b = GraphBuilder()
    weight = b.weight("w", lambda: np.ones(2, np.float16), (2,), dtype)
    made = (b.input("x", (2,), dtype), weight, b.constant(1.0, dtype))
    assert all(element_of(value) == f16 for value in made)
