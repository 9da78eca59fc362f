"""The InfoGAN generator for 32x32 images (Chen et al. 2016), with EinNet's sizes.

The layers are those of Natsu6767/InfoGAN-PyTorch (CelebA, SVHN): batch norm after the first two.
EinNet's artifact builds the same convolutions without the norms, which fold into their weights.
"""

from __future__ import annotations

from ...dialects.program import Program
from .layers import LINEAR_GAIN, Net

_CHANNELS = (256, 128, 64)


def infogan(batch: int, seed: int, *, latent: int = 228, channels: int = 3) -> Program:
    """Build the generator: [batch, latent, 1, 1] -> images in (-1, 1)."""
    net = Net(seed)
    x = net.input("latent", (batch, latent, 1, 1))
    x = net.conv_transpose("tconv1", x, 448, 2, 1, 0)
    x = net.relu(net.batch_norm("bn1", x))
    for k, width in enumerate(_CHANNELS, start=2):
        x = net.conv_transpose(f"tconv{k}", x, width, 4, 2, 1)
        x = net.relu(net.batch_norm("bn2", x) if k == 2 else x)
    x = net.conv_transpose("tconv5", x, channels, 4, 2, 1, gain=LINEAR_GAIN)
    return net.finish("zoo:infogan", image=net.build.tanh(x))
