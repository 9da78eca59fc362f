"""Read a model file and refuse invalid ones before anything is built."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from ...dialects.errors import UserError
from ...dialects.files import cannot, read_whole
from ...dialects.opaque import reads
from .inline_weights import LEAST_FILE, parse_without_data
from .node import describe
from .old_opsets import as_opset_6
from .sparse import without_sparse


@dataclass(frozen=True)
class OnnxModel:
    """A parsed model and the folder where its external data may lie."""

    proto: onnx.ModelProto
    folder: Path | None
    source: str

    @property
    def opsets(self) -> dict[str, int]:
        return opsets_of(self.proto.opset_import)


def load_model(model: str | os.PathLike[str] | onnx.ModelProto) -> OnnxModel:
    """Parse and check a model.

    Raises:
        UserError: the file is missing, truncated or not an ONNX model; its opset is too new; an
            op of an old one has no form in newer ones; a sparse tensor is broken.
    """
    if isinstance(model, onnx.ModelProto):
        found = OnnxModel(model, None, model.graph.name or "model")
    else:
        path = Path(model)
        found = OnnxModel(_parse(path), path.resolve().parent, str(path))
    _check(found)
    return replace(found, proto=as_opset_6(without_sparse(found.proto, found.folder)))


def _parse(path: Path) -> onnx.ModelProto:
    try:
        if path.is_file() and path.stat().st_size >= LEAST_FILE:
            return parse_without_data(path)
        data = read_whole(path)
        if not data:
            raise UserError("the file is empty", where=str(path))
        return onnx.ModelProto.FromString(data)
    except OSError as error:
        raise cannot("read", path, error) from error
    except (DecodeError, RecursionError) as error:
        raise UserError(
            "not an ONNX model, or a truncated one",
            where=str(path),
            hint="is the download complete?",
        ) from error


def _check(model: OnnxModel) -> None:
    graph = model.proto.graph
    if not model.proto.HasField("graph") or not (graph.node or graph.output):
        raise UserError("the file holds no ONNX graph", where=model.source)
    if not graph.output:
        raise UserError("the graph has no output", where=model.source)
    _require_text(model)
    if model.proto.ir_version > onnx.IR_VERSION:
        raise UserError(
            f"IR version {model.proto.ir_version} is newer than onnx {onnx.__version__} knows",
            where=model.source,
            expected=f"at most {onnx.IR_VERSION}",
            hint="pip install --upgrade onnx",
        )
    version = model.opsets.get("")
    newest = onnx.defs.onnx_opset_version()
    if version is None and not model.opsets:
        raise UserError("the model names no opset", where=model.source)
    if version is not None and version > newest:
        raise UserError(
            f"opset {version} is newer than onnx {onnx.__version__} knows",
            where=model.source,
            expected=f"at most {newest}",
            hint="pip install --upgrade onnx",
        )


def _require_text(model: OnnxModel) -> None:
    """Check that every name is text: protobuf returns bytes for a name that is not UTF-8."""
    imports = [
        *model.proto.opset_import,
        *(o for f in model.proto.functions for o in f.opset_import),
    ]
    names = [entry.domain for entry in imports]
    waiting = [model.proto.graph]
    nodes = [node for function in model.proto.functions for node in function.node]
    while waiting or nodes:
        if not nodes:
            graph = waiting.pop()
            names += [v.name for v in (*graph.input, *graph.output, *graph.initializer)]
            nodes = list(graph.node)
        else:
            node = nodes.pop()
            names += [node.name, node.op_type, node.domain, *node.input, *node.output]
            names += [a.name for a in node.attribute]
            waiting += [g for a in node.attribute for g in (a.g, *a.graphs) if g.node or g.output]
    if any(isinstance(name, bytes) for name in names):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError("a name in the model is not UTF-8 text", where=model.source)


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Version by domain; `ai.onnx` is the empty domain."""
    return {domain_of(entry.domain): entry.version for entry in imports}


def domain_of(domain: str) -> str:
    """The domain under its canonical name."""
    return "" if domain == "ai.onnx" else domain


def in_order(nodes: Sequence[onnx.NodeProto], defined: Iterable[str]) -> list[onnx.NodeProto]:
    """Nodes sorted after the nodes whose results they read; otherwise in file order.

    Raises:
        UserError: a value has two definitions, a node reads an undefined value, or the graph has a
            cycle.
    """
    known = set(defined)
    maker: dict[str, int] = {}
    for k, node in enumerate(nodes):
        for name in node.output:
            if name and (name in maker or name in known):
                raise UserError(f"value '{name}' is defined twice", where=describe(node))
            if name:
                maker[name] = k
    return _sort(nodes, known, maker)


def _sort(
    nodes: Sequence[onnx.NodeProto], known: set[str], maker: dict[str, int]
) -> list[onnx.NodeProto]:
    waits: list[int] = []
    readers: list[list[int]] = [[] for _ in nodes]
    sorted_already = True
    for k, node in enumerate(nodes):
        before: set[int] = set()
        for name in reads(node):
            if name in known:
                continue
            if name not in maker:
                raise UserError(f"it reads '{name}', which nothing defines", where=describe(node))
            before.add(maker[name])
        sorted_already &= all(j < k for j in before)
        waits.append(len(before))
        for j in before:
            readers[j].append(k)
    return list(nodes) if sorted_already else _kahn(nodes, waits, readers)


def _kahn(
    nodes: Sequence[onnx.NodeProto], waits: list[int], readers: list[list[int]]
) -> list[onnx.NodeProto]:
    ready = deque(k for k, count in enumerate(waits) if count == 0)
    order: list[onnx.NodeProto] = []
    while ready:
        k = ready.popleft()
        order.append(nodes[k])
        for reader in readers[k]:
            waits[reader] -= 1
            if waits[reader] == 0:
                ready.append(reader)
    if len(order) < len(nodes):
        stuck = next(k for k, count in enumerate(waits) if count > 0)
        raise UserError("the graph has a cycle through this node", where=describe(nodes[stuck]))
    return order


def needed(nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]) -> list[onnx.NodeProto]:
    """The (sorted) nodes that the outputs depend on; unread results lose their names."""
    wanted = set(outputs)
    kept: list[onnx.NodeProto] = []
    for node in reversed(nodes):
        used = [name in wanted for name in node.output]
        if not any(used):
            continue
        if not all(used):
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.output[:] = [n if u else "" for n, u in zip(node.output, used, strict=True)]
            node = copy
        kept.append(node)
        wanted.update(reads(node))
    return kept[::-1]
