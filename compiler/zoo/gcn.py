"""GCN, semantic segmentation with large separable kernels (Peng et al. 2017), as EinNet runs it.

ResNet-50's first two stages, then bottlenecks of two 1xK/Kx1 pairs (the paper's ResNet50-GCN); each
stage's output goes through a pair of K = 11 to the classes, a boundary refinement, and up. Where
the artifact's default enlarges by interpolation, this takes its other option, the transposed
convolutions of the paper's figure 2. Blocks 1 to 5 of a stage share one set of weights, as there.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR_GAIN, RELU_GAIN, Net, Size
from .resnet import bottleneck_stages

_REPEATS = 5
_DAMPED = 0.02
"""Variance gain where a branch joins: sums grow by a few per cent."""


def _pair(net: Net, name: str, x: SSAValue, channels: int, k: int, norm: bool) -> SSAValue:
    """Kx1 then 1xK, plus 1xK then Kx1; in the backbone each with batch norm and relu."""
    down: tuple[Size, Size] = (k, 1), (k // 2, 0)
    across: tuple[Size, Size] = (1, k), (0, k // 2)

    def step(part: str, y: SSAValue, window: tuple[Size, Size]) -> SSAValue:
        gain = RELU_GAIN if norm else LINEAR_GAIN / 2
        y = net.conv(
            f"{name}.conv{part}", y, channels, window[0], 1, window[1], bias=not norm, gain=gain
        )
        return net.relu(net.batch_norm(f"{name}.bn{part}", y)) if norm else y

    left = step("12", step("11", x, down), across)
    right = step("22", step("21", x, across), down)
    return net.build.add(left, right)


def _bottleneck(
    net: Net, name: str, x: SSAValue, channels: int, inner: int, k: int, stride: int
) -> SSAValue:
    y = _pair(net, f"{name}.gcn", x, inner, k, norm=True)
    y = net.conv(f"{name}.conv1x1", y, channels, 1, stride, gain=_DAMPED)
    y = net.batch_norm(f"{name}.bn1x1", y)
    if stride != 1 or shape_of(x)[1] != channels:
        x = net.conv(f"{name}.downsample.0", x, channels, 1, stride, bias=True, gain=LINEAR_GAIN)
        x = net.batch_norm(f"{name}.downsample.1", x)
    return net.build.add(y, x)


def _stage(net: Net, name: str, x: SSAValue, channels: int, inner: int, k: int) -> SSAValue:
    x = _bottleneck(net, f"{name}.0", x, channels, inner, k, 2)
    for _ in range(_REPEATS):
        x = _bottleneck(net, f"{name}.1", x, channels, inner, k, 1)
    return x


def _refine(net: Net, name: str, x: SSAValue) -> SSAValue:
    classes = shape_of(x)[1]
    y = net.relu(net.conv(f"{name}.conv1", x, classes, 3, 1, 1, bias=True))
    y = net.conv(f"{name}.conv2", y, classes, 3, 1, 1, bias=True, gain=_DAMPED)
    return net.build.add(y, x)


def _enlarge(net: Net, name: str, x: SSAValue) -> SSAValue:
    return net.conv_transpose(name, x, shape_of(x)[1], 3, 2, 1, output_padding=1, gain=LINEAR_GAIN)


def gcn(batch: int, seed: int, *, image: int = 224, classes: int = 21) -> Program:
    """Build GCN; `image` is a multiple of 32."""
    net = Net(seed)
    x = net.input("input", (batch, 3, image, image))
    first, second = bottleneck_stages(net, x, 2)
    third = _stage(net, "layer3", second, 1024, 85, 5)
    fourth = _stage(net, "layer4", third, 2048, 128, 7)
    scores = [
        _refine(net, f"br{k}", _pair(net, f"gcn{k}", stage, classes, 11, norm=False))
        for k, stage in enumerate((first, second, third, fourth), start=1)
    ]
    y = _enlarge(net, "decon4", scores[3])
    for k, score in zip((3, 2, 1), reversed(scores[:3]), strict=True):
        joined = _refine(net, f"br{8 - k}", net.build.add(score, y))
        y = _enlarge(net, f"decon{k}", joined)
    y = _enlarge(net, "decon5", _refine(net, "br8", y))
    y = net.conv("final_conv", _refine(net, "br9", y), classes, 1, bias=True, gain=LINEAR_GAIN)
    return net.finish("zoo:gcn", scores=y)
