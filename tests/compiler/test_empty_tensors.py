"""Every graph op takes empty tensors, or refuses them in one line; no rule makes one of them."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseArrayBase

from isoform.compiler.api import compile, optimize
from isoform.compiler.checks.verify_module import verify_module
from isoform.compiler.frontends.program_file import parse
from isoform.dialects import reference
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.errors import UserError
from isoform.dialects.graph import OPS, ConstantOp, GraphOp, OpaqueOp, WeightOp
from isoform.dialects.graph.base import to_python
from isoform.dialects.program import Program
from isoform.dialects.types import tensor, tensor_type
from isoform.lowering.targets import target_named
from isoform.passes.cost.costs import Costs
from isoform.passes.cost.flops import work_of
from isoform.passes.rules.op_table import Head, OpTable
from isoform.testing.random_programs import random_graph, random_inputs

LEFT_OUT = (OpaqueOp, WeightOp, ConstantOp)
SEEDS, SAMPLES = 60, 2


def samples(seeds: int, most: int) -> dict[str, list[GraphOp]]:
    """Ops of random programs, by name."""
    found: dict[str, list[GraphOp]] = {}
    for seed in range(seeds):
        for op in random_graph(seed, empty=0.0).main.body.block.ops:
            if isinstance(op, GraphOp) and not isinstance(op, LEFT_OUT):
                kept = found.setdefault(op.name, [])
                if len(kept) < most and op.operands:
                    kept.append(op)
    return found


def emptied(op: GraphOp) -> Iterator[Program]:
    """Programs of an op like this one, each with other extents 0 where the op takes that.

    One dim of one operand, and every dim (and number among the properties) of one extent.
    """
    shapes = [tensor_type(v).get_shape() for v in op.operands]
    numbers = {k: to_python(v) for k, v in op.properties.items()}
    places = [(k, d) for k, shape in enumerate(shapes) for d in range(len(shape))]
    for chosen in [[place] for place in places]:
        yield from _made(op, shapes, chosen, numbers)
    for extent in sorted({shapes[k][d] for k, d in places}):
        chosen = [(k, d) for k, d in places if shapes[k][d] == extent]
        yield from _made(op, shapes, chosen, numbers)
        replaced = {
            name: tuple(0 if n == extent else n for n in value)
            if isinstance(op.properties[name], DenseArrayBase)
            else value
            for name, value in numbers.items()
        }
        yield from _made(op, shapes, chosen, replaced)


def _made(
    op: GraphOp, shapes: list[tuple[int, ...]], chosen: list[tuple[int, int]], numbers: Any
) -> Iterator[Program]:
    b = GraphBuilder()
    operands = []
    for k, (value, shape) in enumerate(zip(op.operands, shapes, strict=True)):
        new = [0 if (k, d) in chosen else n for d, n in enumerate(shape)]
        operands.append(b.input(f"x{k}", new, tensor_type(value).element_type))
    try:
        made = b.append(type(op)(*operands, results=len(op.results), **numbers))
    except UserError as error:
        assert "\n" not in str(error)
        return
    results = [made] if not isinstance(made, tuple | list) else made
    for k, value in enumerate(results):
        b.output(f"y{k}", value)
    yield b.build()


def check(program: Program, run: bool) -> None:
    """The meaning, the cost and the compiled program of it exist and agree."""
    verify_module(program.module)
    for op in program.main.body.block.ops:
        work_of(op)
    assert Costs(target_named("cpu")).program(program).seconds >= 0.0
    drawn = random_inputs(program, 0)
    given = {k: np.zeros_like(v) if v.dtype.kind == "i" else v for k, v in drawn.items()}
    try:
        wanted = reference.run(program, given)
    except UserError as error:  # as the largest of nothing, an element of nothing
        assert "\n" not in str(error)
        with suppress(UserError):
            compile(program, effort="quick")(**given)
        return
    shapes = [t.get_shape() for t in program.outputs.values()]
    assert [a.shape for a in wanted.values()] == shapes
    if run:
        found = compile(program, effort="quick")(**given)
        for name, array in wanted.items():
            assert np.allclose(found[name], array, rtol=1e-3, atol=1e-3, equal_nan=True)


def test_every_op_takes_empty_tensors_or_refuses_them() -> None:
    tried = set[str]()
    for name, ops in samples(SEEDS, 1).items():
        for number, program in enumerate(p for op in ops for p in emptied(op)):
            tried.add(name)
            check(program, run=number == 0)
    assert len(tried) > 60


@pytest.mark.slow
def test_many_empty_tensors() -> None:
    for ops in samples(400, 6).values():
        for program in (p for op in ops for p in emptied(op)):
            check(program, run=True)


def test_every_op_is_among_the_samples() -> None:
    wanted = {op.name for op in OPS if not issubclass(op, LEFT_OUT)}
    assert wanted - set(samples(250, 1)) == set()


@pytest.mark.parametrize("strategy", ["substitute", "saturate"])
@pytest.mark.parametrize("filters", [0, 4])
def test_searches_make_no_convolution_of_no_filters(strategy: str, filters: int) -> None:
    attributes = "{strides = [1, 1], pads = [0, 0, 0, 0], dilations = [1, 1], groups = 2}"
    kind = f"tensor<1x{filters}x4x4xf32>"
    program = parse(
        f"""func.func @main(%x: tensor<1x4x4x4xf32>) -> ({kind}, {kind}) {{
  %v = graph.weight @v : tensor<{filters}x2x1x1xf32>
  %w = graph.weight @w : tensor<{filters}x2x1x1xf32>
  %y = graph.conv %x, %v {attributes} : {kind}
  %z = graph.conv %x, %w {attributes} : {kind}
  func.return %y, %z : {kind}, {kind}
}}"""
    )
    found = optimize(program, target="h100", strategy=strategy, budget=3)
    verify_module(found.module)


def test_a_rule_makes_no_op_of_an_empty_tensor() -> None:
    table = OpTable()
    head = Head("graph.relu")
    assert table.by_rule(head, (tensor([2, 3]),)) is not None
    assert table.build(head, (tensor([2, 0]),)) is not None
    assert table.by_rule(head, (tensor([2, 0]),)) is None
