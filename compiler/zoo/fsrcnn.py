"""FSRCNN(56, 12, 4), super-resolution of one channel (Dong et al. 2016).

EinNet measures it on 32x32 images, four times enlarged: stride 4, pads 3, output padding 1.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects.errors import UserError
from ...dialects.program import Program
from .layers import LINEAR_GAIN, Net

_DEEP, _NARROW, _MAPPINGS, _KERNEL = 56, 12, 4, 9


def _layer(net: Net, name: str, x: SSAValue, channels: int, kernel: int) -> SSAValue:
    y = net.conv(f"{name}.0", x, channels, kernel, pad=kernel // 2, bias=True)
    return net.prelu(f"{name}.1", y)


def fsrcnn(batch: int, seed: int, *, image: int = 32, scale: int = 4) -> Program:
    """Build FSRCNN: [batch, 1, image, image] -> [batch, 1, scale * image, scale * image]."""
    if scale > _KERNEL:
        raise UserError(f"fsrcnn: 'scale' is at most {_KERNEL}", found=scale)
    net = Net(seed)
    x = net.input("input", (batch, 1, image, image))
    x = _layer(net, "first_part", x, _DEEP, 5)
    x = _layer(net, "shrink", x, _NARROW, 1)
    for k in range(_MAPPINGS):
        x = _layer(net, f"mapping.{k}", x, _NARROW, 3)
    x = _layer(net, "expand", x, _DEEP, 1)
    pad = (_KERNEL - scale + 1) // 2
    extra = 2 * pad + scale - _KERNEL
    x = net.conv_transpose(
        "last_part", x, 1, _KERNEL, scale, pad, output_padding=extra, bias=True, gain=LINEAR_GAIN
    )
    return net.finish("zoo:fsrcnn", image=x)
