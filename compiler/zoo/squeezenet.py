"""SqueezeNet 1.1 (Iandola et al. 2016), as torchvision has it."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.program import Program
from .layers import Net

_POOL = (0, 0)
# (squeeze, expand) channels of each fire module, numbered as torchvision's `features`.
_FEATURES = (
    (16, 64),
    (16, 64),
    _POOL,
    (32, 128),
    (32, 128),
    _POOL,
    (48, 192),
    (48, 192),
    (64, 256),
    (64, 256),
)


def _fire(net: Net, name: str, x: SSAValue, squeeze: int, expand: int) -> SSAValue:
    x = net.relu(net.conv(f"{name}.squeeze", x, squeeze, 1, bias=True))
    narrow = net.relu(net.conv(f"{name}.expand1x1", x, expand, 1, bias=True))
    wide = net.relu(net.conv(f"{name}.expand3x3", x, expand, 3, 1, 1, bias=True))
    return net.build.concat(narrow, wide, axis=1)


def squeezenet(batch: int, seed: int, *, image: int = 224, classes: int = 1000) -> Program:
    """Build SqueezeNet 1.1; `image` is at least 17."""
    net = Net(seed)
    x = net.input("input", (batch, 3, image, image))
    x = net.relu(net.conv("features.0", x, 64, 3, 2, bias=True))
    x = net.max_pool(x, 3, 2, ceil_mode=True)
    for layer, (squeeze, expand) in enumerate(_FEATURES, start=3):
        if squeeze:
            x = _fire(net, f"features.{layer}", x, squeeze, expand)
        else:
            x = net.max_pool(x, 3, 2, ceil_mode=True)
    x = net.relu(net.conv("classifier.1", x, classes, 1, bias=True))
    return net.finish("zoo:squeezenet", logits=net.global_mean(x))
