"""Models with dynamic sizes, written by torch's exporter: random weights, small, real structure.

    python -P benchmarks/dynamic_exports.py FOLDER [NAME ...]

Needs torch and transformers; -P, since transformers has modules of the names of files here. Files
that exist are kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZES = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 128, "vocab_size": 100}  # fmt: skip
TEXT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertModel", SIZES),
    "distilbert": ("DistilBertConfig", "DistilBertModel",
                   {"dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, "vocab_size": 100}),
    "electra": ("ElectraConfig", "ElectraModel", {**SIZES, "embedding_size": 64}),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel",
             {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100, "use_cache": False}),
    "llama": ("LlamaConfig", "LlamaForCausalLM",
              {**SIZES, "num_key_value_heads": 2, "use_cache": False}),
    "t5-encoder": ("T5Config", "T5EncoderModel",
                   {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4,
                    "vocab_size": 100}),
    "vit": ("ViTConfig", "ViTModel",
            {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
             "intermediate_size": 128, "image_size": 32, "patch_size": 8}),
}  # fmt: skip


def _text(name: str) -> tuple[Any, tuple[Any, ...], dict[str, dict[int, str]]]:
    import torch
    import transformers

    config, model, sizes = TEXT[name]
    made = getattr(transformers, config)(**sizes, attn_implementation="eager")
    module = getattr(transformers, model)(made).eval()
    if name == "vit":
        return _First(module, "pixel_values"), (torch.randn(2, 3, 32, 32),), {"x": {0: "batch"}}
    ids = torch.randint(0, 100, (2, 16))
    return _First(module, "input_ids"), (ids,), {"x": {0: "batch", 1: "seq"}}


def _First(module: Any, name: str) -> Any:
    """A module whose result is the first tensor of another's."""
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, x: Any) -> Any:
            mask = {} if name == "pixel_values" else {"attention_mask": torch.ones_like(x)}
            return self.module(**{name: x}, **mask)[0]

    return First()


def _net(name: str) -> tuple[Any, tuple[Any, ...], dict[str, dict[int, str]]]:
    import torch

    nn = torch.nn

    def conv(i: int, o: int, k: int = 3, s: int = 1, g: int = 1) -> Any:
        return nn.Sequential(
            nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(o), nn.ReLU()
        )

    class Residual(nn.Module):
        def __init__(self, i: int, o: int, s: int) -> None:
            super().__init__()
            self.first, self.second = conv(i, o, 3, s), nn.Conv2d(o, o, 3, 1, 1)
            self.short = nn.Conv2d(i, o, 1, s) if s > 1 or i != o else nn.Identity()

        def forward(self, x: Any) -> Any:
            return torch.relu(self.second(self.first(x)) + self.short(x))

    class Fire(nn.Module):
        def __init__(self, i: int, o: int) -> None:
            super().__init__()
            self.squeeze, self.one, self.three = conv(i, 8, 1), conv(8, o, 1), conv(8, o, 3)

        def forward(self, x: Any) -> Any:
            y = self.squeeze(x)
            return torch.cat([self.one(y), self.three(y)], 1)

    class Transposed(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.transpose(1, 2)

    class Mixer(nn.Module):
        """Products along patches, then along features."""

        def __init__(self, patches: int, width: int) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
            self.along, self.across = (
                nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
                for n in (patches, width)
            )

        def forward(self, x: Any) -> Any:
            x = x + self.along(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
            return x + self.across(self.norms[1](x))

    class UNet(nn.Module):
        """Down once and up again, beside a shortcut."""

        def __init__(self) -> None:
            super().__init__()
            self.down, self.deep = nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(8, 16, 3, 1, 1)
            self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 1, 3, 1, 1)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.down(x))
            y = self.up(torch.relu(self.deep(torch.max_pool2d(x, 2))))
            return torch.sigmoid(self.out(torch.cat([x, y], 1)))

    class Attention(nn.Module):
        """Queries of new positions over a cache of keys and values."""

        def __init__(self) -> None:
            super().__init__()
            self.q, self.kv, self.out = nn.Linear(32, 32), nn.Linear(32, 64), nn.Linear(32, 32)

        def forward(self, x: Any, past: Any) -> Any:
            q = self.q(x).unflatten(-1, (4, 8)).transpose(1, 2)
            k, v = self.kv(x).unflatten(-1, (8, 8)).transpose(1, 2).chunk(2, 1)
            k, v = (torch.cat([p, n], 2) for p, n in zip(past, (k, v), strict=True))
            p = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, -1)
            return self.out((p @ v).transpose(1, 2).flatten(2)), torch.stack([k, v])

    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    x, batch = (torch.randn(2, 3, 32, 32),), {"x": {0: "batch"}}
    match name:
        case "resnet":
            parts = [conv(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1), Residual(16, 16, 1)]
            parts += [Residual(16, 32, 2), Residual(32, 64, 2), *head, nn.Linear(64, 10)]
        case "squeezenet":
            parts = [conv(3, 16, 3, 2), Fire(16, 16), Fire(32, 32), nn.MaxPool2d(2), Fire(64, 32)]
            parts += [*head, nn.Linear(64, 10)]
        case "mobilenet":
            parts = [conv(3, 16, 3, 2)]
            for i, o in ((16, 24), (24, 32)):
                parts += [
                    conv(i, 4 * i, 1),
                    conv(4 * i, 4 * i, 3, 2, 4 * i),
                    nn.Conv2d(4 * i, o, 1),
                ]
            parts += [*head, nn.Linear(32, 10)]
        case "mixer":
            patches = (nn.Conv2d(3, 32, 8, 8), nn.Flatten(2), Transposed())
            parts = [*patches, Mixer(16, 32), Mixer(16, 32), nn.Linear(32, 10)]
        case "unet":
            parts = [UNet()]
        case "decoder-cache":
            given = (torch.randn(2, 3, 32), torch.randn(2, 2, 4, 5, 8))
            dims = {"x": {0: "batch", 1: "seq"}, "past": {1: "batch", 3: "past"}}
            return Attention().eval(), given, dims
        case "conv1d":
            parts = [nn.Conv1d(8, 16, 3, 1, 1), nn.GELU(), nn.Conv1d(16, 16, 3, 1, 1)]
            return (
                nn.Sequential(*parts).eval(),
                (torch.randn(2, 8, 20),),
                {"x": {0: "batch", 2: "t"}},
            )
        case _:
            parts = [
                nn.Linear(16, 32),
                nn.ReLU(),
                nn.Linear(32, 32),
                nn.Sigmoid(),
                nn.Linear(32, 4),
            ]
            return nn.Sequential(*parts).eval(), (torch.randn(2, 16),), batch
    return nn.Sequential(*parts).eval(), x, batch


