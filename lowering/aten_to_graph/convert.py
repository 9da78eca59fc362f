"""Convert an ATen graph, node by node, by the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.types import Tensor, tensor_type
from ...dialects.weights import Source
from .aten import AtenCall, AtenGraph, DType, Ref, Spec, UnsupportedAten
from .node import AtenNode
from .table import TABLE

Values = dict[str, "SSAValue | Sequence[SSAValue | None]"]


def convert(graph: AtenGraph, weights: Mapping[str, Source], source: str = "") -> Program:
    """The program of an ATen graph.

    Args:
        weights: arrays, or functions that make them, for all weights of the graph.

    Raises:
        UnsupportedAten: a node has no form in the graph dialect (`where` is its line, if known).
    """
    build = GraphBuilder()
    values: Values = {
        n: build.input(n, s.shape, s.type.element_type) for n, s in graph.inputs.items()
    }
    for name, spec in graph.weights.items():
        values[name] = build.weight(name, weights[name], spec.shape, spec.type.element_type)
    for node in graph.nodes:
        with build.at(node.name):
            values[node.name] = convert_node(build, node, values)
    for name, ref in graph.outputs:
        build.output(name, _value(values[ref.name]))
    return build.build(source)


def convert_node(
    build: GraphBuilder, node: AtenCall, values: Mapping[str, Any]
) -> SSAValue | Sequence[SSAValue | None]:
    """Append the graph ops of a node and return its results; those it has none for are None.

    Raises:
        UnsupportedAten: the op is not in the table, or not with these arguments.
    """
    where = node.where or node.target
    converter = TABLE.get(node.target)
    if converter is None and node.target != "getitem":
        raise UnsupportedAten(f"op {node.target} is not in the table", where=where)
    args = [_argument(a, values) for a in node.args]
    if converter is None:
        found = args[0][args[1]]
        if found is None:
            raise UnsupportedAten(f"result {args[1]} is not computed", where=where)
        return found
    kwargs = {key: _argument(a, values) for key, a in node.kwargs.items()}
    types = [_type(spec) for spec in node.results]
    try:
        results = converter(AtenNode(build, types), *args, **kwargs)
    except (UserError, TypeError) as error:
        raise UnsupportedAten(f"op {node.target}: {error}", where=node.where or None) from error
    single = isinstance(results, SSAValue)
    listed: list[SSAValue | None] = [results] if single else list(results)
    listed += [None] * (len(types) - len(listed))
    for value, type_ in zip(listed, types, strict=True):
        if value is not None and tensor_type(value) != type_:
            message = f"op {node.target} gives another type"
            raise UnsupportedAten(message, where=where, expected=type_, found=value.type)
    return results if single else listed


def supported(
    node: AtenCall, specs: Mapping[str, Sequence[Spec | None]], wanted: Sequence[int] = ()
) -> str:
    """Why a node cannot be converted; empty if it can.

    Args:
        specs: result specs of the nodes that it reads.
        wanted: which of several results are read.
    """
    build, values = GraphBuilder(), dict[str, Any]()
    try:
        for name, found in specs.items():
            made = [_input(build, f"{name}.{k}", s) for k, s in enumerate(found)]
            values[name] = made[0] if len(made) == 1 else made
        results = convert_node(build, node, values)
        for k in wanted:
            if isinstance(results, SSAValue) or results[k] is None:
                return f"op {node.target}: result {k} is not computed"
    except UserError as error:
        return str(error)
    return ""


def _input(build: GraphBuilder, name: str, spec: Spec | None) -> SSAValue | None:
    return None if spec is None else build.input(name, spec.shape, spec.type.element_type)


def _type(spec: Spec | None) -> Tensor | None:
    try:
        return None if spec is None else spec.type
    except UnsupportedAten:
        return None


def _argument(value: Any, values: Mapping[str, Any]) -> Any:
    match value:
        case Ref() if value.name not in values:
            raise UnsupportedAten(f"operand '{value.name}' is no dense tensor of the cpu")
        case Ref():
            return values[value.name]
        case list() | tuple():
            return [_argument(v, values) for v in value]
        case DType():
            return value
        case _:
            return value


def _value(value: SSAValue | Sequence[SSAValue | None]) -> SSAValue:
    assert isinstance(value, SSAValue)
    return value
