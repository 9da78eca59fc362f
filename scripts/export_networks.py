"""Small networks of our own for export_models.py: what users write by hand, in torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

Made = tuple[nn.Module, dict[str, Tensor]]


class First(nn.Module):
    """The first result of a network of transformers, by the names of its inputs."""

    def __init__(self, inner: nn.Module, names: Sequence[str], **fixed: Any):
        super().__init__()
        self.inner, self.names, self.fixed = inner, names, fixed

    def forward(self, *given: Tensor) -> Tensor:
        named = dict(zip(self.names, given, strict=True))
        return self.inner(**named, **self.fixed, return_dict=True)[0]


def conv(i: int, o: int, k: int = 3, s: int = 1) -> nn.Sequential:
    """A convolution with its norm and SiLU."""
    return nn.Sequential(nn.Conv2d(i, o, k, s, k // 2, bias=False), nn.BatchNorm2d(o), nn.SiLU())


class Bottleneck(nn.Module):
    """YOLO's block: half of the channels go through convolutions, all are joined."""

    def __init__(self, width: int):
        super().__init__()
        self.first, self.last = conv(width, width, 1), conv(width + width // 2, width, 1)
        self.inner = nn.Sequential(conv(width // 2, width // 2), conv(width // 2, width // 2))

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.first(x).chunk(2, 1)
        return self.last(torch.cat([a, b, b + self.inner(b)], 1))


class Yolo(nn.Module):
    """A YOLO of two scales, with its boxes decoded and the best kept by torchvision's nms."""

    def __init__(self, classes: int = 20):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 16, 3, 2), conv(16, 32, 3, 2), Bottleneck(32))
        self.fine = nn.Sequential(conv(32, 64, 3, 2), Bottleneck(64))
        self.coarse = nn.Sequential(conv(64, 128, 3, 2), Bottleneck(128))
        self.joined = Bottleneck(192)
        self.heads = nn.ModuleList(nn.Conv2d(w, 4 + classes, 1) for w in (192, 128))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        from torchvision.ops import nms

        fine = self.fine(self.stem(image))
        coarse = self.coarse(fine)
        up = functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
        maps = [self.joined(torch.cat([up, fine], 1)), coarse]
        boxes, scores = zip(*map(self.decoded, self.heads, maps, (8, 16)), strict=True)
        box, score = torch.cat(boxes), torch.cat(scores)
        best, label = score.max(1)
        likely = best > 0.5
        box, best, label = box[likely], best[likely], label[likely]
        kept = nms(box + label[:, None] * 4096.0, best, 0.45)[:100]
        return box[kept], best[kept], label[kept]

    def decoded(self, head: nn.Module, x: Tensor, stride: int) -> tuple[Tensor, Tensor]:
        found = head(x)[0].flatten(1).T
        h, w = x.shape[-2:]
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        middle = (torch.stack([xs, ys], -1).reshape(-1, 2) + found[:, :2].sigmoid()) * stride
        half = found[:, 2:4].exp() * stride
        return torch.cat([middle - half, middle + half], 1), found[:, 4:].sigmoid()


class Tagger(nn.Module):
    """Tags of words by a bidirectional LSTM, over packed sentences of given lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(1000, 64)
        self.lstm = nn.LSTM(64, 128, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(256, 17)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        x = self.words(ids)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
        found, _ = nn.utils.rnn.pad_packed_sequence(
            self.lstm(packed)[0], True, total_length=ids.shape[1]
        )
        return self.tags(found).log_softmax(-1)


class Speech(nn.Module):
    """Letters of a spectrogram: strided convolutions and a bidirectional GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, 32, 3, 2, 1), nn.Hardtanh(0, 20), nn.Conv2d(32, 32, 3, 2, 1), nn.ReLU()
        )
        self.gru = nn.GRU(640, 128, 2, batch_first=True, bidirectional=True)
        self.letters = nn.Linear(256, 29)

    def forward(self, sound: Tensor) -> Tensor:
        x = self.convs(sound[:, None]).permute(0, 3, 1, 2).flatten(2)
        return self.letters(self.gru(x)[0]).log_softmax(-1)


