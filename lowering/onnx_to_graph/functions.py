"""Calls of functions: the model's own, and those with which ONNX defines ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import AttributeProto, FunctionProto

from ...dialects.errors import UserError, did_you_mean
from .fused import DOMAIN as FUSED
from .loading import domain_of, in_order, needed, opsets_of
from .node import OnnxNode
from .old_opsets import OLDEST
from .subgraphs import CallContext, Env, Importing
from .tensor_data import number_of_element, type_name, type_proto
from .values import OnnxValue

# A limit for the expansion of small files by functions that call functions.
MAX_DEPTH = 64


def key(proto: onnx.NodeProto | FunctionProto) -> str:
    """Identity of a function: domain, name and overload."""
    name = proto.op_type if isinstance(proto, onnx.NodeProto) else proto.name
    return f"{domain_of(proto.domain)}::{name}::{proto.overload}"


def local_functions(model: onnx.ModelProto) -> dict[str, FunctionProto]:
    """The model's functions. Raises UserError where two share a name."""
    found: dict[str, FunctionProto] = {}
    for function in model.functions:
        if key(function) in found:
            raise UserError("two functions have this name", where=f"function '{function.name}'")
        found[key(function)] = function
    return found


def require_schema(node: OnnxNode, domain: str) -> None:
    """Check that onnx knows the op and that its number of operands is possible.

    Raises:
        UserError: the op is unknown, or has too few or too many operands or results.
    """
    try:
        schema = onnx.defs.get_schema(node.op_type, node.version, domain)
    except onnx.defs.SchemaError as error:
        raise _unknown(node, domain) from error
    old = domain == "" and node.version < OLDEST  # other domains count from 1
    if old and schema.since_version != _since(node.op_type, domain):
        raise UserError(
            f"opset {node.version} is too old for this op",
            expected=f"at least {OLDEST}",
            hint="onnx.version_converter can upgrade the model",
        )
    inputs, outputs = len(node.proto.input), len(node.proto.output)
    if not schema.min_input <= inputs <= schema.max_input:
        raise UserError(
            "wrong number of operands",
            expected=_range(schema.min_input, schema.max_input),
            found=inputs,
        )
    if not schema.min_output <= outputs <= schema.max_output:
        raise UserError(
            "wrong number of results",
            expected=_range(schema.min_output, schema.max_output),
            found=outputs,
        )


def allows(node: OnnxNode) -> bool:
    """Whether the op of the main domain may have operands of these types."""
    schema = onnx.defs.get_schema(node.op_type, node.version, "")
    allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    for k, value in enumerate(node.inputs):
        if value is None or value.element is None:
            continue
        declared = schema.inputs[min(k, len(schema.inputs) - 1)].type_str
        number = number_of_element(value.element)
        if f"tensor({type_name(number).lower()})" not in allowed.get(declared, {declared}):
            return False
    return True


def _since(op_type: str, domain: str) -> int:
    """The oldest opset in which the op has the meaning of the oldest opset we read."""
    try:
        return onnx.defs.get_schema(op_type, OLDEST, domain).since_version
    except onnx.defs.SchemaError:
        return 0


