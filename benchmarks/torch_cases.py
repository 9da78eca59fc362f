"""Library models with random weights, small: what benchmarks/torch_models.py runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Case = Callable[[Any], tuple[Any, tuple[Any, ...]]]

# torchvision's builder, and the side of the square image.
VISION = {
    "resnet18": 112, "resnet50": 112, "mobilenet_v2": 112, "mobilenet_v3_small": 112,
    "mnasnet0_5": 112, "squeezenet1_1": 112, "shufflenet_v2_x0_5": 112, "efficientnet_b0": 112,
    "regnet_y_400mf": 112, "densenet121": 112, "googlenet": 112, "alexnet": 112, "vgg11": 64,
    "convnext_tiny": 64, "swin_t": 64, "resnext50_32x4d": 112,
}  # fmt: skip
# Of torchvision.models.segmentation, .detection (sides) and .video (frames and side).
SEGMENTATION = {
    "fcn_resnet50": 64, "deeplabv3_mobilenet_v3_large": 64, "lraspp_mobilenet_v3_large": 64,
}  # fmt: skip
DETECTION = {
    "ssdlite320_mobilenet_v3_large": 160, "fasterrcnn_mobilenet_v3_large_320_fpn": 160,
    "retinanet_resnet50_fpn": 96,
}  # fmt: skip
VIDEO = {"r3d_18": (8, 48), "mc3_18": (8, 48), "s3d": (16, 64), "mvit_v2_s": (16, 224),
         "swin3d_t": (8, 64)}  # fmt: skip
TIMM = {
    "ghostnet_100": 112, "deit_tiny_patch16_224": 224, "resmlp_12_224": 224, "mobilevit_xxs": 128,
    "edgenext_xx_small": 128, "levit_128s": 224, "poolformer_s12": 112, "repvgg_a0": 112,
    "efficientvit_b0": 128, "lcnet_050": 112, "tinynet_e": 106, "xcit_nano_12_p16_224": 224,
    "mixer_s32_224": 224, "hardcorenas_a": 112, "dla34": 112, "selecsls42b": 112,
    "swinv2_cr_tiny_224": 224, "pit_ti_224": 224, "coat_lite_tiny": 224, "cait_xxs24_224": 224,
    "vit_tiny_patch16_224": 224, "maxvit_rmlp_pico_rw_256": 256, "convnextv2_atto": 112,
    "mobilenetv4_conv_small": 112, "fastvit_t8": 128, "nfnet_f0": 96, "volo_d1_224": 224,
}  # fmt: skip
SMALL = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 512, "vocab_size": 1000}  # fmt: skip
GPT = {"n_embd": 256, "n_layer": 2, "n_head": 4, "vocab_size": 1000}
T5 = {"d_model": 256, "d_kv": 64, "d_ff": 512, "num_layers": 2, "num_heads": 4, "vocab_size": 1000}
BART = {"d_model": 256, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 512, "decoder_ffn_dim": 512,
        "vocab_size": 1000}  # fmt: skip
KV = {**SMALL, "num_key_value_heads": 2}
# Configuration, model, changed settings, and how many tokens (0: an image, -1: sound).
TEXT: Mapping[str, tuple[str, str, Mapping[str, Any], int]] = {
    "bert": ("BertConfig", "BertModel", SMALL, 64),
    "roberta": ("RobertaConfig", "RobertaModel", SMALL, 64),
    "electra": ("ElectraConfig", "ElectraModel", SMALL, 64),
    "albert": ("AlbertConfig", "AlbertModel", SMALL, 64),
    "distilbert": ("DistilBertConfig", "DistilBertModel",
                   {"dim": 256, "n_layers": 2, "n_heads": 4, "hidden_dim": 512}, 64),
    "deberta-v2": ("DebertaV2Config", "DebertaV2Model", SMALL, 64),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", {**GPT, "use_cache": False}, 64),
    "gpt2-cache": ("GPT2Config", "GPT2LMHeadModel", GPT, 64),
    "opt": ("OPTConfig", "OPTForCausalLM",
            {**SMALL, "ffn_dim": 512, "word_embed_proj_dim": 256}, 64),
    "llama": ("LlamaConfig", "LlamaForCausalLM", {**KV, "use_cache": False}, 64),
    "llama-cache": ("LlamaConfig", "LlamaForCausalLM", KV, 64),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", KV, 64),
    "mistral": ("MistralConfig", "MistralForCausalLM", KV, 64),
    "phi": ("PhiConfig", "PhiForCausalLM", SMALL, 64),
    "gpt-neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", SMALL, 64),
    "bloom": ("BloomConfig", "BloomForCausalLM",
              {"hidden_size": 256, "n_layer": 2, "n_head": 4, "vocab_size": 1000}, 64),
    "t5-encoder": ("T5Config", "T5EncoderModel", T5, 64),
    "t5": ("T5Config", "T5ForConditionalGeneration", T5, 64),
    "bart": ("BartConfig", "BartModel", BART, 64),
    "vit": ("ViTConfig", "ViTModel", {**SMALL, "image_size": 64}, 0),
    "beit": ("BeitConfig", "BeitModel", {**SMALL, "image_size": 64}, 0),
    "dinov2": ("Dinov2Config", "Dinov2Model", {**SMALL, "image_size": 64}, 0),
    "clip-vision": ("CLIPVisionConfig", "CLIPVisionModel", {**SMALL, "image_size": 64}, 0),
    "clip-text": ("CLIPTextConfig", "CLIPTextModel", SMALL, 64),
    "segformer": ("SegformerConfig", "SegformerModel",
                  {"hidden_sizes": [32, 64], "depths": [1, 1], "num_encoder_blocks": 2,
                   "num_attention_heads": [1, 2], "sr_ratios": [4, 2], "patch_sizes": [7, 3],
                   "strides": [4, 2], "mlp_ratios": [2, 2]}, 0),
    "wav2vec2": ("Wav2Vec2Config", "Wav2Vec2Model", SMALL, -1),
    "hubert": ("HubertConfig", "HubertModel", SMALL, -1),
    "mixtral": ("MixtralConfig", "MixtralForCausalLM", {**KV, "num_local_experts": 4}, 16),
    "mamba": ("MambaConfig", "MambaModel", {"hidden_size": 128, "num_hidden_layers": 2,
                                            "vocab_size": 1000, "use_cache": False}, 16),
    "xlnet": ("XLNetConfig", "XLNetModel",
              {"d_model": 256, "n_layer": 2, "n_head": 4, "d_inner": 512, "vocab_size": 1000}, 32),
}  # fmt: skip


def _vision(name: str) -> Case:
    def make(torch: Any) -> tuple[Any, tuple[Any, ...]]:
        models, size = _torchvision(torch).models, VISION[name]
        extra = {"init_weights": True} if name == "googlenet" else {}
        return getattr(models, name)(weights=None, **extra), (torch.randn(1, 3, size, size),)

    return make


def _segmentation(name: str) -> Case:
    def make(torch: Any) -> tuple[Any, tuple[Any, ...]]:
        build, size = getattr(_torchvision(torch).models.segmentation, name), SEGMENTATION[name]
        return build(weights=None, weights_backbone=None), (torch.randn(1, 3, size, size),)

    return make


def _detection(name: str) -> Case:
    """Boxes, scores and labels; a low threshold, as random weights are sure of nothing."""

    def make(torch: Any) -> tuple[Any, tuple[Any, ...]]:
        build, size = getattr(_torchvision(torch).models.detection, name), DETECTION[name]
        extra = (
            {"min_size": size, "max_size": size} if "320_fpn" in name or "retina" in name else {}
        )
        module = build(weights=None, weights_backbone=None, num_classes=5, **extra).eval()
        return _Called(torch, lambda x: module([x])), (torch.rand(3, size, size),)

    return make


def _video(name: str) -> Case:
    def make(torch: Any) -> tuple[Any, tuple[Any, ...]]:
        frames, size = VIDEO[name]
        module = getattr(_torchvision(torch).models.video, name)(weights=None)
        return module, (torch.randn(1, 3, frames, size, size),)

    return make


def _torchvision(torch: Any) -> Any:
    try:
        import torchvision  # pyright: ignore[reportMissingImports]
    except RuntimeError:  # a build for CUDA without CUDA lacks its own ops
        for op in ("nms", "qnms"):
            signature = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{op}", signature)
        torch.library.impl("torchvision::nms", "CPU", lambda *given: _nms(torch, *given))
        import torchvision  # pyright: ignore[reportMissingImports]

        torchvision.ops.boxes._assert_has_ops = lambda: None
    return torchvision


def _nms(torch: Any, boxes: Any, scores: Any, most: float) -> Any:
    """What torchvision's own op does, where a build lacks it."""
    from torchvision.ops import box_iou  # pyright: ignore[reportMissingImports]

    left, kept = scores.argsort(descending=True, stable=True), []
    while len(left):
        kept.append(left[:1])
        left = left[1:][box_iou(boxes[left[:1]], boxes[left[1:]])[0] <= most]
    return torch.cat(kept) if kept else left


