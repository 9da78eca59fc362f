"""The DCGAN generator for 64x64 images (Radford et al. 2015), as PyTorch's tutorial has it."""

from __future__ import annotations

from ...dialects.program import Program
from .layers import Net

_CHANNELS = (512, 256, 128, 64)


def dcgan(batch: int, seed: int, *, latent: int = 100, channels: int = 3) -> Program:
    """Build the generator: [batch, latent, 1, 1] -> images in (-1, 1)."""
    net = Net(seed)
    x = net.input("latent", (batch, latent, 1, 1))
    for k, width in enumerate(_CHANNELS):
        stride, pad = (1, 0) if k == 0 else (2, 1)
        x = net.conv_transpose(f"main.{3 * k}", x, width, 4, stride, pad)
        x = net.relu(net.batch_norm(f"main.{3 * k + 1}", x))
    x = net.conv_transpose(f"main.{3 * len(_CHANNELS)}", x, channels, 4, 2, 1)
    return net.finish("zoo:dcgan", image=net.build.tanh(x))
