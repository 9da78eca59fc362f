"""Keep a node unchanged: `graph.opaque`, run by onnx.reference and always reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import onnx
from xdsl.ir import SSAValue

from ...dialects.dims import extent_named, is_symbolic
from ...dialects.errors import UserError
from ...dialects.graph import OpaqueOp
from ...dialects.opaque import evaluate_node, evaluator, node_model, outer_names
from ...dialects.opaque_kernels import KERNELS
from ...dialects.types import Array, Tensor, example_type, tensor, to_numpy
from ..node_to_nest.find import find_nests
from ..node_to_nest.table import TABLE
from .node import OnnxNode
from .tensor_data import element_of_number, to_proto, type_proto
from .values import NotConstant, OnnxValue

# Operand data up to this size are given to shape inference.
_SHAPE_DATA = 4096
# Ops whose number of results depends on data, even if two runs agree on it.
_DATA_DEPENDENT = frozenset(
    {"Compress", "ImageDecoder", "NonMaxSuppression", "NonZero", "StringSplit", "Unique"}
)
# ONNX's shape inference is wrong for these: onnx 1.23 ignores the default of STFT's `onesided`, and
# rounds a pool's automatic pads twice.
_MISINFERRED = frozenset({"AveragePool", "LpPool", "MaxPool", "STFT"})


def keep(node: OnnxNode, domain: str, opsets: Mapping[str, int]) -> Sequence[SSAValue]:
    """Add the node as an opaque op and return one value per output, in order.

    Raises:
        UserError: an operand or result is not a tensor of a supported type, shapes depend on data,
            or onnx.reference does not implement the op.
    """
    _check_operands(node)
    if node.op_type in _DATA_DEPENDENT and domain == "":
        raise UserError("the shapes of its results depend on data", where=node.where)
    if not can_run(node, domain, opsets):
        origin = f"domain '{domain}'" if domain else "the ONNX domain"
        raise UserError(
            f"op '{node.op_type}' of {origin} has no converter, and onnx.reference cannot run it",
            where=node.where,
        )
    types = result_types(node, domain, opsets)
    return add(node, opsets, (), [t for t, n in zip(types, node.proto.output, strict=True) if n])


def has_nests(node: OnnxNode) -> bool:
    """Whether loop nests are known for an op."""
    return node.op_type in TABLE


def reason(node: OnnxNode, found: str) -> str:
    """Why a kept node counts as what it does."""
    if found == "native":
        return "loop nests run it"
    if node.proto.domain not in ("", "ai.onnx"):
        return f"onnx.reference runs it: there are no loop nests for {node.proto.domain}"
    if has_nests(node):
        return "onnx.reference runs it: its loop nests have no form for these operands"
    return "onnx.reference runs it: there are no loop nests for the op"


def kind(node: OnnxNode, values: Sequence[SSAValue]) -> str:
    """What a kept node counts as: native where loop nests run it, else opaque."""
    op = values[0].owner
    assert isinstance(op, OpaqueOp)
    given = [value for value in node.inputs if value is not None]

    def known(k: int) -> Array | None:
        readable = k < len(given) and given[k].is_readable
        return given[k].array() if readable else None

    # Whether there are nests is asked for the example of symbolic dims.
    operands, results = ([example_type(v) for v in vs] for vs in (op.inputs, op.outputs))
    found = find_nests(op.properties, operands, results, known)
    return "opaque" if found is None else "native"


def add(
    node: OnnxNode,
    opsets: Mapping[str, int],
    captured: Sequence[OnnxValue],
    types: Sequence[Tensor],
) -> list[SSAValue]:
    """Add the node as an opaque op; one value per output, with a placeholder for unnamed ones.

    Args:
        captured: values that its subgraphs read from outside, in the order of `outer_names`.
        types: of the named results.

    Raises:
        UserError: an operand is not a tensor, there is no result, or something inside cannot run.
    """
    _require_runnable(node, opsets)
    operands = [node[k] for k, value in enumerate(node.inputs) if value is not None]
    operands += [value.ssa(node.build, node.fresh, node.where) for value in captured]
    entries = [f"{name}={version}" for name, version in sorted(opsets.items())]
    op = OpaqueOp(node.op_type, operands, node.proto.SerializeToString(), entries, types)
    if not op.results:
        raise UserError("it has no result", where=node.where)
    node.build.append(op)
    named = iter(op.results)
    return [next(named) if name else op.results[0] for name in node.proto.output]


def _require_runnable(node: OnnxNode, opsets: Mapping[str, int]) -> None:
    """Prepare the evaluator of a node with subgraphs. Raises UserError if an op is missing."""
    if not any(a.g.node or a.graphs for a in node.attributes.values()):
        return
    try:
        evaluator(node_model(node.proto, opsets))
    except Exception as error:  # whatever an implementation raises, the user sees the node
        raise UserError(
            f"what it does depends on data, and its subgraph cannot be run ({error})"[:300],
            where=node.where,
        ) from error


def _check_operands(node: OnnxNode) -> None:
    for name in outer_names(node.proto):
        raise UserError(
            f"its subgraph reads '{name}' from outside: not supported", where=node.where
        )
    for value in node.inputs:
        if value is not None and value.element is None:
            node.value(node.inputs.index(value)).ssa(node.build, node.fresh, node.where)


def can_run(node: OnnxNode, domain: str, opsets: Mapping[str, int]) -> bool:
    """Whether onnx.reference has an implementation of the op, or a function body to run."""
    version = opsets.get(domain, node.version)
    if any(a.g.node or a.graphs for a in node.attributes.values()):
        return True
    return _can_load(node.op_type, domain, version, opsets.get("", version))


@lru_cache(maxsize=1024)
def _can_load(op_type: str, domain: str, version: int, main: int) -> bool:
    """Try to prepare an evaluator, without running it."""
    schema = onnx.defs.get_schema(op_type, version, domain)
    if schema.deprecated and domain != "":
        return False
    if domain == "" and op_type in KERNELS:
        return True
    node = onnx.helper.make_node(op_type, ["x"] * max(schema.min_input, 1), ["y"], domain=domain)
    imports = [onnx.helper.make_opsetid("", main)]
    if domain:
        imports.append(onnx.helper.make_opsetid(domain, version))
    graph = onnx.helper.make_graph([node], "probe", [onnx.ValueInfoProto(name="x")], [])
    try:
        evaluator(onnx.helper.make_model(graph, opset_imports=imports))
    except NotImplementedError:
        return False
    except Exception as error:  # noqa: BLE001 - constructors of kernels read attributes the probe lacks
        return "not implemented" not in str(error).lower() and not any(
            words in str(error) for words in ("No registered", "No implementation")
        )
    return True


# --- types of the results ---


def result_types(node: OnnxNode, domain: str, opsets: Mapping[str, int]) -> list[Tensor]:
    """Types of all outputs, by ONNX shape inference, else by running the node twice.

    Raises:
        UserError: shapes depend on data, or a result is not a tensor of a supported type.
    """
    inferred = {} if node.op_type in _MISINFERRED else _inferred(node, domain, opsets)
    names = [name for name in node.proto.output if name]
    if all(name in inferred for name in names):
        types = inferred
    else:
        _require_integers(node)
        types = _observed(node, opsets)
    placeholder = tensor([])
    return [types[name] if name else placeholder for name in node.proto.output]


def _onnx_type(value: OnnxValue) -> onnx.TypeProto:
    assert value.element is not None
    return type_proto(value.shape, value.element)


def _inferred(node: OnnxNode, domain: str, opsets: Mapping[str, int]) -> dict[str, Tensor]:
    """The types that shape inference finds, each dim a number or a known extent, by name."""
    schema = onnx.defs.get_schema(node.op_type, node.version, domain)
    named = list(zip(node.proto.input, node.inputs, strict=False))
    types = {name: _onnx_type(v) for name, v in named if v is not None}
    data = {name: to_proto(v.array()) for name, v in named if v is not None and _gives_shapes(v)}
    imports = [onnx.helper.make_opsetid(name, version) for name, version in opsets.items()]
    try:
        found = onnx.shape_inference.infer_node_outputs(
            schema, node.proto, types, data, opset_imports=imports
        )
    except (
        onnx.shape_inference.InferenceError,
        onnx.checker.ValidationError,
        RuntimeError,
        ValueError,
        KeyError,
        TypeError,
    ):
        return {}
    whole = {name: _whole(proto, node) for name, proto in found.items()}
    return {name: type_ for name, type_ in whole.items() if type_ is not None}


def _gives_shapes(value: OnnxValue) -> bool:
    """Whether shape inference is given the operand's data."""
    known = value.is_known and value.array().size <= _SHAPE_DATA
    return known and not is_symbolic(value.array())


