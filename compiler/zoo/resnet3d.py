"""ResNet3D-18 for video (Tran et al. 2018, "R3D-18"), as torchvision's `r3d_18` has it."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR_GAIN, RELU_GAIN, Net

_BRANCH = 0.2
"""Variance gain of a branch's last convolution: the sum grows by a few per cent a block."""


def _conv_norm(
    net: Net, name: str, x: SSAValue, channels: int, stride: int, gain: float
) -> SSAValue:
    return net.batch_norm(f"{name}.1", net.conv(f"{name}.0", x, channels, 3, stride, 1, gain=gain))


def _block(net: Net, name: str, x: SSAValue, channels: int, stride: int) -> SSAValue:
    y = net.relu(_conv_norm(net, f"{name}.conv1", x, channels, stride, RELU_GAIN))
    y = _conv_norm(net, f"{name}.conv2", y, channels, 1, _BRANCH)
    if stride != 1 or shape_of(x)[1] != channels:
        x = net.conv(f"{name}.downsample.0", x, channels, 1, stride, gain=LINEAR_GAIN)
        x = net.batch_norm(f"{name}.downsample.1", x)
    return net.relu(net.build.add(y, x))


def resnet3d18(
    batch: int, seed: int, *, frames: int = 16, image: int = 112, classes: int = 400
) -> Program:
    """Build R3D-18: [batch, 3, frames, image, image] -> [batch, classes]."""
    net = Net(seed)
    x = net.input("input", (batch, 3, frames, image, image))
    x = net.conv("stem.0", x, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3))
    x = net.relu(net.batch_norm("stem.1", x))
    for stage in range(4):
        for k in range(2):
            stride = 2 if stage > 0 and k == 0 else 1
            x = _block(net, f"layer{stage + 1}.{k}", x, 64 << stage, stride)
    logits = net.linear("fc", net.global_mean(x), classes)
    return net.finish("zoo:resnet3d18", logits=logits)
