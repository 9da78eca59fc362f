"""VGG-19 (Simonyan and Zisserman 2014), without batch norm, as torchvision has it."""

from __future__ import annotations

from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR_GAIN, RELU_GAIN, Net

_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))


def vgg19(batch: int, seed: int, *, image: int = 224, classes: int = 1000) -> Program:
    """`image`: height and width, a multiple of 32; the first linear layer grows with both."""
    net = Net(seed)
    x = net.input("input", (batch, 3, image, image))
    layer = 0
    for channels, depth in _STAGES:
        for _ in range(depth):
            x = net.relu(
                net.conv(f"features.{layer}", x, channels, kernel=3, stride=1, pad=1, bias=True)
            )
            layer += 2
        x = net.max_pool(x, 2, 2)
        layer += 1
    n, c, h, w = shape_of(x)
    x = net.build.reshape(x, shape=[n, c * h * w])
    x = net.relu(net.linear("classifier.0", x, 4096, gain=RELU_GAIN))
    x = net.relu(net.linear("classifier.3", x, 4096, gain=RELU_GAIN))
    return net.finish("zoo:vgg19", logits=net.linear("classifier.6", x, classes, gain=LINEAR_GAIN))
