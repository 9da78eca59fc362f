"""Which results are written with non-temporal stores.

An ordinary store to a line that no cache holds reads the line first, and evicts another one, which
is written back: three lines move for each stored one. If a result is larger than the part of a
cache that survives until it is read, whole vectors are written straight to memory, one line each.
"""

import math

from ....dialects.index import Index as Affine
from ....dialects.kernel import physical
from ....dialects.types import Tensor, element_count
from ..emit.access import compute_type, memory_type
from ..isa import Isa

LINE = 64  # bytes; buffers in the arena start at a multiple of it
# Measured with a second-level cache of 1 MiB: results of 1.8 MB lose by it, 3.6 MB gain.
LEAST_BYTES = 3 << 20
# Loops mostly read and store: a result that fits a third-level cache of 32 MiB stays there for its
# reader. Measured: filling 8 MiB gains a third by non-temporal stores, copying it nothing;
# 32 MiB gain a fifth, 64 MiB more than half.
LEAST_BYTES_OF_LOOPS = 16 << 20
LEAST_VECTORS = 4  # of a row whose ends use ordinary stores
LEAST_PIECE = 16  # bytes of one non-temporal store, on every processor


def nontemporal(type_: Tensor, isa: Isa) -> bool:
    """Say whether a kernel's result, of this physical type, is written with non-temporal stores.

    Every whole vector must be a whole line: dims other than channels move by whole lines.
    """
    size = memory_type(type_.element_type).bytes
    line = isa.lanes(compute_type(type_.element_type)) * size
    if line != LINE or element_count(type_) * size < LEAST_BYTES:
        return False
    strides, offset, _ = physical(type_)
    steps = [s for s, n in zip(strides, type_.get_shape(), strict=True) if n != 1 and s != 1]
    return all(step * size % LINE == 0 for step in (*steps, offset))


def streamed(type_: Tensor, flat: Affine, vector: int) -> int:
    """The piece, in bytes, of a loop's non-temporal stores of a result; 0 for ordinary stores.

    The result has this physical type, and `vector` runs over the lanes at element `flat`.
    Contiguous elements go to memory in pieces of a line, or of a part to which every row is
    aligned: the processor combines consecutive parts.
    """
    if not _is_for_memory(type_, flat, vector):
        return 0
    aligned = row_alignment(flat, vector) * memory_type(type_.element_type).bytes
    piece = math.gcd(LINE, aligned)
    return piece if piece >= LEAST_PIECE else 0


def is_peeled(type_: Tensor, flat: Affine, vector: int, extent: int, lanes: int) -> bool:
    """Whether a row that starts anywhere uses non-temporal stores from its first whole vector on.

    Its ends use ordinary stores: `whole_vectors`. Only long rows gain by it.
    """
    size = memory_type(type_.element_type).bytes
    return (
        _is_for_memory(type_, flat, vector)
        and extent >= LEAST_VECTORS * lanes
        and lanes * size >= LEAST_PIECE
        and row_alignment(flat, vector) % lanes != 0
    )


def row_alignment(flat: Affine, vector: int) -> int:
    """The alignment of every row's first element relative to the buffer's, in elements; 0 for any.

    A row lies along `vector`, at element `flat`.
    """
    return math.gcd(flat.constant, *(c for k, c in flat.terms if k != vector))


def _is_for_memory(type_: Tensor, flat: Affine, vector: int) -> bool:
    """Whether a result is larger than caches keep, and contiguous along its rows."""
    size = memory_type(type_.element_type).bytes
    if element_count(type_) * size < LEAST_BYTES_OF_LOOPS:
        return False
    return not flat.has_floor and flat.coefficient(vector) == 1
