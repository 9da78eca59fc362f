"""Export the zoo's originals to compiler/zoo/exports/, graphs without their weights.

Run by hand when an exporter changes, in a separate environment (CPU builds are enough):

    pip install torch==2.13.0 torchvision==0.28.0 transformers onnx
    python scripts/export_zoo.py [NAME ...]

The modules are torchvision's and transformers' own. Nothing is folded: initialisers keep the names
of the zoo's weights, and the runtimes fold when they load. The batch is dynamic.
"""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import TensorProto

from isoform.compiler import zoo
from isoform.compiler.zoo.originals import MARK, ORIGINALS, torch_module
from isoform.dialects.program import Program
from isoform.dialects.types import to_numpy

EXPORTS = Path(__file__).resolve().parent.parent / "compiler" / "zoo" / "exports"


class Tokens(torch.nn.Module):
    """A BERT that takes ids and mask by position and returns tensors."""

    def __init__(self, bert: Any):
        super().__init__()
        self.bert = bert

    def forward(self, ids: Any, mask: Any) -> tuple[Any, Any]:
        found = self.bert(input_ids=ids, attention_mask=mask)
        return found.last_hidden_state, found.pooler_output


def export(module: Any, program: Program) -> onnx.ModelProto:
    """By torch.onnx, batch norms and constants left as they are."""
    args = tuple(
        torch.ones(t.get_shape(), dtype=getattr(torch, str(to_numpy(t.element_type))))
        for t in program.inputs.values()
    )
    names = [*program.input_names, *program.output_names]
    stream = io.BytesIO()
    torch.onnx.export(
        module,
        args,
        stream,
        dynamo=False,
        opset_version=17,
        input_names=program.input_names,
        output_names=program.output_names,
        dynamic_axes={name: {0: "batch"} for name in names},
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
    )
    return onnx.load_from_string(stream.getvalue())


def strip(model: onnx.ModelProto, program: Program) -> None:
    """Keep the zoo's weights by name only; drop what only describes."""
    renamed = {f"bert.{name}": name for name in program.weights}
    for node in model.graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
        node.doc_string = ""
    model.doc_string = ""
    del model.graph.value_info[:]
    for proto in model.graph.initializer:
        name = renamed.get(proto.name, proto.name)
        if name not in program.weights:
            continue
        bare = TensorProto(name=name, data_type=proto.data_type, doc_string=MARK)
        bare.dims.extend(proto.dims)
        proto.CopyFrom(bare)


def main(names: Sequence[str]) -> None:
    """Export the named models, or all."""
    EXPORTS.mkdir(exist_ok=True)
    torch.backends.mha.set_fastpath_enabled(False)
    for name in names or ORIGINALS:
        program = zoo.build(name)
        module = torch_module(program, ORIGINALS[name])  # equal weights would be exported once
        wrapped = Tokens(module) if ORIGINALS[name].library == "transformers" else module
        with torch.no_grad():
            model = export(wrapped.eval(), program)
        strip(model, program)
        path = EXPORTS / f"{name}.onnx.gz"
        path.write_bytes(gzip.compress(model.SerializeToString(deterministic=True), 9, mtime=0))
        kept = sum(len(t.raw_data) for t in model.graph.initializer)
        print(f"{path.name}: {path.stat().st_size} bytes, {kept} bytes of constants")


if __name__ == "__main__":
    main(sys.argv[1:])
