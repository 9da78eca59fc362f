"""The inputs and outputs of a session, and whether arrays fit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...dialects.dims import Dim, fits, is_symbolic, shown
from ...dialects.errors import UserError, did_you_mean
from ...dialects.types import Array, Tensor, dims_of, to_numpy


@dataclass(frozen=True)
class ValueInfo:
    """Name, dtype and shape of an input or output; an input with a default need not be given.

    A dim is a number; in a `DynamicSession` also a symbol, or None for any. There a shape is None
    if any rank is taken.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[Dim, ...] | None
    has_default: bool = False

    @staticmethod
    def of(name: str, type_: Tensor, has_default: bool = False) -> ValueInfo:
        """Describe a value by its IR type."""
        dims = tuple(str(n) if is_symbolic([n]) else n for n in dims_of(type_))
        return ValueInfo(name, to_numpy(type_.element_type), dims, has_default)

    def cut(self, dim: int | None) -> ValueInfo:
        """The same with any size along a dim, for an output whose size depends on data."""
        if dim is None or self.shape is None:
            return self
        shape = tuple(None if k == dim else n for k, n in enumerate(self.shape))
        return replace(self, shape=shape)

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{shown(self.shape)}"


def check_inputs(
    infos: Sequence[ValueInfo],
    feeds: Mapping[str, Any],
    convert: Callable[[Any], Any] = np.asarray,
) -> dict[str, Array]:
    """The feeds as arrays of exactly the inputs' dtypes and shapes, in the inputs' order.

    Those that have a default may be missing, and are then left out.

    Args:
        convert: makes an array of a feed: something with a dtype and a shape.

    Raises:
        UserError: one is missing, unknown, or does not fit.
    """
    names = [info.name for info in infos]
    for name in feeds:
        if name not in names:
            raise UserError(
                f"there is no input '{name}'",
                hint=did_you_mean(name, names) or f"inputs are {', '.join(names) or 'none'}",
            )
    checked: dict[str, Array] = {}
    for info in infos:
        if info.name not in feeds and info.has_default:
            continue
        if info.name not in feeds:
            raise UserError(f"input '{info.name}' is missing", expected=str(info))
        array = convert(feeds[info.name])
        # Equal types first: their names take microseconds to make.
        if array.dtype != info.dtype and str(array.dtype) != str(info.dtype):
            raise UserError(
                f"input '{info.name}' has another dtype", expected=info.dtype, found=array.dtype
            )
        if array.shape != info.shape and not fits(info.shape, array.shape):
            raise UserError(
                f"input '{info.name}' has another shape",
                expected=shown(info.shape),
                found=list(array.shape),
            )
        checked[info.name] = array
    return checked


def check_out(infos: Sequence[ValueInfo], out: Mapping[str, Array]) -> None:
    """Check the arrays that outputs are to be written into.

    Raises:
        UserError: there is no such output; an array has another dtype or shape, is read-only
            or is given for two outputs.
    """
    known = {info.name: info for info in infos}
    for name, array in out.items():
        if name not in known:
            raise UserError(f"there is no output '{name}'", hint=did_you_mean(name, known))
        info = known[name]
        if array.dtype != info.dtype or not fits(info.shape, array.shape):
            raise UserError(
                f"the array for output '{name}' does not fit",
                expected=info,
                found=f"{array.dtype}{list(array.shape)}",
            )
        if not array.flags.writeable:
            raise UserError(f"the array for output '{name}' is read-only")
    if len({id(array) for array in out.values()}) < len(out):
        raise UserError(f"one array for several outputs: {', '.join(out)}")
