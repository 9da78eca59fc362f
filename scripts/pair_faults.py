"""Faults planted in exported models, which `isoform verify` must find."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper

Array = np.ndarray
Change = Callable[[Array], Array]


def nodes(model: ModelProto, op_type: str) -> list[NodeProto]:
    """The nodes of a type; there must be one."""
    found = [node for node in model.graph.node if node.op_type == op_type]
    assert found, f"the model has no {op_type}"
    return found


def attribute(op_type: str, name: str, value: Any, number: int = 0) -> Callable[[ModelProto], None]:
    """Change an attribute of the n-th node of a type; by a value or a function of the old one."""

    def plant(model: ModelProto) -> None:
        node = nodes(model, op_type)[number]
        old = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        kept = [a for a in node.attribute if a.name != name]
        new = value(old.get(name)) if callable(value) else value
        del node.attribute[:]
        node.attribute.extend([*kept, helper.make_attribute(name, new)])

    return plant


def weight(
    change: Change, shape: Sequence[int] | None = None, number: int = 0, name: str = ""
) -> Callable[[ModelProto], None]:
    """Change the n-th float weight with this shape, or with a name that ends so."""

    def plant(model: ModelProto) -> None:
        found = [
            i
            for i in model.graph.initializer
            if i.data_type == onnx.TensorProto.FLOAT
            and (shape is None or list(i.dims) == list(shape))
            and i.name.endswith(name)
        ]
        assert found, f"the model has no weight {name or shape}"
        old = numpy_helper.to_array(found[number])
        new = change(old.copy()).astype(old.dtype)
        assert new.shape == old.shape and not np.array_equal(new, old)
        found[number].CopyFrom(
            numpy_helper.from_array(np.ascontiguousarray(new), found[number].name)
        )

    return plant


def bypass(op_type: str, number: int = 0, operand: int = 0) -> Callable[[ModelProto], None]:
    """Make the n-th node of a type return one of its operands."""

    def plant(model: ModelProto) -> None:
        node = nodes(model, op_type)[number]
        given, made = node.input[operand], node.output[0]
        node.CopyFrom(helper.make_node("Identity", [given], [made], node.name))

    return plant


def swapped(op_type: str, number: int = 0, results: bool = False) -> Callable[[ModelProto], None]:
    """Swap the first two operands (or results) of the n-th node of a type."""

    def plant(model: ModelProto) -> None:
        node = nodes(model, op_type)[number]
        names = node.output if results else node.input
        names[0], names[1] = names[1], names[0]

    return plant


def retyped(op_type: str, to: str, number: int = 0) -> Callable[[ModelProto], None]:
    """Change the type of the n-th node of a type; common attributes are kept."""

    def plant(model: ModelProto) -> None:
        node = nodes(model, op_type)[number]
        node.op_type = to
        kept = [a for a in node.attribute if a.name in onnx.defs.get_schema(to).attributes]
        kept = [a for a in kept if a.name not in ("storage_order", "dilations")]
        del node.attribute[:]
        node.attribute.extend(kept)

    return plant


def bumped(position: int, by: float) -> Change:
    """One element, increased by this much."""

    def change(array: Array) -> Array:
        array.flat[position] += by
        return array

    return change


def exchanged(axis: int, first: slice, second: slice) -> Change:
    """Two parts along an axis, swapped."""

    def change(array: Array) -> Array:
        made = np.moveaxis(array, axis, 0)
        made[first], made[second] = made[second].copy(), made[first].copy()
        return array

    return change


def negated(position: int) -> Change:
    """One element with the other sign."""
    return lambda a: a * np.where(np.arange(a.size) == position, -1, 1).reshape(a.shape)


def _both_words(model: ModelProto) -> None:
    """Swap the weights of the first layer's q and k: the columns of one product."""
    weight(exchanged(1, slice(0, 192), slice(192, 384)), (192, 576))(model)


def _turned(model: ModelProto) -> None:
    """Swap the tables of rotary embeddings."""
    tables = [i for i in model.graph.initializer if list(i.dims) == [1, 1, 12, 16]]
    names = [t.name for t in tables]
    assert len(names) == 2
    tables[0].name, tables[1].name = names[1], names[0]


