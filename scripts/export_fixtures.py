"""Export torch models to tests/fixtures/, graphs without their weights.

Run by hand when an exporter changes, in a separate environment (CPU builds are enough):

    pip install torch==2.14.1 torchvision==0.29.1 transformers onnx onnxscript
    python scripts/export_fixtures.py [NAME ...]

Both exporters are used: `torchscript` (dynamo=False) and `dynamo`. All possible dims are dynamic:
tests bind them, as `--shape` does.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.seeded import write_fixture  # noqa: E402

FIXTURES = ROOT / "tests" / "fixtures"
# Weights are drawn when a fixture is loaded, so small ones must not be folded into constants.
TOKENS = ("input_ids", "attention_mask", "token_type_ids")


class Bert(torch.nn.Module):
    """A BERT that takes its three inputs by position and returns tensors."""

    def __init__(self, **sizes: int):
        super().__init__()
        from transformers import BertConfig, BertModel

        self.bert = BertModel(BertConfig(**sizes))

    def forward(self, ids: Any, mask: Any, types: Any) -> tuple[Any, Any]:
        found = self.bert(input_ids=ids, attention_mask=mask, token_type_ids=types)
        return found.last_hidden_state, found.pooler_output


def bert(**sizes: int) -> tuple[torch.nn.Module, tuple[Any, ...]]:
    """A BERT with weights drawn by torch, and example inputs."""
    ids = torch.ones(2, 16, dtype=torch.int64)
    return Bert(**sizes), (ids, ids.clone(), torch.zeros_like(ids))


def resnet18() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    """The torchvision model, and example inputs."""
    import torchvision

    return torchvision.models.resnet18(), (torch.randn(2, 3, 64, 64),)


def vit() -> tuple[torch.nn.Module, tuple[Any, ...]]:
    """A small vision transformer of torchvision, and example inputs."""
    from torchvision.models import VisionTransformer

    torch.backends.mha.set_fastpath_enabled(False)  # one fused op that no exporter knows
    sizes = {"image_size": 32, "patch_size": 8, "num_classes": 10}
    net = VisionTransformer(**sizes, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=64)
    torch.nn.init.normal_(net.heads.head.weight)  # drawn as zeros
    return net, (torch.randn(2, 3, 32, 32),)


TINY = {
    "vocab_size": 200,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
MODELS: dict[
    str,
    tuple[
        Callable[[], tuple[torch.nn.Module, tuple[Any, ...]]],
        Sequence[str],
        Sequence[str],
        dict[int, str],
    ],
] = {
    "resnet18": (resnet18, ["image"], ["logits"], {0: "batch", 2: "height", 3: "width"}),
    "vit-tiny": (vit, ["image"], ["logits"], {0: "batch"}),
    "bert-tiny": (lambda: bert(**TINY), TOKENS, ["hidden", "pooled"], {0: "batch", 1: "sequence"}),
    "bert-base": (lambda: bert(), TOKENS, ["hidden", "pooled"], {0: "batch", 1: "sequence"}),
}


def by_torchscript(
    module: Any, args: Any, inputs: Sequence[str], outputs: Sequence[str], axes: dict[int, str]
) -> onnx.ModelProto:
    """The old exporter."""
    stream = io.BytesIO()
    torch.onnx.export(
        module,
        args,
        stream,
        dynamo=False,
        opset_version=17,
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_axes=dict.fromkeys(inputs, axes),
        do_constant_folding=True,
    )
    return onnx.load_from_string(stream.getvalue())


def by_dynamo(
    module: Any, args: Any, inputs: Sequence[str], outputs: Sequence[str], axes: dict[int, str]
) -> onnx.ModelProto:
    """The new exporter."""
    dims = {d: torch.export.Dim(name, min=1, max=512) for d, name in axes.items()}
    program = torch.onnx.export(
        module,
        args,
        dynamo=True,
        input_names=list(inputs),
        output_names=list(outputs),
        dynamic_shapes=tuple(dims for _ in inputs),
        optimize=True,
    )
    assert program is not None
    return program.model_proto


EXPORTERS = {"torchscript": by_torchscript, "dynamo": by_dynamo}


def clean(model: onnx.ModelProto) -> None:
    """Drop what differs between machines or only describes: doc strings, metadata."""
    model.doc_string = ""
    model.ClearField("metadata_props")
    graph = model.graph
    del graph.value_info[:]
    for entry in (graph, *graph.node, *graph.initializer, *graph.input, *graph.output):
        entry.doc_string = ""
        entry.ClearField("metadata_props")
    for function in model.functions:
        for node in function.node:
            node.doc_string = ""
            node.ClearField("metadata_props")


def main(names: Sequence[str]) -> None:
    """Export the named models, or all."""
    FIXTURES.mkdir(exist_ok=True)
    for name in names or MODELS:
        make, inputs, outputs, axes = MODELS[name]
        for exporter, export in EXPORTERS.items():
            torch.manual_seed(0)
            module, args = make()
            with torch.no_grad():
                model = export(module.eval(), args, inputs, outputs, axes)
            clean(model)
            path = FIXTURES / f"{name}-{exporter}.onnx.gz"
            write_fixture(model, path)
            print(f"{path.name}: {path.stat().st_size} bytes, {len(model.graph.node)} nodes")


if __name__ == "__main__":
    main(sys.argv[1:])
