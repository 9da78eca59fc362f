"""What the dialect tests share: parse a text, print both forms, run a module."""

import io
from collections.abc import Callable

import pytest
from isoform.dialects.algebra import ALGEBRA
from isoform.dialects.graph import GRAPH
from xdsl.context import Context
from xdsl.dialects import arith, builtin, func, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

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