class Decoder(nn.Module):
    """A loop as in Tacotron: frame by frame, with attention to what is read, to a limit or stop."""

    def __init__(self, width: int = 64):
        super().__init__()
        self.before, self.cell = nn.Linear(80, width), nn.LSTMCell(2 * width, width)
        self.query, self.frame = nn.Linear(width, width), nn.Linear(2 * width, 80)
        self.stop = nn.Linear(2 * width, 1)

    def forward(self, memory: Tensor, steps: int) -> Tensor:
        h = torch.zeros(memory.shape[0], memory.shape[2])
        c, context, frame = h, h, torch.zeros(memory.shape[0], 80)
        found = torch.zeros(memory.shape[0], 0, 80)
        k, going = 0, True
        while going and k < steps:
            x = torch.cat([torch.relu(self.before(frame)), context], 1)
            h, c = self.cell(x, (h, c))
            weight = torch.bmm(memory, self.query(h)[:, :, None]).softmax(1)
            context = (memory * weight).sum(1)
            both = torch.cat([h, context], 1)
            frame = self.frame(both)
            found = torch.cat([found, frame[:, None]], 1)
            going = bool((torch.sigmoid(self.stop(both)) < 0.99).all())
            k += 1
        return found


class Voice(nn.Module):
    """Frames for letters: an embedding, a convolution, and the decoder's loop, kept as one."""

    def __init__(self) -> None:
        super().__init__()
        self.letters, self.conv = nn.Embedding(40, 64), nn.Conv1d(64, 64, 5, padding=2)
        self.decoder = Decoder()

    def forward(self, ids: Tensor) -> Tensor:
        memory = torch.relu(self.conv(self.letters(ids).transpose(1, 2))).transpose(1, 2)
        return self.decoder(memory, 32)


class Experts(nn.Module):
    """Each token goes through the two experts that a router chooses, gathered and added back."""

    def __init__(self, width: int = 128, experts: int = 8):
        super().__init__()
        self.router = nn.Linear(width, experts)
        make = lambda: nn.Sequential(  # noqa: E731
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.experts = nn.ModuleList(make() for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        found = torch.zeros_like(x)
        for k, expert in enumerate(self.experts):
            token, place = torch.where(chosen == k)
            part = expert(x[token]) * weights[token, place][:, None]
            found = found.index_add(0, token, part)
        return found


class Clicks(nn.Module):
    """DLRM: bags of categories beside numbers, and all products of pairs."""

    def __init__(self, bags: int = 8, width: int = 32):
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(1000, width, mode="sum") for _ in range(bags))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = bags * (bags + 1) // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, numbers: Tensor, ids: Tensor, offsets: Tensor) -> Tensor:
        dense = self.bottom(numbers)
        bags = [bag(ids[k], offsets[k]) for k, bag in enumerate(self.bags)]
        x = torch.stack([dense, *bags], 1)
        row, column = zip(*((i, j) for i in range(x.shape[1]) for j in range(i)), strict=True)
        pairs = torch.bmm(x, x.transpose(1, 2))[:, torch.tensor(row), torch.tensor(column)]
        return torch.sigmoid(self.top(torch.cat([dense, pairs], 1)))


def clicks() -> Made:
    """Sixteen rows of four categories in each bag."""
    offsets = torch.arange(0, 64, 4).repeat(8, 1)
    ids = torch.randint(0, 1000, (8, 64))
    return Clicks(), {"numbers": torch.randn(16, 13), "ids": ids, "offsets": offsets}


def tagger() -> Made:
    """Four sentences."""
    lengths = torch.tensor([32, 20, 25, 7])
    return Tagger(), {"ids": torch.randint(0, 1000, (4, 32)), "lengths": lengths}


NETWORKS: dict[str, Callable[[], Made]] = {
    "lstm-tagger": tagger,
    "gru-speech": lambda: (Speech(), {"sound": torch.randn(1, 80, 400)}),
    "tacotron": lambda: (torch.jit.script(Voice()), {"ids": torch.randint(0, 40, (1, 24))}),
    "experts": lambda: (Experts(), {"tokens": torch.randn(64, 128)}),
    "dlrm": clicks,
}