def _decoder(name: str) -> tuple[Any, tuple[Any, ...], dict[str, dict[int, str]]]:
    """A step of a decoder of six layers of 768 features: new positions behind a cache."""
    import torch

    nn, layers, width, heads = torch.nn, 6, 768, 12

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any, keys: Any, values: Any, bias: Any) -> Any:
            parts = self.qkv(self.first(x)).split(width, -1)
            q, k, v = (y.unflatten(-1, (heads, width // heads)).transpose(1, 2) for y in parts)
            k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            p = torch.softmax(q @ k.transpose(-1, -2) / 8.0 + bias, -1)
            x = x + self.out((p @ v).transpose(1, 2).flatten(2))
            return x + self.down(nn.functional.gelu(self.up(self.second(x)))), k, v

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(8000, width), nn.Embedding(1024, width)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 8000, bias=False)

        def forward(self, x: Any, mask: Any, *cache: Any) -> Any:
            past, new = cache[0].shape[2], x.shape[1]
            here = torch.arange(past, past + new)
            seen = (torch.arange(past + new)[None, :] <= here[:, None])[None, None]
            bias = torch.where(seen & (mask[:, None, None, :] > 0), 0.0, -1e9)
            y, found = self.words(x) + self.places(here), list[Any]()
            for layer, keys, values in zip(self.layers, cache[::2], cache[1::2], strict=True):
                y, k, v = layer(y, keys, values, bias)
                found += [k, v]
            return (self.head(self.norm(y[:, -1])), *found)

    cache = tuple(torch.randn(1, heads, 5, width // heads) for _ in range(2 * layers))
    dims = {"x": {1: "seq"}, "mask": {1: "past + seq"}}
    dims |= {f"past.{k // 2}.{'kv'[k % 2]}": {2: "past"} for k in range(2 * layers)}
    given = (torch.randint(0, 8000, (1, 3)), torch.ones(1, 8, dtype=torch.int64), *cache)
    return Decoder().eval(), given, dims


NETS = ("resnet", "squeezenet", "mobilenet", "mixer", "unet", "decoder-cache", "conv1d", "mlp")
MODELS: dict[str, Callable[[str], Any]] = dict.fromkeys(TEXT, _text) | dict.fromkeys(NETS, _net)
MODELS["decoder"] = _decoder


def make(name: str, path: Path) -> None:
    """Write one model."""
    import torch

    torch.manual_seed(0)
    module, args, dims = MODELS[name](name)
    part = path.with_suffix(".part")
    torch.onnx.export(
        module, args, str(part), input_names=list(dims), dynamic_axes=dims, dynamo=False,
        opset_version=17,
    )  # fmt: skip
    part.rename(path)


def main() -> None:
    """Write what does not exist yet."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("names", nargs="*", default=list(MODELS))
    given = arguments.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.names:
        path = given.folder / f"{name}.onnx"
        if not path.exists():
            make(name, path)
            print(path.name, path.stat().st_size, file=sys.stderr)


if __name__ == "__main__":
    main()
