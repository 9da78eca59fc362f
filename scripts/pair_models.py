"""Networks with drawn weights, exported as users export them: the inputs of verify_pairs.py.

Needs torch, torchvision, transformers, onnxruntime, onnxsim and onnxscript; nothing is downloaded.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from pair_faults import path_of
from torch import Tensor, nn

Made = tuple[nn.Module, dict[str, Tensor]]


def seeded(module: nn.Module, seed: int = 0) -> nn.Module:
    """Draw all parameters and statistics anew, so that none is 0 or 1; set inference mode."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in [*module.named_parameters(), *module.named_buffers()]:
            if not p.is_floating_point() or "inv_freq" in name:
                continue
            noise = torch.randn(p.shape, generator=draw)
            if name.endswith("running_var"):
                p.copy_(1 + 0.3 * noise.abs())
            elif p.dim() < 2:
                p.copy_((1.0 if "weight" in name else 0.0) + 0.1 * noise)
            else:
                p.copy_(noise / p[0].numel() ** 0.5)
    return module.eval()


class First(nn.Module):
    """The first result of a network of transformers."""

    def __init__(self, inner: nn.Module, **fixed: Any):
        super().__init__()
        self.inner, self.fixed = inner, fixed

    def forward(self, *given: Tensor) -> Tensor:
        names = ("input_ids", "attention_mask", "token_type_ids")
        return self.inner(**dict(zip(names, given, strict=False)), **self.fixed)[0]


def image(size: int) -> dict[str, Tensor]:
    """One picture."""
    return {"x": torch.zeros(1, 3, size, size)}


def tokens(length: int, mask: bool = True) -> dict[str, Tensor]:
    """One text, with its mask if asked."""
    given = {"input_ids": torch.zeros(1, length, dtype=torch.long)}
    return {**given, "mask": torch.ones(1, length, dtype=torch.long)} if mask else given


def bert(layers: int = 2, width: int = 64, length: int = 16, attention: str = "eager") -> Made:
    """BERT; from a width of 256 on with its own vocabulary and heads."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=30522 if width > 128 else 100,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // (64 if width > 128 else 16),
        intermediate_size=4 * width,
        max_position_embeddings=512 if width > 128 else 64,
        attn_implementation=attention,
    )
    inner = BertModel(config, add_pooling_layer=False)
    kinds = {"token_type_ids": torch.zeros(1, length, dtype=torch.long)}
    return First(seeded(inner)).eval(), tokens(length) | kinds


def gpt2(layers: int = 2, width: int = 64, length: int = 16, attention: str = "eager") -> Made:
    """GPT-2, likewise."""
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        vocab_size=50257 if width > 128 else 100,
        n_embd=width,
        n_layer=layers,
        n_head=width // (64 if width > 128 else 16),
        n_positions=1024 if width > 128 else 64,
        attn_implementation=attention,
        use_cache=False,
    )
    return First(seeded(GPT2Model(config))).eval(), tokens(length)


def t5() -> Made:
    """Two layers of T5's encoder: norms without a mean, looked-up distances."""
    from transformers import T5Config, T5EncoderModel

    config = T5Config(
        vocab_size=100, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, use_cache=False
    )
    return First(seeded(T5EncoderModel(config))).eval(), tokens(12, mask=False)


