"""Write a graph-level program as an ONNX model.

One writer per graph op, in one table. Groups of ops that are one ONNX node are written as that node
(composites.py). Broadcasts are left to the op that reads them (operands.py). Opaque nodes are
written as they were read. Names of inputs, outputs, weights and nodes are kept. The opset is 17, or
the lowest that has everything the program needs; composite nodes raise it up to 20 unless an opaque
node prevents that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import onnx
from onnx import NodeProto, TensorProto, helper
from xdsl.dialects.builtin import TensorType, bf16
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from ...dialects.control import ControlOp, IfOp, LoopOp, YieldOp
from ...dialects.errors import UserError
from ...dialects.graph import ConstantOp, GraphOp, OpaqueOp, WeightOp
from ...dialects.graph.contraction import MatmulOp
from ...dialects.graph.pooling import AvgPoolOp, PoolOp
from ...dialects.graph.shaping import BroadcastOp, TransposeOp
from ...dialects.opaque import outer_names, rename_outer
from ...dialects.opaque_kernels.bounded import DOMAIN as BOUNDED
from ...dialects.program import Program, expression_of, pipeline_of, return_of, where
from ...dialects.shape_guards import symbols_of
from ...dialects.types import Array, is_small_float, shape_of, tensor_type
from ...dialects.weights import Weights
from ..onnx_to_graph.provenance import write_origin
from ..onnx_to_graph.tensor_data import number_of_element, to_proto
from .composites import CompositeNode, find_composites
from .control import inner_ops, write_control
from .model_file import fill, write_model
from .nodes import NodeWriter
from .ops import WRITERS, operands_of

OPSET = 17
# The opset with every composite node; newer ones change nothing for them.
WHOLE_OPSET = 20


def export_onnx(program: Program, path: str | os.PathLike[str]) -> None:
    """Write the program to `path`; very large weights to `NAME.onnx.data` beside it.

    Raises:
        UserError: an op is not of the graph level, a weight's data are missing, or the file cannot
            be written.
    """
    exporter = Exporter(program)
    model = exporter.model()
    write_model(model, exporter.weights(), Path(path))


def to_model(program: Program) -> onnx.ModelProto:
    """The program as an ONNX model in memory, weights inside. Raises UserError as `export_onnx`."""
    exporter = Exporter(program)
    model = exporter.model()
    fill(model, exporter.weights())
    return model


# --- the model ---


class Exporter(NodeWriter):
    """One export of a program."""

    def __init__(self, program: Program):
        symbols = symbols_of(program.main)
        if symbols:
            hint = "write OUT.mlir, or bind them (--shape)"
            raise UserError(
                "an .onnx is written of fixed shapes", found=", ".join(symbols), hint=hint
            )
        self.program = program
        self.ops = list(program.main.body.block.ops)
        self.inner = inner_ops(self.ops)
        opset, self._wholes = _opset_and_composites([*self.ops, *self.inner])
        super().__init__(opset)
        self._inside = {op for whole in self._wholes.values() for op in whole.inside}
        self.domains: dict[str, int] = {"": self.opset}
        self.expressions: dict[str, str] = {}
        self._renamed: dict[str, str] = {}
        self._weights: set[str] = set()

    def model(self) -> onnx.ModelProto:
        """Everything but the weights' data. Raises UserError."""
        self._name_interface()
        for op in self.ops:
            self.one(op)
        self._defaults()
        outputs = self._outputs()
        name = Path(self.program.source).stem or "main"
        inputs = [
            helper.make_tensor_value_info(n, number_of_element(t.element_type), t.get_shape())
            for n, t in self.program.inputs.items()
        ]
        graph = helper.make_graph(self.nodes, name, inputs, outputs, self.initialisers)
        imports = [helper.make_opsetid(d, v) for d, v in sorted(self.domains.items())]
        model = helper.make_model(graph, opset_imports=imports, producer_name="isoform")
        write_origin(model, self.expressions, pipeline_of(self.program.module))
        model.ir_version = max(8, helper.find_min_ir_version_for(imports, ignore_unknown=True))
        return model

    def _name_interface(self) -> None:
        """Name inputs, weights and outputs first: their names are kept, others are changed."""
        for name, arg in zip(
            self.program.input_names, self.program.main.body.block.args, strict=True
        ):
            self.names[arg] = name
        weights = [op for op in (*self.ops, *self.inner) if isinstance(op, WeightOp)]
        self.taken |= {
            *self.program.input_names,
            *self.program.output_names,
            *(w.key for w in weights),
        }
        for op in (*self.ops, *self.inner):
            if isinstance(op, OpaqueOp):
                self.taken |= _inner_names(_opaque_node(op))
        for name, value in self._returned():
            made = isinstance(value.owner, GraphOp | OpaqueOp | ConstantOp | ControlOp)
            if made and value not in self.names:
                self.names[value] = name

    def weights(self) -> Mapping[str, Array]:
        """The weights by the initialisers' names, once there is a model."""
        kept, defaults = self.program.weights, self.program.defaults
        if not self._renamed and not defaults:
            return kept
        keys = {self._renamed.get(k, k): k for k in kept} | defaults
        return Weights({name: partial(kept.__getitem__, key) for name, key in keys.items()})

    def _returned(self) -> list[tuple[str, SSAValue]]:
        values = return_of(self.program.module).arguments
        return list(zip(self.program.output_names, values, strict=True))

    def _outputs(self) -> list[onnx.ValueInfoProto]:
        found: list[onnx.ValueInfoProto] = []
        for name, value in self._returned():
            type_ = tensor_type(value)
            number = number_of_element(type_.element_type)
            found.append(helper.make_tensor_value_info(name, number, type_.get_shape()))
            if (own := self.name(value)) != name:
                self.nodes.append(helper.make_node("Identity", [own], [name], f"{name}/Identity"))
        return found

    def _defaults(self) -> None:
        """Inputs that may be left out are initialisers too."""
        types = self.program.inputs
        for name in self.program.defaults:
            number = number_of_element(types[name].element_type)
            self.initialisers.append(
                TensorProto(name=name, data_type=number, dims=types[name].get_shape())
            )

    # --- ops ---

    def one(self, op: Operation) -> None:
        """Write an op, unless another op's node includes it or may omit it."""
        if op in self._inside:
            return
        if _waits(op):
            self.waiting[op.results[0]] = op
            return
        with self.at(op):
            if (whole := self._wholes.get(op)) is not None:
                whole.write(self, [self.name(r) for r in op.results])
            else:
                self.write(op)

    def write(self, op: Operation) -> None:
        match op:
            case WeightOp():
                self._weight(op)
            case ConstantOp() if (text := expression_of(op)) is not None:
                self.expressions[self.name(op.result)] = text
                self.initialisers.append(to_proto(op.array(), self.name(op.result)))
            case ConstantOp():
                self.emit("Constant", [], [self.name(op.result)], value=to_proto(op.array()))
            case OpaqueOp():
                self._opaque(op)
            case ReturnOp() | YieldOp():
                pass
            case LoopOp() | IfOp():
                write_control(self, op)
            case GraphOp():
                self._graph_op(op)
            case _:
                raise UserError(
                    f"op '{op.name}' is below the graph level",
                    where=where(op),
                    hint="-o OUT.onnx is for graph-level programs, use -o OUT.mlir",
                )

    def _weight(self, op: WeightOp) -> None:
        name = self.names[op.result] = self._weight_name(op)
        if name in self._weights:
            return
        self._weights.add(name)
        proto = TensorProto(name=name, data_type=number_of_element(op.type.element_type))
        proto.dims.extend(op.type.get_shape())
        if op.key not in self.program.weights:
            raise UserError(
                f"the data of weight '{op.key}' are missing", hint="was the side file left behind?"
            )
        if (text := expression_of(op)) is not None:
            self.expressions[name] = text
        self.initialisers.append(proto)

    def _weight_name(self, op: WeightOp) -> str:
        """Its key, unless an input or another value's output has that name."""
        others = [name for name, value in self._returned() if value is not op.result]
        if op.key not in {*self.program.input_names, *others}:
            return op.key
        if op.key not in self._renamed:
            self._renamed[op.key] = self.fresh(op.key)
        return self._renamed[op.key]

    def _graph_op(self, op: GraphOp) -> None:
        writer = WRITERS.get(op.name.removeprefix("graph."))
        if writer is None:
            raise UserError(f"op '{op.name}' has no ONNX form", where=where(op))
        writer(self, op, operands_of(self, op), [self.name(r) for r in op.results])

    def _opaque(self, op: OpaqueOp) -> None:
        """The node as it was read, with the current names of its values."""
        node = _opaque_node(op)
        if node.domain == BOUNDED:
            raise UserError(
                "a result whose size depends on data is not written as ONNX",
                where=where(op),
                hint="write a program: -o model.mlir",
            )
        self._check_version(op, node)
        read = [*(name for name in node.input if name), *outer_names(node)]
        names = dict(zip(read, [self.name(v) for v in op.inputs], strict=True))
        results = iter([self.name(r) for r in op.outputs])
        node.input[:] = [names[name] if name else "" for name in node.input]
        optional = self._optional_results(node)
        node.output[:] = [
            next(results) if name else "" if k in optional else self.fresh("unread")
            for k, name in enumerate(node.output)
        ]
        rename_outer(node, names)
        node.name = self.node_name(node.op_type)
        self.nodes.append(node)

    def _optional_results(self, node: NodeProto) -> set[int]:
        """Which results may be unnamed; onnxruntime refuses or crashes on other unnamed results."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        schema = onnx.defs.get_schema(node.op_type, self.domains[domain], domain)
        option = onnx.defs.OpSchema.FormalParameterOption.Optional
        return {k for k, result in enumerate(schema.outputs) if result.option == option}

    def _check_version(self, op: OpaqueOp, node: NodeProto) -> None:
        """Check that the node means the same in the model's opset. Raises UserError."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        given = _opsets(op).get(domain, 1)
        target = self.domains.setdefault(domain, given)
        if target == given:
            return
        old, new = (
            onnx.defs.get_schema(node.op_type, version, domain).since_version
            for version in (given, target)
        )
        if old != new:
            raise UserError(
                f"opaque op '{node.op_type}' of opset {given} means something else in {target}",
                where=where(op),
                hint="convert the original model with onnx.version_converter",
            )