def _whole(proto: onnx.TypeProto, node: OnnxNode) -> Tensor | None:
    kind = proto.WhichOneof("value")
    if kind not in (None, "tensor_type"):
        name = str(kind).removesuffix("_type").replace("_", " ")
        raise UserError(f"its result is a value of kind {name}: not supported", where=node.where)
    declared = proto.tensor_type
    if not declared.HasField("shape") or any(
        d.WhichOneof("value") is None for d in declared.shape.dim
    ):
        return None
    shape = [
        d.dim_value if d.HasField("dim_value") else extent_named(d.dim_param)
        for d in declared.shape.dim
    ]
    return tensor(shape, element_of_number(declared.elem_type, node.where))


def _require_integers(node: OnnxNode) -> None:
    """After a failed shape inference: operands that may decide shapes must be constants."""
    for value in node.inputs:
        if value is None or value.is_known or value.element is None:
            continue
        if to_numpy(value.element).kind in "iu" and len(value.shape) <= 1:
            raise NotConstant(value.name, "operand", node.where)


def _observed(node: OnnxNode, opsets: Mapping[str, int]) -> dict[str, Tensor]:
    """Types of the results on two sets of operands. Raises UserError if they differ."""
    first, second = (_run(node, opsets, fill) for fill in (_zeros, _steps))
    if [(a.shape, a.dtype) for a in first] != [(a.shape, a.dtype) for a in second]:
        raise UserError("the shapes of its results depend on data", where=node.where)
    names = [name for name in node.proto.output if name]
    return {n: tensor(a.shape, _element(a, node)) for n, a in zip(names, first, strict=True)}


