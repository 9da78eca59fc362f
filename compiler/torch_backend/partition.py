"""Choose the nodes of an FX graph that isoform runs; the others stay in torch."""

# pyright: reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch
from torch._dynamo.utils import counters
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from ...dialects.errors import UserError
from ...lowering.aten_to_graph import creation, shaping
from ...lowering.aten_to_graph.convert import supported
from .fx_graph import node_of, specs_of, target_of
from .options import BackendOptions
from .part import Part
from .symbols import Symbols

LOG = logging.getLogger("isoform.torch")
_named: set[str] = set()
_MOVING = {"getitem", "clone.default", "alias.default", *shaping.TABLE, *creation.TABLE}


class Partition:
    """One graph, split into parts that isoform runs and the rest."""

    def __init__(
        self,
        module: Any,
        constants: Mapping[str, Any],
        options: BackendOptions,
        symbols: Symbols | None = None,
    ) -> None:
        """Partition and compile a copy of `module`; `constants` are placeholders' tensors.

        Args:
            symbols: of its sizes that are no numbers.

        Raises:
            UserError: with symbols, a size or a part has no form with them.
        """
        self.symbols = symbols
        self.module = _copied(module)
        self.constants = constants
        self.options = options
        self.reasons: dict[str, str] = {}
        self.ran = 0  # calls that isoform runs; of `calls` in all
        self.calls = 0
        self._keep_output_views()
        good = self._good()
        self._fuse(good)

    def _keep_output_views(self) -> None:
        """Give the outputs that are views their own chain of views, which torch runs.

        They then share memory with what they are views of, and have torch's strides.
        """
        graph = self.module.graph
        (output,) = [n for n in graph.nodes if n.op == "output"]
        made: dict[Any, Any] = {}

        def tail(node: Any) -> Any:
            if not isinstance(node, torch.fx.Node) or not is_view(node):
                return node
            if node not in made:
                base = [tail(n) for n in node.all_input_nodes]
                mapping = dict(zip(node.all_input_nodes, base, strict=True))
                with graph.inserting_before(output):
                    made[node] = graph.node_copy(node, lambda n: mapping[n])
                made[node].meta["isoform_tail"] = True
            return made[node]

        output.args = (torch.fx.map_arg(output.args[0], tail),)
        graph.eliminate_dead_code()

    def _good(self) -> set[Any]:
        """The nodes that have a form in the graph dialect; others are named in the log, once."""
        good: set[Any] = set()
        known: dict[str, str] = {}
        for node in self.module.graph.nodes:
            if node.op != "call_function" or node.meta.get("isoform_tail"):
                continue
            if target_of(node) == "getitem":
                if node.args[0] in good:
                    good.add(node)
                continue
            if all(s is None for s in specs_of(node, self.symbols)):
                continue  # a number: torch computes it, and it is a constant here
            self.calls += 1
            reason = _reason(node, known, self.symbols)
            if not reason:
                good.add(node)
            else:
                self.reasons[node.name] = reason
                _name(reason)
        return good

    def _fuse(self, good: set[Any]) -> None:
        support = _Listed(good)
        partitioner = CapabilityBasedPartitioner(
            self.module, support, allows_single_node_partition=True
        )
        partitions = [p for p in partitioner.propose_partitions() if _worth(p.nodes)]
        fused = partitioner.fuse_partitions(partitions)
        for node in list(fused.graph.nodes):
            if node.op == "call_module":
                self._compile(fused, node)
        fused.graph.eliminate_dead_code()
        fused.recompile()
        self.module = fused
        found = {"calls": self.calls, "run": self.ran, "parts": len(partitions)}
        counters["isoform"].update(found)  # adds: dynamo's own counters

    def _compile(self, fused: Any, node: Any) -> None:
        """Put a compiled part in the place of a fused graph, which stays if that fails."""
        graph = fused.get_submodule(node.target).graph
        constants = [self._constant(n) for n in node.args]
        try:
            part = Part(graph, constants, self.options, self.symbols)
        except UserError as error:
            if self.symbols is not None:
                raise
            _name(f"a part cannot be compiled: {error}")
            return
        setattr(fused, node.target, part)
        computed = [n for n in graph.nodes if n.op == "call_function"]
        self.ran += sum(target_of(n) != "getitem" for n in computed)

    def _constant(self, node: Any) -> Any:
        """The tensor of a node that always has the same one."""
        if node.op == "get_attr":
            return getattr(self.module, node.target)
        return self.constants.get(node.name) if node.op == "placeholder" else None


class _Listed(OperatorSupportBase):
    """Support for listed nodes."""

    def __init__(self, good: set[Any]) -> None:
        self.good = good

    def is_node_supported(self, submodules: Mapping[str, Any], node: Any) -> bool:
        return node in self.good


def _copied(module: Any) -> Any:
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    return torch.fx.GraphModule(module, graph)


def is_view(node: Any) -> bool:
    """Whether a node's results share memory with an operand, without writing."""
    if target_of(node) == "getitem":
        return is_view(node.args[0])
    if target_of(node) == "_unsafe_view.default":  # unsafe, as its schema does not say so
        return True
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None:
        return False
    return any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


def _worth(nodes: Any) -> bool:
    """Whether a part computes something: what only moves or makes data costs torch less."""
    return any(target_of(node) not in _MOVING for node in nodes)


def _reason(node: Any, known: dict[str, str], symbols: Symbols | None) -> str:
    """Why a node cannot be converted; empty if it can."""
    try:
        plain = node_of(node, symbols)
    except UserError as error:
        return f"op {target_of(node)}: {error}"
    read = {n.name: specs_of(n, symbols) for n in node.all_input_nodes}
    specs = {name: found for name, found in read.items() if any(found)}
    names = {name: f"v{k}" for k, name in enumerate(specs)}
    wanted = sorted({u.args[1] for u in node.users if target_of(u) == "getitem"})
    key = repr(
        (plain.target, plain.args, plain.kwargs, plain.results, list(specs.values()), wanted)
    )
    for name, short in names.items():
        key = key.replace(f"'{name}'", short)
    if key not in known:
        known[key] = supported(plain, specs, wanted)
    return known[key]


def _name(reason: str) -> None:
    """Log a reason, once for each."""
    if reason not in _named:
        _named.add(reason)
        LOG.warning("torch runs what isoform does not: %s", reason)