def _masked_later(model: ModelProto) -> None:
    """A causal mask that hides one position less."""
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype == bool and array.shape == (16, 16):
            tensor.CopyFrom(numpy_helper.from_array(np.triu(np.ones_like(array), 2), tensor.name))
            return
    raise AssertionError("the model has no mask")


def _halved(model: ModelProto) -> None:
    """All float computation in float16, with unchanged inputs and outputs."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model.CopyFrom(convert_float_to_float16(model, keep_io_types=True))


# The fault, the model it is planted in, the equal model, and the change.
Fault = tuple[str, str, str, Callable[[ModelProto], None]]
BLOCK = ("block/script", "block/script/ort-extended")
GPT = ("gpt2-2/script/ort-extended", "gpt2-2/script")
FAULTS: tuple[Fault, ...] = (
    ("bias off by 1e-4", *BLOCK, weight(bumped(3, 1e-4), (256,))),
    (
        "bias off by 1e-4, BERT",
        "bert-2/dynamo",
        "bert-2/script",
        weight(bumped(5, 1e-4), (64,), -1),
    ),
    ("score scaled by 1.001", *BLOCK[::-1], attribute("FusedMatMul", "alpha", lambda a: a * 1.001)),
    ("square weight transposed", *BLOCK, weight(np.transpose, (64, 64))),
    ("residual missing", *BLOCK, bypass("Add", -1)),
    ("softmax over another axis", *BLOCK, attribute("Softmax", "axis", -2)),
    ("epsilon of a layer norm", *BLOCK, attribute("LayerNormalization", "epsilon", 1e-6, 1)),
    ("mask moved by one", "causal-block/dynamo", "causal-block/script", _masked_later),
    (
        "tanh for erf in a GELU",
        "convnext/dynamo",
        "convnext/script",
        attribute("Gelu", "approximate", "tanh", 1),
    ),
    ("heads exchanged", *GPT, weight(exchanged(1, slice(0, 16), slice(16, 32)), (64, 192))),
    ("positions moved by one", *GPT, weight(lambda a: np.roll(a, 1, 1), (1, 16, 64))),
    ("rotary cosine and sine exchanged", "llama/dynamo/ort-extended", "llama/dynamo", _turned),
    (
        "distance moved by one",
        "t5/script/ort-extended",
        "t5/script",
        weight(lambda a: np.roll(a, 1, -1), (1, 4, 12, 12)),
    ),
    ("q and k exchanged", "vit-tiny/dynamo", "vit-tiny/script", _both_words),
    (
        "one weight's sign",
        "resnet18/dynamo",
        "resnet18/script",
        weight(negated(77), (512, 512, 3, 3)),
    ),
    (
        "padding moved",
        "resnet18/dynamo",
        "resnet18/script",
        attribute("Conv", "pads", [0, 0, 2, 2], 3),
    ),
    ("relu missing", "resnet18/script/nhwc", "resnet18/script", bypass("Relu", 4)),
    (
        "epsilon of a batch norm",
        "resnet18/apart",
        "resnet18/script",
        attribute("BatchNormalization", "epsilon", 1e-4, 3),
    ),
    (
        "clip at 6.5",
        "mobilenet-v2/dynamo/nhwc",
        "mobilenet-v2/dynamo",
        weight(lambda a: a + 0.5, (), name="max_val_cast"),
    ),
    (
        "operands of a concat exchanged",
        "squeezenet/script/ort-extended",
        "squeezenet/script",
        swapped("Concat", 2),
    ),
    (
        "average for max",
        "squeezenet/script/ort-extended",
        "squeezenet/script",
        retyped("MaxPool", "AveragePool", 1),
    ),
    ("attended values dropped", "detr/script/onnxsim", "detr/script", bypass("Add", 1)),
    ("all in float16", "bert-2/script", "bert-2/dynamo", _halved),
)


def path_of(name: str, folder: Path) -> Path:
    """The path of a model's file; finding it needs no torch, as making it does."""
    return folder / (name.replace("/", ".").replace("@", "-at-") + ".onnx")


def make(fault: Fault, folder: Path, source: Path) -> Path:
    """The file of a model with a fault."""
    path = folder / f"fault-{FAULTS.index(fault)}.onnx"
    model = onnx.load(source)
    fault[3](model)
    onnx.save(model, path)
    return path
