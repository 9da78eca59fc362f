"""Run library models through torch.compile(backend="isoform"), beside eager and inductor.

Each model has random weights, is in evaluation mode, and runs in a process of its own: eager,
inductor (weights frozen) and isoform in turn, on one thread, by the thread's clock. A line of JSON
is written for each; `--table` prints the lines as a table.

    python benchmarks/torch_models.py --out models.jsonl [NAME ...]
    python benchmarks/torch_models.py --out models.jsonl --table
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

NEAR = 1e-5  # relative to the greatest magnitude of a result
Case = Callable[[Any], tuple[Any, tuple[Any, ...]]]

# torchvision's builder, and the side of the square image.
VISION = {
    "resnet18": 112, "resnet50": 112, "mobilenet_v2": 112, "mobilenet_v3_small": 112,
    "mnasnet0_5": 112, "squeezenet1_1": 112, "shufflenet_v2_x0_5": 112, "efficientnet_b0": 112,
    "regnet_y_400mf": 112, "densenet121": 112, "googlenet": 112, "alexnet": 112, "vgg11": 64,
    "convnext_tiny": 64, "swin_t": 64, "resnext50_32x4d": 112,
}  # fmt: skip
TIMM = {
    "ghostnet_100": 112, "deit_tiny_patch16_224": 224, "resmlp_12_224": 224, "mobilevit_xxs": 128,
    "edgenext_xx_small": 128, "levit_128s": 224, "poolformer_s12": 112, "repvgg_a0": 112,
    "efficientvit_b0": 128, "lcnet_050": 112, "tinynet_e": 106, "xcit_nano_12_p16_224": 224,
    "mixer_s32_224": 224, "hardcorenas_a": 112, "dla34": 112, "selecsls42b": 112,
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
    "wav2vec2": ("Wav2Vec2Config", "Wav2Vec2Model", SMALL, -1),
}  # fmt: skip


def _vision(name: str) -> Case:
    def make(torch: Any) -> tuple[Any, tuple[Any, ...]]:
        models, size = _torchvision(torch).models, VISION[name]
        extra = {"init_weights": True} if name == "googlenet" else {}
        return getattr(models, name)(weights=None, **extra), (torch.randn(1, 3, size, size),)

    return make


def _torchvision(torch: Any) -> Any:
    try:
        import torchvision  # pyright: ignore[reportMissingImports]
    except RuntimeError:  # a build for CUDA without CUDA lacks its own ops, which no model here has
        for op in ("nms", "qnms"):
            signature = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
            torch.library.define(f"torchvision::{op}", signature)
        import torchvision  # pyright: ignore[reportMissingImports]
    return torchvision


def _timm(name: str) -> Case:
    def make(torch: Any) -> tuple[Any, tuple[Any, ...]]:
        _torchvision(torch)
        import timm  # pyright: ignore[reportMissingImports]

        size = TIMM[name]
        return timm.create_model(name, pretrained=False), (torch.randn(1, 3, size, size),)

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
    **{f"tv:{name}": _vision(name) for name in VISION},
    **{f"hf:{name}": _text(name) for name in TEXT},
    **{f"timm:{name}": _timm(name) for name in TIMM},
}  # fmt: skip


def measure(name: str, seconds: float) -> dict[str, Any]:
    """One model: compiled three ways, compared and timed."""
    import torch  # pyright: ignore[reportMissingImports]

    import isoform

    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.getLogger("isoform.torch").addHandler(handler := _Reasons())
    module, args = CASES[name](torch)
    module.eval()
    counters = torch._dynamo.utils.counters
    with torch.no_grad():
        wanted = _leaves(torch, module(*args))
        counters.clear()
        started = time.process_time()
        ours = torch.compile(module, backend=isoform.torch.backend)
        found = _leaves(torch, ours(*args))
        seconds_to_compile = time.process_time() - started
        counted, breaks = dict(counters["isoform"]), sum(counters["graph_break"].values())
        runs = {"eager": lambda: module(*args), "isoform": lambda: ours(*args)}
        inductor = _inductor(torch, module, args)
        if inductor is not None:
            runs["inductor"] = inductor
        times = _interleaved(runs, seconds)
    apart = max((_apart(a, b) for a, b in zip(found, wanted, strict=True)), default=0.0)
    return {
        "model": name, "calls": counted.get("calls", 0), "run": counted.get("run", 0),
        "parts": counted.get("parts", 0), "breaks": breaks, "apart": apart,
        "compile_s": seconds_to_compile, "left": sorted(handler.found),
        "ms": {key: 1e3 * statistics.median(value) for key, value in times.items()},
    }  # fmt: skip


def _interleaved(runs: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Seconds of the thread's clock for each run, in turn: other work does not count."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in (*runs.values(), *runs.values()):
        run()
    end = time.thread_time() + seconds
    while time.thread_time() < end or len(times["eager"]) < 5:
        for name, run in runs.items():
            started = time.thread_time()
            run()
            times[name].append(time.thread_time() - started)
    return times


def _inductor(torch: Any, module: Any, args: Any) -> Callable[[], Any] | None:
    with torch._inductor.config.patch(freezing=True):
        compiled = torch.compile(module)
        try:
            compiled(*args)
        except (RuntimeError, AssertionError, torch._dynamo.exc.TorchDynamoException):
            return None
    return lambda: compiled(*args)


class _Reasons(logging.Handler):
    """Keeps the ops that stayed in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self.found.add(record.getMessage().partition(": ")[2])