def _timm(name: str) -> Case:
    def make(torch: Any) -> tuple[Any, tuple[Any, ...]]:
        _torchvision(torch)
        import timm  # pyright: ignore[reportMissingImports]

        size = TIMM[name]
        module = timm.create_model(name, pretrained=False)
        for parameter in module.parameters():
            if not parameter.any():  # a head of zeros would agree with anything
                torch.nn.init.normal_(parameter, std=0.02)
        return module, (torch.randn(1, 3, size, size),)

    return make


def _text(name: str) -> Case:
    def make(torch: Any) -> tuple[Any, tuple[Any, ...]]:
        _torchvision(torch)
        import transformers  # pyright: ignore[reportMissingImports]

        config, model, settings, tokens = TEXT[name]
        module = getattr(transformers, model)(getattr(transformers, config)(**settings))
        if tokens == 0:
            return module, (torch.randn(1, 3, 64, 64),)
        if tokens < 0:
            return module, (torch.randn(1, 8000),)
        ids = torch.randint(0, 1000, (1, tokens))
        if name == "t5":
            inner = module.eval()  # no part of what calls it
            module = _Called(torch, lambda x: inner(input_ids=x, decoder_input_ids=x[:, :8]))
        return module, (ids,)

    return make


def _Called(torch: Any, function: Callable[..., Any]) -> Any:
    class Called(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return function(*args)

    return Called()


def _lstm(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    torch._dynamo.config.allow_rnn = True
    return torch.nn.LSTM(128, 128, 2, batch_first=True), (torch.randn(1, 32, 128),)


def _gru(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    torch._dynamo.config.allow_rnn = True
    return torch.nn.GRU(128, 128, 2, batch_first=True), (torch.randn(1, 32, 128),)


def _encoder(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2), (torch.randn(1, 64, 256),)


def _graph_network(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    """Messages along edges by gather, sums at nodes by scatter."""
    a, b = torch.nn.Linear(64, 64), torch.nn.Linear(64, 16)

    def forward(x: Any, source: Any, target: Any) -> Any:
        sums = torch.zeros_like(x).index_add(0, target, torch.relu(a(x))[source])
        return b(torch.relu(sums + x))

    edges = torch.randint(0, 500, (2, 2000))
    return _Called(torch, forward), (torch.randn(500, 64), edges[0], edges[1])


def _whisper(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    _torchvision(torch)
    import transformers  # pyright: ignore[reportMissingImports]

    config = transformers.WhisperConfig(
        **{**BART, "d_model": 128}, num_mel_bins=40, max_source_positions=100, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=3,
    )  # fmt: skip
    inner = transformers.WhisperModel(config).eval()
    called = _Called(torch, lambda x, ids: inner(input_features=x, decoder_input_ids=ids))
    return called, (torch.randn(1, 40, 200), torch.randint(0, 1000, (1, 16)))


def _clip(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    _torchvision(torch)
    import transformers  # pyright: ignore[reportMissingImports]

    text, vision = SMALL, {**SMALL, "image_size": 64}
    inner = transformers.CLIPModel(
        transformers.CLIPConfig(text_config=text, vision_config=vision)
    ).eval()
    called = _Called(torch, lambda ids, x: inner(input_ids=ids, pixel_values=x))
    return called, (torch.randint(0, 1000, (2, 16)), torch.randn(2, 3, 64, 64))


def _blip(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    _torchvision(torch)
    import transformers  # pyright: ignore[reportMissingImports]

    text = {**SMALL, "encoder_hidden_size": 256, "pad_token_id": 0, "bos_token_id": 1}
    vision = {**SMALL, "image_size": 64}
    config = transformers.BlipConfig(text_config=text, vision_config=vision)
    inner = transformers.BlipForImageTextRetrieval(config).eval()
    called = _Called(torch, lambda ids, x: inner(input_ids=ids, pixel_values=x))
    return called, (torch.randint(0, 1000, (1, 16)), torch.randn(1, 3, 64, 64))


def _llava(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    """Sixteen patches of an image in the place of sixteen tokens of the text."""
    _torchvision(torch)
    import transformers  # pyright: ignore[reportMissingImports]

    vision = transformers.CLIPVisionConfig(**SMALL, image_size=64, patch_size=16)
    text = transformers.LlamaConfig(**KV)
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=text, image_token_index=999, vision_feature_layer=-1
    )
    inner = transformers.LlavaForConditionalGeneration(config).eval()
    ids = torch.randint(0, 999, (1, 32))
    ids[:, 2:18] = 999
    called = _Called(torch, lambda ids, x: inner(input_ids=ids, pixel_values=x).logits)
    return called, (ids, torch.randn(1, 3, 64, 64))


def _attention_graph(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    """Weights of edges by a softmax over each node's edges (GAT): scatter of maxima and sums."""
    a, score = torch.nn.Linear(64, 64), torch.nn.Linear(128, 1)

    def forward(x: Any, source: Any, target: Any) -> Any:
        y = a(x)
        e = torch.nn.functional.leaky_relu(score(torch.cat([y[source], y[target]], -1)))[:, 0]
        most = torch.full((len(x),), -torch.inf).scatter_reduce(0, target, e, "amax")
        w = torch.exp(e - most[target])
        total = torch.zeros(len(x)).scatter_add(0, target, w)
        messages = y[source] * (w / total[target])[:, None]
        return torch.zeros_like(y).index_add(0, target, messages)

    edges = torch.randint(0, 500, (2, 2000))
    return _Called(torch, forward), (torch.randn(500, 64), edges[0], edges[1])


def _dlrm(torch: Any) -> tuple[Any, tuple[Any, ...]]:
    tables = [torch.nn.Embedding(1000, 32) for _ in range(8)]
    dense = torch.nn.Sequential(torch.nn.Linear(13, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32))
    top = torch.nn.Sequential(torch.nn.Linear(32 + 36, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    rows, columns = torch.tril_indices(9, 9, -1)

    def forward(x: Any, ids: Any) -> Any:
        d = dense(x)
        v = torch.stack([d, *(t(ids[:, k]) for k, t in enumerate(tables))], 1)
        pairs = torch.bmm(v, v.transpose(1, 2))[:, rows, columns]
        return torch.sigmoid(top(torch.cat([d, pairs], 1)))

    return _Called(torch, forward), (torch.randn(64, 13), torch.randint(0, 1000, (64, 8)))


CASES: dict[str, Case] = {
    "encoder": _encoder, "lstm": _lstm, "gru": _gru, "dlrm": _dlrm, "graph-network": _graph_network,
    "graph-attention": _attention_graph, "hf:whisper": _whisper, "hf:clip": _clip,
    "hf:blip": _blip, "hf:llava": _llava,
    **{f"tv:{name}": _vision(name) for name in VISION},
    **{f"tv:{name}": _segmentation(name) for name in SEGMENTATION},
    **{f"tv:{name}": _detection(name) for name in DETECTION},
    **{f"tv:{name}": _video(name) for name in VIDEO},
    **{f"hf:{name}": _text(name) for name in TEXT},
    **{f"timm:{name}": _timm(name) for name in TIMM},
}  # fmt: skip
