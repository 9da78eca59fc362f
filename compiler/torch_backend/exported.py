"""Programs of torch.export as programs of ours, by the table of ATen ops."""

# pyright: reportMissingImports=false

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import tree_flatten_with_path, tree_unflatten

from ...dialects.errors import UserError, one_line
from ...dialects.program import Program
from ...dialects.types import Array
from ...lowering.aten_to_graph.aten import AtenGraph, Ref, UnsupportedAten, renamed
from ...lowering.aten_to_graph.convert import convert
from .arrays import as_array
from .decompositions import decompositions
from .fx_graph import node_of, spec_of, target_of

_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
# Nodes that check at run time what holds for the program's fixed types.
_CHECKED = ("_assert_tensor_metadata.default",)
_UNREADABLE = (
    RuntimeError, ValueError, OSError, LookupError, AttributeError, AssertionError, BadZipFile,
    UnpicklingError,
)  # fmt: skip


def load_exported(path: Path) -> Program:
    """Read a file that `torch.export.save` wrote.

    Raises:
        UserError: it cannot be read, or an op has no form in the graph dialect.
    """
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # torch logs a traceback, too
    try:
        exported = torch.export.load(path)
    except _UNREADABLE as error:
        message = one_line(str(error))[:200]
        raise UserError(f"not a readable exported program ({message})", where=str(path)) from error
    finally:
        logging.disable(level)
    return program_of(exported, source=path.name)


def program_of(
    exported: Any,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    source: str = "",
) -> Program:
    """The program of an exported one; parameters keep their names in the module.

    Args:
        inputs, outputs: names, where they are to be others than torch's.

    Raises:
        UnsupportedAten: an op has no form in the graph dialect; `where` is the user's line.
        UserError: it changes a buffer or an input, or an input is no tensor.
    """
    exported = exported.run_decompositions(decompositions())
    graph = exported.graph_module.graph
    graph.eliminate_dead_code()
    signature = exported.graph_signature
    _check_outputs(signature.output_specs)
    found, names, stored = AtenGraph(), dict[str, str](), dict[str, Any]()
    labels = iter(inputs) if inputs is not None else None
    places = {n.name: n for n in graph.nodes if n.op == "placeholder"}
    for entry in signature.input_specs:
        node = places[entry.arg.name]
        spec = spec_of(node.meta.get("val"))
        if entry.kind in _STORED:
            names[node.name] = entry.target
            stored[entry.target] = _tensor(exported, entry.target)
            found.weights[entry.target] = _known(spec, entry.target)
        elif spec is not None or node.users:
            label = next(labels) if labels is not None else node.name
            names[node.name] = label
            found.inputs[label] = _known(spec, label)
    found.nodes = [
        node_of(n) for n in graph.nodes if n.op == "call_function" and target_of(n) not in _CHECKED
    ]
    results = [entry.arg.name for entry in signature.output_specs]
    called = outputs or _output_names(exported, found.inputs)
    found.outputs = [(name, Ref(r)) for name, r in zip(called, results, strict=True)]
    return convert(renamed(found, names), {k: _source(t) for k, t in stored.items()}, source)


def _check_outputs(entries: Sequence[Any]) -> None:
    for entry in entries:
        if entry.kind is OutputKind.USER_OUTPUT and hasattr(entry.arg, "value"):
            raise UserError(f"a result is not a tensor but {type(entry.arg.value).__name__}")
        if entry.kind is not OutputKind.USER_OUTPUT:
            raise UserError(f"forward changes '{entry.target}' in place")


def _known(spec: Any, name: str) -> Any:
    if spec is None:
        raise UserError(f"'{name}' is no tensor of fixed shape")
    return spec


def _tensor(exported: Any, name: str) -> Any:
    held: Mapping[str, Any] = exported.state_dict
    return held[name] if name in held else exported.constants[name]


def _source(tensor: Any) -> Callable[[], Array]:
    return lambda: as_array(tensor.detach().contiguous())


def _output_names(exported: Any, taken: Mapping[str, Any]) -> list[str]:
    """`output`, or the keys of the results: `output_0`, `logits`, `past_0`."""
    tree = exported.call_spec.out_spec
    leaves, _ = tree_flatten_with_path(tree_unflatten(list(range(tree.num_leaves)), tree))
    return output_names([joined(path) for path, _ in leaves], list(taken))


def joined(path: Sequence[Any]) -> str:
    """A path of keys, indices and fields as one name: `d_key_0`."""
    parts = [getattr(k, "key", getattr(k, "idx", getattr(k, "name", k))) for k in path]
    return "_".join(str(part) for part in parts)


def output_names(keys: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names of outputs from their paths, distinct from inputs."""
    named = [f"output_{key}" if key[:1].isdecimal() else key or "output" for key in keys]
    return distinct(named, taken)


def distinct(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """The names, each made unique by trailing underscores."""
    found: list[str] = []
    for name in names:
        while name in found or name in taken:
            name += "_"
        found.append(name)
    return found


__all__ = ["UnsupportedAten", "distinct", "joined", "load_exported", "output_names", "program_of"]
