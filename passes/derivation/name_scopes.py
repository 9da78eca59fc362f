"""algebra-name-scopes: give every value a unique name, so that passes can refer to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.algebra import OnesOp, ScopeOp
from ...dialects.floats import BITS, Floats
from ...dialects.graph import WeightOp
from ...dialects.program import Program, keep_names, location, main_of


@dataclass(frozen=True)
class AlgebraNameScopes(ModulePass):
    """Name every value by its kind and order: scopes `s0`, `s1`, ..., inputs `x0`, ...

    Weights are `w0`, ..., results of other ops `v0`, ...; ones and iterators have none. The
    original names do not matter: the same program with other names gets the same ones, so a
    pipeline of derivation passes finds the same scopes wherever it runs again. The old name of a
    value becomes its op's location, if it has none; inputs and outputs keep theirs.

    Before:

        func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
          %0 = algebra.scope (i: 8) exp(%x[i]) : tensor<8xf32>
          %y = algebra.scope (i: 8) exp(%0[i]) : tensor<8xf32>

    After:

        func.func @main(%x0: tensor<8xf32> {isoform.name = "x"}) -> (... {isoform.name = "y"}) {
          %s0 = algebra.scope (i: 8) exp(%x0[i]) : tensor<8xf32>
          %s1 = algebra.scope (i: 8) exp(%s0[i]) : tensor<8xf32>
    """

    name = "algebra-name-scopes"
    floats: ClassVar[Floats] = BITS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Name them."""
        keep_names(Program(op))
        numbers: Counter[str] = Counter()
        block = main_of(op).body.block
        for argument in block.args:
            _name(argument, numbers, "x")
        for one in block.ops:
            if isinstance(one.location, UnknownLoc) and one.results:
                one.location = location(one.results[0].name_hint or "")
            for result in one.results:
                _name(result, numbers, _letter(one))
            _without_names(one)


def _letter(op: Operation) -> str:
    match op:
        case ScopeOp():
            return "s"
        case WeightOp():
            return "w"
        case OnesOp():
            return ""
        case _:
            return "v"


def _name(value: SSAValue, numbers: Counter[str], letter: str) -> None:
    value.name_hint = f"{letter}{numbers[letter]}" if letter else None
    numbers[letter] += 1


def _without_names(op: Operation) -> None:
    """Remove the names inside an op: printed, they would clash with outer ones."""
    for region in op.regions:
        for block in region.blocks:
            for argument in block.args:
                argument.name_hint = None
            for inner in block.ops:
                for result in inner.results:
                    result.name_hint = None
                _without_names(inner)
