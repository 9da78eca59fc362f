"""Draw inputs for a program from a seed, and read or write them as NPZ files.

Floats are standard normal. Integers depend on their readers: an index of `graph.gather` stays
below the extent it selects from, the count of a loop is small; other integers are 0 or 1 (masks,
segments, flags). Booleans are fair coins.
"""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.algebra import ExternOp
from ...dialects.control import LoopOp, arguments_of
from ...dialects.errors import UserError
from ...dialects.files import atomic_write
from ...dialects.graph import OpaqueOp
from ...dialects.graph.base import to_python
from ...dialects.graph.data import GatherOp
from ...dialects.kernel import CallOp
from ...dialects.program import Program
from ...dialects.types import (
    Array,
    Tensor,
    element_of,
    finite_range,
    is_bool,
    is_float,
    shape_of,
    to_numpy,
)
from ..targets.value_info import ValueInfo, check_inputs

# Ops an index may pass through on its way to a gather; at lower levels, ops that may be copies.
_CARRIERS = (
    *("reshape", "transpose", "broadcast", "slice", "split", "concat", "cast"),
    *("scope", "loops", "view"),
)

# A loop whose count is an input runs less often than this.
_MOST_ITERATIONS = 16

# A member of a zip archive has a name of at most 2^16 - 1 bytes, `.npy` included.
_LONGEST_NAME = (1 << 16) - 1 - len(".npy")


def draw_inputs(program: Program, seed: int = 0) -> dict[str, Array]:
    """One array per input, the same for the same program and seed; defaults where they exist."""
    generator = np.random.default_rng(seed)
    block, defaults = program.main.body.block, program.defaults
    return {
        name: program.weights[defaults[name]] if name in defaults else _draw(generator, type_, arg)
        for (name, type_), arg in zip(program.inputs.items(), block.args, strict=True)
    }


def _draw(generator: np.random.Generator, type_: Tensor, value: SSAValue) -> Array:
    shape, dtype = type_.get_shape(), to_numpy(type_.element_type)
    if is_float(type_.element_type):
        drawn = generator.standard_normal(shape)
        signed = finite_range(type_.element_type)[0] < 0
        return (drawn if signed else np.abs(drawn)).astype(dtype)
    if is_bool(type_.element_type):
        return generator.integers(0, 2, shape).astype(dtype)
    return generator.integers(0, index_bound(value), shape).astype(dtype)


def index_bound(value: SSAValue) -> int:
    """The smallest extent that an integer value selects from; 2 where it is not an index."""
    bounds: list[int] = []
    seen, stack = {value}, [value]
    while stack:
        here = stack.pop()
        for use in here.uses:
            bound = _selected_size(use.operation, use.index)
            inside = arguments_of(use.operation, use.index)
            seen.update(inside)
            stack.extend(inside)
            if bound is not None:
                bounds.append(bound)
            elif use.operation.name.partition(".")[2] in _CARRIERS:
                fresh = [r for r in use.operation.results if r not in seen and not _is_float(r)]
                seen.update(fresh)
                stack.extend(fresh)
    return max(1, min(bounds)) if bounds else 2


def _is_float(value: SSAValue) -> bool:
    return is_float(element_of(value))


def _selected_size(user: Operation, operand: int) -> int | None:
    """The extent that an op selects from if operand number `operand` is an index."""
    match user:
        case LoopOp():
            return _MOST_ITERATIONS if user.operands[operand] is user.count else None
        case GatherOp():
            callee, axis = user.name, user.value("axis")
        case ExternOp() | CallOp():
            callee, axis = user.callee.data, user.config.data.get("axis", 0)
        case OpaqueOp():
            callee, axis = f"graph.{user.op_type.data.lower()}", None
        case _:
            return None
    if operand != 1 or not callee.startswith(GatherOp.name):
        return None
    shape = shape_of(user.operands[0])
    if axis is None:
        return min(shape, default=1)
    return shape[to_python(axis) if isinstance(axis, Attribute) else axis]


def read_inputs(path: Path, infos: Sequence[ValueInfo]) -> dict[str, Array]:
    """The inputs in an NPZ file, by name; nothing is unpickled.

    Raises:
        UserError: the file is missing or not an NPZ archive, or an array does not fit its input.
    """
    dtypes = {info.name: info.dtype for info in infos}

    def typed(arrays: Mapping[str, Array]) -> dict[str, Array]:
        return {k: _typed(array, dtypes.get(k)) for k, array in arrays.items()}

    try:
        check_inputs(infos, typed(_read(path, _stand_in)))  # before any of them is unpacked
        return check_inputs(infos, typed(_read(path, _array)))
    except UserError as error:
        error.where = str(path)
        raise


# What numpy (which reads headers as Python) and zipfile raise for files they cannot read.
_BROKEN = (
    *(ValueError, EOFError, RuntimeError, SyntaxError, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error),
)
Read: TypeAlias = Callable[[zipfile.ZipFile, zipfile.ZipInfo], Array]


def _read(path: Path, read: Read) -> dict[str, Array]:
    """The result of `read` for each member that is an array, by name. Raises UserError."""
    try:
        with path.open("rb") as file:
            if file.read(6) == np.lib.format.MAGIC_PREFIX:
                raise UserError("this is one array, an NPZ archive is needed", where=str(path))
            with zipfile.ZipFile(file) as archive:
                return {_array_name(i): read(archive, i) for i in archive.infolist()}
    except OSError as error:
        reason = error.strerror or "not an NPZ archive"
        raise UserError(f"cannot read inputs: {reason}", where=str(path)) from error
    except _BROKEN as error:
        raise UserError("not a readable NPZ archive of plain arrays", where=str(path)) from error


def _array_name(info: zipfile.ZipInfo) -> str:
    name = info.filename.removesuffix(".npy")
    if name == info.filename:
        raise ValueError(f"member {name}")
    return name


def _stand_in(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """An array with the member's dtype and shape that takes no memory.

    Raises:
        ValueError: the header claims objects, or another number of bytes than the archive has.
    """
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        reader = _HEADERS.get(version)
        if reader is None:
            raise ValueError(f"version {version}")
        shape, _, dtype = reader(member)
        size = member.tell() + math.prod(shape) * dtype.itemsize
        if dtype.hasobject or min(shape, default=0) < 0 or size != info.file_size:
            raise ValueError(f"{shape} of {dtype}")
    return np.broadcast_to(np.zeros((), dtype), shape)


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Array:
    """The member's array, after its header was checked. Raises ValueError."""
    _stand_in(archive, info)
    with archive.open(info) as member:
        return np.lib.format.read_array(member, allow_pickle=False)


_HEADERS: Mapping[tuple[int, int], Callable[[Any], Any]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def _typed(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """Restore dtypes that numpy does not know: in a file they are anonymous bytes."""
    if dtype is not None and array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)
    return array


def write_outputs(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays as NPZ under their names, whole or not at all.

    Raises:
        UserError: the file cannot be written, or a name is not allowed in such a file.
    """
    for name in arrays:
        if "\0" in name or len(name.encode()) > _LONGEST_NAME:
            raise UserError(
                f"output '{name[:40]}' has a name that no NPZ archive can hold", where=str(path)
            )
    with atomic_write(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            # np.savez takes names as keywords, so `file` would clash; the format is a zip of .npy.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _written(array), allow_pickle=False)


def _written(array: Array) -> Array:
    """An array as the format has it: dtypes that numpy does not know are anonymous bytes."""
    array = np.asarray(array, order="C")
    return array.view(f"V{array.dtype.itemsize}") if array.dtype.isbuiltin == 2 else array
