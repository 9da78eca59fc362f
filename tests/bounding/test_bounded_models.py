"""bound-dims on ONNX's node cases and random models, whose sizes are symbols."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from support.bounding import at, bounded, drawn, padded
from support.random_onnx.model import random_model
from support.symbolic_onnx import Shapes, cases, symbolic, with_symbols

from isoform.compiler.checks.verify_module import verify_module
from isoform.dialects.errors import UserError
from isoform.dialects.program import Program
from isoform.dialects.reference import run
from isoform.dialects.shape_guards import shape_env
from isoform.dialects.specialize import sizes_of_shapes
from isoform.passes.bounding.padding import NotBounded

# The wheel computes what its cases expect with overflows and divisions by 0.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

# By default every so many of the wheel's cases; the slow test takes all.
STEP = 12


def compare(proto: onnx.ModelProto, shapes: Shapes) -> str:
    """Compare at the sizes of the example, bound at larger ones; what came of it."""
    try:
        program = symbolic(with_symbols(proto), shapes)
    except (UserError, ValueError, TypeError):  # code that takes numbers alone
        return "not imported"
    sizes = sizes_of_shapes(program.main, program.input_names, shapes)
    if not sizes:
        return "no symbol"
    for more in (3, 1):
        bounds = {name: n + more for name, n in sizes.items()}
        if shape_env(program.main).broken(bounds) is not None:
            continue
        try:
            static = bounded(program, bounds)
        except NotBounded:
            return "no rule"
        verify_module(static.module)
        return agree(program, static, sizes)
    return "guards"


def agree(program: Program, static: Program, sizes: dict[str, int]) -> str:
    """Whether the rows that count are as at the sizes."""
    exact = at(program, sizes)
    inputs = drawn(exact, 0)
    try:
        wanted = run(exact, inputs)
    except UserError:
        return "not evaluated"
    shapes = {name: type_.get_shape() for name, type_ in static.inputs.items()}
    feeds = {name: padded(array, shapes[name]) for name, array in inputs.items()}
    feeds |= {f"size.{name}": np.asarray(n, np.int64) for name, n in sizes.items()}
    for name, found in run(static, feeds).items():
        cut = found[tuple(map(slice, wanted[name].shape))]
        np.testing.assert_allclose(cut, wanted[name], 1e-4, 1e-5, err_msg=name)
    return "right"


def test_node_cases_at_a_bound_are_those_of_their_sizes() -> None:
    found = Counter(compare(proto, shapes) for _, proto, shapes in list(cases())[::STEP])
    assert found["right"] > 60, found


@pytest.mark.slow
@pytest.mark.parametrize("part", range(STEP))
def test_all_node_cases_at_a_bound_are_those_of_their_sizes(part: int) -> None:
    found = Counter(compare(proto, shapes) for _, proto, shapes in list(cases())[part::STEP])
    assert found["right"] > 60, found


@pytest.mark.parametrize("seed", range(12))
def test_random_models_at_a_bound(seed: int) -> None:
    case = random_model(seed)
    shapes = {name: array.shape for name, array in case.inputs.items()}
    assert compare(case.model, shapes) in ("right", "no rule", "guards", "no symbol")
