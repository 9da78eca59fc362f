"""Networks of the table in docs/results/quantised.md that the zoo lacks, with their own widths.

    python scripts/export_wide_models.py FOLDER [NAME ...]

Needs torch, torchvision and transformers; nothing is downloaded. Weights are drawn from a seed.
Transformers have two of their layers, which are alike. `export_models.py FOLDER yolo.script` writes
the YOLO of that table.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import transformers
from export_models import torchvision_ops, vision
from export_networks import First, Made
from torch import nn

WORDS = 1000


def words(length: int) -> dict[str, torch.Tensor]:
    """One text, and its mask: without one the exporter meets an op that it does not know."""
    mask = torch.ones(1, length, dtype=torch.long)
    return {"input_ids": torch.randint(0, WORDS, (1, length)), "attention_mask": mask}


def distilbert() -> Made:
    """DistilBERT, 128 words."""
    config = transformers.DistilBertConfig(vocab_size=WORDS, n_layers=2)
    given = words(128)
    return First(transformers.DistilBertModel(config), tuple(given)), given


def vit() -> Made:
    """ViT-B/16 on 224 pixels."""
    config = transformers.ViTConfig(num_hidden_layers=2)
    given = {"pixel_values": torch.rand(1, 3, 224, 224)}
    return First(transformers.ViTModel(config), tuple(given)), given


def whisper_encoder() -> Made:
    """The encoder of Whisper's base model on thirty seconds."""
    config = transformers.WhisperConfig(
        vocab_size=WORDS, encoder_layers=2, decoder_layers=1, d_model=512, encoder_ffn_dim=2048,
        encoder_attention_heads=8, decoder_attention_heads=8, pad_token_id=0,
    )  # fmt: skip
    given = {"input_features": torch.randn(1, 80, 3000)}
    return First(transformers.WhisperModel(config).encoder, tuple(given)), given


def gpt2() -> Made:
    """GPT-2's small model without its head, 128 words."""
    config = transformers.GPT2Config(vocab_size=WORDS, n_layer=2, use_cache=False)
    given = words(128)
    return First(transformers.GPT2Model(config), tuple(given)), given


def llama_block() -> Made:
    """A block of a Llama of 1.1 billion numbers (TinyLlama's widths), 128 words."""
    config = transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=2048, intermediate_size=5632, num_hidden_layers=1,
        num_attention_heads=32, num_key_value_heads=4, use_cache=False,
    )  # fmt: skip
    given = words(128)
    return First(transformers.LlamaModel(config), tuple(given)), given


MODELS: dict[str, Callable[[], Made]] = {
    "mobilenet-v3": lambda: vision("mobilenet_v3_large", 224),
    "distilbert": distilbert,
    "vit-b": vit,
    "whisper-encoder": whisper_encoder,
    "gpt2": gpt2,
    "llama-block": llama_block,
}


def export(module: nn.Module, given: dict[str, torch.Tensor], path: Path) -> None:
    """Write a network of fixed shapes."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module.eval(), tuple(given.values()), str(path), input_names=list(given),
            dynamo=False, opset_version=17,
        )  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Export the named networks, or all."""
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    torchvision_ops()
    torch.backends.mha.set_fastpath_enabled(False)
    for name in arguments[1:] or MODELS:
        torch.manual_seed(0)
        try:
            export(*MODELS[name](), folder / f"{name}.onnx")
            print(f"{name}: exported", flush=True)
        except Exception as error:  # noqa: BLE001 - exporters raise whatever they like
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
