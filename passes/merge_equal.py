"""merge-equal: compute equal values once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import CSEDriver, KnownOps, OperationInfo

from ..dialects.floats import BITS, Floats


@dataclass(frozen=True)
class MergeEqual(ModulePass):
    """Replace ops that compute the same as an earlier one by that one.

    It does what xDSL's `cse` does, in time that grows with the program, not its square.

    Before:

        %a = graph.relu %x : tensor<4xf32>
        %b = graph.relu %x : tensor<4xf32>
        %y = graph.add %a, %b : tensor<4xf32>

    After:

        %a = graph.relu %x : tensor<4xf32>
        %y = graph.add %a, %a : tensor<4xf32>
    """

    name = "merge-equal"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Simplify every region."""
        _Driver(_known_ops=_Known()).simplify(op)


class _Known(KnownOps):
    """The ops of a scope, inside an outer one: xDSL copies the outer one's for each region."""

    def __init__(self, outer: _Known | None = None) -> None:
        super().__init__()
        self._outer = outer

    def get(self, k: Operation, default: object = None) -> object:
        info, scope = OperationInfo(k), self
        while scope is not None:
            found = scope._known_ops.get(info)
            if found is not None:
                return found
            scope = scope._outer
        return default


class _Driver(CSEDriver):
    """xDSL's driver, but for two steps that look at everything once for each op."""

    def _replace_and_delete(self, op: Operation, existing: Operation) -> None:
        """Replace an op's results. Its uses come later, so none was visited: xDSL asks for each."""
        for old, new in zip(op.results, existing.results, strict=True):
            old.replace_all_uses_with(new)
        self._mark_erasure(op)

    def _simplify_region(self, region: Region) -> None:
        if len(region.blocks) != 1:
            return
        outer = self._known_ops
        # An op that is isolated from above begins with xDSL's own scope, which is empty.
        self._known_ops = _Known(outer if isinstance(outer, _Known) else None)
        self._simplify_block(region.block)
        self._known_ops = outer
