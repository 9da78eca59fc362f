"""VGG-19 (Simonyan and Zisserman 2014), without batch norm, as torchvision has it."""

from __future__ import annotations

from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR, RELU, Net

_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))


def vgg19(batch: int, seed: int, *, image: int = 224, classes: int = 1000) -> Program:
    """`image` is a multiple of 32; the classifier's first layer grows with it (7x7 at 224)."""
    net = Net(seed)
    x = net.input("input", (batch, 3, image, image))
    layer = 0
    for channels, depth in _STAGES:
        for _ in range(depth):
            x = net.relu(net.conv(f"features.{layer}", x, channels, 3, 1, 1, bias=True))
            layer += 2
        x = net.max_pool(x, 2, 2)
        layer += 1
    n, c, h, w = shape_of(x)
    x = net.build.reshape(x, shape=[n, c * h * w])
    x = net.relu(net.linear("classifier.0", x, 4096, RELU))
    x = net.relu(net.linear("classifier.3", x, 4096, RELU))
    return net.finish("zoo:vgg19", logits=net.linear("classifier.6", x, classes, LINEAR))
