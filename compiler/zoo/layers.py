"""The layers that the zoo's models are written with, and their seeded weights.

Weights are drawn when first read, each from its own generator seeded by (seed, name): a model is
built at once, and a weight does not change when layers around it do. Scales are He's, so that
magnitudes stay near 1 through the depth; batch-norm statistics are near (0, 1) but not trivial.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias
from zlib import crc32

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from ...dialects.builder import GraphBuilder
from ...dialects.program import Program
from ...dialects.types import Array, shape_of

Size: TypeAlias = "int | tuple[int, ...]"
Draw: TypeAlias = "Callable[[np.random.Generator, Sequence[int]], Array]"

RELU_GAIN = 2.0
"""Variance gain before a relu (He); 1.0 before anything else (LeCun)."""
LINEAR_GAIN = 1.0


def normal(mean: float, deviation: float) -> Draw:
    """Draw from a normal distribution."""
    return lambda rng, shape: mean + deviation * rng.standard_normal(shape, np.float32)


def uniform(low: float, high: float) -> Draw:
    """Draw uniformly from [low, high)."""
    return lambda rng, shape: low + (high - low) * rng.random(shape, np.float32)


def pair(value: Size) -> list[int]:
    """Height and width, from both or from one number for both."""
    return spread(value, 2)


def spread(value: Size, rank: int) -> list[int]:
    """One number per spatial dim, from all of them or from one for all."""
    return [value] * rank if isinstance(value, int) else list(value)


class Net:
    """One model under construction; a layer's name is the prefix of its weights' names."""

    def __init__(self, seed: int) -> None:
        self.build = GraphBuilder()
        self.seed = seed

    def input(self, name: str, shape: Sequence[int], element: Attribute = f32) -> SSAValue:
        return self.build.input(name, shape, element)

    def finish(self, source: str, **outputs: SSAValue) -> Program:
        for name, value in outputs.items():
            self.build.output(name, value)
        return self.build.build(source)

    def weight(self, name: str, shape: Sequence[int], draw: Draw) -> SSAValue:
        thunk = partial(draw_weight, self.seed, name, tuple(shape), draw)
        return self.build.weight(name, thunk, shape, f32)

    def scalar(self, value: float, like: SSAValue) -> SSAValue:
        """A literal, broadcast to the shape of `like`."""
        return self.build.expand(self.build.constant(np.float32(value)), shape_of(like))

    # --- convolution and its company ---

    def conv(
        self,
        name: str,
        x: SSAValue,
        channels: int,
        kernel: Size,
        stride: Size = 1,
        pad: Size = 0,
        *,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = False,
        gain: float = RELU_GAIN,
    ) -> SSAValue:
        rank = len(shape_of(x)) - 2
        per_group = shape_of(x)[1] // groups
        shape = [channels, per_group, *spread(kernel, rank)]
        deviation = math.sqrt(gain / math.prod(shape[1:]))
        operands = [x, self.weight(f"{name}.weight", shape, normal(0, deviation))]
        if bias:
            operands.append(self.weight(f"{name}.bias", [channels], normal(0, 0.1)))
        with self.build.at(name):
            return self.build.conv(
                *operands,
                strides=spread(stride, rank),
                pads=spread(pad, rank) * 2,
                dilations=spread(dilation, rank),
                groups=groups,
            )

    def conv_transpose(
        self,
        name: str,
        x: SSAValue,
        channels: int,
        kernel: int,
        stride: int,
        pad: int,
        *,
        output_padding: int = 0,
        bias: bool = False,
        gain: float = RELU_GAIN,
    ) -> SSAValue:
        """Each output meets (kernel / stride)^2 taps of every input channel."""
        inputs = shape_of(x)[1]
        taps = inputs * (kernel / stride) ** 2 if shape_of(x)[2] > 1 else inputs
        draw = normal(0, math.sqrt(gain / taps))
        operands = [x, self.weight(f"{name}.weight", [inputs, channels, kernel, kernel], draw)]
        if bias:
            operands.append(self.weight(f"{name}.bias", [channels], normal(0, 0.1)))
        with self.build.at(name):
            return self.build.conv_transpose(
                *operands,
                strides=pair(stride),
                pads=pair(pad) * 2,
                dilations=[1, 1],
                output_padding=pair(output_padding),
            )

    def batch_norm(self, name: str, x: SSAValue, epsilon: float = 1e-5) -> SSAValue:
        count = [shape_of(x)[1]]
        statistics = (
            self.weight(f"{name}.weight", count, normal(1, 0.1)),
            self.weight(f"{name}.bias", count, normal(0, 0.1)),
            self.weight(f"{name}.running_mean", count, normal(0, 0.1)),
            self.weight(f"{name}.running_var", count, uniform(0.5, 1.5)),
        )
        with self.build.at(name):
            return self.build.batch_norm(x, *statistics, epsilon=epsilon)

    def relu(self, x: SSAValue) -> SSAValue:
        return self.build.relu(x)

    def prelu(self, name: str, x: SSAValue) -> SSAValue:
        """x where positive, a slope per channel times x elsewhere, as the importer reads PRelu."""
        channels = shape_of(x)[1]
        slope = self.weight(f"{name}.weight", [channels], normal(0.25, 0.05))
        b = self.build
        with b.at(name):
            slope = b.broadcast(slope, shape=list(shape_of(x)), dims=[1])
            negative = b.less(x, self.scalar(0.0, x))
            return b.where(negative, b.mul(slope, x), x)

    def max_pool(
        self, x: SSAValue, kernel: int, stride: int, pad: int = 0, *, ceil_mode: bool = False
    ) -> SSAValue:
        return self.build.max_pool(
            x,
            kernel=pair(kernel),
            strides=pair(stride),
            pads=pair(pad) * 2,
            dilations=[1, 1],
            ceil_mode=ceil_mode,
        )

    def avg_pool(self, x: SSAValue, kernel: int, stride: int, pad: int) -> SSAValue:
        """PyTorch's: taps in the pads count."""
        return self.build.avg_pool(
            x,
            kernel=pair(kernel),
            strides=pair(stride),
            pads=pair(pad) * 2,
            dilations=[1, 1],
            count_include_pad=True,
        )

    def global_mean(self, x: SSAValue) -> SSAValue:
        """Mean over the spatial dims: [n, c, h, w] -> [n, c]."""
        axes = list(range(2, len(shape_of(x))))
        return self.build.reduce_mean(x, axes=axes, keep_dims=False)

    # --- matrices ---

    def linear(self, name: str, x: SSAValue, features: int, gain: float = LINEAR_GAIN) -> SSAValue:
        """x [m, k] times the weight [features, k] transposed, plus bias."""
        y = self.project(name, x, features, gain)
        b = self.weight(f"{name}.bias", [features], normal(0, 0.1))
        with self.build.at(name):
            return self.build.add(y, self.build.expand(b, shape_of(y)))

    def project(self, name: str, x: SSAValue, features: int, gain: float = LINEAR_GAIN) -> SSAValue:
        """`linear` without bias."""
        inputs = shape_of(x)[1]
        draw = normal(0, math.sqrt(gain / inputs))
        w = self.weight(f"{name}.weight", [features, inputs], draw)
        with self.build.at(name):
            return self.build.matmul(x, w, transpose_b=True)

    def layer_norm(self, name: str, x: SSAValue, epsilon: float) -> SSAValue:
        """Over the last dim."""
        *lead, features = shape_of(x)
        scale = self.weight(f"{name}.weight", [features], normal(1, 0.1))
        bias = self.weight(f"{name}.bias", [features], normal(0, 0.1))
        with self.build.at(name):
            return self.build.layer_norm(x, scale, bias, axis=len(lead), epsilon=epsilon)

    def gelu(self, x: SSAValue) -> SSAValue:
        """x / 2 * (1 + erf(x / sqrt(2)))."""
        b = self.build
        bell = b.erf(b.mul(x, self.scalar(math.sqrt(0.5), x)))
        return b.mul(b.mul(x, self.scalar(0.5, x)), b.add(bell, self.scalar(1.0, x)))


def draw_weight(seed: int, name: str, shape: Sequence[int], draw: Draw) -> Array:
    """The data of one weight, a function of (seed, name, shape) alone."""
    rng = np.random.default_rng([seed, crc32(name.encode())])
    return draw(rng, shape).astype(np.float32)
