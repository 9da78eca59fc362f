"""Emit the inner product of a panel that several small convolution groups share.

The lanes of one vector belong to different groups, and each lane must see only the inputs of its
own group: a block-diagonal weight matrix would multiply the others by zero, and turn infinities
into NaN. So a pixel's channels are loaded as one vector, and shuffled once for every channel of a
group.

Shuffles compete with multiplications for execution units. With the taps of a row unrolled, one
shuffle serves every output pixel that reads it, three of them where the kernel is three wide.
"""

from ..emit.emitter import Emitter
from ..emit.types import Value
from .microkernel import Inner, Reads, RegisterTile

_MOST_STEPS = 48  # taps of a row times channels of a group; more would make too much code


def unrolled_taps(kernel_width: int, group_in: int) -> int:
    """Count the taps of a row that `shared_groups` should unroll; else they are a loop."""
    return kernel_width if kernel_width * group_in <= _MOST_STEPS else 1


def shared_groups(
    groups: int, group_in: int, group_out: int, taps: int = 1, tap_stride: int = 0
) -> Inner:
    """Make the innermost loop for `groups` groups that fill one vector between them.

    Units: `tap_stride` is elements of the input from one of the `taps` to the next.
    """

    def inner(b: Emitter, tile: RegisterTile, reads: Reads, sums: list[Value]) -> list[Value]:
        result = list(sums)
        pixel_type = tile.numbers.data.vector(tile.lanes)
        readers: dict[int, list[tuple[int, int]]] = {}
        for tap in range(taps):
            for row, offset in enumerate(tile.rows):
                readers.setdefault(offset + tap * tap_stride, []).append((tap, row))
        pixels = {
            offset: tile.numbers.widened(
                b, b.load(pixel_type, reads.source, offset, mask=groups * group_in)
            )
            for offset in sorted(readers)
        }
        for j in range(group_in):
            picks = _picks(j, tile.lanes, groups, group_in, group_out)
            columns_at = [(tap * group_in + j) * tile.weight_stride for tap in range(taps)]
            valid = tile.lanes_of(0)
            columns = [b.load(tile.vector, reads.weights, at, mask=valid) for at in columns_at]
            for offset, pixel in pixels.items():
                own = b.shuffle(pixel, picks)
                for tap, row in readers[offset]:
                    result[row] = tile.numbers.multiplied(b, own, columns[tap], result[row])
        return result

    return inner


def _picks(channel: int, lanes: int, groups: int, group_in: int, group_out: int) -> list[int]:
    """List, for each lane, where channel number `channel` of the lane's group was loaded."""
    owners = (min(lane // group_out, groups - 1) for lane in range(lanes))
    return [owner * group_in + channel for owner in owners]
