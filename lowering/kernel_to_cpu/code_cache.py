"""Generate equal kernels once, across programs and processes.

A search compiles many programs whose kernels are mostly the same. The key of a kernel's code covers
all that it is made from: the op's text, its literal operands, its attributes, its schedule,
the instruction set, and the sources that generate code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from xdsl.ir import Operation

from ...dialects.cache_folder import CacheFolder
from ...dialects.files import hash_of_sources
from ...dialects.graph import ConstantOp
from ...dialects.kernel import AttentionOp, ConvOp, GemmOp, KernelOp, LoopsOp, TiledProductOp
from ...dialects.signature import signature
from .emit.avx512 import emitting
from .emit.module import KernelCode
from .isa import Isa

# The text of these says all; an op of a plug-in may mean something else tomorrow.
OURS = (AttentionOp, ConvOp, GemmOp, LoopsOp, TiledProductOp)
# Attributes that say how an op came about.
_HISTORY = ("isoform.rules", "isoform.tuned", "isoform.measured")
_PACKAGE = Path(__file__).resolve().parents[2]
_SOURCES = (
    "dialects",
    *(f"lowering/{name}" for name in ("algebra_to_kernel", "kernel_to_cpu", "kernel_to_nest")),
    "lowering/nest_to_llvm",
    "lowering/node_to_nest",
)
# Codes are up to 100 kB of text.
_MOST = 256
_recent: dict[str, KernelCode] = {}


def cached_code(
    op: KernelOp, isa: Isa, key_parts: Sequence[object], emit: Callable[[], KernelCode]
) -> KernelCode:
    """The code of a kernel: generated now, or for an equal kernel earlier.

    Args:
        key_parts: what beside the op decides about the code, such as a schedule; by its `repr`.
        emit: generates it.
    """
    if type(op) not in OURS:
        return _emitted(emit, isa)
    name = _key(op, isa, key_parts)
    found = _recent.pop(name, None)
    if found is None:
        folder = CacheFolder()
        file = folder.file(f"{name}.kernel")
        found = None if file is None else _read(folder, file)
        if found is None:
            found = _emitted(emit, isa)
            if file is not None:
                folder.write(file, zlib.compress(json.dumps(asdict(found)).encode(), 1))
    _recent[name] = found
    if len(_recent) > _MOST:
        del _recent[next(iter(_recent))]
    return found


def _emitted(emit: Callable[[], KernelCode], isa: Isa) -> KernelCode:
    with emitting(available=isa.has_avx512):
        return emit()


def _read(folder: CacheFolder, file: Path) -> KernelCode | None:
    """The code in a file; None if it is missing or damaged, which its checksum shows."""
    with contextlib.suppress(OSError, ValueError, TypeError, zlib.error):
        found = KernelCode(**json.loads(zlib.decompress(file.read_bytes())))
        folder.touch(file)
        return found
    return None


def _key(op: KernelOp, isa: Isa, key_parts: Sequence[object]) -> str:
    attributes = {name: str(a) for name, a in op.attributes.items() if name not in _HISTORY}
    parts = (
        signature(op),
        str(op.properties.get("contraction")),
        repr(sorted(attributes.items())),
        repr([_literal(value.owner) for value in op.inputs]),
        repr(key_parts),
        repr(isa),
        _version(),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _literal(owner: object) -> str | None:
    """The data of an operand that becomes part of the code."""
    if not isinstance(owner, Operation) or not isinstance(owner, ConstantOp):
        return None
    return hashlib.sha256(owner.array().tobytes()).hexdigest()


@cache
def _version() -> str:
    return hash_of_sources([_PACKAGE / name for name in _SOURCES])