def llama(attention: str = "eager") -> Made:
    """Two layers of Llama: rotary embeddings, keys and values shared by heads."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=100,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        attn_implementation=attention,
        use_cache=False,
    )
    return First(seeded(LlamaModel(config))).eval(), tokens(12, mask=False)


def vision(name: str, size: int = 64, **options: Any) -> Made:
    """A network of torchvision."""
    import torchvision

    return seeded(getattr(torchvision.models, name)(**options)), image(size)


def vit() -> Made:
    """A vision transformer of three layers."""
    from torchvision.models.vision_transformer import VisionTransformer

    inner = VisionTransformer(
        image_size=64, patch_size=16, num_layers=3, num_heads=3, hidden_dim=192, mlp_dim=384
    )
    return seeded(inner), image(64)


def swin() -> Made:
    """A Swin transformer of two stages: windows, shifted by half."""
    from torchvision.models.swin_transformer import SwinTransformer

    inner = SwinTransformer([4, 4], 48, [2, 2], [3, 6], [4, 4], num_classes=10)
    return seeded(inner), image(64)


def convnext() -> Made:
    """Three blocks of ConvNeXt."""
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    inner = ConvNeXt([CNBlockConfig(32, 64, 2), CNBlockConfig(64, None, 1)], num_classes=10)
    return seeded(inner), image(64)


class Detector(nn.Module):
    """A convolution's features, read by queries through attention: a small DETR."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 4, 4), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 2, 2)
        )
        self.encoder = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.decoder = nn.TransformerDecoderLayer(32, 4, 64, batch_first=True)
        self.queries = nn.Parameter(torch.zeros(1, 10, 32))
        self.classes, self.boxes = nn.Linear(32, 7), nn.Linear(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        memory = self.encoder(self.features(x).flatten(2).transpose(1, 2))
        found = self.decoder(self.queries.expand(x.shape[0], -1, -1), memory)
        return torch.cat([self.classes(found), self.boxes(found).sigmoid()], -1)


class Block(nn.Module):
    """A transformer block written by hand, with one product for q, k and v."""

    def __init__(self, width: int = 64, heads: int = 4, causal: bool = False, fused: bool = False):
        super().__init__()
        self.heads, self.causal, self.fused = heads, causal, fused
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        n, t, c = x.shape
        parts = self.qkv(self.n1(x)).chunk(3, -1)
        q, k, v = (p.view(n, t, self.heads, c // self.heads).transpose(1, 2) for p in parts)
        if self.fused:
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            scores = q @ k.transpose(-1, -2) / (c // self.heads) ** 0.5
            if self.causal:
                hidden = torch.ones(t, t, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(hidden, float("-inf"))
            y = scores.softmax(-1) @ v
        x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
        return x + self.down(nn.functional.gelu(self.up(self.n2(x))))


def block(**options: Any) -> Made:
    """One block."""
    return seeded(Block(**options)), {"x": torch.zeros(1, 16, 64)}


MODELS: dict[str, Callable[..., Made]] = {
    "bert-2": bert,
    "bert-4": lambda **o: bert(layers=4, width=128, **o),
    "bert-base": lambda **o: bert(12, 768, 32, **o),
    "gpt2-2": gpt2,
    "gpt2": lambda **o: gpt2(12, 768, 32, **o),
    "t5": t5,
    "llama": llama,
    "block": block,
    "causal-block": lambda **o: block(causal=True, **o),
    "vit-tiny": vit,
    "swin": swin,
    "convnext": convnext,
    "detr": lambda: (seeded(Detector()), image(32)),
    "resnet18": lambda: vision("resnet18"),
    "resnet50": lambda: vision("resnet50"),
    "mobilenet-v2": lambda: vision("mobilenet_v2"),
    "squeezenet": lambda: vision("squeezenet1_1"),
    "efficientnet-b0": lambda: vision("efficientnet_b0"),
}


# --- exporters and optimisers -------------------------------------------------------------------


def export(module: nn.Module, given: dict[str, Tensor], path: Path, exporter: str) -> None:
    """By torch's old exporter ("script"; "apart" leaves batch norms alone) or the new "dynamo"."""
    dynamo = exporter == "dynamo"
    more: dict[str, Any] = {"verbose": False} if dynamo else {"opset_version": 17}
    if exporter == "apart":
        more |= {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(given.values()),
            str(path),
            input_names=list(given),
            output_names=["y"],
            dynamo=dynamo,
            external_data=False,
            **more,
        )


def onnxruntime_level(level: str) -> Callable[[Path, Path], None]:
    """The output of onnxruntime's offline optimiser at a level: basic, extended or all."""

    def apply(source: Path, target: Path) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(
            ort.GraphOptimizationLevel, f"ORT_ENABLE_{level.upper()}"
        )
        options.optimized_model_filepath = str(target)
        options.log_severity_level = 3
        ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])

    return apply


def simplified(source: Path, target: Path) -> None:
    """By onnxsim."""
    import onnxsim

    model, right = onnxsim.simplify(onnx.load(source))
    assert right, f"onnxsim could not check {source}"
    onnx.save(model, target)


def script_optimized(source: Path, target: Path) -> None:
    """By onnxscript."""
    import onnxscript.optimizer

    onnx.save(onnxscript.optimizer.optimize(onnx.load(source)), target)


def channels_last(source: Path, target: Path) -> None:
    """Elementwise and pooling ops computed between transposes: y = T'(op(T(x)))."""
    model = onnx.shape_inference.infer_shapes(onnx.load(source))
    ranks = {v.name: len(v.type.tensor_type.shape.dim) for v in model.graph.value_info}
    moved: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.op_type not in ("Relu", "Clip", "Sigmoid", "Erf", "Tanh") or (
            ranks.get(node.output[0]) not in (3, 4)
        ):
            moved.append(node)
            continue
        rank = ranks[node.output[0]]
        there = [0, *range(2, rank), 1]
        back = list(np.argsort(there))
        before, after = f"{node.output[0]}_in", f"{node.output[0]}_out"
        moved.append(onnx.helper.make_node("Transpose", node.input[:1], [before], perm=there))
        inner = onnx.NodeProto()
        inner.CopyFrom(node)
        inner.input[0], name = before, node.output[0]
        inner.output[0] = after
        moved += [inner, onnx.helper.make_node("Transpose", [after], [name], perm=back)]
    del model.graph.node[:]
    model.graph.node.extend(moved)
    onnx.save(model, target)


OPTIMISERS: dict[str, Callable[[Path, Path], None]] = {
    "ort-basic": onnxruntime_level("basic"),
    "ort-extended": onnxruntime_level("extended"),
    "ort-all": onnxruntime_level("all"),
    "onnxsim": simplified,
    "onnxscript": script_optimized,
    "nhwc": channels_last,
}


def make(name: str, folder: Path) -> Path:
    """The file of a variant: MODEL[@OPTION]/EXPORTER[/OPTIMISER], such as gpt2@sdpa/dynamo."""
    path = path_of(name, folder)
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *rest = name.split("/")
    if len(rest) == 2:
        OPTIMISERS[rest[1]](make(f"{first}/{rest[0]}", folder), path)
        return path
    model, _, option = first.partition("@")
    options: dict[str, Any] = {"sdpa": {"attention": "sdpa"}, "fused": {"fused": True}}.get(
        option, {}
    )
    module, given = MODELS[model](**options)
    export(module, given, path, rest[0])
    return path
