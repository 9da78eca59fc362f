"""Programs of torch.export as programs of ours, by the table of ATen ops."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.export.graph_signature import InputKind
from torch.utils._pytree import tree_flatten_with_path, tree_unflatten

from ...dialects.errors import UserError
from ...dialects.program import Program
from ...dialects.types import Array
from ...lowering.aten_to_graph.aten import AtenGraph, Ref, renamed
from ...lowering.aten_to_graph.convert import convert
from .arrays import as_array
from .fx_graph import node_of, spec_of, target_of
from .symbols import Symbols

_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
# Nodes that check at run time what holds for the program's fixed types.
_CHECKED = ("_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range")


_NUMBERS = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)


class Exported:
    """A decomposed exported program, with the names of its inputs and outputs."""

    def __init__(
        self,
        exported: Any,
        inputs: Sequence[str] | None,
        outputs: Sequence[str] | None,
        source: str,
    ) -> None:
        self.exported, self.source = exported, source
        self.graph = exported.graph_module.graph
        self.stored: dict[str, tuple[str, Any]] = {}  # by placeholder: name and tensor
        self.inputs: dict[str, str] = {}  # by placeholder: name
        self._find_inputs(inputs)
        self.outputs = list(outputs or _output_names(exported, list(self.inputs.values())))

    def _find_inputs(self, labels: Sequence[str] | None) -> None:
        left = iter(labels) if labels is not None else None
        places = {n.name: n for n in self.graph.nodes if n.op == "placeholder"}
        for entry in self.exported.graph_signature.input_specs:
            node = places[entry.arg.name]
            if entry.kind in _STORED:
                self.stored[node.name] = entry.target, _tensor(self.exported, entry.target)
            elif isinstance(node.meta.get("val"), torch.Tensor) or node.users:
                self.inputs[node.name] = next(left) if left is not None else node.name

    def program(
        self, graph: Any, copies: Mapping[str, str], symbols: Symbols | None = None
    ) -> Program:
        """The program of `graph`: this one's, or a copy with the types of other shapes.

        Args:
            copies: the names of the copy's nodes, by those of the original.
            symbols: what sizes that are no numbers become.

        Raises:
            UnsupportedAten, UserError: as `program_of`.
        """
        found, names = AtenGraph(), dict[str, str]()
        places = {n.name: n for n in graph.nodes if n.op == "placeholder"}
        for original, (name, tensor) in self.stored.items():
            names[copies.get(original, original)] = name
            found.weights[name] = _known(spec_of(tensor), name)
        for original, name in self.inputs.items():
            place = copies.get(original, original)
            names[place] = name
            found.inputs[name] = _known(spec_of(places[place].meta.get("val"), symbols), name)
        found.nodes = [node_of(n, symbols) for n in graph.nodes if _is_computed(n)]
        results = [entry.arg.name for entry in self.exported.graph_signature.output_specs]
        ends = [Ref(copies.get(r, r)) for r in results]
        found.outputs = list(zip(self.outputs, ends, strict=True))
        weights = {name: _source(tensor) for name, tensor in self.stored.values()}
        return convert(renamed(found, names), weights, self.source)


def _is_computed(node: Any) -> bool:
    """Whether a node makes tensors: sizes are numbers, and checks hold for fixed types."""
    if node.op != "call_function" or target_of(node).startswith(_CHECKED):
        return False
    return not isinstance(node.meta.get("val"), _NUMBERS)


def _known(spec: Any, name: str) -> Any:
    if spec is None:
        raise UserError(f"'{name}' is no tensor of fixed shape")
    return spec


def _tensor(exported: Any, name: str) -> Any:
    held: Mapping[str, Any] = exported.state_dict
    return held[name] if name in held else exported.constants[name]


def _source(tensor: Any) -> Callable[[], Array]:
    return lambda: as_array(tensor.detach().contiguous())


def _output_names(exported: Any, taken: Sequence[str]) -> list[str]:
    """`output`, or the keys of the results: `output_0`, `logits`, `past_0`."""
    tree = exported.call_spec.out_spec
    leaves, _ = tree_flatten_with_path(tree_unflatten(list(range(tree.num_leaves)), tree))
    return output_names([joined(path) for path, _ in leaves], taken)


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
