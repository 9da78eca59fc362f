"""NASNet-A's cells (Zoph et al. 2018) stacked as TASO and TENSAT measure them.

TENSAT's stem, then three times five normal cells and a reduction cell, 128 channels at first, one
separable convolution where NASNet has two, no batch norm, no classifier. Average pools divide by
the whole window, pads included: TASO's rules turn only such pools into convolutions.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from ...dialects.program import Program
from ...dialects.types import shape_of
from .layers import LINEAR_GAIN, Net

_SQUEEZE = 1.5
"""Variance gain of the 1x1 before each cell: below the 2 of a relu, as a cell adds its parts."""


class _Cells:
    """Cells numbered in order; their convolutions too."""

    def __init__(self, net: Net, channels: int):
        self.net, self.channels, self.cell = net, channels, 0
        self._parts: Iterator[int] = iter(())

    def next_cell(self) -> None:
        self.cell += 1
        self._parts = iter(range(1000))

    def _name(self, kind: str) -> str:
        return f"cell{self.cell}.{kind}{next(self._parts)}"

    def squeeze(self, x: SSAValue) -> SSAValue:
        y = self.net.conv(self._name("squeeze"), x, self.channels, 1, gain=_SQUEEZE)
        return self.net.relu(y)

    def separable(self, x: SSAValue, kernel: int, stride: int = 1) -> SSAValue:
        """Depthwise, then 1x1."""
        name, net, c = self._name("separable"), self.net, self.channels
        y = net.conv(f"{name}.depth", x, c, kernel, stride, kernel // 2, groups=c, gain=LINEAR_GAIN)
        return net.conv(f"{name}.point", y, c, 1, gain=LINEAR_GAIN / 4)

    def pool(self, x: SSAValue, stride: int = 1) -> SSAValue:
        return self.net.avg_pool(x, 3, stride, 1)

    def most(self, x: SSAValue) -> SSAValue:
        return self.net.max_pool(x, 3, 2, 1)


def _normal(cells: _Cells, before: SSAValue, now: SSAValue) -> SSAValue:
    cells.next_cell()
    b, now, before = cells.net.build, cells.squeeze(now), cells.squeeze(before)
    return b.concat(
        b.add(cells.separable(now, 3), now),
        b.add(cells.separable(before, 3), cells.separable(now, 3)),
        b.add(cells.pool(now), before),
        b.add(cells.pool(before), cells.pool(before)),
        b.add(cells.separable(before, 3), cells.separable(before, 3)),
        axis=1,
    )


def _reduction(cells: _Cells, before: SSAValue, now: SSAValue) -> SSAValue:
    cells.next_cell()
    b, now, before = cells.net.build, cells.squeeze(now), cells.squeeze(before)
    first = b.add(cells.separable(before, 7, 2), cells.separable(now, 5, 2))
    second = b.add(cells.most(now), cells.separable(before, 7, 2))
    third = b.add(cells.pool(now, 2), cells.separable(before, 5, 2))
    fourth = b.add(cells.most(now), cells.separable(first, 3))
    return b.concat(first, second, third, fourth, b.add(cells.pool(first), second), axis=1)


def nasnet_a(
    batch: int, seed: int, *, image: int = 224, channels: int = 128, cells: int = 5
) -> Program:
    """Build the three stages; `cells` normal ones in each."""
    net = Net(seed)
    x = net.input("input", (batch, 3, image, image))
    x = net.max_pool(net.relu(net.conv("stem", x, 64, 7, 2, 3)), 3, 2, 1)
    made = _Cells(net, channels)
    for _ in range(3):
        before = now = x
        for _ in range(cells):
            before, now = now, _normal(made, before, now)
        made.channels *= 2
        x = _reduction(made, before, now)
    assert shape_of(x)[1] == 5 * made.channels
    return net.finish("zoo:nasnet-a", features=x)
