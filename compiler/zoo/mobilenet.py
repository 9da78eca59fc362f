"""MobileNetV2 (Sandler et al. 2018), width 1.0, as torchvision has it."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR_GAIN, RELU_GAIN, Net

# Expansion, channels, blocks, stride of the first block.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def _conv_bn_relu6(
    net: Net, name: str, x: SSAValue, channels: int, kernel: int, stride: int = 1, groups: int = 1
) -> SSAValue:
    y = net.conv(
        f"{name}.0", x, channels, kernel, stride, kernel // 2, groups=groups, gain=RELU_GAIN
    )
    return net.build.clip(net.batch_norm(f"{name}.1", y), min=0.0, max=6.0)


def _inverted_residual(
    net: Net, name: str, x: SSAValue, expansion: int, channels: int, stride: int
) -> SSAValue:
    inputs = shape_of(x)[1]
    hidden, y, part = inputs * expansion, x, 0
    if expansion != 1:
        y = _conv_bn_relu6(net, f"{name}.conv.{part}", y, hidden, 1)
        part += 1
    y = _conv_bn_relu6(net, f"{name}.conv.{part}", y, hidden, 3, stride, groups=hidden)
    y = net.conv(f"{name}.conv.{part + 1}", y, channels, 1, gain=LINEAR_GAIN)
    y = net.batch_norm(f"{name}.conv.{part + 2}", y)
    return net.build.add(x, y) if stride == 1 and inputs == channels else y


def mobilenet_v2(batch: int, seed: int, *, image: int = 224, classes: int = 1000) -> Program:
    """Build MobileNetV2; `image` is at least 32."""
    net = Net(seed)
    x = net.input("input", (batch, 3, image, image))
    x = _conv_bn_relu6(net, "features.0", x, 32, 3, 2)
    layer = 1
    for expansion, channels, blocks, stride in _STAGES:
        for b in range(blocks):
            name = f"features.{layer}"
            x = _inverted_residual(net, name, x, expansion, channels, stride if b == 0 else 1)
            layer += 1
    x = _conv_bn_relu6(net, f"features.{layer}", x, 1280, 1)
    logits = net.linear("classifier.1", net.global_mean(x), classes)
    return net.finish("zoo:mobilenet-v2", logits=logits)
