"""Which results are stored past the caches.

A store to a line that no cache holds reads the line first, and evicts another one, which is written
back: three lines move for each that is stored. Where a result is larger than what a core's cache
keeps until it is read, whole vectors go straight to memory instead, one line each.
"""

from ...dialects.kernel import physical
from ...dialects.types import Tensor, element_count
from .access import compute_type, memory_type
from .isa import Isa

LINE = 64  # bytes; buffers in the arena start at a multiple of it
# Measured with a second-level cache of 1 MiB: results of 1.8 MB lose by it, 3.6 MB gain.
LEAST_BYTES = 3 << 20


def past_caches(type_: Tensor, isa: Isa) -> bool:
    """Say whether a kernel's result, of this physical type, is stored past the caches.

    Every whole vector must be a whole line: what does not count channels moves by whole lines.
    """
    size = memory_type(type_.element_type).bytes
    line = isa.lanes(compute_type(type_.element_type)) * size
    if line != LINE or element_count(type_) * size < LEAST_BYTES:
        return False
    strides, offset, _ = physical(type_)
    steps = [s for s, n in zip(strides, type_.get_shape(), strict=True) if n != 1 and s != 1]
    return all(step * size % LINE == 0 for step in (*steps, offset))