def _opaque_node(op: OpaqueOp) -> NodeProto:
    return NodeProto.FromString(bytes.fromhex(op.node.data))


def _opsets(op: OpaqueOp) -> dict[str, int]:
    pairs = [entry.data.rpartition("=") for entry in op.opset]
    return {domain: int(version) for domain, _, version in pairs}


def _inner_names(node: NodeProto) -> set[str]:
    """Names defined inside a node's subgraphs, which outer values must not shadow."""
    found: set[str] = set()
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            found |= {i.name for i in graph.input} | {t.name for t in graph.initializer}
            for inner in graph.node:
                found |= set(inner.output) | _inner_names(inner)
    return found


def _opset_and_composites(ops: Sequence[Operation]) -> tuple[int, dict[Operation, CompositeNode]]:
    """The model's opset and the groups that are one node in it.

    A model with opaque nodes keeps their opset: in another they may have another meaning.
    """
    opset = max([OPSET, *(_needed_opset(op) for op in ops)])
    fixed = any(isinstance(op, OpaqueOp) for op in ops)
    wholes = find_composites(ops, opset if fixed else max(opset, WHOLE_OPSET))
    return max([opset, *(whole.opset for whole in wholes.values())]), wholes


def _waits(op: Operation) -> bool:
    """Whether an op is written only if it is read: its readers may not need it."""
    if isinstance(op, BroadcastOp):
        return True
    if isinstance(op, ConstantOp):
        return expression_of(op) is None
    return isinstance(op, TransposeOp) and _is_read_swapped(op.result)


