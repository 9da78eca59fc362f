"""Emit the inner product of a panel that several small convolution groups share.

The lanes of one vector belong to different groups, and each lane must see the inputs of its own
group only: a block-diagonal weight matrix would multiply the others by zero, and lose infinities.
So a pixel's channels are loaded as one vector, and shuffled once for every channel of a group.
"""

from .emit import Emitter
from .microkernel import Inner, Tile
from .types import Value


def shared_groups(groups: int, group_in: int, group_out: int) -> Inner:
    """Make the innermost loop for `groups` groups that fill one vector between them."""

    def inner(
        b: Emitter, tile: Tile, source: Value, weights: Value, sums: list[Value]
    ) -> list[Value]:
        result = list(sums)
        columns = [b.load(tile.vector, weights, j * tile.weight_stride) for j in range(group_in)]
        for row, offset in enumerate(tile.rows):
            pixel = b.load(tile.vector, source, offset, mask=groups * group_in)
            for j, column in enumerate(columns):
                own = b.shuffle(pixel, _picks(j, tile.lanes, groups, group_in, group_out))
                result[row] = b.fma(own, column, result[row])
        return result

    return inner


def _picks(channel: int, lanes: int, groups: int, group_in: int, group_out: int) -> list[int]:
    """List, for each lane, where channel number `channel` of the lane's group was loaded."""
    owners = (min(lane // group_out, groups - 1) for lane in range(lanes))
    return [owner * group_in + channel for owner in owners]
