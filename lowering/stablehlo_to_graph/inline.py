"""Calls replaced by what they call, so that a body is seen as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...dialects.errors import UserError
from .text import HloArgument, HloBlock, HloFunction, HloOp
from .tokens import Place

CALLS = ("call", "func.call")
COMPOSITE = "stablehlo.composite"
MOST_OPS = 2_000_000
_DEEPEST = 200


@dataclass
class CallInliner:
    """Renames what it copies, so that no two values of the result have one name.

    Attributes:
        functions: those that may be called.
        kept: composites that stay what they are; the others become their decompositions.
    """

    functions: Mapping[str, HloFunction]
    kept: frozenset[str]
    place: Place
    _copies: int = 0
    _ops: int = 0

    def main(self) -> HloFunction:
        """The entry with all calls inlined. Raises UserError."""
        entry = self.functions.get("main")
        if entry is None and len(self.functions) == 1:
            (entry,) = self.functions.values()
        if entry is None:
            raise UserError("the module has no function @main", where=self.place(0))
        names = {argument.name: argument.name for argument in entry.block.arguments}
        return replace(entry, block=self._block(entry.block, names, "", 0))

    def _block(self, block: HloBlock, names: Mapping[str, str], mark: str, depth: int) -> HloBlock:
        known = dict(names)
        arguments: list[HloArgument] = []
        for argument in block.arguments:
            known.setdefault(argument.name, argument.name + mark)
            arguments.append(replace(argument, name=known[argument.name]))
        ops: list[HloOp] = []
        for op in block.ops:
            self._add(ops, op, known, mark, depth)
        return HloBlock(arguments, ops)

    def _add(
        self, ops: list[HloOp], op: HloOp, known: dict[str, str], mark: str, depth: int
    ) -> None:
        operands = [self._known(name, known, op) for name in op.operands]
        callee = self._callee(op)
        if callee is not None:
            if depth > _DEEPEST:
                raise UserError(f"'{callee.name}' calls itself", where=self.place(op.position))
            self._copies += 1
            inner = f"@{self._copies}"
            given = [argument.name for argument in callee.block.arguments]
            if len(given) != len(operands) or len(callee.types) != len(op.results):
                where = self.place(op.position)
                raise UserError(f"the call does not fit '{callee.name}'", where=where)
            block = self._block(
                HloBlock([], callee.block.ops),
                dict(zip(given, operands, strict=True)),
                inner,
                depth + 1,
            )
            ops += block.ops[:-1]
            known.update(zip(op.results, block.results, strict=True))
            return
        self._ops += 1
        if self._ops > MOST_OPS:
            raise UserError(f"more than {MOST_OPS} ops", where=self.place(op.position))
        results = [name + mark for name in op.results]
        known.update(zip(op.results, results, strict=True))
        regions = [self._region(region, known, mark, depth) for region in op.regions]
        ops.append(replace(op, operands=operands, results=results, regions=regions))

    def _region(self, block: HloBlock, known: dict[str, str], mark: str, depth: int) -> HloBlock:
        """A region: its own arguments hide values of the same name around it."""
        hidden = {argument.name for argument in block.arguments}
        outer = {name: value for name, value in known.items() if name not in hidden}
        return self._block(block, outer, mark, depth)

    def _callee(self, op: HloOp) -> HloFunction | None:
        name = ""
        if op.name in CALLS:
            name = op.words[0] if op.words else op.attributes.get("callee", "")
        elif op.name == COMPOSITE and composite_name(op) not in self.kept:
            name = op.attributes.get("decomposition", "")
        if not name:
            return None
        found = self.functions.get(str(name).removeprefix("@").strip('"'))
        if found is None:
            raise UserError(f"there is no function '{name}'", where=self.place(op.position))
        return found

    def _known(self, name: str, known: Mapping[str, str], op: HloOp) -> str:
        found = known.get(name) or known.get(name.removesuffix("#0"))
        if found is None:
            raise UserError(f"'{name}' is not defined", where=self.place(op.position))
        return found


def composite_name(op: HloOp) -> str:
    """The name of a composite op: `chlo.top_k`."""
    return str(op.attributes.get("name") or (op.words or [""])[0])
