"""Networks whose sizes vary, as users export them: the files of benchmarks/dynamic_sessions.py.

    python scripts/export_sessions.py FOLDER [NAME ...]

Needs torch, torchvision and transformers; nothing is downloaded. Weights are drawn from a seed.
Sizes are a quarter to a half of the published networks', but ResNet-18 and SqueezeNet are whole.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from export_models import apart, torchvision_ops
from export_networks import First, Yolo
from pair_models import seeded
from torch import Tensor, nn

Dims = dict[str, dict[int, str]]
Made = tuple[nn.Module, dict[str, Tensor], Dims]
TEXT = {0: "batch", 1: "seq"}
HEADS, KEYS, LAYERS = 4, 64, 4


def words(*shape: int) -> Tensor:
    """Tokens of a vocabulary of 2,000."""
    return torch.randint(0, 2000, shape)


def bert() -> Made:
    """BERT with its mask; batch and length vary."""
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=2000, hidden_size=512, num_hidden_layers=4,
                        num_attention_heads=8, intermediate_size=2048)  # fmt: skip
    given = {"ids": words(2, 16), "mask": torch.ones(2, 16, dtype=torch.int64)}
    network = First(BertModel(config), ("input_ids", "attention_mask"))
    return network, given, {"ids": TEXT, "mask": TEXT}


def gpt2() -> Made:
    """GPT-2 with its mask; batch and length vary."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=2000, n_embd=384, n_layer=4, n_head=6, use_cache=False,
                        attn_implementation="eager")  # fmt: skip
    given = {"ids": words(2, 16), "mask": torch.ones(2, 16, dtype=torch.int64)}
    network = First(GPT2LMHeadModel(config), ("input_ids", "attention_mask"))
    return network, given, {"ids": TEXT, "mask": TEXT}


class Cached(nn.Module):
    """A language model's step: new tokens behind the keys and values of those before."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, ids: Tensor, mask: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        from transformers import DynamicCache

        cache = DynamicCache()
        for layer in range(LAYERS):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        found = self.inner(input_ids=ids, attention_mask=mask, past_key_values=cache)
        layers = found.past_key_values.layers
        return (found.logits, *(x for layer in layers for x in (layer.keys, layer.values)))


def llama() -> Made:
    """A Llama's step; the length of its caches and how many tokens are new vary."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(vocab_size=2000, hidden_size=512, num_hidden_layers=LAYERS,
                         num_attention_heads=8, num_key_value_heads=HEADS, intermediate_size=1376,
                         attn_implementation="eager")  # fmt: skip
    names = [f"past.{layer}.{kind}" for layer in range(LAYERS) for kind in ("key", "value")]
    given = {"ids": words(1, 3), "mask": torch.ones(1, 8, dtype=torch.int64)}
    given |= {name: torch.randn(1, HEADS, 5, KEYS) for name in names}
    dims: Dims = {"ids": {1: "seq"}, "mask": {1: "past + seq"}, **{n: {2: "past"} for n in names}}
    return Cached(LlamaForCausalLM(config)), given, dims


def whisper_decoder() -> Made:
    """Whisper's decoder of tokens, on 3 seconds of encoded sound."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperDecoder

    config = WhisperConfig(vocab_size=2000, d_model=384, decoder_layers=4,
                           decoder_attention_heads=6, decoder_ffn_dim=1536, use_cache=False,
                           pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           decoder_start_token_id=1)  # fmt: skip
    # Without a mask the exporter meets aten::diff, which it has not.
    names = ("input_ids", "attention_mask", "encoder_hidden_states")
    given = {"ids": words(2, 16), "mask": torch.ones(2, 16, dtype=torch.int64)}
    given["sound"] = torch.randn(2, 150, 384)
    dims: Dims = {"ids": TEXT, "mask": TEXT, "sound": {0: "batch"}}
    return First(WhisperDecoder(config), names), given, dims


def vit() -> Made:
    """ViT; the batch varies."""
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(hidden_size=384, num_hidden_layers=4, num_attention_heads=6,
                       intermediate_size=1536)  # fmt: skip
    network = First(ViTModel(config), ("pixel_values",))
    return network, {"image": torch.randn(2, 3, 224, 224)}, {"image": {0: "batch"}}


def resnet18() -> Made:
    """ResNet-18; the batch varies."""
    import torchvision

    network = seeded(torchvision.models.resnet18(weights=None))
    return network, {"image": torch.randn(2, 3, 224, 224)}, {"image": {0: "batch"}}


def squeezenet() -> Made:
    """SqueezeNet; height and width vary."""
    import torchvision

    network = seeded(torchvision.models.squeezenet1_1(weights=None))
    return network, {"image": torch.randn(1, 3, 224, 224)}, {"image": {2: "height", 3: "width"}}


class Heads(Yolo):
    """All boxes and their scores: what is likely is chosen outside of the network."""

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        fine = self.fine(self.stem(image))
        coarse = self.coarse(fine)
        up = nn.functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
        maps = [self.joined(torch.cat([up, fine], 1)), coarse]
        found = [self.decoded(*each) for each in zip(self.heads, maps, (8, 16), strict=True)]
        boxes, scores = zip(*found, strict=True)
        return torch.cat(boxes), torch.cat(scores)


def yolo() -> Made:
    """A small YOLO; height and width vary."""
    dims: Dims = {"image": {2: "height", 3: "width"}}
    return apart(Heads()), {"image": torch.rand(1, 3, 320, 320)}, dims


MODELS: dict[str, Callable[[], Made]] = {
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
    "whisper-decoder": whisper_decoder,
    "vit": vit,
    "resnet18": resnet18,
    "squeezenet": squeezenet,
    "yolo": yolo,
}


def export(name: str, path: Path) -> None:
    """Write one file, whole or not at all."""
    torch.manual_seed(0)
    network, given, dims = MODELS[name]()
    part = path.with_suffix(".part")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        more: dict[str, Any] = {"opset_version": 17, "dynamo": False, "dynamic_axes": dims}
        arrays = tuple(given.values())
        torch.onnx.export(network.eval(), arrays, str(part), input_names=list(given), **more)
    part.rename(path)


def main() -> None:
    """Write what does not exist yet."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("names", nargs="*", default=list(MODELS))
    asked = arguments.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    torchvision_ops()
    torch.backends.mha.set_fastpath_enabled(False)
    for name in asked.names:
        path = asked.folder / f"{name}.onnx"
        if not path.exists():
            export(name, path)
            print(path.name, path.stat().st_size, file=sys.stderr)


if __name__ == "__main__":
    main()
