"""A small network that optimize folds, and how tests of trust ask for it."""

from collections.abc import Callable

import numpy as np

from isoform.dialects.builder import GraphBuilder
from isoform.dialects.program import Program

Outcome = tuple[int, str, str]
Command = Callable[..., Outcome]

# Modelled costs: nothing is measured, and the result is the same on every machine.
MODELLED = ("--target", "h100", "--budget", "600")


def network(scale: float = 1.0) -> Program:
    """conv, batch norm, relu, matmul: what optimize folds."""
    rng = np.random.default_rng(3)

    def data(*shape: int) -> np.ndarray:
        return rng.uniform(0.5, 1.5, shape).astype(np.float32)

    b = GraphBuilder()
    x = b.input("x", (1, 2, 4, 4))
    with b.at("layer1"):
        w = b.weight("w", data(3, 2, 3, 3) * np.float32(scale))
        y = b.conv(x, w, strides=[1, 1], pads=[1, 1, 1, 1], dilations=[1, 1])
        norm = [b.weight(name, data(3)) for name in ("scale", "bias", "mean", "var")]
        y = b.relu(b.batch_norm(y, *norm, epsilon=1e-5))
    with b.at("head"):
        flat = b.reshape(y, shape=[1, 48])
        b.output("scores", b.matmul(flat, b.neg(b.weight("head", data(48, 5)))))
    return b.build("network")
