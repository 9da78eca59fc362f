"""Opaque ONNX nodes: rebuild the node and run it by onnx.reference.

Where onnx.reference departs from the specification, `opaque_kernels` is used instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import UserError
from .graph import OpaqueOp
from .index_range import check_node, ints_of
from .opaque_control import control_operators
from .opaque_kernels import DOMAINS, Kernel, NodeCall, bounded
from .program import where
from .types import Array, Tensor, shape_of, to_numpy

if TYPE_CHECKING:
    import onnx
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

# ONNX nodes whose results do not depend on inputs.
RANDOM_NODES = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def run_node(op: OpaqueOp, operands: Sequence[Array], types: Sequence[Tensor]) -> list[Array]:
    """Results of the node, in its own dtypes.

    Raises:
        UserError: onnx.reference does not know the op or fails on these values, or a result's shape
            differs from the op's type.
    """
    import onnx

    node = onnx.NodeProto.FromString(bytes.fromhex(op.node.data))
    opsets = dict(_opset(entry.data) for entry in op.opset)
    arrays = [
        np.asarray(a).astype(to_numpy(t.element_type)) for a, t in zip(operands, types, strict=True)
    ]
    by_position = iter(arrays)
    placed = [next(by_position, None) if name else None for name in node.input]
    ints = ints_of(node)
    if node.domain == bounded.DOMAIN and "dim" in ints:
        placed = bounded.counted(placed, ints["dim"])
    check_node(node.op_type, ints, placed, where(op))
    try:
        results = evaluate_node(node, opsets, arrays)
    except Exception as error:  # whatever an implementation raises, the user sees the node
        raise UserError(f"onnx.reference cannot run it ({error})", where=where(op)) from error
    for array, result in zip(results, op.outputs, strict=True):
        if array.shape != shape_of(result):
            raise UserError(
                "its result has another shape than declared: it depends on data",
                where=where(op),
                expected=shape_of(result),
                found=array.shape,
            )
    return results


def evaluate_node(
    node: onnx.NodeProto, opsets: Mapping[str, int], arrays: Sequence[Array]
) -> list[Any]:
    """The node's named results; `arrays` holds its operands and what its subgraphs capture.

    Raises:
        Exception: whatever an implementation raises.
    """
    names = [*(name for name in node.input if name), *outer_names(node)]
    feeds = dict(zip(names, arrays, strict=True))
    return list(_evaluator_of(node.SerializeToString(), tuple(opsets.items())).run(None, feeds))


@lru_cache(maxsize=256)
def _evaluator_of(node: bytes, opsets: tuple[tuple[str, int], ...]) -> ReferenceEvaluator:
    """A node prepared to be run many times."""
    import onnx

    return evaluator(node_model(onnx.NodeProto.FromString(node), dict(opsets)))


def node_model(node: onnx.NodeProto, opsets: Mapping[str, int]) -> onnx.ModelProto:
    """A model of one node; values that its subgraphs read from outside become inputs."""
    import onnx

    node = onnx.NodeProto.FromString(node.SerializeToString())
    _use_plain_domain(node)
    names = dict.fromkeys([*(name for name in node.input if name), *outer_names(node)])
    inputs = [onnx.ValueInfoProto(name=name) for name in names]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = onnx.helper.make_graph([node], "opaque", inputs, outputs)
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.helper.make_model(graph, opset_imports=imports)


def _use_plain_domain(node: onnx.NodeProto) -> None:
    """Use the empty name of the main domain, the only one that onnx.reference knows."""
    if node.domain == "ai.onnx":
        node.domain = ""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                _use_plain_domain(inner)


def evaluator(model: onnx.ModelProto) -> ReferenceEvaluator:
    """onnx.reference with the kernels of `opaque_kernels` instead of its own."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model, new_ops=[*operators().values(), *_bounded().values()])


@lru_cache
def operators() -> Mapping[str, type[OpRun]]:
    """The kernels as operator classes of onnx.reference, by op type."""
    return {**_classes(DOMAINS), **control_operators()}


@lru_cache
def _bounded() -> Mapping[str, type[OpRun]]:
    """Those of the domain `isoform`, whose op types are ONNX's."""
    return _classes({bounded.DOMAIN: bounded.KERNELS})


def _classes(domains: Mapping[str, Mapping[str, Kernel]]) -> dict[str, type[OpRun]]:
    from onnx.reference.op_run import OpRun

    def run(self: Any, *inputs: Array | None, **attributes: Any) -> tuple[Array, ...]:
        given = {a.name for a in self.onnx_node.attribute}
        version = self.run_params["opsets"].get(self.onnx_node.domain, 1)
        call = NodeCall(
            inputs,
            {name: value for name, value in attributes.items() if name in given},
            version,
            [bool(name) for name in self.onnx_node.output],
        )
        return tuple(np.asarray(result) for result in type(self).kernel(call))

    return {
        op_type: type(
            op_type, (OpRun,), {"op_domain": domain, "_run": run, "kernel": staticmethod(kernel)}
        )
        for domain, kernels in domains.items()
        for op_type, kernel in kernels.items()
    }


def _opset(entry: str) -> tuple[str, int]:
    domain, _, version = entry.partition("=")
    return domain, int(version)


# --- names that subgraphs read from outside ---


def outer_names(node: onnx.NodeProto) -> list[str]:
    """Names that the node's subgraphs read from outside and that are not operands, in order."""
    found = [n for a in node.attribute for g in (a.g, *a.graphs) for n in captured(g)]
    return [name for name in dict.fromkeys(found) if name not in node.input]


def reads(node: onnx.NodeProto) -> list[str]:
    """All names that a node reads: its operands, and names its subgraphs read from outside."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            names += captured(graph)
    return names


def captured(graph: onnx.GraphProto) -> list[str]:
    """Names that a subgraph reads and does not define, in order of first use."""
    if not graph.node and not graph.output:
        return []
    inside = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    inside |= {name for node in graph.node for name in node.output}
    wanted = [name for node in graph.node for name in reads(node)]
    wanted += [o.name for o in graph.output if o.name]
    return [name for name in dict.fromkeys(wanted) if name not in inside]


def rename_outer(node: onnx.NodeProto, names: Mapping[str, str]) -> None:
    """Rename the outside values that the node's subgraphs read, in place."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            free = {name: names[name] for name in captured(graph) if name in names}
            if not free:
                continue
            for inner in graph.node:
                inner.input[:] = [free.get(name, name) for name in inner.input]
                rename_outer(inner, free)
            for info in graph.output:
                info.name = free.get(info.name, info.name)
