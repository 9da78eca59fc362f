"""Convert a program to scopes that read through copies, from which subprograms are taken."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

from ...dialects.context import WeightContext
from ...dialects.program import Program, add_pipeline, keep_names
from ...lowering.graph_to_algebra import GraphToAlgebra
from ..copies.algebra_drop_unread import AlgebraDropUnread
from ..copies.algebra_inline_copies import AlgebraInlineCopies
from ..derivation.name_scopes import AlgebraNameScopes
from ..merge_equal import MergeEqual

# Clean-up after rewrites: unread values, layouts that two of them share.
CLEAN: tuple[ModulePass, ...] = (MergeEqual(), DeadCodeElimination())
# Copies are read through first, so contractions see their real operands; unread scopes are not
# searched; names are for the trace.
PREPARE: tuple[ModulePass, ...] = (
    GraphToAlgebra(),
    AlgebraInlineCopies(),
    *CLEAN,
    AlgebraDropUnread(),
    AlgebraNameScopes(),
)


def prepared(program: Program) -> Program:
    """The program as scopes that read through copies, each with a name; a copy."""
    made = program.clone()
    keep_names(made)
    run(made, PREPARE)
    return made


def run(program: Program, passes: Sequence[ModulePass]) -> None:
    """Apply passes in place, and record them in the module."""
    context = WeightContext(weights=program.weights)
    for one in passes:
        one.apply(context, program.module)
    add_pipeline(program.module, ",".join(one.name for one in passes))
