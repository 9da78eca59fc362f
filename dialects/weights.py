"""Weight stores: where `graph.weight @name` finds its data. Data never appears in the IR text.

A store maps names to arrays, lazily: a memory-mapped safetensors file, arrays in memory, or thunks
that draw or read the array when it is first needed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np

from .errors import UserError, did_you_mean
from .files import atomic_write
from .types import Array, element_types, to_numpy

# Dtypes that safetensors cannot give as numpy arrays: they lie there as bytes, and the file's
# metadata name them.
_PACKED = {
    dtype.name: dtype
    for dtype in map(to_numpy, element_types())
    if dtype.itemsize == 1 and dtype.name not in ("bool", "int8", "uint8")
}

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
    """Open a safetensors file, memory-mapped; arrays are read when asked for.

    Raises:
        UserError: the file is missing or broken.
    """
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise UserError(
            "the weights file is missing", where=str(path), hint="it belongs beside the .mlir"
        )
    try:
        handle = safe_open(path, framework="numpy")
        keys = list(handle.keys())
    except (SafetensorError, OSError) as error:
        raise UserError(f"not a readable safetensors file ({error})", where=str(path)) from error
    known = handle.metadata() or {}
    return Weights({_name(key): partial(_read, handle, key, known) for key in keys})


def _read(handle: Any, key: str, known: Mapping[str, str]) -> Array:
    """A tensor of a file. Raises UserError for an element type that only others write."""
    try:
        array = handle.get_tensor(key)
    except AttributeError as error:  # numpy has no such dtype, says safetensors
        found = handle.get_slice(key).get_dtype()
        raise UserError(f"weight '{_name(key)}' has no readable dtype", found=found) from error
    return array.view(_PACKED[known[key]]) if known.get(key) in _PACKED else array


def save_safetensors(path: Path, weights: Mapping[str, Array]) -> None:
    """Write all weights, or leave the file unchanged."""
    from safetensors.numpy import save

    arrays = {_key(name): np.asarray(weights[name], order="C") for name in weights}
    packed = {key: a.dtype.name for key, a in arrays.items() if a.dtype.name in _PACKED}
    arrays |= {key: arrays[key].view(np.uint8) for key in packed}
    payload = save(arrays, packed or None)
    with atomic_write(path) as file:
        file.write(payload)


# The format reserves the key `__metadata__`: a weight of that name gets one more `_`.
def _key(name: str) -> str:
    return f"{name}_" if re.fullmatch("__metadata___*", name) else name


def _name(key: str) -> str:
    return key[:-1] if re.fullmatch("__metadata____*", key) else key
