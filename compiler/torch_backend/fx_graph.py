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
from .layouts import Layout
from .symbols import Symbols

_NO_ARGUMENT = (torch.device, torch.layout, torch.memory_format, torch.Generator)


def spec_of(value: Any, symbols: Symbols | None = None) -> Spec | None:
    """Shape and dtype of a dense (fake) tensor on the cpu; None for anything else.

    Args:
        symbols: makes extents of sizes that are no numbers; without it such a tensor has no spec.
    """
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    if value.device.type != "cpu":
        return None
    dims: tuple[Any, ...] = tuple(value.shape)
    if symbols is not None:
        dims = tuple(symbols.size(n) for n in dims)
    elif not all(isinstance(n, int) for n in dims):
        return None
    return Spec(dims, str(value.dtype).removeprefix("torch."))


def specs_of(node: Any, symbols: Symbols | None = None) -> list[Spec | None]:
    """The results of an FX node."""
    value = node.meta.get("val")
    values = value if isinstance(value, (list, tuple)) else [value]
    return [spec_of(v, symbols) for v in values]


def target_of(node: Any) -> str:
    """The op and overload, `add.Tensor`, of an ATen or prims call; else the function's name."""
    target = node.target
    if target is operator.getitem:
        return "getitem"
    if isinstance(target, torch._ops.OpOverload):
        space, _, name = str(target).partition(".")
        return name if space in ("aten", "prims") else str(target)
    return getattr(target, "__name__", str(target))


def node_of(node: Any, symbols: Symbols | None = None) -> AtenCall:
    """An FX call as plain data; sizes that are no numbers by `symbols`.

    Raises:
        UnsupportedAten: an argument is a symbol, or has another type without counterpart.
    """
    args = [_argument(a, symbols) for a in node.args]
    kwargs = {k: _argument(v, symbols) for k, v in node.kwargs.items()}
    specs = specs_of(node, symbols)
    if target_of(node) == "as_strided.default" and _lies_the_same(node):
        return AtenCall(node.name, "alias.default", args[:1], {}, specs, line_of(node))
    return AtenCall(node.name, target_of(node), args, kwargs, specs, line_of(node))


def _lies_the_same(node: Any) -> bool:
    """Whether a view by strides changes those of dims with one element alone."""
    x, y = node.args[0].meta["val"], node.meta["val"]
    if x.shape != y.shape or x.storage_offset() != y.storage_offset():
        return False
    if not all(isinstance(n, int) for n in (*x.shape, *x.stride(), *y.stride())):
        return False
    return Layout.of(x.shape, x.stride()) == Layout.of(y.shape, y.stride()) is not None


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


def _argument(value: Any, symbols: Symbols | None) -> Any:
    match value:
        case torch.fx.Node():
            known = value.meta.get("val")
            if symbols is not None and isinstance(known, torch.SymInt):
                return symbols.size(known)
            return known if isinstance(known, (bool, int, float)) else Ref(value.name)
        case torch.dtype():
            return DType(str(value).removeprefix("torch."))
        case list() | tuple():
            return [_argument(v, symbols) for v in value]
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