def _is_read_swapped(value: SSAValue) -> bool:
    """Whether the one reader is a batched product that takes the last two dims swapped."""
    if len(uses := list(value.uses)) != 1:
        return False
    product, k = uses[0].operation, uses[0].index
    if not isinstance(product, MatmulOp) or len(shape_of(value)) < 3:
        return False
    return bool(product.value(("transpose_a", "transpose_b")[k]))


def _needed_opset(op: Operation) -> int:
    """The lowest opset that has what the op needs."""
    if isinstance(op, OpaqueOp):
        return _opsets(op).get("", OPSET)
    elements = [
        v.type.element_type for v in (*op.operands, *op.results) if isinstance(v.type, TensorType)
    ]
    if any(map(is_small_float, elements)):
        return 24  # Cast rounds to powers of two since then
    if bf16 in elements[: len(op.operands)]:
        return 22  # most ops take bfloat16 only since then
    if isinstance(op, PoolOp):
        if op.value("ceil_mode") and _rounds_otherwise(op):
            return 22
        return 19 if isinstance(op, AvgPoolOp) and set(op.ints("dilations")) != {1} else OPSET
    return OPSET


def _rounds_otherwise(op: PoolOp) -> bool:
    """Whether a last window that starts in the end pad is dropped, which older opsets keep."""
    size, out, pads = shape_of(op.operands[0])[2:], shape_of(op.result)[2:], op.ints("pads")
    properties = zip(op.ints("kernel"), op.ints("strides"), op.ints("dilations"), strict=True)
    for k, (kernel, stride, dilation) in enumerate(properties):
        room = size[k] + pads[k] + pads[k + len(size)] - (kernel - 1) * dilation - 1
        if -(-room // stride) + 1 != out[k]:
            return True
    return False


__all__ = ["Exporter", "export_onnx", "to_model"]
