"""Weight stores: where `graph.weight @name` finds its data. Data never appears in the IR text.

A store maps names to arrays, lazily: a safetensors file, arrays in memory, or thunks that draw or
read the array when it is first needed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import ml_dtypes
import numpy as np

from .errors import UserError, did_you_mean
from .files import ArrayFile, atomic_write
from .types import Array, element_types, to_numpy

# Dtypes that safetensors cannot give as numpy arrays: they lie there as bytes, and the file's
# metadata name them.
_PACKED = {
    dtype.name: dtype
    for dtype in map(to_numpy, element_types())
    if dtype.itemsize == 1 and dtype.name not in ("bool", "int8", "uint8")
}

_DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    **{f"F{n}": np.dtype(f"f{n // 8}") for n in (16, 32, 64)},
    **{f"{kind}{n}": np.dtype(f"{kind}{n // 8}".lower()) for kind in "IU" for n in (8, 16, 32, 64)},
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}

Source: TypeAlias = "Array | Callable[[], Array]"


class Weights(Mapping[str, Array]):
    """Named arrays. A thunk's result is shared while somebody holds it, and computed again later:
    a compiled program keeps its own packed copies, so the store must not keep a second one alive.
    """

    def __init__(self, sources: Mapping[str, Source] | None = None):
        self._sources: dict[str, Source] = dict(sources or {})
        self._alive: WeakValueDictionary[str, Array] = WeakValueDictionary()
        self._made: dict[str, tuple[str, tuple[str, ...]]] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._sources:
            close = did_you_mean(name, self._sources)
            raise UserError(
                f"weight '{name}' is not in the weights file",
                hint=close or "was the side file left behind?",
            )
        source = self._sources[name]
        if not callable(source):
            return source
        array = self._alive.get(name)
        if array is None:
            array = self._alive[name] = source()
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def apart(self) -> Weights:
        """The same weights in a store of its own, to which others may be added."""
        found = Weights(self._sources)
        found._alive, found._made = self._alive, dict(self._made)
        return found

    def add(self, name: str, source: Source) -> None:
        """Put an array or a thunk under a new name. Raises UserError if the name is taken."""
        if name in self._sources:
            raise UserError(f"two weights are named '{name}'")
        self._sources[name] = source

    def add_made(self, name: str, source: Source, expression: str, parts: Sequence[str]) -> None:
        """Put a weight computed from other weights, the `parts`, by an expression."""
        self.add(name, source)
        self._made[name] = expression, tuple(parts)

    def is_made(self, name: str) -> bool:
        """Whether a weight is computed from others, and so has the type of its expression."""
        return name in self._made

    def content_hash(self, name: str) -> str:
        """sha256 of dtype, shape and bytes: a weight's identity."""
        array = np.asarray(self[name], order="C")
        digest = hashlib.sha256(f"{array.dtype}{array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
        return digest.hexdigest()

    def identity(self, name: str) -> str:
        """A key of a weight's content: the content's hash, or how it is computed and from what.

        Weights with the same key are equal; equal weights may have several keys.
        """
        if name not in self._made:
            return self.content_hash(name)
        expression, parts = self._made[name]
        inner = "".join(self.identity(part) for part in parts)
        return hashlib.sha256(f"{expression}\0{inner}".encode()).hexdigest()


def load_safetensors(path: Path) -> Weights:
    """Open a safetensors file, whose arrays are read when they are asked for (`ArrayFile`).

    Raises:
        UserError: the file is missing or broken.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise UserError(
            "the weights file is missing", where=str(path), hint="it belongs beside the .mlir"
        )
    try:
        file = ArrayFile(path)
        with safe_open(path, framework="numpy") as handle:  # it checks every offset and size
            known = handle.metadata() or {}
        size = int.from_bytes(file.read(0, 8), "little")
        header = json.loads(file.read(8, size))
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"not a readable safetensors file ({error})", where=str(path)) from error
    header.pop("__metadata__", None)
    return Weights(
        {
            _name(key): partial(_read, file, 8 + size, key, entry, known.get(key, ""))
            for key, entry in header.items()
        }
    )


def _read(file: ArrayFile, start: int, key: str, entry: Mapping[str, Any], packed: str) -> Array:
    """A tensor of a file. Raises UserError for an element type that only others write."""
    found = _PACKED.get(packed) if entry["dtype"] == "U8" else None
    dtype = found or _DTYPES.get(entry["dtype"])
    if dtype is None:
        text = f"weight '{_name(key)}' has no readable dtype"
        raise UserError(text, found=entry["dtype"])
    return file.array(dtype, start + entry["data_offsets"][0], tuple(entry["shape"]))


Types: TypeAlias = "Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]"


def save_safetensors(path: Path, weights: Mapping[str, Array], types: Types) -> None:
    """Write the weights that `types` names, one after the other, or leave the file unchanged.

    Only one is in memory at a time: the file begins with the place of each, so their dtypes and
    shapes are known before they are read.

    Raises:
        UserError: a weight is of another type, or the file cannot be written.
    """
    names = sorted(types, key=lambda name: (-_alignment(types[name][0]), _key(name).encode()))
    end, entries = 0, dict[str, Any]()
    packed = {_key(n): types[n][0].name for n in sorted(names) if types[n][0].name in _PACKED}
    if packed:
        entries["__metadata__"] = packed
    for name in names:
        dtype, shape = types[name]
        start, end = end, end + dtype.itemsize * math.prod(shape)
        code = "U8" if dtype.name in _PACKED else _CODES[dtype]
        entries[_key(name)] = {"dtype": code, "shape": shape, "data_offsets": [start, end]}
    header = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    with atomic_write(path) as file:
        file.write(len(header).to_bytes(8, "little") + header)
        for name in names:
            array = np.asarray(weights[name], order="C")
            require_type(name, array, *types[name])
            file.write(array.reshape(-1).view(np.uint8).data)
            del array


def types_of(arrays: Mapping[str, Array]) -> Types:
    """What `save_safetensors` is told of arrays in memory."""
    return {name: (array.dtype, array.shape) for name, array in arrays.items()}


def require_type(name: str, array: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    """Compare a weight's array with its type in the program. Raises UserError."""
    if array.shape != shape or array.dtype != dtype:
        raise UserError(
            f"weight '{name}' does not fit the program",
            expected=f"{dtype}{list(shape)}",
            found=f"{array.dtype}{list(array.shape)}",
        )


def _alignment(dtype: np.dtype[Any]) -> int:
    return 1 if dtype.name in _PACKED else dtype.itemsize


# The format reserves the key `__metadata__`: a weight of that name gets one more `_`.
def _key(name: str) -> str:
    return f"{name}_" if re.fullmatch("__metadata___*", name) else name


def _name(key: str) -> str:
    return key[:-1] if re.fullmatch("__metadata____*", key) else key
