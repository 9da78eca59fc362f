"""Arrays that are already on a device: found in other libraries' objects, without a copy."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dialects.errors import UserError

_CUDA = 2  # DLPack's number of the device type


@dataclass(frozen=True)
class DeviceArray:
    """An array on the device; `owner` keeps its memory alive.

    `strides` are in elements; None means dense and row-major, which all inputs must be.
    """

    address: int
    dtype: str
    shape: tuple[int, ...]
    owner: Any = None
    strides: tuple[int, ...] | None = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The interface through which other libraries read it in place."""
        dtype = np.dtype(self.dtype)
        steps = None if self.strides is None else tuple(s * dtype.itemsize for s in self.strides)
        return {
            "shape": self.shape,
            "typestr": dtype.str,
            "data": (self.address, False),
            "strides": steps,
            "version": 3,
        }


def device_array(value: Any) -> DeviceArray | None:
    """The array that an object has on the device, in place; None if it is on the host.

    Raises:
        UserError: it is on the device, but not dense and row-major.
    """
    if isinstance(value, DeviceArray):
        _check_dense(value.shape, value.strides)
        return value
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
        strides = interface.get("strides")
        steps = None if strides is None else [s // dtype.itemsize for s in strides]
        _check_dense(shape, steps)
        return DeviceArray(interface["data"][0], str(dtype), shape, value)
    where = getattr(value, "__dlpack_device__", None)
    if where is None or int(where()[0]) != _CUDA:
        return None
    return _from_dlpack(value)


def _check_dense(shape: Sequence[int], strides: Sequence[int] | None) -> None:
    """Refuse an array that is not row-major without gaps. Units: strides are elements."""
    if strides is None:
        return
    expected = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    wrong = [k for k, n in enumerate(shape) if n > 1 and strides[k] != expected[k]]
    if wrong and 0 not in shape:
        hint = "make it contiguous first"
        raise UserError("an array on the device is not row-major", found=list(strides), hint=hint)


# --- DLPack -------------------------------------------------------------------------------------


class _Tensor(ctypes.Structure):
    """`DLTensor`, the first member of `DLManagedTensor`."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int),
        ("device_id", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 6: "bool"}


def _from_dlpack(value: Any) -> DeviceArray:
    """Read the capsule in place; unconsumed, it frees itself with the owner kept here."""
    capsule = value.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(pointer(capsule, b"dltensor") or 0)
    shape = tuple(tensor.shape[: tensor.ndim])
    _check_dense(shape, tensor.strides[: tensor.ndim] if tensor.strides else None)
    kind = _KINDS.get(tensor.code)
    if kind is None or tensor.lanes != 1:
        raise UserError("an array on the device has elements that isoform lacks")
    dtype = "bool" if kind == "bool" else f"{kind}{tensor.bits}"
    return DeviceArray((tensor.data or 0) + tensor.byte_offset, dtype, shape, capsule)
