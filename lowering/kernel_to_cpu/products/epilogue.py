"""Define what may be computed on a finished accumulator before it is stored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..emit.emitter import Emitter
from ..emit.types import Index, Type, Value
from ..nests.nontemporal import LINE


@dataclass(frozen=True)
class OutIndex:
    """Place one vector of the result: batch and spatial (or row) coordinates, then channels.

    The vector covers channels `channel` to `channel + lanes`.
    """

    batch: tuple[Index, ...]
    spatial: tuple[Index, ...]
    channel: Index
    lanes: int

    @property
    def coordinates(self) -> tuple[Index, ...]:
        """List all coordinates, the channel last."""
        return (*self.batch, *self.spatial, self.channel)


EpilogueFn = Callable[[Emitter, Value, OutIndex, Index, Value | None, Sequence[Value]], Value]
"""Called as (b, accumulator, out_index, channel, mask, extras); gives the vector to store, as it
lies in memory."""


@dataclass(frozen=True)
class Epilogue:
    """Say how each finished vector is turned into what is stored.

    `emit` runs at code generation, once for every accumulator, and loads what it needs from the
    `extras` pointers that the kernel takes between its operands and its result. `mask` is None when
    all lanes exist. An extra may be the result's own buffer if it is read only at the coordinates
    that are about to be stored.
    """

    extras: int
    emit: EpilogueFn


def finish(
    b: Emitter,
    epilogue: Epilogue | None,
    accumulator: Value,
    index: OutIndex,
    valid: int,
    extras: Sequence[Value],
    target: tuple[Value, Index],
    *,
    stored: Type,
    nontemporal: bool = False,
) -> None:
    """Apply the epilogue to one accumulator and store its `valid` first lanes at `target`.

    `stored` is the type in memory, which the accumulator or the epilogue's value has.
    """
    mask = b.mask(valid, index.lanes)
    if epilogue is not None:
        accumulator = epilogue.emit(b, accumulator, index, index.channel, mask, extras)
    assert accumulator.type == stored.vector(index.lanes)
    b.store(accumulator, target[0], target[1], mask=mask, nontemporal=LINE if nontemporal else 0)
