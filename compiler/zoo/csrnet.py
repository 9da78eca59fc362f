"""CSRNet, crowd counting (Li et al. 2018): ten of VGG-16's convolutions, then six dilated ones.

PET and EinNet measure the dilated part alone, without biases, on [n, 512, 14, 14]: what a 112x112
image gives there. Both are here; `csrnet_backend` is theirs.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.program import Program
from .layers import Net

_POOL = 0
_FRONT = (64, 64, _POOL, 128, 128, _POOL, 256, 256, 256, _POOL, 512, 512, 512)
_BACK = (512, 512, 512, 256, 128, 64)


def _backend(net: Net, x: SSAValue, bias: bool) -> SSAValue:
    for k, channels in enumerate(_BACK):
        x = net.relu(net.conv(f"backend.{2 * k}", x, channels, 3, 1, 2, dilation=2, bias=bias))
    return x


def csrnet(batch: int, seed: int, *, image: int = 112) -> Program:
    """Build CSRNet: [batch, 3, image, image] -> a density map of an eighth of the size."""
    net = Net(seed)
    x = net.input("input", (batch, 3, image, image))
    layer = 0
    for channels in _FRONT:
        if channels == _POOL:
            x = net.max_pool(x, 2, 2)
            layer += 1
        else:
            x = net.relu(net.conv(f"frontend.{layer}", x, channels, 3, 1, 1, bias=True))
            layer += 2
    density = net.conv("output_layer", _backend(net, x, True), 1, 1, bias=True)
    return net.finish("zoo:csrnet", density=density)


def csrnet_backend(batch: int, seed: int, *, size: int = 14) -> Program:
    """Build the six dilated convolutions: [batch, 512, size, size] -> [batch, 64, size, size]."""
    net = Net(seed)
    x = net.input("input", (batch, _BACK[0], size, size))
    return net.finish("zoo:csrnet-backend", features=_backend(net, x, False))