def _leaves(torch: Any, value: Any) -> list[Any]:
    found = torch.utils._pytree.tree_leaves(value)
    return [t for t in found if isinstance(t, torch.Tensor)]


def _apart(a: Any, b: Any) -> float:
    """The greatest difference, relative to the greatest magnitude."""
    if not b.numel():
        return 0.0
    most = float(b.double().abs().max())
    return float((a.double() - b.double()).abs().max()) / (most or 1.0)


def _table(path: Path) -> None:
    print("| model | calls | run | parts | breaks | apart | compile s | eager ms | inductor ms"
          " | isoform ms |\n|" + "---|" * 10)  # fmt: skip
    for line in path.read_text().splitlines():
        m = json.loads(line)
        if "failed" in m:
            print(f"| {m['model']} | failed: {m['failed']} |" + " |" * 8)
            continue
        share = 100.0 * m["run"] / m["calls"] if m["calls"] else 0.0
        ms = [
            f"{m['ms'][k]:.2f}" if k in m["ms"] else "-" for k in ("eager", "inductor", "isoform")
        ]
        cells = (m["model"], m["calls"], f"{share:.0f}%", m["parts"], m["breaks"],
                 f"{m['apart']:.0e}", f"{m['compile_s']:.0f}", *ms)  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |")


def main() -> None:
    """Measure the models named, each in its own process, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="models (all)")
    parser.add_argument("--out", type=Path, default=Path("torch_models.jsonl"))
    parser.add_argument(
        "--seconds",
        type=float,
        default=2.0,
        help="of timing, by the thread's clock, for each model",
    )
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for each model in all")
    parser.add_argument("--table", action="store_true", help="print what is in the file")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.table:
        _table(args.out)
    elif args.one:
        print(json.dumps(measure(args.names[0], args.seconds)))
    else:
        for name in args.names or CASES:
            with args.out.open("a") as file:
                file.write(_child(name, args.seconds, args.limit) + "\n")


def _child(name: str, seconds: float, limit: float) -> str:
    command = [sys.executable, __file__, "--one", name, "--seconds", str(seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return json.dumps({"model": name, "failed": f"not done in {limit:.0f} s"})
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return json.dumps({"model": name, "failed": last[:200]})
    return lines[-1]


if __name__ == "__main__":
    main()
