"""Draw inputs for a program from a seed, and read or write them as NPZ files.

Floats are standard normal. Integers depend on who reads them: an index of `graph.gather` stays
below the axis it selects from, other integers are 0 or 1 (masks, segments, flags). Booleans are
fair coins.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.errors import UserError
from ..dialects.files import atomic_write
from ..dialects.graph.base import to_python
from ..dialects.program import Program
from ..dialects.types import Array, Tensor, is_bool, is_float, shape_of, to_numpy
from .session import ValueInfo, check_inputs

# Ops through which an index reaches its gather unchanged, or no larger.
_CARRIERS = ("reshape", "transpose", "broadcast", "slice", "split", "concat", "cast")


def draw_inputs(program: Program, seed: int = 0) -> dict[str, Array]:
    """One array per input, the same for the same program and seed."""
    generator = np.random.default_rng(seed)
    block = program.main.body.block
    return {
        name: _draw(generator, type_, arg)
        for (name, type_), arg in zip(program.inputs.items(), block.args, strict=True)
    }


def _draw(generator: np.random.Generator, type_: Tensor, value: SSAValue) -> Array:
    shape, dtype = type_.get_shape(), to_numpy(type_.element_type)
    if is_float(type_.element_type):
        return generator.standard_normal(shape).astype(dtype)
    if is_bool(type_.element_type):
        return generator.integers(0, 2, shape).astype(dtype)
    return generator.integers(0, index_bound(value), shape).astype(dtype)


def index_bound(value: SSAValue) -> int:
    """The least axis size that an integer value selects from, 2 where it is no index."""
    bounds: list[int] = []
    seen, stack = {value}, [value]
    while stack:
        here = stack.pop()
        for use in here.uses:
            bound = _selected_size(use.operation, use.index)
            if bound is not None:
                bounds.append(bound)
            elif use.operation.name.removeprefix("graph.") in _CARRIERS:
                fresh = [result for result in use.operation.results if result not in seen]
                seen.update(fresh)
                stack.extend(fresh)
    return max(1, min(bounds)) if bounds else 2


def _selected_size(user: object, operand: int) -> int | None:
    """The extent an op selects from if its operand number `operand` is an index."""
    from ..dialects.algebra import ExternOp
    from ..dialects.graph.data import GatherOp, OpaqueOp

    match user:
        case GatherOp() if operand == 1:
            return shape_of(user.x)[user.value("axis")]
        case ExternOp() if operand == 1 and user.callee.data == GatherOp.name:
            return shape_of(user.inputs[0])[to_python(user.config.data["axis"])]
        case OpaqueOp() if user.op_type.data.startswith("Gather") and operand == 1:
            return min(shape_of(user.operands[0]), default=1)
        case _:
            return None


def read_inputs(path: Path, infos: Sequence[ValueInfo]) -> dict[str, Array]:
    """The inputs of an NPZ file, keys being the inputs' names; nothing is unpickled.

    Raises:
        UserError: the file is missing or no NPZ, or an array does not fit its input.
    """
    dtypes = {info.name: info.dtype for info in infos}
    try:
        opened = np.load(path, allow_pickle=False)
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise UserError("this is one array, an NPZ archive is needed", where=str(path))
        with opened:
            arrays = {k: _typed(opened[k], dtypes.get(k)) for k in opened.files}
    except OSError as error:
        reason = error.strerror or "not an NPZ archive"
        raise UserError(f"cannot read inputs: {reason}", where=str(path)) from error
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise UserError("not a readable NPZ archive of plain arrays", where=str(path)) from error
    try:
        return check_inputs(infos, arrays)
    except UserError as error:
        error.where = str(path)
        raise


def _typed(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """Give bfloat16 back its name: in a file it is only two bytes of anything."""
    if dtype is not None and array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)
    return array


def write_outputs(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays as NPZ under their names, whole or not at all.

    Raises:
        UserError: the file cannot be written.
    """
    with atomic_write(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            # np.savez takes names as keywords, so `file` would clash; the format is a zip of .npy.
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(array, order="C"), allow_pickle=False)
