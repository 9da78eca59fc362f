"""Results that lie in larger arrays, so that a later call can put rows behind theirs in place."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dialects.types import Array


@dataclass
class _Room:
    """An array whose first rows along a dim were given out; zeros stand behind them.

    Attributes:
        owner: what holds the memory; it ends with the last array that a caller holds.
        filled: how many rows along `axis` are somebody's result.
    """

    owner: weakref.ref[Array]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axis: int
    filled: int

    def holds(self, array: Array, axis: int) -> bool:
        """Whether an array at its first element is what was given out last."""
        places = [k for k, n in enumerate(self.shape) if n > 1]
        strides = _strides(self.shape, self.dtype.itemsize)
        given = (*self.shape[: self.axis], self.filled, *self.shape[self.axis + 1 :])
        return (
            axis == self.axis
            and array.shape == given
            and array.dtype == self.dtype
            and all(array.strides[k] == strides[k] for k in places)
        )


# By the address of the first element: an array is known by it, whatever views of it were made.
_rooms: dict[int, _Room] = {}
_lock = threading.Lock()
# So many entries are kept without a look whether somebody still holds the arrays.
_UNSEEN = 256


def hand_out(whole: Array, axis: int, rows: int) -> Array:
    """The first rows of an array that has zeros behind them, read-only: later calls share them."""
    found = whole[(*(slice(None),) * axis, slice(rows))]
    found.flags.writeable = False
    owner = whole if whole.base is None else whole.base
    with _lock:
        if len(_rooms) > _UNSEEN:
            for address in [a for a, room in _rooms.items() if room.owner() is None]:
                del _rooms[address]
        room = _Room(weakref.ref(owner), whole.shape, whole.dtype, axis, rows)
        _rooms[_address(whole)] = room
    return found


def claim(array: Array, shape: tuple[int, ...], axis: int, rows: int) -> Array | None:
    """The whole array that a result lies in, where rows may be put behind the result's.

    None if it lies in no such array, or if another call has put rows there before: then the result
    has to be copied. Rows up to `rows` are the caller's afterwards.
    """
    address = _address(array)
    with _lock:
        room = _rooms.get(address)
        owner = None if room is None else room.owner()
        if room is None or owner is None or room.shape != shape or not room.holds(array, axis):
            return None
        room.filled = rows
    return np.ndarray(shape, array.dtype, owner, address - _address(owner))


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The bytes from one place of each dim to the next, in plain order."""
    found = [itemsize]
    for n in reversed(shape[1:]):
        found.append(found[-1] * n)
    return tuple(reversed(found))


def _address(array: Array) -> int:
    return array.__array_interface__["data"][0]


__all__ = ["claim", "hand_out"]
