"""The zoo's models as their libraries export them: what other runtimes are given in `bench`.

`exports/NAME.onnx.gz` is the graph that torch.onnx makes of torchvision's or transformers' model,
without data; its initialisers have the names of the zoo's weights, whose data it is given here. So
a peer runs the file that its users have, with the weights that isoform runs. scripts/export_zoo.py
makes the files; the batch is dynamic in them.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper, numpy_helper

from ...dialects.files import write_whole
from ...dialects.program import Program

# Marks an initialiser whose data are the zoo's weight of its name.
MARK = "zoo weight"


@dataclass(frozen=True)
class Original:
    """A library's function that makes the model."""

    library: str
    function: str

    @property
    def label(self) -> str:
        return f"{self.function} of {self.library}, exported by torch.onnx"


ORIGINALS: dict[str, Original] = {
    "resnet18": Original("torchvision", "resnet18"),
    "resnet50": Original("torchvision", "resnet50"),
    "resnext50": Original("torchvision", "resnext50_32x4d"),
    "inception-v3": Original("torchvision", "inception_v3"),
    "squeezenet": Original("torchvision", "squeezenet1_1"),
    "vgg19": Original("torchvision", "vgg19"),
    "mobilenet-v2": Original("torchvision", "mobilenet_v2"),
    "resnet3d18": Original("torchvision", "video.r3d_18"),
    "bert-base": Original("transformers", "BertModel"),
}


def original_of(program: Program) -> Original | None:
    """The original of a zoo model with the sizes that its export has; None for others."""
    name = program.source.removeprefix("zoo:")
    if not program.source.startswith("zoo:") or name not in ORIGINALS:
        return None
    return ORIGINALS[name] if _fits(_graph(name).graph, program) else None


def _graph(name: str) -> onnx.ModelProto:
    packed = files(__name__.rpartition(".")[0]).joinpath("exports", f"{name}.onnx.gz").read_bytes()
    return onnx.ModelProto.FromString(gzip.decompress(packed))


def _fits(graph: onnx.GraphProto, program: Program) -> bool:
    """Whether inputs and weights have the names and, where they are fixed, the sizes."""
    declared = {
        entry.name: [d.dim_value or None for d in entry.type.tensor_type.shape.dim]
        for entry in graph.input
    }
    if declared.keys() != program.inputs.keys():
        return False
    for name, type_ in program.inputs.items():
        pairs = zip(declared[name], type_.get_shape(), strict=True)
        if any(size not in (None, given) for size, given in pairs):
            return False
    return all(proto.name in program.weights for proto in graph.initializer if is_bare(proto))


def is_bare(proto: TensorProto) -> bool:
    """Whether an initialiser's data are the zoo's."""
    return proto.doc_string == MARK


def write_original(program: Program, path: Path) -> None:
    """Write the original's export with the weights of the zoo model `program`."""
    model = _graph(program.source.removeprefix("zoo:"))
    for proto in model.graph.initializer:
        if is_bare(proto):
            dtype = helper.tensor_dtype_to_np_dtype(proto.data_type)
            data = program.weights[proto.name].astype(dtype, copy=False)
            proto.CopyFrom(numpy_helper.from_array(data, proto.name))
    write_whole(path, model.SerializeToString())


def torch_module(program: Program, original: Original) -> Any:
    """The library's own module with the zoo's weights, in evaluation mode.

    Raises:
        ImportError: the library is not installed.
    """
    import torch  # pyright: ignore[reportMissingImports]

    module = make_module(original)
    names = {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
    weights = {
        name: torch.from_numpy(program.weights[name].copy())
        for name in program.weights
        if name in names
    }
    module.load_state_dict(weights, strict=False)
    return module.eval()


def make_module(original: Original) -> Any:
    """The library's module with weights of its own. Raises ImportError."""
    if original.library == "transformers":
        import transformers  # pyright: ignore[reportMissingImports]

        return transformers.BertModel(transformers.BertConfig())
    from torchvision import models  # pyright: ignore[reportMissingImports]

    more = {"aux_logits": True} if original.function == "inception_v3" else {}
    return attrgetter(original.function)(models)(weights=None, **more)


__all__ = ["ORIGINALS", "Original", "original_of", "torch_module", "write_original"]
