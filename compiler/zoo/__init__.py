"""The papers' models, written with the public GraphBuilder, with random weights from a seed.

    program = zoo.build("resnet18", batch=1, seed=0, image=224)

Published figures: parameters and multiply-adds from torchvision's model pages (its weights'
`num_params` and `_ops`), DRN-D-22 from imgclsmob's table of ImageNet models (its authors say 16.4 M
parameters), BERT-base from MobileBERT's table 1 (Sun et al. 2020; 22.5 G operations = 11.25 G
multiply-adds at 128 tokens) and transformers' checkpoint, DCGAN from PyTorch's tutorial.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...dialects.errors import UserError, did_you_mean
from ...dialects.graph import WeightOp
from ...dialects.graph.reduction import BatchNormOp
from ...dialects.program import Program
from ...passes.cost.flops import program_macs
from .bert import bert_base
from .csrnet import csrnet, csrnet_backend
from .dcgan import dcgan
from .drn import drn_d_22
from .fsrcnn import fsrcnn
from .gcn import gcn
from .inception import inception_v3
from .infogan import infogan
from .longformer import longformer
from .mobilenet import mobilenet_v2
from .nasnet import nasnet_a
from .nasrnn import nasrnn
from .resnet import resnet18, resnet50, resnext50
from .resnet3d import resnet3d18
from .squeezenet import squeezenet
from .tensat_bert import tensat_bert
from .vgg import vgg19


@dataclass(frozen=True)
class ZooModel:
    """One model and what is published about it; `None` where nothing is."""

    name: str
    builder: Callable[..., Program]
    parameters: int | None  # published
    macs: float | None  # published: multiply-accumulates
    source: str  # of these numbers
    input: tuple[int, ...]  # its shape

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that `build` takes for this model, with their defaults."""
        parameters = inspect.signature(self.builder).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


_TORCHVISION = "torchvision"
_IMAGE = (1, 3, 224, 224)
MODELS = (
    ZooModel("resnet18", resnet18, 11_689_512, 1.814e9, _TORCHVISION, _IMAGE),
    ZooModel("resnet50", resnet50, 25_557_032, 4.089e9, _TORCHVISION, _IMAGE),
    ZooModel("resnext50", resnext50, 25_028_904, 4.230e9, _TORCHVISION, _IMAGE),
    ZooModel("inception-v3", inception_v3, 23_834_568, 5.713e9, _TORCHVISION, (1, 3, 299, 299)),
    ZooModel("squeezenet", squeezenet, 1_235_496, 0.349e9, _TORCHVISION, _IMAGE),
    ZooModel("vgg19", vgg19, 143_667_240, 19.632e9, _TORCHVISION, _IMAGE),
    ZooModel("mobilenet-v2", mobilenet_v2, 3_504_872, 0.301e9, _TORCHVISION, _IMAGE),
    ZooModel("bert-base", bert_base, 109_482_240, 11.25e9, "MobileBERT, table 1", (1, 128)),
    ZooModel("dcgan", dcgan, 3_576_704, None, "PyTorch's DCGAN tutorial", (1, 100, 1, 1)),
    ZooModel("infogan", infogan, None, None, "EinNet's artifact", (1, 228, 1, 1)),
    ZooModel("fsrcnn", fsrcnn, None, 12_763_136, "FSRCNN, eq. 1", (1, 1, 32, 32)),
    ZooModel("csrnet", csrnet, 16_263_489, None, "CSRNet's authors' code", (1, 3, 112, 112)),
    ZooModel("csrnet-backend", csrnet_backend, None, None, "EinNet's artifact", (1, 512, 14, 14)),
    ZooModel("gcn", gcn, None, None, "EinNet's artifact", _IMAGE),
    ZooModel("longformer", longformer, None, None, "EinNet's artifact", (1, 10000, 512)),
    ZooModel("nasnet-a", nasnet_a, None, None, "TENSAT's source", _IMAGE),
    ZooModel("nasrnn", nasrnn, None, None, "TENSAT's source", (1, 512)),
    ZooModel("tensat-bert", tensat_bert, None, None, "TENSAT's source", (64, 1024)),
    ZooModel("resnet3d18", resnet3d18, 33_371_472, 40.697e9, _TORCHVISION, (1, 3, 16, 112, 112)),
    ZooModel("drn-d-22", drn_d_22, 16_393_752, 13.051e9, "imgclsmob's table", _IMAGE),
)
_BY_KEY = {"".join(filter(str.isalnum, m.name)): m for m in MODELS}


def find(name: str) -> ZooModel:
    """The model of that name; case and punctuation do not matter. Raises UserError."""
    model = _BY_KEY.get("".join(filter(str.isalnum, name.lower())))
    if model is None:
        names = [m.name for m in MODELS]
        hint = did_you_mean(name, names) or f"the zoo has {', '.join(names)}"
        raise UserError(f"the zoo has no model '{name}'", hint=hint)
    return model


def build(name: str, batch: int = 1, seed: int = 0, **sizes: int) -> Program:
    """Build a model with random weights: the same arguments give the same bytes.

    Args:
        sizes: the model's own, such as `image=64` or `sequence=16`; see `Model.sizes`.

    Raises:
        UserError: unknown name or size, or a size that the model cannot have.
    """
    model = find(name)
    for key, value in {"batch": batch, **sizes}.items():
        if key != "batch" and key not in model.sizes:
            known = f"it has {', '.join(model.sizes)}"
            hint = did_you_mean(key, model.sizes) or known
            raise UserError(f"{model.name} has no size '{key}'", hint=hint)
        if value < 1:
            raise UserError(f"{model.name}: '{key}' is at least 1", found=value)
    if seed < 0:
        raise UserError(f"{model.name}: the seed is at least 0", found=seed)
    return model.builder(batch, seed, **sizes)


@dataclass(frozen=True)
class ZooRow:
    """One line of the table: what is counted in the graph against what is published."""

    model: ZooModel
    parameters: int  # counted
    macs: int  # counted

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.model.name,
            "input": list(self.model.input),
            "parameters": self.parameters,
            "published_parameters": self.model.parameters,
            "macs": self.macs,
            "published_macs": self.model.macs,
            "source": self.model.source,
        }


def table() -> list[ZooRow]:
    """Count parameters and multiply-adds of every model at batch 1."""
    return [_row(model) for model in MODELS]


def _row(model: ZooModel) -> ZooRow:
    program = build(model.name)
    return ZooRow(model, parameters(program), program_macs(program))


def parameters(program: Program) -> int:
    """Trainable numbers: all weights but batch norm's running statistics."""
    return sum(
        math.prod(op.type.get_shape())
        for op in program.main.body.block.ops
        if isinstance(op, WeightOp) and not _is_statistic(op)
    )


def _is_statistic(op: WeightOp) -> bool:
    uses = list(op.result.uses)
    return bool(uses) and all(isinstance(u.operation, BatchNormOp) and u.index >= 3 for u in uses)


__all__ = ["MODELS", "ZooModel", "ZooRow", "build", "find", "parameters", "table"]
