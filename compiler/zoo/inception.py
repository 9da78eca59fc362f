"""Inception-v3 (Szegedy et al. 2015) without its auxiliary classifier, as torchvision has it."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.program import Program
from .layers import Net, Size

_STEM = ((32, 3, 2, 0), (32, 3, 1, 0), (64, 3, 1, 1))
_STEM_NAMES = ("Conv2d_1a_3x3", "Conv2d_2a_3x3", "Conv2d_2b_3x3")


def _conv(
    net: Net, name: str, x: SSAValue, channels: int, kernel: Size, stride: int = 1, pad: Size = 0
) -> SSAValue:
    y = net.conv(f"{name}.conv", x, channels, kernel, stride, pad)
    return net.relu(net.batch_norm(f"{name}.bn", y, epsilon=1e-3))


def _pooled(net: Net, name: str, x: SSAValue, channels: int) -> SSAValue:
    return _conv(net, f"{name}.branch_pool", net.avg_pool(x, 3, 1, 1), channels, 1)


def _join(net: Net, *branches: SSAValue) -> SSAValue:
    return net.build.concat(*branches, axis=1)


def _a(net: Net, name: str, x: SSAValue, pool: int) -> SSAValue:
    """35x35: a 5x5 branch and two 3x3 in a row."""
    one = _conv(net, f"{name}.branch1x1", x, 64, 1)
    five = _conv(net, f"{name}.branch5x5_1", x, 48, 1)
    five = _conv(net, f"{name}.branch5x5_2", five, 64, 5, pad=2)
    three = _conv(net, f"{name}.branch3x3dbl_1", x, 64, 1)
    three = _conv(net, f"{name}.branch3x3dbl_2", three, 96, 3, pad=1)
    three = _conv(net, f"{name}.branch3x3dbl_3", three, 96, 3, pad=1)
    return _join(net, one, five, three, _pooled(net, name, x, pool))


def _b(net: Net, name: str, x: SSAValue) -> SSAValue:
    """35x35 to 17x17."""
    three = _conv(net, f"{name}.branch3x3", x, 384, 3, 2)
    double = _conv(net, f"{name}.branch3x3dbl_1", x, 64, 1)
    double = _conv(net, f"{name}.branch3x3dbl_2", double, 96, 3, pad=1)
    double = _conv(net, f"{name}.branch3x3dbl_3", double, 96, 3, 2)
    return _join(net, three, double, net.max_pool(x, 3, 2))


def _c(net: Net, name: str, x: SSAValue, width: int) -> SSAValue:
    """17x17: 7x7 as 1x7 and 7x1."""
    across: tuple[Size, Size] = (1, 7), (0, 3)
    down: tuple[Size, Size] = (7, 1), (3, 0)
    one = _conv(net, f"{name}.branch1x1", x, 192, 1)
    seven = _conv(net, f"{name}.branch7x7_1", x, width, 1)
    seven = _conv(net, f"{name}.branch7x7_2", seven, width, across[0], pad=across[1])
    seven = _conv(net, f"{name}.branch7x7_3", seven, 192, down[0], pad=down[1])
    double = _conv(net, f"{name}.branch7x7dbl_1", x, width, 1)
    for k, ((kernel, pad), channels) in enumerate(
        ((down, width), (across, width), (down, width), (across, 192)), start=2
    ):
        double = _conv(net, f"{name}.branch7x7dbl_{k}", double, channels, kernel, pad=pad)
    return _join(net, one, seven, double, _pooled(net, name, x, 192))


def _d(net: Net, name: str, x: SSAValue) -> SSAValue:
    """17x17 to 8x8."""
    three = _conv(net, f"{name}.branch3x3_1", x, 192, 1)
    three = _conv(net, f"{name}.branch3x3_2", three, 320, 3, 2)
    seven = _conv(net, f"{name}.branch7x7x3_1", x, 192, 1)
    seven = _conv(net, f"{name}.branch7x7x3_2", seven, 192, (1, 7), pad=(0, 3))
    seven = _conv(net, f"{name}.branch7x7x3_3", seven, 192, (7, 1), pad=(3, 0))
    seven = _conv(net, f"{name}.branch7x7x3_4", seven, 192, 3, 2)
    return _join(net, three, seven, net.max_pool(x, 3, 2))


def _e(net: Net, name: str, x: SSAValue) -> SSAValue:
    """8x8: 3x3 branches that fork into 1x3 and 3x1."""

    def fork(prefix: str, y: SSAValue) -> SSAValue:
        across = _conv(net, f"{prefix}a", y, 384, (1, 3), pad=(0, 1))
        down = _conv(net, f"{prefix}b", y, 384, (3, 1), pad=(1, 0))
        return _join(net, across, down)

    one = _conv(net, f"{name}.branch1x1", x, 320, 1)
    three = fork(f"{name}.branch3x3_2", _conv(net, f"{name}.branch3x3_1", x, 384, 1))
    double = _conv(net, f"{name}.branch3x3dbl_1", x, 448, 1)
    double = _conv(net, f"{name}.branch3x3dbl_2", double, 384, 3, pad=1)
    double = fork(f"{name}.branch3x3dbl_3", double)
    return _join(net, one, three, double, _pooled(net, name, x, 192))


def inception_v3(batch: int, seed: int, *, image: int = 299, classes: int = 1000) -> Program:
    """`image` is at least 75."""
    net = Net(seed)
    x = net.input("input", (batch, 3, image, image))
    for name, layer in zip(_STEM_NAMES, _STEM, strict=True):
        x = _conv(net, name, x, *layer)
    x = net.max_pool(x, 3, 2)
    x = _conv(net, "Conv2d_3b_1x1", x, 80, 1)
    x = net.max_pool(_conv(net, "Conv2d_4a_3x3", x, 192, 3), 3, 2)
    for letter, pool in (("b", 32), ("c", 64), ("d", 64)):
        x = _a(net, f"Mixed_5{letter}", x, pool)
    x = _b(net, "Mixed_6a", x)
    for letter, width in (("b", 128), ("c", 160), ("d", 160), ("e", 192)):
        x = _c(net, f"Mixed_6{letter}", x, width)
    x = _d(net, "Mixed_7a", x)
    x = _e(net, "Mixed_7c", _e(net, "Mixed_7b", x))
    return net.finish("zoo:inception-v3", logits=net.linear("fc", net.global_mean(x), classes))
