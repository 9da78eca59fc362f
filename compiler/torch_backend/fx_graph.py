"""torch's FX graphs as plain ATen graphs: names, targets, arguments, and result types from fake
tensors."""

# pyright: reportMissingImports=false

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any

import torch

from ...lowering.aten_to_graph.aten import AtenCall, AtenGraph, DType, Ref, Spec, UnsupportedAten

_NO_ARGUMENT = (torch.device, torch.layout, torch.memory_format, torch.Generator)


def spec_of(value: Any) -> Spec | None:
    """Shape and dtype of a (fake) tensor; None for anything else, or a size that is no number."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    if not all(isinstance(n, int) for n in value.shape):
        return None
    return Spec(tuple(value.shape), str(value.dtype).removeprefix("torch."))


def specs_of(node: Any) -> list[Spec | None]:
    """The results of an FX node."""
    value = node.meta.get("val")
    return [spec_of(v) for v in value] if isinstance(value, (list, tuple)) else [spec_of(value)]


def target_of(node: Any) -> str:
    """The op and overload, `add.Tensor`, of an ATen or prims call; else the function's name."""
    target = node.target
    if target is operator.getitem:
        return "getitem"
    if isinstance(target, torch._ops.OpOverload):
        space, _, name = str(target).partition(".")
        return name if space in ("aten", "prims") else str(target)
    return getattr(target, "__name__", str(target))


def node_of(node: Any) -> AtenCall:
    """An FX call as plain data.

    Raises:
        UnsupportedAten: an argument is a symbol, or has another type without counterpart.
    """
    args = [_argument(a) for a in node.args]
    kwargs = {k: _argument(v) for k, v in node.kwargs.items()}
    return AtenCall(node.name, target_of(node), args, kwargs, specs_of(node), line_of(node))


def graph_of(graph: Any) -> AtenGraph:
    """A whole FX graph of tensors as plain data; outputs are called `output0` and so on.

    Raises:
        UnsupportedAten: as `node_of`, and for an input that is no tensor.
    """
    found = AtenGraph()
    for node in graph.nodes:
        if node.op == "placeholder":
            spec = spec_of(node.meta.get("val"))
            if spec is None:
                raise UnsupportedAten(f"input '{node.name}' is no tensor of known shape")
            found.inputs[node.name] = spec
        elif node.op == "call_function":
            found.nodes.append(node_of(node))
        elif node.op == "output":
            results = node.args[0]
            listed = results if isinstance(results, (list, tuple)) else [results]
            found.outputs = [(f"output{k}", Ref(n.name)) for k, n in enumerate(listed)]
    return found


def _argument(value: Any) -> Any:
    match value:
        case torch.fx.Node():
            known = value.meta.get("val")
            return known if isinstance(known, (bool, int, float)) else Ref(value.name)
        case torch.dtype():
            return DType(str(value).removeprefix("torch."))
        case list() | tuple():
            return [_argument(v) for v in value]
        case None | bool() | int() | float() | str():
            return value
        case _ if isinstance(value, _NO_ARGUMENT):
            return None
        case _:
            raise UnsupportedAten(f"an argument of type {type(value).__name__}")


def line_of(node: Any) -> str:
    """`file:line` of the user's code that a node comes from; empty if unknown."""
    found: Sequence[tuple[str, str]] = re.findall(
        r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or ""
    )
    return ":".join(found[-1]) if found else ""