def _range(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"at least {low}" if high >= 1 << 30 else f"{low} to {high}"


def _unknown(node: OnnxNode, domain: str) -> UserError:
    origin = f"domain '{domain}'" if domain else "the ONNX domain"
    message = f"onnx knows no op '{node.op_type}' in {origin}, opset {node.version}"
    if domain == "" and onnx.defs.has(node.op_type, ""):
        first = min(
            s.since_version
            for s in onnx.defs.get_all_schemas_with_history()
            if s.domain == "" and s.name == node.op_type
        )
        return UserError(message, hint=f"it exists since opset {first}")
    if domain.startswith(FUSED):
        level = "ORT_ENABLE_BASIC" if domain == FUSED else "ORT_ENABLE_EXTENDED"
        return UserError(message, hint=f"onnxruntime fuses no such op at level {level}")
    names = [s.name for s in onnx.defs.get_all_schemas() if s.domain == domain]
    hint = did_you_mean(node.op_type, names) or "add it as a function of the model"
    return UserError(message, hint=hint)


def schema_body(node: OnnxNode, domain: str) -> FunctionProto | None:
    """The body with which ONNX defines this use of the op; None if it defines none."""
    schema: Any = onnx.defs.get_schema(node.op_type, node.version, domain)
    versions = sorted(schema.all_function_opset_versions)
    if not versions:
        return None
    version = max((v for v in versions if v <= node.version), default=versions[0])
    try:
        if version in schema.context_dependent_function_opset_versions:
            data = schema.get_context_dependent_function_with_opset_version(
                version, node.proto.SerializeToString(), [_type(v) for v in node.inputs]
            )
        else:
            data = schema.get_function_with_opset_version(version)
    except (RuntimeError, ValueError, onnx.defs.SchemaError):
        return None  # onnx builds no body for these operands
    if not data:
        return None
    body = FunctionProto.FromString(data)
    if not body.opset_import:
        body.opset_import.add(domain=domain, version=version)
    return body if body.node else None


def _type(value: OnnxValue | None) -> bytes:
    """The serialised ONNX type of an operand, empty for a missing one."""
    if value is None or value.element is None:
        return onnx.TypeProto().SerializeToString()
    return type_proto(value.shape, value.element).SerializeToString()


def call(
    importer: Importing, body: FunctionProto, node: OnnxNode, scope: CallContext
) -> list[OnnxValue | None]:
    """Run a function's body on a node's operands.

    Raises:
        UserError: the function calls itself, takes fewer operands, or its body is broken.
    """
    if key(node.proto) in scope.calls or len(scope.calls) >= MAX_DEPTH:
        chain = " -> ".join(c.split("::")[1] for c in (*scope.calls[-4:], key(node.proto)))
        raise UserError(f"functions call each other without end ({chain})", where=node.where)
    if len(node.inputs) > len(body.input) or len(node.proto.output) > len(body.output):
        raise UserError(
            "the function has fewer operands or results",
            where=node.where,
            expected=f"{len(body.input)} and {len(body.output)}",
            found=f"{len(node.inputs)} and {len(node.proto.output)}",
        )
    actual: list[OnnxValue | None] = [*node.inputs, *[None] * (len(body.input) - len(node.inputs))]
    env: Env = dict(zip(body.input, actual, strict=True))
    attributes = _actual_attributes(body, node)
    inner = CallContext(
        {**scope.opsets, **opsets_of(body.opset_import)},
        (*scope.calls, key(node.proto)),
        f"{scope.prefix}{node.proto.name or next(iter(node.proto.output), '')}/",
    )
    nodes = [substitute(n, attributes) for n in in_order(body.node, env)]
    importer.run(needed(nodes, body.output[: len(node.proto.output)]), env, inner)
    wanted = zip(node.proto.output, body.output, strict=False)
    return [_result(env, name, node) if outer else None for outer, name in wanted]


def _result(env: Env, name: str, node: OnnxNode) -> OnnxValue | None:
    if name not in env:
        raise UserError(f"the function does not define its output '{name}'", where=node.where)
    return env[name]


def _actual_attributes(body: FunctionProto, node: OnnxNode) -> dict[str, AttributeProto]:
    """Attributes that the body may refer to: those given, else the function's defaults."""
    found = {a.name: a for a in body.attribute_proto}
    schema_defaults: Mapping[str, AttributeProto] = {}
    domain = domain_of(node.proto.domain)
    if onnx.defs.has(node.op_type, domain):
        schema = onnx.defs.get_schema(node.op_type, node.version, domain)
        schema_defaults = {
            name: a.default_value for name, a in schema.attributes.items() if a.default_value.type
        }
    return {**schema_defaults, **found, **node.attributes}


def substitute(proto: onnx.NodeProto, actual: Mapping[str, AttributeProto]) -> onnx.NodeProto:
    """A node with attribute references replaced; references without a value are left out."""
    if not any(_refers(a) for a in proto.attribute):
        return proto
    copy = onnx.NodeProto()
    copy.CopyFrom(proto)
    del copy.attribute[:]
    copy.attribute.extend(_replaced(proto.attribute, actual))
    return copy


def _refers(attribute: AttributeProto) -> bool:
    graphs: Sequence[onnx.GraphProto] = (attribute.g, *attribute.graphs)
    return bool(attribute.ref_attr_name) or any(
        _refers(a) for graph in graphs for n in graph.node for a in n.attribute
    )


def _replaced(
    attributes: Sequence[AttributeProto], actual: Mapping[str, AttributeProto]
) -> list[AttributeProto]:
    found: list[AttributeProto] = []
    for attribute in attributes:
        copy = AttributeProto()
        if attribute.ref_attr_name:
            given = actual.get(attribute.ref_attr_name)
            if given is None:
                continue
            copy.CopyFrom(given)
            copy.name = attribute.name
        else:
            copy.CopyFrom(attribute)
            for graph in (copy.g, *copy.graphs) if copy.HasField("g") or copy.graphs else ():
                for k, inner in enumerate(graph.node):
                    graph.node[k].CopyFrom(substitute(inner, actual))
        found.append(copy)
    return found
