"""algebra-name-scopes: give every scope a name, so that passes by hand can say where."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .lift import names_in, scope_ops

_DERIVED = re.compile(r"\.\d+$")


@dataclass(frozen=True)
class AlgebraNameScopes(ModulePass):
    """Name every scope that has no name of its own: `s0`, `s1`, ... in order.

    So are those whose name another scope has, or that end in `.0`, `.1`, ... as derived ones do. A
    pipeline of derivation passes then finds the same scopes wherever it is run again.

    Before:

        %0 = algebra.scope (i: 8) exp(%x[i]) : tensor<8xf32>
        %y = algebra.scope (i: 8) exp(%0[i]) : tensor<8xf32>

    After:

        %s0 = algebra.scope (i: 8) exp(%x[i]) : tensor<8xf32>
        %y = algebra.scope (i: 8) exp(%s0[i]) : tensor<8xf32>
    """

    name = "algebra-name-scopes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Name them."""
        taken, seen = names_in(op), set[str]()
        number = 0
        for scope in scope_ops(op):
            name = scope.result.name_hint
            if name is None or name in seen or _DERIVED.search(name):
                while f"s{number}" in taken:
                    number += 1
                name = scope.result.name_hint = f"s{number}"
                taken.add(name)
            seen.add(name)
