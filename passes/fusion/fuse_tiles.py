"""fuse-tiles: a transform of tiles, the products over them and the inverse as one kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp
from xdsl.passes import ModulePass

from ...dialects.floats import BITS, Floats
from ...dialects.kernel import GemmOp, LoopsOp, TiledProductOp
from ...dialects.program import main_of
from ...dialects.schedule import tile_of, tiles_of
from .fuse_kernels import merge, only_user


@dataclass(frozen=True)
class FuseTiles(ModulePass):
    """Merge a batch of products with the tiled loops before and after, if its schedule asks for it.

    The schedule's `tiles` is the number of tiles that the kernel works on at a time, so that the
    intermediates stay in a cache. `winograd` sets it, or `tune` if that was measured faster.

    Before:

        %v = kernel.loops (%0 = %x, %1 = %bt) schedule {tile = array<i64: 1, 1, 1, 1, 6, 6>} { ... }
        %m = kernel.gemm (%0 = %v, %1 = %u) schedule {tiles = 28 : i64} { ... }
        %y = kernel.loops (%0 = %m, %1 = %at) schedule {tile = array<i64: 1, 1, 4, 4>} { ... }

    After:

        %y = kernel.tiled_product (%0 = %x, %1 = %bt, %2 = %u, %3 = %at)
            schedule {tile = array<i64: 1, 1, 4, 4>, tiles = 28 : i64} { ... }
    """

    name = "fuse-tiles"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in list(main_of(op).body.block.ops):
            if isinstance(kernel, GemmOp) and tiles_of(kernel) is not None:
                _fuse(kernel)


def _fuse(product: GemmOp) -> None:
    """Merge all three, if they are there."""
    readers = {use.operation for use in product.result.uses}
    behind = readers.pop() if len(readers) == 1 else None
    before = next((v.owner for v in product.inputs if _is_tiled(v.owner)), None)
    if not _is_tiled(behind) or not isinstance(before, LoopsOp):
        return
    assert isinstance(behind, LoopsOp)
    assert behind.schedule is not None
    assert product.schedule is not None
    if not only_user(before.result, product):
        return
    schedule = {**product.schedule.data, **behind.schedule.data}
    notes = {**behind.attributes}
    merged = merge(merge(before, product, TiledProductOp), behind, TiledProductOp)
    merged.properties["schedule"] = DictionaryAttr(schedule)
    merged.attributes |= {k: v for k, v in notes.items() if k not in merged.attributes}
    merged.location = product.location


def _is_tiled(op: object) -> bool:
    return isinstance(op, LoopsOp) and tile_of(op) is not None
