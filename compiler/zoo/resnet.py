"""ResNet-18 and -50 (He et al. 2015), ResNeXt-50 32x4d (Xie et al. 2016), as torchvision has them.

The stride of a bottleneck stands on its 3x3 convolution ("v1.5").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR_GAIN, RELU_GAIN, Net

_BRANCH = 0.2
"""Variance gain of a branch's last convolution: the sum grows by a few per cent a block."""


@dataclass(frozen=True)
class _Block:
    """What one residual block is made of; `width` is that of its inner convolutions."""

    width: int
    stride: int
    out: int
    groups: int = 1


def _basic(net: Net, name: str, x: SSAValue, block: _Block) -> SSAValue:
    y = _conv_bn(net, f"{name}.conv1", f"{name}.bn1", x, block.width, 3, block.stride)
    return _conv_bn(net, f"{name}.conv2", f"{name}.bn2", net.relu(y), block.out, 3, gain=_BRANCH)


def _bottleneck(net: Net, name: str, x: SSAValue, block: _Block) -> SSAValue:
    y = net.relu(_conv_bn(net, f"{name}.conv1", f"{name}.bn1", x, block.width, 1))
    y = _conv_bn(net, f"{name}.conv2", f"{name}.bn2", y, block.width, 3, block.stride, block.groups)
    return _conv_bn(net, f"{name}.conv3", f"{name}.bn3", net.relu(y), block.out, 1, gain=_BRANCH)


def _conv_bn(
    net: Net,
    conv: str,
    norm: str,
    x: SSAValue,
    channels: int,
    kernel: int,
    stride: int = 1,
    groups: int = 1,
    gain: float = RELU_GAIN,
) -> SSAValue:
    y = net.conv(conv, x, channels, kernel, stride, kernel // 2, groups=groups, gain=gain)
    return net.batch_norm(norm, y)


def _residual(
    net: Net, name: str, x: SSAValue, block: _Block, branch: Callable[..., SSAValue]
) -> SSAValue:
    y = branch(net, name, x, block)
    if block.stride != 1 or shape_of(x)[1] != block.out:
        down = f"{name}.downsample"
        x = _conv_bn(net, f"{down}.0", f"{down}.1", x, block.out, 1, block.stride, gain=LINEAR_GAIN)
    return net.relu(net.build.add(y, x))


def _resnet(
    source: str,
    net: Net,
    shape: tuple[int, int],
    branch: Callable[..., SSAValue],
    stages: Sequence[Sequence[_Block]],
    classes: int,
) -> Program:
    batch, image = shape
    x = net.input("input", (batch, 3, image, image))
    x = _features(net, x, branch, stages)[-1]
    return net.finish(source, logits=net.linear("fc", net.global_mean(x), classes))


def _features(
    net: Net, x: SSAValue, branch: Callable[..., SSAValue], stages: Sequence[Sequence[_Block]]
) -> list[SSAValue]:
    """What each stage gives."""
    x = net.relu(net.batch_norm("bn1", net.conv("conv1", x, 64, 7, 2, 3)))
    x, found = net.max_pool(x, 3, 2, 1), list[SSAValue]()
    for s, blocks in enumerate(stages):
        for b, block in enumerate(blocks):
            x = _residual(net, f"layer{s + 1}.{b}", x, block, branch)
        found.append(x)
    return found


def _stages(depths: Sequence[int], expansion: int, width: int, groups: int) -> list[list[_Block]]:
    """Stage s has 2^s times the width; all stages but the first begin with stride 2."""
    return [
        [
            _Block(width << s, 2 if s > 0 and b == 0 else 1, (64 << s) * expansion, groups)
            for b in range(depth)
        ]
        for s, depth in enumerate(depths)
    ]


def bottleneck_stages(net: Net, x: SSAValue, count: int) -> list[SSAValue]:
    """Outputs of the first `count` stages of ResNet-50 on an image."""
    return _features(net, x, _bottleneck, _stages([3, 4, 6, 3][:count], 4, 64, 1))


def resnet18(batch: int, seed: int, *, image: int = 224, classes: int = 1000) -> Program:
    """Build ResNet-18: two basic blocks in each of four stages."""
    stages = _stages([2, 2, 2, 2], 1, 64, 1)
    return _resnet("zoo:resnet18", Net(seed), (batch, image), _basic, stages, classes)


def resnet50(batch: int, seed: int, *, image: int = 224, classes: int = 1000) -> Program:
    """Build ResNet-50: 3, 4, 6 and 3 bottlenecks of width 64 and more."""
    stages = _stages([3, 4, 6, 3], 4, 64, 1)
    return _resnet("zoo:resnet50", Net(seed), (batch, image), _bottleneck, stages, classes)


def resnext50(batch: int, seed: int, *, image: int = 224, classes: int = 1000) -> Program:
    """32 groups of 4 channels each: width 128 in the first stage."""
    stages = _stages([3, 4, 6, 3], 4, 128, 32)
    return _resnet("zoo:resnext50", Net(seed), (batch, image), _bottleneck, stages, classes)