def _element(array: Array, node: OnnxNode):
    from ...dialects.types import from_numpy

    try:
        return from_numpy(array.dtype)
    except (UserError, TypeError) as error:
        raise UserError(
            f"its result has unsupported type {array.dtype}", where=node.where
        ) from error


def _zeros(value: OnnxValue) -> Array:
    assert value.element is not None
    return np.zeros(value.shape, to_numpy(value.element))


def _steps(value: OnnxValue) -> Array:
    assert value.element is not None
    count = int(np.prod(value.shape))
    return (np.arange(count) % 7).reshape(value.shape).astype(to_numpy(value.element))


def _run(
    node: OnnxNode, opsets: Mapping[str, int], fill: Callable[[OnnxValue], Array]
) -> list[Array]:
    operands = [v.array() if v.is_known else fill(v) for v in node.inputs if v is not None]
    try:
        results = evaluate_node(node.proto, opsets, operands)
    except Exception as error:  # whatever an implementation raises, the user sees the node
        raise UserError(
            f"op '{node.op_type}' has no converter, and onnx.reference cannot run it ({error})",
            where=node.where,
        ) from error
    if not all(isinstance(r, np.ndarray | np.generic) for r in results):
        raise UserError("its result is not a tensor", where=node.where)
    return [np.asarray(r) for r in results]
