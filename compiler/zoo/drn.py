"""DRN-D-22 (Yu, Koltun and Funkhouser, "Dilated Residual Networks", CVPR 2017).

A residual network whose last stages keep 28x28 pixels of a 224x224 image: in place of strides their
3x3 convolutions are dilated by 2 and 4, and two convolutions without a residual (dilated by 2, then
not) take out the grid that this leaves. As the authors' code has it; none of the five papers
measures it.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR_GAIN, RELU_GAIN, Net

_BRANCH = 0.2
"""Variance gain of a block's second convolution: the sum grows by a few per cent a block."""
# Of each residual stage: width, stride of its first convolution, dilation.
_STAGES = ((64, 2, 1), (128, 2, 1), (256, 1, 2), (512, 1, 4))
_BLOCKS = 2


def _conv(
    net: Net,
    name: str,
    x: SSAValue,
    width: int,
    stride: int,
    dilation: int,
    gain: float = RELU_GAIN,
) -> SSAValue:
    """A 3x3 convolution that keeps the size, but for its stride, and batch norm."""
    y = net.conv(f"{name}.conv", x, width, 3, stride, dilation, dilation=dilation, gain=gain)
    return net.batch_norm(f"{name}.bn", y)


def _block(net: Net, name: str, x: SSAValue, width: int, stride: int, dilation: int) -> SSAValue:
    y = net.relu(_conv(net, f"{name}.1", x, width, stride, dilation))
    y = _conv(net, f"{name}.2", y, width, 1, dilation, _BRANCH)
    if shape_of(x)[1] != width:
        x = net.conv(f"{name}.downsample.0", x, width, 1, stride, gain=LINEAR_GAIN)
        x = net.batch_norm(f"{name}.downsample.1", x)
    return net.relu(net.build.add(y, x))


def drn_d_22(batch: int, seed: int, *, image: int = 224, classes: int = 1000) -> Program:
    """Build DRN-D-22: [batch, 3, image, image] -> [batch, classes]."""
    net = Net(seed)
    x = net.conv("layer0", net.input("input", (batch, 3, image, image)), 16, 7, 1, 3)
    x = net.relu(net.batch_norm("layer0.bn", x))
    for level, (width, stride) in enumerate(((16, 1), (32, 2)), start=1):
        x = net.relu(_conv(net, f"layer{level}", x, width, stride, 1))
    for level, (width, stride, dilation) in enumerate(_STAGES, start=3):
        for block in range(_BLOCKS):
            step = stride if block == 0 else 1
            x = _block(net, f"layer{level}.{block}", x, width, step, dilation)
    for level, dilation in ((7, 2), (8, 1)):
        x = net.relu(_conv(net, f"layer{level}", x, 512, 1, dilation))
    return net.finish("zoo:drn-d-22", logits=net.linear("fc", net.global_mean(x), classes))
