"""Networks as users export them, by both of torch's exporters: the files of benchmarks/models.py.

    python scripts/export_models.py FOLDER [NAME[.script|.dynamo] ...]

Needs torch, torchvision, transformers and onnxscript; nothing is downloaded. Weights are drawn from
a seed. Each file has its inputs beside it (`NAME.EXPORTER.npz`). What an exporter refuses has the
line of its error in `NAME.EXPORTER.txt`. The YOLO, the tagger, the speech networks, DLRM and the
mixture of experts are small ones of our own, in export_networks.py.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from export_networks import NETWORKS, First, Made, Yolo
from pair_models import seeded
from torch import Tensor, nn

TEXT = {"vocab_size": 1000}
SMALL = {"d_model": 256, "num_layers": 2, "num_heads": 4, "d_ff": 512, "d_kv": 64}
SPEECH = {
    "d_model": 256, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1,
}  # fmt: skip
WAVES = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}


def vision(name: str, size: int) -> Made:
    """A network of torchvision, by its name there."""
    import torchvision

    if "cnn" in name or "ssd" in name:
        made = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None)
        if "cnn" not in name:
            apart(made)
        else:
            seeded(made)
            settle(made, torch.rand(3, size, size))
    else:
        made = getattr(torchvision.models, name)(weights=None)
    return made, {"image": torch.rand(1, 3, size, size)}


def apart(module: nn.Module) -> nn.Module:
    """Weights by which boxes have other scores: as they begin, those differ by rounding alone."""
    with torch.no_grad():
        for p in seeded(module).parameters():
            if p.dim() == 4:
                p.mul_(1.7)  # what activations take away
    return module


def settle(made: Any, image: Tensor) -> None:
    """Scale the layers that give boxes and scores: as drawn, no box is inside of the image."""
    predictor, head = made.roi_heads.box_predictor, made.rpn.head

    def scale(layer: Any, _: Any, found: Tensor) -> Tensor:
        factor = 1 / found.std()
        layer.weight.data *= factor
        return found * factor

    layers = (head.cls_logits, head.bbox_pred, predictor.cls_score, predictor.bbox_pred)
    hooks = [layer.register_forward_hook(scale) for layer in layers]
    with torch.no_grad():
        made.eval()([image])
    for hook in hooks:
        hook.remove()


def detector(name: str) -> Made:
    """A detector, as torchvision's documents export it: a list of one image."""
    made, given = vision(name, 320)
    return Images(made.eval()), given


class Images(nn.Module):
    """Boxes, scores and labels of one image."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.inner([image[0]])
        found = found[1] if isinstance(found, tuple) else found  # a scripted one gives its losses
        return found[0]["boxes"], found[0]["scores"], found[0]["labels"]


def t5() -> Made:
    """T5, encoder and decoder, two layers each."""
    from transformers import T5Config, T5Model

    model = T5Model(T5Config(**TEXT, **SMALL, use_cache=False))
    names = ("input_ids", "decoder_input_ids")
    return First(model, names), {"ids": words(1, 64), "wanted": words(1, 16)}


def whisper() -> Made:
    """Whisper, two layers each, on three seconds of features."""
    from transformers import WhisperConfig, WhisperModel

    config = WhisperConfig(**TEXT, **SPEECH, max_source_positions=150, use_cache=False)
    given = {"features": torch.randn(1, 80, 300), "wanted": words(1, 16)}
    names = ("input_features", "decoder_input_ids")
    mask = torch.ones(1, 16, dtype=torch.long)  # without it the old exporter meets aten::diff
    return First(WhisperModel(config), names, decoder_attention_mask=mask), given


def wav2vec2() -> Made:
    """wav2vec2 with two layers, on one second of sound."""
    from transformers import Wav2Vec2Config, Wav2Vec2Model

    model = Wav2Vec2Model(Wav2Vec2Config(**WAVES, intermediate_size=512))
    return First(model, ("input_values",)), {"sound": torch.randn(1, 16000)}


def bert() -> Made:
    """BERT that is given tokens alone."""
    from transformers import BertConfig, BertModel

    config = BertConfig(**TEXT, **WAVES, intermediate_size=1024)
    return First(BertModel(config), ("input_ids",)), {"ids": words(1, 64)}


def words(*shape: int) -> Tensor:
    """Tokens."""
    return torch.randint(3, 1000, shape)


MODELS: dict[str, Callable[[], Made]] = {
    "ssdlite": lambda: detector("ssdlite320_mobilenet_v3_large"),
    "faster-rcnn": lambda: detector("fasterrcnn_mobilenet_v3_large_320_fpn"),
    "swin-t": lambda: vision("swin_t", 224),
    "t5": t5,
    "whisper": whisper,
    "wav2vec2": wav2vec2,
    "bert": bert,
    **NETWORKS,
    "yolo": lambda: (apart(Yolo()), {"image": torch.rand(1, 3, 320, 320)}),
}
EXPORTERS = ("script", "dynamo")


def torchvision_ops() -> None:
    """Make torchvision import beside a torch that its compiled ops were not built for.

    Its non-maximum suppression is then this one, in Python: exporters only trace it.
    """
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for name in ("nms", "qnms"):
            kinds = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{name}", kinds)
        torch.library.impl("torchvision::nms", "CPU", _nms)
        _align_rois()


def _nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    from torchvision.ops import box_iou

    order, kept = scores.argsort(descending=True), list[Tensor]()
    while len(order):
        kept.append(order[0])
        apart = box_iou(boxes[order[:1]], boxes[order])[0] <= threshold
        apart[0] = False
        order = order[apart]
    return torch.stack(kept) if kept else order


def _align_rois() -> None:
    kinds = (
        "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height,"
        " SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor"
    )
    torch.library.define("torchvision::roi_align", kinds)

    def align(x: Tensor, rois: Tensor, scale: float, h: int, w: int, n: int, half: bool) -> Tensor:
        from torchvision.ops.roi_align import _roi_align

        return _roi_align(x, rois, scale, h, w, n, half)

    torch.library.impl("torchvision::roi_align", "CPU", align)


def export(name: str, exporter: str, path: Path) -> None:
    """Write the file and its inputs."""
    torch.manual_seed(0)
    module, given = MODELS[name]()
    module.eval()
    more: dict[str, Any] = {"opset_version": 17} if exporter == "script" else {"verbose": False}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(given.values()),
            str(path),
            input_names=list(given),
            dynamo=exporter == "dynamo",
            external_data=False,
            **more,
        )
    arrays = {name: value.numpy() for name, value in given.items()}
    np.savez(path.with_suffix(".npz"), **arrays)


def main(arguments: Sequence[str]) -> None:
    """Export the named models, or all."""
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    torchvision_ops()
    torch.backends.mha.set_fastpath_enabled(False)
    for name in arguments[1:] or MODELS:
        model, _, exporter = name.partition(".")
        for kind in [exporter] if exporter else EXPORTERS:
            path = folder / f"{model}.{kind}.onnx"
            refused = path.with_suffix(".txt")
            refused.unlink(missing_ok=True)
            try:
                export(model, kind, path)
                print(f"{path.stem}: exported", flush=True)
            except Exception as error:  # noqa: BLE001, exporters raise whatever they like
                path.unlink(missing_ok=True)
                cause = error.__cause__ or error
                line = " ".join(str(cause).split())[:200]
                refused.write_text(f"torch does not export it: {type(cause).__name__}: {line}")
                print(f"{path.stem}: {refused.read_text()}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
