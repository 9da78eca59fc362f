"""What the dialect tests share: parse a text, print both forms, run a module."""

import io
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

from isoform.dialects import reference
from isoform.dialects.algebra import ALGEBRA
from isoform.dialects.builder import GraphBuilder
from isoform.dialects.graph import GRAPH
from isoform.dialects.types import from_numpy

DIALECTS = (builtin.Builtin, func.Func, arith.Arith, math.Math, GRAPH, ALGEBRA)


def parse_text(text: str) -> ModuleOp:
    context = Context()
    for dialect in DIALECTS:
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def print_text(module: ModuleOp, generic: bool = False) -> str:
    stream = io.StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


def check_round_trip(module: ModuleOp) -> str:
    """Custom and generic text both give the module back; printing is stable."""
    text = print_text(module)
    assert print_text(parse_text(text)) == text
    assert print_text(parse_text(print_text(module, generic=True))) == text
    return text


@pytest.fixture
def parse() -> Callable[[str], ModuleOp]:
    return parse_text


@pytest.fixture
def round_trip() -> Callable[[ModuleOp], str]:
    return check_round_trip


def run_graph_op(op_name: str, *arrays: np.ndarray, results: int = 1, **properties) -> list:
    """Results of `graph.<op_name>` by its definition, in reference arithmetic."""
    b = GraphBuilder()
    values = [b.input(f"x{k}", a.shape, from_numpy(a.dtype)) for k, a in enumerate(arrays)]
    first = b.op(op_name, *values, results=results, **properties)
    for k, value in enumerate(first.owner.results):
        b.output(f"y{k}", value)
    program = b.build()
    program.module.verify()
    found = reference.run(program, {f"x{k}": a for k, a in enumerate(arrays)})
    return list(found.values())


def run_onnx_op(op_type: str, *arrays: np.ndarray | None, opset: int = 18, **attributes) -> list:
    """Results of one ONNX node by onnx.reference; None is an input left out."""
    names = [f"x{k}" if a is not None else "" for k, a in enumerate(arrays)]
    outputs = [f"y{k}" for k in range(attributes.pop("outputs", 1))]
    node = onnx.helper.make_node(op_type, names, outputs, **attributes)
    given = {name: a for name, a in zip(names, arrays, strict=True) if a is not None}
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [onnx.ValueInfoProto(name=name) for name in given],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    imports = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, opset_imports=imports)
    return ReferenceEvaluator(model).run(None, given)


@pytest.fixture
def graph_op() -> Callable[..., list]:
    return run_graph_op


@pytest.fixture
def onnx_op() -> Callable[..., list]:
    return run_onnx_op
